"""The way of a reader through the files of macros: what is a step, and what is a step back."""

from __future__ import annotations

from typing import Any

import pytest
from reading_path import MODEL, Steps, _Reader, reading_path, steps_of


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a", Steps(1, 0, 0)), ("aaa", Steps(1, 0, 0)), ("ab", Steps(2, 1, 0)), ("aba", Steps(2, 2, 1)),
        ("aabbaacc", Steps(3, 3, 1)), ("abcb", Steps(3, 3, 1)), ("abcacb", Steps(3, 5, 3)),
    ],
)  # fmt: skip
def test_a_step_changes_the_file_and_a_step_back_enters_one_that_was_left(path: str, steps: Steps):
    assert steps_of(path) == steps


class Called:
    """Macros that call each other through the reader."""

    calls: dict[str, list[str]] = {  # noqa: RUF012
        "source": ["literal", "order"], "order": ["literal"], "literal": [],
        "fold": ["order", "count"], "count": ["literal"],
        "get_ledger_statements": ["count", "insert"], "insert": [], "after": [],
    }  # fmt: skip
    reader: Any

    def __getattr__(self, name: str) -> Any:
        return lambda: [getattr(self.reader, called)() for called in self.calls[name]]


def test_each_macro_is_read_once_where_it_is_first_called_and_the_path_ends_at_the_ledger():
    macros: Any = Called()
    reader = macros.reader = _Reader(macros, {name: f"{name}.sql" for name in Called.calls})
    for name in ("source", "fold", "get_ledger_statements", "after"):
        getattr(reader, name)()
    files = [MODEL, "source", "literal", "source", "order", "source", MODEL, "fold", "count", "fold", MODEL]
    files += ["get_ledger_statements", "insert", "get_ledger_statements"]
    assert reader.path == [file if file == MODEL else f"{file}.sql" for file in files]


def test_the_path_leads_from_the_model_over_its_source_and_its_materialization_to_the_ledger():
    path = reading_path()
    assert (path[0], path[-1]) == (MODEL, "macros/ledger/get_ledger_statements.sql")
    places = [path.index(file) for file in (
        "macros/sources/datastream_mysql.sql", "macros/materializations/current_state/current_state.sql",
        "macros/table_formats/insert_into_ledger.sql",
    )]  # fmt: skip
    assert places == sorted(places)
