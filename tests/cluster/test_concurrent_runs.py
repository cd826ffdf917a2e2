"""Two dbt runs of the same models at once: one wins, the other stops; no key twice, nothing lost, one account."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from cluster.spark_cluster import Cluster
from datastream import event
from dbt_process import dbt, outcome
from file_formats import file_format
from projects import Project
from reconcile_jobs.staging import literal

# How a run may say that it lost: in our words, or in the format's.
LOST = {
    "delta": ("another run of this model wrote at the same time", "DELTA_CONCURRENT", "DELTA_METADATA_CHANGED"),
    "iceberg": ("another run of this model wrote at the same time", "ValidationException", "CommitFailedException"),
}
TIDY_UP = {
    "delta": "optimize concurrent.things__base",
    "iceberg": "call spark_catalog.system.rewrite_data_files('concurrent.things__base')",
}
CHANGES = "reconcile.datastream_postgresql(source('lake', 'changes'), object='shop.things')"
COLUMNS = {"id": "bigint", "name": "string", "size": "bigint"}
MODELS = {
    "things": f"{{{{ config(materialized='current_state', unique_key='id') }}}}\n{{{{ {CHANGES} }}}}",
    "past": f"{{{{ config(materialized='history', unique_key='id') }}}}\n{{{{ {CHANGES} }}}}",
    # The same records, of which updates carry the name alone.
    "parts": "{{ config(materialized='current_state', unique_key='id', meta={'partial_records': true}) }}\n"
    "select * except (_change_columns), if(_change_type = 'update', array('name'), null) as _change_columns\n"
    f"from ({{{{ {CHANGES} }}}})",
}


class Things:
    """A staging table, its models, and what they have to come to."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster, self.batch, self.place, self.chance = cluster, 0, 0, random.Random(seed)
        self.project = Project(cluster.root / "concurrent", "concurrent", threads=3, target=cluster.target)
        self.project.source("concurrent_lake", "changes")
        for name, sql in MODELS.items():
            self.project.model(name, sql, COLUMNS, data_tests=["reconcile.ledger_balances"])
        cluster.query("create schema concurrent_lake")
        cluster.query(
            "create table concurrent_lake.changes (record string, source string, object string, origin string, "
            f"batch bigint, appended_at timestamp) using {file_format()} partitioned by (object)"
        )
        self.rows: dict[int, tuple[int, str, int]] = {}
        self.parts: dict[int, tuple[int, str, int]] = {}
        self.versions = 0
        self.bad = 0
        self.told: Counter[int] = Counter()

    def append(self) -> None:
        """Stage a batch: new keys, updates, a delete, a copy, and in every other one a record that nothing orders."""
        self.batch += 1
        new = [max(self.rows, default=0) + n for n in (1, 2, 3)]
        records = [self._record(key, "INSERT") for key in new]
        old = self.chance.sample(sorted(self.rows), min(4, len(self.rows)))
        records += [self._record(key, "UPDATE") for key in old]
        if len(old) == 4:
            self.place += 1
            records.append(
                event("postgresql", {"id": old[0], "name": None, "size": None}, "DELETE", metadata=self._at())
            )
            del self.rows[old[0]], self.parts[old[0]]
            self.versions += 1
        records.append(records[0])
        # With something for the quarantine two runs meet there already; without, at the MERGE or after it.
        if self.batch % 2:
            records.append(event("postgresql", {"id": 1, "name": "x", "size": 1}, metadata={"lsn": None}))
            self.bad += 1
        self.told[self.batch] = len(records)
        values = ", ".join(
            f"({literal(text)}, 'datastream', 'shop.things', 'a file', {self.batch}, current_timestamp())"
            for text in records
        )
        self.cluster.query(f"insert into concurrent_lake.changes values {values}")

    def _at(self) -> dict[str, Any]:
        return {"lsn": f"0/{self.place:X}"}

    def _record(self, key: int, kind: str) -> str:
        self.place += 1
        row = (key, f"name {self.place}", self.place)
        self.rows[key] = row
        self.parts[key] = row if kind == "INSERT" else (key, row[1], self.parts[key][2])
        self.versions += 1
        return event("postgresql", dict(zip(COLUMNS, row, strict=True)), kind, metadata=self._at())

    def run_twice_at_once(self) -> list[int]:
        """Run two processes; return their exit codes. Who loses says so."""
        runs = [
            dbt(
                self.project.root,
                self.cluster.environment,
                "run",
                "--target-path",
                f"target{n}",
                "--log-path",
                f"logs{n}",
            )
            for n in (1, 2)
        ]
        codes = []
        for code, said in map(outcome, runs):
            codes.append(code)
            assert code in (0, 1), said[-3000:]
        for n in (1, 2):
            results = json.loads((self.project.root / f"target{n}" / "run_results.json").read_text())["results"]
            for result in results:
                lost = result["status"] == "error" and any(words in result["message"] for words in LOST[file_format()])
                assert lost or result["status"] == "success", (result["unique_id"], result["message"])
        return codes

    def assert_right(self) -> None:
        """Compare rows, versions, quarantine and ledger with what was told."""
        query = self.cluster.query
        assert sorted(query("select id, name, size from concurrent.things")) == sorted(self.rows.values())
        assert sorted(query("select id, name, size from concurrent.parts")) == sorted(self.parts.values())
        assert query("select count(*), count(distinct id, _change_sequence) from concurrent.past__base") == [
            (self.versions, self.versions)
        ]
        current = query("select id, name, size from concurrent.past where is_current")
        assert sorted(current) == sorted(self.rows.values())
        for name in MODELS:
            [(rows, keys)] = query(f"select count(*), count(distinct _change_id) from concurrent.{name}__quarantine")
            assert rows == keys == self.bad, name
            ranges = query(
                "select first_batch, last_batch, delivered, applied + superseded + duplicate + quarantined + pending "
                f"from concurrent.reconcile_ledger where relation = 'concurrent.{name}' order by first_batch"
            )
            # Each batch in one range: a second account of it would overlap.
            assert [first for first, *_ in ranges] == [1, *(last + 1 for _, last, *_ in ranges[:-1])], (name, ranges)
            assert ranges[-1][1] == self.batch
            for first, last, delivered, accounted in ranges:
                assert delivered == accounted == sum(self.told[batch] for batch in range(first, last + 1))


# A hundred rounds in ten parts of the matrix, and a few in another.
SERIES = [pytest.param(10, seed, id=f"series-{seed:02}") for seed in range(1, 11)]


@pytest.mark.matrix
@pytest.mark.parametrize(("rounds", "seed"), [pytest.param(3, 7, id="short"), *SERIES])
def test_two_runs_at_once_leave_what_one_would(cluster: Cluster, rounds: int, seed: int) -> None:
    things = Things(cluster, seed)
    things.append()
    code, said = outcome(dbt(things.project.root, cluster.environment, "run"))
    assert code == 0, said[-3000:]
    codes = []
    for number in range(rounds):
        things.append()
        codes.append(things.run_twice_at_once())
        # Both may have lost some model to the other; nobody loses what the other did not win.
        things.assert_right()
        if number == rounds // 2:
            cluster.query(TIDY_UP[file_format()])
    code, said = outcome(dbt(things.project.root, cluster.environment, "test"))
    assert code == 0, said[-3000:]
    # They did meet.
    assert any(1 in both for both in codes)
    cluster.query("drop schema concurrent cascade")
    cluster.query("drop schema concurrent_lake cascade")
