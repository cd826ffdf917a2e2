"""Snapshots of Bigtable's cells beside the change stream: cells that were lost are right again, in any order."""

from __future__ import annotations

import calendar
import json
import random
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

import pytest
from cells import BEGINNING, COLUMNS, KEY, OBJECT, Cell, Entry, entries_of, invented, visible
from datastream import Staged
from memory import Memory
from pyspark.sql import SparkSession
from reconcile_jobs.bigtable.restated_cells import restated_cells
from reconcile_jobs.timestamps import as_text

# The hour after which the histories have their commits, in nanoseconds since 1970.
HOUR = calendar.timegm((2026, 11, 22, 10, 0, 0)) * 10**9
MODELS = {
    "cells": "materialized='current_state'",
    "cells_fresh": "materialized='current_state', meta={'fresh': true}",
    "cells_view": "materialized='current_view'",
}


class Wrong(AssertionError):
    """The cells are not those of the plain fold."""


class Table:
    """Models of a table of Bigtable, its change stream, and snapshots beside it."""

    def __init__(
        self, memory: Memory, name: str, models: Mapping[str, str] = MODELS,
        replaced: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:  # fmt: skip
        self.memory, self.schema, self.staging = memory, f"of_{name}", f"of_{name}_lake.changes"
        self.project = memory.project(self.schema, replaced)
        self.project.source(f"of_{name}_lake", "changes")
        self.models, self.batches, self.snapshots = list(models), 0, 0
        for model, config in models.items():
            self.project.model(
                model,
                f"{{{{ config({config}, unique_key={KEY}) }}}}\n"
                f"{{{{ reconcile.bigtable_change_stream(source('lake', 'changes'), object='{OBJECT}') }}}}",
                COLUMNS,
            )

    def append(self, texts: Iterable[str], *more: Staged) -> None:
        self.batches += 1
        staged = [Staged(text, OBJECT, self.batches, source="bigtable") for text in texts]
        self.memory.stage(self.staging, [*staged, *(row._replace(batch=self.batches) for row in more)])
        if self.snapshots:
            properties = {"reconcile.snapshot_append": "beside-0/0/0"}
            self.memory.keep(self.staging, self.memory.table(self.staging), properties)

    def restate(self, cells: Mapping[Cell, bytes | None], moment: int) -> list[str]:
        """Append a snapshot of these cells, as the job does; return the changes that tell it."""
        self.snapshots += 1
        rows = [(*cell[:3], BEGINNING + timedelta(microseconds=cell[3]), value) for cell, value in cells.items()]
        frame = self.memory.spark.createDataFrame(rows, ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()))
        staged = self.memory.table(self.staging).where(f"object = '{OBJECT}' and source = 'bigtable'")
        told = [row.record for row in restated_cells(frame, staged, HOUR + moment).collect()]
        cut = {
            "number": self.snapshots, "object": OBJECT, "place": self.snapshots, "snapshot": f"s{self.snapshots}",
            "position_kind": "commit_timestamp", "position": as_text(HOUR + moment), "uncertainty": "1 hour",
            "key": KEY, "taken_at": as_text(HOUR + moment), "columns": COLUMNS, "rows": len(rows),
        }  # fmt: skip
        self.append(told, Staged(json.dumps(cut), "#snapshot", 0, source="snapshot"))
        return told

    def check(self, expected: Mapping[Cell, bytes | None], **flags: bool) -> None:
        """Run, and raise Wrong where a model has other cells, or the ledger does not balance."""
        self.project.run(*self.models, **flags)
        for model in self.models:
            rows = (
                self.memory.table(f"{self.schema}.{model}")
                .selectExpr("*", "unix_micros(cell_time) as micros")
                .collect()
            )
            found = {(bytes(r.row_key), r.family, bytes(r.qualifier), r.micros): bytes(r.value) for r in rows}
            if found != expected or len(rows) != len(found):
                wrong = [cell for cell in {*found, *expected} if found.get(cell) != expected.get(cell)]
                raise Wrong(f"{model}: {[(c, found.get(c), expected.get(c)) for c in wrong[:3]]}, {len(wrong)} wrong")
            if not model.endswith("_view") and self.project.failing("ledger_balances", model):
                raise Wrong(f"the ledger of {model} does not balance")


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


def live(
    memory: Memory,
    name: str,
    seed: int,
    models: Mapping[str, str],
    histories: int = 200,
    replaced: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Deliver histories in four batches, of which changes are lost, with two snapshots between them."""
    chance = random.Random(seed)
    told = [entry for entry in invented(histories, seed, 4) if not entry.bad]
    lost = {text for text in sorted({entry.text for entry in told}) if chance.random() < 0.3}
    table, known = Table(memory, name, models, replaced), list[Entry]()
    moments = {1: 500, 3: 30 * 10**9}  # after these batches

    def contained(entry: Entry, moment: int) -> bool:
        return entry.rank[0] < moment

    for batch in (1, 2, 3, 4):
        texts = [entry.text for entry in told if entry.batch == batch and entry.rank[2] == 0 and entry.text not in lost]
        table.append(texts)
        known += [entry for text in texts for entry in entries_of(text)]
        table.check(visible(known))
        if moment := moments.get(batch):
            truth = visible(entry for entry in told if contained(entry, moment))
            restated = table.restate(truth, moment)
            known = [entry for entry in known if not contained(entry, moment)]
            known += [entry for text in restated for entry in entries_of(text)]
            table.check(visible(known))
            newest = moment
        known = [entry for entry in known if not contained(entry, newest)]
        table.check(visible(known))
    table.check(visible(known), full_refresh=True)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_two_hundred_histories_with_snapshots_are_those_of_a_plain_fold(memory: Memory, seed: int) -> None:
    live(memory, f"cells_{seed}", seed, {name: MODELS[name] for name in ("cells_fresh", "cells_view")})


SOURCE = "macros/sources/bigtable_change_stream.sql"
BUGS = {
    "what a snapshot contains still hides and sets cells": {SOURCE: {"concat('-', substring(": "concat('', left("}},
    "a change that the snapshot contains still sets its cell": {
        SOURCE: {"if(_change_is_contained, 'delete', _change_type)": "_change_type"}
    },
    "what is later than the snapshot is contained": {SOURCE: {"_change_sequence < '{{": "_change_sequence > '{{"}},
}


@pytest.mark.planted
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(memory: Memory, bug: str) -> None:
    name = f"cells_bug_{list(BUGS).index(bug)}"
    with pytest.raises(Wrong):
        live(memory, name, 3, {"cells": MODELS["cells"]}, 100, replaced=BUGS[bug])
