"""Values of a source's types on both sides: as Datastream's files bring them to a model, and as snapshots have them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from avro_files import avro_events
from datastream import Staged, event
from memory import Memory
from plain_dbt import Relation
from pyspark.sql import SparkSession
from reconcile_jobs.avro_json import json_records

UNKNOWN: Any = object()  # how JSON files hold a value is not known


class Digits(str):
    """JSON as it stands in a file, whose digits Python would not keep."""


class Value(NamedTuple):
    """A value as SQL, in Avro and in JSON, and what a model is to show of it, where that is told."""

    sql: str
    avro: Any
    json: Any = UNKNOWN
    shows: str | None = None


class Kind(NamedTuple):
    """A type of the source's, the column that a model and a snapshot declare for it, and its type in Avro."""

    sql: str
    column: Any
    avro: Any
    values: Sequence[Value]

    @property
    def data_type(self) -> str:
        return str(self.column if isinstance(self.column, str) else self.column["data_type"])

    @property
    def asked(self) -> str:
        """What `--columns` has of it."""
        meta = {} if isinstance(self.column, str) else self.column["config"]["meta"]
        told = {"infinity_is_null": " infinity_is_null", "zero_date": " zero_date_is_null"}
        return self.data_type + "".join(text for option, text in told.items() if option in meta)


def meta(data_type: str, **said: Any) -> dict[str, Any]:
    return {"data_type": data_type, "config": {"meta": said}}


def inserts(kinds: Sequence[Kind]) -> list[str]:
    """Return rows as SQL: the first values of all kinds, and so on, for Avro and once more for JSON; and NULLs."""
    return [
        f"({', '.join([str(id), *(value.sql if value else 'NULL' for value in row)])})"
        for id, row in [*_rows(kinds, "Avro").items(), *_rows(kinds, "JSON").items()]
    ]


def _rows(kinds: Sequence[Kind], form: str) -> dict[int, list[Value | None]]:
    most = max(len(kind.values) for kind in kinds)
    rows = [[kind.values[n] if n < len(kind.values) else None for kind in kinds] for n in range(most + 1)]
    if form == "JSON":
        rows = [[value if value and value.json is not UNKNOWN else None for value in row] for row in rows]
    return dict(enumerate(rows, 0 if form == "Avro" else 1000))


def _staged(source: str, kinds: Sequence[Kind]) -> list[Staged]:
    names = [f"c{n}" for n in range(len(kinds))]
    types = {"id": "int", **{name: kind.avro for name, kind in zip(names, kinds, strict=True)}}
    in_avro = [
        (
            event(source, None, without=["payload"], object="things"),
            {"id": id, **{name: value.avro if value else None for name, value in zip(names, row, strict=True)}},
        )
        for id, row in _rows(kinds, "Avro").items()
    ]
    in_json = [
        event(source, "{" + ", ".join([f'"id": {id}', *map(_member, names, row)]) + "}")
        for id, row in _rows(kinds, "JSON").items()
    ]
    return [Staged(text, "things", 1) for text in [*json_records(avro_events(types, in_avro)), *in_json]]


def _member(name: str, value: Value | None) -> str:
    found = value.json if value else None
    return f'"{name}": {found if isinstance(found, Digits) else json.dumps(found)}'


def differences(
    spark: SparkSession, source: str, kinds: Sequence[Kind], load: Callable[[str], str]
) -> tuple[list[Any], dict[tuple[str, int], Any]]:
    """Return the rows that `parity` does not call equal, and what a model shows of the values of which that is told.

    `load` is given what `--columns` is to have, and returns the snapshot's name.
    """
    with Memory(spark) as memory:
        schema = f"both_sides_of_{source}"
        project = memory.project(schema)
        project.source(f"{schema}_staging", "changes")
        memory.stage(f"{schema}_staging.changes", _staged(source, kinds))
        project.model(
            "things",
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            f"{{{{ reconcile.datastream_{source}(source('lake', 'changes'), object='things') }}}}",
            {"id": "int", **{f"c{n}": kind.column for n, kind in enumerate(kinds)}},
        )
        project.run("things")
        quarantine = [row._change_error for row in memory.rows(f"{schema}.things__quarantine")]
        assert not quarantine, quarantine
        loaded = load(", ".join(["id", *(f"c{n} {kind.asked}" for n, kind in enumerate(kinds))]))
        memory.keep(f"{schema}.source_rows", memory.spark.table(loaded), {"reconcile.snapshot": "csv"})
        failing = project.failing(
            "parity", "things", compare_to=Relation(schema, "source_rows"), key="id", store_values=True
        )
        (run,) = memory.rows(f"{schema}.reconcile_parity")
        assert failing or (run.verdict, run.matched) == ("match", len(inserts(kinds)))
        forms = {"variant": "to_json({0})", "binary": "hex({0})"}
        shown = [forms.get(kind.data_type, "cast({0} as string)").format(f"c{n}") for n, kind in enumerate(kinds)]
        found = {row[0]: row[1:] for row in memory.table(f"{schema}.things").selectExpr("id", *shown).collect()}
    told = {
        (kind.sql, id): (found[id][n], value.shows)
        for form in ("Avro", "JSON")
        for id, row in _rows(kinds, form).items()
        for n, (kind, value) in enumerate(zip(kinds, row, strict=True))
        if value and value.shows is not None
    }
    return failing, {place: pair for place, pair in told.items() if pair[0] != pair[1]}
