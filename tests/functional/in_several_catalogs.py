"""Jobs and dbt in one session with several catalogs; `test_catalogs.py` runs it with a configuration of its own."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import catalogs
import parity
import report
import snapshot
import status
import truth
import yaml
from datastream import event
from process.landings import Landing
from projects import Project
from pyspark.sql import SparkSession
from reconcile_jobs.process.console import Console

STAGING = "lake.raw.changes"
SPANS = "{{ reconcile.datastream_mysql(source('lake', 'changes'), 'shop.things') }}"
COLUMNS = {"id": "bigint", "name": "string"}
TESTED = ["reconcile.ledger_balances", "reconcile.no_quarantine", "reconcile.one_payload_per_sequence"]
AGAINST = {"compare_to": "source('kept', 'things')", "key": "id"}


def model(materialized: str, meta: str = "", schema: str = "") -> str:
    more = (f", meta={{{meta}}}" if meta else "") + (f", schema='{schema}'" if schema else "")
    return f"{{{{ config(materialized='{materialized}', unique_key='id'{more}) }}}}\n{SPANS}"


class Shop:
    """Deliveries of one table, and what its rows come to."""

    def __init__(self, root: Path) -> None:
        self.root, self.files, self.spark = root, 0, SparkSession.builder.getOrCreate()
        self.landing = Landing(self.spark, root)
        self.landing.table = STAGING

    def deliver(self, *changes: tuple[int, str | None]) -> None:
        """Append a batch of changes; a name of None is a delete."""
        self.files += 1
        lines = [
            event(
                "mysql", {"id": id_, "name": name}, "INSERT" if name else "DELETE",
                metadata={"log_position": 1000 * self.files + at},
            )
            for at, (id_, name) in enumerate(changes)
        ]  # fmt: skip
        self.landing.put(f"{self.files}.json", "\n".join(lines) + "\n")
        assert self.landing.append().last_batch == self.files

    def rows(self, relation: str, *columns: str) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, self.spark.table(relation).select(*(columns or COLUMNS)).collect()))

    def names(self, query: str) -> set[str]:
        return {row[0] for row in self.spark.sql(query).collect()}


def delta_beside_iceberg(shop: Shop) -> None:
    """Staging in a catalog of Iceberg, models of Delta in the session's own, a snapshot in a third."""
    project = Project(shop.root / "delta", "shop")
    project.source("lake.raw", "changes")
    (project.root / "models" / "kept.yml").write_text(
        yaml.safe_dump({"sources": [{"name": "kept", "schema": "ice.kept", "tables": [{"name": "things"}]}]})
    )
    tests = [*TESTED, "reconcile.no_drift", {"reconcile.parity": {"arguments": AGAINST}}]
    project.model("things", model("current_state"), COLUMNS, data_tests=tests)
    project.model("versions", model("history"), COLUMNS, data_tests=["reconcile.history_is_sound"])
    shop.deliver((1, "one"), (2, "two"))
    project.run()
    assert shop.rows("shop.things") == [(1, "one"), (2, "two")]
    shop.deliver((2, "deux"), (3, "three"), (1, None))
    project.run()
    after = [(2, "deux"), (3, "three")]
    assert shop.rows("shop.things") == after
    assert shop.names("select relation from shop.reconcile_ledger") == {"shop.things", "shop.versions"}
    shop.spark.createDataFrame(after, "id bigint, name string").createOrReplaceTempView("at_the_source")
    shop.spark.sql("create table lake.raw.at_the_source using iceberg as select * from at_the_source")
    snapshot.main(["table", "--table", "lake.raw.at_the_source", "--into", "ice.kept.things"], Console("snapshot"))
    project.dbt("test")
    assert shop.names("select compared_to from shop.reconcile_parity") == {"ice.kept.things"}
    assert shop.names("select verdict from shop.reconcile_parity") == {"match"}
    assert shop.spark.sql("select min(source_version) from shop.reconcile_parity").collect()[0][0]
    project.run(full_refresh=True)
    assert shop.rows("shop.things") == after
    assert shop.rows("shop.versions", "id", "name", "is_current") == [
        (1, "one", False), (2, "deux", True), (2, "two", False), (3, "three", True),
    ]  # fmt: skip
    project.dbt("run", "--vars", json.dumps({"as_of": {"batch": 1}}))
    assert shop.rows("shop_as_of.things") == [(1, "one"), (2, "two")]
    status.main(["--status", "spark_catalog.shop.reconcile_status"], Console("status"))
    words = ["--status", "spark_catalog.shop.reconcile_status", "--metrics", str(shop.root / "metrics.prom")]
    report.main(words, Console("report"))
    metrics = (shop.root / "metrics.prom").read_text()
    assert 'reconcile_model_parity{relation="shop.things",verdict="match"} 1\n' in metrics
    parity.main(["--results", "spark_catalog.shop.reconcile_parity"], Console("parity"))


def capture_in_three_catalogs(shop: Shop) -> None:
    """The capture: staging, base tables and the ledger each in a catalog, of two formats, and a model of Iceberg."""
    shop.landing.table = catalogs.STAGING
    project = Project(shop.root / "capture", "ice.accounts")
    catalogs.declare_capture(project)
    for deliveries in ((1, 2), (3, 4)):
        for delivery in deliveries:
            shutil.copytree(truth.CAPTURE / "oracle_json" / str(delivery), shop.landing.path / str(delivery))
        shop.landing.append()
        project.run()
    everything(shop)
    project.dbt("test")
    project.run()  # nothing is new
    project.run(full_refresh=True)
    everything(shop)


def everything(shop: Shop) -> None:
    for table in truth.COLUMNS:
        assert truth.differences(shop.spark, catalogs.relation_of(table), table) == [], table
    accounted = shop.names(f"select relation from {catalogs.LEDGER}")
    assert accounted == set(map(catalogs.relation_of, truth.COLUMNS))
    base = "spark_catalog.mart.orders__base"
    assert shop.spark.sql(f"describe detail {base}").first()["format"] == "delta"  # type: ignore[index]
    for relation in (catalogs.LEDGER, catalogs.STAGING, "ice.mart_of_iceberg.order_lines__base"):
        assert shop.spark.sql(f"select count(*) from {relation}.snapshots").first()[0] > 0  # type: ignore[index]


if __name__ == "__main__":
    shop = Shop(Path.cwd())
    {run.__name__: run for run in (delta_beside_iceberg, capture_in_three_catalogs)}[sys.argv[1]](shop)
    print("all of it holds")
