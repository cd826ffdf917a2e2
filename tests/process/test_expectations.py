"""`append.py --expect`: what is staged is looked at before dbt reads it, and what is not as expected is named."""

from __future__ import annotations

import json
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import append
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from reconcile_jobs.expectations import Expected, Outcome, check, envelopes, volumes
from reconcile_jobs.process.errors import DataError
from reconcile_jobs.staging import Staging, TableName
from truth import CAPTURE, SOURCES, delivered

AGES = {"max_lag": 10**9}
NOW = datetime.now(UTC)


def event(**changed: Any) -> dict[str, Any]:
    """Return an event of Datastream's as PostgreSQL's come; of `source_metadata` what is said, with None: without."""
    moment = NOW.isoformat()
    whole: dict[str, Any] = {
        "uuid": "u",
        "object": "shop_orders",
        "read_method": "postgres-cdc-wal",
        "read_timestamp": moment,
        "source_timestamp": moment,
        "source_metadata": {"change_type": "INSERT", "lsn": "0/1"},
        "payload": {"id": 1},
    }
    metadata = whole["source_metadata"] | changed.pop("source_metadata", {})
    whole |= {"source_metadata": {name: value for name, value in metadata.items() if value is not None}} | changed
    return {name: value for name, value in whole.items() if value is not None}


class Job:
    """A directory and the command that appends its files and looks at what came."""

    def __init__(self, spark: SparkSession, directory: Path, table: str) -> None:
        self.spark, self.directory, self.table = spark, directory, f"expected.{table}"
        self.results: list[dict[str, Any]] = []
        self.said: list[str] = []
        (directory / "landing").mkdir()

    def put(self, name: str, *records: Any) -> None:
        lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
        (self.directory / "landing" / name).write_text("\n".join(lines))

    def append(self, *words: str) -> dict[str, Any]:
        """Run the command; return what it printed of the expectations."""
        console = SimpleNamespace(say=self.said.append, result=self.results.append, progress=lambda text: None)
        shutdown = SimpleNamespace(watch=lambda spark: None, listen=lambda: None, stop=threading.Event())
        where = ["--path", str(self.directory / "landing"), "--staging", self.table]
        where += ["--checkpoint", str(self.directory / "checkpoint")]
        docs = ["--data-docs", str(self.directory / "docs")] if "--expect" in words else []
        append.main(["datastream", *where, *docs, *words], console, shutdown)  # type: ignore[arg-type]
        return self.results[-1].get("expectations", "were not asked for")


def test_a_real_capture_is_as_expected(spark: SparkSession, tmp_path: Path) -> None:
    table = TableName.parse("expected.capture")
    paths = [str(CAPTURE / f"{source}_json" / "1") for source in SOURCES]
    rows = spark.read.text(paths, recursiveFileLookup=True, lineSep="\n")
    stage(spark, table, "datastream", rows.selectExpr("value as record", "_metadata.file_path as origin"))
    found = {
        (row.source, row.parsable, row.ordered): row["count"]
        for row in envelopes(spark, table, "datastream", 1, 1)
        .groupBy(f.regexp_extract("origin", r"/(\w+)_json/", 1).alias("source"), "parsable", "ordered")
        .count()
        .collect()
    }
    assert found == {(source, True, True): sum(delivered(source, 1).values()) for source in SOURCES}
    outcome = look_at(spark, table, "datastream", tmp_path)
    assert (outcome.failed, outcome.success, outcome.last_batch) == ([], True, 1)


def stage(spark: SparkSession, table: TableName, source: str, records: DataFrame) -> None:
    spark.sql(f"drop table if exists {table.sql}")
    Staging(spark, table, "test").append(records, source, "query", "checkpoint", 0, ["files"])


def look_at(spark: SparkSession, table: TableName, source: str, directory: Path, **changed: Any) -> Outcome:
    settings = {"on_failure": "fail", "objects": None, "volume_factor": 10.0, "data_docs": str(directory)}
    said: list[str] = []
    found = check(spark, table, source, 1, Expected(**settings | AGES | changed), said.append)
    assert found and len(said) == len(found.failed)
    return found


RECORDS: dict[str, tuple[Any, list[str]]] = {
    "good": (event(), []),
    "torn": ('{"object": "shop_orders", "uuid": ', ["parsable", "change_type_present", "order_present"]),
    "a change type of others": (event(source_metadata={"change_type": "TRUNCATE"}), ["known_change_type"]),
    "without a change type": (event(source_metadata={"change_type": None}), ["change_type_present"]),
    "without lsn": (event(source_metadata={"lsn": None}), ["order_present"]),
    "MySQL's of a stream that follows GTIDs": (
        event(read_method="cdc", source_metadata={"lsn": None, "binlog_file": "bin.000001", "binlog_position": 4}),
        [],
    ),
    "a change by a bare word, which nothing orders": (
        event(read_method="cdc", source_metadata={"lsn": None}),
        ["order_present"],
    ),
    "a backfill row that says no more": (
        event(read_method="backfill", read_timestamp=1795260792000, source_metadata={"change_type": None}),
        [],
    ),
    "a backfill row that says nothing": (
        event(read_method="postgresql-backfill", source_metadata={"lsn": None, "change_type": ""}),
        [],
    ),
    "a change that says nothing": (event(source_metadata={"change_type": ""}), ["change_type_present"]),
    "MySQL's without a position": (event(read_method="mysql-cdc-binlog"), ["order_present"]),
    "Oracle's": (event(read_method="oracle-cdc-logminer", source_metadata={"scn": 1, "rs_id": "a", "ssn": 0}), []),
    "Oracle's without rs_id": (
        event(read_method="oracle-cdc-logminer", source_metadata={"scn": 1, "ssn": 0}),
        ["order_present"],
    ),
    "a read method of others": (event(read_method="somebody-else"), ["order_present"]),
    "a backfill row": (event(read_method="postgresql-backfill", source_metadata={"lsn": None}), []),
    "a backfill row that nothing orders": (
        event(read_method="postgresql-backfill", read_timestamp=None),
        ["order_present"],
    ),
    "late": (event(source_timestamp=(NOW - timedelta(days=2)).isoformat()), ["delivery_lag"]),
    "an old backfill row": (event(read_method="postgresql-backfill", source_timestamp="2001-01-01T00:00:00Z"), []),
    "of another object": (event(object="shop_others"), ["known_object"]),
}


def test_a_record_that_is_not_as_expected_is_found(spark: SparkSession, tmp_path: Path) -> None:
    table = TableName.parse("expected.records")
    texts = {case: record if isinstance(record, str) else json.dumps(record) for case, (record, _) in RECORDS.items()}
    frame = spark.createDataFrame([(text, case) for case, text in texts.items()], "record string, origin string")
    stage(spark, table, "datastream", frame)
    found = {
        row.origin: [
            name
            for name, met in {
                "parsable": row.parsable,
                "known_change_type": row.change_type in (None, "INSERT"),
                "change_type_present": row.change_type is not None,
                "order_present": row.ordered,
                "delivery_lag": row.lag_seconds is None or row.lag_seconds < 24 * 3600,
                "known_object": row.object in (None, "shop_orders"),
            }.items()
            if not met
        ]
        for row in envelopes(spark, table, "datastream", 1, 1).collect()
    }
    assert found == {case: failed for case, (_, failed) in RECORDS.items()}

    said: list[str] = []
    expected = Expected("warn", ("shop_orders",), 24 * 3600, volume_factor=10, data_docs=str(tmp_path))
    outcome = check(spark, table, "datastream", 1, expected, said.append)
    counts = Counter(name for _, failed in RECORDS.values() for name in failed)
    assert outcome and sorted(outcome.failed) == sorted(counts)
    assert [sentence.split(":")[0] for sentence in said] == [
        # What is not there is not looked at, by Great Expectations as well.
        f"not as expected, {counts[name]} of {len(RECORDS)}"
        for name in outcome.failed
    ]


# Of each change stream: a whole record, one of a backfill, and what orders the first.
STREAMS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "spanner": (
        {
            "commit_timestamp": NOW.isoformat(),
            "server_transaction_id": "t",
            "record_sequence": "0",
            "mod_type": "INSERT",
        },
        {"commit_timestamp": "2001-01-01T00:00:00Z", "backfill": "true", "mod_type": "INSERT"},
        "record_sequence",
    ),
    "bigtable": (
        {"row_key": "YQ==", "type": "user", "commit_timestamp": NOW.isoformat(), "tiebreaker": 0, "entries": []},
        {"row_key": "YQ==", "type": "backfill", "commit_timestamp": "2001-01-01T00:00:00Z", "tiebreaker": 0},
        "tiebreaker",
    ),
}


@pytest.mark.parametrize("source", STREAMS)
def test_a_change_of_a_stream_that_cannot_be_ordered_is_found(spark: SparkSession, tmp_path: Path, source: str) -> None:
    table = TableName.parse(f"expected.{source}")
    whole, backfill, order = STREAMS[source]
    bad = {name: value for name, value in whole.items() if name != order}
    rows = [
        (json.dumps(record), "orders", case)
        for case, record in {"whole": whole, "backfill": backfill, "bad": bad}.items()
    ]
    rows += [('{"cut_time": "2026-01-01T00:00:00Z"}', "#cut", "cut")]
    stage(spark, table, source, spark.createDataFrame(rows, "record string, object string, origin string"))
    found = {row.origin: row for row in envelopes(spark, table, source, 1, 1).collect()}
    assert {case: (row.parsable, row.ordered, row.lag_seconds is None) for case, row in found.items()} == {
        "whole": (True, True, False),
        "backfill": (True, True, True),
        "bad": (True, False, False),
    }
    outcome = look_at(spark, table, source, tmp_path, max_lag=24 * 3600)
    assert outcome.failed == ["order_present"]


class Days:
    """Appends, one after the other: unasked, not as expected, the same again, let pass, and as expected."""

    def __init__(self, job: Job) -> None:
        self.job = job
        truncated = {"change_type": "TRUNCATE<script>alert('type')</script>"}
        job.put("1.jsonl", event(source_metadata=truncated))
        self.when_not_asked = job.append()
        self.docs_when_not_asked = (job.directory / "docs").exists()
        canary = event(uuid="w", payload={"id": 1, "name": "Canary"}, source_metadata=truncated)
        # Of an object that had not come before anything was expected.
        job.put("2.jsonl", event(uuid="v"), canary, event(uuid="n", object="shop_new<img src=x onerror=alert(1)>"))
        self.refused = [self.refusal(), self.refusal()]  # the second appends nothing
        self.said, self.rows = list(job.said), job.spark.table(job.table).count()
        self.let_pass = job.append("--expect")
        job.put("3.jsonl", event(uuid="x"))
        self.afterwards = job.append("--expect", "fail")

    def refusal(self) -> tuple[DataError, dict[str, Any]]:
        with pytest.raises(DataError) as refused:
            self.job.append("--expect", "fail")
        return refused.value, self.job.results[-1]["expectations"]


@pytest.fixture(scope="module")
def days(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Days:
    return Days(Job(spark, tmp_path_factory.mktemp("days"), "days"))


def test_without_expect_nothing_is_looked_at(days: Days) -> None:
    assert days.when_not_asked == "were not asked for"
    assert not days.docs_when_not_asked


def test_what_was_appended_before_anything_was_expected_is_not_looked_at(days: Days) -> None:
    _, told = days.refused[0]
    assert (told["success"], told["first_batch"], told["last_batch"]) == (False, 2, 2)


def test_a_run_that_fails_fails_again(days: Days) -> None:
    for refused, told in days.refused:
        assert "batches 2 to 2 of expected.days" in str(refused)
        assert refused.exit_code == 1
        assert told["failed"] == ["known_change_type", "known_object"]
    assert days.rows == 4, "they are appended, whatever they are"
    first, of_the_object, *again = days.said
    assert [first, of_the_object] == again
    assert (
        "The object is given with --expect-object, or was staged before. Among them: object shop_new" in of_the_object
    )
    assert first.startswith("not as expected, 1 of 3: The change type is known. Among them: ")
    assert "object shop_orders, batch 2" in first and "2.jsonl" in first
    assert "TRUNCATE<SCRIPT>ALERT('TYPE')</SCRIPT>" in first, "a terminal is no browser"


def test_batches_that_were_let_pass_are_not_looked_at_again(days: Days) -> None:
    assert not days.let_pass["success"]
    assert days.afterwards | {"data_docs": ""} == {
        "success": True, "failed": [], "first_batch": 3, "last_batch": 3, "data_docs": "",
    }  # fmt: skip
    expected = Expected("fail", None, max_lag=1, volume_factor=1.1, data_docs=None)
    nothing = check(days.job.spark, TableName.parse(days.job.table), "datastream", None, expected, days.job.said.append)
    assert nothing is None, "nothing is left to look at"


def pages(days: Days) -> dict[Path, ElementTree.Element]:
    """The pages, as a parser takes them that forgives nothing."""
    return {path: ElementTree.parse(path).getroot() for path in Path(days.let_pass["data_docs"]).parent.rglob("*.html")}


def test_data_docs_show_what_was_found_and_no_value_of_a_row(days: Days) -> None:
    page = Path(days.let_pass["data_docs"])
    assert page.is_file()
    written = "".join(path.read_text() for path in page.parent.rglob("*") if path.is_file())
    assert "The change type is known." in written
    assert "TRUNCATE" in written
    assert "Canary" not in written


def test_what_a_record_says_is_text_in_data_docs_and_no_markup(days: Days) -> None:
    assert {element.tag for page in pages(days).values() for element in page.iter()}.isdisjoint({"script", "img"})
    shown = {text for page in pages(days).values() for text in page.itertext()}
    assert {"TRUNCATE<SCRIPT>ALERT('TYPE')</SCRIPT>", "shop_new<img src=x onerror=alert(1)>"} <= shown


def test_data_docs_list_the_runs_and_load_nothing(days: Days) -> None:
    index = pages(days)[Path(days.let_pass["data_docs"])]
    listed = [["".join(cell.itertext()) for cell in row] for row in index.iter("tr")][1:]
    failed = ["failed", "expected.days", "2", "3"]
    assert [row[:1] + row[2:5] for row in listed] == [["passed", "expected.days", "3", "1"], failed, failed, failed]
    assert not [
        (path, element.tag)
        for path, page in pages(days).items()
        for element in page.iter()
        if element.tag == "link" or "src" in element.attrib or "://" in str(element.get("href"))
    ]


def test_what_is_said_of_volumes_is_measured_against_the_median_day(spark: SparkSession, tmp_path: Path) -> None:
    table = TableName.parse("expected.volumes")
    frame = spark.createDataFrame([(json.dumps(event()), "file")], "record string, origin string")
    stage(spark, table, "datastream", frame)

    def come(*days: tuple[int, dict[str, int]]) -> None:
        """Append so many records of each object so many days ago."""
        counted = [(name, ago, number) for ago, objects in days for name, number in objects.items()]
        spark.createDataFrame(counted, "object string, ago int, number int").createOrReplaceTempView("come")
        spark.sql(
            f"insert into {table.sql} select '{json.dumps(event())}', 'datastream', object, 'f', 1, "
            "timestampadd(HOUR, -24 * ago - 1, current_timestamp()) "
            "from (select *, explode(sequence(1, number)) from come)"
        )

    come(
        (0, {"steady": 10, "grown": 40}),
        (1, {"steady": 12, "gone": 10, "grown": 10}),
        (2, {"steady": 1000, "gone": 10, "grown": 12}),  # a backfill: one day does not make it usual
    )
    assert volumes(spark, table).collect() == [], "three days do not say what is usual"
    come((3, {"steady": 10, "gone": 10, "grown": 10}), (4, {"steady": 11, "gone": 10, "grown": 11}))
    said: list[str] = []
    expected = Expected("warn", None, max_lag=10**9, volume_factor=3.0, data_docs=str(tmp_path))
    outcome = check(spark, table, "datastream", 1, expected, said.append)
    assert outcome and outcome.failed == ["volume"]
    assert said[0].startswith("not as expected, 2 of 4: The last day brought no 3 times more or fewer records")
    assert sorted(map(tuple, volumes(spark, table).collect()))[:2] == [("gone", 0, 10, 0.0), ("grown", 40, 10, 4.0)]
