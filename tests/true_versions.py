"""The versions of the capture's rows: its records replayed in the log's order, by nothing of the package."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Mapping
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


def true_versions(source: str, table: str) -> dict[Key, list[TrueVersion]]:
    """Return the versions of each key, those that changed no column folded into the one before."""
    by_key: dict[Key, dict[str, Mapping[str, Any]]] = {}
    for line in lines(source, table):
        record = json.loads(line, parse_float=Decimal)
        row = _row(source, record, table)
        by_key.setdefault(tuple(row[name] for name in KEYS[table]), {})[record["uuid"]] = record
    return {key: _replayed(source, table, list(told.values())) for key, told in by_key.items()}


def shown(versions: Mapping[Key, list[TrueVersion]]) -> Counter[tuple[Any, ...]]:
    """Return the versions as the rows of a history's view, but for the sequence."""
    return Counter(
        (*v.values, v.valid_from, v.valid_to, v.valid_to is None, v.kind, v.uuid)
        for told in versions.values()
        for v in told
    )


def _replayed(source: str, table: str, told: list[Mapping[str, Any]]) -> list[TrueVersion]:
    told.sort(key=lambda record: _place(source, record))
    times = [_micros(record["source_timestamp"]) for record in told]
    versions: list[TrueVersion] = []
    for i, record in enumerate(told):
        kind = KINDS[record["source_metadata"]["change_type"]]
        # A backfill row stands before the changes of its key, some of which may be older than it.
        valid_from, valid_to = min(times[i:]), min(times[i + 1 :], default=None)
        if kind == "delete":
            continue
        values = tuple(_row(source, record, table).values())
        last = versions[-1] if versions else None
        if last and last.values == values and last.valid_to == valid_from:
            versions[-1] = last._replace(valid_to=valid_to)
        else:
            versions.append(TrueVersion(values, valid_from, valid_to, kind, record["uuid"]))
    return versions


KINDS = {
    "INSERT": "insert", "UPDATE": "update", "UPDATE-INSERT": "update", "DELETE": "delete", "UPDATE-DELETE": "delete",
}  # fmt: skip


def _place(source: str, record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return where a record stands: backfill rows before all changes, a delete before the insert of its place."""
    metadata = record["source_metadata"]
    if "backfill" in record["read_method"]:
        return (0, _micros(record["read_timestamp"]))
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


def _micros(text: str) -> int:
    # Oracle's of 2021 do not say that they are UTC.
    return (datetime.fromisoformat(text.removesuffix("Z") + "+00:00") - EPOCH) // timedelta(microseconds=1)


READERS: dict[str, Callable[[Any], Any]] = {
    "bigint": int,
    "int": int,
    "string": str,
    "boolean": bool,
    "double": lambda number: repr(float(number) + 0.0),
    "date": lambda text: date.fromisoformat(text[:10]),
    "timestamp": _micros,
    "binary": base64.b64decode,
}
