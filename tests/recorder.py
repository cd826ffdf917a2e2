"""A warehouse that runs nothing: it notes every statement, knows what was made, and answers what the package asks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from plain_dbt import Column, Rows

_NAME = r"((?:`[^`]+`\.){1,2})`([^`]+)`"
_MADE = re.compile(rf"create (?:or replace )?(table|view) (?:if not exists )?{_NAME}")
_PROPERTY = re.compile(r"'((?:[^'\\]|\\.)*)' = '((?:[^'\\]|\\.)*)'")
_REGISTERED = re.compile(r"'([^']*)' as relation,\s*'([^']*)' as materialized,\s*'([^']*)' as objects")
_COUNTS = (
    "delivered", "quarantined", "duplicate", "superseded", "pending", "applied", "inserted", "updated", "deleted",
    "tombstoned", "new_keys", "merged", "base_batch",
)  # fmt: skip
LEDGER_COLUMNS = {
    "relation": "string", "entry": "bigint", "last_appended_at": "timestamp", "zero_dates": "bigint",
    "deletes_batch": "bigint", "retried": "bigint",
    "quarantine_reasons": "array", "stored_rows": "bigint",
}  # fmt: skip
NOTED = r"set `spark\.databricks\.delta\.commitInfo\.userMetadata` = `(.*)`$"
LATER_ACCOUNT = ("ledger_deletes_batch", "ledger_retried", "invocation")
QUARANTINE_COLUMNS = {
    "record": "string", "_change_error": "string", "_change_id": "string", "_change_batch": "bigint",
    "origin": "string",
}  # fmt: skip
STAGING_COLUMNS = ("record", "source", "object", "origin", "batch", "appended_at")


@dataclass
class Recorder:
    """`staged`: the last batch of staging. `counts`: what the next fold comes to.

    `ledger`: the last batch and the largest batch of the base table that the ledger knows; `last_appended_at`: when
    that one was appended, in microseconds, and `appended_at`: when staging's batches were; `base_batch`: the largest
    that the base table has. `ledger_deletes`, `deletes_batch`: the same of the table of keyless deletes.
    `ledger_retried`: the greatest number of a mark, by the ledger's rows so far; `first_marked`: the first batch of the
    marked ones.
    `purges`: of staging, by object. `answers`: one row each, or a list of rows, by a part of what is asked.
    `columns_of`: a SELECT's columns, by a part of its text. `tables`: those that the changes of a run name.
    `objects`: those that staging has, all of `source`; `meant`: the source macro that its records are for.
    `catalogs`: the settings of catalogs with a name, as `lake` and `lake.type`.
    `readers`: what is registered, by staging table and model. `applied_at_purge`: the largest batch that the base table
    had when what was purged had been applied, as the ledger has it.
    `notes`: what they say that is new, as `_summary_of_notes` has it. `reasons`: why a data test fails, as
    `_commonest_reasons` has it. `zero_dates`: how many of them became NULL, by column. `lost`: the first range whose
    records staging no longer has, as `lost_records` gives it. `of_others`: how many rows of a range, and of which
    batch, have no record in staging. `left`: purged objects of which staging has records again, and up to which batch.
    `invocation`: that of the ledger's last row. `commits`: of each table, {version, operation, parameters, metadata} as
    Delta has them, or {snapshot, parent, note, whether it is an ancestor} as Iceberg has them, the newest first;
    without any, Delta has one with `note`, which the last range has set.
    """

    staged: int | None = 3
    delivered: int = 100
    keyless_deletes: int = 0
    tables: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    source: str = "datastream"
    meant: str | None = None
    notes: tuple[tuple[str, str, bool, bool, bool], ...] = ()
    reasons: tuple[tuple[str, str, int, int, int, str | None, int], ...] = ()
    zero_dates: tuple[tuple[str, int], ...] = ()
    lost: tuple[tuple[int, int, int, int], ...] = ()
    of_others: tuple[int, int | None] = (0, None)
    left: tuple[tuple[str, int], ...] = ()
    seen: tuple[tuple[str, int], ...] = ()  # fields, and the batches in which they first came
    unmasked: int = 0
    ledger: tuple[int, int] = (0, 0)
    base_batch: int | None = 0
    ledger_deletes: int = 0
    deletes_batch: int = 0
    ledger_retried: int = 0
    invocation: str = "00000000-0000-0000-0000-000000000000"
    first_marked: int = 1
    last_appended_at: int | None = None
    appended_at: dict[int, int | None] = field(default_factory=dict)
    as_of_batch: int | None = 2
    purges: dict[str, int] = field(default_factory=dict)
    applied_at_purge: int | None = 0
    readers: dict[tuple[str, str], str] = field(default_factory=dict)
    temporary: tuple[str, ...] = ()  # views of the session
    note: str | None = None
    commits: list[tuple[Any, ...]] = field(default_factory=list)
    answers: dict[str, Mapping[str, Any] | list[Mapping[str, Any]]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    extensions: str = "io.delta.sql.DeltaSparkSessionExtension"
    catalog: str = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    catalogs: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)
    relations: dict[str, str] = field(default_factory=dict)
    properties: dict[str, dict[str, str]] = field(default_factory=dict)
    column_types: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def has(self, name: str, type: str = "table", **properties: str) -> None:
        """Let a relation `schema.name` or `catalog.schema.name` be there, made by somebody."""
        self.relations[name], self.properties[name] = type, {k.replace("__", "."): v for k, v in properties.items()}

    # --- as a warehouse ---

    def query(self, sql: str) -> Rows:
        self.statements.append(sql)
        noted = re.match(NOTED, sql)
        self.note = noted[1] if noted else self.note
        made = _MADE.match(sql.strip())
        if made:
            self._make(made[1], made[2].replace("`", "").rstrip("."), made[3], sql)
            return Rows()
        altered = re.match(rf"alter table {_NAME} set ", sql)
        if altered:
            self.properties[f"{altered[1]}{altered[2]}".replace("`", "")].update(properties_of(sql))
            return Rows()
        if sql.startswith(("drop view if exists", "create or replace temporary view")):
            return Rows()
        if (marked := re.search(r"^    (\d+) as retried,$", sql, re.M)) and sql.startswith("insert into"):
            self.ledger_retried = max(self.ledger_retried, int(marked[1]))
        registered = re.match(rf"insert into {_NAME} by name\n", sql)
        if registered and registered[2].endswith("__readers"):
            staging = f"{registered[1]}{registered[2]}".replace("`", "").removesuffix("__readers")
            for model, materialized, objects in _REGISTERED.findall(sql):
                self.readers[staging, model] = f"{materialized} {objects}"
            return Rows()
        return self._answer(sql)

    def columns(self, sql: str) -> list[Column]:
        for part, types in self.column_types.items():
            if part in sql:
                return [Column(name, type) for name, type in types.items()]
        if sql.startswith("select * from") and "`reconcile_ledger` where false" in sql:
            return [Column(name, type) for name, type in LEDGER_COLUMNS.items()]
        if sql.startswith("select * from") and "__quarantine` where false" in sql:
            return [Column(name, type) for name, type in QUARANTINE_COLUMNS.items()]
        return [Column(name, "bigint" if name == "batch" else "string") for name in STAGING_COLUMNS]

    def relation_type(self, schema: str, identifier: str) -> str | None:
        return self.relations.get(f"{schema}.{identifier}")

    def relation_properties(self, schema: str, identifier: str) -> Mapping[str, str]:
        return self.properties[f"{schema}.{identifier}"]

    def _later_account(self) -> tuple[int, int, str]:
        return self.ledger_deletes, self.ledger_retried, self.invocation

    def _schemas_in(self, catalog: str) -> list[str]:
        return sorted({name.split(".")[1] for name in self.relations if re.match(rf"{catalog}\.[^.]+\.", name)})

    def _names_in(self, schema: str, type: str) -> list[str]:
        of = {name.rpartition(".")[2]: name.rpartition(".")[0] for name, is_ in self.relations.items() if is_ == type}
        return sorted(name for name, place in of.items() if place == schema)

    def _facts(self, asked: str) -> Rows:
        facts = {
            "readable": 0 if self.meant else self.delivered,
            "of_other_source": self.delivered if self.meant else 0,
            "fitting_macro": self.meant,
            "tables": ",".join(table.encode().hex().upper() for table in self.tables),
            "zero_dates": len(self.zero_dates),
            "unmasked": self.unmasked,
            "unmasked_batch": 2 if self.unmasked else None,
        }
        facts = {name: value for name, value in facts.items() if f" as {name}" in asked}
        return Rows(tuple(facts), [facts.values()])

    def _make(self, type: str, schema: str, name: str, sql: str) -> None:
        if f"{schema}.{name}" not in self.relations or "if not exists" not in sql:
            self.relations[f"{schema}.{name}"] = type
            self.properties[f"{schema}.{name}"] = properties_of(sql)

    def _answer(self, sql: str) -> Rows:
        asked = sql.strip()
        for part, row in self.answers.items():
            if part in asked and not asked.startswith(("cache", "insert")):
                rows = row if isinstance(row, list) else [row] if row else []
                return Rows(tuple(rows[0]) if rows else (), [one.values() for one in rows])
        if asked.startswith("show tblproperties"):
            name = asked.split(" ")[-1].replace("`", "")
            return Rows(("key", "value"), self.properties.get(name, {}).items())
        if asked.startswith("describe history"):
            commits = self.commits or [(7, "MERGE", {}, self.note)]
            return Rows(("version", "operation", "operationParameters", "userMetadata"), commits)
        if "summary['reconcile']" in asked:
            return Rows(("snapshot_id", "parent_id", "note", "is_current_ancestor"), self.commits)
        if asked.endswith(".refs where name = 'main'"):
            return Rows(("snapshot_id",), [(41,)])
        if asked.startswith("select concat_ws(' ', latest_snapshot_id, latest_sequence_number)"):
            return Rows(("snapshot",), [("41 3",)])
        if asked.startswith("select count(*) as snapshots, count_if(is_current_ancestor)"):
            return Rows(("snapshots", "ancestors", "number"), [(1, 1, 3)])
        if asked == "set":
            return Rows(("key", "value"), self.settings.items())
        if asked == "set spark.sql.extensions":
            return Rows(("key", "value"), [("spark.sql.extensions", self.extensions)])
        if asked == "set spark.sql.catalog.spark_catalog":
            return Rows(("key", "value"), [("spark.sql.catalog.spark_catalog", self.catalog)])
        catalog = re.fullmatch(r"set `spark\.sql\.catalog\.([^.`]+)(\.[^`]+)?`", asked)
        if catalog:
            return Rows(
                ("key", "value"), [(asked, self.catalogs.get(f"{catalog[1]}{catalog[2] or ''}", "<undefined>"))]
            )
        if asked == "show schemas":
            return Rows(("namespace",), sorted({(name.split(".")[0],) for name in self.relations}))
        if asked.startswith("show schemas in "):
            return Rows(("namespace",), [(name,) for name in self._schemas_in(asked.split("`")[1])])
        listed = re.fullmatch(r"show (table|view)s in ((?:`[^`]+`\.)?`([^`]+)`)", asked)
        if listed:
            schema = listed[2].replace("`", "")
            # Spark's own catalog, and Unity's, list views among the tables.
            types = [listed[1]] if schema.split(".")[0] in self.catalogs else ["table", "view"]
            names = [name for type in types for name in self._names_in(schema, type)]
            return Rows(("namespace", "name", "isTemporary"), [(listed[3], name, False) for name in names])
        if " as staging, relation, max_by(" in asked:
            of = re.findall("'([^']*)' as staging", asked)
            rows = [
                (staging, model, reader, 1_767_225_600_000_000)
                for (staging, model), reader in self.readers.items() if staging in of
            ]  # fmt: skip
            return Rows(("staging", "relation", "reader", "registered_at"), rows)
        if asked.startswith("select base_batch\n"):
            return Rows(("base_batch",), [] if self.applied_at_purge is None else [(self.applied_at_purge,)])
        if "kind = 'purge'" in asked:
            return Rows(("object", "batch"), self.purges.items())
        if asked.startswith("select\n    coalesce(max(last_batch), 0) as ledger_batch"):
            columns = ("ledger_batch", "ledger_base_batch", "entry", "last_appended_at", *LATER_ACCOUNT)
            return Rows(columns, [(*self.ledger, self.ledger[0], self.last_appended_at, *self._later_account())])
        if asked.startswith("select\n    relation,\n    coalesce(max(last_batch), 0) as ledger_batch"):
            columns = ("relation", "ledger_batch", "ledger_base_batch", "entry", "last_appended_at", *LATER_ACCOUNT)
            known = (*self.ledger, self.ledger[0], self.last_appended_at, *self._later_account())
            names = re.findall("'([^']*)'", asked.split(" in (")[1]) if any(self.ledger) else []
            return Rows(columns, [(name, *known) for name in names])
        if asked.startswith("select '") and " as relation, coalesce(max(_change_batch), 0) as base_batch, " in asked:
            names = re.findall("'([^']*)' as relation", asked)
            known = (self.base_batch, self.deletes_batch)
            return Rows(("relation", "base_batch", "deletes_batch"), [(name, *known) for name in names])
        if asked.startswith("select read.relation, "):
            rows = asked.split("from values\n")[1].split("as read (")[0]
            names = dict.fromkeys(re.findall(r"^ *\('([^']*)', '", rows, re.M))
            return Rows(("relation", "delivered"), [(name, self.delivered) for name in names])
        if asked.startswith("select batch, unix_micros(max(appended_at)) from"):
            batches = map(int, asked.split("batch in (")[1].split(")")[0].split(", "))
            times = [(batch, self.appended_at.get(batch, 1_767_225_600_000_000)) for batch in batches]
            return Rows(("batch", "at"), [(batch, at) for batch, at in times if at is not None])
        if asked.startswith("select unix_micros(max(appended_at)) from"):
            return Rows(("at",), [(self.appended_at.get(int(asked.split()[-1]), 1_767_225_600_000_000),)])
        if asked.startswith("select max(batch) as last,"):
            return Rows(("last", "as_of_batch"), [(self.staged, self.as_of_batch)])
        if asked.startswith("select count(*) as records, min(stored._change_batch) as batch"):
            return Rows(("records", "batch"), [self.of_others])
        if asked.startswith("select object, max(batch) as batch from"):
            return Rows(("object", "batch"), self.left)
        if asked.startswith("select min(first_batch) as first_batch from"):
            return Rows(("first_batch",), [(self.first_marked,)])
        if asked.startswith("select max(batch) from"):
            return Rows(("max",), [(self.staged,)])
        if asked.startswith("select max(_change_batch) from"):
            return Rows(("max",), [(self.deletes_batch if "_deletes`" in asked else self.base_batch,)])
        if asked.startswith("show tables in "):
            *schema, name = (quoted or text for quoted, text in re.findall("`([^`]*)`|'([^']*)'", asked))
            rows = [("", view, True) for view in self.temporary]
            rows += [(schema[-1], name, False)] if ".".join([*schema, name]) in self.relations else []
            return Rows(("namespace", "tableName", "isTemporary"), rows)
        if asked.startswith("select first_batch, last_batch, delivered, records as staged"):
            return Rows(("first_batch", "last_batch", "delivered", "staged"), self.lost)
        if asked.startswith("select name, min(batch) as first_batch from"):
            return Rows(("name", "first_batch"), [row for row in self.seen if f"'{row[0]}'" in asked])
        if asked.startswith("select distinct object, source from"):
            return Rows(("object", "source"), [(name, self.source) for name in self.objects])
        if asked.startswith("select\n    ") and re.search(
            r" as (fitting_macro|tables|zero_dates|unmasked_batch)\nfrom ", asked
        ):
            return self._facts(asked)
        if asked.startswith("select _change_difference.column,"):
            return Rows(("column", "rows"), [])
        if asked.startswith("select relation, reason, records,"):
            columns = ("relation", "reason", "records", "first_batch", "last_batch", "example_key", "reasons")
            return Rows(columns, self.reasons)
        if asked.startswith("select kind, name, is_declared, bool_or("):
            return Rows(("kind", "name", "is_declared", "is_missing", "was_present"), self.notes)
        if asked.startswith("select _change_zero_date, count(*) as zero_dates\n"):
            return Rows(("_change_zero_date", "zero_dates"), self.zero_dates)
        if asked.startswith("select decode(unhex(name)"):
            names = re.findall("'([0-9A-F,]*)'", asked)[0].split(",")
            return Rows(("name",), [(name,) for name in sorted(bytes.fromhex(name).decode() for name in names)])
        if asked.startswith("select count(*) as changes, "):
            return Rows(("changes", "first_time"), [(0, None)])
        if asked.startswith("select count(*) from reconcile_changes_"):
            return Rows(("count",), [(self.keyless_deletes,)])
        if " as delivered,\n" in asked or "keyed.* except (" in asked:
            counts = {name: 0 for name in _COUNTS} | {"delivered": self.delivered} | self.counts
            counts |= {name: 0 for name in re.findall(r" as (snapshot_\w+)[,\n]", asked) if name not in counts}
            return Rows(tuple(counts), [counts.values()])
        if asked.startswith("select") and (
            "as delivered" in asked or "count" in asked.split("from")[0] or "sum(" in asked
        ):
            return Rows(("delivered",), [(self.delivered,)])
        if asked.split(" ")[0] in ("cache", "uncache", "set", "reset", "create", "drop", "insert", "merge", "alter"):
            return Rows()
        raise AssertionError(f"the recorder has no answer to: {sql}")


def properties_of(sql: str) -> dict[str, str]:
    """Return the properties that a statement gives to the table or view that it makes."""
    said = re.search(r"tblproperties \((.*?)\)\s*(?:as\b|$)", sql, re.S)
    return {key: re.sub(r"\\(.)", r"\1", value) for key, value in _PROPERTY.findall(said[1])} if said else {}


def normalized(statements: Iterable[str]) -> list[str]:
    """Return statements without what differs from run to run."""
    return [re.sub(r"\d+(\.\d+)?(e-\d+)?D? as seconds", "<seconds> as seconds", sql.strip()) for sql in statements]


def change_columns(columns: Mapping[str, Any], **more: str) -> dict[str, str]:
    """Return the columns of change records: those declared, and what every source adds."""
    return {
        **{name: "string" for name in columns}, "_change_type": "string", "_change_sequence": "string",
        "_change_id": "string", "_change_time": "timestamp", "_change_transaction": "string",
        "_change_batch": "bigint", "_change_columns": "array<string>", "_change_error": "string", **more,
        "_change_record": "string", "_change_origin": "string",
    }  # fmt: skip
