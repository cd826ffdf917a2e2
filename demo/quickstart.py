"""The quickstart: what one types in a project of one model, in a fresh copy of examples/quickstart; then its tables.

One process, because each start of Spark takes some ten seconds: it calls what the printed commands call.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = ROOT / "target" / "quickstart"
sys.path.insert(0, str(ROOT / "ingestion"))
os.environ |= {"DBT_PROFILES_DIR": ".", "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
# A JVM that lives for a minute spends more on compiling thoroughly than it gains. Spark's scripts read this variable.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")

import append  # noqa: E402
from dbt.cli.main import dbtRunner  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from reconcile_jobs.process.console import Console  # noqa: E402
from reconcile_jobs.process.shutdown import Shutdown  # noqa: E402

CONF = "dbt_packages/reconcile/conf"
WORDS = "datastream --path landing --staging lake.shop_changes --dbt build"
ROWS = "select id, customer, status, total, placed_at from shop.orders order by id"
REASONS = """
select concat('order ', get_json_object(record, '$.payload.id'), ': ', _change_error)
from shop.orders__quarantine
"""
COUNTS = """
select concat(
    'orders: ', delivered, ' records, ', applied, ' applied, ', superseded, ' superseded, ', duplicate, ' duplicate, ',
    quarantined, ' quarantined'
)
from shop.reconcile_ledger
"""


def main(console: Console, shutdown: Shutdown) -> None:
    """Make the copy anew, run the commands in it, and show the tables. Raises JobError."""
    started = time.monotonic()
    shutil.rmtree(PROJECT, ignore_errors=True)
    made = shutil.ignore_patterns("dbt_packages", "lakehouse", "logs", "package-lock.yml", "target")
    shutil.copytree(ROOT / "examples" / "quickstart", PROJECT, ignore=made)
    os.chdir(PROJECT)
    print("$ cd target/quickstart  # a copy of examples/quickstart\n$ dbt deps", flush=True)
    dbtRunner().invoke(["deps"])
    os.environ["SPARK_CONF_DIR"] = CONF
    print(f"$ export SPARK_CONF_DIR={CONF}", flush=True)
    print(f"$ spark-submit dbt_packages/reconcile/ingestion/append.py {WORDS}", flush=True)
    append.main(WORDS.split(), console, shutdown)

    spark = SparkSession.active()
    print("\norders, the rows:")
    spark.sql(ROWS).show(truncate=False)
    print("orders__quarantine, what could not be applied:")
    print(*(row[0] for row in spark.sql(REASONS).collect()), sep="\n")
    print("\nreconcile_ledger, the account:")
    print(*(row[0] for row in spark.sql(COUNTS).collect()), sep="\n")
    print(f"\nDone in {time.monotonic() - started:.0f} seconds.")


if __name__ == "__main__":
    console, shutdown = Console("quickstart"), Shutdown()
    shutdown.end(console.exit_code(lambda: main(console, shutdown)))
