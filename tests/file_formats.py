"""The format of the tests' tables: a session has one, and so has a run of the tests, by `--file-format`."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from reconcile_jobs.process import failpoints

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF = Path(__file__).resolve().parents[1] / "conf"
CONFIGURATIONS = {"delta": CONF, "iceberg": CONF / "iceberg"}
SHARED = {"delta": CONF / "shared", "iceberg": CONF / "shared-iceberg"}

_numbers = itertools.count()


def choose(name: str) -> None:
    """Let this process's sessions, and those of its subprocesses, have tables of this format."""
    os.environ["SPARK_CONF_DIR"] = str(CONFIGURATIONS[name])


def file_format() -> str:
    """The format that was chosen, as SQL and dbt's `file_format` call it."""
    return "iceberg" if Path(os.environ["SPARK_CONF_DIR"]).name == "iceberg" else "delta"


def failpoints_of_an_append() -> list[str]:
    """Where an append can be killed, in its order: Iceberg's are written and then published."""
    return [name for name in failpoints.NAMES if name != "before_publish" or file_format() == "iceberg"]


def table_at(spark: SparkSession, directory: Path) -> str:
    """Return a name in SQL of a table of another metastore, as it is now, by where it lies."""
    if file_format() == "delta":
        return f"delta.`{directory}`"
    # The last of Iceberg's metadata files is the one that the other metastore names.
    newest = max(directory.glob("metadata/*.metadata.json"), key=lambda file: file.stat().st_mtime_ns)
    name = f"elsewhere.t{next(_numbers)}"
    spark.sql("create schema if not exists elsewhere")
    spark.sql(f"call spark_catalog.system.register_table('{name}', '{newest}')")
    return name
