"""How a source is held at one position: its statements, to the letter, and what is compared of its columns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
import sqlglot
from reconcile_jobs.exact_text import NotExact
from reconcile_jobs.jdbc.database import Column, Database, Table
from reconcile_jobs.jdbc.mysql import MySQL
from reconcile_jobs.jdbc.oracle import Oracle
from reconcile_jobs.jdbc.postgresql import PostgreSQL
from reconcile_jobs.jdbc.sqlserver import SQLServer
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.proofs import plans
from reconcile_jobs.proofs.comparison import Row
from reconcile_jobs.proofs.plans import Plan, plan_of
from reconcile_jobs.proofs.source_side import begun, dialect_of, table_of_object
from reconcile_jobs.snapshots.snapshot_jdbc import Target

TABLES = [Table("shop", "orders"), Table("shop", "lines")]


class Connection:
    """One that answers what is scripted, by a part of a query, and keeps what it was told."""

    def __init__(self, answers: dict[str, list[tuple[Any, ...]]]) -> None:
        self.answers, self.told = answers, list[str]()

    def execute(self, sql: str) -> None:
        self.told.append(sql)

    def rows(self, sql: str, *parameters: str) -> list[tuple[Any, ...]]:
        self.told.append(" ".join(sql.split()))
        return next((rows for part, rows in self.answers.items() if part in sql), [])

    def values(self, sql: str, of_bytes: Collection[int] = ()) -> list[tuple[Any, ...]]:
        return self.rows(sql)


def told(database: Database, answers: dict[str, list[tuple[Any, ...]]]) -> tuple[Any, list[str]]:
    connection = Connection(answers)
    held = begun(connection, database, TABLES)
    return held, [sql[:70] for sql in connection.told if not sql.startswith(("SELECT column", "WITH RECURSIVE"))]


def test_postgresql_is_one_transaction_that_only_reads_and_locks_all_tables_before_its_snapshot():
    held, statements = told(
        PostgreSQL(),
        {"relkind": [("1", "r")], "pg_export_snapshot": [("00-1", "18642:18650:", "0/1", "2026-11-24 10:02:11+00")]},
    )
    assert held.cut.position == "18642:18650:" and held.relation(TABLES[0]) == '"shop"."orders"'
    assert statements[2:4] == ["COMMIT", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"]
    assert statements[5:7] == [
        'LOCK TABLE "shop"."orders" IN ACCESS SHARE MODE',
        'LOCK TABLE "shop"."lines" IN ACCESS SHARE MODE',
    ]
    assert statements[7].startswith("SELECT pg_export_snapshot()") and len(statements) == 8


def test_mysql_is_one_consistent_transaction():
    held, statements = told(
        MySQL(),
        {
            "VERSION()": [("10.11.6-MariaDB", "1", "2026-11-24 10:02:11+00")],
            "BINLOG_SNAPSHOT": [("bin.000001:328",)],
        },
    )
    assert held.cut.position == "bin.000001:328"
    assert [sql for sql in statements if not sql.startswith("SELECT")][1:] == [
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET SESSION time_zone = '+00:00', sql_mode = 'ANSI_QUOTES'",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        "SET SESSION time_zone = '+00:00'",
    ]


def test_mysql_itself_holds_its_lock_only_while_it_reads_its_position():
    held, statements = told(
        MySQL(), {"VERSION()": [("8.4.3", "1", "2026-11-24 10:02:11+00")], "@reconcile_position": [("b.1:4",)]}
    )
    lock = statements.index("FLUSH TABLES WITH READ LOCK")
    assert statements[lock + 1].startswith("START TRANSACTION") and statements[lock + 3] == "UNLOCK TABLES"
    assert statements[lock + 4] == "SELECT @reconcile_position" and held.cut.position == "b.1:4"


def test_oracle_reads_as_of_one_scn():
    held, statements = told(Oracle(), {"current_scn": [("15869128507100", "2026-11-24 10:02:11+00")]})
    assert held.relation(TABLES[0]) == '"shop"."orders" AS OF SCN 15869128507100'
    assert [sql for sql in statements if sql.startswith("ALTER")] == [
        "ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,' NLS_CALENDAR = 'GREGORIAN' TIME_ZONE = 'UTC'"[:70],
        "ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,' NLS_CALENDAR = 'GREGORIAN'"[:70],
    ]


def test_sql_server_is_one_transaction_of_its_own_under_snapshot_isolation():
    held, statements = told(
        SQLServer(),
        {"snapshot_isolation_state": [("1", "1", "shop", "now+00")], "fn_cdc_get_max_lsn": [("0x0000000A0001",)]},
    )
    assert held.cut.position == "0x0000000A0001"
    assert statements[-3:] == [
        "COMMIT",
        "SET TRANSACTION ISOLATION LEVEL SNAPSHOT",
        "SELECT CONVERT(varchar(22), sys.fn_cdc_get_max_lsn(), 1)",
    ]


def test_a_database_that_does_not_tell_its_position_is_refused():
    with pytest.raises(UsageError, match="did not give the position in its log"):
        told(SQLServer(), {"snapshot_isolation_state": [("1", "1", "shop", "now")], "fn_cdc_get": [(None,)]})


def test_what_came_is_counted_in_bytes():
    held, _ = told(Oracle(), {"current_scn": [("1", "now")]})
    held.connection.answers = {"x": [("\u20ac", None, b"\0\1")]}
    assert held.values("x", [2]) == [("\u20ac", None, b"\0\1")]
    assert (held.bytes, held.queries) == (5, 1)


@pytest.mark.parametrize(("database", "dialect"), [(Oracle(), "oracle"), (SQLServer(), "tsql"), (MySQL(), "mysql")])
def test_the_query_of_rows_parses(database: Database, dialect: str):
    of = dialect_of(database)
    columns = {
        "oracle": Column("ID", "NUMBER(9,0)", "TO_CHAR({}, 'TM9')", "decimal(9,0)", True),
        "tsql": Column("ID", "int", "CONVERT(varchar(45), {})", "int"),
        "mysql": Column("ID", "int(11)", "CAST({} AS CHAR)", "int"),
    }
    column = columns[dialect]
    (field, _) = plans._pair(column, "id", "decimal(9,0)" if dialect == "oracle" else "int", of, True)
    value = str(column.expression).replace("{}", of.quoted(column.name))
    sql = of.rows(database.relation(TABLES[0]), [field], [field], ["0af"], [value])
    assert f"{value} AS c0" in sql and sql.startswith("SELECT key_text, row_hash, c0 FROM (")
    sqlglot.parse_one(sql, dialect=dialect)


def test_a_table_is_that_of_its_change_records():
    assert table_of_object("shop.a.b") == Table("shop", "a.b")
    for name in ("orders", ".a", "a."):
        with pytest.raises(UsageError, match="name its table by --table"):
            table_of_object(name)


# --- columns ----------------------------------------------------------------------------------------------------------


class Text:
    """A reader of a type's texts, without Spark."""

    def __init__(self, type_name: str) -> None:
        self.type_name = self.stored_type = type_name

    def read(self, text: str) -> Any:
        if text == "odd":
            raise NotExact("is odd")
        return text


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        plans,
        "target_of",
        lambda name, column, declared: Target(name, column, Text(declared)),  # type: ignore[arg-type]
    )


COLUMNS = [
    Column("ID", "bigint", "{}::text", "bigint", True),
    Column("name", "text", "{}::text"),
    Column("small", "smallint", "{}::text", "smallint", True),
    Column("doc", "jsonb", "{}::text", form="json"),
    Column("more", "text", "{}::text"),
    Column("Twice", "text", "{}::text"),
    Column("twice", "text", "{}::text"),
]


def planned(columns: dict[str, str], key: str = "id", found: list[Column] | None = None, **said: Any) -> Plan:
    model = {
        "unique_id": "model.shop.orders", "name": "orders", "complaints": [], "key": [key],
        "columns": [{"name": name, "type": kind, "tolerances": []} for name, kind in columns.items()], **said,
    }  # fmt: skip
    return plan_of(model, TABLES[0], COLUMNS if found is None else found, dialect_of(PostgreSQL()), "shop.orders")


def test_columns_are_compared_in_the_models_names_and_what_has_no_form_is_named():
    plan = planned({"id": "bigint", "name": "string", "doc": "string", "gone": "date", "TWICE": "string"})
    assert plan.compared == ["id", "name"] and [theirs.name for theirs, _ in plan.pairs] == ["ID", "name"]
    assert "JSON has no canonical form" in plan.unprovable["doc"]
    assert plan.unprovable["gone"] == "the source has no column gone"
    assert plan.unprovable["TWICE"] == "the source has no column TWICE"
    assert plan.only_in_source == ["small", "more", "Twice", "twice"] and not plan.complaints
    assert planned({"id": "bigint"}, left_out=["name"]).only_in_source[0] == "small"


def test_without_its_key_a_model_cannot_be_compared():
    assert planned({"doc": "string"}, key="doc").complaints == [
        "the column doc is jsonb at the source: JSON has no canonical form"
    ]
    assert planned({"id": "bigint"}, found=[]).complaints == [
        "the source has no table shop.orders, or this user cannot see it"
    ]


def test_whole_numbers_of_every_size_are_compared():
    for kind in ("tinyint", "smallint", "int", "bigint"):
        plan = planned({"id": "bigint", "small": kind})
        assert [target.type_name for target in plan.targets] == ["bigint", "bigint"]


def test_tolerances_are_given_on_as_the_test_of_parity_takes_them():
    plan = planned({"id": "bigint", "name": "string"})
    plan.model["columns"][1]["tolerances"] = [{"kind": "trim", "argument": None}, {"kind": "round", "argument": 2}]
    assert plan.tolerances == {"name": ["trim", {"round": 2}]}


def test_a_value_that_the_models_type_does_not_hold_is_a_reason_and_is_not_shown():
    plan = planned({"id": "bigint", "name": "string"})
    assert plan.inexact([Row("=1", "", ("1", "x")), Row("=2", "", ("2", None))]) is None
    why = plan.inexact([Row("=1", "", ("1", "odd"))])
    assert why == "a value of the column name, text at the source, is not exactly one of string, the type in the model"


def test_the_places_of_bytes_are_behind_the_key_and_the_hash():
    plan = planned({"id": "bigint", "name": "string", "more": "string"})
    targets = [replace(target, text=None) if place else target for place, target in enumerate(plan.targets)]
    assert (plan.bytes_at, replace(plan, targets=targets).bytes_at) == ([], [3, 4])


def test_the_views_of_two_models_of_a_proof_have_names_of_their_own():
    one = planned({"id": "bigint"})
    other = replace(one, model={**one.model, "unique_id": "model.sales.orders"})
    names = {plan.view(kind) for plan in (one, other) for kind in ("rows", "forms", "keys")}
    assert len(names) == 6 and all(name.startswith("reconcile_proof_") for name in names)
