"""append.py --dbt: one process appends and merges; a model that fails is tried again, and a stop loses nothing."""

import io
from threading import Event

import pytest
from datastream import event
from process.landings import Landing
from projects import Project
from reconcile_jobs.process.dbt_runs import DbtRuns, append_and_run

ORDERS = (
    "{{ config(materialized='current_state', unique_key='id') }}"
    "{{ reconcile.datastream_oracle(source('lake', '%s'), object='SHOP_ORDERS') }}"
)


def order(number):
    return event("oracle", f'{{"id": {number}}}', object="SHOP_ORDERS", metadata={"scn": number})


@pytest.fixture
def shop(spark, tmp_path, monkeypatch):
    landing = Landing(spark, tmp_path)
    project = Project(tmp_path / "project", landing.table.split(".")[1])
    schema, table = landing.table.split(".")
    project.source(schema, table)
    for model in ("orders", "broken"):
        project.model(model, ORDERS % table, {"id": "bigint"})
    monkeypatch.chdir(project.root)
    monkeypatch.setenv("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    yield landing, project
    spark.sql(f"DROP SCHEMA {project.schema} CASCADE")
    spark.sql(f"DROP TABLE {landing.table}")


def test_one_process_appends_and_merges_and_a_failed_model_is_tried_again(shop):
    landing, project = shop
    (project.root / "models" / "broken.sql").write_text("select no_such_column")
    stop, out = Event(), io.StringIO()
    dbt = DbtRuns("run --profiles-dir .", stop, out)
    passes = []

    def append():
        passes.append(len(passes))
        if len(passes) == 3:
            project.model("broken", ORDERS % landing.table.split(".")[1], {"id": "bigint"})
        if len(passes) == 4:
            stop.set()
        else:
            landing.put(f"{len(passes)}.json", order(len(passes)) + "\n")
        return landing.append()

    totals = append_and_run(append, dbt, 0.0, stop, lambda: False)
    assert (totals.files, totals.records, totals.first_batch, totals.last_batch) == (3, 3, 1, 3)
    assert (dbt.totals.runs, dbt.totals.failed_runs, dbt.totals.failed) == (3, 2, [])
    assert "no_such_column" in out.getvalue()
    for model in ("orders", "broken"):
        assert sorted(row.id for row in landing.spark.table(f"{project.schema}.{model}").collect()) == [1, 2, 3]


def test_a_stop_ends_dbt_between_two_statements_and_the_next_run_goes_on(shop):
    landing, project = shop
    landing.put("1.json", order(1) + "\n")
    landing.append()
    stop = Event()
    dbt = DbtRuns("run --select orders --profiles-dir .", stop, io.StringIO())
    dbt.run()
    landing.put("2.json", order(2) + "\n")
    landing.append()
    asked = []

    def stopping(event):
        asked.append(event.info.name == "SQLQuery")
        if sum(asked) == 12:
            stop.set()
        DbtRuns._between_statements(dbt, event)

    dbt._between_statements = stopping
    dbt.run()
    assert (dbt.totals.runs, dbt.totals.failed) == (2, [])
    stop.clear()
    asked.clear()
    DbtRuns("run --select orders --profiles-dir .", stop, io.StringIO()).run()
    rows = landing.spark.table(f"{project.schema}.orders").collect()
    assert sorted(row.id for row in rows) == [1, 2]
