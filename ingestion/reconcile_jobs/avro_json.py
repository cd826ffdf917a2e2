"""Avro files become JSON records that hold every digit; fastavro decodes, nothing here rounds."""

from __future__ import annotations

import base64
import io
import json
import struct
import uuid
import zlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from json.encoder import encode_basestring as _quoted
from math import isfinite
from typing import Any

import fastavro
from fastavro import _read_py as read_in_python

from reconcile_jobs import avro_blocks

__all__ = ["AvroError", "json_records"]

Render = Callable[[Any], str]

# fastavro does not decode logical types but in Python's, which lack nanoseconds, the year 0 and a union's branch. So a
# file is decoded under a schema of the same bytes on the wire: without logical types and, where a union has several
# branches, each branch a record of one field, which adds no byte and names the branch.
_HEADER: Any = fastavro.parse_schema(
    {
        "type": "record",
        "name": "header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
        ],
    }
)

# Up to 38 digits, SQL functions on JSON read a number exactly; a longer one travels as text.
_NUMBERS = 10**38

# What a decimal may have at most: PostgreSQL's numeric, the longest, has 147,455 digits and 16,383 places.
_BYTES_OF_DECIMAL, _PLACES = 61_300, 16_383


class AvroError(ValueError):
    """What stands in a file is no Avro, or is torn; the message says what and where, in bytes."""


def json_records(content: bytes) -> Iterator[str]:
    """Yield the records of one Avro file as JSON, one line each.

    Decimals are numbers with all digits of their scale (text beyond 38 digits), timestamps and dates ISO 8601 with all
    digits of their unit (Z unless local; years beyond 0000 to 9999 with a sign), bytes and fixed base64, NaN and
    infinities text, unions the value alone. What JSON does not show about the fields of a record `payload` is added to
    each record as `avro_types` (see `_payload_types`). A file that was cut between two blocks looks like a whole one,
    as Avro has no mark at its end. Only blocks of snappy have a checksum: elsewhere a value that was damaged looks like
    a value. Raises AvroError.
    """
    place = 0
    try:
        plain, render, is_recursive = _plain_file(content)
        # In C, a record that holds itself a million times ends the process; Python counts how deep it is.
        blocks = (read_in_python if is_recursive else fastavro).block_reader(plain)
        shift = len(plain.getbuffer()) - len(content)
        place = plain.tell() - shift
        if (begins := avro_blocks.first_too_large(content, place, str(blocks.codec))) is not None:
            raise AvroError(
                f"a block holds more than {avro_blocks.LARGEST:,} bytes, or very many compressed streams "
                f"(after byte {begins})"
            )
        for block in blocks:
            if block.num_records < 0:
                raise AvroError(f"no whole Avro file: a block of {block.num_records} records (after byte {place})")
            # Records without a field have no bytes, and a few bytes would hold any number of them.
            if block.num_records > max(len(content), len(block.bytes_.getbuffer())):
                raise AvroError(f"a block of {block.num_records:,} records has fewer bytes (after byte {place})")
            ends = block.offset + block.size - shift
            # fastavro does not compare the checksum that ends a block of snappy, before the 16 bytes between blocks.
            if blocks.codec == "snappy" and content[ends - 20 : ends - 16] != _checksum(block.bytes_.getbuffer()):
                raise AvroError(f"a block is damaged: its checksum is that of other bytes (after byte {place})")
            for record in block:
                yield render(record)
            if block.bytes_.read(1):
                raise AvroError(
                    f"no whole Avro file: a block holds more than the {block.num_records} records that it says "
                    f"(after byte {place})"
                )
            place = ends
    except AvroError:
        raise
    except RecursionError as problem:
        raise AvroError(f"its records lie one in another too many times to be read (after byte {place})") from problem
    except Exception as problem:
        if "need to install" in str(problem):  # the file is whole, the library of its codec is missing
            raise
        # fastavro raises whatever a wrong byte leads to: EOFError, IndexError, zlib.error, ...
        why = "it ends in the middle" if isinstance(problem, EOFError) else f"{type(problem).__name__}: {problem}"
        raise AvroError(f"no whole Avro file: {why or 'wrong bytes'} (after byte {place})") from problem
    if place != len(content):
        # A file cut inside a block's own length looks like one that has ended.
        raise AvroError(f"no whole Avro file: it ends in the middle (after byte {place})")


def _checksum(block: memoryview) -> bytes:
    return zlib.crc32(block).to_bytes(4, "big")


def _plain_file(content: bytes) -> tuple[io.BytesIO, Render, bool]:
    # The same file with the schema on the wire in its header, what turns a decoded record into JSON, and whether a
    # record may hold one of its own type.
    source = io.BytesIO(content)
    if content[:4] != b"Obj\x01":
        raise AvroError("no Avro file: it is empty" if not content else "no Avro file: it does not begin as one")
    header: Any = fastavro.schemaless_reader(source, _HEADER, None)
    wire, render, is_recursive = _compiled(header["meta"]["avro.schema"])
    header["meta"]["avro.schema"] = wire
    plain = io.BytesIO()
    fastavro.schemaless_writer(plain, _HEADER, header)
    plain.write(content[source.tell() :])
    plain.seek(0)
    return plain, render, is_recursive


def _compiled(schema: bytes) -> tuple[bytes, Render, bool]:
    read = json.loads(schema)
    try:
        json.dumps(read, ensure_ascii=False).encode()
    except UnicodeEncodeError as problem:
        raise AvroError("its schema has a name with half of a surrogate pair, which is no character") from problem
    read = _without_wrappers(read)
    compiler = _Compiler()
    wire, render = compiler.compile(read, "")
    types = _payload_types(read)
    if types:
        end = ',"avro_types":' + json.dumps(types, ensure_ascii=False, separators=(",", ":")) + "}"
        return json.dumps(wire).encode(), lambda value: render(value)[:-1] + end, compiler.is_recursive
    return json.dumps(wire).encode(), render, compiler.is_recursive


def _without_wrappers(schema: Any) -> Any:
    """Return a schema in which no object only wraps another type, as {"type": {"type": "long"}} does.

    A label of such an object, a `logicalType` say, is ignored: Avro defines labels for the type itself.
    """
    if isinstance(schema, list):
        return [_without_wrappers(branch) for branch in schema]
    if not isinstance(schema, dict) or "type" not in schema:
        return schema
    kind = schema["type"]
    if isinstance(kind, (dict, list)):
        return _without_wrappers(kind)
    if kind == "array":
        return schema | {"items": _without_wrappers(schema["items"])}
    if kind == "map":
        return schema | {"values": _without_wrappers(schema["values"])}
    if kind in ("record", "error"):
        return schema | {"fields": [field | {"type": _without_wrappers(field["type"])} for field in schema["fields"]]}
    return schema


def _payload_types(schema: Any) -> dict[str, str]:
    """Return, for the fields of the record `payload`, the types that their JSON would not show.

    `bytes`, which JSON has in base64; `json`, a text that is JSON; `time-interval-micros`, a number; and the names of
    records, as `timestampTz`. For a `multidimensionalArray_<column>` it is the type of its elements, then `[]`.
    """
    fields = {field["name"]: field["type"] for field in schema["fields"]} if _is_record(schema) else {}
    payload = _without_null(fields.get("payload"))
    if not _is_record(payload) or "avro_types" in fields:
        return {}
    noted_types = {field["name"]: _noted_type(_without_null(field["type"])) for field in payload["fields"]}
    return {name: type_ for name, type_ in noted_types.items() if type_}


def _noted_type(type_: Any) -> str | None:
    if _is_record(type_):
        elements = {field["name"]: field["type"] for field in type_["fields"]}.get("elementValue")
        if elements is None:
            return str(type_["name"]).rpartition(".")[2]
        return f"{_noted_type(_without_null(elements)) or ''}[]"
    kind, logical = (type_["type"], type_.get("logicalType")) if isinstance(type_, dict) else (type_, None)
    if kind in ("bytes", "fixed"):
        return None if isinstance(type_, dict) and _logical(type_) else "bytes"
    if (kind, logical) in (("string", "json"), ("long", "time-interval-micros")):
        return str(logical)
    is_name = isinstance(kind, str) and kind not in _PRIMITIVES and kind not in ("array", "map", "enum")
    return str(kind).rpartition(".")[2] if is_name else None


def _is_record(type_: Any) -> bool:
    return isinstance(type_, dict) and type_.get("type") == "record"


def _without_null(type_: Any) -> Any:
    # A union of null and one type is that type; any other union names no one type.
    if not isinstance(type_, list):
        return type_
    real = [branch for branch in type_ if not _is_null(branch)]
    return real[0] if len(real) == 1 else None


# fastavro takes an index of -1 for the last branch of a union, or symbol of an enum, as Python does. Behind the real
# ones stand so many that no value can be of, so that an index a bit beside the right one fails.
_TRAPS = [f"trap{i}" for i in range(8)]


class _Compiler:
    # Names on the wire are made up: a name that Avro does not allow, a column's say, then does no harm.
    def __init__(self) -> None:
        self._named: dict[str, tuple[str, list[Render]]] = {}
        self._without_bytes = {"null"}
        self._count = 0
        self._has_traps = False
        self._begun: set[str] = set()  # on the wire: records whose fields are being compiled
        self.is_recursive = False

    def compile(self, schema: Any, namespace: str) -> tuple[Any, Render]:
        if isinstance(schema, list):
            return self._union(schema, namespace)
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return schema, _PRIMITIVES[schema]
            full_name = schema if "." in schema or not namespace else f"{namespace}.{schema}"
            if full_name not in self._named:
                full_name = schema
            if full_name not in self._named:
                raise AvroError(f"no Avro file: its schema has no type {schema}")
            wire_name, cell = self._named[full_name]
            self.is_recursive = self.is_recursive or wire_name in self._begun
            return wire_name, lambda value: cell[0](value)
        kind = schema["type"]
        if kind in ("record", "error", "enum", "fixed"):
            return self._of_named(schema, kind, namespace)
        if kind == "array":
            wire, item = self.compile(schema["items"], namespace)
            if self._has_no_bytes(wire):  # a few bytes would hold any number of them
                raise AvroError("its schema has an array of elements without bytes")
            return {"type": "array", "items": wire}, lambda value: "[" + ",".join([item(x) for x in value]) + "]"
        if kind == "map":
            wire, item = self.compile(schema["values"], namespace)
            # The same bytes as those of a list of pairs. As a map, fastavro would keep one of two members of one name.
            pair = {"type": "record", "name": self._new_name(), "fields": [_field("k", "string"), _field("v", wire)]}
            return {
                "type": "array",
                "items": pair,
            }, lambda value: "{" + ",".join([f"{_quoted(x['k'])}:{item(x['v'])}" for x in value]) + "}"
        logical = _logical(schema)
        if logical is not None:
            return kind, logical
        return self.compile(kind, namespace)

    def _of_named(self, schema: dict[str, Any], kind: str, namespace: str) -> tuple[Any, Render]:
        name = schema["name"]
        if "." in name:
            namespace = name.rpartition(".")[0]
        else:
            namespace = schema.get("namespace", namespace)
            name = f"{namespace}.{name}" if namespace else name
        wire_name = self._new_name()
        cell: list[Render] = [_text]
        self._named[name] = (wire_name, cell)  # before its fields: they may hold it
        wire: dict[str, Any] = {"type": kind, "name": wire_name}
        if kind == "enum":
            # Decoded as numbers in a text: a symbol too may be a name that Avro does not allow.
            texts = {f"s{i}": _quoted(symbol) for i, symbol in enumerate(schema["symbols"])}
            wire["symbols"] = [*texts, *_TRAPS]
            cell[0] = texts.__getitem__
        elif kind == "fixed":
            wire["size"] = schema["size"]
            cell[0] = _logical(schema) or _base64
        else:
            wire["type"] = "record"
            self._begun.add(wire_name)
            fields, renders = [], []
            for i, field in enumerate(schema["fields"]):
                field_wire, field_render = self.compile(field["type"], namespace)
                fields.append(_field(f"f{i}", field_wire))
                renders.append((("," if i else "{") + _quoted(field["name"]) + ":", f"f{i}", field_render))
            self._begun.remove(wire_name)
            wire["fields"] = fields
            cell[0] = _record(renders)
        if self._has_no_bytes(wire):
            self._without_bytes.add(wire_name)
        return wire, cell[0] if kind != "record" else (lambda value: cell[0](value))

    def _new_name(self) -> str:
        self._count += 1
        return f"n{self._count}"

    def _has_no_bytes(self, wire: Any) -> bool:
        if not isinstance(wire, dict):
            return isinstance(wire, str) and wire in self._without_bytes
        if wire["type"] == "record":
            return all(self._has_no_bytes(field["type"]) for field in wire["fields"])
        return bool(wire["type"] == "fixed" and wire["size"] == 0)

    def _union(self, branches: list[Any], namespace: str) -> tuple[Any, Render]:
        """Return a union as it is read, and what renders its value.

        If there are several branches beside null, each is read as a record of a new name, which shows the branch.
        """
        wires: list[Any]
        compiled = [(branch, *self.compile(branch, namespace)) for branch in branches]
        real = [(wire, render) for branch, wire, render in compiled if not _is_null(branch)]
        if len(real) == 1:
            render = real[0][1]
            wires = [wire for _, wire, _ in compiled]
            return wires + self._traps(), (lambda value: "null" if value is None else render(value))
        wires = []
        renders: dict[str, Render] = {}
        for branch, wire, render in compiled:
            if _is_null(branch):
                wires.append("null")
                continue
            key = self._new_name()
            renders[key] = render
            wires.append({"type": "record", "name": key, "fields": [_field(key, wire)]})

        def of_branch(value: Any) -> str:
            if value is None:
                return "null"
            ((key, held),) = value.items()
            return renders[key](held)

        return wires + self._traps(), of_branch

    def _traps(self) -> list[Any]:
        # Branches after the last one: an index of no branch meets an enum without symbols, and of such an enum nothing
        # can be read. Avro defines a type once; afterwards its name stands for it.
        known, self._has_traps = self._has_traps, True
        return list(_TRAPS) if known else [{"type": "enum", "name": name, "symbols": []} for name in _TRAPS]


def _field(name: str, wire: Any) -> dict[str, Any]:
    return {"name": name, "type": wire}


def _is_null(branch: Any) -> bool:
    return branch == "null" or (isinstance(branch, dict) and branch.get("type") == "null")


def _record(fields: list[tuple[str, str, Render]]) -> Render:
    if not fields:
        return lambda value: "{}"
    return lambda value: "".join([prefix + render(value[key]) for prefix, key, render in fields]) + "}"


def _text(value: Any) -> str:
    return _quoted(value)


def _base64(value: bytes) -> str:
    return '"' + base64.b64encode(value).decode() + '"'


def _double(value: float) -> str:
    # repr is the shortest text that gives this very double back.
    if isfinite(value):
        return repr(value)
    return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'


def _float(value: float) -> str:
    # The shortest text that gives this very float back: 0.1, where as a double it is 0.10000000149011612.
    if isfinite(value):
        for digits in (6, 7, 8):
            shorter = float(f"{value:.{digits}g}")
            if abs(shorter) < _LARGEST_FLOAT and struct.unpack("<f", struct.pack("<f", shorter))[0] == value:
                return repr(shorter)
    return _double(value)


_LARGEST_FLOAT = 3.4028234663852886e38


_PRIMITIVES: dict[str, Render] = {
    "null": lambda value: "null",
    "boolean": lambda value: "true" if value else "false",
    "int": str,
    "long": str,
    "float": _float,
    "double": _double,
    "bytes": _base64,
    "string": _text,
}


def _logical(schema: dict[str, Any]) -> Render | None:
    # None for a logical type that is unknown or does not fit its type: Avro says to read the type beneath.
    logical, kind = schema.get("logicalType"), schema["type"]
    if not isinstance(logical, str):
        return None
    if logical == "decimal" and kind in ("bytes", "fixed"):
        scale = schema.get("scale", 0)
        if type(scale) is not int or scale < 0:
            return None
        if scale > _PLACES:  # a few bytes would become as many zeros
            raise AvroError(f"its schema has a decimal of {scale:,} places, and {_PLACES:,} are read")
        return _decimal(scale)
    if (kind, logical) == ("fixed", "duration") and schema.get("size") == 12:
        return _duration
    if (kind, logical) == ("fixed", "uuid") and schema.get("size") == 16:
        return lambda value: f'"{uuid.UUID(bytes=value)}"'
    if (kind, logical) == ("int", "date"):
        return lambda value: f'"{_day(value)}"'
    if (kind, logical) in _TIMES:
        return _time(_TIMES[kind, logical])
    if kind == "long" and logical in _TIMESTAMPS:
        return _timestamp(*_TIMESTAMPS[logical])
    return None


# Digits after the second.
_TIMES = {("int", "time-millis"): 3, ("long", "time-micros"): 6, ("long", "time-nanos"): 9}
_TIMESTAMPS = {
    f"{local}timestamp-{unit}": (digits, "" if local else "Z")
    for local in ("", "local-")
    for unit, digits in (("millis", 3), ("micros", 6), ("nanos", 9))
}


def _decimal(scale: int) -> Render:
    def render(value: bytes) -> str:
        if len(value) > _BYTES_OF_DECIMAL:
            raise AvroError(f"a decimal has {len(value):,} bytes, and {_BYTES_OF_DECIMAL:,} are read")
        unscaled = int.from_bytes(value, "big", signed=True)
        digits = _digits(abs(unscaled)).rjust(scale + 1, "0")
        number = digits if scale == 0 else f"{digits[:-scale]}.{digits[-scale:]}"
        if unscaled < 0:
            number = "-" + number
        return number if abs(unscaled) < _NUMBERS else f'"{number}"'

    return render


def _digits(number: int) -> str:
    # Python's own text of a number ends at 4,300 digits, and takes the square of their number.
    return str(number) if number < _NUMBERS else format(Decimal(number), "f")


def _day(days: int) -> str:
    if days not in _days:
        if len(_days) > 10_000:
            _days.clear()
        _days[days] = _day_of_calendar(days)
    return _days[days]


# Days come again and again. (Not functools.lru_cache: that would not travel to an executor by value.)
_days: dict[int, str] = {}


def _day_of_calendar(days: int) -> str:
    # Days since 1970-01-01 in the proleptic Gregorian calendar, beyond the years that Python's dates have.
    era, day_of_era = divmod(days + 719468, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)  # from the first of March
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def _clock(ticks: int, digits: int) -> str:
    seconds, fraction = divmod(ticks, 10**digits)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:0{digits}}"


def _time(digits: int) -> Render:
    def render(value: int) -> str:
        return f'"{"-" if value < 0 else ""}{_clock(abs(value), digits)}"'

    return render


def _timestamp(digits: int, zone: str) -> Render:
    ticks_of_day = 86400 * 10**digits

    def render(value: int) -> str:
        days, ticks = divmod(value, ticks_of_day)
        return f'"{_day(days)}T{_clock(ticks, digits)}{zone}"'

    return render


def _duration(value: bytes) -> str:
    months, days, millis = struct.unpack("<III", value)
    return f'"P{months}M{days}DT{millis // 1000}.{millis % 1000:03}S"'
