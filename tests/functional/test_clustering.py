"""Base tables that are clustered, on real tables: by the rebuild, by `maintain.py`, and through all that changes them.

No dbt: models are run by tests/plain_dbt.py.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from canaries import files_with
from file_formats import file_format
from functional.maintained_shop import CALL, Shop
from pyspark.sql import SparkSession
from reconcile_jobs.erasure.versions import delete_versions
from reconcile_jobs.retention.files import TableFiles, clustered_by
from reconcile_jobs.retention.tables import Tables
from reconcile_jobs.staging import TableName
from reconcile_jobs.table_formats import format_of
from tables import DELETED

NAMES = ("things", "past")
CANARY = "kanar07x8f3b"


def declare(shop: Shop, cluster_by: list[str] | None, id_type: str = "int") -> None:
    """Declare the models of the project `shop`, clustered or not."""
    for name, materialized in zip(NAMES, ("current_state", "history"), strict=True):
        meta = f", meta={{'cluster_by': {cluster_by}}}" if cluster_by else ""
        config = f"{{{{ config(materialized='{materialized}', unique_key='id'{meta}) }}}}"
        shop.projects["shop"].model(name, f"{config}\n{{{{ {CALL} }}}}", {"id": id_type, "name": "string"})


def base(shop: Shop, name: str) -> str:
    return f"{shop.projects['shop'].schema}.{name}__base"


def clustering(spark: SparkSession, table: str) -> list[str]:
    """Return the columns by which a table is clustered, as the table says it."""
    if file_format() == "delta":
        return list(spark.sql(f"describe detail {table}").select("clusteringColumns").collect()[0][0])
    return clustered_by(format_of(spark).properties(spark, table))


def data_files(spark: SparkSession, table: str) -> set[Path]:
    """Return the files that a table now has its rows in."""
    if file_format() == "delta":
        files = spark.table(table).inputFiles()
    else:
        files = [row[0] for row in spark.sql(f"select file_path from {table}.files where content = 0").collect()]
    assert files
    return {Path(file.removeprefix("file:")) for file in files}


def are_in_order(spark: SparkSession, table: str) -> bool:
    """Return whether each file of a table has its rows in order, and no two files have keys of one range.

    A key may have several versions. They may be on both sides of the end of a file.
    """
    ranges = []
    for file in data_files(spark, table):
        ids = pq.read_table(file, columns=["id"])["id"].to_pylist()
        if ids != sorted(ids):
            return False
        ranges.append((ids[0], ids[-1]))
    ranges.sort()
    return all(one[1] <= other[0] for one, other in pairwise(ranges))


def last_optimize(spark: SparkSession, table: str) -> Any:
    return spark.sql(f"describe history {table}").where("operation = 'OPTIMIZE'").orderBy("version").collect()[-1]


def check_balances(shop: Shop) -> None:
    for name in NAMES:
        assert shop.warehouse.sql(shop.projects["shop"].test("ledger_balances", name)).collect() == []


@pytest.mark.soak
def test_a_clustered_base_table_stays_clustered_and_has_the_same_rows(spark: SparkSession) -> None:
    shop, plain = Shop(spark, "clustered"), "name {}".format
    bases = [base(shop, name) for name in NAMES]
    declare(shop, ["id"])
    live = {number: plain(number) for number in (*range(40, 20, -1), *range(20))}

    def change(*numbers: int, text: str | None = None) -> None:
        shop.append(**{f"k{number}": text for number in numbers})
        shop.run("shop")
        live.update({number: text for number in numbers if text})
        for number in numbers if text is None else ():
            live.pop(number, None)
        assert shop.live("shop") == sorted(live.items())

    # The first run makes the tables, and each run leaves small files.
    shop.append(**{f"k{number}": name for number, name in live.items()})
    of = TableFiles(spark, Tables(spark, shop.staging))
    shop.run("shop")
    assert [clustering(spark, table) for table in bases] == [["id"]] * 2
    if file_format() == "iceberg":
        assert all(are_in_order(spark, table) for table in bases), "a rebuild writes the rows in order"
        assert all(len(data_files(spark, table)) > 1 for table in bases)
    for number in range(3):
        change(*range(number, 40, 5), text=f"again {number}")
    assert not any(are_in_order(spark, table) for table in bases)
    change(7, 8, text=None)
    rows = [shop.rows("shop", name) for name in NAMES]

    # The job compacts them in order.
    compacted = {done.table: (done.before, done.after) for done in shop.compact(deletes_versions=False).compacted}
    assert compacted.keys() >= {*bases}, compacted
    assert all(compacted[table][1] < compacted[table][0] for table in bases)
    assert [shop.rows("shop", name) for name in NAMES] == rows
    assert [clustering(spark, table) for table in bases] == [["id"]] * 2
    assert all(are_in_order(spark, table) for table in bases) or file_format() == "delta"
    if file_format() == "delta":
        assert [json.loads(last_optimize(spark, table).operationParameters["clusterBy"]) for table in bases] == [
            ["id"], ["id"]
        ]  # fmt: skip
    assert shop.compact(deletes_versions=False).compacted == [], "it is not done again"

    # Delta writes files anew that were clustered before, as long as they are few.
    change(3, 99, text="later")
    if file_format() == "delta":
        clustered = data_files(spark, bases[0])
        of.compact(TableName.parse(bases[0]))
        assert not clustered & data_files(spark, bases[0])
    check_balances(shop)

    # The column by which it is clustered becomes wider, without a rebuild.
    declare(shop, ["id"], "bigint")
    change(4, 100, text="wide")
    assert [clustering(spark, table) for table in bases] == [["id"]] * 2
    assert [spark.table(table).schema["id"].dataType.simpleString() for table in bases] == ["bigint"] * 2
    assert shop.compact(deletes_versions=False).failures == {}
    assert shop.live("shop") == sorted(live.items())

    # A copy is not clustered. A rebuild that begins with it is, and has the same rows.
    rows = [shop.rows("shop", name) for name in NAMES]
    shop.run("sales")
    assert shop.purge().batch == shop.batch
    for name in NAMES:
        assert clustering(spark, f"{shop.projects['shop'].schema}.{name}__snapshot") == []
    shop.run("shop", full_refresh=True)
    assert [shop.rows("shop", name) for name in NAMES] == rows
    assert [clustering(spark, table) for table in bases] == [["id"]] * 2
    check_balances(shop)

    # What is deleted from files that were clustered together is in no file afterwards.
    change(7, text=CANARY)
    directory = next(iter(data_files(spark, bases[0]))).parent
    of.compact(TableName.parse(bases[0]))
    change(7, text=None)
    spark.sql(f"delete from {bases[0]} where id = 7 and {DELETED[file_format()]}")
    assert files_with([CANARY], directory)[CANARY]
    if file_format() == "delta":
        before = data_files(spark, bases[0])
        spark.sql(f"reorg table {bases[0]} apply (purge)").collect()
        assert data_files(spark, bases[0]) == before, "REORG would do, without an UPDATE"
    delete_versions(spark, TableName.parse(bases[0]))
    assert files_with([CANARY], directory)[CANARY] == set()
    assert shop.live("shop") == sorted(live.items())
    assert clustering(spark, bases[0]) == ["id"]

    # A rebuild without the option.
    declare(shop, None, "bigint")
    shop.append(k1="last")
    shop.run("shop", full_refresh=True)
    live[1] = "last"
    assert [clustering(spark, table) for table in bases] == [[], []]
    assert shop.live("shop") == sorted(live.items())
    assert shop.compact(deletes_versions=False).failures == {}
    assert shop.live("shop") == sorted(live.items())
