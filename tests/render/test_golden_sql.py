"""The SQL that each shape of model runs is that of tests/sql, so that a change of it is reviewed as SQL.

`make golden` accepts what is rendered now.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from recorder import normalized
from shapes import SHAPES, Life

GOLDEN = Path(__file__).parents[1] / "sql"


def rendered(name: str) -> dict[str, str]:
    """Return the files of a shape: the SELECT of its change records, and the statements of each phase.

    Where an earlier shape has the very same SELECT, the file is there.
    """
    life, select = Life(SHAPES[name]), _change_records(name)
    first = next(shape for shape in SHAPES if _change_records(shape) == select)
    files = {"change_records.sql": f"{select}\n"} if first == name else {}
    named = f"{{the SELECT of {first}/change_records.sql}}"
    for phase in SHAPES[name].phases:
        statements = [sql.replace(select, named) for sql in life.statements(phase)]
        files[f"{phase.replace(' ', '_')}.sql"] = ";\n\n".join(statements) + "\n"
    return files


@functools.cache
def _change_records(name: str) -> str:
    return Life(SHAPES[name]).change_records


@pytest.mark.parametrize("name", SHAPES)
def test_a_model_runs_the_sql_that_was_reviewed(name: str, accept_goldens: bool) -> None:
    compare(GOLDEN / name, rendered(name), accept_goldens)


# The tests that users write, on the shapes for which their SQL differs.
DATA_TESTS = {
    "no_pending_rows": ["oracle", "oracle_history", "spanner", "spanner_history", "spanner_view", "iceberg_oracle"],
    "ledger_balances": ["mysql_composite_key", "spanner", "bigtable", "own_select", "mysql_after_a_purge"],
    "no_quarantine": ["mysql_composite_key"],
    "one_payload_per_sequence": ["mysql_composite_key", "mysql_odd_names"],
    "history_is_sound": [
        "mysql_history", "oracle_history", "spanner_history", "bigtable_keeps_garbage", "iceberg_history",
    ],
    "transactions_complete": ["spanner"],
}  # fmt: skip


@pytest.mark.parametrize("test", DATA_TESTS)
def test_a_data_test_asks_the_sql_that_was_reviewed(test: str, accept_goldens: bool) -> None:
    files = {}
    for name in DATA_TESTS[test]:
        life = Life(SHAPES[name])
        life.statements(SHAPES[name].phases[0])
        if life.project.macros.keyless_deletes_of(life.project.node("orders")):
            life.statements("increment")
        files[f"{name}.sql"] = life.project.test(test, "orders").strip() + "\n"
    compare(GOLDEN / "data_tests" / test, files, accept_goldens)


def test_a_run_begins_with_the_sql_that_was_reviewed(accept_goldens: bool) -> None:
    """The ledger, the tables of parity, the cut of each staging table, and the monitoring views."""
    files = {}
    for name in ("mysql_composite_key", "iceberg_mysql", "bigtable"):
        life = Life(SHAPES[name])
        for which in ("run", "build"):
            life.warehouse.statements.clear()
            life.project.begin(which)
            files[f"{name}_{which}.sql"] = ";\n\n".join(normalized(life.warehouse.statements)) + "\n"
    for view in ("reconcile_lag", "reconcile_unrouted"):
        files[f"{view}.sql"] = life.project.compile(view).strip() + "\n"
    compare(GOLDEN / "begin_run", files, accept_goldens)


def compare(directory: Path, files: dict[str, str], accept: bool) -> None:
    """Demand that a directory of tests/sql holds these files and no others."""
    if accept:
        _accept(directory, files)
    kept = {file.name: file.read_text() for file in directory.glob("*.sql")}
    assert kept.keys() == files.keys(), f"{directory.name}: other files than there should be; `make golden` accepts"
    for file, text in files.items():
        assert text == kept[file], f"{directory.name}/{file} is not what is rendered now; `make golden` accepts it"


def test_no_golden_is_of_a_shape_that_is_no_more() -> None:
    assert {directory.name for directory in GOLDEN.iterdir()} == {*SHAPES, "begin_run", "data_tests"}


def _accept(directory: Path, files: dict[str, str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for file in directory.glob("*.sql"):
        if file.name not in files:
            file.unlink()
    for name, text in files.items():
        (directory / name).write_text(text)
