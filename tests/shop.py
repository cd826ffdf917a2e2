"""The capture's deliveries in memory, as they come in several ways side by side, and what models make of them."""

from __future__ import annotations

import functools
import gzip
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from datastream import Staged
from memory import Memory
from reconcile_jobs.avro_json import json_records
from truth import CAPTURE, COLUMNS, KEYS, SOURCES, counted, declared, object_of, table_of, true_rows

MODELS = [(source, table) for source in SOURCES for table in COLUMNS]
COUNTS = ["delivered", "applied", "superseded", "duplicate", "quarantined", "pending"]


class Way(NamedTuple):
    """The form of the files, and which deliveries each batch has."""

    form: str
    batches: tuple[tuple[int, ...], ...]


@functools.cache
def records(source: str, table: str, form: str, delivery: int) -> list[str]:
    """Return the records that the files of one delivery hold, as the job that appends them renders them."""
    found: list[str] = []
    folder = CAPTURE / f"{source}_{form}" / str(delivery) / object_of(source, table)
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = file.read_bytes()
        found += json_records(content) if form == "avro" else gzip.decompress(content).decode().splitlines()
    assert found, folder
    return found


class Shop:
    """A project with a model for each of some tables, and the deliveries of each in every way.

    The way is a column, the first one of the key: it is written into the payloads, in the case of the others' names.
    """

    def __init__(
        self, memory: Memory, schema: str, models: Sequence[tuple[str, str]], ways: Mapping[str, Way],
        materialized: str = "current_state", options: str = "", tests: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.memory, self.schema, self.lake = memory, schema, f"{schema}_lake"
        self.models, self.ways = list(models), dict(ways)
        self.sources = sorted({source for source, _ in models})
        self.project = memory.project(schema)
        self.project.source(self.lake, *self.sources)
        for source, table in models:
            config = f"config(materialized='{materialized}', unique_key={['way', *KEYS[table]]}{options})"
            call = f"reconcile.datastream_{source}(source('lake', '{source}'), table='{table_of(source, table)}')"
            columns = {"way": "string", **declared(source, table)}
            self.project.model(
                f"{source}_{table}", f"{{{{ {config} }}}}\n{{{{ {call} }}}}\n", columns, data_tests=list(tests)
            )
        for source in self.sources:
            memory.stage(f"{self.lake}.all_{source}", self._staged(source))

    def _staged(self, source: str) -> Iterator[Staged]:
        name = "WAY" if source == "oracle" else "way"
        for way, (form, batches) in self.ways.items():
            for number, deliveries in enumerate(batches, start=1):
                for table in (table for of, table in self.models if of == source):
                    for record in (text for delivery in deliveries for text in records(source, table, form, delivery)):
                        text, found = re.subn(r'("payload": ?\{)', rf'\1"{name}": "{way}", ', record, count=1)
                        assert found, record
                        yield Staged(text, object_of(source, table), number)

    def deliver(self, upto: int) -> None:
        """Let the batches up to this one be there."""
        for source in self.sources:
            self.memory.view(
                f"{self.lake}.{source}", f"select * from `{self.lake}`.`all_{source}` where batch <= {upto}"
            )

    def run(self, *models: str, full_refresh: bool = False) -> dict[str, str]:
        return self.project.run(*(models or (f"{s}_{t}" for s, t in self.models)), full_refresh=full_refresh)

    def rows(self, source: str, table: str) -> dict[str, Counter[Any]]:
        """Return the rows of a model, by the way in which they came."""
        frame = self.memory.table(f"{self.schema}.{source}_{table}")
        found: dict[str, Counter[Any]] = {way: Counter() for way in self.ways}
        for (way, *row), copies in counted(frame).items():
            found[way][tuple(row)] += copies
        return found

    def differences(self, source: str, table: str) -> dict[str, list[Any]]:
        """Return how a model differs from the source, for each way in which it does."""
        types = dict(self.memory.table(f"{self.schema}.{source}_{table}").dtypes)
        assert types == {"way": "string", **COLUMNS[table]}
        return different(self.rows(source, table), true_rows(table))

    def delivered(self, source: str, table: str, batch: int) -> int:
        """Return the number of records of a batch."""
        return sum(
            len(records(source, table, way.form, delivery))
            for way in self.ways.values()
            for delivery in way.batches[batch - 1]
        )

    def ledger(self, source: str, table: str) -> list[dict[str, Any]]:
        rows = self.memory.table(f"{self.schema}.reconcile_ledger").orderBy("recorded_at")
        return [row.asDict() for row in rows.where(f"relation = '{self.schema}.{source}_{table}'").collect()]


def different(found: Mapping[str, Counter[Any]], true: Counter[Any]) -> dict[str, list[Any]]:
    """Return some of the rows that only one side has, for each way in which there are any."""
    odd = {}
    for way, rows in found.items():
        wrong = [("unexpected", *row) for row in (rows - true).elements()]
        wrong += [("missing", *row) for row in (true - rows).elements()]
        if wrong:
            odd[way] = wrong[:5]
    return odd
