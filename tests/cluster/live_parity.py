"""Snapshots of a PostgreSQL that is written to all the time, compared while its changes come late and in disorder.

test_live_parity.py runs it in a session of conf/shared, beside an append job. One line of JSON for each comparison.
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
from pathlib import Path
from typing import Any

from logical_decoding import Change, Slot
from projects import PACKAGE, Project
from pyspark.sql import SparkSession
from reconcile_jobs.jdbc.connection import Source
from reconcile_jobs.jdbc.postgresql import PostgreSQL
from reconcile_jobs.snapshots import snapshot_jdbc
from reconcile_jobs.staging import TableName

ROWS, WRITERS, SNAPSHOTS = 2000, 4, int(os.environ["LIVE_SNAPSHOTS"])
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
    """Files of changes: most come soon, some late, none in order."""

    def __init__(self, slot: Slot, landing: Path) -> None:
        super().__init__(daemon=True)
        self._slot, self._landing = slot, landing
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


class Live:
    """The source, its capture, and a project with a test for each snapshot."""

    def __init__(self, root: Path, postgres: Any) -> None:
        self.spark = SparkSession.builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("OFF")
        self.postgres, self.landing = postgres, root / "landing"
        self.landing.mkdir()
        url = f"jdbc:postgresql://127.0.0.1:{postgres.port}/{postgres.database}"
        self.source = Source(PostgreSQL(), url, {"user": postgres.user, "password": postgres.password})
        self.project = Project(root / "project", "live")
        names = [f"source_{number}" for number in range(SNAPSHOTS + 1)]
        self.project.source("lake", "changes", *names)
        self.project.model(
            "orders",
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            "{{ reconcile.datastream_postgresql(source('lake', 'changes'), 'shop.orders') }}",
            COLUMNS,
            data_tests=[
                {
                    "reconcile.parity": {
                        "name": f"parity_{number}",
                        "arguments": {
                            "compare_to": f"source('lake', '{name}')",
                            "key": "id",
                            "allowance": f"{ALLOWANCE} seconds",
                            "recheck": 2,
                            "store_values": True,
                        },
                    }
                }
                for number, name in enumerate(names)
            ],
        )

    def snapshot(self, number: int) -> str:
        into = TableName.parse(f"lake.source_{number}")
        columns = "id, status, total, updated_at"
        return snapshot_jdbc.load_jdbc(
            self.spark, self.source, "shop.orders", into, at="now", columns=columns, partitions=None
        ).position

    def naive(self, number: int) -> int:
        """Return how many rows differ if both sides are compared as they are."""
        live, source = self.spark.table("live.orders"), self.spark.table(f"lake.source_{number}")
        differing = live.exceptAll(source).unionAll(source.exceptAll(live))
        return differing.select("id").distinct().count()

    def test(self, *numbers: int) -> list[dict[str, Any]]:
        names = [f"parity_{number}" for number in numbers]
        outcome = self.project.dbt("test", "--select", *names, succeed=False)
        for result in outcome.result.results:
            assert result.status in ("success", "pass", "fail"), result.message
        runs = self.spark.table("live.reconcile_parity").where(f"run_id = '{self._last_run()}'").collect()
        return [run.asDict() for run in sorted(runs, key=lambda run: int(run.test.removeprefix("parity_")))]

    def _last_run(self) -> str:
        return self.spark.sql("select max_by(run_id, recorded_at) from live.reconcile_parity").collect()[0][0]

    def staged(self) -> set[str]:
        """Return the ids of the records that were appended by now."""
        rows = self.spark.sql("select get_json_object(record, '$.uuid') as id from lake.changes").collect()
        return {row.id for row in rows}


def sees(snapshot: str, transaction: int) -> bool:
    xmin, xmax, open = snapshot.split(":")
    return transaction < int(xmin) or (transaction < int(xmax) and str(transaction) not in open.split(","))


def say(**what: Any) -> None:
    print(json.dumps(what, default=str), flush=True)


def main(root: Path, postgres: Any) -> None:
    live = Live(root, postgres)
    postgres.query(SET_UP)
    slot = Slot(postgres, "shop.orders")
    postgres.query(FILL)
    capture = Capture(slot, live.landing)
    capture.start()
    job = ["spark-submit", str(PACKAGE / "ingestion" / "append.py"), "datastream", "--every", "2s"]
    append = subprocess.Popen(
        [*job, "--path", str(live.landing), "--staging", "lake.changes"], cwd=root, stdout=sys.stderr
    )
    # One of them has always a transaction open.
    pauses = ["2 + random() * 4", *["random() * 0.3"] * (WRITERS - 1)]
    writers = [postgres.start(WRITER.replace("PAUSE", pause)) for pause in pauses]
    positions: list[str] = []
    undelivered: list[float] = []
    try:
        while not live.spark.catalog.tableExists("lake.changes"):
            time.sleep(1)
        began = time.monotonic()
        for number in range(SNAPSHOTS):
            live.project.dbt("run", "--select", "orders")
            positions.append(live.snapshot(number))
            staged = live.staged()
            (run,) = live.test(number)
            before = [change for change in capture.captured if sees(positions[-1], change.transaction)]
            undelivered.append(sum(json.loads(change.record)["uuid"] not in staged for change in before) / len(before))
            say(
                snapshot=number, position=positions[-1], undelivered=undelivered[-1], naive=live.naive(number),
                **{name: run[name] for name in ("compared", "matched", "in_flight", "confirmed", "unprovable")},
            )  # fmt: skip
        say(seconds=time.monotonic() - began, changes=len(capture.captured))
    except BaseException:
        append.kill()
        raise
    finally:
        for writer in writers:
            writer.terminate()
            writer.wait()
        postgres.query(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where query like '%for round in%' and pid <> pg_backend_pid()"
        )
        capture.end()
    expected = {json.loads(change.record)["uuid"] for change in capture.captured}
    while not expected <= live.staged():
        assert append.poll() is None
        time.sleep(1)
    append.terminate()
    append.wait()
    live.project.dbt("run", "--select", "orders")
    live.snapshot(SNAPSHOTS)
    time.sleep(ALLOWANCE + 5)
    for run in live.test(*range(SNAPSHOTS + 1)):
        say(
            again=run["test"], rechecks=run["rechecks"], verdict=run["verdict"], compared=run["compared"],
            matched=run["matched"], confirmed=run["confirmed"], in_flight=run["in_flight"],
        )  # fmt: skip
    # And not only those that were in flight.
    live.spark.sql("delete from live.reconcile_parity")
    for run in live.test(*range(SNAPSHOTS + 1)):
        say(all_rows=run["test"], verdict=run["verdict"], compared=run["compared"], matched=run["matched"])


class Server:
    """The server that the test has started."""

    user, database = os.environ["LIVE_USER"], os.environ["LIVE_DATABASE"]
    password, port = os.environ["LIVE_PASSWORD"], int(os.environ["LIVE_PORT"])
    programs = Path(os.environ["LIVE_PROGRAMS"])

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


if __name__ == "__main__":
    main(Path(sys.argv[1]), Server())
