"""The demo: a capture becomes tables that equal their source, delivery by delivery, in one process and Spark session.

What it calls is what the printed commands call; in one process, because each start of Spark takes some ten seconds.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "ingestion"))
os.environ["SPARK_CONF_DIR"] = str(ROOT / "conf")
os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
# A JVM that lives for minutes spends more on compiling thoroughly than it gains. Spark's scripts read this variable.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m")

from dbt.cli.main import dbtRunner  # noqa: E402
from pyspark.sql import Row, SparkSession  # noqa: E402
from reconcile_jobs import datastream  # noqa: E402
from reconcile_jobs.csv_records import Dialect  # noqa: E402
from reconcile_jobs.process import session  # noqa: E402
from reconcile_jobs.process.errors import JobError  # noqa: E402
from reconcile_jobs.snapshots.snapshot_csv import columns_of, load_csv  # noqa: E402
from reconcile_jobs.staging import TableName  # noqa: E402

DATA = Path("tests/data")
LAKEHOUSE = Path("lakehouse")
MARK = LAKEHOUSE / "made-by-the-demo"
DELIVERIES = (1, 2, 3, 4)

# The shop's tables: key, and columns as the source has them.
SHOP = {
    "customers": (
        "id",
        "id bigint, name string, email string, balance decimal(18,4), tier string, vip boolean, created_at timestamp, "
        "note string",
    ),
    "orders": (
        "id",
        "id bigint, customer_id bigint, status string, total decimal(38,10), placed_at timestamp, due_on date, "
        "updated_at timestamp, ratio double",
    ),
    "order_lines": (
        "order_id, line_no",
        "order_id bigint, line_no int, sku string, quantity int, price decimal(12,2), payload binary",
    ),
}
# Records, inserts, deletes, and the rows that these leave.
EXPERIMENT = (1000, 382, 194, 188)
COUNTS = ("delivered", "applied", "superseded", "duplicate", "quarantined")

WHY_SOME_DIFFER = {
    1: (
        "Some differ, as they must: the source's rows are those of the end. Changes of deliveries 2 to 4 are not there "
        "yet,\nand about 8 % of the changes come one or two deliveries late."
    ),
    2: "Superseded are records that lost to a newer one, in this delivery or in the table: late ones among them.",
    3: "What differs now waits for delivery 4.",
}


class Failed(Exception):
    """A step of the demo failed; the message says which and why."""


def main() -> int:
    """Run the demo in the repository's directory, and return its exit code."""
    started = time.monotonic()
    os.chdir(ROOT)
    print("A shop's changes in Oracle, as Datastream writes them to files, become tables that equal the source.")
    make_lakehouse()
    spark = session.start("demo")

    print("\nThe source's own rows, exported when all changes were made:")
    for table in SHOP:
        load_truth(spark, table)

    differing = -1
    for delivery in DELIVERIES:
        print(f"\nDelivery {delivery} of {len(DELIVERIES)}")
        land(DATA / "capture" / "oracle_json" / str(delivery), LAKEHOUSE / "landing" / "shop" / str(delivery))
        totals = append(spark, LAKEHOUSE / "landing" / "shop", "lake.shop_changes")
        dbt("run", "--select", "demo.oracle")
        differing = show_account(spark, {table: f"lake.{table}_source" for table in SHOP}, totals)
        if differing and delivery in WHY_SOME_DIFFER:
            print(WHY_SOME_DIFFER[delivery])

    print("\nThe proof")
    try:
        test("--select", "demo.oracle")
    finally:
        print(f"{differing} rows differ from the source")

    print("\nThe TABLE1 experiment: 1,000 operations on an Oracle table, compared with Oracle's export of it")
    differing += experiment(spark)
    print(f"\nDone in {time.monotonic() - started:.0f} seconds. The tables are in lakehouse/, to be looked at with")
    print("$ SPARK_CONF_DIR=conf PATH=.venv/bin:$PATH spark-sql -e 'select * from demo.reconcile_ledger'")
    return 1 if differing else 0


def make_lakehouse() -> None:
    """Begin with an empty lakehouse/. Raises Failed where there is one that no demo made."""
    if LAKEHOUSE.exists() and not MARK.exists():
        raise Failed("lakehouse/ is there, and not the demo's: move it away, or remove it with `make clean`")
    again = LAKEHOUSE.exists()
    shutil.rmtree(LAKEHOUSE, ignore_errors=True)
    LAKEHOUSE.mkdir()
    MARK.touch()
    print(f"Everything is written under lakehouse/{', where an earlier demo was removed' if again else ''}.")


def load_truth(spark: SparkSession, table: str) -> None:
    """Load a table's export, every value exact."""
    path, into = DATA / "capture" / "truth" / f"{table}.csv", f"lake.{table}_source"
    schema = SHOP[table][1]
    job = ["spark-submit", "ingestion/snapshot.py", "csv", "--path", path, "--into", into]
    command(*job, "--schema", schema, "--null", r"\N")
    rows = load_csv(spark, str(path), TableName.parse(into), columns_of(schema), Dialect(null=r"\N"))
    print(f"  {rows:,} rows")


def land(delivery: Path, landing: Path) -> None:
    """Let a delivery appear in the landing directory, whole."""
    coming = landing.parent / f".{landing.name}"
    shutil.copytree(delivery, coming)
    coming.rename(landing)


def append(spark: SparkSession, path: Path, staging: str) -> datastream.Totals:
    """Append what is new under the path to the staging table."""
    command("spark-submit", "ingestion/append.py", "datastream", "--path", path, "--staging", staging)
    return datastream.run(spark, datastream.Job(str(path), TableName.parse(staging)))


def show_account(spark: SparkSession, sources: dict[str, str], totals: datastream.Totals) -> int:
    """Print what the ledger says of the appended batches, and return how many rows differ from the sources."""
    lines: list[tuple[str, ...]] = [("model", "batch", *COUNTS, "rows", "rows that differ")]
    differ = 0
    for model, source in sources.items():
        account = one_row(
            spark,
            f"select first_batch, last_batch, {', '.join(COUNTS)} from demo.reconcile_ledger"
            f" where relation = 'demo.{model}' and first_batch = {totals.first_batch}",
        )
        rows, differing = compared(spark, f"demo.{model}", source, SHOP[model][0] if model in SHOP else "COL1")
        differ += differing
        batches = "-".join(map(str, sorted({account.first_batch, account.last_batch})))
        counts = [*(account[count] for count in COUNTS), rows, differing]
        lines.append((model, batches, *(f"{count:,}" for count in counts)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, *values in lines:
        print("  " + "  ".join([name.ljust(widths[0]), *(v.rjust(w) for v, w in zip(values, widths[1:], strict=True))]))
    return differ


def compared(spark: SparkSession, model: str, source: str, key: str) -> tuple[int, int]:
    """Return the model's number of rows, and for how many keys the two have not the very same rows.

    It does without `reconcile.parity`: a row that stands equally often on both sides cancels out.
    """
    columns = ", ".join(spark.table(model).columns)
    sides = f"select {columns}, 1 as side from {model} union all select {columns}, -1 as side from {source}"
    balances = f"select {key}, sum(side) as balance, count_if(side = 1) as rows from ({sides}) group by {columns}"
    row = one_row(
        spark,
        f"select coalesce(sum(rows), 0) as rows, count(distinct if(balance <> 0, struct({key}), null)) as differing"
        f" from ({balances})",
    )
    return int(row.rows), int(row.differing)


def one_row(spark: SparkSession, query: str) -> Row:
    """Return the only row of a query. Raises Failed where there is none."""
    row = spark.sql(query).first()
    if row is None:
        raise Failed(f"nothing is the answer to {query}")
    return row


def test(*selection: str) -> None:
    """Run dbt's tests, and print how many of each kind passed. Raises Failed where one did not."""
    results = dbt("test", *selection)
    passed = Counter(result.node.test_metadata.name for result in results if result.status == "pass")
    print("  passed: " + ", ".join(f"{number} x {name}" for name, number in passed.items()))


def dbt(*words: str) -> list[Any]:
    """Run dbt in this process. Raises Failed with what dbt said."""
    command("dbt", *words)
    outcome = dbtRunner().invoke(["--quiet", "--no-use-colors", *words, "--profiles-dir", "."])
    results = list(getattr(outcome.result, "results", []))
    if not outcome.success:
        # dbt has said itself what failed, if it came so far.
        why = f": {outcome.exception}" if outcome.exception else ""
        raise Failed(f"`dbt {shlex.join(words)}` failed{why}")
    return results


def experiment(spark: SparkSession) -> int:
    """Repeat the TABLE1 experiment, and return how many rows differ from the export."""
    land(DATA / "table1" / "USER1.TABLE1", LAKEHOUSE / "landing" / "table1" / "USER1.TABLE1")
    totals = append(spark, LAKEHOUSE / "landing" / "table1", "lake.table1_changes")
    dbt("seed", "--select", "table1_oracle_export")
    dbt("run", "--select", "demo.experiment")
    differing = show_account(spark, {"table1": "demo.table1_oracle_export"}, totals)
    test("--select", "demo.experiment")
    records, inserts, deletes = one_row(
        spark,
        "select count(*), count_if(_change_type = 'insert'), count_if(_change_type = 'delete')"
        " from demo.table1__changes",
    )
    rows = spark.table("demo.table1").count()
    print(f"{records:,} records, {inserts} inserts, {deletes} deletes, {rows} rows, {differing} differ from the export")
    if (records, inserts, deletes, rows) != EXPERIMENT:
        raise Failed("the experiment had {:,} records, {} inserts, {} deletes and {} rows".format(*EXPERIMENT))
    return differing


def command(*words: object) -> None:
    """Print the command that a user would type for what comes next."""
    print("$ " + shlex.join(map(str, words)), flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, JobError) as problem:
        print(f"demo: {problem}", file=sys.stderr)
        sys.exit(getattr(problem, "exit_code", 1))
