"""The files of examples/quickstart give the rows, the reason and the counts that the README shows."""

from __future__ import annotations

import re
from typing import Any

import yaml
from datastream import Staged
from memory import Memory
from plain_dbt import PACKAGE
from pyspark.sql import SparkSession

EXAMPLE = PACKAGE / "examples" / "quickstart"
README = (PACKAGE / "README.md").read_text()
COUNTS = ("applied", "superseded", "duplicate", "quarantined")


def test_the_readme_shows_what_comes_of_the_examples_records(spark: SparkSession) -> None:
    records = [line for file in EXAMPLE.glob("landing/**/*.jsonl") for line in file.read_text().splitlines()]
    (model,) = yaml.safe_load((EXAMPLE / "models" / "orders.yml").read_text())["models"]
    columns: dict[str, Any] = {column["name"]: column["data_type"] for column in model["columns"]}
    with Memory(spark) as memory:
        memory.stage("lake.shop_changes", [Staged(record, "shop_orders", 1) for record in records])
        shop = memory.project("shop")
        shop.source("lake", "shop_changes")
        sql = (EXAMPLE / "models" / "orders.sql").read_text()
        shop.model("orders", sql, columns, config=model["config"])
        shop.run("orders")

        lines = re.findall(r"^\|(?! )(.*)\|$", README.partition("## A model")[0], re.M)  # Spark's table, not Markdown's
        header, *shown = ([cell.strip() for cell in line.split("|")] for line in lines)
        rows = memory.table("shop.orders").orderBy("id").selectExpr(*(f"cast({name} as string)" for name in header))
        assert [list(row) for row in rows.collect()] == shown
        (quarantined,) = memory.rows("shop.orders__quarantine")
        assert f"\norder 10: {quarantined._change_error}\n" in README
        (account,) = memory.rows("shop.reconcile_ledger")
        counts = ", ".join(f"{account[count]} {count}" for count in COUNTS)
        assert f"\norders: {account.delivered} records, {counts}\n" in README
