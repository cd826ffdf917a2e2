"""append.py datastream: of a record that is too long staging has a note, whatever file it comes in."""

import bz2
import gzip
import hashlib
import json
from urllib.parse import unquote

import pytest
from process.landings import Landing, avro

LIMIT = 2**16
EVENT = {"uuid": "u", "object": "SHOP.A", "source_metadata": {"scn": 5}}
SHORT = {"object": "SHOP.B", "x": "y" * 6_000}
DIRECTORY = "SHOP.C/2026/05/01/09/00"


def long(size, event=EVENT):
    return json.dumps(event | {"payload": {"v": "é" * (size // 2)}}, ensure_ascii=False)


def lines(*records, feed="\n"):
    return (
        "\n".join(record if isinstance(record, str) else json.dumps(record) for record in records).encode()
        + feed.encode()
    )


# A line that goes through three of Spark's parts of a file, one at its end, and one that names no object.
LONG = [long(3 * LIMIT), long(LIMIT + 100), long(2 * LIMIT, {})]
CONTENT = lines(*[SHORT] * 7, LONG[0], SHORT, long(LIMIT - 1000), *[SHORT] * 9, LONG[2], SHORT, LONG[1], feed="")
FILES = {
    "a.jsonl": CONTENT,
    "a:b [c].jsonl": CONTENT,
    "a.jsonl.gz": gzip.compress(CONTENT),
    "a.jsonl.bz2": bz2.compress(CONTENT),
}


@pytest.fixture(scope="module")
def landing(spark, tmp_path_factory):
    landing = Landing(spark, tmp_path_factory.mktemp("long"))
    for name, content in FILES.items():
        landing.put(f"{DIRECTORY}/{name}", content)
    landing.put("short.jsonl", lines(SHORT))
    landing.put("d.avro", avro(*({"object": "SHOP.D", "v": "y" * size} for size in (1, 2 * LIMIT, 3)), v="string"))
    spark.conf.set("spark.sql.files.maxPartitionBytes", "64k")
    landing.totals = landing.append(longest_record=LIMIT)
    spark.conf.unset("spark.sql.files.maxPartitionBytes")
    yield landing
    spark.sql(f"DROP TABLE {landing.table}")


def test_long_records_are_counted_and_the_first_is_named(landing):
    count = 3 * len(FILES) + 1
    assert (landing.totals.files, landing.totals.long_records, landing.totals.unreadable) == (len(FILES) + 2, count, 0)
    assert landing.totals.records == len(CONTENT.splitlines()) * len(FILES) + 1 + 3
    (said,) = landing.said
    first = min(f"{DIRECTORY}/{name}" for name in FILES)
    line = LONG[0].encode()
    assert said.startswith(
        f"too long for staging: the record of {len(line):,} bytes at byte {CONTENT.index(line)} of "
        f"file:{landing.path}/{first}, and {count - 1} more; {landing.table} has a note"
    )


@pytest.mark.parametrize("name", FILES)
def test_the_other_records_of_a_file_come_whole(landing, name):
    rows = [row for row in landing.rows() if unquote(row.origin).endswith(f"/{name}")]
    short = sorted(row.record for row in rows if not row.record.startswith('{"long_record"'))
    assert short == sorted(line for line in CONTENT.decode().split("\n") if line not in LONG)
    notes = {json.loads(row.record)["long_record"]["sha256"]: row for row in rows if row.record not in short}
    for line in LONG:
        row = notes.pop(hashlib.sha256(line.encode()).hexdigest())
        said = json.loads(row.record)
        place = f"byte {CONTENT.index(line.encode())}"
        assert (said["long_record"]["bytes"], said["long_record"]["place"]) == (len(line.encode()), place)
        assert row.object == ("SHOP.C" if line is LONG[2] else "SHOP.A")
        assert said.get("source_metadata") == (None if line is LONG[2] else {"scn": 5})
    assert notes == {}


def test_of_avro_the_note_names_the_record(landing):
    rows = landing.rows("object = 'SHOP.D'")
    notes = [json.loads(row.record)["long_record"]["place"] for row in rows if "long_record" in row.record]
    assert (len(rows), notes) == (3, ["record 2"])


def test_a_limit_that_is_higher_takes_them(landing):
    landing.checkpoint = landing.path.parent / "again"
    landing.spark.sql(f"DROP TABLE {landing.table}")
    landing.append(longest_record=4 * LIMIT)
    rows = [row.record for row in landing.rows("object = 'SHOP.A'")]
    assert sum(record in LONG for record in rows) == 2 * len(FILES)
    assert not [record for record in rows if record.startswith('{"long_record"')]
