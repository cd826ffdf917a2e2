"""append.py datastream: what lands in staging, exactly once, whatever happens to the job or to the files."""

import contextlib
import gzip
import io
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from file_formats import failpoints_of_an_append, file_format, table_at
from pyspark.sql import Row, SparkSession
from reconcile_jobs import datastream, failpoints
from reconcile_jobs.caller import Caller
from reconcile_jobs.datastream import Job, Totals
from reconcile_jobs.errors import DataError, Fault, JobError, UsageError, explained
from reconcile_jobs.staging import Staging, TableName

ROOT = Path(__file__).resolve().parents[2]
CAPTURE = ROOT / "tests" / "data" / "capture"
WAREHOUSE = "lakehouse/warehouse/lake.db"

PLACES = failpoints_of_an_append()

numbers = itertools.count()


class Landing:
    """A directory of files, a staging table for them, and the command that appends one to the other."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark = spark
        self.path = directory / "landing"
        self.path.mkdir()
        self.checkpoint = directory / "checkpoint"
        self.table = f"ingest.t{next(numbers)}"
        self.said: list[str] = []

    def put(self, name: str, content: bytes | str | list[Any]) -> Path:
        """Write a file: bytes or text as they are, a list as JSON lines; gzipped where the name says so."""
        if isinstance(content, list):
            content = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in content)
        if isinstance(content, str):
            content = content.encode()
            if name.endswith(".gz"):
                content = gzip.compress(content)
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return file

    def append(self, **options: Any) -> Totals:
        options = {"checkpoint": str(self.checkpoint), "path": str(self.path)} | options
        stop = options.pop("stop", threading.Event())
        return datastream.run(
            self.spark, Job(staging=TableName.parse(self.table), **options), Caller(stop, self.said.append)
        )

    def rows(self, where: str = "true") -> list[Row]:
        return self.spark.table(self.table).where(where).orderBy("batch", "origin", "record").collect()

    def objects(self) -> dict[str, str | None]:
        return {row.record: row.object for row in self.rows()}

    def properties(self) -> dict[str, str]:
        return {row.key: row.value for row in self.spark.sql(f"SHOW TBLPROPERTIES {self.table}").collect()}


@pytest.fixture
def landing(spark: SparkSession, tmp_path: Path) -> Iterator[Landing]:
    place = Landing(spark, tmp_path)
    yield place
    spark.sql(f"DROP TABLE IF EXISTS {place.table}")


def avro(*records: dict[str, Any], **types: Any) -> bytes:
    fields = [{"name": name, "type": kind} for name, kind in ({"object": "string"} | types).items()]
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema({"type": "record", "name": "e", "fields": fields}), records)
    return file.getvalue()


A = {"object": "SHOP.A", "n": 1}
B = {"object": "SHOP.B", "n": 2}
UNREADABLE = (
    '{"object":"A","cut',
    "",
    "null",
    '[{"object":"A"}]',
    '{"a":' * 200 + "1" + "}" * 200,
    '{"object":"A","x":"\0"}',
    "\0\0",
    '{"object":"A"}{"object":"B"}',
    '{"object":"A"},{"object":"B"}',
    '{"object":"A"} and more',
    '{"object":"A"}]',
    '{"object":12}',
    '{"object":true}',
    '{"object":{"a":1}}',
    '{"object":["A"]}',
    '{"object":null}',
    '{"object":""}',
    '{"object":"__HIVE_DEFAULT_PARTITION__"}',  # what directories call NULL
    '{"Object":"A"}',
    '{"a":{"object":"A"}}',
    "12",
    '"object"',
    "not JSON at all",
)


def test_a_file_becomes_rows_as_they_were_delivered(landing: Landing):
    file = landing.put("2026/11/a.jsonl", '{"object": "SHOP.A",  "n": 1.10}\n')
    assert landing.append() == Totals(files=1, records=1, first_batch=1, last_batch=1)
    (row,) = landing.rows()
    assert (row.record, row.source, row.object) == ('{"object": "SHOP.A",  "n": 1.10}', "datastream", "SHOP.A")
    assert (row.origin, row.batch) == (f"file:{file}", 1)
    assert abs(row.appended_at.timestamp() - time.time()) < 600
    assert list(row.asDict()) == ["record", "source", "object", "origin", "batch", "appended_at"]
    assert landing.append() == Totals()


def test_a_path_without_files_makes_the_table_and_appends_nothing(landing: Landing):
    assert landing.append() == Totals()
    assert landing.rows() == []
    landing.put("nothing.json", "")
    assert landing.append() == Totals(files=1)
    landing.put("a.json", [A])
    assert landing.append().last_batch == 1, "an append of nothing uses up no number"


def test_what_cannot_be_read_is_appended_as_it_came_without_an_object(landing: Landing):
    landing.put("bad.json", "".join(f"{record}\n" for record in UNREADABLE))
    landing.put("good.json", [A])
    totals = landing.append()
    assert (totals.records, totals.unreadable) == (len(UNREADABLE) + 1, len(UNREADABLE))
    objects = landing.objects()
    assert {record for record, name in objects.items() if name is None} == set(UNREADABLE)


def test_objects_may_have_any_names(landing: Landing):
    names = ['"', "'", "`", "a b", "a.b", "{{ x }}", "a;b", "größe", "%2F", "a/b", "a=b", "12", "true", "-", "[x]", "{"]
    names += ["\\", "${x}", "x" * 300, "表" * 200, "a\nb", ".", "..", " ", "A", "a"]
    landing.put("a.json", [{"object": name} for name in names])
    assert landing.append().unreadable == 0
    assert sorted(row.object for row in landing.rows()) == sorted(names)
    table = landing.spark.table(landing.table)
    assert [table.where(table.object == name).count() for name in names] == [1] * len(names)


def test_bytes_that_are_no_text_are_kept_and_counted(landing: Landing):
    landing.put("latin.json", b'{"object":"A","x":"caf\xe9"}\n{"object":"A","x":"caf\xc3\xa9"}\n')
    assert landing.append().unreadable == 1
    (record,) = landing.spark.sql(
        f"SELECT CAST(record AS binary) AS bytes FROM {landing.table} WHERE object IS NULL"
    ).collect()
    assert bytes(record.bytes) == b'{"object":"A","x":"caf\xe9"}'


def test_only_a_line_feed_ends_a_record(landing: Landing):
    landing.put("a.json", '{"object":"A",\r"n":1}\r\n{"object":"B","x":"\u2028\u0085"}\n{"object":"C"}')
    landing.append()
    assert landing.objects() == {
        '{"object":"A",\r"n":1}\r': "A",
        '{"object":"B","x":"\u2028\u0085"}': "B",
        '{"object":"C"}': "C",
    }


def test_json_and_avro_of_different_schemas_in_one_directory(landing: Landing):
    landing.put("a.jsonl.gz", [A])
    landing.put("b.json", [B])
    landing.put("c.avro", avro({"object": "SHOP.C", "n": 3}, n="long"))
    landing.put("d.avro", avro({"object": "SHOP.D", "t": "x"}, {"object": "SHOP.D", "t": None}, t=["null", "string"]))
    totals = landing.append()
    assert (totals.files, totals.records, totals.unreadable, totals.last_batch) == (4, 5, 0, 1)
    assert landing.objects() == {
        json.dumps(A): "SHOP.A",
        json.dumps(B): "SHOP.B",
        '{"object":"SHOP.C","n":3}': "SHOP.C",
        '{"object":"SHOP.D","t":"x"}': "SHOP.D",
        '{"object":"SHOP.D","t":null}': "SHOP.D",
    }


def test_a_format_that_is_asked_for_holds_for_every_name(landing: Landing):
    landing.put("data", [A])
    assert landing.append(format="json").records == 1


def test_names_of_files_and_directories_may_hold_anything(landing: Landing):
    names = [
        "a b.json",
        "ä.json",
        "c[1]*.json",
        "c1x.json",
        "d{1,2}%20.json",
        "e?.json",
        "f=1/value=2/g.json",
        "h'\"`.json",
    ]
    names += ["i${x}\\.json", "j#k.json", "l%.json", "m+n.json"]
    for name in names:
        landing.put(name, [{"object": name}])
    assert landing.append().files == len(names)
    assert sorted(row.object for row in landing.rows()) == sorted(names)


def test_the_path_itself_may_look_like_a_pattern_or_be_one_or_a_file(landing: Landing, tmp_path: Path):
    for directory in ("x[1]", "x1"):
        landing.put(f"{directory}/a.json", [{"object": directory}])
    assert landing.append(path=str(landing.path / "x[1]")).records == 1
    assert landing.objects() == {'{"object": "x[1]"}': "x[1]"}
    landing.table += "_pattern"
    assert landing.append(path=str(landing.path / "x*"), checkpoint=str(tmp_path / "pattern")).records == 2
    landing.spark.sql(f"DROP TABLE {landing.table}")
    landing.table += "_file"
    assert landing.append(path=str(landing.path / "x1/a.json"), checkpoint=str(tmp_path / "file")).records == 1


def test_hidden_files_are_left_alone_and_others_recorded(landing: Landing):
    for name in ("_SUCCESS", ".a.json", "_b.json", "_c/d.json"):
        landing.put(name, [A])
    landing.put("e.json", [B])
    landing.put("README.md", "read me")
    totals = landing.append()
    assert (totals.files, totals.records, totals.unreadable, totals.ignored_files) == (1, 1, 0, 1)
    (row,) = landing.rows("object IS NULL")
    assert json.loads(row.record)["ignored_file"].endswith("/README.md")
    assert row.origin.endswith("/README.md")
    assert len(landing.said) == 1


def test_files_that_are_weeks_old_when_they_arrive_are_appended(landing: Landing):
    landing.put("new.json", [A])
    landing.append()
    old = landing.put("old.json", [B])
    os.utime(old, (0, 1_000_000))
    assert landing.append().records == 1
    assert Counter(row.object for row in landing.rows()) == {"SHOP.A": 1, "SHOP.B": 1}


def test_a_batch_holds_at_most_so_many_files_and_the_numbers_rise_by_one(landing: Landing):
    for i in range(3):
        landing.put(f"{i}.json", [A])
        landing.put(f"{i}.avro", avro({"object": "SHOP.B"}))
    totals = landing.append(max_files=2)
    assert (totals.files, totals.records, totals.first_batch, totals.last_batch) == (6, 6, 1, 3)
    assert Counter(row.batch for row in landing.rows()) == {1: 2, 2: 2, 3: 2}
    landing.put("more.json", [A])
    assert landing.append(max_files=2).first_batch == 4


# Files that cannot be read


TORN = {
    "half.jsonl.gz": lambda: gzip.compress(os.urandom(5000).hex().encode())[:2000],
    "trailer.jsonl.gz": lambda: gzip.compress(b'{"object":"A"}\n')[:-1],
    "empty.jsonl.gz": lambda: b"",
    "plain.jsonl.gz": lambda: b'{"object":"A"}\n',
    "half.avro": lambda: avro(*({"object": "A"} for _ in range(100)))[:-30],
    "empty.avro": lambda: b"",
    "json.avro": lambda: b'{"object":"A"}\n',
}


def test_a_torn_file_is_named_and_nothing_of_its_batch_is_appended(landing: Landing):
    landing.put("good.json", [A])
    landing.put("good.avro", avro({"object": "SHOP.B"}))
    torn = landing.put("half.jsonl.gz", TORN["half.jsonl.gz"]())
    with pytest.raises(DataError, match=str(torn)) as refused:
        landing.append()
    assert refused.value.exit_code == 1
    assert "\n" not in str(refused.value)
    assert landing.rows() == []
    landing.put("half.jsonl.gz", [B])  # delivered again, whole
    totals = landing.append()
    assert (totals.records, totals.first_batch, totals.last_batch) == (3, 1, 1)


@pytest.mark.matrix
def test_each_kind_of_torn_file_is_found(landing: Landing):
    for name, content in TORN.items():
        landing.put(name, content())
    for i in range(5):
        landing.put(f"good{i}.json", [A])
        landing.put(f"good{i}.avro", avro({"object": "SHOP.B"}))
    with pytest.raises(DataError, match=r"empty\.avro"):
        landing.append()
    totals = landing.append(skip_corrupt_files=True)
    assert (totals.files, totals.records, totals.unreadable) == (10, 10, 0)
    assert (totals.corrupt_files, totals.last_batch) == (len(TORN), 1)
    notes = [json.loads(row.record) for row in landing.rows("object IS NULL")]
    assert {Path(note["corrupt_file"]).name for note in notes} == set(TORN)
    assert all(note["error"] for note in notes)
    assert landing.append() == Totals(), "what was recorded does not come again"


def test_a_file_that_vanished_after_it_was_found_is_not_lost_in_silence(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
):
    landing.put("stays.json", [A])
    gone = landing.put("goes.json", [B])
    monkeypatch.setattr(failpoints, "reach", fails_at("before_data_commit"))
    with pytest.raises(JobError):
        landing.append()
    monkeypatch.undo()
    gone.unlink()
    with pytest.raises(DataError, match=r"goes.json.*vanished"):
        landing.append()
    assert landing.rows() == []
    totals = landing.append(skip_corrupt_files=True)
    assert (totals.records, totals.corrupt_files) == (1, 1)


# Exactly once


def fails_at(name: str) -> Any:
    """What stands in for a kill inside the test's own process: the job ends there, and so does its query."""

    def reach(reached: str) -> None:
        if reached == name:
            raise RuntimeError(f"killed at {name}")

    return reach


@pytest.mark.parametrize("place", PLACES)
def test_stopped_anywhere_and_started_again_each_record_is_there_once(
    landing: Landing, monkeypatch: pytest.MonkeyPatch, place: str
):
    landing.put("a.json", [A, A])
    landing.append()
    landing.put("b.json", [B])
    landing.put("c.avro", avro({"object": "SHOP.C"}))
    monkeypatch.setattr(failpoints, "reach", fails_at(place))
    with pytest.raises(Fault, match=place):
        landing.append()
    monkeypatch.undo()
    landing.append()
    assert landing.append() == Totals()
    assert Counter((row.object, row.batch) for row in landing.rows()) == {
        ("SHOP.A", 1): 2,
        ("SHOP.B", 2): 1,
        ("SHOP.C", 2): 1,
    }


def test_after_a_lost_checkpoint_every_file_comes_again_under_new_numbers(landing: Landing):
    landing.put("a.json", [A])
    landing.put("b.json", [B])
    assert landing.append(max_files=1).last_batch == 2
    shutil.rmtree(landing.checkpoint)
    landing.put("c.json", [A])
    totals = landing.append(max_files=1)
    assert (totals.records, totals.first_batch, totals.last_batch) == (3, 3, 5)
    assert "lost" in landing.said[0]
    assert landing.append() == Totals()


@pytest.mark.matrix
def test_no_number_comes_again_after_a_purge_and_a_lost_checkpoint(landing: Landing):
    landing.put("a.json", [A])
    landing.append()
    landing.spark.sql(f"DELETE FROM {landing.table}")
    landing.put("b.json", [B])
    assert landing.append().first_batch == 2
    landing.spark.sql(f"DELETE FROM {landing.table}")
    shutil.rmtree(landing.checkpoint)
    assert landing.append().first_batch == 3
    assert landing.properties()["reconcile.last_batch"] == "3"


@pytest.mark.matrix
def test_what_was_committed_and_then_purged_does_not_come_back_when_the_job_starts_again(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
):
    landing.put("a.json", [A])
    monkeypatch.setattr(failpoints, "reach", fails_at("after_data_commit"))
    with pytest.raises(Fault):
        landing.append()
    monkeypatch.undo()
    landing.spark.sql(f"DELETE FROM {landing.table}")
    landing.append()
    assert landing.rows() == []
    landing.put("b.json", [B])
    assert landing.append().first_batch == 2


# One writer


def test_the_staging_table_of_another_job_is_refused(landing: Landing, tmp_path: Path):
    landing.put("a.json", [A])
    landing.append()
    with pytest.raises(UsageError, match="belongs to another job") as refused:
        landing.append(path=str(tmp_path), checkpoint=str(tmp_path / "other"))
    assert str(landing.path) in str(refused.value)
    assert len(landing.rows()) == 1


@pytest.mark.matrix
def test_a_second_checkpoint_is_refused_while_the_first_is_there(landing: Landing, tmp_path: Path):
    landing.put("a.json", [A])
    landing.append()
    with pytest.raises(UsageError, match="is written with the checkpoint"):
        landing.append(checkpoint=str(tmp_path / "other"))
    assert len(landing.rows()) == 1


@pytest.mark.matrix
def test_a_checkpoint_that_has_appended_elsewhere_is_refused(landing: Landing):
    landing.put("a.json", [A])
    landing.append()
    landing.spark.sql(f"DROP TABLE {landing.table}")
    with pytest.raises(UsageError, match="has appended to another table"):
        landing.append()
    shutil.rmtree(landing.checkpoint)
    assert landing.append().records == 1


def test_a_second_process_with_the_same_checkpoint_is_refused(landing: Landing):
    landing.put("a.json", [A])
    stop = threading.Event()
    first = threading.Thread(target=landing.append, kwargs={"every": "1 second", "stop": stop})
    first.start()
    try:
        wait_for(lambda: landing.spark.catalog.tableExists(landing.table) and landing.rows() != [])
        with pytest.raises(Fault, match="Another process is appending with the same checkpoint"):
            landing.append()
    finally:
        stop.set()
        first.join()
    assert len(landing.rows()) == 1


@pytest.mark.matrix
def test_a_checkpoint_that_was_set_back_is_refused(landing: Landing, tmp_path: Path):
    landing.put("0.json", [A])
    landing.append()
    shutil.copytree(landing.checkpoint, tmp_path / "backup")
    landing.put("1.json", [A])
    landing.append()
    shutil.rmtree(landing.checkpoint)
    shutil.copytree(tmp_path / "backup", landing.checkpoint)
    landing.put("2.json", [A])
    with pytest.raises(UsageError, match=r"was set back.*Delete the checkpoint to append every file again"):
        landing.append()
    assert len(landing.rows()) == 2
    shutil.rmtree(landing.checkpoint)
    landing.append()
    assert len({row.origin for row in landing.rows()}) == 3


@pytest.mark.matrix
def test_a_second_writer_that_came_between_is_noticed(landing: Landing):
    landing.put("a.json", [A])
    landing.append()
    late = Staging(landing.spark, TableName.parse(landing.table), f"datastream file:{landing.path}")
    landing.put("b.json", [A])
    landing.append()
    with pytest.raises(UsageError, match="Another job is appending to the staging table"):
        late.append(landing.spark.table(landing.table), "datastream", "an id", "somewhere", 0, ["c.json"])
    assert len(landing.rows()) == 2


@pytest.mark.parametrize("place", PLACES[: PLACES.index("after_data_commit")])
def test_a_writer_that_was_taken_for_dead_and_goes_on_appends_nothing_twice(
    landing: Landing, monkeypatch: pytest.MonkeyPatch, place: str
):
    landing.put("a.json", [A])
    landing.append()
    job = f"datastream file:{landing.path}"
    first = Staging(landing.spark, TableName.parse(landing.table), job)
    records = landing.spark.sql("SELECT '{}' AS record, 'b.json' AS origin")

    def append(staging: Staging) -> int:
        location = f"file:{landing.checkpoint}"
        return staging.append(records, "datastream", "an id", location, 7, ["b.json"]).rows

    def overtaken(reached: str) -> None:
        if reached == place:
            monkeypatch.undo()
            assert append(Staging(landing.spark, TableName.parse(landing.table), job)) == 1

    monkeypatch.setattr(failpoints, "reach", overtaken)
    if place == "before_publish":
        with pytest.raises(Fault, match="at the same moment"):
            try:
                append(first)
            except Exception as problem:
                raise explained(problem) from problem
    else:
        assert append(first) == 1
    assert [(row.batch, row.origin) for row in landing.rows()] == [(1, f"file:{landing.path}/a.json"), (2, "b.json")]


def test_a_path_and_a_table_that_speak_of_secrets_are_recognized_again(landing: Landing, spark: SparkSession):
    # Spark blots such words out of what SHOW TBLPROPERTIES tells.
    landing.path = landing.path / "short_urls" / "token"
    landing.table += "_urls"
    for number in range(2):
        landing.put(f"{number}.json", [A])
        assert landing.append(checkpoint=str(landing.checkpoint / "password")).records == 1
    spark.sql(f"DROP TABLE {landing.table}")


def test_a_table_that_is_no_staging_table_is_refused(landing: Landing):
    landing.spark.sql("CREATE SCHEMA IF NOT EXISTS ingest")
    landing.spark.sql(f"CREATE TABLE {landing.table} (id bigint) USING {file_format()}")
    with pytest.raises(UsageError, match="is not a staging table"):
        landing.append()


def test_a_table_of_another_format_is_refused(landing: Landing):
    landing.spark.sql("CREATE SCHEMA IF NOT EXISTS ingest")
    landing.spark.sql(
        f"CREATE TABLE {landing.table} (record string, source string, object string, origin string, batch bigint, "
        "appended_at timestamp) USING parquet"
    )
    with pytest.raises(UsageError, match=r"is of another format than those of this session.*SPARK_CONF_DIR"):
        landing.append()


@pytest.mark.matrix
def test_a_table_filled_by_hand_is_taken_over_and_its_numbers_are_not_used_again(landing: Landing):
    landing.spark.sql("CREATE SCHEMA IF NOT EXISTS ingest")
    landing.spark.sql(
        f"CREATE TABLE {landing.table} USING {file_format()} PARTITIONED BY (object) AS SELECT '{{}}' AS record, "
        "'x' AS source, 'y' AS object, 'z' AS origin, 41L AS batch, current_timestamp() AS appended_at"
    )
    landing.put("a.json", [A])
    assert landing.append().first_batch == 42


# Keeping going


def test_with_an_interval_the_job_takes_what_comes_until_it_is_stopped(landing: Landing):
    landing.put("a.json", [A])
    stop = threading.Event()
    totals: list[Totals] = []
    job = threading.Thread(target=lambda: totals.append(landing.append(every="1 second", stop=stop)))
    job.start()
    wait_for(lambda: landing.spark.catalog.tableExists(landing.table) and len(landing.rows()) == 1)
    landing.put("b.json", [B])
    wait_for(lambda: len(landing.rows()) == 2)
    stop.set()
    job.join(60)
    assert (totals[0].records, totals[0].first_batch, totals[0].last_batch) == (2, 1, 2)


def test_one_pass_that_is_stopped_says_that_it_did_not_finish(landing: Landing):
    landing.put("a.json", [A])
    stop = threading.Event()
    stop.set()
    with pytest.raises(Fault, match="Stopped before everything was appended"):
        landing.append(stop=stop)
    landing.append()
    assert len(landing.rows()) == 1


def wait_for(condition: Any, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.3)


# Usage


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"path": "/nowhere/at/all"}, "There is nothing at /nowhere/at/all"),
        ({"path": "nofs://bucket/x"}, "no connector for paths that begin with nofs"),
        ({"path": "/nowhere/${x}*"}, "There is nothing at"),
    ],
)
def test_a_path_that_is_not_there_is_one_sentence(landing: Landing, options: dict[str, Any], sentence: str):
    with pytest.raises(UsageError, match=sentence) as refused:
        landing.append(**options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["`odd name`", "größe", "`a.b`", "`x;y`", "`{{ x }}`", "`'`", "```a`"])
@pytest.mark.matrix
def test_a_name_that_the_metastore_does_not_take_is_refused_in_one_sentence(landing: Landing, name: str):
    for table in (f"ingest.{name}", f"{name}.t"):
        landing.table = table
        with pytest.raises(UsageError, match=r"does not take|Spark refuses") as refused:
            landing.append()
        assert "\n" not in str(refused.value)
    landing.table = "ingest.never"


# The capture


@pytest.mark.matrix
def test_avro_of_the_capture_holds_what_its_json_holds(landing: Landing, tmp_path: Path):
    delivered: dict[str, Counter[str]] = {}
    for form in ("json", "avro"):
        landing.table = f"ingest.capture_{form}"
        totals = landing.append(path=str(CAPTURE / f"postgresql_{form}"), checkpoint=str(tmp_path / form))
        assert (totals.records, totals.unreadable, totals.files) == (15261, 0, 33)
        delivered[form] = Counter(comparable(row.record) for row in landing.rows())
    assert delivered["json"] == delivered["avro"]
    landing.spark.sql("DROP TABLE ingest.capture_json")


def comparable(record: str) -> str:
    # Each number as its digits; of the times in the envelope Avro carries milliseconds only.
    values = json.loads(record, parse_float=digits, parse_int=digits)
    for name in ("read_timestamp", "source_timestamp"):
        values[name] = values[name].rstrip("Z")[:23]
    return re.sub(r"(:\d\d)\.?0*Z", r"\1Z", json.dumps(values, sort_keys=True))


def digits(number: str) -> str:
    return str(Decimal(number).normalize())


# The command


def submit(*words: str, cwd: Path, **environment: str) -> tuple[int, str, str]:
    """Run append.py by spark-submit from another directory, and return exit code, output and errors."""
    program = start(*words, cwd=cwd, stderr=subprocess.PIPE, **environment)
    out, err = program.communicate(timeout=300)
    return program.returncode, out, err


def start(*words: str, cwd: Path, stderr: int, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        ["spark-submit", str(ROOT / "ingestion" / "append.py"), *words],
        cwd=cwd,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


def one_sentence(err: str) -> bool:
    return err.startswith("append: ") and err.count("\n") == 1 and "\tat " not in err and "Traceback" not in err


def test_help_and_wrong_usage_are_answered_without_a_session(tmp_path: Path):
    code, out, err = submit("datastream", "--help", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "--skip-corrupt-files" in out
    code, out, err = submit("datastream", "--path", "x", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert one_sentence(err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.matrix
def test_a_metastore_that_another_process_holds_is_one_sentence(landing: Landing):
    place = Path(landing.spark._jvm.java.lang.System.getProperty("user.dir"))  # type: ignore[union-attr]
    landing.put("a.json", [A])
    landing.spark.sql("SHOW SCHEMAS").collect()  # so that this process holds it
    code, out, err = submit("datastream", "--path", str(landing.path), "--staging", "a.b", cwd=place)
    assert (code, out) == (4, "")
    assert one_sentence(err), err
    assert "held by another process" in err


def test_without_the_configuration_the_sentence_names_it(tmp_path: Path):
    code, out, err = submit("datastream", "--path", ".", "--staging", "a.b", cwd=tmp_path, SPARK_CONF_DIR="/nowhere")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("append: ")
    assert "SPARK_CONF_DIR" in err.splitlines()[-1]


@pytest.mark.matrix
def test_asked_to_stop_the_job_finishes_its_line_and_ends_with_0(landing: Landing, tmp_path: Path):
    command = ("datastream", "--path", str(landing.path), "--staging", "lake.shop")
    landing.put("a.json", [A])
    landing.put("b.avro", avro({"object": "SHOP.B"}))
    screen, terminal = os.openpty()
    job = start(*command, "--every", "1s", cwd=tmp_path, stderr=terminal)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while chunk := os.read(screen, 1000):
            shown += chunk
            if b"2 records" in shown:
                job.terminate()
    os.close(screen)
    out, _ = job.communicate(timeout=120)
    assert job.returncode == 0, shown
    (line,) = out.splitlines()
    assert {name: value for name, value in json.loads(line).items() if name != "seconds"} == asdict(
        Totals(files=2, records=2, first_batch=1, last_batch=1)
    )
    assert b"Traceback" not in shown

    landing.put("torn.jsonl.gz", TORN["half.jsonl.gz"]())
    code, out, err = submit(*command, cwd=tmp_path)
    assert (code, out) == (1, "")
    assert one_sentence(err), err
    assert "torn.jsonl.gz" in err


@pytest.mark.matrix
def test_killed_at_each_place_and_started_again_the_table_holds_each_record_once(landing: Landing, tmp_path: Path):
    command = ("datastream", "--path", str(landing.path), "--staging", "lake.shop")
    landing.put("0.jsonl.gz", [A])
    landing.put("0.avro", avro({"object": "SHOP.B"}))
    for number, place in enumerate(PLACES):
        code, out, _ = submit(*command, cwd=tmp_path, RECONCILE_FAILPOINT=place)
        assert (code, out) == (-signal.SIGKILL, "")
        landing.put(f"{number + 1}.jsonl.gz", [A])
    code, out, err = submit(*command, cwd=tmp_path)
    assert (code, err) == (0, "")
    (line,) = out.splitlines()
    assert json.loads(line)["last_batch"] == 3, "no number is left out either"
    rows = landing.spark.sql(f"SELECT * FROM {table_at(landing.spark, tmp_path / WAREHOUSE / 'shop')}").collect()
    assert Counter(row.object for row in rows) == {"SHOP.A": 1 + len(PLACES), "SHOP.B": 1}
    assert len({row.origin for row in rows}) == 2 + len(PLACES)
