"""The cells of a snapshot as data changes of one moment: each row is emptied, and then has the cells of the snapshot.

Rows that the stream has named and that the snapshot lacks are emptied, too. The changes have the form that the stream
has, so what folds the stream folds them: every change before the moment loses to them, and every later one wins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile_jobs.staging import literal
from reconcile_jobs.timestamps import as_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["restated_cells"]


def restated_cells(cells: DataFrame, staged: DataFrame, moment: int) -> DataFrame:
    """Return `record` of the changes.

    `cells`: the snapshot, with the columns of a model of cells. `staged`: the records of the table in staging. `moment`
    is in nanoseconds since 1970.
    """
    of_snapshot = cells.selectExpr(f"{_text_of('row_key')} as row_key", "family")
    entries = "from_json(record, 'entries array<map<string, struct<family: string>>>').entries"
    told = staged.selectExpr(
        "get_json_object(record, '$.row_key') as row_key",
        f"explode_outer(flatten(transform({entries}, entry -> map_values(entry)))) as entry",
    ).selectExpr("row_key", "entry.family")
    named = of_snapshot.unionByName(told)
    families = named.where("family is not null").selectExpr("array_sort(collect_set(family)) as families")
    # A record that is in quarantine may name a row in a way that nothing can read.
    is_key = "octet_length(try_to_binary(row_key, 'base64')) > 0"
    # A table has a hundred families at most, and a change may delete from all of them.
    emptied = named.where(is_key).select("row_key").distinct().crossJoin(families)
    deletes = emptied.where("cardinality(families) > 0").selectExpr(
        _change(
            moment, 0, "row_key",
            "transform(families, family -> named_struct('delete_from_family', named_struct('family', family)))",
        )
    )  # fmt: skip
    cell = (
        f"named_struct('family', family, 'qualifier', {_text_of('qualifier')}, 'timestamp_micros', "
        f"unix_micros(cell_time), 'value', {_text_of('value')})"
    )
    sets = cells.selectExpr(_change(moment, 1, _text_of("row_key"), f"array(named_struct('set_cell', {cell}))"))
    return deletes.unionByName(sets)


def _change(moment: int, tiebreaker: int, row_key: str, entries: str) -> str:
    """SQL for the JSON of a change, as `record`."""
    return (
        f"to_json(named_struct('row_key', {row_key}, 'type', 'backfill', 'source_cluster_id', '', 'commit_timestamp', "
        f"{literal(as_text(moment))}, 'tiebreaker', {tiebreaker}, 'entries', {entries})) as record"
    )


def _text_of(column: str) -> str:
    """SQL for bytes as base64, in one line."""
    return f"replace(base64({column}), '\\r\\n', '')"
