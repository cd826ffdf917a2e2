"""The file format of a project is that of the session."""

from __future__ import annotations

from pathlib import Path

from file_formats import file_format
from projects import Project
from pyspark.sql import SparkSession
from tables import tables_in

OTHER = {"delta": "iceberg", "iceberg": "delta"}[file_format()]
SAID = {
    "delta": "This Spark session is not configured for Delta: set SPARK_CONF_DIR to the package's conf/ directory",
    "iceberg": "This Spark session is not configured for Iceberg, the file_format of the models: set SPARK_CONF_DIR",
}
ONE = """
select 1L as id, 'insert' as _change_type, '1' as _change_sequence, '1' as _change_id,
    timestamp'2026-01-01' as _change_time, 1L as _change_batch, cast(null as array<string>) as _change_columns,
    cast(null as string) as _change_error
"""


def test_a_format_of_another_session_is_refused_before_anything_is_made(spark: SparkSession, tmp_path: Path) -> None:
    """What Spark says of its own configuration; tests/render has the other formats that cannot be."""
    project = Project(tmp_path / "project", "wrong_format")
    config = f"config(materialized='current_state', unique_key='id', file_format='{OTHER}')"
    project.model("model", f"{{{{ {config} }}}} {ONE}", {"id": "bigint"})
    outcome = project.dbt("run", succeed=False)
    said = str(outcome.exception) + str([result.message for result in getattr(outcome.result, "results", [])])
    assert not outcome.success and SAID[OTHER] in said, said
    assert tables_in(spark, "wrong_format") == set()
