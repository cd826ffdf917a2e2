"""Changes of a real PostgreSQL, by logical decoding (pgoutput, version 1 of its protocol), as Datastream's events."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from datastream import event
from postgres import Postgres

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_NUMBERS = {20, 21, 23, 1700}  # types whose text is a JSON number: bigint, smallint, integer, numeric
_TIMES = {1114, 1184}
_KINDS = {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}


class Change(NamedTuple):
    """One change that was committed."""

    transaction: int
    table: str
    record: str


class Slot:
    """A replication slot of a table; what it gives once it never gives again."""

    def __init__(self, postgres: Postgres, table: str) -> None:
        self._postgres = postgres
        postgres.query(f"create publication captured for table {table}")
        postgres.query("select pg_create_logical_replication_slot('captured', 'pgoutput')")
        self._tables: dict[int, tuple[str, list[tuple[str, int]]]] = {}
        self._transaction, self._committed_at = 0, _EPOCH

    def changes(self) -> list[Change]:
        """Return what was committed since the last call."""
        lines = self._postgres.query(
            "set timezone = 'UTC'; select lsn || ' ' || encode(data, 'hex') from pg_logical_slot_get_binary_changes("
            "'captured', null, null, 'proto_version', '1', 'publication_names', 'captured')"
        ).splitlines()
        return [change for line in lines if " " in line for change in self._read(*line.split(" "))]

    def _read(self, lsn: str, text: str) -> Iterator[Change]:
        message = bytes.fromhex(text)
        kind, content = chr(message[0]), _Content(message[1:])
        if kind == "B":
            content.take("q")
            self._committed_at = _EPOCH + timedelta(microseconds=content.take("q"))
            self._transaction = content.take("I")
        elif kind == "R":
            number = content.take("I")
            schema, table, _ = content.text(), content.text(), content.take("c")
            columns = []
            for _ in range(content.take("h")):
                content.take("b")
                name, oid, _ = content.text(), content.take("I"), content.take("i")
                columns.append((name, oid))
            self._tables[number] = (f"{schema}.{table}", columns)
        elif kind in _KINDS:
            table, columns = self._tables[content.take("I")]
            part = content.take("c")
            row = content.row(columns)
            if kind == "U" and part != b"N":
                content.take("c")
                row = content.row(columns)
            metadata = {"lsn": lsn, "tx_id": str(self._transaction)}
            record = event(
                "postgresql", row, _KINDS[kind], metadata=metadata, object=table,
                source_timestamp=self._committed_at.isoformat().replace("+00:00", "Z"),
            )  # fmt: skip
            yield Change(self._transaction, table, record)


class _Content:
    def __init__(self, content: bytes) -> None:
        self._content, self._place = content, 0

    def take(self, form: str) -> Any:
        (value,) = struct.unpack_from(f">{form}", self._content, self._place)
        self._place += struct.calcsize(f">{form}")
        return value

    def text(self) -> str:
        end = self._content.index(b"\0", self._place)
        value = self._content[self._place : end].decode()
        self._place = end + 1
        return value

    def row(self, columns: list[tuple[str, int]]) -> str:
        values = []
        for _, (name, oid) in zip(range(self.take("h")), columns, strict=True):
            kind = self.take("c")
            if kind == b"n":
                value = "null"
            else:
                assert kind == b"t", kind  # neither TOAST nor binary
                length = self.take("i")
                text = self._content[self._place : self._place + length].decode()
                self._place += length
                if oid in _TIMES:
                    text = text.replace(" ", "T").replace("+00", "Z")
                value = text if oid in _NUMBERS else json.dumps(text, ensure_ascii=False)
            values.append(f"{json.dumps(name)}: {value}")
        return "{" + ", ".join(values) + "}"
