"""Seconds to read a `fresh` view, which folds what is not merged yet, and to read its base table alone.

Staging holds changes of random keys as Datastream's records of PostgreSQL, or with `--typed` as columns that need no
parsing: nine of ten update a row, the others delete one or bring a new one. The two sides take turns in one Spark
session under the settings of conf/: the ratio is the median of pairs. Both read every column of every live row, once
to drop them and once to add up their hashes. The first rounds are not counted; for a dozen the JVM still compiles what
plans and reads a view, two processor seconds in each.

    python benchmarks/fresh.py [--rows 1000000 10000000] [--changes 100000] [--warm-up 3] [--repeats 5] [--typed]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]
os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "conf"))

from merge import CHANGE, COLUMNS, rows  # noqa: E402
from projects import Project  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

NAMES = ", ".join(COLUMNS)
# of a row of the first batch, lower than that of any change
SEQUENCE = "concat('0000/0/', lpad(hex(1795260792000), 16, '0'), '/1', lpad(hex(xxhash64(id)), 16, '0'))"


def staged(count: int, base_rows: int, batch: int, typed: bool) -> str:
    """SQL for a batch of staged records, of `count` random keys of which few come twice."""
    key = f"cast(rand({batch}) * {base_rows} as bigint)"
    keys = f"select if(key % 20 = 1, -key, key) as id from (select {key} as key from range({count}))"
    change_type = "case when id < 0 then 'INSERT' when id % 20 = 0 then 'DELETE' else 'UPDATE' end"
    if typed:
        return f"select *, lower({change_type}) as change_type from ({rows(keys, str(batch))})"
    payload = ", ".join(f"'{name}', {f'cast({name} as string)' if name == 'total' else name}" for name in COLUMNS)
    return f"""
        select to_json(named_struct(
                'uuid', uuid(), 'read_method', 'postgresql-cdc', 'object', 'shop_orders',
                'read_timestamp', '2026-11-21T11:34:06.415Z', 'source_timestamp', '2026-11-21T11:33:12Z',
                'source_metadata', named_struct('schema', 'shop', 'tx_id', '1', 'lsn', concat('{batch}/', hex(abs(id))),
                    'change_type', {change_type}),
                'payload', named_struct({payload})
            )) as record, 'datastream' as source, 'shop_orders' as object, 'none' as origin,
            cast({batch} as bigint) as batch, current_timestamp() as appended_at
        from ({rows(keys, str(batch))})"""


def prepare(spark: SparkSession, project: Project, schema: str, base_rows: int, changes: int, typed: bool) -> None:
    """A base table with `base_rows` rows, made by its own first run and then filled, and a staged batch after it."""
    spark.sql(f"create schema {schema}")
    spark.sql(f"create table {schema}.changes using delta as {staged(1, 2, 1, typed)}")
    project.source(schema, "changes")
    change = CHANGE.replace("'update' as", "change_type as")
    query = "{{ reconcile.datastream_postgresql(source('lake', 'changes'), object='shop_orders') }}"
    if typed:
        query = f"select {NAMES},{change} from {{{{ source('lake', 'changes') }}}}"
    config = "{{ config(materialized='current_state', unique_key='id', meta={'fresh': true}) }}"
    project.model("orders", f"{config}\n{query}", COLUMNS)
    project.dbt("run")
    spark.sql(f"delete from {schema}.orders__base")
    spark.sql(
        f"insert into {schema}.orders__base by name select {NAMES}, {SEQUENCE} as _change_sequence, "
        "timestamp'2026-01-01' as _change_time, 1L as _change_batch, false as _deleted "
        f"from ({rows(f'select id from range({base_rows})', '1')})"
    )
    spark.sql(f"insert into {schema}.changes by name {staged(changes, base_rows, 2, typed)}")


def drop_rows(spark: SparkSession, relation: str) -> None:
    """Read every column of every row, and keep nothing."""
    spark.sql(f"select {NAMES} from {relation}").write.format("noop").mode("overwrite").save()


def add_up(spark: SparkSession, relation: str) -> Any:
    """Read every column of every row; returns their number and a sum of their hashes."""
    return spark.sql(f"select count(*), sum(cast(xxhash64({NAMES}) as decimal(38,0))) from {relation}").first()


def measure(spark: SparkSession, base_rows: int, changes: int, warm_up: int, repeats: int, typed: bool) -> None:
    """Print the lines of the table for one size of base and batch."""
    schema = f"bench_{base_rows}_{changes}"
    with tempfile.TemporaryDirectory() as directory:
        project = Project(Path(directory) / "project", schema)
        prepare(spark, project, schema, base_rows, changes, typed)
        base, fresh = f"(select * from {schema}.orders__base where not _deleted)", f"{schema}.orders"
        for what, read in (("drop", drop_rows), ("add up", add_up)):
            seconds: dict[str, list[float]] = {base: [], fresh: []}
            for _ in range(warm_up + repeats):
                for relation, took in seconds.items():
                    began = time.monotonic()
                    read(spark, relation)
                    took.append(time.monotonic() - began)
            sides = [took[warm_up:] for took in seconds.values()]
            first = seconds[fresh][0]
            ratio = statistics.median(two / one for one, two in zip(*sides, strict=True))
            one, two = map(statistics.median, sides)
            print(
                f"{base_rows:>11,} {changes:>8,} {what:>8}{one:11.2f}{two:11.2f}{ratio:9.2f}{first:13.2f}", flush=True
            )
        before, there = add_up(spark, fresh), add_up(spark, base)
        project.dbt("run")
        after = add_up(spark, base)
        print(f"{'':11} equal to the merged rows: {before == after}; unmerged, the base differed: {there != after}")
    spark.sql(f"drop schema {schema} cascade")


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000], help="rows of the base table")
    parser.add_argument("--changes", type=int, default=100_000, help="changes that are not merged")
    parser.add_argument("--warm-up", type=int, default=3, help="rounds that are not counted")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--typed", action="store_true", help="changes that need no parsing")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        spark = SparkSession.builder.getOrCreate()
        print(f"{'base rows':>11} {'changes':>8} {'read':>8}{'base':>11}{'fresh':>11}{'ratio':>9}{'first fresh':>13}")
        for base_rows in arguments.rows:
            measure(spark, base_rows, arguments.changes, arguments.warm_up, arguments.repeats, arguments.typed)
        spark.stop()


if __name__ == "__main__":
    main()
