"""A test of the tests: bugs of deletes that name no key, each of which the checks of the laws must find."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import cells
import pytest
import row_deletes
from cells import Cells, CellVersions
from laws import LawBroken
from memory import Memory
from one_model import OneModel
from pyspark.sql import SparkSession
from row_deletes import Rows, RowVersions

STATE = "macros/materializations/current_state"
RECORDS = "macros/change_records"
SOURCE = "macros/sources/bigtable_change_stream.sql"
KEYLESS = "macros/keyless/get_keyless_delete_statements.sql"
VERSIONS = "macros/materializations/history/recomputed_versions.sql"
ADDRESS = f"{RECORDS}/newest_by_address.sql"
# All batches at once; the first one, and then the others; one after the other.
REBUILD, INCREMENTS, EACH_BATCH = "rebuild", "increments", "each batch"


class Bug(NamedTuple):
    """A bug: which text of which file becomes which, in which model it shows, after what, and as what."""

    name: str
    file: str
    found: str
    planted: str
    models: type[OneModel[Any]]
    after: str
    shows: str


# A row delete that comes is written into the rows that are there: those that come later are not undone by it.
MARKED = """
{%- if range.kind != 'rebuild' -%}
{%- do statements.append('merge into ' ~ reconcile.qualified(relations.base) ~ ' as base
using (
    select _row_id, max(_change_sequence) as sequence
    from ' ~ relations.changes_cache ~ '
    where id is null and _change_error is null
    group by _row_id
) as incoming
on incoming._row_id = base._row_id
when matched and sequence > _change_sequence then update set
    _deleted = true,
    note = null') -%}
{%- endif -%}
{{ return(statements) }}{%- endmacro %}"""

BUGS = [
    Bug("sequences not compared", f"{STATE}/live_rows.sql",
        " and keyless._change_sequence > base._change_sequence", "", Rows, REBUILD, "not the live ones"),
    Bug("row deletes quarantined", f"{RECORDS}/is_keyless_delete.sql",
        "{{ place }} is not null", "false", Rows, REBUILD, "not as folded|row deletes are not|quarantined"),
    Bug("the row is marked as deleted", KEYLESS,
        "  {{ return(statements) }}\n{%- endmacro %}", MARKED, Rows, INCREMENTS, "not as folded"),
    Bug("the first row delete is the last", KEYLESS,
        "when not matched then insert *", "", Rows, INCREMENTS, "row deletes are not"),
    Bug("of copies of a row delete the last one is kept", KEYLESS,
        "struct(incoming._change_time, incoming._change_id) <", "struct(incoming._change_time, incoming._change_id) >",
        Rows, INCREMENTS, "row deletes are not"),
    Bug("a row delete ends a version before it began", VERSIONS,
        "greatest(valid_from, least(valid_to, _change_ended_by.time))", "least(valid_to, _change_ended_by.time)",
        RowVersions, REBUILD, "not as replayed"),
    Bug("a row that is undone counts as applied", "macros/keyless/rows_with_keyless_deletes.sql",
        "_change_is_undone or _deleted and", "_deleted and", Rows, INCREMENTS, "counts"),
    Bug("any row delete is a duplicate", f"{STATE}/counts_with_keyless_deletes.sql",
        "select {{ place }}, _change_sequence, _change_records as records, false as is_known",
        "select {{ place }}, _change_sequence, _change_records as records, true as is_known",
        Rows, REBUILD, "counts"),
    Bug("addresses of backfill rows", "macros/sources/datastream_change_records.sql",
        "'if(is_backfill, null, ' ~ row_id ~ ')'", "row_id",
        Rows, REBUILD, "not as folded"),
    Bug("the newest record decides", ADDRESS,
        "change -> coalesce({{ written }}._change_is_insert or change.address = {{ written }}._row_id, true)",
        "change -> true", Rows, REBUILD, "not as folded"),
    Bug("no later delete deletes the row that took a key", ADDRESS,
        "coalesce({{ written }}._change_is_insert or change.address = {{ written }}._row_id, true)", "false",
        Rows, REBUILD, "not as folded"),
    Bug("a row is taken for another row where an address is missing", ADDRESS,
        "change.address = {{ written }}._row_id, true)", "change.address = {{ written }}._row_id, false)",
        Rows, REBUILD, "not as folded"),
    Bug("what an insert took is taken for another row's", ADDRESS,
        "{{ written }}._change_is_insert or ", "", Rows, REBUILD, "not as folded"),
    Bug("how a key was taken is forgotten", ADDRESS,
        "when _change_is_insert then 'insert' else", "else", Rows, INCREMENTS, "not as folded"),
    Bug("deletes of other transactions decide too", ADDRESS,
        "change.transaction = {{ newest }}._change_transaction and ", "", Rows, REBUILD, "not as folded"),
    Bug("older deletes of the transaction decide too", ADDRESS,
        "change.sequence > coalesce({{ written }}._change_sequence, '')", "true", Rows, REBUILD, "not as folded"),
    Bug("what else a row keeps leaves no trace", ADDRESS,
        "array_max(transform(contenders, change -> change.batch))", "winner._change_batch",
        Rows, REBUILD, "not as folded"),
    Bug("what else a row keeps is not read", ADDRESS,
        "change -> not change.address <=> '' or _deleted)", "change -> false)", Rows, INCREMENTS, "not as folded"),
    Bug("the row that had taken a key is not known after its delete", ADDRESS,
        "change -> not change.address <=> '' or _deleted)", "change -> not change.address <=> '')",
        Rows, INCREMENTS, "not as folded"),
    Bug("a row that stays is written without its values", f"{STATE}/merge_newest.sql",
        "newest._change_replaces_base{%", "true{%", Rows, INCREMENTS, "not as folded"),
    Bug("a row that stays is not written", f"{STATE}/merge_newest.sql",
        "(_change_replaces_base or _change_is_noted)", "_change_replaces_base", Rows, INCREMENTS, "not as folded"),
    Bug("the record that is kept counts as applied", ADDRESS,
        "newest_of_range._change_sequence) as _change_applied_sequence",
        "winner._change_sequence) as _change_applied_sequence", Rows, INCREMENTS, "counts"),
    Bug("a delete of another row ends a version", VERSIONS,
        "_change_last_write.address <> _row_id,", "false,", RowVersions, REBUILD, "versions are not"),
    Bug("no row is live after a delete of another row", VERSIONS,
        "if(_change_is_of_no_row, null, _change_is_version and", "if(false, null, _change_is_version and",
        RowVersions, REBUILD, "counts"),
    Bug("an insert is undone by any transaction", ADDRESS,
        "record._row_id = undone._row_id and record._change_transaction = undone._change_transaction",
        "record._row_id = undone._row_id", Rows, REBUILD, "not as folded"),
    Bug("an insert is undone at any address", ADDRESS,
        "record._row_id = undone._row_id and record._change_transaction", "record._change_transaction",
        Rows, REBUILD, "not as folded"),
    Bug("an insert is undone by an earlier delete", ADDRESS,
        "filter(undone.deletes, change -> change.sequence > record._change_sequence)", "undone.deletes",
        Rows, REBUILD, "not as folded"),
    Bug("no insert is undone", ADDRESS,
        "if(certain is null and forall(recent", "if(true or certain is null and forall(recent",
        Rows, REBUILD, "not as folded"),
    Bug("a delete that comes before the insert undoes nothing", f"{STATE}/newest_rows.sql",
        "undoing_deletes(relations.changes_cache, form.unique_key, stored)",
        "undoing_deletes(relations.changes_cache, form.unique_key, none)", Rows, INCREMENTS, "not as folded"),
    Bug("a delete undoes nothing that came in an earlier batch", f"{STATE}/newest_rows.sql",
        "touched if has_keyless_deletes else changes", "changes", Rows, INCREMENTS, "not as folded"),
    Bug("only the insert that is the row is undone later", "macros/keyless/undoing_deletes.sql",
        "coalesce(transform(_change_displaced, change -> struct(change.address, change.transaction)), array())",
        "array()", Rows, INCREMENTS, "not as folded"),
    Bug("what an insert displaces is not kept", ADDRESS,
        "if(cardinality(standing) = 0 or certain is null", "if(true or certain is null",
        Rows, INCREMENTS, "not as folded"),
    Bug("of what an insert displaces other inserts are not kept", ADDRESS,
        "if(undone is null, standing, concat", "if(undone is null, slice(standing, 1, 1), concat",
        Rows, INCREMENTS, "not as folded"),
    Bug("the newest insert that is undone is forgotten", ADDRESS,
        "if(certain is null and exists(recent", "if(false and exists(recent", Rows, INCREMENTS, "not as folded"),
    Bug("what an insert displaces is kept without its values", f"{STATE}/merge_newest.sql",
        "reconcile.displaced_with_base(form) if column == '_change_displaced' else ", "",
        Rows, EACH_BATCH, "not as folded"),
    Bug("what undid an insert leaves no trace", ADDRESS,
        "change._change_undone_in > change._change_batch", "false", Rows, REBUILD, "not as folded"),
    Bug("a row that comes back counts as applied", f"{RECORDS}/change_counts.sql",
        "' and _change_applied_sequence is not null'", "''", Rows, INCREMENTS, "counts"),
    Bug("an insert that is undone is a version", VERSIONS,
        "' and not _change_is_undone'", "''", RowVersions, REBUILD, "versions are not shown"),
    Bug("a version is undone by any transaction", VERSIONS,
        "coalesce(found.transaction = _change_transaction, false) and ", "", RowVersions, REBUILD, "versions are not"),
    Bug("an insert that is undone ends a version", VERSIONS,
        "_change_is_undone or coalesce(\n", "coalesce(\n", RowVersions, REBUILD, "versions are not"),
    Bug("an insert that is undone counts as applied to a history", "macros/materializations/history/version_counts.sql",
        "when _change_is_undone then 'undone'", "when false then 'undone'", RowVersions, REBUILD, "counts"),
    Bug("deletions hide what came later", f"{STATE}/live_rows.sql",
        " and keyless._change_sequence > base._change_sequence", "", Cells, REBUILD, "not the visible ones"),
    Bug("the end is inclusive", "macros/keyless/keyless_deletes.sql",
        "{{ row }}.cell_time < {{ place }}.end_time)", "{{ row }}.cell_time <= {{ place }}.end_time)",
        Cells, REBUILD, "not the visible ones|counts"),
    Bug("the start is exclusive", "macros/keyless/keyless_deletes.sql",
        "{{ place }}.start_time <= {{ row }}.cell_time", "{{ place }}.start_time < {{ row }}.cell_time",
        Cells, REBUILD, "not the visible ones|counts"),
    Bug("an end of 0 is an end", SOURCE, "nullif(entry.ends, 0)", "entry.ends",
        Cells, REBUILD, "not those delivered"),
    Bug("a family is the column of no name", "macros/keyless/keyless_deletes.sql",
        "({{ place }}.qualifier is null or {{ place }}.qualifier = {{ row }}.qualifier)",
        "coalesce({{ place }}.qualifier, binary('')) = {{ row }}.qualifier",
        Cells, REBUILD, "not the visible ones|counts"),
    Bug("microseconds of the commit", SOURCE,
        "{{ reconcile.hex_of_nanoseconds('committed_at', 'commit_timestamp') }}",
        "lpad(hex(unix_micros(committed_at)), 16, '0')",
        Cells, REBUILD, "not as folded|not the visible ones|deletions of ranges"),
    Bug("no tiebreaker", SOURCE, "{{ reconcile.hex_of_signed('tiebreaker') }}",
        "if(tiebreaker is null, null, '0')",
        Cells, REBUILD, "not as folded|not the visible ones|deletions of ranges"),
    Bug("a negative tiebreaker is large", f"{RECORDS}/sequence_sections.sql",
        " ^ bigint('-9223372036854775808')", "",
        Cells, REBUILD, "not as folded|not the visible ones|deletions of ranges"),
    Bug("entries in no order", SOURCE, "{{ reconcile.hex_of_index('place') }}", "'0'",
        Cells, REBUILD, "not as folded|not the visible ones|deletions of ranges"),
    Bug("garbage collection kept", SOURCE, "== 'keep' -%}", "!= 'none' -%}",
        Cells, REBUILD, "deletions of ranges|counts"),
    Bug("the rest of a change goes on", SOURCE, "    nullif(error, '') as _change_error,",
        "    if(change_type is null, error, null) as _change_error,", Cells, REBUILD, "not as folded"),
    Bug("the first deletions are the last", KEYLESS,
        "when not matched then insert *", "", Cells, INCREMENTS, "deletions of ranges"),
    Bug("what is hidden counts as applied", "macros/keyless/rows_with_keyless_deletes.sql",
        "_change_is_undone or _deleted and not _change_is_delete and coalesce(_change_base_deleted, true)", "false",
        Cells, REBUILD, "counts"),
    Bug("a deletion never takes a live cell", f"{STATE}/counts_with_keyless_deletes.sql",
        "replaced.{{ key }} is null, not base._deleted{{", "replaced.{{ key }} is null, false{{",
        Cells, INCREMENTS, "counts"),
    Bug("what one batch sets and deletes was there before", f"{STATE}/counts_with_keyless_deletes.sql",
        "_change_is_undone and not coalesce(_change_base_deleted, true) as was_live", "_change_is_undone as was_live",
        Cells, REBUILD, "counts"),
    Bug("entries not delivered", "macros/ledger/delivered_records.sql",
        "greatest({{ entries }}, 1)\n{%- endif -%}", "1\n{%- endif -%}", Cells, REBUILD, "counts"),
    Bug("only the column's versions end", VERSIONS,
        "and {{ reconcile.delete_covers_row(keyless, 'found.place', 'record') }}",
        "and found.place.qualifier = record.qualifier", CellVersions, REBUILD, "versions are not"),
    Bug("the last deletion ends a version", VERSIONS,
        "null, array_min(filter(", "null, array_max(filter(", CellVersions, REBUILD, "versions are not"),
    Bug("garbage collection applied to a history", "macros/model/garbage_collection_of.sql",
        "'keep' if materialized == 'history'", "'apply' if true", CellVersions, REBUILD, "counts|versions are not"),
]  # fmt: skip


@pytest.fixture(scope="module")
def staged(spark: SparkSession) -> Iterator[dict[str, OneModel[Any]]]:
    """The records of all bugs, staged once: of rows, and of cells."""
    with Memory(spark) as memory:
        (back, _), (arrive, _) = cells.hidden_and_back(), row_deletes.arrivals()
        yield {
            Rows.name: Rows(memory, "planted_rows", [*arrive, *row_deletes.invented(250, seed=2, split=3)]),
            Cells.name: Cells(memory, "planted_cells", [*back, *cells.invented(80, seed=2, split=3)]),
        }


@pytest.mark.planted
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_checks_find(staged: dict[str, OneModel[Any]], bug: Bug) -> None:
    records = staged[bug.models.name]
    schema = "planted_" + "".join(character if character.isalnum() else "_" for character in bug.name)
    model = bug.models(records.lake, schema, records, {bug.file: {bug.found: bug.planted}})  # type: ignore[arg-type]
    before = {REBUILD: [], INCREMENTS: [1], EACH_BATCH: range(1, model.last)}
    for batch in before[bug.after]:
        model.run(batch)
    model.run(model.last)
    with pytest.raises(LawBroken, match=bug.shows):
        (model.check_ledger if bug.shows == "counts" else model.check)()
