"""Tables that this package made of a share of the capture, kept as files: later versions show that they open them.

python tests/kept_tables.py 2026-11 --file-format iceberg

makes tests/data/kept/2026-11/iceberg.tar.gz with the code as it is. What is there is never made anew: it is what users
have.
Iceberg's files name each other by absolute paths, so the tables are made and opened at one place, `PLACE`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import tarfile
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import file_formats
from datastream import in_base64
from plain_dbt import PlainProject
from process.spark_warehouse import SparkWarehouse
from truth import COLUMNS, KEYS, SOURCES, counted, declared, object_of, true_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT = Path(__file__).parent / "data" / "kept"
PLACE = Path("/tmp/dbt-reconcile-kept-tables")
SCHEMA, LAKE = "kept", "kept_lake"
# What the kept tables were made of. What comes next is kept beside them, in the form that the capture had then.
MADE_OF, NEXT = (1, 2, 3), 4
# Made when the capture had the form of Datastream's documentation: objects as `shop.orders`, all bytes in base64.
DOCUMENTED_FORM = ("2026-11",)
HISTORIES = ("orders",)
MODELS = {
    f"{source}_{table}{end}": (source, table, materialized)
    for source in SOURCES
    for table in COLUMNS
    for end, materialized in (("", "current_state"), ("_past", "history"))
    if materialized == "current_state" or table in HISTORIES
}


def in_the_share(row: tuple[Any, ...]) -> bool:
    """Whether a row is of the share of the capture that the tables hold: by the first column, which is of the key."""
    return int(row[0]) % 32 == 1


class KeptTables:
    """The staging tables, base tables, quarantines and the ledger, and the project that they are of."""

    def __init__(self, spark: SparkSession, models: tuple[str, ...], made: str) -> None:
        self.spark, self.models, self.made = spark, models, made
        self.warehouse = SparkWarehouse(spark)
        self.project = PlainProject(self.warehouse, SCHEMA, file_format=file_formats.file_format())
        self.project.source(LAKE, *SOURCES)
        for name in models:
            source, table, materialized = MODELS[name]
            object_, columns = object_of(source, table), declared(source, table)
            if made in DOCUMENTED_FORM:
                object_, columns = object_.replace("_", ".", 1), in_base64(COLUMNS[table])
            call = f"reconcile.datastream_{source}(source('lake', '{source}'), object='{object_}')"
            self.project.model(
                name,
                f"{{{{ config(materialized='{materialized}', unique_key={KEYS[table]}) }}}}\n{{{{ {call} }}}}",
                columns,
                data_tests=["ledger_balances", "no_quarantine"],
            )
        for schema in (SCHEMA, LAKE):
            spark.sql(f"create schema {schema} location '{PLACE}/{schema}.db'")

    def deliver(self, *deliveries: int) -> None:
        """Append the share of these deliveries, each as a batch."""
        from reconcile_jobs import datastream
        from reconcile_jobs.process.caller import Caller, silence
        from reconcile_jobs.staging import TableName

        for source in sorted({MODELS[name][0] for name in self.models}):
            for delivery in deliveries:
                file = PLACE / "landing" / source / f"{delivery}.jsonl.gz"
                file.parent.mkdir(parents=True, exist_ok=True)
                kept = next_of(self.made, source)
                file.write_bytes(kept.read_bytes() if delivery == NEXT else _share(source, delivery))
                job = datastream.Job(
                    path=str(file.parent),
                    staging=TableName.parse(f"{LAKE}.{source}"),
                    checkpoint=str(PLACE / "checkpoints" / source),
                )
                datastream.run(self.spark, job, Caller(threading.Event(), silence, silence))

    def run(self, **how: bool) -> dict[str, str]:
        """Run the models, and return what each says."""
        self.project.context["invocation_id"] = str(uuid.uuid4())
        return self.project.run(*self.models, **how)

    def rows(self, name: str) -> Counter[tuple[Any, ...]]:
        """Return the present rows of a model."""
        table = MODELS[name][1]
        rows = self.spark.table(f"{SCHEMA}.{name}")
        is_history = MODELS[name][2] == "history"
        return counted((rows.where("is_current") if is_history else rows).select(*COLUMNS[table]))

    def true_rows(self, name: str) -> Counter[tuple[Any, ...]]:
        """Return the rows that the source has in the end."""
        true = true_rows(MODELS[name][1])
        return Counter({row: count for row, count in true.items() if in_the_share(row)})

    def close(self) -> None:
        for schema in (SCHEMA, LAKE):
            self.spark.sql(f"drop schema if exists {schema} cascade")
        shutil.rmtree(PLACE, ignore_errors=True)


@contextmanager
def opened(spark: SparkSession, kept: Path, models: tuple[str, ...]) -> Iterator[KeptTables]:
    """Register a copy of kept tables, as a metastore that survived would have them; the views are gone."""
    shutil.rmtree(PLACE, ignore_errors=True)
    shutil.unpack_archive(kept / f"{file_formats.file_format()}.tar.gz", PLACE, filter="data")
    if file_formats.file_format() == "delta":
        # Delta keeps a table by its path, and another test's copies were there.
        jvm: Any = spark._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    tables = KeptTables(spark, models, kept.name)
    try:
        for schema in (SCHEMA, LAKE):
            for table in sorted(path.name for path in (PLACE / f"{schema}.db").iterdir()):
                _register(spark, schema, table)
        yield tables
    finally:
        tables.close()


def _register(spark: SparkSession, schema: str, table: str) -> None:
    place = PLACE / f"{schema}.db" / table
    if file_formats.file_format() == "delta":
        spark.sql(f"create table {schema}.{table} using delta location '{place}'")
    else:
        newest = max(place.glob("metadata/*.metadata.json"), key=lambda file: int(file.name.split("-")[0]))
        spark.sql(f"call spark_catalog.system.register_table('{schema}.{table}', '{newest}')")


def next_of(made: str, source: str) -> Path:
    """Return the file with the share of the delivery that comes next."""
    return KEPT / made / "next" / f"{source}.jsonl.gz"


def _share(source: str, delivery: int) -> bytes:
    from shop import records

    told = []
    for table, columns in COLUMNS.items():
        key = next(iter(columns))
        for record in records(source, table, "json", delivery):
            payload = json.loads(record)["payload"]
            if in_the_share((payload[key.upper() if source == "oracle" else key],)):
                told.append(record + "\n")
    return gzip.compress("".join(told).encode(), mtime=0)


def make(name: str) -> None:
    """Make tables with the code as it is, and keep their files."""
    from pyspark.sql import SparkSession

    kept = KEPT / name / f"{file_formats.file_format()}.tar.gz"
    assert not kept.exists(), f"{kept} is there: it is what users have"
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir()
    os.chdir(PLACE)
    tables = KeptTables(SparkSession.builder.getOrCreate(), tuple(MODELS), name)
    for delivery in MADE_OF:
        tables.deliver(delivery)
        tables.run()
    for source in SOURCES:
        file = next_of(name, source)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_share(source, NEXT))
    with tarfile.open(kept, "w:gz") as archive:
        archive.add(PLACE, arcname=".", filter=_of_tables)
    tables.close()


def _of_tables(file: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if file.name in ("./lakehouse", "./landing") or file.name.endswith(".crc") else file


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the directory: when they were made")
    parser.add_argument("--file-format", choices=list(file_formats.CONFIGURATIONS), default="delta")
    asked = parser.parse_args()
    file_formats.choose(asked.file_format)
    make(asked.name)
