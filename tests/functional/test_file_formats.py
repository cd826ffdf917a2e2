"""The file format of a project: its models have one, and it is that of the session."""

from __future__ import annotations

from pathlib import Path

import pytest
from file_formats import file_format
from projects import Project
from pyspark.sql import SparkSession
from tables import tables_in

OTHER = {"delta": "iceberg", "iceberg": "delta"}[file_format()]
SAID = {
    "delta": "This Spark session does not know Delta: set SPARK_CONF_DIR to the package's conf/ directory",
    "iceberg": "This Spark session does not know Iceberg, which the models' file_format asks for: set SPARK_CONF_DIR",
}
ONE = """
select 1L as id, 'insert' as _change_type, '1' as _change_sequence, '1' as _change_id,
    timestamp'2026-01-01' as _change_time, 1L as _change_batch, cast(null as array<string>) as _change_columns,
    cast(null as string) as _change_error
"""


@pytest.mark.parametrize(
    ("formats", "sentence"),
    [
        ([OTHER], SAID[OTHER]),
        (["orc"], "The file_format orc of model_0 is not supported; use delta or iceberg."),
        (
            ["delta", "iceberg", "delta"],
            "The models of this project have several file formats: delta (model_0, model_2) and iceberg (model_1).",
        ),
    ],
    ids=["of another session", "of none", "of several"],
)
def test_a_format_that_cannot_be_is_refused_in_a_sentence(
    spark: SparkSession, tmp_path: Path, formats: list[str], sentence: str
) -> None:
    project = Project(tmp_path / "project", "wrong_format")
    for number, name in enumerate(formats):
        config = f"config(materialized='current_state', unique_key='id', file_format='{name}')"
        project.model(f"model_{number}", f"{{{{ {config} }}}} {ONE}", {"id": "bigint"})
    outcome = project.dbt("run", succeed=False)
    said = str(outcome.exception) + str([result.message for result in getattr(outcome.result, "results", [])])
    assert not outcome.success and sentence in said, said
    assert tables_in(spark, "wrong_format") == set()


@pytest.mark.parametrize(
    ("meta", "config", "sentence"),
    [
        ({"buckets": 0}, "", "meta buckets: '0' is no number of buckets"),
        ({"buckets": True}, "", "meta buckets: 'True' is no number of buckets"),
        ({"buckets": 4}, ", materialized='current_view'", "meta buckets is of base tables"),
        ({"buckets": 4}, ", partition_by='id'", "meta buckets and partition_by do not go together"),
        ({"buckets": 4}, ", unique_key=['ratio', 'id']", "Iceberg has no buckets of a double"),
    ],
)
def test_buckets_that_cannot_be_are_refused_in_a_sentence(
    spark: SparkSession, tmp_path: Path, meta: dict[str, object], config: str, sentence: str
) -> None:
    if file_format() == "delta" and meta == {"buckets": 4}:
        sentence = "meta buckets is of models of file_format iceberg, and this one is delta; remove it"
    project = Project(tmp_path / "project", "wrong_buckets")
    defaults = {"materialized": "'current_state'", "unique_key": "'id'"}
    config = "".join(f", {name}={value}" for name, value in defaults.items() if name not in config) + config
    project.model("model", f"{{{{ config(meta={meta}{config}) }}}} {ONE}", {"id": "bigint", "ratio": "double"})
    outcome = project.dbt("run", "--select", "model", succeed=False)
    said = str([result.message for result in outcome.result.results])
    assert not outcome.success and sentence in said, said
