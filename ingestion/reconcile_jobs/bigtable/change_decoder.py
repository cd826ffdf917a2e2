"""Data changes of a Bigtable change stream, put together from their messages, as JSON.

A change is one row's mutation, applied at once. It may come in several messages, and the value of a SetCell in several
chunks. Row keys, qualifiers and values are bytes, in base64; nothing is assumed of what they hold. An entry of a kind
that is none of SetCell, DeleteFromColumn and DeleteFromFamily is kept as protobuf's JSON has it, one that this version
of the client does not know as `{"unknown": {"protobuf": "<base64>"}}`.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from datetime import UTC, datetime
from typing import Any, NamedTuple

from google.cloud.bigtable_v2 import types
from google.protobuf.json_format import MessageToDict

__all__ = ["Change", "ChangeDecoder", "TornChange", "base64_text", "moment_text", "set_cell"]

_DataChange = types.ReadChangeStreamResponse.DataChange
_USER, _GARBAGE_COLLECTION, _CONTINUATION = 1, 2, 3
assert _DataChange.Type.CONTINUATION == _CONTINUATION
_TYPES = {_USER: "user", _GARBAGE_COLLECTION: "garbage_collection", 0: "type_unspecified"}


class Change(NamedTuple):
    """One data change: its JSON, the token after it, and the low watermark, in nanoseconds since 1970."""

    json: str
    token: str
    low_watermark: int


class TornChange(Exception):
    """Messages that do not make a whole change: it has to be read again from the last token."""


def base64_text(value: bytes) -> str:
    """Return bytes as base64."""
    return b2a_base64(value, newline=False).decode("ascii")


def moment_text(moment: Any) -> str:
    """Return a protobuf Timestamp as text with nine digits and Z."""
    return f"{_second(moment.seconds)}.{moment.nanos:09d}Z"


_last_second = (0, "1970-01-01T00:00:00")


def _second(seconds: int) -> str:
    # Changes come in order of time, so nearly always two in a row have the same second.
    global _last_second
    known, text = _last_second
    if known != seconds:
        text = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}".rjust(19, "0")
        _last_second = (seconds, text)
    return text


_quoted: dict[str, str] = {}


def _family(name: str) -> str:
    """Return a family's name, of which a table has a hundred at most, as JSON."""
    text = _quoted.get(name)
    if text is None:
        text = _quoted[name] = json.dumps(name, ensure_ascii=False)
    return text


def set_cell(family: str, qualifier: bytes, timestamp_micros: int, value: bytes) -> str:
    """Return the entry of a cell that was set, as JSON."""
    return (
        f'{{"set_cell":{{"family":{_family(family)},"qualifier":"{base64_text(qualifier)}",'
        f'"timestamp_micros":{timestamp_micros},"value":"{base64_text(value)}"}}}}'
    )


def _entry(mutation: Any) -> str:
    """Return a mutation that is whole as JSON."""
    kind = mutation.WhichOneof("mutation")
    if kind == "set_cell":
        cell = mutation.set_cell
        return set_cell(cell.family_name, cell.column_qualifier, cell.timestamp_micros, cell.value)
    if kind == "delete_from_column":
        column = mutation.delete_from_column
        rows = column.time_range
        return (
            f'{{"delete_from_column":{{"family":{_family(column.family_name)},'
            f'"qualifier":"{base64_text(column.column_qualifier)}",'
            f'"start_timestamp_micros":{rows.start_timestamp_micros},'
            f'"end_timestamp_micros":{rows.end_timestamp_micros}}}}}'
        )
    if kind == "delete_from_family":
        return f'{{"delete_from_family":{{"family":{_family(mutation.delete_from_family.family_name)}}}}}'
    if kind is None:
        return f'{{"unknown":{{"protobuf":"{base64_text(mutation.SerializeToString())}"}}}}'
    content = MessageToDict(getattr(mutation, kind), preserving_proto_field_name=True)
    return json.dumps({kind: content}, ensure_ascii=False, separators=(",", ":"))


class ChangeDecoder:
    """Takes the messages of one stream and returns the changes that they complete."""

    def __init__(self) -> None:
        self._first: Any = None  # the message that began the change
        self._entries: list[str] = []
        self._cell: Any = None  # the SetCell that is in chunks, without its value
        self._value = bytearray()

    @property
    def is_between_changes(self) -> bool:
        """Whether no change is unfinished."""
        return self._first is None

    def add(self, message: Any) -> Change | None:
        """Take a DataChange, and return the change if it is whole. Raises TornChange."""
        first = self._first
        if first is None:
            if message.type_ == _CONTINUATION:
                raise TornChange("a continuation of a change that had not begun")
            first = self._first = message
        elif message.type_ != _CONTINUATION:
            raise TornChange("a change that begins within another")
        for chunk in message.chunks:
            if self._cell is not None or chunk.HasField("chunk_info"):
                self._add_chunk(chunk)
            else:
                self._entries.append(_entry(chunk.mutation))
        if not message.done:
            return None
        if self._cell is not None:
            raise TornChange("a change that ends within a value")
        if not message.token:
            raise TornChange("a change that ends without a token")
        watermark = message.estimated_low_watermark
        kind = _TYPES.get(first.type_, str(first.type_))
        text = (
            f'{{"row_key":"{base64_text(first.row_key)}","type":"{kind}",'
            f'"source_cluster_id":{_family(first.source_cluster_id)},'
            f'"commit_timestamp":"{moment_text(first.commit_timestamp)}","tiebreaker":{first.tiebreaker},'
            f'"token":{json.dumps(message.token)},"estimated_low_watermark":"{moment_text(watermark)}",'
            f'"entries":[{",".join(self._entries)}]}}'
        )
        self._first, self._entries = None, []
        return Change(text, message.token, watermark.seconds * 10**9 + watermark.nanos)

    def _add_chunk(self, chunk: Any) -> None:
        """Take a part of a value. Raises TornChange where it does not follow on from those before."""
        mutation, info = chunk.mutation, chunk.chunk_info
        if mutation.WhichOneof("mutation") != "set_cell" or not chunk.HasField("chunk_info"):
            raise TornChange("something else within a value")
        if self._cell is None:
            self._cell, self._value = mutation.set_cell, bytearray()
        if info.chunked_value_offset != len(self._value):
            raise TornChange("a value with a gap")
        self._value += mutation.set_cell.value
        if not info.last_chunk:
            return
        value = bytes(self._value)
        if len(value) != info.chunked_value_size:
            raise TornChange("a value that is shorter or longer than was said")
        cell = self._cell
        self._entries.append(set_cell(cell.family_name, cell.column_qualifier, cell.timestamp_micros, value))
        self._cell, self._value = None, bytearray()
