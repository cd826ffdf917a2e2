"""append.py datastream --masks: no masked value rests anywhere, whatever file it comes in."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from avro_files import avro_file, record
from process.landings import Landing
from pyspark.sql import SparkSession
from reconcile_jobs import datastream_records, expectations
from reconcile_jobs.expectations import Expected
from reconcile_jobs.masks import Masks, RowMasks
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.snapshots import snapshot_files
from reconcile_jobs.staging import TableName

CANARY = "canary-7f31"
KEY = b"0123456789abcdef0123456789abcdef"
MASKS = Masks({"shop_people": {"email": "sha256", "ssn": "drop"}}, KEY)
LIMIT = 2**16
DIRECTORY = "shop_people/2026/05/01/09/00"
PEOPLE = record(
    "r", object="string", uuid="string",
    payload=record("payload", id="long", email=["null", "string"], ssn=["null", "string"], rest="string"),
)  # fmt: skip


def digest(text: str) -> str:
    return hmac.new(KEY, text.encode(), hashlib.sha256).hexdigest()


def person(id_: int, rest: str = "") -> dict[str, Any]:
    payload = {"id": id_, "email": f"{CANARY}@é", "ssn": CANARY, "rest": rest}
    return {"object": "shop_people", "uuid": "7", "payload": payload}


def lines(*records: Any) -> bytes:
    return "\n".join(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in records).encode()


TORN = json.dumps(person(0))[:90]
CONTENT = lines(person(1), TORN, person(2, CANARY * LIMIT), {"object": "shop_orders", "payload": {"email": "open"}})
CONTENT += b'\n{"object":"shop_people","payload":{"email":"' + CANARY.encode() + b'\xff"}}'
FILES = {
    "a.jsonl": CONTENT,
    "a:b [c].jsonl": CONTENT,
    "a.jsonl.gz": gzip.compress(CONTENT),
    "a.jsonl.bz2": bz2.compress(CONTENT),
    "a.avro": avro_file(PEOPLE, person(1), person(2, CANARY * LIMIT)),
    "torn.avro": avro_file(PEOPLE, *[person(1)] * 9)[:-30],
}
OF_LINES = [name for name in FILES if not name.endswith(".avro")]


def leaks(landing: Landing, *directories: Path) -> list[str]:
    """Return where a canary stands: rows, properties, what was said, files of the checkpoint and of directories."""
    found = [row.record for row in landing.rows() if CANARY in str(row)]
    found += [text for text in (*landing.said, str(landing.properties())) if CANARY in text]
    for directory in (landing.checkpoint, *directories):
        found += [str(file) for file in directory.rglob("*") if file.is_file() and CANARY.encode() in file.read_bytes()]
    return found


def landed(spark: SparkSession, directory: Path) -> Landing:
    landing = Landing(spark, directory)
    for name, content in FILES.items():
        landing.put(f"{DIRECTORY}/{name}", content)
    landing.totals = landing.append(masks=MASKS, longest_record=LIMIT, skip_corrupt_files=True)  # type: ignore[attr-defined]
    return landing


@pytest.fixture(scope="module")
def landing(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Landing]:
    found = landed(spark, tmp_path_factory.mktemp("masks"))
    yield found
    spark.sql(f"DROP TABLE {found.table}")


def test_no_masked_value_rests_anywhere(landing: Landing):
    assert leaks(landing) == []


def test_every_reader_gives_the_same_record(landing: Landing):
    rows = landing.rows("object = 'shop_people' and record like '{\"masked\"%'")
    found = {row.origin.rpartition("/")[2]: json.loads(row.record) for row in rows}
    assert len(found) == len(rows) == len(FILES) - 1
    for read in found.values():
        assert read["masked"] == {"by": MASKS.by, "fields": {"email": "sha256", "ssn": "drop"}}
        assert read["payload"] == {"id": 1, "email": digest(f"{CANARY}@é"), "rest": ""}


def test_what_cannot_be_read_is_there_without_its_text_and_is_counted(landing: Landing):
    totals = landing.totals  # type: ignore[attr-defined]
    unread = [json.loads(row.record) for row in landing.rows("object is null")]
    withheld = [one["withheld_record"] for one in unread if "withheld_record" in one]
    # The torn line, and the one that is no UTF-8.
    lengths = sorted(len(line) for line in CONTENT.split(b"\n") if line == TORN.encode() or b"\xff" in line)
    assert sorted(one["bytes"] for one in withheld) == sorted(lengths * len(OF_LINES))
    assert (totals.unreadable, totals.corrupt_files, totals.long_records) == (len(withheld), 1, len(FILES) - 1)
    notes = [json.loads(row.record) for row in landing.rows("record like '{\"long_record\"%'")]
    assert len(notes) == len(FILES) - 1
    assert all(note["masked"]["fields"] and "payload" not in note and "hmac" in note["long_record"] for note in notes)
    (said,) = [said for said in landing.said if said.startswith("not a record")]
    assert "without their text, without an object" in said


def test_records_of_other_objects_are_as_delivered(landing: Landing):
    rows = landing.rows("object = 'shop_orders'")
    assert {row.record for row in rows} == {'{"object": "shop_orders", "payload": {"email": "open"}}'}
    assert len(rows) == len(OF_LINES)


def test_a_later_run_without_the_masks_or_with_another_key_is_refused(landing: Landing):
    before = len(landing.rows())
    landing.put(f"{DIRECTORY}/later.jsonl", lines(person(3)))
    for masks in (None, Masks(MASKS.objects, b"another key, of 32 characters 00")):
        with pytest.raises(UsageError):
            landing.append(masks=masks)
    assert len(landing.rows()) == before and leaks(landing) == []


def test_a_snapshot_of_a_table_has_the_digests_of_records(landing: Landing, spark: SparkSession):
    name = TableName.parse("ingest.people_in_clear")
    spark.sql(
        f"create or replace temporary view v as select 1L as id, '{CANARY}@é' as EMAIL, 12.50 as ssn, 'x' as rest"
    )
    spark.sql(f"create table if not exists {name.sql} using parquet as select * from v")
    into = TableName.parse("ingest.people_masked")
    try:
        taken = "2026-05-01T09:00:00Z"
        assert snapshot_files.load_table(spark, name, into, taken, RowMasks(MASKS, "shop.people")) == 1
        (row,) = spark.table(into.sql).collect()
        assert row.asDict() == {"id": 1, "EMAIL": digest(f"{CANARY}@é"), "ssn": None, "rest": "x"}
        said = {row.key: row.value for row in spark.sql(f"show tblproperties {into.sql}").collect()}
        assert said["reconcile.snapshot.masks"].startswith(f"{MASKS.by} ")
    finally:
        spark.sql(f"drop table if exists {into.sql}")
        spark.sql(f"drop table {name.sql}")


@pytest.mark.soak
def test_data_docs_show_no_masked_value(landing: Landing, spark: SparkSession, tmp_path: Path):
    said: list[str] = []
    expected = Expected("warn", ("shop_orders",), 3600, 10.0, str(tmp_path / "docs"))
    expectations.check(spark, TableName.parse(landing.table), "datastream", 1, expected, said.append)
    assert said and leaks(landing, tmp_path) == [] and CANARY not in str(said)


@pytest.mark.planted
@pytest.mark.parametrize("bug", ["plain lines", "archives and Avro"])
def test_a_reader_that_lets_a_value_through_is_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str
):
    if bug == "plain lines":
        monkeypatch.setattr(
            datastream_records, "_masked_lines",
            lambda lines, masks: lines.selectExpr("value AS record", "_metadata.file_path AS origin"),
        )  # fmt: skip
    else:
        monkeypatch.setattr(datastream_records, "_masked", lambda record, masks: record)
    found = landed(spark, tmp_path)
    try:
        assert leaks(found)
    finally:
        spark.sql(f"DROP TABLE {found.table}")
