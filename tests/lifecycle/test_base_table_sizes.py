"""A base table that grew is not taken for small: Spark would broadcast it whole, and run out of memory."""

from __future__ import annotations

from file_formats import file_format
from plain_dbt import PlainProject
from process.spark_warehouse import SparkWarehouse
from pyspark.sql import SparkSession
from tables import DELETED, bytes_of


def test_spark_knows_the_size_of_a_base_table_that_grew(spark: SparkSession) -> None:
    spark.sql("create schema sizes")
    spark.sql(
        f"create table sizes.changes using {file_format()} as "
        "select 1L as id, 'insert' as _change_type, '1' as _change_sequence, "
        "'1' as _change_id, timestamp'2026-01-01' as _change_time, 1L as _change_batch, "
        "cast(null as array<string>) as _change_columns, cast(null as string) as _change_error"
    )
    warehouse = SparkWarehouse(spark)
    project = PlainProject(warehouse, "sizes", file_format=file_format())
    project.source("sizes", "changes")
    project.model(
        "grown",
        "{{ config(materialized='current_state', unique_key='id') }} select * from {{ source('lake', 'changes') }}",
        {"id": "bigint"},
    )
    project.run("grown")
    spark.sql(
        "insert into sizes.grown__base by name select id, uuid() as _change_sequence, "
        f"timestamp'2026-01-01' as _change_time, 1L as _change_batch, false as {DELETED[file_format()]} "
        "from range(100000)"
    )
    known = warehouse.spark.table("sizes.grown__base")._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
    assert int(str(known)) >= bytes_of(spark, "sizes.grown__base") > 1_000_000
    # Wherever the metastore is of others, who keep the first size: no size that was not seen makes a broadcast.
    assert warehouse.spark.conf.get("spark.sql.autoBroadcastJoinThreshold") == "-1"
