"""What a backfill reads of each table: the columns that the change stream watches, and always those of the key."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.spanner.backfill import watched_tables

# Tables with the positions of their columns; the key is the second one of Orders, and both of Lines.
COLUMNS = [
    ("", "Orders", "Note", 1), ("", "Orders", "Id", 2), ("", "Orders", "Total", 3), ("", "Lines", "Id", 1),
    ("", "Lines", "Line", 2), ("", "Lines", "Text", 3), ("s", "Orders", "Id", 1), ("s", "Orders", "Note", 2),
]  # fmt: skip
KEYS = [("", "Orders", "Id"), ("", "Lines", "Id"), ("", "Lines", "Line"), ("s", "Orders", "Id")]


def watched(everything: bool, tables: list[tuple[str, str, bool]], columns: list[tuple[str, str, str]]) -> Any:
    """Return the tables, each with its columns and whether they are of the key, of a stream that is so defined."""

    def rows(sql: str) -> list[list[Any]]:
        if "change_stream_tables" in sql:
            found: list[tuple[str, ...]] = [(schema, name, "YES" if of else "NO") for schema, name, of in tables]
        elif "change_stream_columns" in sql:
            found = list(columns)
        elif "change_streams" in sql:
            found = [("YES" if everything else "NO",)]
        elif "information_schema.columns" in sql:
            found = [(schema, table, name, str(place)) for schema, table, name, place in COLUMNS]
        else:
            found = list(KEYS)
        return [[SimpleNamespace(string_value=text) for text in row] for row in found]

    client: Any = SimpleNamespace(rows=rows, database="d")
    stream: Any = SimpleNamespace(name="S", postgresql=False)
    return [
        (table.name, [(column.name, column.position, column.key) for column in table.columns])
        for table in watched_tables(client, stream)
    ]


ID = ("Id", 2, True)


@pytest.mark.parametrize(
    ("columns", "read"),
    [
        ([], [ID]), (["Note"], [("Note", 1, False), ID]),
        (["Total", "Note"], [("Note", 1, False), ID, ("Total", 3, False)]),
    ],
    ids=["the key alone", "one column", "all columns, by name"],
)  # fmt: skip
def test_of_a_table_of_which_single_columns_are_watched_they_and_the_key_are_read(columns: list[str], read: Any):
    of_stream = [("", "Orders", name) for name in columns]
    assert watched(False, [("", "Orders", False)], of_stream) == [("Orders", read)]


def test_of_a_table_that_is_watched_whole_all_columns_are_read_and_no_other_table_is():
    lines = [("Id", 1, True), ("Line", 2, True), ("Text", 3, False)]
    assert watched(False, [("", "Lines", True)], []) == [("Lines", lines)]
    both = watched(False, [("", "Lines", True), ("s", "Orders", False)], [("s", "Orders", "Note")])
    assert both == [("Lines", lines), ("s.Orders", [("Id", 1, True), ("Note", 2, False)])]


def test_a_stream_of_everything_watches_each_column_of_each_table():
    found = dict(watched(True, [], []))
    assert {name: len(columns) for name, columns in found.items()} == {"Orders": 3, "Lines": 3, "s.Orders": 2}
    assert [name for name, _, is_key in found["Lines"] if is_key] == ["Id", "Line"]


def test_a_stream_that_watches_nothing_is_refused():
    with pytest.raises(UsageError, match=r"^The change stream S watches no table of d: alter it to watch one\."):
        watched(False, [], [])
