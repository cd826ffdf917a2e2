"""One project with a model of each kind, run by dbt on the tables of a format, and in plain Jinja in memory."""

from __future__ import annotations

import functools
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cells
import dbt.adapters.spark.session
import pytest
import row_deletes
import tables
from datastream import Staged, event
from file_formats import file_format
from histories import COLUMNS, KEY, generate
from lakes import Lakehouse, stored
from memory import Memory
from pyspark.sql import SparkSession

# The batches that are there when a phase begins.
PHASES = {"first run": 1, "increment": 3, "nothing new": 3, "left as they are": 3, "restored": 4, "full refresh": 4}
LAST = 4
# What a full refresh is of: its statements are those of a first run.
REFRESHED = ("rows_with_row_deletes", "versions", "versions_of_cells", "rows_of_another_source")


@dataclass(frozen=True)
class Case:
    """A model, and what is staged for it."""

    macro: str
    columns: Mapping[str, Any]
    key: Any
    staged: Callable[[str], list[Staged]]
    materialized: str = "current_state"
    meta: Mapping[str, Any] = field(default_factory=dict)
    meta_of_tables: Mapping[str, Any] = field(default_factory=dict)  # what memory, which stands for Delta, has not
    data_tests: tuple[str, ...] = ("ledger_balances",)
    keyless: str = ""  # the table of deletes without a key

    @property
    def parts(self) -> list[str]:
        """What the names of the model's relations end with."""
        base = [] if self.materialized == "current_view" else ["__base"]
        return ["", *base, "__quarantine", *([self.keyless] if self.keyless else [])]

    def sql(self, name: str, is_table: bool) -> str:
        meta = {**self.meta, **(self.meta_of_tables if is_table else {})}
        config = f"materialized='{self.materialized}', unique_key={self.key!r}, meta={meta}"
        macro = f"{{{{ reconcile.{self.macro}(source('lake', 'changes'), object='{name}') }}}}"
        return f"{{{{ config({config}) }}}}\n{macro}"


def _histories(source: str, count: int) -> Callable[[str], list[Staged]]:
    of = "spanner" if source == "spanner" else "datastream"
    return lambda name: [
        Staged(record.text, name, record.batches[0], source=of)
        for record in generate(source, count, seed=11)
        if record.place == 0
    ]


def _row_deletes(name: str) -> list[Staged]:
    chance = random.Random(11)
    records = [record for number in range(1, 40) for record in row_deletes.invent(number, chance)]
    return [Staged(record.text, name, chance.randint(1, 3)) for record in records]


def _cells(name: str) -> list[Staged]:
    entries = cells.invented(40, seed=11, split=3)
    return [Staged(entry.text, name, entry.batch, source="bigtable") for entry in entries if entry.rank[2] == 0]


# Hive's metastore refuses a table of Iceberg's that has one.
VARIANT = "variant" if file_format() == "delta" else "string"
EVERY_TYPE = {
    "id": "bigint", "tiny": "tinyint", "small": "smallint", "whole": "int", "real": "float", "wide": "double",
    "exact": "decimal(38,10)", "is_it": "boolean", "text": "string", "short": "varchar(5)", "bytes": "binary",
    "day": "date", "moment": "timestamp", "local": "timestamp_ntz", "list": "array<decimal(10,2)>",
    "pairs": "map<string,array<string>>", "doc": VARIANT, "a`b c,;=\"'": "string",
}  # fmt: skip


def _every_type(name: str) -> list[Staged]:
    row = {
        "tiny": -128, "small": 32767, "whole": 1, "real": 1.5, "wide": -2.25, "exact": "1.0000000001", "is_it": True,
        "text": "é", "short": "12345", "bytes": "0001", "day": "0001-01-01", "moment": "2026-11-21T11:33:12.123456Z",
        "local": "2026-11-21 11:33:12", "list": [1.25, None], "pairs": {"a": ["x", None]}, "a`b c,;=\"'": "odd",
        "doc": {"b": [1.50, None], "a": "é"},
    }  # fmt: skip
    empty = dict.fromkeys(row)
    changed = {**row, "text": "changed", "doc": [2]}
    told = [(1, 1, row), (2, 1, empty), (3, 2, {**row, "tiny": 128}), (1, 3, changed), (2, 3, None)]
    return [
        Staged(
            event(
                "mysql", {"id": number, **(values or {})}, "UPDATE" if values else "DELETE",
                metadata={"log_position": 1000 * batch + number}, object=name,
            ), name, batch,
        )
        for number, batch, values in told
    ]  # fmt: skip


CASES = {
    "rows": Case(
        "datastream_mysql", COLUMNS, [*KEY], _histories("mysql", 25),
        meta={"fresh": True}, meta_of_tables={"buckets": 4} if file_format() == "iceberg" else {},
    ),
    "rows_with_row_deletes": Case(
        "datastream_oracle", row_deletes.COLUMNS, ["history", "id"], _row_deletes,
        data_tests=("ledger_balances", "no_pending_rows"), keyless="__row_deletes",
    ),
    "versions": Case(
        "datastream_postgresql", COLUMNS, [*KEY], _histories("postgresql", 25), "history",
        data_tests=("ledger_balances", "history_is_sound"),
    ),
    "partial_rows": Case(
        "spanner_change_stream", COLUMNS, [*KEY], _histories("spanner", 40), data_tests=("no_pending_rows",)
    ),
    "every_type": Case("datastream_mysql", EVERY_TYPE, "id", _every_type, data_tests=("no_quarantine",)),
}  # fmt: skip
# The other source with deletes without a key, and two features at once.
MORE_CASES = {
    "cells": Case(
        "bigtable_change_stream", cells.COLUMNS, cells.KEY, _cells, data_tests=(), keyless="__range_deletes"
    ),
    "rows_of_another_source": Case(
        "datastream_sqlserver", COLUMNS, [*KEY], _histories("sqlserver", 25),
        data_tests=("ledger_balances", "one_payload_per_sequence", "no_quarantine"),
    ),
    "versions_with_row_deletes": Case(
        "datastream_oracle", row_deletes.COLUMNS, ["history", "id"], _row_deletes, "history",
        data_tests=("history_is_sound",), keyless="__row_deletes",
    ),
    "versions_of_every_type": Case(
        "datastream_mysql", EVERY_TYPE, "id", _every_type, "history", data_tests=("history_is_sound",)
    ),
    "partial_versions": Case("spanner_change_stream", COLUMNS, [*KEY], _histories("spanner", 40), "history"),
    "versions_of_cells": Case(
        "bigtable_change_stream", cells.COLUMNS, cells.KEY, _cells, "history", keyless="__range_deletes",
        data_tests=("history_is_sound",),
    ),
    "view": Case("datastream_mysql", COLUMNS, [*KEY], _histories("mysql", 25), "current_view", data_tests=()),
}  # fmt: skip


@functools.cache
def _staged(name: str) -> list[Staged]:
    """Return a model's records, the same for both sides; each comes once more in the last batch."""
    rows = (CASES | MORE_CASES)[name].staged(name)
    return [*rows, *(row._replace(batch=LAST) for row in rows)]


class Side:
    """One of the two ways in which the project is run."""

    are_tables = False

    def __init__(self, lake: Any, schema: str, cases: Mapping[str, Case]) -> None:
        self.lake, self.schema, self.cases = lake, schema, cases
        self.project = lake.project(schema)
        self.project.source(f"{schema}_staging", "changes")
        for name, case in cases.items():
            self.project.model(
                name,
                case.sql(name, self.are_tables),
                case.columns,
                data_tests=[f"reconcile.{test}" for test in case.data_tests],
            )
        staged = [row for name in cases for row in _staged(name)]
        lake.stage(f"{schema}_staging.all_changes", sorted(staged, key=lambda row: row.batch))

    @property
    def base_tables(self) -> list[str]:
        return [f"{self.schema}.{name}__base" for name, case in self.cases.items() if "__base" in case.parts]

    def deliver(self, upto: int) -> None:
        self.lake.view(
            f"{self.schema}_staging.changes",
            f"select * from `{self.schema}_staging`.`all_changes` where batch <= {upto}",
        )

    def has(self, table: str) -> bool:
        raise NotImplementedError

    def restore_bases(self) -> None:
        """Set every base table back to what the first run left."""
        raise NotImplementedError

    def note_versions(self) -> None:
        raise NotImplementedError

    def rows(self, table: str) -> list[str]:
        """Return a table's rows as texts that do not depend on the format."""
        if not self.has(table):
            return ["there is no such table"]
        frame = stored(self.lake, table)
        return sorted(json.dumps(_told(row.asDict()), sort_keys=True) for row in frame.collect())

    def state(self, models: list[str]) -> dict[str, list[str]]:
        """Return everything that people or later runs can see of these models."""
        names = [f"{name}{part}" for name in models for part in self.cases[name].parts]
        found = {name: self.rows(f"{self.schema}.{name}") for name in names}
        ledger = self.lake.table(f"{self.schema}.reconcile_ledger").drop(
            "seconds", "invocation_id", "recorded_at", "last_appended_at"
        )
        found["reconcile_ledger"] = sorted(json.dumps(_told(row.asDict()), sort_keys=True) for row in ledger.collect())
        return found


class ByDbt(Side):
    """By dbt, on tables of the run's format."""

    are_tables = True

    def __init__(self, spark: SparkSession, root: Path, schema: str, cases: Mapping[str, Case]) -> None:
        self.spark = spark
        super().__init__(Lakehouse(spark, root), schema, cases)

    def has(self, table: str) -> bool:
        return bool(self.spark.catalog.tableExists(table))

    def note_versions(self) -> None:
        self._bases = {t: tables.versions(self.spark, t)[-1] for t in self.base_tables}

    def restore_bases(self) -> None:
        for table, version in self._bases.items():
            tables.restore(self.spark, table, version)

    def commits(self) -> dict[str, int]:
        written = [*self.base_tables, f"{self.schema}.reconcile_ledger"]
        return {table: tables.commits(self.spark, table) for table in written}


class InMemory(Side):
    """In plain Jinja, on tables in memory."""

    lake: Memory

    def has(self, table: str) -> bool:
        return self.lake.has(table)

    def note_versions(self) -> None:
        self._bases = {t: self.lake.version(t) for t in self.base_tables}

    def restore_bases(self) -> None:
        for table, version in self._bases.items():
            self.lake.restore(table, version)


class Lives:
    """Both sides, phase by phase."""

    def __init__(self, spark: SparkSession, root: Path, memory: Memory, schema: str, cases: Mapping[str, Case]) -> None:
        self.cases = cases
        self.dbt, self.memory = ByDbt(spark, root, schema, cases), InMemory(memory, schema, cases)
        self.refreshed = [name for name in cases if name in REFRESHED]
        self.states: dict[str, tuple[dict[str, list[str]], dict[str, list[str]]]] = {}
        self.statements: dict[str, tuple[dict[str, list[str]], dict[str, list[str]]]] = {}
        self.commits: dict[str, dict[str, int]] = {}
        self.said: dict[str, dict[str, str]] = {}
        self._phases = self._walk()

    def after(self, phase: str) -> Lives:
        """Go on to a phase unless that is done."""
        while phase not in self.states:
            next(self._phases)
        return self

    def _walk(self) -> Iterator[None]:
        for phase, batch in PHASES.items():
            refresh = phase == "full refresh"
            models = self.refreshed if refresh else [*self.cases]
            for side in (self.dbt, self.memory):
                side.deliver(batch)
                if phase == "restored":
                    side.restore_bases()
            with _noted(self.memory.lake) as in_memory, _noted_of_dbt() as by_dbt:
                variables = {"only_new_records": True} if phase == "left as they are" else {}
                selected = models if refresh else ()
                done = self.dbt.project.run(*selected, full_refresh=refresh, variables=variables)
                self.said[phase] = {result.node.name: result.message for result in done.result.results}
                self.memory.project.variables = variables
                self.memory.project.run(*selected, full_refresh=refresh)
            if phase == "first run":
                self.dbt.note_versions()
                self.memory.note_versions()
            self.statements[phase] = _by_model(by_dbt), _by_model(in_memory)
            self.commits[phase] = self.dbt.commits()
            # Where nothing was written there is nothing else to see.
            same = phase in ("nothing new", "left as they are") and self.commits[phase] == self.commits["increment"]
            if same:
                self.states[phase] = self.states["increment"]
            else:
                self.states[phase] = self.dbt.state(models), self.memory.state(models)
            yield


def _told(value: Any) -> Any:
    """Return a value as JSON can say it, exactly."""
    if isinstance(value, dict):
        return {str(key): _told(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_told(item) for item in (value._asdict().values() if hasattr(value, "_asdict") else value)]
    return value if value is None or isinstance(value, bool | int | str) else repr(value)


# --- the statements of both sides -------------------------------------------------------------------------------------

_OWN = re.compile(r"(cache|create|insert|merge|drop|set|select (count|coalesce|max)|select\n +\d+ as delivered)\b")
_NODE = re.compile(r'"node_id": "model\.\w+\.(\w+)"')


@contextmanager
def _noted_of_dbt() -> Iterator[list[tuple[str, str]]]:
    """Note the statements that dbt sends to the session, with the model that each is of."""
    noted: list[tuple[str, str]] = []
    cursor = dbt.adapters.spark.session.Cursor
    sends = cursor.execute

    def execute(self: Any, sql: str, *parameters: Any) -> None:
        model = _NODE.search(sql)
        if model:
            noted.append((model[1], sql.split("*/", 1)[-1]))
        sends(self, sql, *parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cursor, "execute", execute)
        yield noted


@contextmanager
def _noted(memory: Memory) -> Iterator[list[tuple[str, str]]]:
    """Note the statements that the package in plain Jinja sends to memory."""
    noted: list[tuple[str, str]] = []
    memory.noted = noted
    yield noted
    memory.noted = None


def _by_model(noted: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the package's own statements by model, without what differs from run to run.

    What asks for relations and for the columns of a SELECT is the adapter's. What commits note depends on what other
    threads write at the moment.
    """
    found = defaultdict(list)
    for model, sql in noted:
        text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "{run}", sql.strip())
        text = re.sub(r"\d+\.\d+(e-\d+)? as seconds", "{seconds} as seconds", text)
        text = re.sub(r"timestamp_micros\(\d+\) as last_appended_at", "{time} as last_appended_at", text)
        if _OWN.match(text) and "commitInfo.userMetadata" not in text:
            found[model].append(text)
    return found
