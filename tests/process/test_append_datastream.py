"""append.py datastream: what lands in staging, exactly once, whatever happens to the job or to the files."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from file_formats import failpoints_of_an_append, file_format
from process.landings import Landing, avro, killed_at
from pyspark.sql import Row, SparkSession
from reconcile_jobs import datastream_files
from reconcile_jobs.checkpoints import last_commit
from reconcile_jobs.datastream import Totals
from reconcile_jobs.landing_area import files_of_batch
from reconcile_jobs.process import failpoints
from reconcile_jobs.process.errors import DataError, Fault, UsageError, explained
from reconcile_jobs.staging import Staging, TableName
from tables import restore, versions

PLACES = failpoints_of_an_append()

numbers = itertools.count()


@pytest.fixture
def landing(spark: SparkSession, tmp_path: Path) -> Iterator[Landing]:
    place = Landing(spark, tmp_path)
    yield place
    spark.sql(f"DROP TABLE IF EXISTS {place.table}")


A = {"object": "SHOP.A", "n": 1}
B = {"object": "SHOP.B", "n": 2}


# What is delivered


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

NAMES = ['"', "'", "`", "a b", "a.b", "{{ x }}", "a;b", "größe", "%2F", "a/b", "a=b", "12", "true", "-", "[x]", "{"]
NAMES += ["\\", "${x}", "x" * 300, "表" * 200, "a\nb", ".", "..", " ", "A", "a"]

FILE_NAMES = ["a b.json", "ä.json", "c[1]*.json", "c1x.json", "d{1,2}%20.json", "e?.json", "f=1/value=2/g.json"]
FILE_NAMES += [
    "h'\"`.json",
    "i${x}\\.json",
    "j#k.json",
    "l%.json",
    "m+n.json",
    "2026-11-21T11:33:12.json",
    "*:[n].json",
]

HIDDEN = ["_SUCCESS", ".a.json", "_b.json", "_b.json.tmp", "_c/d.json", "_c/_e.json", "f.json._COPYING_"]

FILES: dict[str, bytes | str | list[Any]] = {
    "plain/2026/11/a.jsonl": '{"object": "SHOP.A",  "n": 1.10}\n',
    "bad/a.json": "".join(f"{record}\n" for record in UNREADABLE),
    "names/a.json": [{"object": name} for name in NAMES],
    # Beyond what the JSON reader takes by itself.
    "long/a.json": f'{{"object":"A","x":"{"y" * 20_000_001}"}}\n{{"object":"B","x":{"9" * 1500}}}\n',
    "latin/a.json": b'{"object":"A","x":"caf\xe9"}\n{"object":"A","x":"caf\xc3\xa9"}\n',
    "lines/a.json": '{"object":"A",\r"n":1}\r\n{"object":"B","x":"\u2028\u0085"}\n{"object":"C"}',
    "forms/a.jsonl.gz": [A],
    "forms/b.json": [B],
    "forms/c.avro": avro({"object": "SHOP.C", "n": 3}, n="long"),
    "forms/11:33.jsonl.gz": [A],
    "forms/11:33.avro": avro({"object": "SHOP.C", "n": 4}, n="long"),
    "forms/d.avro": avro(
        {"object": "SHOP.D", "t": "x"}, {"object": "SHOP.D", "t": None}, t=["null", "string"]
    ),
    **{f"files/{name}": [{"object": name}] for name in FILE_NAMES},
    **{f"hidden/{name}": [A] for name in HIDDEN},
    "hidden/e.json": [B],
    "hidden/README.md": "read me",
    "listed/_metadata.json": [A],
}  # fmt: skip


class Delivered:
    """A landing area of which nothing, a file without records, all of `FILES` and an old file were appended in turn."""

    def __init__(self, landing: Landing) -> None:
        self.landing = landing
        self.of_nothing = landing.append()
        self.rows_of_nothing = landing.rows()
        landing.put("nothing.json", "")
        self.of_an_empty_file = landing.append()
        for name, content in FILES.items():
            landing.put(name, content)
        (landing.path / "link.json").symlink_to("nothing.at.all")
        self.of_all = landing.append()
        os.utime(landing.put("old.json", [B]), (0, 1_000_000))
        self.of_an_old_file = landing.append()
        self.again = landing.append()
        self.all_rows = landing.rows()

    def rows(self, directory: str) -> list[Row]:
        """Return the rows of the files of a directory."""
        return [row for row in self.all_rows if row.origin.startswith(f"file:{self.landing.path}/{directory}/")]

    def said(self, beginning: str) -> list[str]:
        return [said for said in self.landing.said if said.startswith(beginning)]

    def objects(self, directory: str) -> dict[str, str | None]:
        return {row.record: row.object for row in self.rows(directory)}


@pytest.fixture(scope="module")
def delivered(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Delivered]:
    landing = Landing(spark, tmp_path_factory.mktemp("delivered"))
    yield Delivered(landing)
    spark.sql(f"DROP TABLE {landing.table}")


def test_a_path_without_files_makes_the_table_and_appends_nothing(delivered: Delivered):
    assert delivered.of_nothing == Totals(hidden_files=0)
    assert delivered.rows_of_nothing == []
    assert delivered.of_an_empty_file == Totals(files=1, hidden_files=0)
    assert delivered.of_all.first_batch == 1, "an append of nothing uses up no number"


def test_every_file_and_record_is_counted(delivered: Delivered):
    files = [name for name in FILES if not name.startswith("hidden/")]
    lines = 1 + len(UNREADABLE) + len(NAMES) + 2 + 2 + 3 + 7 + len(FILE_NAMES)
    assert delivered.of_all == Totals(
        files=len(files), records=lines + 1, unreadable=len(UNREADABLE) + 1, ignored_files=2, broken_links=1,
        hidden_files=6, first_batch=1, last_batch=1,
    )  # fmt: skip
    assert len(delivered.all_rows) == lines + 1 + 1 + 2, "and one of the old file, one of each that is ignored"


def test_what_was_appended_does_not_come_again(delivered: Delivered):
    assert delivered.again == Totals(broken_links=1, hidden_files=6)


def test_a_file_becomes_rows_as_they_were_delivered(delivered: Delivered):
    (row,) = delivered.rows("plain")
    assert (row.record, row.source, row.object) == ('{"object": "SHOP.A",  "n": 1.10}', "datastream", "SHOP.A")
    assert (row.origin, row.batch) == (f"file:{delivered.landing.path}/plain/2026/11/a.jsonl", 1)
    assert abs(row.appended_at.timestamp() - time.time()) < 600
    assert list(row.asDict()) == ["record", "source", "object", "origin", "batch", "appended_at"]


def test_the_first_line_that_is_no_record_is_named_with_its_file_once(delivered: Delivered):
    (named,) = delivered.said("not a record")
    path = f"file:{delivered.landing.path}/bad/a.json"
    assert named.startswith(f"not a record: line 1 of {path}, and {len(UNREADABLE)} more, in 2 files; ")


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("torn.json", [A] * 1200 + ['{"obj'] + [A] * 40 + ["{}"], "line 1201 of {}, and 1 more, in 1 file"),
        ("torn.json.gz", [A] * 70 + ["{}"], "line 71 of {};"),
        ("ä b%20 11:33.json", [A, "", B], "line 2 of {};"),
        ("pretty.json", json.dumps(A, indent=2).splitlines(), "line 1 of {}, and 3 more, in 1 file"),
        ("without.avro", avro({"object": None}, object=["string", "null"]), "a record of {};"),
    ],
)
def test_a_line_that_is_no_record_is_found_in_files_of_every_kind(
    spark: SparkSession, landing: Landing, name: str, content: Any, place: str
):
    if isinstance(content, list):
        lines = [line if isinstance(line, str) else json.dumps(line) for line in content]
        content = "".join(f"{line}\n" for line in lines)
    path = landing.put(name, content)
    # Spark then reads the longest of the files in a dozen blocks, several in one task.
    blocks = {"spark.sql.files.maxPartitionBytes": "4096", "spark.sql.files.openCostInBytes": "1"}
    for setting, value in blocks.items():
        spark.conf.set(setting, value)
    landing.append()
    for setting in blocks:
        spark.conf.unset(setting)
    assert landing.said[0].startswith(f"not a record: {place.format(f'file:{path}')}"), landing.said


def test_what_cannot_be_read_is_appended_as_it_came_without_an_object(delivered: Delivered):
    assert Counter((row.record, row.object) for row in delivered.rows("bad")) == {
        (record, None): 1 for record in UNREADABLE
    }


def test_objects_may_have_any_names(delivered: Delivered):
    assert sorted(row.object for row in delivered.rows("names")) == sorted(NAMES)
    table = delivered.landing.spark.table(delivered.landing.table)
    found = table.where(table.object.isin(NAMES) & table.origin.contains("/names/"))
    assert found.count() == len(NAMES), "each is found by its name"


def test_bytes_that_are_no_text_are_kept_and_counted(delivered: Delivered):
    assert sum(row.object is None for row in delivered.rows("latin")) == 1
    (record,) = delivered.landing.spark.sql(
        f"SELECT CAST(record AS binary) AS bytes FROM {delivered.landing.table} "
        "WHERE object IS NULL AND contains(origin, '/latin/')"
    ).collect()
    assert bytes(record.bytes) == b'{"object":"A","x":"caf\xe9"}'


def test_values_of_any_length_cost_no_record_its_object(delivered: Delivered):
    assert sorted(delivered.objects("long").values()) == ["A", "B"]


def test_only_a_line_feed_ends_a_record(delivered: Delivered):
    assert delivered.objects("lines") == {
        '{"object":"A",\r"n":1}\r': "A",
        '{"object":"B","x":"\u2028\u0085"}': "B",
        '{"object":"C"}': "C",
    }


def test_json_and_avro_of_different_schemas_in_one_directory(delivered: Delivered):
    assert delivered.objects("forms") == {
        json.dumps(A): "SHOP.A",
        json.dumps(B): "SHOP.B",
        '{"object":"SHOP.C","n":3}': "SHOP.C",
        '{"object":"SHOP.C","n":4}': "SHOP.C",
        '{"object":"SHOP.D","t":"x"}': "SHOP.D",
        '{"object":"SHOP.D","t":null}': "SHOP.D",
    }


def test_names_of_files_and_directories_may_hold_anything(delivered: Delivered):
    assert sorted(row.object for row in delivered.rows("files")) == sorted(FILE_NAMES)


def test_hidden_files_are_named_and_others_that_are_not_read_recorded(delivered: Delivered):
    ignored, read = sorted(delivered.rows("hidden"), key=lambda row: row.object or "")
    assert json.loads(read.record) == B
    assert ignored.object is None
    assert json.loads(ignored.record)["ignored_file"].endswith("/README.md")
    assert ignored.origin.endswith("/README.md")
    (said,) = delivered.said("ignored: ")
    assert "/README.md" in said
    hidden = delivered.said("not read, because names")
    assert re.fullmatch(r"not read, because names .* are hidden: .*/hidden/[.]a[.]json, and 5 more", hidden[0])
    assert hidden == [hidden[0]] * 3, "each run says so"


def test_a_link_that_leads_nowhere_is_named_by_each_run(delivered: Delivered):
    said = f"not read, because the target does not exist: the link {delivered.landing.path}/link.json"
    assert delivered.said("not read, because the target") == [said] * 3


def test_a_hidden_file_that_spark_lists_and_does_not_read_is_recorded(delivered: Delivered):
    (row,) = delivered.rows("listed")
    assert json.loads(row.record)["error"] == "its name is hidden: it begins with . or _"


def test_files_that_are_weeks_old_when_they_arrive_are_appended(delivered: Delivered):
    assert delivered.of_an_old_file == Totals(
        files=1, records=1, broken_links=1, hidden_files=6, first_batch=2, last_batch=2
    )


def test_a_file_of_a_later_century_makes_no_other_file_too_old(landing: Landing):
    """Spark forgets, without a word, what is so much older than the newest file that it has seen."""
    for year, name in ((2250, "late"), (1910, "early"), (2026, "today")):
        written = datetime(year, 1, 1, tzinfo=UTC).timestamp()
        os.utime(landing.put(f"{name}.json", [A]), (written, written))
        assert landing.append().records == 1
    # As of a file in memory, where no year is too late; datetime has none after 9999.
    listed = "SELECT 'file:/a' AS path, 1L AS length, timestamp_millis(316516550400123) AS modificationTime"
    assert datastream_files.versions(landing.spark.sql(listed)) == {"file:/a": (1, 316516550400123)}


def test_the_path_may_be_a_file_and_a_format_that_is_asked_for_holds_for_every_name(landing: Landing):
    assert landing.append(path=str(landing.put("data", [A])), format="json").records == 1


def test_a_batch_holds_at_most_so_many_files_and_the_numbers_rise_by_one(landing: Landing):
    landing.put("a.json", [A])
    landing.put("b.avro", avro({"object": "SHOP.B"}))
    landing.put("c.json", [A, A])
    totals = landing.append(max_files=2)
    assert (totals.files, totals.records, totals.first_batch, totals.last_batch) == (3, 4, 1, 2)
    assert {row.batch: row.files for row in landing.spark.sql(
        f"SELECT batch, count(DISTINCT origin) AS files FROM {landing.table} GROUP BY batch"
    ).collect()} == {1: 2, 2: 1}  # fmt: skip


# Files that cannot be read


TORN: dict[str, Callable[[], bytes]] = {
    "half.jsonl.gz": lambda: gzip.compress(os.urandom(5000).hex().encode())[:2000],
    "trailer.jsonl.gz": lambda: gzip.compress(b'{"object":"A"}\n')[:-1],
    "empty.jsonl.gz": lambda: b"",
    "plain.jsonl.gz": lambda: b'{"object":"A"}\n',
    "half.avro": lambda: avro(*({"object": "A"} for _ in range(100)))[:-30],
    "empty.avro": lambda: b"",
    "json.avro": lambda: b'{"object":"A"}\n',
}


class Torn:
    """A landing area of torn files: they vanish, are refused, are delivered again, are refused, and are set aside."""

    def __init__(self, landing: Landing) -> None:
        self.landing = landing
        for name, content in TORN.items():
            landing.put(name, content())
        landing.put("good.json", [A])
        landing.put("good.avro", avro({"object": "SHOP.B"}))
        gone = landing.put("goes.json", [B])
        self.of_the_empty = self.refused()
        # It belongs to the batch that was begun, and is not there any more.
        gone.unlink()
        self.of_the_vanished = self.refused()
        landing.put("goes.json", [B])
        landing.put("empty.avro", avro({"object": "SHOP.B"}))
        landing.put("empty.jsonl.gz", [A])
        self.of_the_unreadable = self.refused()
        self.rows_when_refused = landing.rows()
        landing.put("empty.avro", TORN["empty.avro"]())
        self.when_set_aside = landing.append(skip_corrupt_files=True)

    def refused(self) -> DataError:
        with pytest.raises(DataError) as refused:
            self.landing.append()
        return refused.value


@pytest.fixture(scope="module")
def torn(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Torn]:
    landing = Landing(spark, tmp_path_factory.mktemp("torn"))
    # A cluster may be set up to leave out what it cannot read.
    forgiving = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
    for setting in forgiving:
        spark.conf.set(setting, "true")
    torn = Torn(landing)
    for setting in forgiving:
        spark.conf.unset(setting)
    yield torn
    spark.sql(f"DROP TABLE {landing.table}")


def test_torn_files_are_named_and_nothing_of_their_batch_is_appended(torn: Torn):
    told = str(torn.of_the_unreadable)
    assert torn.of_the_unreadable.exit_code == 1
    assert re.search(rf"Cannot read the 5 files \S*{re.escape(str(torn.landing.path))}/.*\) and 2 more", told), told
    assert "\n" not in told
    assert torn.rows_when_refused == []


def test_a_file_that_vanished_after_it_was_found_is_not_lost_in_silence(torn: Torn):
    assert re.search(r"goes\.json \([^)]*it no longer exists", str(torn.of_the_vanished))


def test_a_torn_file_that_is_delivered_again_whole_is_appended(torn: Torn):
    assert {row.object for row in torn.landing.rows("origin LIKE '%/empty.jsonl.gz'")} == {"SHOP.A"}
    assert {row.object for row in torn.landing.rows("origin LIKE '%/goes.json'")} == {"SHOP.B"}


def test_each_kind_of_torn_file_is_found_and_can_be_set_aside(torn: Torn):
    expected = set(TORN) - {"empty.jsonl.gz"}  # which the refusal named, and which came again
    assert "Cannot read the 2 files" in str(torn.of_the_empty)
    assert "/empty.jsonl.gz (it is empty)" in str(torn.of_the_empty)
    totals = torn.when_set_aside
    assert (totals.files, totals.records, totals.unreadable) == (4, 4, 0)
    assert (totals.corrupt_files, totals.first_batch, totals.last_batch) == (len(expected), 1, 1)
    notes = [json.loads(row.record) for row in torn.landing.rows("object IS NULL")]
    assert {Path(note["corrupt_file"]).name for note in notes} == expected
    assert all(note["error"] for note in notes)


# Exactly once


def test_the_files_of_a_micro_batch_are_those_of_its_entries_alone(spark: SparkSession, tmp_path: Path):
    """Spark's log may have several entries for one micro-batch, and every tenth of them repeats those before it."""

    def entries(*numbers: int) -> str:
        paths = [{"path": f"file:///a/{n}%20.json", "timestamp": 1, "batchId": n, "action": "add"} for n in numbers]
        return "v1\n" + "".join(json.dumps(path) + "\n" for path in paths)

    log = {"0": entries(0), "1": entries(1), "2.compact": entries(0, 1, 2), "3": entries(3)}
    for name, text in log.items():
        file = tmp_path / "sources" / "0" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "offsets").mkdir()
    for epoch, last in enumerate((0, 2, 3)):
        (tmp_path / "offsets" / str(epoch)).write_text(f'v1\n{{}}\n{{"logOffset":{last}}}\n')
    found = [files_of_batch(spark, str(tmp_path), epoch) for epoch in range(3)]
    assert found == [["file:/a/0 .json"], ["file:/a/1 .json", "file:/a/2 .json"], ["file:/a/3 .json"]]


def test_the_last_of_many_micro_batches_is_that_of_the_highest_number(spark: SparkSession, tmp_path: Path):
    (tmp_path / "commits").mkdir()
    for name in (*range(12), ".11.crc", "11.tmp"):
        (tmp_path / "commits" / str(name)).touch()
    assert last_commit(spark, str(tmp_path)) == 11
    assert last_commit(spark, str(tmp_path / "another")) is None


def test_killed_at_each_place_in_turn_each_record_is_there_once_and_no_number_is_left_out(landing: Landing):
    landing.put("0.json", [A, A])
    landing.put("0.avro", avro({"object": "SHOP.C"}))
    for number, place in enumerate(PLACES):
        with pytest.raises(Fault, match=place), killed_at(place):
            landing.append()
        landing.put(f"{number + 1}.json", [B])
    files = [f"file:{landing.path}/{number}.json" for number in range(len(PLACES) + 1)]
    landing.append()
    rows = Counter((row.origin, row.object) for row in landing.rows())
    assert rows == {
        (files[0], "SHOP.A"): 2, (f"file:{landing.path}/0.avro", "SHOP.C"): 1, **{(f, "SHOP.B"): 1 for f in files[1:]},
    }  # fmt: skip
    batches = sorted({row.batch for row in landing.rows()})
    assert batches == list(range(1, len(batches) + 1))
    assert {row.batch for row in landing.rows() if "/0." in row.origin} == {1}


@pytest.mark.soak
@pytest.mark.parametrize("place", PLACES)
def test_killed_anywhere_and_started_again_each_record_is_there_once(landing: Landing, place: str):
    landing.put("a.json", [A, A])
    landing.append()
    landing.put("b.json", [B])
    landing.put("c.avro", avro({"object": "SHOP.C"}))
    with pytest.raises(Fault, match=place), killed_at(place):
        landing.append()
    landing.append()
    assert landing.append() == Totals(hidden_files=0)
    assert Counter((row.object, row.batch) for row in landing.rows()) == {
        ("SHOP.A", 1): 2,
        ("SHOP.B", 2): 1,
        ("SHOP.C", 2): 1,
    }


def test_a_run_that_was_killed_while_it_planned_the_first_batch_is_gone_on_with(landing: Landing):
    (landing.checkpoint / "offsets").mkdir(parents=True)
    (landing.checkpoint / "offsets" / ".0.8aec9484-3b11-4309-bbb7-8beb6dee27ff.tmp").write_text("v1\n")
    landing.put("a.json", [A, A])
    assert landing.append().records == len(landing.rows()) == 2


class Purged:
    """A landing area with the name of a pattern, rows that are purged, and a checkpoint that is set back, then lost."""

    def __init__(self, landing: Landing, decoy: Path, backup: Path) -> None:
        self.landing = landing
        decoy.mkdir()
        (decoy / "decoy.json").write_text('{"object": "DECOY"}')
        landing.put("a.json", [A])
        with pytest.raises(Fault), killed_at("after_data_commit"):
            landing.append()
        self.purge()
        self.when_started_again = landing.append()
        self.rows_when_started_again = landing.rows()
        shutil.copytree(landing.checkpoint, backup)
        landing.put("b.json", [B])
        self.after_a_purge = landing.append()
        self.purge()
        shutil.rmtree(landing.checkpoint)
        shutil.copytree(backup, landing.checkpoint)
        landing.put("c.json", [B])
        with pytest.raises(UsageError) as self.set_back:
            landing.append()
        self.rows_when_set_back = landing.rows()
        shutil.rmtree(landing.checkpoint)
        self.when_lost = landing.append(max_files=1)
        self.properties = landing.properties()
        self.rows_when_lost = landing.rows()
        landing.spark.sql(f"DROP TABLE {landing.table}")
        with pytest.raises(UsageError) as self.elsewhere:
            landing.append()

    def purge(self) -> None:
        self.landing.spark.sql(f"DELETE FROM {self.landing.table}")


@pytest.fixture(scope="module")
def purged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Purged]:
    root = tmp_path_factory.mktemp("purged")
    landing = Landing(spark, root, "landing[1]")
    yield Purged(landing, root / "landing1", root / "backup")
    spark.sql(f"DROP TABLE {landing.table}")


def test_what_was_committed_and_then_purged_does_not_come_back_when_the_job_starts_again(purged: Purged):
    assert purged.rows_when_started_again == []


def test_no_number_comes_again_after_a_purge_and_a_lost_checkpoint(purged: Purged):
    assert purged.after_a_purge.first_batch == 2
    assert purged.when_lost.first_batch == 3
    assert purged.properties["reconcile.last_batch"] == "5"


def test_after_a_lost_checkpoint_every_file_comes_again_under_new_numbers(purged: Purged):
    assert (purged.when_lost.records, purged.when_lost.last_batch) == (3, 5)
    assert Counter((row.origin.rpartition("/")[2], row.batch) for row in purged.rows_when_lost).keys() == {
        ("a.json", 3), ("b.json", 4), ("c.json", 5),
    }  # fmt: skip
    (said,) = purged.landing.said
    assert "lost" in said


def test_a_checkpoint_that_was_set_back_is_refused(purged: Purged):
    assert re.search(r"was restored.*Delete the checkpoint to append every file again", str(purged.set_back.value))
    assert purged.rows_when_set_back == []


def test_a_checkpoint_that_has_appended_elsewhere_is_refused(purged: Purged):
    assert "belongs to another table" in str(purged.elsewhere.value)


def test_the_path_itself_may_look_like_a_pattern(purged: Purged):
    assert {row.object for row in purged.rows_when_lost} == {"SHOP.A", "SHOP.B"}


# A checkpoint that a power cut left


def test_a_damaged_checkpoint_is_refused_with_the_directory_to_delete_and_nothing_is_lost_by_that(landing: Landing):
    for name in ("a", "b"):
        landing.put(f"{name}.json", [A])
        landing.append()
    whole = landing.checkpoint.with_name("whole")
    landing.checkpoint.rename(whole)
    for part, empty in itertools.product(("metadata", "offsets/1", "commits/1", "sources/0/1"), (True, False)):
        shutil.rmtree(landing.checkpoint, ignore_errors=True)
        shutil.copytree(whole, landing.checkpoint)
        file = landing.checkpoint / part
        file.with_name(f".{file.name}.crc").unlink()
        file.write_bytes(b"" if empty else file.read_bytes()[:-3])
        told = rf"checkpoint file:{landing.checkpoint} is damaged.*\({part} .*delete it to append every file again"
        with pytest.raises(UsageError, match=told):
            landing.append()
    for part in ("metadata", "offsets", "sources"):
        shutil.rmtree(landing.checkpoint, ignore_errors=True)
        shutil.copytree(whole, landing.checkpoint, ignore=shutil.ignore_patterns(part, f".{part}.crc"))
        with pytest.raises(UsageError, match="is damaged"):
            landing.append()
    shutil.rmtree(landing.checkpoint)
    assert landing.append().records == 2
    assert [row.batch for row in landing.rows()] == [1, 2, 3, 3]


# Files that change


@pytest.mark.parametrize("becomes", ["longer", "empty", "another", "filled"])
def test_a_file_that_is_written_to_while_it_is_read_is_named(landing: Landing, becomes: str):
    file = landing.put("a.json", [] if becomes == "filled" else [A])
    landing.put("b.json", [B])
    after = {"longer": [A, B], "empty": [], "another": [B], "filled": [A]}[becomes]

    def change(place: str) -> None:
        if place == "before_data_commit":
            landing.put(file.name, after)
            os.utime(file, (1, 1))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(failpoints, "reach", change)
        with pytest.raises(DataError, match=r"a\.json was written to while it was read, so .* under another name"):
            landing.append()
        # What was there is appended, and the same command goes on.
        assert landing.append().files == 2
        file = landing.put("c.json", [A])
        after = [A, B]
        totals = landing.append(skip_corrupt_files=True)
    assert (totals.files, totals.changed_files, totals.last_batch) == (1, 1, 2)


# One writer


def test_the_staging_table_of_another_job_is_refused(delivered: Delivered, tmp_path: Path):
    landing = delivered.landing
    with pytest.raises(UsageError, match="belongs to another job") as refused:
        landing.append(path=str(tmp_path), checkpoint=str(tmp_path / "other"))
    assert str(landing.path) in str(refused.value)


def test_a_second_checkpoint_is_refused_while_the_first_is_there(delivered: Delivered, tmp_path: Path):
    with pytest.raises(UsageError, match="is written with the checkpoint"):
        delivered.landing.append(checkpoint=str(tmp_path / "other"))


def test_a_second_job_with_the_same_checkpoint_is_refused(delivered: Delivered):
    landing, stop, refused = delivered.landing, threading.Event(), list[str]()

    def second(progress: str) -> None:
        stop.set()
        with pytest.raises(Fault) as problem:
            landing.append()
        refused.append(str(problem.value))

    totals = landing.append(every="1 hour", stop=stop, progress=second)
    assert (totals.files, totals.records) == (0, 0)
    assert "Another process is appending with the same checkpoint" in refused[0]
    assert len(landing.rows()) == len(delivered.all_rows)


class Writers:
    """A staging table that jobs have opened, without files and streams: `append` brings one record."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark, self.table = spark, f"ingest.w{next(numbers)}"
        self.record = spark.sql("SELECT '{}' AS record, 'a file' AS origin")

    def opened(self, job: str = "a job") -> Staging:
        return Staging(self.spark, TableName.parse(self.table), job)

    def append(self, staging: Staging, epoch: int, checkpoint: str = "somewhere", query_id: str = "id") -> int | None:
        appended = staging.append(self.record, "datastream", query_id, checkpoint, epoch, [f"{epoch}.json"])
        assert appended.rows == 1
        return appended.batch

    def batches(self) -> list[int]:
        return [row.batch for row in self.spark.table(self.table).orderBy("batch").collect()]


@pytest.fixture
def writers(spark: SparkSession) -> Iterator[Writers]:
    writers = Writers(spark)
    yield writers
    spark.sql(f"DROP TABLE IF EXISTS {writers.table}")


def test_a_second_writer_that_came_between_is_noticed_and_one_taken_for_dead_appends_nothing_twice(writers: Writers):
    late, first = writers.opened(), writers.opened()
    writers.append(first, 6)
    with pytest.raises(UsageError, match="Another job is appending to the staging table"):
        writers.append(late, 7)
    for epoch, place in enumerate(PLACES[: PLACES.index("after_data_commit")], start=7):
        with pytest.MonkeyPatch.context() as patched:

            def overtaken(reached: str, epoch: int = epoch, place: str = place, patched: Any = patched) -> None:
                if reached == place:
                    patched.undo()
                    assert writers.append(writers.opened(), epoch) == epoch - 5

            patched.setattr(failpoints, "reach", overtaken)
            if place == "before_publish":
                with pytest.raises(Fault, match="at the same moment"):
                    try:
                        writers.append(first, epoch)
                    except Exception as problem:
                        raise explained(problem) from problem
            else:
                assert writers.append(first, epoch) == epoch - 5
        assert writers.batches() == list(range(1, epoch - 4))


def test_a_job_that_masks_less_than_another_does_by_now_appends_nothing(writers: Writers):
    first, second = writers.opened(), writers.opened()
    writers.append(first, 0)
    second.keep("masks", "7b7d")
    with pytest.raises(UsageError, match=r"Another job has masked more fields in .*: end this job, and start it with"):
        writers.append(first, 1)
    assert writers.batches() == [1]


def test_two_jobs_that_give_out_one_number_at_the_same_moment_do_not_both_append_under_it(writers: Writers):
    first, second = writers.opened(), writers.opened()
    # Behind the second one's look at the table, and before it says what it appends.
    second._refuse_second_writer = lambda: writers.append(first, 0, "there", "first")  # type: ignore[method-assign]
    with pytest.raises(Fault, match=r"at the same moment.*nothing of this batch was appended: run the same command"):
        try:
            writers.append(second, 0)
        except Exception as problem:
            raise explained(problem) from problem
    assert writers.batches() == [1]
    with pytest.raises(UsageError, match="Another job is appending"):
        writers.append(first, 1, "there", "first")
    assert writers.append(writers.opened(), 0) == 2
    assert writers.batches() == [1, 2]


def test_a_batch_that_was_put_in_by_hand_takes_no_number_from_the_next_append(writers: Writers):
    writers.append(writers.opened(), 0)
    by_hand = "record, source, object, origin, batch + 6 AS batch, appended_at"
    writers.spark.sql(f"INSERT INTO {writers.table} SELECT {by_hand} FROM {writers.table}")
    with pytest.raises(Fault, match=r"number 2 .*: run the same command again"):
        try:
            writers.append(writers.opened(), 1)
        except Exception as problem:
            raise explained(problem) from problem
    assert writers.append(writers.opened(), 1) == 8
    assert writers.append(writers.opened(), 2) == 9
    assert writers.batches() == [1, 7, 8, 9]


def test_a_table_that_was_set_back_is_refused_and_its_numbers_are_not_used_again(writers: Writers):
    for epoch in range(2):
        writers.append(writers.opened(), epoch)
    older = versions(writers.spark, writers.table)[-1]
    assert writers.append(writers.opened(), 2) == 3
    assert writers.opened().check_checkpoint("somewhere", "id", committed=2) is False
    restore(writers.spark, writers.table, older)
    for _ in range(2):
        with pytest.raises(
            UsageError, match=r"was restored .* checkpoint somewhere has these appends as done: .* append every"
        ):
            writers.opened().check_checkpoint("somewhere", "id", committed=2)
    again = writers.opened()
    assert again.check_checkpoint("somewhere", None, committed=None) is True
    assert writers.append(again, 0, query_id="another") == 4
    assert writers.opened().check_checkpoint("somewhere", "another", committed=0) is False
    assert writers.batches() == [1, 2, 4]


def test_a_table_that_was_copied_back_as_files_is_refused(writers: Writers):
    writers.append(writers.opened(), 0)
    with pytest.raises(UsageError, match="was restored"):
        writers.opened().check_checkpoint("somewhere", "id", committed=1)


def test_an_append_of_nothing_is_known_again_and_its_number_is_used_by_the_next(writers: Writers):
    """Files without a record, and a job that dies before its checkpoint has them."""
    nothing = writers.record.where("false")
    for _ in range(2):
        appended = writers.opened().append(nothing, "datastream", "id", "somewhere", 0, ["empty.json"])
        assert appended.rows == 0
    assert (writers.append(writers.opened(), 1), writers.batches()) == (1, [1])


def test_a_path_and_a_table_that_speak_of_secrets_are_recognized_again(writers: Writers):
    # Spark blots such words out of what SHOW TBLPROPERTIES tells.
    writers.table += "_urls"
    job, checkpoint = "datastream file:/short_urls/token", "file:/checkpoints/password"
    writers.append(writers.opened(job), 0, checkpoint)
    again = writers.opened(job)
    assert again.check_checkpoint(checkpoint, "id", committed=0) is False
    assert writers.append(again, 1, checkpoint) == 2


def test_a_table_filled_by_hand_is_taken_over_and_its_numbers_are_not_used_again(writers: Writers):
    writers.spark.sql("CREATE SCHEMA IF NOT EXISTS ingest")
    writers.spark.sql(
        f"CREATE TABLE {writers.table} USING {file_format()} PARTITIONED BY (object) AS SELECT '{{}}' AS record, "
        "'x' AS source, 'y' AS object, 'z' AS origin, 41L AS batch, current_timestamp() AS appended_at"
    )
    # Of what is purged no row has a number any more.
    writers.spark.sql(f"ALTER TABLE {writers.table} SET TBLPROPERTIES ('reconcile.purged.0cc175b9' = '44')")
    assert writers.append(writers.opened(), 0) == 45


@pytest.mark.parametrize(
    ("columns", "form", "sentence"),
    [
        (
            "id bigint",
            file_format(),
            r"is not a staging table. It lacks record string, .*; it has columns that .* \(id\): name another",
        ),
        (
            "record string, source string, object string, origin string, batch bigint, appended_at timestamp",
            "parquet",
            r"does not have the format of this session.*SPARK_CONF_DIR",
        ),
    ],
    ids=["no staging table", "another format"],
)
def test_a_table_that_is_no_staging_table_of_the_session_is_refused(
    writers: Writers, columns: str, form: str, sentence: str
):
    writers.spark.sql("CREATE SCHEMA IF NOT EXISTS ingest")
    writers.spark.sql(f"CREATE TABLE {writers.table} ({columns}) USING {form}")
    with pytest.raises(UsageError, match=sentence):
        writers.opened()


# Keeping going


def test_with_an_interval_the_job_takes_what_comes_under_a_pattern_until_it_is_stopped(landing: Landing):
    landing.put("here/a.json", [A])
    landing.put("elsewhere/a.json", [A])
    stop, shown = threading.Event(), list[str]()

    def progress(text: str) -> None:
        shown.append(text)
        assert len(shown) < 500, "waited in vain"
        if text.startswith("1 files, 1 records") and not (landing.path / "here" / "b.json").exists():
            landing.put("_coming", [B]).rename(landing.path / "here" / "b.json")
        if text.startswith("2 files, 2 records"):
            stop.set()

    path = str(landing.path / "h*")
    totals = landing.append(path=path, every="200 milliseconds", stop=stop, progress=progress)
    assert replace(totals, hidden_files=None) == Totals(2, 2, first_batch=1, last_batch=2)
    assert [row.object for row in landing.rows()] == ["SHOP.A", "SHOP.B"]


def test_one_pass_that_is_stopped_says_that_it_did_not_finish(landing: Landing):
    landing.put("a.json", [A])
    stop = threading.Event()
    stop.set()
    with pytest.raises(Fault, match="Stopped before everything was appended"):
        landing.append(stop=stop)


# Usage


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/nowhere/at/all", "There is nothing at /nowhere/at/all"),
        ("nofs://bucket/x", "no connector for paths that begin with nofs"),
        ("/nowhere/${x}*", "There is nothing at"),
    ],
)
def test_a_path_that_is_not_there_is_one_sentence(landing: Landing, path: str, sentence: str):
    with pytest.raises(UsageError, match=sentence) as refused:
        landing.append(path=path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["`odd name`", "größe", "`a.b`", "`x;y`", "`{{ x }}`", "`'`", "```a`"])
def test_a_name_that_the_metastore_does_not_take_is_refused_in_one_sentence(landing: Landing, name: str):
    for table in (f"ingest.{name}", f"{name}.t"):
        landing.table = table
        with pytest.raises(UsageError, match=r"does not accept|Spark refuses") as refused:
            landing.append()
        assert "\n" not in str(refused.value)
    landing.table = "ingest.never"
