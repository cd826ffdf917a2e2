"""Rows of PartialResultSets, put together from their chunks, and the change stream records in them.

Both dialects become the same text: GoogleSQL's ARRAY of STRUCT and PostgreSQL's JSON. A data change record is one JSON
object, its fields and those of its mods in alphabetical order. Values are as Spanner's JSON has them: INT64 and NUMERIC
as text, BYTES as base64, TIMESTAMP with all digits that were delivered and Z, NaN and the infinities as text; JSON
columns as text that holds JSON. The envelope's own counts (`number_of_records_in_transaction`, `ordinal_position`) are
numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any, NamedTuple

from google.cloud.spanner_v1 import TypeCode

from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.timestamps import sort_key, zulu

__all__ = [
    "ChildPartitions",
    "DataChange",
    "Heartbeat",
    "Record",
    "RecordDecoder",
    "Rows",
    "TornResult",
    "compact_json",
    "merged",
]

# How many lists of column types the decoder remembers: with NEW_VALUES, each record of a wide table may have another
# list. The first number is for PostgreSQL's dialect, whose lists are searched one after the other. The second is for
# GoogleSQL, whose lists only cost memory.
_SEARCHED = 100
_KEPT = 500

# {stream}: what showed it
MUTABLE_KEY_RANGE = (
    "The change stream has the partition mode MUTABLE_KEY_RANGE ({stream}), whose partitions follow other rules: "
    "create one with partition_mode = 'IMMUTABLE_KEY_RANGE', and name that one with --stream."
)


class DataChange(NamedTuple):
    """One data change record: its table, its JSON, its commit time, and its identity among records of that time."""

    table: str
    json: str
    committed: str  # sort_key of commit_timestamp
    identity: tuple[str, str]  # server_transaction_id, record_sequence: unique at one commit timestamp


class Heartbeat(NamedTuple):
    """Everything committed in the partition up to `moment`, a sort_key, was returned."""

    moment: str


class ChildPartitions(NamedTuple):
    """The partition ends; its children, a token and the tokens of its parents each, begin at `start` (RFC 3339)."""

    start: str
    children: tuple[tuple[str, tuple[str, ...]], ...]


Record = DataChange | Heartbeat | ChildPartitions


class TornResult(Exception):
    """A result ended well in the middle of a row or of a value."""


class Rows:
    """Puts rows together from PartialResultSets, which may end in the middle of a row, or of a value.

    It remembers the state at the last resume token: after a failure `rewind` goes back there, and the messages of the
    resumed query follow on from it.
    """

    def __init__(self) -> None:
        self.fields: Any = None  # of metadata.row_type, once the first message has come
        self.resume_token = b""
        self._row: list[Any] = []
        self._pending: Any = None  # a value of which more is to come
        self._at_token: tuple[list[Any], Any] = ([], None)

    def add(self, message: Any) -> list[list[Any]]:
        """Take a message, and return the rows that it completes, each a list of protobuf Values."""
        if self.fields is None and message.HasField("metadata"):
            self.fields = message.metadata.row_type.fields
        values = list(message.values)
        if values and self._pending is not None:
            values[0] = merged(self._pending, values[0])
            self._pending = None
        if message.chunked_value and values:
            self._pending = values.pop()
        width = len(self.fields)
        row = self._row + values
        whole = len(row) - len(row) % width
        self._row = row[whole:]
        if message.resume_token:
            self.resume_token = message.resume_token
            self._at_token = (list(self._row), self._pending)
        return [row[i : i + width] for i in range(0, whole, width)]

    def rewind(self) -> bytes:
        """Forget what came after the last resume token, and return that token, empty if none came."""
        self._row, self._pending = list(self._at_token[0]), self._at_token[1]
        return self.resume_token

    def end(self) -> None:
        """Take the end of the result. Raises TornResult where it is not whole."""
        if not self.whole:
            raise TornResult

    @property
    def whole(self) -> bool:
        """Whether nothing is left over: no value and no row is unfinished."""
        return self._pending is None and not self._row


def merged(first: Any, rest: Any) -> Any:
    """Return one Value of two chunks of it; neither is changed, and the result may share parts with both."""
    kind = first.WhichOneof("kind")
    if kind != rest.WhichOneof("kind"):
        raise ValueError(f"a chunk of a {kind} goes on as a {rest.WhichOneof('kind')}")
    if kind == "string_value":
        return type(first)(string_value=first.string_value + rest.string_value)
    if kind == "list_value":
        left, right = first.list_value.values, rest.list_value.values
        whole = type(first)()
        together = whole.list_value.values
        if left and right and _continues(left[-1], right[0]):
            together.extend(left[:-1])
            together.append(merged(left[-1], right[0]))
            together.extend(right[1:])
        else:
            whole.list_value.SetInParent()
            together.extend(left)
            together.extend(right)
        return whole
    if kind == "struct_value":
        whole = type(first)()
        whole.CopyFrom(first)
        fields = whole.struct_value.fields
        for name, value in rest.struct_value.fields.items():
            both = name in fields and _continues(fields[name], value)
            fields[name].CopyFrom(merged(fields[name], value) if both else value)
        return whole
    raise ValueError(f"a {kind} cannot come in chunks")


def _continues(last: Any, first: Any) -> bool:
    # Of a list's last element only a text, list or object can go on; a number, bool or null is whole.
    kind = last.WhichOneof("kind")
    return kind == first.WhichOneof("kind") and kind in ("string_value", "list_value", "struct_value")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)


# For texts that have half of a surrogate pair, which no file can hold but as an escape.
_ASCII_ENCODER = json.JSONEncoder(separators=(",", ":"), sort_keys=True, allow_nan=False)


def compact_json(value: Any) -> str:
    """Return a value as JSON without spaces, its keys in order: one value, one text."""
    text = _ENCODER.encode(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return _ASCII_ENCODER.encode(value)
    return text


class RecordDecoder:
    """Reads the change stream records in the rows of one query, of either dialect."""

    def __init__(self, fields: Any) -> None:
        """Take the fields of the query's row type."""
        (field,) = fields
        if field.type_.code not in (TypeCode.ARRAY, TypeCode.JSON):
            raise UsageError(MUTABLE_KEY_RANGE.format(stream=field.name))
        self._of_value = _converter(field.type_) if field.type_.code == TypeCode.ARRAY else _JsonRecords().of_value

    def records(self, row: list[Any]) -> Iterator[Record]:
        """Yield the records of a row, usually one."""
        value = self._of_value(row[0])
        for element in value if isinstance(value, list) else [value]:
            for kind, found in (element or {}).items():
                for record in found if isinstance(found, list) else [found]:
                    if kind == "data_change_record":
                        yield self._data_change(record)
                    elif kind == "heartbeat_record":
                        yield Heartbeat(sort_key(zulu(record["timestamp"])))
                    elif kind == "child_partitions_record":
                        yield _child_partitions(record)
                    else:
                        raise UsageError(MUTABLE_KEY_RANGE.format(stream=kind))

    def _data_change(self, record: dict[str, Any]) -> DataChange:
        committed = record["commit_timestamp"] = zulu(record["commit_timestamp"])
        columns: _Columns = record.pop("column_types")
        for name in ("number_of_records_in_transaction", "number_of_partitions_in_transaction"):
            record[name] = int(record[name])
        for mod in record["mods"]:
            for part in ("keys", "new_values", "old_values"):
                mod[part] = columns.as_text(mod.get(part))
        text = f'{{"column_types":{columns.types},{compact_json(record)[1:]}'
        identity = (record["server_transaction_id"], record["record_sequence"])
        return DataChange(record["table_name"], text, sort_key(committed), identity)


class _Columns:
    """The columns of one table, and the values of its mods in one form whatever the dialect."""

    def __init__(self, columns: list[dict[str, Any]]) -> None:
        self._numbers: list[str] = []
        self._timestamps: list[str] = []
        for column in columns:
            column["ordinal_position"] = int(column["ordinal_position"])
            code = column["type"].get("array_element_type", column["type"])["code"]
            if code in ("INT64", "NUMERIC"):
                self._numbers.append(column["name"])
            elif code == "TIMESTAMP":
                self._timestamps.append(column["name"])
        self.types = compact_json(columns)  # as the record has it

    def holds(self, columns: Any) -> bool:
        """Return whether these are the same columns, as a record lists them."""
        return isinstance(columns, list) and compact_json(columns) == self.types

    def as_text(self, values: Any) -> Any:
        if not values:
            return {}
        get = values.get
        # Spanner's documentation shows INT64 as a JSON number in places; as text it cannot be taken for a double.
        for name in self._numbers:
            value = get(name)
            if type(value) in _NUMBERS:
                values[name] = str(value)
            elif type(value) is list:
                values[name] = [str(item) if type(item) in _NUMBERS else item for item in value]
        for name in self._timestamps:
            value = get(name)
            if type(value) is str:
                values[name] = zulu(value)
            elif type(value) is list:
                values[name] = [zulu(item) if item else item for item in value]
        return values


def _child_partitions(record: dict[str, Any]) -> ChildPartitions:
    children = tuple(
        # The initial query's children have no parents: an empty list, or one of NULL.
        (child["token"], tuple(parent for parent in child["parent_partition_tokens"] or () if parent))
        for child in record["child_partitions"]
    )
    return ChildPartitions(zulu(record["start_timestamp"]), children)


def _converter(kind: Any) -> Callable[[Any], Any]:
    """Return what makes Python's of a protobuf Value of a type: structs as dicts, JSON parsed, timestamps as text."""
    if kind.code == TypeCode.ARRAY:
        element = _converter(kind.array_element_type)
        return lambda value: [element(item) for item in value.list_value.values]
    if kind.code == TypeCode.STRUCT:
        fields = [
            (field.name, _columns_converter(field.type_) if field.name == "column_types" else _converter(field.type_))
            for field in kind.struct_type.fields
        ]

        def struct(value: Any) -> dict[str, Any] | None:
            items = value.list_value.values
            return {name: of(item) for (name, of), item in zip(fields, items, strict=True)} if items else None

        return struct
    if kind.code == TypeCode.BOOL:
        return lambda value: value.bool_value or (None if _is_null(value) else False)
    if kind.code == TypeCode.INT64:
        return lambda value: None if _is_null(value) else int(value.string_value)
    if kind.code == TypeCode.JSON:
        decode = _json_decoder().decode
        return lambda value: None if _is_null(value) else decode(value.string_value)
    # Only an empty text may be NULL, so most values need one test.
    return lambda value: value.string_value or (None if _is_null(value) else "")


def _is_null(value: Any) -> bool:
    return bool(value.WhichOneof("kind") == "null_value")


def _columns_converter(kind: Any) -> Callable[[Any], _Columns]:
    # Each record of a table has the same long list of column types. To compare it as bytes is faster than to decode it.
    convert, known = _converter(kind), dict[bytes, _Columns]()

    def columns(value: Any) -> _Columns:
        content = value.SerializeToString()
        if content not in known:
            if len(known) == _KEPT:
                known.clear()
            known[content] = _Columns(convert(value))
        return known[content]

    return columns


class _Float(float):
    """A number with a point or an exponent; its text is the one that was delivered."""

    text: str

    def __str__(self) -> str:
        return self.text


def _float(text: str) -> _Float | str:
    number = _Float(text)
    number.text = text
    # JSON has no infinity.
    return number if isfinite(number) else text


_NUMBERS = (int, _Float)


def _json_decoder() -> json.JSONDecoder:
    # Made where it is used, since it does not travel to executors. What is no number becomes the text NaN or Infinity.
    return json.JSONDecoder(parse_constant=str, parse_float=_float)


class _JsonRecords:
    """PostgreSQL's records, each one JSON. Much of it is the list of column types, of which the last ones are known."""

    _NAME = '"column_types":'

    def __init__(self) -> None:
        self._decoder = _json_decoder()
        self._known: list[tuple[str, _Columns]] = []  # the list as text, the last one that was found first

    def of_value(self, value: Any) -> Any:
        if _is_null(value):
            return None
        text = value.string_value
        at = text.find(self._NAME) + len(self._NAME)
        if at >= len(self._NAME):
            for number, (types, columns) in enumerate(self._known):
                if text.startswith(types, at):
                    # A number in its place, since a column may have this name too.
                    element = self._decoder.decode(f"{text[:at]}0{text[at + len(types) :]}")
                    record = element.get("data_change_record", {})
                    if record.get("column_types") == 0:
                        record["column_types"] = columns
                        if number:
                            self._known.insert(0, self._known.pop(number))
                        return element
        element = self._decoder.decode(text)
        if record := element.get("data_change_record"):
            record["column_types"] = _Columns(record["column_types"])
            after = at + len(text[at:]) - len(text[at:].lstrip())
            found, end = self._decoder.raw_decode(text, after)
            # Else it is what a column of that name holds.
            if record["column_types"].holds(found):
                self._known.insert(0, (text[at:end], record["column_types"]))
                del self._known[_SEARCHED:]
        return element
