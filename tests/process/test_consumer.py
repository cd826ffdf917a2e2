"""A project that installs the package: what its user types works, each command in a process of its own."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from projects import PACKAGE
from pyspark.sql import SparkSession
from truth import CAPTURE, COLUMNS, lines, rows_of, true_rows

CONSUMER = PACKAGE / "tests" / "consumer"
KEYS = {table: next(iter(columns)) for table, columns in COLUMNS.items()}
INGESTION = "dbt_packages/reconcile/ingestion"


class Consumer:
    """A copy of tests/consumer, and what its user types there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(
            CONSUMER,
            root,
            ignore=shutil.ignore_patterns("target", "logs", "dbt_packages", "lakehouse", "package-lock.yml"),
        )
        packages = yaml.safe_load((root / "packages.yml").read_text())
        assert packages == {"packages": [{"local": "../.."}]}
        (root / "packages.yml").write_text(yaml.safe_dump({"packages": [{"local": str(PACKAGE)}]}))

    def types(self, *words: str, code: int = 0, configured: bool = True) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "SPARK_CONF_DIR": "dbt_packages/reconcile/conf"}
        if not configured:
            del environment["SPARK_CONF_DIR"]
        ended = subprocess.run(words, cwd=self.root, env=environment, capture_output=True, text=True)
        assert ended.returncode == code, ended.stdout + ended.stderr
        assert "Traceback" not in ended.stdout + ended.stderr
        return ended

    def is_killed(self, *words: str, **environment: str) -> None:
        """Type what kills itself, and everything that it started, with SIGKILL."""
        environment = {**os.environ, "SPARK_CONF_DIR": "dbt_packages/reconcile/conf", **environment}
        started = subprocess.Popen(
            words, cwd=self.root, env=environment, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        said, _ = started.communicate(timeout=300)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        assert started.returncode == -signal.SIGKILL, said


@pytest.fixture(scope="module")
def consumer(tmp_path_factory: pytest.TempPathFactory) -> Consumer:
    consumer = Consumer(tmp_path_factory.mktemp("consumer") / "shop")
    consumer.types("dbt", "deps")
    return consumer


def in_the_share(key: Any) -> bool:
    """Whether a row is one of those that are delivered here: what all of the capture comes to is not for processes."""
    return int(key) % 16 == 1


def deliver(landing: Path) -> list[str]:
    """Write a share of the capture as a landing area, and return its records."""
    told = [
        line.rstrip("\n")
        for table, key in KEYS.items()
        for line in lines("mysql", table)
        if in_the_share(json.loads(line)["payload"][key])
    ]
    landing.mkdir()
    (landing / "share.jsonl.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in told).encode()))
    return told


def export(file: Path) -> None:
    """Write the same share of the source's orders as the source exports them."""
    header, *rows = (CAPTURE / "truth" / "orders.csv").read_text().splitlines(keepends=True)
    file.write_text(header + "".join(row for row in rows if in_the_share(row.split(",")[0].strip('"'))))


@pytest.mark.soak
def test_append_run_test_and_parity_do_what_the_readme_has_though_append_and_run_were_killed_once(
    consumer: Consumer, spark: SparkSession
) -> None:
    append = ["spark-submit", f"{INGESTION}/append.py", "datastream", "--path", "landing", "--staging"]
    records = deliver(consumer.root / "landing")
    consumer.is_killed(*append, "lake.shop_changes", RECONCILE_FAILPOINT="after_data_commit")
    said = consumer.types(*append, "lake.shop_changes")
    assert json.loads(said.stdout)["records"] == len(records) > 900
    lake = consumer.root / "lakehouse" / "warehouse"
    staged = spark.sql(f"select record, batch from delta.`{lake}/lake.db/shop_changes`").collect()
    assert Counter(row.record for row in staged) == Counter(records)
    assert {row.batch for row in staged} == {1}

    export(consumer.root / "orders.csv")
    types = "id bigint, customer_id bigint, status string, total decimal(38,10), placed_at timestamp, due_on date, "
    of_a_csv = ["--path", "orders.csv", "--schema", f"{types} updated_at timestamp, ratio double", "--null", "\\N"]
    consumer.types("spark-submit", f"{INGESTION}/snapshot.py", "csv", *of_a_csv, "--into", "lake.orders_source")

    consumer.is_killed(sys.executable, str(Path(__file__).with_name("killed_dbt.py")), "after_merge", "run")
    ran = consumer.types("dbt", "--no-use-colors", "run")
    # The models of both projects and two hooks.
    models = len([*(PACKAGE / "models" / "monitoring").glob("*.sql"), *(CONSUMER / "models").glob("*.sql")])
    assert f"PASS={models + 2} WARN=0 ERROR=0 SKIP=0" in ran.stdout
    assert (ran.stderr, re.findall("WARN |deprecat", ran.stdout)) == ("", [])
    tested = consumer.types("dbt", "--no-use-colors", "test")
    assert "PASS=16 WARN=0 ERROR=0 SKIP=0" in tested.stdout  # fourteen tests and two hooks
    said = consumer.types("spark-submit", f"{INGESTION}/parity.py", "--results", "shop.reconcile_parity")
    assert json.loads(said.stdout)["comparisons"] == 1
    assert json.loads(said.stdout)["matched"] == json.loads(said.stdout)["compared"] > 50
    for table in COLUMNS:
        columns = ", ".join(COLUMNS[table])
        spark.sql(
            f"create or replace temporary view consumed as select {columns} from delta.`{lake}/shop.db/{table}__base` "
            "where not _deleted"
        )
        true = {row: count for row, count in true_rows(table).items() if in_the_share(row[0])}
        assert rows_of(spark, "consumed") == true
        spark.catalog.dropTempView("consumed")

    nodes = json.loads((consumer.root / "target" / "manifest.json").read_text())
    seen = [*nodes["nodes"].values(), *nodes["sources"].values()]
    package = {node["unique_id"] for node in seen if node["package_name"] == "reconcile"}
    models = {id_ for id_ in package if not id_.startswith("operation.")}
    views = ("drift", "lag", "models", "quarantine", "status", "unrouted")
    tables = ("columns_seen", "ledger", "parity", "parity_differences")
    assert models == {
        *(f"model.reconcile.reconcile_{name}" for name in views),
        *(f"source.reconcile.reconcile.reconcile_{name}" for name in tables),
    }, "none of the demo"
    own = Counter(node["resource_type"] for node in seen if node["package_name"] == "shop")
    assert own == {"model": 4, "source": 2, "test": 14}


@pytest.mark.soak
def test_without_its_spark_configuration_a_run_says_what_is_missing(consumer: Consumer) -> None:
    ended = consumer.types("dbt", "--no-use-colors", "run", code=2, configured=False)
    said = [line for line in ended.stdout.splitlines() if "SPARK_CONF_DIR" in line]
    assert said
    assert {line.strip() for line in said} == {
        "This Spark session is not configured for Delta: set SPARK_CONF_DIR to the package's conf/ directory "
        "(dbt_packages/reconcile/conf) and run again. With a Thrift server, set it where the server is started."
    }
