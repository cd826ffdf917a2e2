"""A PostgreSQL that is written to all the time, whose changes come late and in disorder, and an append job of them.

live_parity.py, live_proofs.py and live_repair.py read from it and from models of it, in a session of conf/shared.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from logical_decoding import Change, Slot
from projects import PACKAGE, Project
from pyspark.sql import SparkSession
from reconcile_jobs.jdbc.connection import Source
from reconcile_jobs.snapshots import snapshot_jdbc
from reconcile_jobs.staging import TableName

ROWS, WRITERS = 2000, 4
LONGEST_DELAY, ALLOWANCE = 30, 45  # seconds
COLUMNS = {"id": "bigint", "status": "string", "total": "decimal(12,2)", "updated_at": "timestamp"}
SET_UP = """
create schema shop;
create table shop.orders (id bigint primary key, status text, total numeric(12,2), updated_at timestamptz);
alter table shop.orders replica identity full;
"""
FILL = f"insert into shop.orders select i, 'new', i, clock_timestamp() from generate_series(1, {ROWS}) i"
# Short transactions and long ones, rows that go and come back, what is rolled back, and much at once.
WRITER = f"""
do $$
declare
    chosen bigint;
begin
    for round in 1..1000000 loop
        perform pg_current_xact_id();
        chosen := 1 + (random() * {ROWS})::bigint;
        begin
            update shop.orders set status = 'paid ' || round, total = round((random() * 1000)::numeric, 2),
                updated_at = clock_timestamp() where id = chosen;
            if random() < 0.3 then
                raise exception 'undone';
            end if;
        exception when raise_exception then
            null;
        end;
        perform pg_sleep(PAUSE);
        begin
            if random() < 0.2 then
                delete from shop.orders where id = 1 + (random() * {ROWS})::bigint;
            elsif random() < 0.5 then
                insert into shop.orders values (1 + (random() * {ROWS})::bigint, null, 0, clock_timestamp())
                on conflict do nothing;
            elsif random() < 0.05 then
                update shop.orders set status = 'many', updated_at = clock_timestamp() where id in
                    (select id from shop.orders where id % 50 = round % 50 for update skip locked);
            else
                update shop.orders set total = total + 0.01, updated_at = clock_timestamp()
                where id = 1 + (random() * {ROWS})::bigint;
            end if;
        exception when deadlock_detected then
            null;
        end;
        commit;
    end loop;
end $$
"""


class Capture(threading.Thread):
    """Files of changes: most come soon, some late, none in order, and a part of them never."""

    def __init__(self, slot: Slot, landing: Path, lost: float) -> None:
        super().__init__(daemon=True)
        self._slot, self._landing, self._part_lost, self.lost = slot, landing, lost, 0
        self._waiting: list[tuple[float, Change]] = []
        self.captured: list[Change] = []
        self._failure: BaseException | None = None
        self._chance, self._files, self._ending = random.Random(1), 0, threading.Event()

    def run(self) -> None:
        try:
            self._go_on()
        except BaseException as problem:
            self._failure = problem

    def _go_on(self) -> None:
        while not self._ending.is_set() or self._waiting:
            for change in self._slot.changes():
                if self._chance.random() < self._part_lost:
                    self.lost += 1
                    continue
                late = self._chance.random() < 0.4
                delay = self._chance.uniform(10, LONGEST_DELAY) if late else self._chance.uniform(0, 2)
                self.captured.append(change)
                self._waiting.append((time.monotonic() + delay, change))
            now = time.monotonic()
            due = [change for at, change in self._waiting if at <= now]
            self._waiting = [(at, change) for at, change in self._waiting if at > now]
            self._chance.shuffle(due)
            if due:
                self._write(due)
            time.sleep(0.5)

    def _write(self, changes: list[Change]) -> None:
        self._files += 1
        content = "".join(f"{change.record}\n" for change in changes)
        coming = self._landing / f"_{self._files}"
        coming.write_bytes(gzip.compress(content.encode()))
        coming.rename(self._landing / f"{self._files}.jsonl.gz")

    def end(self) -> None:
        self._ending.set()
        self.join()
        if self._failure:
            raise self._failure


class Server:
    """The server that the test has started."""

    user, database = os.environ["LIVE_USER"], os.environ["LIVE_DATABASE"]
    password, port = os.environ["LIVE_PASSWORD"], int(os.environ["LIVE_PORT"])
    programs = Path(os.environ["LIVE_PROGRAMS"])

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{self.database}"

    def start(self, sql: str) -> subprocess.Popen[bytes]:
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", self.user, "-d", self.database]
        return subprocess.Popen(
            [str(self.programs / "psql"), *where, "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql],
            env=os.environ | {"PGPASSWORD": self.password},
            stdout=subprocess.PIPE,
        )

    def query(self, sql: str) -> str:
        started = self.start(sql)
        said, _ = started.communicate()
        assert started.returncode == 0, sql
        return said.decode().strip()


class LiveSource:
    """The source, its capture, and the append job, while it is written to."""

    def __init__(self, root: Path, postgres: Server, spark: SparkSession, lost: float) -> None:
        self.postgres, self._spark = postgres, spark
        landing = root / "landing"
        landing.mkdir()
        postgres.query(SET_UP)
        slot = Slot(postgres, "shop.orders")
        postgres.query(FILL)
        self.capture = Capture(slot, landing, lost)
        self.capture.start()
        job = ["spark-submit", str(PACKAGE / "ingestion" / "append.py"), "datastream", "--every", "2s"]
        self._root, self._job = root, [*job, "--path", str(landing), "--staging", "lake.changes"]
        self.append = self._start_append()
        # One of them has always a transaction open.
        pauses = ["2 + random() * 4", *["random() * 0.3"] * (WRITERS - 1)]
        self._writers = [postgres.start(WRITER.replace("PAUSE", pause)) for pause in pauses]

    def _start_append(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._job, cwd=self._root, stdout=sys.stderr)

    def keep_appending(self) -> None:
        """Start the append job again, as a scheduler does, if another append came at the same moment as its own."""
        code = self.append.poll()
        if code is not None:
            assert code == 4
            self.append = self._start_append()

    def staged(self) -> set[str]:
        """Return the ids of the records that were appended by now."""
        rows = self._spark.sql("select get_json_object(record, '$.uuid') as id from lake.changes").collect()
        return {row.id for row in rows}

    def undelivered(self, position: str, staged: set[str]) -> float:
        """Return the part of the changes before a position that is not among these ids."""
        before = [change for change in self.capture.captured if sees(position, change.transaction)]
        return sum(json.loads(change.record)["uuid"] not in staged for change in before) / len(before)

    def quiet(self) -> None:
        """End the writers, and deliver what was captured."""
        for writer in self._writers:
            writer.terminate()
            writer.wait()
        self.postgres.query(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where query like '%for round in%' and pid <> pg_backend_pid()"
        )
        self.capture.end()

    def append_all(self) -> None:
        """Wait until all that was delivered is appended, and end the job."""
        expected = {json.loads(change.record)["uuid"] for change in self.capture.captured}
        while not expected <= self.staged():
            assert self.append.poll() is None
            time.sleep(1)
        self.append.terminate()
        self.append.wait()


@contextmanager
def written_to(root: Path, postgres: Server, spark: SparkSession, lost: float = 0) -> Iterator[LiveSource]:
    """A source that is written to until this ends; then all its changes are staged. `lost`: the part that never is."""
    source = LiveSource(root, postgres, spark, lost)
    try:
        while not spark.catalog.tableExists("lake.changes"):
            time.sleep(1)
        yield source
    except BaseException:
        source.append.kill()
        raise
    finally:
        source.quiet()
    source.append_all()


def snapshot_of_orders(spark: SparkSession, source: Source, into: TableName) -> str:
    """Take a snapshot of the source's table, and return its position."""
    columns = "id, status, total, updated_at"
    return snapshot_jdbc.load_jdbc(
        spark, source, "shop.orders", into, at="now", columns=columns, partitions=None
    ).position


def project_of_orders(root: Path, tests: list[dict[str, Any]], *tables: str) -> Project:
    """Return a project with the model of the source's table. `tables`: of the source lake, beside the staging table."""
    project = Project(root / "project", "live")
    project.source("lake", "changes", *tables)
    project.model(
        "orders",
        "{{ config(materialized='current_state', unique_key='id') }}\n"
        "{{ reconcile.datastream_postgresql(source('lake', 'changes'), 'shop.orders') }}",
        COLUMNS,
        data_tests=tests,
    )
    return project


def sees(snapshot: str, transaction: int) -> bool:
    xmin, xmax, open = snapshot.split(":")
    return transaction < int(xmin) or (transaction < int(xmax) and str(transaction) not in open.split(","))


def say(**what: Any) -> None:
    print(json.dumps(what, default=str), flush=True)
