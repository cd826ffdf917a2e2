"""The versions of the capture's rows: its records replayed in the log's order, by nothing of the package."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from truth import COLUMNS, EPOCH, KEYS, lines

Key = tuple[Any, ...]


class TrueVersion(NamedTuple):
    """A row as it was from one record to the next."""

    values: tuple[Any, ...]
    valid_from: int  # microseconds
    valid_to: int | None
    kind: str
    uuid: str


class Told(NamedTuple):
    """What a record says of a row. `values`: None if it deletes the row. `time`: microseconds."""

    values: tuple[Any, ...] | None
    time: int
    kind: str
    uuid: str


def true_versions(source: str, table: str) -> dict[Key, list[TrueVersion]]:
    """Return the versions of each key, those that changed no column folded into the one before."""
    return {key: replayed(told) for key, told in told_of(source, table).items()}


def told_of(
    source: str, table: str, counts: Callable[[Mapping[str, Any]], bool] = lambda record: True
) -> dict[Key, list[Told]]:
    """Return what the records that count say of each key, in the log's order."""
    by_key: dict[Key, dict[str, Mapping[str, Any]]] = {}
    for line in lines(source, table):
        record = json.loads(line, parse_float=Decimal)
        if counts(record):
            row = _row(source, record, table)
            by_key.setdefault(tuple(row[name] for name in KEYS[table]), {})[record["uuid"]] = record
    return {
        key: [_told(source, table, one) for one in sorted(records.values(), key=lambda record: _place(source, record))]
        for key, records in by_key.items()
    }


def shown(versions: Mapping[Key, list[TrueVersion]]) -> Counter[tuple[Any, ...]]:
    """Return the versions as the rows of a history's view, but for the sequence."""
    return Counter(
        (*v.values, v.valid_from, v.valid_to, v.valid_to is None, v.kind, v.uuid)
        for told in versions.values()
        for v in told
    )


def replayed(told: Sequence[Told]) -> list[TrueVersion]:
    """Return the versions that records of one key make, which are in the log's order."""
    versions: list[TrueVersion] = []
    for i, (values, _, kind, uuid) in enumerate(told):
        # A backfill row stands before the changes of its key, some of which may be older than it.
        valid_from = min(one.time for one in told[i:])
        valid_to = min((one.time for one in told[i + 1 :]), default=None)
        if values is None:
            continue
        last = versions[-1] if versions else None
        if last and last.values == values and last.valid_to == valid_from:
            versions[-1] = last._replace(valid_to=valid_to)
        else:
            versions.append(TrueVersion(values, valid_from, valid_to, kind, uuid))
    return versions


def _told(source: str, table: str, record: Mapping[str, Any]) -> Told:
    kind = KINDS[record["source_metadata"]["change_type"]]
    values = None if kind == "delete" else tuple(_row(source, record, table).values())
    return Told(values, micros(record["source_timestamp"]), kind, record["uuid"])


KINDS = {
    "INSERT": "insert", "UPDATE": "update", "UPDATE-INSERT": "update", "DELETE": "delete", "UPDATE-DELETE": "delete",
}  # fmt: skip


def _place(source: str, record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return where a record stands: backfill rows before all changes, a delete before the insert of its place."""
    metadata = record["source_metadata"]
    if "backfill" in record["read_method"]:
        return (0, micros(record["read_timestamp"]))
    coordinates: dict[str, Callable[[], tuple[Any, ...]]] = {
        "oracle": lambda: (metadata["scn"], *_hex(metadata["rs_id"].strip()[2:], "."), metadata["ssn"]),
        "mysql": lambda: _binary_log(metadata),
        "postgresql": lambda: _hex(metadata["lsn"], "/"),
        "sqlserver": lambda: _hex(metadata["lsn"], ":"),
    }
    return (1, *coordinates[source](), KINDS[metadata["change_type"]] != "delete")


def _binary_log(metadata: Mapping[str, Any]) -> tuple[int, ...]:
    part = "binlog" if "binlog_file" in metadata else "log"
    return int(metadata[f"{part}_file"].split(".")[-1]), metadata[f"{part}_position"]


def _hex(text: str, separator: str) -> tuple[int, ...]:
    return tuple(int(part, 16) for part in text.split(separator))


def _row(source: str, record: Mapping[str, Any], table: str) -> dict[str, Any]:
    payload = {name.lower(): value for name, value in record["payload"].items()}
    readers = READERS | ({"binary": bytes.fromhex} if source == "mysql" else {})
    return {
        name: None if payload.get(name) is None else readers.get(data_type, Decimal)(payload[name])
        for name, data_type in COLUMNS[table].items()
    }


def micros(text: str) -> int:
    """Return the microseconds of a moment that a record names."""
    # Oracle's of 2021 do not say that they are UTC.
    return (datetime.fromisoformat(text.removesuffix("Z") + "+00:00") - EPOCH) // timedelta(microseconds=1)


READERS: dict[str, Callable[[Any], Any]] = {
    "bigint": int,
    "int": int,
    "string": str,
    "boolean": bool,
    "double": lambda number: repr(float(number) + 0.0),
    "date": lambda text: date.fromisoformat(text[:10]),
    "timestamp": micros,
    "binary": base64.b64decode,
}
