"""Avro of the capture holds what its JSON holds, record by record."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from reconcile_jobs.avro_json import json_records

CAPTURE = Path(__file__).parents[1] / "data" / "capture"


def test_avro_of_the_capture_holds_what_its_json_holds():
    told = Counter(comparable(record) for record in avro_records())
    assert told == Counter(comparable(line) for line in json_lines())
    assert told.total() == 15261


def avro_records() -> Iterator[str]:
    for file in (CAPTURE / "postgresql_avro").rglob("*.avro"):
        yield from json_records(file.read_bytes())


def json_lines() -> Iterator[str]:
    for file in (CAPTURE / "postgresql_json").rglob("*.jsonl.gz"):
        yield from gzip.decompress(file.read_bytes()).decode().splitlines()


def comparable(record: str) -> str:
    # Each number as its digits; of the times in the envelope Avro carries milliseconds only. What it tells beside its
    # values JSON has not.
    values = json.loads(record, parse_float=digits, parse_int=digits)
    values.pop("avro_types", None)
    for name in ("read_timestamp", "source_timestamp"):
        values[name] = values[name].rstrip("Z")[:23]
    return re.sub(r"(:\d\d)\.?0*Z", r"\1Z", json.dumps(values, sort_keys=True))


def digits(number: str) -> str:
    return str(Decimal(number).normalize())
