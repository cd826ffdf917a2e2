"""Models of a PostgreSQL that is written to all the time, of whose changes a part is lost, repaired by snapshots.

test_live_repair.py runs it in a session of conf/shared, beside an append job. One line of JSON for each repair.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import datetime
from pathlib import Path

from cluster.live_source import COLUMNS, LONGEST_DELAY, Server, project_of_orders, say, snapshot_of_orders, written_to
from pyspark.sql import SparkSession
from reconcile_jobs.jdbc.connection import Source
from reconcile_jobs.jdbc.postgresql import PostgreSQL
from reconcile_jobs.process.errors import Fault
from reconcile_jobs.snapshot_job import Job, run
from reconcile_jobs.staging import TableName

REPAIRS, LOST = int(os.environ["LIVE_REPAIRS"]), 0.05
STAGING, COPY = TableName.parse("lake.changes"), TableName.parse("lake.orders_source")


class Live:
    """Models of the source's table, and what they have shown so far."""

    def __init__(self, root: Path, postgres: Server, spark: SparkSession) -> None:
        self.spark = spark
        self.source = Source(PostgreSQL(), postgres.url, {"user": postgres.user, "password": postgres.password})
        self.project = project_of_orders(root, ["reconcile.ledger_balances"])
        self.project.model(
            "orders_history",
            "{{ config(materialized='history', unique_key='id') }}\n"
            "{{ reconcile.datastream_postgresql(source('lake', 'changes'), 'shop.orders') }}",
            COLUMNS,
            data_tests=["reconcile.ledger_balances"],
        )
        # When a row was written last, by the source's clock: of rows that are gone, too.
        self.newest: dict[int, datetime] = {}
        self.runs, self.set_back = 0, list[int]()

    def run(self) -> None:
        """Run the models, and watch whether a row shows an older value than it has shown before."""
        self.project.dbt("run")
        self.runs += 1
        for row in self.spark.table("live.orders").select("id", "updated_at").collect():
            if row.updated_at < self.newest.get(row.id, row.updated_at):
                self.set_back.append(row.id)
            self.newest[row.id] = row.updated_at

    def stage_snapshot(self) -> str:
        """Take a snapshot, and stage it. Where the job of the log appends at the same moment, once more."""
        position = snapshot_of_orders(self.spark, self.source, COPY)
        for attempt in range(10):
            try:
                run(self.spark, Job(table=COPY, staging=STAGING, key=("id",)))
                return position
            except Fault:
                time.sleep(attempt)
        raise AssertionError("ten appends of the log came first")

    def differing(self) -> int:
        """Return how many rows of both models are not those of the last snapshot."""
        names = ", ".join(COLUMNS)
        source = self.spark.sql(f"select {names} from {COPY.sql}")
        found = 0
        for shown in ("live.orders", "live.orders_history where is_current"):
            rows = self.spark.sql(f"select {names} from {shown}")
            found += rows.exceptAll(source).unionAll(source.exceptAll(rows)).select("id").distinct().count()
        return found

    def repaired(self) -> int:
        """Return how many rows snapshots have changed."""
        sql = "select coalesce(sum(inserted + updated + deleted), 0) from live.reconcile_ledger where kind = 'snapshot'"
        return int(self.spark.sql(sql).collect()[0][0])


def main(root: Path, postgres: Server) -> None:
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    live = Live(root, postgres, spark)
    with written_to(root, postgres, spark, LOST) as source:
        for number in range(REPAIRS):
            live.run()
            position = live.stage_snapshot()
            source.keep_appending()
            live.run()
            source.keep_appending()
            live.run()
            say(repair=number, position=position, lost=source.capture.lost, repaired=live.repaired())
    # Changes are lost after the last snapshot, too.
    live.run()
    time.sleep(LONGEST_DELAY)
    live.stage_snapshot()
    before = live.differing()
    live.run()
    say(
        before=before, after=live.differing(), lost=source.capture.lost, changes=len(source.capture.captured),
        repaired=live.repaired(), runs=live.runs, set_back=live.set_back,
    )  # fmt: skip
    live.project.dbt("test")
    live.project.dbt("run", "--full-refresh")
    say(rebuilt=live.differing())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Server())
