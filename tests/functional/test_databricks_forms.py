"""The forms for Databricks, taken by a project on Delta in a local session, give the rows of the forms for Spark.

It shows that the statements mean the same. It shows nothing of Databricks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datastream import Staged, event, stage
from file_formats import file_format
from projects import Project
from pyspark.sql import SparkSession

STAGING = "lake_databricks_forms"
THING = {"id": "bigint", "name": "string"}
# The settings are those that a session of Databricks has by itself, but for one that only saves time.
FORMS = """
{% macro default__cached(name, query, lazy=false) %}
  {{ return(reconcile.databricks__cached(name, query, lazy)) }}
{% endmacro %}
{% macro default__get_session_statements() %}
  {{ return([
      'set spark.sql.constraintPropagation.enabled = false',
      'set spark.sql.legacy.storeAnalyzedPlanForView = false']) }}
{% endmacro %}
{% macro default__check_session(formats) %}
  {% do reconcile.databricks__check_session(formats) %}
{% endmacro %}
{% macro default__format_properties(file_format) %}
  {{ return(reconcile.databricks__format_properties(file_format)) }}
{% endmacro %}
{% macro default__format_of_catalog(catalog, otherwise) %}
  {{ return(reconcile.databricks__format_of_catalog(catalog, otherwise)) }}
{% endmacro %}
"""
OF_LEDGER = """select
    split_part(relation, '.', 2) as model, object, kind, first_batch, last_batch, delivered, applied, superseded,
    duplicate, quarantined, pending, inserted, updated, deleted, tombstoned, base_batch, entry
from {schema}.reconcile_ledger"""


def record(number: int | str, name: str, batch: int, change_type: str = "INSERT", **more: Any) -> Staged:
    metadata = {"log_position": 1000 * batch + (number if isinstance(number, int) else 999)}
    payload = {"id": number, "name": name, **more}
    return Staged(event("mysql", payload, change_type, metadata=metadata, object="shop.things"), "shop.things", batch)


def project(root: Path, schema: str, forms: str) -> Project:
    made = Project(root, schema)
    (made.root / "macros").mkdir()
    (made.root / "macros" / "forms.sql").write_text(forms)
    made.source(STAGING, "things")
    for name, materialized in (("rows", "current_state"), ("versions", "history")):
        config = f"{{{{ config(materialized='{materialized}', unique_key='id') }}}}"
        macro = "{{ reconcile.datastream_mysql(source('lake', 'things'), object='shop.things') }}"
        made.model(name, f"{config}\n{macro}", THING, data_tests=["reconcile.ledger_balances"])
    return made


def results(spark: SparkSession, schema: str) -> dict[str, list[str]]:
    """Return the rows of all that a project has made, but for times and names of its own."""
    found = {
        name: spark.table(f"{schema}.{name}")
        for model in ("rows", "versions")
        for name in (model, f"{model}__base", f"{model}__quarantine")
    }
    seen = f"{schema}.reconcile_columns_seen"
    found["reconcile_columns_seen"] = spark.sql(f"select * except (relation) from {seen}")
    found["reconcile_ledger"] = spark.sql(OF_LEDGER.format(schema=schema))
    return {name: sorted(map(repr, frame.collect())) for name, frame in found.items()}


@pytest.mark.soak
@pytest.mark.skipif(file_format() != "delta", reason="Databricks has tables of Delta")
def test_the_forms_for_databricks_give_the_rows_of_those_for_spark(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"create schema if not exists {STAGING}")
    sides = {
        "databricks_forms": project(tmp_path / "databricks", "databricks_forms", FORMS),
        "spark_forms": project(tmp_path / "spark", "spark_forms", ""),
    }
    batches = [
        [record(1, "one", 1), record(2, "two", 1), record("no number", "three", 1)],
        # A column that is new, a delete, and a second record that cannot be read.
        [record(1, "uno", 2, "UPDATE", size=7), record(2, "", 2, "DELETE"), record(4, "four", 2),
         record("none", "five", 2)],
    ]  # fmt: skip
    for batch in batches:
        stage(spark, f"{STAGING}.things", batch)
        for side in sides.values():
            side.dbt("build")
        ours, theirs = (results(spark, schema) for schema in sides)
        assert ours == theirs
    assert len(ours["rows"]) == 2 and len(ours["rows__quarantine"]) == 2 and len(ours["versions"]) > 2
    assert any("size" in row for row in ours["reconcile_columns_seen"])
    sides["databricks_forms"].dbt("run", "--full-refresh")
    rebuilt = results(spark, "databricks_forms")
    assert all(rebuilt[name] == theirs[name] for name in ("rows", "versions"))
    made = {row[0]: row[1] for row in spark.sql("show tblproperties databricks_forms.rows__base").collect()}
    assert made["delta.isolationLevel"] == "Serializable"
