"""What Spark refuses of a statement of dbt's, in a job: one sentence, and nothing of Java, on the format of the run."""

import io
import time
from contextlib import redirect_stdout
from threading import Event, Thread

import pytest
from projects import Project
from reconcile_jobs.process.dbt_commands import invoke


@pytest.fixture
def shop(spark, tmp_path, monkeypatch):
    project = Project(tmp_path / "project", "run_dbt_shop")
    spark.sql(f"CREATE SCHEMA {project.schema}")
    monkeypatch.chdir(project.root)
    monkeypatch.setenv("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    yield spark, project
    spark.sql(f"DROP SCHEMA {project.schema} CASCADE")


def run(model, stop=None, cancel=None):
    """Run a model, and return what dbt printed and its result."""
    out = io.StringIO()
    words = ["run", "--select", model, "--profiles-dir", ".", "--no-use-colors"]
    with redirect_stdout(out):
        done = invoke(words, stop or Event(), cancel)
    return out.getvalue(), done


def test_a_failure_in_a_task_is_one_sentence_and_wrong_sql_keeps_its_place(shop, capfd):
    _, project = shop
    raising = "select if(id > 0, raise_error('Row 1 is odd'), id) as id from range(3)"
    project.model("raising", "{{ config(materialized='table') }} " + raising, {})
    project.model("wrong", "{{ config(materialized='table') }} select no_such_column from range(3)", {})
    said, done = run("raising")
    assert not done.success and "Row 1 is odd" in said
    assert "\tat " not in said and len(said.splitlines()) < 30
    said, done = run("wrong")
    assert not done.success and "no_such_column" in said and "\tat " not in said
    assert "QueryContextLogger" not in capfd.readouterr().err


def test_a_job_that_is_asked_to_stop_cancels_the_statement_that_runs(shop):
    spark, project = shop
    endless = "select count(*) as n from range(1000000) as a cross join range(1000000) as b where hash(a.id, b.id) = 7"
    project.model("endless", "{{ config(materialized='table') }} " + endless, {})
    stop = Event()
    jobs = spark.sparkContext.statusTracker()

    def ask():
        while not jobs.getActiveJobsIds():
            time.sleep(0.2)
        stop.set()

    asking = Thread(target=ask)
    asking.start()
    said, done = run("endless", stop, spark.sparkContext.cancelAllJobs)
    asking.join()
    assert stop.is_set() and not done.success
    assert "The job was asked to stop, and this statement wrote nothing" in said
    assert not spark.catalog.tableExists(f"{project.schema}.endless")
