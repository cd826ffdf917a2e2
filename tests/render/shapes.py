"""The shapes of models whose SQL is kept in tests/sql: what a run of each asks of the warehouse, phase by phase."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from plain_dbt import PACKAGE, PlainProject
from recorder import Recorder, change_columns, normalized

STAGING = "lake.shop_changes"
ORDERS = {
    "id": "bigint", "status": "string", "total": "decimal(38,10)", "placed_at": "timestamp", "ratio": "double",
}  # fmt: skip
LINES = {"order_id": "bigint", "line": "int", "product": "varchar(20)", "quantity": "smallint"}
# With which columns a model was built, and what it declares now.
FORMER_LINES = {
    "order_id": "bigint", "line": "int", "article": "varchar(10)", "quantity": "smallint", "price": "decimal(10,2)",
    "colour": "string",
}  # fmt: skip
CHANGED_LINES = {
    "order_id": "bigint", "line": "int",
    "product": {"data_type": "varchar(20)", "config": {"meta": {"was": "article"}}},
    "quantity": "int", "price": "decimal(12,4)",
}  # fmt: skip
CELLS = {"row_key": "binary", "family": "string", "qualifier": "binary", "cell_time": "timestamp", "value": "binary"}
CELL_KEY = ["row_key", "family", "qualifier", "cell_time"]
EVERY_TYPE = {
    "id": "bigint", "tiny": "tinyint", "small": "smallint", "whole": "int", "real": "float", "wide": "double",
    "exact": "decimal(38,10)", "is_it": "boolean", "text": "string", "short": "varchar(5)", "bytes": "binary",
    "day": "date", "moment": "timestamp", "local": "timestamp_ntz", "list": "array<decimal(10,2)>",
    "pairs": "map<string,array<string>>",
    "rounded": {"data_type": "decimal(10,2)", "config": {"meta": {"round": True}}},
}  # fmt: skip
READINGS = {
    "id": "bigint", "whatever": "variant", "bytes": "binary", "list": "array<binary>", "text": "string",
    **{
        name: {"data_type": type_, "config": {"meta": {option: value}}}
        for name, type_, option, value in (
            ("hex", "binary", "encoding", "hex"), ("base64", "array<binary>", "encoding", "base64"),
            ("parts", "map<binary,array<binary>>", "encoding", "hex"),
            ("json", "string", "encoding", "json"), ("span", "string", "encoding", "interval"),
            ("time", "string", "encoding", "microseconds"), ("clock", "string", "encoding", "time"),
            ("short", "varchar(5)", "encoding", "json"), ("hour", "varchar(5)", "encoding", "time"),
            ("until", "timestamp", "infinity_is_null", True),
        )
    },
}  # fmt: skip
ZERO_DATES = {
    "id": "bigint", **{
        name: {"data_type": type_, "config": {"meta": {"zero_date": "null"}}}
        for name, type_ in (("born", "date"), ("seen", "timestamp"), ("closed", "timestamp_ntz"))
    },
}  # fmt: skip
MASKED = {
    "id": {"data_type": "string", "config": {"meta": {"mask": "sha256"}}}, "name": "string",
    "Email": {"data_type": "string", "config": {"meta": {"mask": "sha256"}}},
    "it's": {"data_type": "int", "config": {"meta": {"mask": "drop"}}},
}  # fmt: skip
ODD = ["id", "a`b", "it's", "{% raw %}", "sel ect", "李雷"]
# What staging says of a snapshot beside the log, in the batch that an increment brings.
SNAPSHOT_BESIDE = {
    "number": 2, "object": "shop.orders", "place": 2, "snapshot": "0000", "position_kind": "pg_snapshot",
    "position": "18642:18650:18644,18646", "taken_at": "2026-11-21T11:33:13.215524000Z", "uncertainty": "1 hour",
    "key": ["id"], "columns": ORDERS, "rows": 1875, "batch": 5,
}  # fmt: skip
BESIDE_MASKED = {**SNAPSHOT_BESIDE, "columns": dict.fromkeys(MASKED, "string") | {"it's": "int"}}
BESIDE_MYSQL = {
    **SNAPSHOT_BESIDE, "position_kind": "binlog", "position": "mysql-bin.999999:156500",
    "columns": {name: said if isinstance(said, str) else said["data_type"] for name, said in ZERO_DATES.items()},
}  # fmt: skip
BESIDE_SPANNER = {
    **SNAPSHOT_BESIDE, "position_kind": "read_timestamp", "position": "2026-11-21T11:33:13.215524001Z",
    "taken_at": "2026-11-21T11:33:13.215524001Z",
}  # fmt: skip
BESIDE_BIGTABLE = {
    **BESIDE_SPANNER, "object": "events", "position_kind": "commit_timestamp", "key": CELL_KEY, "columns": CELLS,
}  # fmt: skip
OWN_SELECT = """select 1L as id, 'one' as name, 'insert' as _change_type, '1' as _change_sequence, '1' as _change_id,
    timestamp'2026-01-01' as _change_time, 1L as _change_batch, cast(null as array<string>) as _change_columns,
    cast(null as string) as _change_error"""


@dataclass(frozen=True)
class Shape:
    """A model: its source macro, and how it is configured."""

    source: str
    columns: Mapping[str, Any] = field(default_factory=lambda: ORDERS)
    key: Any = "id"
    materialized: str = "current_state"
    meta: Mapping[str, Any] = field(default_factory=dict)
    arguments: str = ""
    file_format: str = "delta"
    phases: tuple[str, ...] = ("first run", "increment")
    as_of: Mapping[str, Any] | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    more_columns: Mapping[str, str] = field(default_factory=dict)
    row_ids: bool = False
    object: str = "shop.orders"
    table: Any = None
    behind: str = ""  # the source macro
    snapshot: Mapping[str, Any] = field(default_factory=dict)  # beside the log
    staging: str = STAGING
    schema: str = "demo"
    catalogs: Mapping[str, str] = field(default_factory=dict)  # the session's settings of them
    database: str | None = None  # the catalog of the target, of dbt-databricks

    @property
    def sql(self) -> str:
        options = {"materialized": self.materialized, "unique_key": self.key, **self.config}
        if self.meta:
            options["meta"] = dict(self.meta)
        config = f"{{{{ config({', '.join(f'{name}={value!r}' for name, value in options.items())}) }}}}\n"
        if self.source.startswith("select"):
            return config + self.source
        which = f"table={self.table!r}" if self.table else f"'{self.object}'"
        arguments = f"source('lake', 'shop_changes'), {which}{self.arguments}"
        return f"{config}{{{{ reconcile.{self.source}({arguments}) }}}}{self.behind}"


# Beside Delta as the session's own catalog: Iceberg's tables of a warehouse, and those of a metastore, which has views.
ICEBERG_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
CATALOGS = {
    "lake": ICEBERG_CATALOG, "lake.type": "hadoop", "ice": ICEBERG_CATALOG, "ice.type": "hive",
    "spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}  # fmt: skip
IN_LAKE: dict[str, Any] = {"staging": "lake.raw.shop_changes", "catalogs": CATALOGS}
IN_ICE: dict[str, Any] = {**IN_LAKE, "schema": "ice.demo", "file_format": "iceberg"}

ORACLE, MYSQL, POSTGRESQL, SQLSERVER = (
    f"datastream_{source}" for source in ("oracle", "mysql", "postgresql", "sqlserver")
)
SPANNER, BIGTABLE, SNAPSHOTS = "spanner_change_stream", "bigtable_change_stream", "snapshots"
APPEND_TABLE = "datastream_append"
EVERY_PHASE = ("first run", "nothing new", "increment", "replay", "rebuild")
TO_A_REBUILD = ("first run", "increment", "rebuild")
PHASES_AS_OF = ("first run", "nothing new")
SHAPES = {
    "oracle": Shape(ORACLE, row_ids=True, phases=EVERY_PHASE),
    "oracle_without_row_ids": Shape(ORACLE, meta={"row_ids": False}),
    "oracle_key_is_the_row_id": Shape(ORACLE, key="_row_id", row_ids=True),
    "oracle_fresh": Shape(ORACLE, meta={"fresh": True}, row_ids=True),
    "oracle_history": Shape(ORACLE, materialized="history", row_ids=True, phases=EVERY_PHASE),
    "oracle_generations": Shape(
        ORACLE, arguments=", generations=['2026-10-01 00:00:00+00', '2026-11-01 00:00:00+00', "
        "{'scn': 15869128507100, 'read_timestamp': '2026-11-20 12:00:00+00'}]",
        row_ids=True, phases=("first run",),
    ),
    "mysql_composite_key": Shape(MYSQL, LINES, ["order_id", "line"], phases=EVERY_PHASE),
    "mysql_every_type": Shape(MYSQL, EVERY_TYPE, phases=("first run",)),
    "mysql_odd_names": Shape(
        MYSQL, dict.fromkeys(ODD, "string"), ODD[:3], object="it\\'s `a` ${table}"
    ),
    "mysql_table": Shape(MYSQL, table="shop.orders", phases=("first run", "increment")),
    "mysql_tables": Shape(
        MYSQL, phases=("first run",),
        table=["shop.orders", "old.shop.orders", {"schema": "sh.op", "table": "it's"}],
    ),
    "mysql_shards": Shape(
        MYSQL, {"shard": "string", **LINES}, ["shard", "order_id", "line"], phases=("first run", "increment"),
        table=["shop_1.lines", ["shop_2.old_lines", "shop_2.lines"]],
        arguments=", source_columns={'shard': 'database'}",
    ),
    "postgresql_tenants": Shape(
        POSTGRESQL, {"orders of": "string", "db": "string", **ORDERS}, ["db", "id", "orders of"], "history",
        phases=("first run",), table="public.orders",
        arguments=", source_columns={'db': 'database', 'orders of': 'schema'}",
    ),
    "mysql_events": Shape(MYSQL, key="_change_id", phases=EVERY_PHASE),
    "mysql_zero_dates": Shape(MYSQL, ZERO_DATES),
    "mysql_fresh": Shape(MYSQL, meta={"fresh": True}),
    "mysql_added_column": Shape(
        MYSQL, {**ORDERS, "ratio": {"data_type": "double", "config": {"meta": {"added": True}}}},
        phases=("added column",),
    ),
    "mysql_retry": Shape(
        MYSQL, {"id": "bigint", "name": "varchar(9)", "size": "decimal(12,2)"},
        phases=("retry",),
    ),
    "mysql_changed_columns": Shape(MYSQL, CHANGED_LINES, ["order_id", "line"], phases=("changed columns",)),
    "mysql_history_changed_columns": Shape(
        MYSQL, CHANGED_LINES, ["order_id", "line"], "history", phases=("changed columns",)
    ),
    "iceberg_changed_columns": Shape(
        MYSQL, CHANGED_LINES, ["order_id", "line"], file_format="iceberg", phases=("changed columns",)
    ),
    "mysql_history": Shape(MYSQL, LINES, ["order_id", "line"], "history", {"fold_unchanged": False}),
    "mysql_clustered": Shape(MYSQL, meta={"cluster_by": ["placed_at", "id"]}, phases=TO_A_REBUILD),
    "mysql_documented": Shape(
        MYSQL, phases=("first run",),
        config={"persist_docs": {"columns": True, "relation": True}, "partition_by": "status",
                "location_root": "/lake", "tblproperties": {"owner": "shop"}},
    ),
    "mysql_after_a_purge": Shape(MYSQL, meta={"base_snapshot": "lake.orders_kept"}, phases=("after a purge",)),
    "mysql_history_after_a_purge": Shape(
        MYSQL, materialized="history", meta={"base_snapshot": "lake.orders_kept"}, phases=("after a purge",)
    ),
    "mysql_view": Shape(MYSQL, materialized="current_view", phases=("first run", "nothing new")),
    "mysql_view_after_a_purge": Shape(
        MYSQL, materialized="current_view", meta={"base_snapshot": "lake.orders_kept"}, phases=("after a purge",)
    ),
    "mysql_beside_a_snapshot": Shape(MYSQL, ZERO_DATES, snapshot=BESIDE_MYSQL),
    "mysql_as_of_a_batch": Shape(MYSQL, as_of={"batch": 2}, phases=PHASES_AS_OF),
    "mysql_as_of_an_append": Shape(MYSQL, as_of={"appended_at": "2026-11-21 12:00:00+00"}, phases=("first run",)),
    "oracle_as_of_a_sequence": Shape(
        ORACLE, as_of={"sequence": "1/1/00000E6ECEDFC05C"}, row_ids=True, phases=("first run",)
    ),
    "postgresql": Shape(POSTGRESQL),
    "postgresql_readings": Shape(POSTGRESQL, READINGS, phases=("first run",)),
    "postgresql_as_of_a_snapshot": Shape(
        POSTGRESQL, as_of={"pg_snapshot": "18642:18650:18644,18646"}, phases=("first run",)
    ),
    "postgresql_history_as_of_a_time": Shape(
        POSTGRESQL, materialized="history", as_of={"commit_time": "2026-11-21 12:00:00+00"}, phases=("first run",)
    ),
    "postgresql_beside_a_snapshot": Shape(
        POSTGRESQL, snapshot=SNAPSHOT_BESIDE, phases=("first run", "increment", "replay", "rebuild")
    ),
    "postgresql_beside_a_large_snapshot": Shape(
        POSTGRESQL, snapshot={**SNAPSHOT_BESIDE, "rows": 100_000}, phases=("first run", "increment")
    ),
    "postgresql_fresh_beside_a_snapshot": Shape(
        POSTGRESQL, snapshot=SNAPSHOT_BESIDE, meta={"fresh": True}, phases=("first run",)
    ),
    "postgresql_view_beside_a_snapshot": Shape(
        POSTGRESQL, snapshot=SNAPSHOT_BESIDE, materialized="current_view", phases=("first run",)
    ),
    "postgresql_history_beside_a_snapshot": Shape(
        POSTGRESQL, materialized="history", snapshot=SNAPSHOT_BESIDE, phases=("first run", "increment", "rebuild")
    ),
    "postgresql_masked": Shape(POSTGRESQL, MASKED, table="shop.orders", phases=("first run", "increment")),
    "postgresql_masked_view": Shape(POSTGRESQL, MASKED, materialized="current_view", phases=("first run",)),
    "postgresql_masked_beside_a_snapshot": Shape(POSTGRESQL, MASKED, snapshot=BESIDE_MASKED, phases=("first run",)),
    "snapshots_masked": Shape(SNAPSHOTS, MASKED, phases=("first run",)),
    "sqlserver": Shape(SQLSERVER),
    "oracle_beside_a_snapshot": Shape(
        ORACLE, meta={"row_ids": False}, phases=("first run",),
        snapshot={**SNAPSHOT_BESIDE, "position_kind": "scn", "position": "15869128507100"},
    ),
    "sqlserver_beside_a_snapshot": Shape(
        SQLSERVER, phases=("first run",),
        snapshot={**SNAPSHOT_BESIDE, "position_kind": "lsn", "position": "0x00000025000007280003"},
    ),
    "append_table": Shape(APPEND_TABLE, phases=("first run", "increment")),
    "snapshots": Shape(SNAPSHOTS, EVERY_TYPE, phases=("first run", "increment")),
    "spanner": Shape(SPANNER, phases=EVERY_PHASE),
    "spanner_fresh": Shape(SPANNER, meta={"fresh": True}),
    "spanner_history": Shape(SPANNER, materialized="history"),
    "spanner_beside_a_snapshot": Shape(
        SPANNER, snapshot=BESIDE_SPANNER, phases=("first run", "increment", "replay", "rebuild")
    ),
    "spanner_view_beside_a_snapshot": Shape(
        SPANNER, snapshot=BESIDE_SPANNER, materialized="current_view", phases=("first run",)
    ),
    "spanner_whole_rows_beside_a_snapshot": Shape(
        SPANNER, snapshot=BESIDE_SPANNER, meta={"partial_records": False}, phases=("first run", "increment")
    ),
    "spanner_view": Shape(SPANNER, materialized="current_view", phases=("first run",)),
    "bigtable": Shape(BIGTABLE, CELLS, CELL_KEY, object="events", phases=TO_A_REBUILD),
    "bigtable_beside_a_snapshot": Shape(
        BIGTABLE, CELLS, CELL_KEY, object="events", snapshot=BESIDE_BIGTABLE, phases=("first run", "increment")
    ),
    "bigtable_keeps_garbage": Shape(
        BIGTABLE, CELLS, CELL_KEY, "history", arguments=", garbage_collection='keep'", object="events",
       
    ),
    "bigtable_view": Shape(BIGTABLE, CELLS, CELL_KEY, "current_view", object="events", phases=("first run",)),
    "own_select": Shape(OWN_SELECT, {"id": "bigint", "name": "string"}),
    "iceberg_mysql": Shape(MYSQL, LINES, ["order_id", "line"], file_format="iceberg", phases=EVERY_PHASE),
    "iceberg_oracle": Shape(ORACLE, file_format="iceberg", row_ids=True, phases=TO_A_REBUILD),
    "iceberg_spanner": Shape(SPANNER, file_format="iceberg"),
    "iceberg_bigtable": Shape(BIGTABLE, CELLS, CELL_KEY, object="events", file_format="iceberg"),
    "iceberg_history": Shape(MYSQL, materialized="history", file_format="iceberg"),
    "iceberg_buckets": Shape(MYSQL, meta={"buckets": 16}, file_format="iceberg"),
    "iceberg_clustered": Shape(
        MYSQL, LINES, ["order_id", "line"], meta={"cluster_by": ["order_id", "line"]}, file_format="iceberg",
        phases=TO_A_REBUILD,
    ),
    # tests/render/test_catalogs.py compares all other shapes with themselves in catalogs.
    "staging_in_a_catalog": Shape(MYSQL, **IN_LAKE),
    "models_in_a_catalog": Shape(
        ORACLE, meta={"fresh": True}, row_ids=True, phases=("first run", "nothing new", "increment"), **IN_ICE
    ),
}  # fmt: skip


class Life:
    """A model of some shape in a recorded warehouse, phase by phase."""

    def __init__(
        self, shape: Shape, replaced: Mapping[str, Mapping[str, str]] | None = None, package: Path = PACKAGE,
        own_macros: str = "",
    ) -> None:  # fmt: skip
        self.shape, self.warehouse = shape, Recorder()
        if shape.file_format == "iceberg":
            self.warehouse.catalog = "org.apache.iceberg.spark.SparkSessionCatalog"
        variables = {"as_of": dict(shape.as_of)} if shape.as_of else {}
        self.warehouse.catalogs = dict(shape.catalogs)
        if shape.catalogs:
            self.warehouse.extensions += ",org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        self.project = PlainProject(
            self.warehouse,
            shape.schema,
            file_format=shape.file_format,
            replaced=replaced,
            variables=variables,
            package=package,
            database=shape.database,
            own_macros=own_macros,
        )
        self.project.source(shape.staging.rpartition(".")[0], "shop_changes")
        columns = {
            name: {"data_type": said, "description": f"the {name}"} if isinstance(said, str) else said
            for name, said in shape.columns.items()
        }
        self.project.model("orders", shape.sql, columns, config={})
        self.project.node("orders")["description"] = "What people order."
        self.staging = self._named(shape.staging)
        self.warehouse.has(self.staging, reconcile__last_batch="9")
        more = {"_row_id": "string"} if shape.row_ids or shape.source == ORACLE else {}
        more |= {"_range": "struct<...>"} if shape.source == BIGTABLE else {}
        more |= {"_change_table": "string"} if shape.source in (ORACLE, MYSQL, POSTGRESQL, SQLSERVER) else {}
        if shape.source in (ORACLE, MYSQL, POSTGRESQL, SQLSERVER, SPANNER):
            more |= dict.fromkeys(["_change_fields", "_change_key", "_change_schema"], "string")
        more |= {} if shape.source.startswith("select") else {"_change_macro": "string"}
        if shape.columns is ZERO_DATES:
            more["_change_zero_dates"] = "array<string>"
        self.warehouse.column_types["orders_kept"] = self._kept()
        if shape.snapshot:
            self.stage_snapshot()
            more["_change_snapshot"] = "string"
        for part in ("staged as (", "_change_sequence"):
            self.warehouse.column_types[part] = change_columns(shape.columns, **more)

    def stage_snapshot(self, **said: Any) -> None:
        """Let staging have the shape's snapshot; `said`: what is otherwise of it. It has no longer all of its rows."""
        cut = {**self.shape.snapshot, **said}
        self.warehouse.staged = batch = cut.pop("batch")
        said_of_staging = {"reconcile__last_batch": "9", "reconcile__snapshot_append": "beside-0/1/2"}
        self.warehouse.has(self.staging, **said_of_staging)
        self.warehouse.answers |= {
            "as unreadable, min(_change_error)": {"unreadable": 0, "reason": None},
            "where object = '#snapshot' and source = 'snapshot'": {"record": json.dumps(cut), "batch": batch},
            "where object = '#snapshot of ": {"rows": cut["rows"]},
            "select min(batch) from": {"first": 2},
        }

    def _named(self, name: str) -> str:
        return f"{self.shape.database}.{name}" if self.shape.database else name

    def _kept(self) -> dict[str, str]:
        own = {"_change_sequence": "string", "_change_time": "timestamp", "_change_batch": "bigint"}
        if self.shape.materialized == "history":
            own |= {"_change_type": "string", "_change_id": "string", "_change_repeats": "boolean"}
            own |= dict.fromkeys(["valid_from", "valid_to", "_change_valid_to"], "timestamp")
        return {**dict.fromkeys(self.shape.columns, "string"), **own, "_deleted": "boolean"}

    @property
    def change_records(self) -> str:
        """The SELECT of the model: what its source macro gives."""
        return self.project.compile("orders").strip()

    def statements(self, phase: str) -> list[str]:
        """Return what a model asks in a phase, after those that come before it; with its message at the end."""
        prepare: dict[str, Callable[[], None]] = {
            "first run": lambda: None, "nothing new": self._nothing_new, "increment": self._increment,
            "replay": self._replay, "after a purge": self._purge, "rebuild": self._rebuild,
            "added column": self._added_column, "retry": self._retry,
            "changed columns": self._changed_columns,
        }  # fmt: skip
        prepare[phase]()
        self.project.begin("run", ["orders"], full_refresh=phase == "rebuild")
        self.warehouse.statements.clear()
        said = self.project.materialize(self._node)
        return [*normalized(self.warehouse.statements), f"-- {said}"]

    def _knows(self, batch: int) -> None:
        self.warehouse.ledger, self.warehouse.base_batch = (batch, batch), batch

    def _nothing_new(self) -> None:
        self._knows(3)
        self.warehouse.delivered = 0

    def _increment(self) -> None:
        self._knows(3)
        w = self.warehouse
        w.staged, w.delivered, w.keyless_deletes = (
            5,
            200,
            2 if self.project.macros.keyless_deletes_of(self._node) else 0,
        )
        w.zero_dates = (("born", 2), ("seen", 1))
        w.counts = {
            "quarantined": 1,
            "applied": 7,
            "merged": 7,
            "new_keys": 2,
            "inserted": 2,
            "updated": 5,
            "base_batch": 5,
        }

    def _replay(self) -> None:
        self._increment()
        self.warehouse.ledger, self.warehouse.base_batch = (3, 3), 5
        self.warehouse.counts |= {"applied": 0, "merged": 0, "new_keys": 0, "duplicate": 7}

    def _rebuild(self) -> None:
        """Of fewer records than there were: none of them a delete without a key."""
        self._knows(5)
        self.warehouse.keyless_deletes, self.warehouse.counts = 0, {"applied": 100, "inserted": 100}

    def _added_column(self) -> None:
        """The model was built without the columns that are marked, and new batches have come."""
        marked = [name for name, said in self.shape.columns.items() if not isinstance(said, str)]
        self.was_built_with({name: said for name, said in self.shape.columns.items() if name not in marked})
        self._increment()

    def _retry(self) -> None:
        """The model was built with a shorter text, and batch 2 has a record that was too long."""
        self.was_built_with({**self.shape.columns, "name": "varchar(5)"})
        self._increment()
        self.warehouse.answers["as first_batch, count_if"] = {"first_batch": 2, "purged_records": 0}
        self.project.variables["retry_quarantine"] = True

    def _changed_columns(self) -> None:
        """Columns are gone, wider and renamed, and new batches have come."""
        self.was_built_with(FORMER_LINES)
        self._increment()

    def was_built_with(self, columns: Mapping[str, Any], **said: Any) -> None:
        """Let the relations of the model be there, as a first run made them when it declared these columns.

        `said`: what else was otherwise of its shape.
        """
        first, w = Life(replace(self.shape, columns=columns, **said)), self.warehouse
        first.statements("first run")
        w.relations |= first.warehouse.relations
        w.properties |= first.warehouse.properties
        w.column_types["__base` where false"] = change_columns(columns)

    def _purge(self) -> None:
        self.warehouse.purges = {self.shape.object: 2}
        # Of the copy of a history the ledger does not show which batches it has.
        said = {"reconcile__base_snapshot": "2"} if self.shape.materialized == "history" else {}
        self.warehouse.has(self._named(self.shape.meta["base_snapshot"]), **said)

    @property
    def _node(self) -> dict[str, Any]:
        return self.project.node("orders")
