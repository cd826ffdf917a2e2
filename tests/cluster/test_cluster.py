"""A cluster: ingestion by spark-submit, dbt through Thrift and readers at once, while workers die."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cluster.spark_cluster import SECONDS, Cluster, wait_for
from dbt_process import dbt, outcome
from file_formats import file_format
from projects import PACKAGE, Project
from truth import CAPTURE, COLUMNS, DELIVERIES, KEYS, declared, delivered, object_of, true_rows

COUNTS = ["applied", "superseded", "duplicate", "quarantined", "pending"]


def iceberg_metadata(table: Path) -> dict[str, Any]:
    """Return what Iceberg's newest file of metadata says of a table; nothing before there is one."""
    # They are numbered; one that is being written is left alone, and one that no commit came to has a number again.
    for file in sorted(table.glob("metadata/*.metadata.json"), reverse=True):
        with contextlib.suppress(json.JSONDecodeError):
            return json.loads(file.read_text())
    return {}


class Shop:
    """The capture's Oracle tables: appended by a job that goes on, merged by dbt again and again, read meanwhile."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.landing = cluster, cluster.root / "landing"
        self.landing.mkdir()
        self.project = Project(cluster.root / "project", "shop", threads=2, target=cluster.target)
        self.project.source("lake", "oracle")
        for table in COLUMNS:
            call = f"reconcile.datastream_oracle(source('lake', 'oracle'), object='{object_of('oracle', table)}')"
            self.project.model(
                table,
                f"{{{{ config(materialized='current_state', unique_key={KEYS[table]}) }}}}\n{{{{ {call} }}}}\n",
                declared("oracle", table),
                data_tests=["reconcile.ledger_balances", "reconcile.no_quarantine"],
            )
        words = ["datastream", "--path", str(self.landing), "--staging", "lake.oracle", "--every", "1s"]
        words += ["--checkpoint", str(cluster.root / "checkpoint")]
        self.append = cluster.submit("append", [], PACKAGE / "ingestion" / "append.py", *words)
        self.failed_runs: list[str] = []
        self.reads, self.failed_reads = 0, list[str]()
        self._ended = threading.Event()
        self._merging = threading.Thread(target=self._merge_on)
        self._reading = threading.Thread(target=self._read_on)

    def deliver(self, delivery: int) -> None:
        """Let a delivery appear, whole."""
        coming = self.landing.with_name("coming")
        shutil.copytree(CAPTURE / "oracle_json" / str(delivery), coming)
        coming.rename(self.landing / str(delivery))

    def begin(self) -> None:
        self._merging.start()
        self._reading.start()

    def end(self) -> None:
        self._ended.set()
        for thread in (self._merging, self._reading):
            if thread.ident:
                thread.join(SECONDS)

    def staged(self) -> int:
        """Return the number of batches that staging has. Of its files: a question to Spark waits."""
        table = self.cluster.warehouse / "lake.db" / "oracle"
        if file_format() == "delta":
            return sum('"txn"' in commit.read_text() for commit in table.glob("_delta_log/*.json"))
        return len(iceberg_metadata(table).get("snapshot-log", []))

    def begun(self) -> int:
        """Return the number of the last batch that was begun: it is given out before the data."""
        table = self.cluster.warehouse / "lake.db" / "oracle"
        if file_format() == "delta":
            commits = [commit.read_text() for commit in table.glob("_delta_log/*.json")]
            numbers = [number for commit in commits for number in re.findall(r'reconcile.last_batch":"(\d+)"', commit)]
            return max(map(int, numbers), default=0)
        return int(iceberg_metadata(table).get("properties", {}).get("reconcile.last_batch", 0))

    def merged(self) -> int:
        """Return the number of commits of a base table."""
        table = self.cluster.warehouse / "shop.db" / "orders__base"
        if file_format() == "delta":
            return len(list(table.glob("_delta_log/*.json")))
        return len(iceberg_metadata(table).get("snapshot-log", []))

    def merges_begun(self) -> int:
        """Return how many MERGEs of orders dbt has sent."""
        log = self.project.root / "logs" / "dbt.log"
        return log.read_text().count("merge into `shop`.`orders__base`") if log.exists() else 0

    def run(self, *arguments: str) -> tuple[int, str]:
        return outcome(dbt(self.project.root, self.cluster.environment, *arguments))

    def _merge_on(self) -> None:
        while not self._ended.is_set():
            code, said = self.run("run")
            if code:
                self.failed_runs.append(said)

    def _read_on(self) -> None:
        # What is read is one state of the table: of each key there is one row.
        while not self._ended.is_set():
            try:
                [(rows, keys)] = self.cluster.query("select count(*), count(distinct id) from shop.customers")
                assert rows == keys > 0
                self.reads += 1
            except Exception as problem:
                self.failed_reads.append(str(problem)[:500])
            time.sleep(0.5)


def rows_of(cluster: Cluster, table: str, schema: str = "shop") -> Counter[tuple[Any, ...]]:
    """Return the rows as `truth.true_rows` does."""
    plain = {"timestamp": "unix_micros({})", "date": "cast({} as string)", "binary": "hex({})"}
    columns = [plain.get(kind, "{}").format(name) for name, kind in COLUMNS[table].items()]
    return Counter(
        # Of doubles the text, as there: NaN equals itself.
        tuple(repr(value + 0.0) if isinstance(value, float) else value for value in row)
        for row in cluster.query(f"select {', '.join(columns)} from {schema}.{table}")
    )


def as_read(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    def plain(value: Any) -> Any:
        if isinstance(value, bytes):
            return value.hex().upper()
        return value.isoformat() if hasattr(value, "isoformat") else value

    return Counter({tuple(map(plain, row)): times for row, times in rows.items()})


@pytest.mark.soak
def test_it_reaches_the_truth_though_workers_die_in_the_middle_of_an_append_and_of_a_merge(cluster: Cluster) -> None:
    shop = Shop(cluster)
    try:
        shop.deliver(1)
        wait_for("the first batch", lambda: shop.staged() == 1)
        code, said = shop.run("run")
        assert code == 0, said[-3000:]
        shop.begin()

        # In the middle of an append: its number is given out, its data are not there.
        shop.deliver(2)
        wait_for("the second batch is begun", lambda: shop.begun() == 2, 0.02)
        for worker in range(cluster.workers):
            if cluster.runs(worker, "append"):
                assert cluster.kill_worker(worker) > 0
                assert shop.staged() == 1
                cluster.start_worker(worker)
        wait_for("the second batch", lambda: shop.staged() == 2)
        wait_for("its merge", lambda: shop.merged() > 1)

        # In the middle of a merge.
        begun, merged = shop.merges_begun(), shop.merged()
        shop.deliver(3)
        wait_for("a merge of the third batch", lambda: shop.merges_begun() > begun, 0.02)
        for worker in range(cluster.workers):
            if cluster.runs(worker, "thrift"):
                assert cluster.kill_worker(worker) > 0
                assert shop.merged() == merged
                cluster.start_worker(worker)
        wait_for("the merge", lambda: shop.merged() > merged)

        shop.deliver(4)
        wait_for("the fourth batch", lambda: shop.staged() == 4)
    finally:
        shop.end()
    shop.append.send_signal(signal.SIGTERM)
    assert shop.append.wait(SECONDS) == 0
    assert shop.run("build")[0] == 0, "the last run, and the tests"

    for table in COLUMNS:
        assert rows_of(cluster, table) == as_read(true_rows(table)), table
    records = sum((delivered("oracle", delivery) for delivery in DELIVERIES), Counter[str]())
    staged = dict(cluster.query("select object, count(*) from lake.oracle group by object"))
    assert staged == dict(records)
    for table in COLUMNS:
        rows = cluster.query(
            f"select first_batch, last_batch, delivered, {' + '.join(COUNTS)} from shop.reconcile_ledger "
            f"where relation = 'shop.{table}' order by first_batch"
        )
        assert [first for first, *_ in rows] == [1, *(last + 1 for _, last, *_ in rows[:-1])]
        assert sum(delivered for _, _, delivered, _ in rows) == records[object_of("oracle", table)]
        assert all(told == accounted for *_, told, accounted in rows)
    assert shop.failed_runs == []
    assert shop.failed_reads == []
    assert shop.reads > 3
