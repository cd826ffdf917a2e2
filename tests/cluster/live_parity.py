"""Snapshots of a PostgreSQL that is written to all the time, compared while its changes come late and in disorder.

test_live_parity.py runs it in a session of conf/shared, beside an append job. One line of JSON for each comparison.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from cluster.live_source import ALLOWANCE, Server, project_of_orders, say, snapshot_of_orders, written_to
from pyspark.sql import SparkSession
from reconcile_jobs.jdbc.connection import Source
from reconcile_jobs.jdbc.postgresql import PostgreSQL
from reconcile_jobs.staging import TableName

SNAPSHOTS = int(os.environ["LIVE_SNAPSHOTS"])


class Live:
    """The source's snapshots, and a project with a test for each."""

    def __init__(self, root: Path, postgres: Server, spark: SparkSession) -> None:
        self.spark = spark
        self.source = Source(PostgreSQL(), postgres.url, {"user": postgres.user, "password": postgres.password})
        names = [f"source_{number}" for number in range(SNAPSHOTS + 1)]
        tests = [
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
        ]
        self.project = project_of_orders(root, tests, *names)

    def snapshot(self, number: int) -> str:
        return snapshot_of_orders(self.spark, self.source, TableName.parse(f"lake.source_{number}"))

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


def main(root: Path, postgres: Server) -> None:
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    live = Live(root, postgres, spark)
    with written_to(root, postgres, spark) as source:
        began = time.monotonic()
        for number in range(SNAPSHOTS):
            live.project.dbt("run", "--select", "orders")
            position = live.snapshot(number)
            staged = source.staged()
            (run,) = live.test(number)
            say(
                snapshot=number, position=position, undelivered=source.undelivered(position, staged),
                naive=live.naive(number),
                **{name: run[name] for name in ("compared", "matched", "in_flight", "confirmed", "unprovable")},
            )  # fmt: skip
        say(seconds=time.monotonic() - began, changes=len(source.capture.captured))
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


if __name__ == "__main__":
    main(Path(sys.argv[1]), Server())
