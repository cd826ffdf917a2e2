"""The SQL that each shape of model runs is that of tests/sql, so that a change of it is reviewed as SQL.

`make golden` accepts what is rendered now.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from plain_dbt import Relation
from recorder import normalized
from refusals import THINGS, thing
from shapes import (
    BIGTABLE,
    CELL_KEY,
    CELLS,
    MYSQL,
    ORACLE,
    POSTGRESQL,
    SHAPES,
    SNAPSHOTS,
    SPANNER,
    SQLSERVER,
    STAGING,
    Life,
    Shape,
)
from snapshots import SNAPSHOT, TAKEN_AT, beside_a_snapshot, taken
from test_monitoring_views import VIEWS

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
    "log_is_one": ["postgresql", "mysql_shards"],
    "keys_are_disjoint": ["mysql_shards", "postgresql_tenants", "mysql_tables"],
    "time_agrees_with_log": ["mysql_composite_key"],
    "no_shifted_keys": ["mysql_composite_key", "oracle"],
    "no_drift": ["mysql_composite_key"],
    "key_is_the_sources": ["mysql_composite_key", "oracle_key_is_the_row_id", "mysql_shards"],
}  # fmt: skip
# Those that may be asked of a staging table.
OF_STAGING = ["ledger_balances", "no_quarantine"]


@pytest.mark.parametrize("test", DATA_TESTS)
def test_a_data_test_asks_the_sql_that_was_reviewed(test: str, accept_goldens: bool) -> None:
    files = {}
    for name in DATA_TESTS[test]:
        life = Life(SHAPES[name])
        life.statements(SHAPES[name].phases[0])
        if life.project.macros.keyless_deletes_of(life.project.node("orders")):
            life.statements("increment")
        files[f"{name}.sql"] = life.project.test(test, "orders", which="compile").strip() + "\n"
    if test in OF_STAGING:
        # Of two models, the second of which reads one of the tables of an object.
        life.project.model("lines", thing(table="shop.lines").sql, THINGS)
        for relation in ("orders__quarantine", "lines__quarantine"):
            life.warehouse.has(f"demo.{relation}")
        files["staging.sql"] = life.project.test(test, STAGING, which="compile").strip() + "\n"
    compare(GOLDEN / "data_tests" / test, files, accept_goldens)


# --- parity: of each kind of position, of each source that has it, and of what else changes its SQL -------------------

PARITY_COLUMNS = {"id": "bigint", "name": "string", "amount": "decimal(12,2)", "ratio": "double", "at": "timestamp"}


def of(source: str, **said: Any) -> Shape:
    return Shape(source, PARITY_COLUMNS, **said)


SEVERAL = Shape(
    MYSQL, {"shard": "string", **PARITY_COLUMNS}, ["shard", "id"], table=["shop_1.orders", "shop_2.orders"],
    arguments=", source_columns={'shard': 'database'}",
)  # fmt: skip
SCN, LSN = taken("scn", "15869128507100"), taken("lsn", "0x0000000A000000200003")
BINLOG, PG_SNAPSHOT = taken("binlog", "mysql-bin.000017:4"), taken("pg_snapshot", "20:30:25")
READ_TIMESTAMP = taken("read_timestamp", "2026-11-22T10:00:00.123456789Z")
IN_GENERATIONS = ", generations=['2026-11-21 00:00:00+00']"
TOLERANCES = {"name": ["trim", "case"], "amount": {"round": 1}, "ratio": "sign_of_zero", "at": "to_second"}
# A model, how the source's rows were taken, and the arguments of the test.
COMPARED: dict[str, tuple[Shape, dict[str, str], dict[str, Any]]] = {
    "as_they_are": (of(MYSQL), {}, {}),
    "of_some_columns": (of(MYSQL), {}, {"columns": ["name"], "key": ["id", "amount"], "store_values": True}),
    "with_tolerances": (of(MYSQL), {}, {"tolerances": TOLERANCES}),
    "now_whenever_it_was_taken": (of(MYSQL), BINLOG, {"as_of": "now"}),
    "of_a_history": (of(MYSQL, materialized="history"), {}, {}),
    "of_cells": (Shape(BIGTABLE, CELLS, CELL_KEY, object="events"), {}, {}),
    "oracle_at_an_scn": (of(ORACLE, row_ids=True), SCN, {"uncertainty": "2 hours", "allowance": "3 hours"}),
    "mysql_at_a_position_in_the_binary_log": (of(MYSQL), BINLOG, {}),
    "mysql_in_generations": (of(MYSQL, arguments=IN_GENERATIONS), BINLOG, {}),
    "postgresql_at_a_snapshot": (of(POSTGRESQL), PG_SNAPSHOT, {"recheck": 2}),
    "postgresql_of_a_view": (of(POSTGRESQL, materialized="current_view"), PG_SNAPSHOT, {}),
    "sqlserver_at_an_lsn": (of(SQLSERVER), LSN, {}),
    "spanner_at_a_read_timestamp": (of(SPANNER), READ_TIMESTAMP, {}),
    "at_a_batch": (of(MYSQL), {}, {"as_of": {"batch": 2}}),
    "at_an_append": (of(MYSQL), {}, {"as_of": {"appended_at": TAKEN_AT}}),
    "at_a_time": (of(MYSQL), {}, {"as_of": {"commit_time": TAKEN_AT}}),
    "at_a_sequence": (of(ORACLE, row_ids=True), {}, {"as_of": {"sequence": "0001/1/00000E6ECEDFC05C"}}),
    "of_a_model_of_snapshots": (of(SNAPSHOTS), SCN, {}),
    "of_several_sources": (SEVERAL, BINLOG, {"as_of": "now"}),
    "of_several_sources_at_a_time": (SEVERAL, {}, {"as_of": {"commit_time": TAKEN_AT}}),
    "iceberg_at_a_position": (of(MYSQL, file_format="iceberg"), BINLOG, {}),
    "iceberg_with_a_table_that_is_no_snapshot": (of(MYSQL, file_format="iceberg"), {}, {}),
}


def compared(name: str, **answers: dict[str, Any]) -> str:
    shape, properties, said = COMPARED[name]
    life = beside_a_snapshot(shape, properties)
    project, warehouse = life.project, life.warehouse
    if project.macros.keyless_deletes_of(project.node("orders")):
        life.statements("increment")
    warehouse.answers = {
        "coalesce(max(batch), 0) as last": {"last": 3, "first": 3, "as_of_batch": 2, "recent": 3},
        "select distinct _change_batch from": {"_change_batch": 1},
        " as touched,": {"touched": 2, "unreadable": 1},
        " as covers_position\n": {"cut_time": TAKEN_AT, "covers_position": True},
        " as has_passed,": {"has_passed": True, "late": 0},
        " as compared,": dict.fromkeys(COUNTED, 1) | {"compared": 9, "matched": 6, "tolerated": "{}"},
        "describe history": {"version": 7},
        ".refs where": {"snapshot_id": 77},
        "select run_id, verdict, rechecks": {},
    } | answers
    warehouse.statements.clear()
    text = project.test("parity", "orders", **{"compare_to": SNAPSHOT, "key": shape.key, **said})
    return ";\n\n".join([*normalized(warehouse.statements), text.strip()]) + "\n"


COUNTED = (
    "compared", "matched", "confirmed", "in_flight", "unprovable", "missing", "unexpected", "different",
    "model_digest", "source_digest", "tolerated",
)  # fmt: skip


def test_a_comparison_asks_and_writes_the_sql_that_was_reviewed(accept_goldens: bool) -> None:
    files = {f"{name}.sql": compared(name) for name in COMPARED}
    in_flight = {"run_id": "the run before", "verdict": "in_flight", "rechecks": 1}
    nothing = dict.fromkeys(COUNTED, 0) | {"tolerated": "{}"}
    again: dict[str, dict[str, Any]] = {"select run_id, verdict, rechecks": in_flight, " as compared,": nothing}
    files["postgresql_rows_in_flight_again.sql"] = compared("postgresql_at_a_snapshot", **again)
    files["of_nothing.sql"] = compared("as_they_are", **{" as compared,": nothing})
    compare(GOLDEN / "parity", files, accept_goldens)


def test_rows_of_cells_are_the_sql_that_was_reviewed(accept_goldens: bool) -> None:
    columns = [
        {"name": "word", "cell": "f:word", "data_type": "varchar(3)", "encoding": "text", "round": True},
        {"name": "whole", "cell": "f:n", "data_type": "int", "encoding": "big_endian"},
        {"name": "no_text", "cell": "f:", "qualifier_hex": "ff00", "data_type": "binary", "encoding": "raw"},
    ]
    life = Life(Shape(BIGTABLE, CELLS, CELL_KEY, object="events"))
    text = life.project.macros.bigtable_rows(Relation("demo", "orders"), columns)
    compare(GOLDEN / "rows_of_cells", {"rows.sql": text.strip() + "\n"}, accept_goldens)


def test_a_run_begins_with_the_sql_that_was_reviewed(accept_goldens: bool) -> None:
    """The ledger, the tables of parity, the cut of each staging table, and the monitoring views."""
    files = {}
    for name in ("mysql_composite_key", "iceberg_mysql", "bigtable"):
        life = Life(SHAPES[name])
        for which in ("run", "build"):
            life.warehouse.statements.clear()
            life.project.begin(which)
            files[f"{name}_{which}.sql"] = ";\n\n".join(normalized(life.warehouse.statements)) + "\n"
    files["registered.sql"] = _registered()
    files["known_at_start.sql"] = _asked_of_built_models()
    built = Life(SHAPES["oracle"])
    built.statements("first run")
    for view in ("reconcile_models", "reconcile_status"):
        files[f"{view}_of_a_built_model.sql"] = built.project.compile(view).strip() + "\n"
    for view in VIEWS:
        files[f"{view}.sql"] = life.project.compile(view).strip() + "\n"
    compare(GOLDEN / "begin_run", files, accept_goldens)


def _registered() -> str:
    """Return what a run asks and writes where `maintain.py` was called: a model that is new, and one that changed."""
    life = Life(SHAPES["mysql_composite_key"])
    life.warehouse.has(f"{STAGING}__readers")
    life.project.begin("run")
    life.project.model("orders", thing(object="shop.others").sql, THINGS)
    life.project.model("more", thing(object="shop.more").sql, THINGS)
    life.warehouse.statements.clear()
    life.project.macros.register_models({STAGING: 3})
    return ";\n\n".join(normalized(life.warehouse.statements)) + "\n"


def _asked_of_built_models() -> str:
    """Return what a run asks of two models that have been built, before either: one statement of each kind."""
    life = Life(SHAPES["mysql_composite_key"])
    life.project.model("lines", thing(table="shop.lines").sql, THINGS)
    life.project.run("orders")
    for relation in ("lines", "lines__base", "lines__changes", "lines__quarantine"):
        life.warehouse.has(f"demo.{relation}")
    life.warehouse.ledger, life.warehouse.base_batch, life.warehouse.last_appended_at = (3, 3), 3, 7
    life.warehouse.delivered = 0
    life.project.begin("run", ["orders", "lines"])
    life.warehouse.statements.clear()
    life.project.graph["reconcile_listed"] = {}
    life.project.macros.known_at_start({STAGING: 5})
    return ";\n\n".join(normalized(life.warehouse.statements)) + "\n"


def test_a_run_beside_horizons_is_the_sql_that_was_reviewed(accept_goldens: bool) -> None:
    """What a run asks of horizons, a run that takes one, and the account of a model whose tombstones may be gone."""
    life = Life(SHAPES["mysql_composite_key"])
    life.statements("first run")
    macros, node = life.project.macros, life.project.node("orders")
    declaration = json.dumps(macros.declaration_of(macros.form_of_node(node), macros.model_inputs(node)))
    life.warehouse.has("demo.reconcile_horizons")
    known = [("proposed", 4, "0000/1/000000000000000B/~"), ("taken", 2, "0000/1/000000000000000A/~")]
    life.warehouse.answers["select relation, kind, first_batch, declaration, max(sequence)"] = [
        {"relation": "demo.orders", "kind": kind, "first_batch": first,
         "declaration": macros.declaration_of_order(declaration), "sequence": sequence}
        for kind, first, sequence in known
    ]  # fmt: skip
    files = {"increment.sql": ";\n\n".join(life.statements("increment")) + "\n"}
    life.warehouse.statements.clear()
    life.project.begin("run", ["orders"])
    asked = [sql for sql in normalized(life.warehouse.statements) if "reconcile_horizons" in sql]
    files["run.sql"] = ";\n\n".join(asked) + "\n"
    files["account.sql"] = macros.account_findings([node]).strip() + "\n"
    compare(GOLDEN / "horizons", files, accept_goldens)


def test_a_run_ends_with_the_sql_that_was_reviewed(accept_goldens: bool) -> None:
    """What no model reads of the batches that it brought."""
    life = Life(SHAPES["mysql_composite_key"])
    life.statements("increment")
    life.warehouse.statements.clear()
    life.project.macros.summary_of_run()
    view = indent(life.project.compile("reconcile_unrouted").strip(), "    ").lstrip()
    text = ";\n\n".join(normalized(life.warehouse.statements)) + "\n"
    assert "batch between" in text and view in text
    text = text.replace(view, "{the SELECT of begin_run/reconcile_unrouted.sql}")
    compare(GOLDEN / "end_run", {"unread.sql": text}, accept_goldens)


def compare(directory: Path, files: dict[str, str], accept: bool) -> None:
    """Demand that a directory of tests/sql holds these files and no others."""
    if accept:
        _accept(directory, files)
    kept = {file.name: file.read_text() for file in directory.glob("*.sql")}
    assert kept.keys() == files.keys(), f"{directory.name}: other files than there should be; `make golden` accepts"
    for file, text in files.items():
        assert text == kept[file], f"{directory.name}/{file} is not what is rendered now; `make golden` accepts it"


def test_no_golden_is_of_a_shape_that_is_no_more() -> None:
    beside = {"begin_run", "end_run", "data_tests", "horizons", "parity", "proof", "rows_of_cells"}
    assert {directory.name for directory in GOLDEN.iterdir()} == {*SHAPES, *beside}


def _accept(directory: Path, files: dict[str, str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for file in directory.glob("*.sql"):
        if file.name not in files:
            file.unlink()
    for name, text in files.items():
        (directory / name).write_text(text)


# --- what Spark does wrong --------------------------------------------------------------------------------------------

_GENERATOR = re.compile(r"lateral view (?:explode|posexplode|inline)(?=\()")
_LAMBDA = re.compile(r"\b(?:transform|filter)(?=\()")


@pytest.mark.parametrize("name", SHAPES)
def test_nothing_that_spark_computes_below_a_generator_stands_in_one(name: str) -> None:
    """See docs/decisions/0005-barriers-in-the-source-macros.md; what depends on a lambda's variable stays in it."""
    sql = _change_records(name)
    for generator in _GENERATOR.finditer(sql):
        call = _brackets(sql, generator.end())
        while inner := _LAMBDA.search(call):
            call = call[: inner.start()] + call[inner.end() + len(_brackets(call, inner.end())) :]
        assert not re.search(r"\bnullif\(|\bbetween\b", call)


def _brackets(sql: str, at: int) -> str:
    """Return the text from a bracket to the one that closes it."""
    depth = 0
    for token in re.compile(r"'(?:[^'\\]|\\.)*'|[()]").finditer(sql, at):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0:
            return sql[at : token.end()]
    raise AssertionError(f"no bracket closes that at {at}")


# A SELECT from change records, or from rows of a model, has the model's columns beside what a lateral view gives.
OF_COLUMNS = re.compile(
    r"\bfrom (?:reconcile_\w+|`[^`]+`\.`[^`]+(?:__changes|__base)`)[^\n]*\n\s*"
    r"lateral view (?:outer )?\w+\(.*?\)(?:\n\)+)? (?:\w+ )?as ([\w, ]+)$",
    re.M | re.S,
)


def test_what_a_lateral_view_gives_beside_the_columns_of_a_model_has_a_reserved_name() -> None:
    names = {
        name: path.relative_to(GOLDEN)
        for path in sorted(GOLDEN.rglob("*.sql"))
        for given in OF_COLUMNS.findall(path.read_text())
        for name in given.split(", ")
    }
    assert "_change_zero_date" in names, "the pattern finds nothing"
    assert {name: path for name, path in names.items() if not name.startswith("_change_")} == {}
