"""The rows of a table with the last values of those that were deleted, as docs/materializations.md takes them from a
history: a function of the set of records."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from histories import COLUMNS, KEY, Record, generate
from laws import LawBroken, StagedHistories, demand, some
from memory import Memory
from pyspark.sql import SparkSession
from version_laws import Histories, _micros

PAGE = Path(__file__).parents[2] / "docs" / "materializations.md"
Rows = dict[tuple[object, ...], tuple[object, ...]]


def documented(relation: str) -> str:
    """Return the SELECT of the page, of a history with the columns of invented histories."""
    (sql,) = [block for block in re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL) if "deleted_at" in block]
    for text, put in (
        ("{{ config(materialized='view') }}\n", ""),
        ("{{ ref('orders_history') }}", relation),
        ("select id, customer, total,", f"select {', '.join(COLUMNS)},"),
        ("partition by id", f"partition by {', '.join(KEY)}"),
    ):
        assert sql.count(text) == 1, f"the page no longer has {text}"
        sql = sql.replace(text, put)
    return sql


def rows_of(memory: Memory, sql: str) -> Rows:
    """Return what a SELECT shows, by key: values, and when the row was deleted."""
    shown = memory.sql(sql).collect()
    rows = {tuple(row)[: len(KEY)]: (*tuple(row)[len(KEY) : -1], _micros(row.deleted_at)) for row in shown}
    demand(len(rows) == len(shown), "a key comes twice")
    return rows


def expected_rows(models: Histories, source: str) -> Rows:
    """Return the values of the newest insert or update of each key, and the time of the deletes that come after it."""
    sequences, by_key = models.sequences(source), dict[tuple[object, ...], list[tuple[str, Record]]]()
    for _, record in models.staged.upto(source, models.batch):
        if not record.bad:
            by_key.setdefault(record.key, []).append((sequences[record.uuid], record))
    rows: Rows = {}
    for key, records in by_key.items():
        written = [(sequence, record) for sequence, record in records if record.kind != "delete"]
        if written:
            last, record = max(written, key=lambda each: each[0])
            deletes = [_micros(other.time) for sequence, other in records if sequence > last]
            rows[key] = (*record.values, min(deletes, default=None))
    return rows


def check_deleted_rows(memory: Memory, models: Histories, replaced: tuple[str, str] = ("", "")) -> None:
    for source in models.sources:
        sql = documented(f"`{models.schema}`.`{source}`").replace(*replaced)
        seen, expected = rows_of(memory, sql), expected_rows(models, source)
        wrong = {key: (seen.get(key), expected.get(key)) for key in seen.keys() | expected.keys()
                 if seen.get(key) != expected.get(key)}  # fmt: skip
        demand(not wrong, f"{source}: {len(wrong)} of {len(expected)} rows are others: {some(wrong.items())}")


@pytest.mark.parametrize("source", ["mysql", pytest.param("postgresql", marks=pytest.mark.soak)])
def test_last_values_of_deleted_rows_follow_from_the_set_of_records(spark: SparkSession, source: str) -> None:
    """Any order, any split, copies and a rebuild; about half of the deletes carry only the key."""
    with Memory(spark) as memory:
        records = {source: generate(source, 40, seed=7)}
        one = Histories("deleted_one", StagedHistories(memory, "deleted_records", records, delivery=0, again=True))
        other = Histories("deleted_other", StagedHistories(memory, "deleted_records", records, delivery=1))
        for models, batch in ((one, 1), (one, 4), (other, 2)):
            models.run(batch)
            check_deleted_rows(memory, models)
        rows = expected_rows(one, source)
        assert rows == expected_rows(other, source), "the two deliveries say the same"
        assert sum(row[-1] is not None for row in rows.values()) >= 10, "too few deleted rows to show anything"

        # Planted: the order of the times is not that of the log; a delete that was followed by an insert counts.
        for bug in (
            ("order by _change_sequence desc", "order by valid_from desc, _change_sequence"),
            ("if(is_current, null, valid_to)", "valid_to + interval 1 microsecond"),
            ("where place = 1", "where place = 1 or not is_current"),
        ):
            with pytest.raises(LawBroken):
                check_deleted_rows(memory, one, bug)

        one.run(4, full_refresh=True)
        check_deleted_rows(memory, one)
