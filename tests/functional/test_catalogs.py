"""Names with a catalog, on Spark: see `in_several_catalogs.py`, which has a session of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from file_formats import CONFIGURATIONS, file_format

if file_format() != "delta":
    pytest.skip("its session has both formats", allow_module_level=True)

HERE = Path(__file__).parent
ICEBERG = "org.apache.iceberg.spark"
SETTINGS = {
    "spark.sql.extensions": ",".join(
        ["io.delta.sql.DeltaSparkSessionExtension", f"{ICEBERG}.extensions.IcebergSparkSessionExtensions"]
    ),
    "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
    "spark.sql.catalog.lake": f"{ICEBERG}.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.catalog.lake.warehouse": "lake",
    "spark.sql.catalog.lake.cache-enabled": "false",
    "spark.sql.catalog.ice": f"{ICEBERG}.SparkCatalog",
    "spark.sql.catalog.ice.type": "hive",
    "spark.sql.catalog.ice.cache-enabled": "false",
}


def configuration(directory: Path) -> Path:
    """Return a copy of conf/ with catalogs of Iceberg beside Delta, as docs/operations/catalogs.md has it."""
    shutil.copytree(CONFIGURATIONS["delta"], directory, ignore=shutil.ignore_patterns("iceberg", "shared*"))
    jars = [(CONFIGURATIONS[name] / "packages").read_text() for name in ("delta", "iceberg")]
    (directory / "packages").write_text("".join(jars))
    lines = (directory / "spark-defaults.conf").read_text().splitlines()
    kept = [line for line in lines if not line.startswith("spark.sql.extensions")]
    (directory / "spark-defaults.conf").write_text(
        "\n".join([*kept, *(f"{k} {v}" for k, v in SETTINGS.items())]) + "\n"
    )
    return directory


@pytest.mark.soak
def test_staging_models_and_snapshots_are_in_several_catalogs_of_one_session(tmp_path: Path) -> None:
    environment = {**os.environ, "SPARK_CONF_DIR": str(configuration(tmp_path / "conf"))}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (HERE.parent, HERE.parents[1] / "ingestion")))
    (tmp_path / "shop").mkdir()
    done = subprocess.run(
        [sys.executable, str(HERE / "in_several_catalogs.py")],
        cwd=tmp_path / "shop", env=environment, capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.endswith("all of it holds\n"), done.stdout[-6000:] + done.stderr[-6000:]
