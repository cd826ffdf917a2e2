"""Write the capture in the form that Datastream's real files have, from the form that its documentation has.

`python tests/data/capture/make_capture.py` under `PYTHONPATH=tests` replaces the eight folders beside this file, with
the same bytes at every run. It reads the capture as it was given, which the history of this repository holds: commit
`GIVEN`. Every record stays what it was (its uuid, its row, its place in the log), and in the same delivery, as often
and in the same order.

README.md beside this file says which parts of the form were seen in real files, and which are only documented.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
from truth import COLUMNS, KEYS, SOURCES

HERE = Path(__file__).resolve().parent
GIVEN = "638290053f3da4135711c0778eeb38b48a3d32db"
# From this delivery on, the MySQL stream follows GTIDs.
GTIDS_FROM = 3
# From this delivery on, the timestamps in Oracle's JSON have their present form; before it that of 2021.
PRESENT_TIMES_FROM = 3
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLIS = {"logicalType": "timestamp-millis", "type": "long"}
MICROS = {"logicalType": "timestamp-micros", "type": "long"}
TEXT, NUMBER, FLAG = ["null", "string"], ["null", "long"], ["null", "boolean"]
NAMES = ["null", {"type": "array", "items": "string"}]


class Digits(str):
    """A number of JSON with a point, as its text."""


@dataclass(frozen=True)
class Event:
    """One record of the given capture, and what the files of its kind have in common."""

    source: str
    table: str
    delivery: int
    form: str
    given: dict[str, Any]
    has_pair: bool

    @property
    def metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = self.given["source_metadata"]
        return found

    @property
    def is_backfill(self) -> bool:
        return "backfill" in self.given["read_method"]

    @property
    def object(self) -> str:
        return in_case(self.source, f"shop_{self.table}")

    @property
    def follows_gtids(self) -> bool:
        return self.source == "mysql" and self.delivery >= GTIDS_FROM

    @property
    def read_method(self) -> str:
        words = {
            "oracle": ("oracle-cdc-logminer", "oracle-backfill"),
            "mysql": ("cdc" if self.follows_gtids else "mysql-cdc-binlog", "mysql-backfill-fulldump"),
            "postgresql": ("postgresql-cdc", "postgresql-backfill"),
            "sqlserver": ("sqlserver-cdc", "sqlserver-backfill"),
        }
        return words[self.source][self.is_backfill]

    @property
    def schema_key(self) -> str:
        told = f"{self.source} {self.object} {' '.join(COLUMNS[self.table])}"
        return hashlib.sha1(told.encode()).hexdigest()

    @property
    def change_type(self) -> str | None:
        given: str = self.metadata["change_type"]
        if self.source != "oracle":
            return given
        if self.is_backfill and self.form == "avro":
            return None
        # Oracle has UPDATE-INSERT for a changed key alone.
        return "UPDATE" if given == "UPDATE-INSERT" and not self.has_pair else given

    @property
    def read_at(self) -> int:
        """In milliseconds, as all times of the envelope."""
        return micros(self.given["read_timestamp"]) // 1000

    @property
    def source_time(self) -> int:
        if self.source == "oracle" and self.is_backfill:
            at: str = json.loads((HERE / "snapshot" / "at.json").read_text())["at"]
            return micros(at) // 1000
        millis = micros(self.given["source_timestamp"]) // 1000
        # Of the two records of a changed key, which share a position, the second was seen a second later.
        second = self.source == "mysql" and self.has_pair and self.metadata["change_type"] == "UPDATE-INSERT"
        return millis + 1000 if second else millis

    def source_metadata(self) -> dict[str, Any]:
        """Return the fields in the order that files have."""
        told = {**self.metadata, "change_type": self.change_type}
        schema, table = (in_case(self.source, name) for name in ("shop", self.table))
        names = {"schema": schema, "table": table}
        if self.source == "mysql":
            file, position = ("", 0) if self.is_backfill else (told["log_file"], told["log_position"])
            log = ("binlog_file", "binlog_position") if self.follows_gtids else ("log_file", "log_position")
            return {
                "table": table, "database": schema, "primary_keys": sorted(KEYS[self.table]), log[0]: file,
                log[1]: position, "change_type": told["change_type"], "is_deleted": told["is_deleted"],
            }  # fmt: skip
        if self.source == "postgresql":
            transaction = None if told["tx_id"] is None else int(told["tx_id"])
            return {
                **names, "is_deleted": told["is_deleted"], "change_type": told["change_type"], "tx_id": transaction,
                "lsn": told["lsn"], "primary_keys": KEYS[self.table],
            }  # fmt: skip
        if self.source == "sqlserver":
            return {
                "table": table, "database": "sales", "schema": schema, "is_deleted": told["is_deleted"],
                "lsn": told["lsn"], "tx_id": told["tx_id"], "physical_location": told["physical_location"],
                "replication_index": KEYS[self.table], "change_type": told["change_type"],
            }  # fmt: skip
        # Of a changed key, both records have one place. Both backfills of Oracle that were seen are played.
        place = {"ssn": 0 if self.has_pair else told["ssn"], "rs_id": told["rs_id"] and f" {told['rs_id']} "}
        if self.is_backfill and self.form == "json":
            place["rs_id"] = ""
        keys = {} if self.form == "avro" else {"primary_keys": [name.upper() for name in KEYS[self.table]]}
        return {
            **names, "database": told["database"], "row_id": told["row_id"], "scn": told["scn"],
            "is_deleted": told["is_deleted"], "change_type": told["change_type"], **place,
            "tx_id": oracles_transaction(told["tx_id"]), "log_file": told["log_file"], **keys,
        }  # fmt: skip

    def sort_keys(self, metadata: dict[str, Any]) -> list[Any]:
        if self.source == "mysql":
            file, position = ("binlog_file", "binlog_position") if self.follows_gtids else ("log_file", "log_position")
            return [self.source_time, metadata[file], metadata[position]]
        if self.is_backfill or self.source == "sqlserver":
            return [self.source_time]
        if self.source == "postgresql":
            return [self.source_time, metadata["lsn"]]
        if self.form == "avro":  # as in 2021: a counter that is not the SCN, and nothing of the record
            return [self.source_time, metadata["scn"] % 10**9, "", 0]
        return [self.source_time, metadata["scn"], metadata["rs_id"], metadata["ssn"]]

    def row(self) -> Iterator[tuple[str, str, Any]]:
        """Yield of each column its name in the files, its type at the source, and its given value."""
        for name, type_ in COLUMNS[self.table].items():
            there = in_case(self.source, name)
            yield there, type_, self.given["payload"][there]


def in_case(source: str, name: str) -> str:
    return name.upper() if source == "oracle" else name


def oracles_transaction(number: str | None) -> str | None:
    """Return an XID in base64: undo segment, slot and sequence."""
    if number is None:
        return None
    return base64.b64encode(struct.pack("<HHI", 1 + int(number) % 10, int(number) % 34, int(number))).decode()


def micros(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def moment(at: int) -> str:
    """Return microseconds since 1970 as JSON has them."""
    return f"{(EPOCH + timedelta(microseconds=at)).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


# --- JSON ------------------------------------------------------------------------------------------------------------


def json_value(source: str, type_: str, given: Any) -> Any:
    """Return a value of the payload as the source's JSON has it."""
    if given is None:
        return None
    if type_ == "bigint":  # of Oracle a NUMBER
        return str(given) if source == "oracle" else int(given)
    if type_ == "int":
        return int(given)
    if type_.startswith("decimal"):
        return Digits(given)
    if type_ == "boolean":  # TINYINT(1), NUMBER(1)
        return int(given) if source in ("mysql", "oracle") else given
    if type_ == "timestamp":
        return moment(micros(given))
    if type_ == "date":  # of MySQL and Oracle a midnight
        return moment(micros(f"{given[:10]}T00:00:00Z")) if source in ("mysql", "oracle") else given[:10]
    if type_ == "binary" and source == "mysql":
        return base64.b64decode(given).hex()
    return given


def json_line(event: Event) -> str:
    of_2021 = event.source == "oracle" and event.delivery < PRESENT_TIMES_FROM
    read_at, source_time = moment(event.read_at * 1000), moment(event.source_time * 1000)
    if of_2021:
        read_at, source_time = read_at[:23].replace("T", " "), source_time[:23]
    metadata = event.source_metadata()
    return json_text(
        {
            **{"uuid": event.given["uuid"], "read_timestamp": read_at, "source_timestamp": source_time},
            **{"object": event.object, "read_method": event.read_method, "stream_name": event.given["stream_name"]},
            **{"schema_key": event.schema_key, "sort_keys": event.sort_keys(metadata), "source_metadata": metadata},
            "payload": {name: json_value(event.source, type_, given) for name, type_, given in event.row()},
        }
    )


def json_text(value: Any) -> str:
    if isinstance(value, Digits):
        return value
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(name)}:{json_text(of_it)}" for name, of_it in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


# --- Avro ------------------------------------------------------------------------------------------------------------


def avro_type(source: str, type_: str) -> Any:
    """Return the type that the source's Avro has for a column."""
    if found := re.fullmatch(r"decimal\((\d+),(\d+)\)", type_):
        precision, scale = map(int, found.groups())
        return {"logicalType": "decimal", "precision": precision, "scale": scale, "type": "bytes"}
    others: dict[tuple[str, str], Any] = {
        ("oracle", "bigint"): {"logicalType": "number", "type": "string"},
        ("oracle", "int"): "long",
        ("oracle", "boolean"): "long",
        ("oracle", "date"): MICROS,
        ("mysql", "boolean"): "int",
        ("mysql", "date"): MICROS,
        ("mysql", "binary"): "string",
    }
    usual: dict[str, Any] = {
        "bigint": "long", "int": "int", "string": "string", "boolean": "boolean", "timestamp": MICROS,
        "date": {"logicalType": "date", "type": "int"}, "double": "double", "binary": "bytes",
    }  # fmt: skip
    return others.get((source, type_), usual[type_])


def avro_value(source: str, type_: str, given: Any) -> Any:
    value = json_value(source, type_, given)
    if value is None:
        return None
    if isinstance(value, Digits):
        return Decimal(value) if type_ != "double" else float(value)
    if type_ == "timestamp" or (type_ == "date" and avro_type(source, type_) == MICROS):
        return micros(value)
    if type_ == "date":
        return date.fromisoformat(value)
    if type_ == "binary" and source != "mysql":
        return base64.b64decode(value)
    return value


def metadata_types(event: Event) -> dict[str, Any]:
    types: dict[str, Any] = {
        "log_file": TEXT, "log_position": NUMBER, "binlog_file": TEXT, "binlog_position": NUMBER, "row_id": TEXT,
        "scn": NUMBER, "is_deleted": FLAG, "change_type": TEXT, "ssn": NUMBER, "rs_id": TEXT, "lsn": TEXT,
        "tx_id": NUMBER if event.source == "postgresql" else TEXT, "replication_index": NAMES,
        "physical_location": ["null", {"type": "array", "items": "long"}],
        "primary_keys": NAMES[1] if event.source == "mysql" else NAMES,
    }  # fmt: skip
    return {name: types.get(name, "string") for name in event.source_metadata()}


def avro_schema(event: Event) -> dict[str, Any]:
    def record(name: str, fields: dict[str, Any], default: bool = False) -> dict[str, Any]:
        more = {"default": None} if default else {}
        return {
            "type": "record", "name": name,
            "fields": [{"name": column, "type": type_, **more} for column, type_ in fields.items()],
        }  # fmt: skip

    columns = {
        in_case(event.source, name): ["null", avro_type(event.source, type_)]
        for name, type_ in COLUMNS[event.table].items()
    }
    sort_keys = {"sort_keys": {"type": "array", "items": ["string", "long"]}}
    rest = {
        "source_metadata": record("source_metadata", metadata_types(event)),
        "payload": record("payload", columns, default=event.source in ("mysql", "sqlserver")),
    }
    return record(
        event.object,
        {
            **{"uuid": "string", "read_timestamp": MILLIS, "source_timestamp": MILLIS, "object": "string"},
            **{"read_method": "string", "stream_name": "string", "schema_key": "string"},
            **(rest | sort_keys if event.source == "oracle" else sort_keys | rest),
        },
    )


def avro_record(event: Event) -> dict[str, Any]:
    metadata = event.source_metadata()
    return {
        **{"uuid": event.given["uuid"], "read_timestamp": event.read_at, "source_timestamp": event.source_time},
        **{"object": event.object, "read_method": event.read_method, "stream_name": event.given["stream_name"]},
        **{"schema_key": event.schema_key, "sort_keys": event.sort_keys(metadata), "source_metadata": metadata},
        "payload": {name: avro_value(event.source, type_, given) for name, type_, given in event.row()},
    }


# --- files -----------------------------------------------------------------------------------------------------------


def place_of(metadata: dict[str, Any]) -> tuple[Any, ...]:
    """Return what the two records of a changed key have in common, of Oracle and of MySQL."""
    names = ("scn", "rs_id") if "scn" in metadata else ("log_file", "log_position")
    return tuple(metadata.get(name) for name in names)


def given_events(given: Path, source: str) -> Iterator[tuple[Path, list[Event]]]:
    """Yield each JSON file of a source, and its records."""
    files: dict[Path, list[dict[str, Any]]] = {}
    for file in sorted((given / f"{source}_json").rglob("*.jsonl.gz")):
        lines = gzip.decompress(file.read_bytes()).decode().splitlines()
        files[file.relative_to(given)] = [json.loads(line, parse_float=Digits) for line in lines]
    told = [record["source_metadata"] for records in files.values() for record in records]
    pairs = {place_of(metadata) for metadata in told if metadata["change_type"] == "UPDATE-DELETE"}
    for path, records in files.items():
        yield path, [
            Event(
                source, record["object"].split(".")[1].lower(), int(path.parts[1]), "json", record,
                record["source_metadata"]["change_type"] in ("UPDATE-DELETE", "UPDATE-INSERT")
                and place_of(record["source_metadata"]) in pairs,
            )
            for record in records
        ]  # fmt: skip


def write(into: Path, path: Path, events: list[Event]) -> None:
    """Write the records of one given file: a file has one read method, and is named after it."""
    head, _, offset = path.name.removesuffix(".jsonl.gz").split("_")
    for is_backfill in (True, False):
        told = [event for event in events if event.is_backfill == is_backfill]
        if not told:
            continue
        first = told[0]
        # A stream whose records say `cdc` still had the old word in the names of its files.
        word = "mysql-cdc-binlog" if first.read_method == "cdc" else first.read_method
        name = f"{first.schema_key}_{word}_{int(head[:8], 16)}_{first.delivery}_{offset}"
        for form in ("json", "avro"):
            here = [replace(event, form=form) for event in told]
            folder = into / f"{first.source}_{form}" / str(first.delivery) / first.object / Path(*path.parts[3:-1])
            folder.mkdir(parents=True, exist_ok=True)
            if form == "json":
                text = "".join(f"{json_line(event)}\n" for event in here)
                (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
            else:
                # Datastream does not compress. This repository does.
                content = io.BytesIO()
                marker = hashlib.md5(name.encode()).digest()
                schema = fastavro.parse_schema(avro_schema(here[0]))
                fastavro.writer(content, schema, map(avro_record, here), codec="deflate", sync_marker=marker)
                (folder / f"{name}.avro").write_bytes(content.getvalue())


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        asked = ["git", "archive", GIVEN, "tests/data/capture"]
        archive = subprocess.run(asked, cwd=HERE.parents[2], stdout=subprocess.PIPE, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as held:
            held.extractall(name, filter="data")
        given = Path(name) / "tests" / "data" / "capture"
        for source in SOURCES:
            for form in ("json", "avro"):
                shutil.rmtree(HERE / f"{source}_{form}", ignore_errors=True)
            for path, events in given_events(given, source):
                write(HERE, path, events)


if __name__ == "__main__":
    main()
