"""Everything in a store that speaks S3, by configuration alone: landing area, checkpoint, staging and base tables.

The store is moto's server; Amazon's own was never met.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from cluster.spark_cluster import SECONDS, Cluster, listens, wait_for
from cluster.test_cluster import as_read, rows_of
from dbt_process import dbt, outcome
from file_formats import CONF, SHARED, file_format
from postgres import free_port
from projects import PACKAGE, Project
from truth import CAPTURE, COLUMNS, KEYS, declared, object_of, true_rows

pytestmark = pytest.mark.matrix

BUCKET, REGION, SECRET = "lake", "us-east-1", "a-secret-of-the-store"
# As docs/operations/object_stores.md says.
PACKAGES = "org.apache.hadoop:hadoop-aws:3.4.2 software.amazon.awssdk:bundle:2.29.52"


class Store:
    """A server, and the environment and the copy of conf/ by which it is found."""

    def __init__(self, root: Path) -> None:
        self.port = free_port()
        log = (root / "store.log").open("wb")
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        endpoint = f"http://127.0.0.1:{self.port}"
        conf = shutil.copytree(CONF, root / "conf", symlinks=True)
        self.conf = conf / SHARED[file_format()].name
        with (self.conf / "spark-defaults.conf").open("a") as settings:
            settings.write(f"spark.hadoop.fs.s3a.endpoint {endpoint}\nspark.hadoop.fs.s3a.path.style.access true\n")
        keys = {"aws_access_key_id": "key", "aws_secret_access_key": SECRET}
        self.client: Any = boto3.client("s3", endpoint_url=endpoint, region_name=REGION, **keys)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "SPARK_CONF_DIR": str(self.conf),
            "RECONCILE_WAREHOUSE": f"s3a://{BUCKET}/warehouse",
            "RECONCILE_PACKAGES": PACKAGES,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
        }

    def put(self, delivery: int) -> None:
        for file in sorted((CAPTURE / "oracle_json" / str(delivery)).rglob("*")):
            if file.is_file():
                name = file.relative_to(CAPTURE / "oracle_json")
                self.client.put_object(Bucket=BUCKET, Key=f"landing/{name}", Body=file.read_bytes())

    def names(self, prefix: str) -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [found["Key"] for page in pages for found in page.get("Contents", [])]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path)
    try:
        wait_for("the store", lambda: listens(store.port))
        store.client.create_bucket(Bucket=BUCKET)
        yield store
    finally:
        store.process.kill()


def test_the_lakehouse_in_a_store_that_speaks_s3_equals_the_source(store: Store, tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", more=store.environment) as cluster:
        project = Project(cluster.root / "project", "shop", target=cluster.target)
        project.source("lake", "oracle")
        for table in COLUMNS:
            call = f"reconcile.datastream_oracle(source('lake', 'oracle'), object='{object_of('oracle', table)}')"
            project.model(
                table,
                f"{{{{ config(materialized='current_state', unique_key={KEYS[table]}) }}}}\n{{{{ {call} }}}}\n",
                declared("oracle", table),
                data_tests=["reconcile.ledger_balances", "reconcile.no_quarantine"],
            )
        words = ["datastream", "--path", f"s3a://{BUCKET}/landing", "--staging", "lake.oracle"]
        words += ["--checkpoint", f"s3a://{BUCKET}/checkpoints/oracle"]
        for deliveries in ((1, 2), (3, 4)):
            for delivery in deliveries:
                store.put(delivery)
            append = cluster.submit("append", [], PACKAGE / "ingestion" / "append.py", *words)
            assert append.wait(SECONDS) == 0
            code, said = outcome(dbt(project.root, cluster.environment, "build"))
            assert code == 0, said[-3000:]
        for table in COLUMNS:
            assert rows_of(cluster, table) == as_read(true_rows(table)), table
        assert list(cluster.warehouse.iterdir()) == []
        logs = [file.read_text(errors="replace") for file in cluster.logs.iterdir()]
    for place in ("warehouse/lake.db/oracle/", "warehouse/shop.db/orders__base/", "checkpoints/oracle/commits/"):
        assert store.names(place), place
    assert not [log for log in logs if SECRET in log]
