"""A configuration with catalogs of Iceberg beside Delta, as docs/operations/catalogs.md has it; a project that uses it.

`spark_catalog` is Delta's. `lake` and `ice` are catalogs of Iceberg, in a directory and in Hive's metastore.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from file_formats import CONF
from projects import Project
from truth import COLUMNS, KEYS, declared, object_of

ICEBERG = "org.apache.iceberg.spark"
SETTINGS = {
    "spark.sql.extensions": ",".join(
        ["io.delta.sql.DeltaSparkSessionExtension", f"{ICEBERG}.extensions.IcebergSparkSessionExtensions"]
    ),
    "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
    "spark.sql.catalog.lake": f"{ICEBERG}.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.catalog.lake.cache-enabled": "false",
    "spark.sql.catalog.ice": f"{ICEBERG}.SparkCatalog",
    "spark.sql.catalog.ice.type": "hive",
    "spark.sql.catalog.ice.cache-enabled": "false",
}
STAGING = "lake.raw.oracle"
# What a project writes that has a macro of its own.
OWN_NAMES = """{% macro generate_schema_name(custom_schema_name, node) %}
  {{ return(reconcile.schema_in_catalog(custom_schema_name or target.schema, node)) }}
{% endmacro %}
"""
# Two models of Delta in the session's own catalog, and one of Iceberg. The ledger is in the schema of the profile.
CATALOG_OF = {"customers": "spark_catalog", "orders": "spark_catalog", "order_lines": "ice"}
SCHEMA_OF = {"spark_catalog": "mart", "ice": "mart_of_iceberg"}
LEDGER = "ice.accounts.reconcile_ledger"


def configuration(directory: Path, warehouse: str = "lake") -> Path:
    """Return a copy of conf/ that knows the three catalogs; the tables of `lake` are in the directory `warehouse`."""
    shutil.copytree(CONF, directory, symlinks=True)
    for kind in (directory, directory / "shared"):
        of_iceberg = directory / ("shared-iceberg" if kind.name == "shared" else "iceberg") / "packages"
        lines = (kind / "packages").read_text().splitlines() + of_iceberg.read_text().splitlines()
        (kind / "packages").write_text("".join(f"{line}\n" for line in dict.fromkeys(lines)))
        defaults = (kind / "spark-defaults.conf").read_text().splitlines()
        kept = [line for line in defaults if not line.startswith("spark.sql.extensions")]
        settings = SETTINGS | {"spark.sql.catalog.lake.warehouse": warehouse}
        kept += [f"{name} {value}" for name, value in settings.items()]
        (kind / "spark-defaults.conf").write_text("".join(f"{line}\n" for line in kept))
    return directory


def relation_of(table: str) -> str:
    """Return the name of the model of a table of the capture."""
    catalog = CATALOG_OF[table]
    return f"{catalog}.{SCHEMA_OF[catalog]}.{table}"


def declare_capture(project: Project) -> None:
    """Declare the capture's tables of Oracle in a project, in three catalogs of two formats."""
    (project.root / "macros").mkdir()
    (project.root / "macros" / "names.sql").write_text(OWN_NAMES)
    project.source(*STAGING.rsplit(".", 1))
    for table in COLUMNS:
        catalog = CATALOG_OF[table]
        file_format = "iceberg" if catalog == "ice" else "delta"
        call = f"reconcile.datastream_oracle(source('lake', 'oracle'), object='{object_of('oracle', table)}')"
        project.model(
            table,
            f"{{{{ config(materialized='current_state', unique_key={KEYS[table]}, schema='{SCHEMA_OF[catalog]}', "
            f"file_format='{file_format}', meta={{'catalog': '{catalog}'}}) }}}}\n{{{{ {call} }}}}\n",
            declared("oracle", table),
            data_tests=["reconcile.ledger_balances", "reconcile.no_quarantine"],
        )
