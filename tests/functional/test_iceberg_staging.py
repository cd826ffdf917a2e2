"""What is Iceberg's own of a staging table: appends are written, and then published, once."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from file_formats import file_format
from pyspark.sql import DataFrame, SparkSession
from reconcile_jobs import table_formats
from reconcile_jobs.process import failpoints
from reconcile_jobs.process.errors import Fault, UsageError, explained
from reconcile_jobs.staging import Staging, TableName

pytestmark = pytest.mark.skipif(file_format() != "iceberg", reason="run with --file-format iceberg")

numbers = itertools.count()


class Table:
    """A staging table, and appends to it."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark, self.name = spark, f"iceberg_staging.t{next(numbers)}"

    def open(self) -> Staging:
        return Staging(self.spark, TableName.parse(self.name), "a job")

    def append(self, epoch: int, rows: int = 1, staging: Staging | None = None) -> int | None:
        """Append rows of two objects."""
        records = self.spark.range(rows).selectExpr(
            f"concat('{epoch} ', id) AS record", "if(id % 2 = 0, 'A', 'B') AS object", "'a file' AS origin"
        )
        return (staging or self.open()).append(records, "datastream", "a query", "file:/here", epoch, ["f"]).batch

    def batches(self) -> Counter[int]:
        return Counter(row.batch for row in self.spark.table(self.name).select("batch").collect())

    def metadata(self, kind: str) -> DataFrame:
        return self.spark.table(f"spark_catalog.{self.name}.{kind}")

    def call(self, procedure: str) -> None:
        self.spark.sql(f"CALL spark_catalog.system.{procedure}").collect()


@pytest.fixture
def table(spark: SparkSession) -> Iterator[Table]:
    made = Table(spark)
    yield made
    spark.sql(f"DROP TABLE IF EXISTS {made.name}")


def killed_at(place: str) -> Any:
    def reach(reached: str) -> None:
        if reached == place:
            raise KeyboardInterrupt

    return reach


def test_a_table_has_format_version_3_and_no_bounds_of_records(table: Table):
    table.append(0, rows=10)
    properties = {row.key: row.value for row in table.spark.sql(f"SHOW TBLPROPERTIES {table.name}").collect()}
    assert properties["format-version"] == "3"
    (bounds,) = {tuple(sorted(row.lower_bounds)) for row in table.metadata("files").collect()}
    names = table.spark.table(table.name).columns
    assert [names[column - 1] for column in bounds] == ["batch", "appended_at"]


def test_a_task_writes_the_records_of_all_objects_without_a_shuffle(table: Table):
    table.append(0, rows=10)
    files = table.metadata("files").select("partition.object", "file_path").collect()
    tasks = table.spark.range(10).rdd.getNumPartitions()
    assert Counter(file.object for file in files) == {"A": tasks, "B": tasks}
    assert not any("object=" in file.file_path for file in files)


def test_what_was_written_and_not_published_is_published_and_not_written_again(
    table: Table, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(failpoints, "reach", killed_at("before_publish"))
    with pytest.raises(KeyboardInterrupt):
        table.append(0)
    monkeypatch.undo()
    assert table.batches() == {}
    assert table.append(0) == 1
    assert table.batches() == {1: 1}
    assert table.metadata("snapshots").count() == 1


@pytest.mark.parametrize("meanwhile", ["nothing", "another property", "a purge", "a compaction"])
def test_what_happens_to_the_table_between_writing_and_publishing_stays(
    table: Table, monkeypatch: pytest.MonkeyPatch, meanwhile: str
):
    for epoch in range(6):
        table.append(epoch)

    def reach(reached: str) -> None:
        if reached != "before_publish":
            return
        if meanwhile == "another property":
            table.spark.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('mine' = 'yes')")
        if meanwhile == "a purge":
            table.spark.sql(f"DELETE FROM {table.name} WHERE batch <= 5")
        if meanwhile == "a compaction":
            table.call(f"rewrite_data_files(table => '{table.name}', options => map('rewrite-all', 'true'))")

    monkeypatch.setattr(failpoints, "reach", reach)
    assert table.append(6) == 7
    monkeypatch.undo()
    left = range(6, 8) if meanwhile == "a purge" else range(1, 8)
    assert table.batches() == dict.fromkeys(left, 1)
    if meanwhile == "another property":
        assert table_formats.Iceberg().properties(table.spark, table.name)["mine"] == "yes"
    if meanwhile == "a compaction":
        assert table.metadata("files").where("record_count > 1").count() == 1


@pytest.mark.parametrize("between", ["writing and publishing", "the question and the commit"])
def test_an_append_under_an_earlier_number_is_not_published_after_one_of_the_job_beside(
    table: Table, monkeypatch: pytest.MonkeyPatch, between: str
):
    """Models that have applied the later batch would never read the earlier one."""
    table.append(0)
    waiting, published = ["a snapshot"], table_formats._published

    def appended_beside() -> None:
        if waiting:
            waiting.clear()
            rows = table.spark.sql("SELECT 'row' AS record, '#snapshot' AS object, 'a copy' AS origin")
            beside = Staging(table.spark, TableName.parse(table.name), "snapshot", beside=True)
            assert beside.append(rows, "snapshot", "beside-0", "", 0, ["cut 1"]).batch == 3

    def reach(reached: str) -> None:
        if reached == "before_publish" and between == "writing and publishing":
            appended_beside()

    def asked(query_id: str) -> tuple[str, str]:
        if between != "writing and publishing" and sys._getframe(1).f_code.co_name == "_publish":
            appended_beside()
        return published(query_id)

    monkeypatch.setattr(failpoints, "reach", reach)
    monkeypatch.setattr(table_formats, "_published", asked)
    with pytest.raises(Fault, match=r"Another job has appended batch 3 to .* while this one wrote its batch 2"):
        table.append(1)
    assert table.batches() == {1: 1, 3: 1}
    assert table.append(1) == 4
    assert table.append(2) == 5
    assert table.batches() == {1: 1, 3: 1, 4: 1, 5: 1}


def test_what_else_changes_in_the_moment_of_publishing_stays(table: Table, monkeypatch: pytest.MonkeyPatch):
    asked, published = ["once", "twice"], table_formats._published

    def changed(query_id: str) -> tuple[str, str]:
        if asked and sys._getframe(1).f_code.co_name == "_publish":
            table.spark.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('mine' = '{asked.pop(0)}')")
        return published(query_id)

    table.append(0)
    monkeypatch.setattr(table_formats, "_published", changed)
    assert table.append(1) == 2
    assert asked == []
    assert table_formats.Iceberg().properties(table.spark, table.name)["mine"] == "twice"
    assert table.batches() == {1: 1, 2: 1}


def test_a_second_job_is_noticed_where_the_catalog_keeps_tables_for_a_while(table: Table):
    jobs = []
    for _ in range(2):
        session = table.spark.newSession()
        session.conf.set("spark.sql.catalog.spark_catalog.cache-enabled", "true")
        jobs.append(Staging(session, TableName.parse(table.name), "a job"))
    assert table.append(0, staging=jobs[0]) == 1
    with pytest.raises(UsageError, match="Another job is appending"):
        table.append(1, staging=jobs[1])
    assert table.append(1, staging=jobs[0]) == 2
    assert table.batches() == {1: 1, 2: 1}


def test_an_append_whose_snapshot_expired_is_not_repeated(table: Table, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(failpoints, "reach", killed_at("after_data_commit"))
    with pytest.raises(KeyboardInterrupt):
        table.append(0)
    monkeypatch.undo()
    table.spark.sql(f"DELETE FROM {table.name}")
    table.call(f"expire_snapshots(table => '{table.name}', older_than => current_timestamp(), retain_last => 1)")
    assert table.metadata("snapshots").where("operation = 'append'").count() == 0
    assert table.append(0) is None
    assert table.batches() == {}
    assert table.append(1) == 2


def test_what_was_written_may_expire_before_it_is_published_and_is_written_again(
    table: Table, monkeypatch: pytest.MonkeyPatch
):
    table.append(0)
    monkeypatch.setattr(failpoints, "reach", killed_at("before_publish"))
    with pytest.raises(KeyboardInterrupt):
        table.append(1)
    monkeypatch.undo()
    table.call(f"expire_snapshots(table => '{table.name}', older_than => current_timestamp(), retain_last => 1)")
    assert table.append(1) == 2
    assert table.batches() == {1: 1, 2: 1}


def test_a_table_that_was_made_by_hand_is_appended_to_in_the_same_way(table: Table):
    table.append(0)
    table.spark.sql(f"CREATE TABLE {table.name}_copy USING iceberg AS SELECT * FROM {table.name}")
    table.name += "_copy"
    assert table.append(1) == 2
    assert table.append(1) == 2
    assert table.batches() == {1: 1, 2: 1}


def test_every_failure_of_publishing_is_a_sentence(table: Table, monkeypatch: pytest.MonkeyPatch):
    def reach(reached: str) -> None:
        if reached == "before_publish":
            table.call(
                f"expire_snapshots(table => '{table.name}', older_than => current_timestamp(), retain_last => 1)"
            )

    table.append(0)
    monkeypatch.setattr(failpoints, "reach", reach)
    with pytest.raises(Exception) as failure:
        table.append(1)
    told = explained(failure.value)
    assert isinstance(told, Fault)
    assert "\n" not in str(told)
    monkeypatch.undo()
    assert table.append(1) == 2
