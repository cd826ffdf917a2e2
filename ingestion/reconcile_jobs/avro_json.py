"""Avro files become JSON records that hold every digit; nothing here rounds."""

from __future__ import annotations

import base64
import json
import struct
import uuid
import zlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from json.encoder import encode_basestring as _quoted
from math import isfinite
from typing import Any, NamedTuple

from reconcile_jobs import avro_blocks
from reconcile_jobs.avro_blocks import long_at
from reconcile_jobs.avro_schemas import AvroError, is_record, resolved_schema, without_null

__all__ = ["AvroError", "json_records", "schema_of"]

# Values are decoded here, by one function for each type of the schema. Libraries read bytes that are damaged as some
# value: an index below zero as the last branch of a union, a number beyond 64 bits as what is left of it. And they
# decode logical types to Python's, which lack nanoseconds, the year 0 and a union's branch.
#
# What is read of a block at a place: the JSON of the value that stands there, and where it ends. It raises IndexError,
# EOFError or struct.error where the bytes end.
Read = Callable[[bytes, int], tuple[str, int]]
Render = Callable[[Any], str]

# Up to 38 digits, SQL functions on JSON read a number exactly; a longer one travels as text.
_NUMBERS = 10**38

# What a record may hold at most: as many columns as a table may have, of which nothing was delivered.
_VALUES_WITHOUT_BYTES = 10_000

# What the text of a record may have at most, in characters, and that of a block: a few bytes may stand for a name, a
# symbol or zeros of any length, again and again. An element of an array or a map takes as much memory as `_ELEMENT`.
_TEXT_OF_RECORD, _ELEMENT = 1 << 29, 64
_TEXT_OF_BLOCK, _TEXT_OF_BYTE = 1 << 28, 200

# What a decimal may have at most: PostgreSQL's numeric, the longest, has 147,455 digits and 16,383 places.
_BYTES_OF_DECIMAL, _PLACES = 61_300, 16_383


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
        header = _header(content)
        written = _Written()
        read, end = _reader(resolved_schema(header.meta["avro.schema"]), written)
        codec = header.meta.get("avro.codec", b"null").decode()
        place = header.ends
        if (begins := avro_blocks.first_too_large(content, place, codec)) is not None:
            raise AvroError(
                f"a block holds more than {avro_blocks.LARGEST:,} bytes, or very many compressed streams "
                f"(after byte {begins})"
            )
        for block in avro_blocks.blocks(content, place):
            if block.mark != header.mark:
                raise ValueError("a block does not end with the mark of the file")
            if block.records < 0:
                raise AvroError(f"no whole Avro file: a block of {block.records} records (after byte {place})")
            held = avro_blocks.decompressed(block.data, codec)
            # Records without a field have no bytes, and a few bytes would hold any number of them.
            if block.records > max(len(content), len(held)):
                raise AvroError(f"a block of {block.records:,} records has fewer bytes (after byte {place})")
            if codec == "snappy" and block.data[-4:] != zlib.crc32(held).to_bytes(4, "big"):
                raise AvroError(f"a block is damaged: its checksum is that of other bytes (after byte {place})")
            ends = 0
            written.begin_block(place, len(held))
            for _ in range(block.records):
                written.begin_record()
                record, ends = read(held, ends)
                if end is None:
                    yield record
                else:
                    written.add(len(end))
                    yield record[:-1] + end
            if ends != len(held):
                raise AvroError(
                    f"no whole Avro file: a block holds more than the {block.records} records that it says "
                    f"(after byte {place})"
                )
            place = block.ends
    except (AvroError, MemoryError):
        raise
    except RecursionError as problem:
        raise AvroError(f"its records lie one in another too many times to be read (after byte {place})") from problem
    except (EOFError, IndexError, struct.error) as problem:
        raise AvroError(f"no whole Avro file: it ends in the middle (after byte {place})") from problem
    except Exception as problem:
        if "need to install" in str(problem):  # the file is whole, the library of its codec is missing
            raise
        # A wrong byte in the schema or in a compressed block leads to KeyError, zlib.error and others.
        why = f"{type(problem).__name__}: {problem}"
        raise AvroError(f"no whole Avro file: {why} (after byte {place})") from problem


def schema_of(content: bytes) -> Any:
    """Return the schema in the header of a file, as `resolved_schema` does. Raises AvroError."""
    return resolved_schema(_header(content).meta["avro.schema"])


class _Header(NamedTuple):
    meta: dict[str, bytes]
    mark: bytes
    ends: int


def _header(content: bytes) -> _Header:
    if content[:4] != b"Obj\x01":
        raise AvroError("no Avro file: it is empty" if not content else "no Avro file: it does not begin as one")
    meta: dict[str, bytes] = {}
    count, place = _count(content, 4)
    while count:
        for _ in range(count):
            name, place = _bytes(content, place)
            meta[name.decode()], place = _bytes(content, place)
        count, place = _count(content, place)
    mark, ends = _slice(content, place, 16)
    return _Header(meta, mark, ends)


class _Written:
    """How much text there is that does not grow with the bytes of a file: names, symbols, zeros, elements."""

    def __init__(self) -> None:
        self._text = self._limit = self._limit_of_block = self._begins = 0

    def begin_block(self, begins: int, length: int) -> None:
        self._begins, self._text, self._limit_of_block = begins, 0, _TEXT_OF_BLOCK + _TEXT_OF_BYTE * length

    def begin_record(self) -> None:
        self._limit = min(self._text + _TEXT_OF_RECORD, self._limit_of_block)

    def add(self, length: int) -> None:
        """Raises AvroError, before the text is there."""
        self._text += length
        if self._text > self._limit:
            raise AvroError(
                f"a record has very many values, or a block very few bytes for its text (after byte {self._begins})"
            )


def _reader(schema: Any, written: _Written) -> tuple[Read, str | None]:
    """Return what reads a record, and what ends each record in place of its last brace."""
    read = _Compiler(written).compile(schema).read
    types = _payload_types(schema)
    told = json.dumps(types, ensure_ascii=False, separators=(",", ":"))
    return read, f',"avro_types":{told}}}' if types else None


def _payload_types(schema: Any) -> dict[str, str]:
    """Return, for the fields of the record `payload`, the types that their JSON would not show.

    `bytes`, which JSON has in base64; `json`, a text that is JSON; `time-interval-micros`, a number; and the names of
    records, as `timestampTz`. For a `multidimensionalArray_<column>` it is the type of its elements, then `[]`.
    """
    fields = {field["name"]: field["type"] for field in schema["fields"]} if is_record(schema) else {}
    payload = without_null(fields.get("payload"))
    if not is_record(payload) or "avro_types" in fields:
        return {}
    noted_types = {field["name"]: _noted_type(without_null(field["type"])) for field in payload["fields"]}
    return {name: type_ for name, type_ in noted_types.items() if type_}


def _noted_type(type_: Any, arrays: tuple[Any, ...] = ()) -> str | None:
    if is_record(type_):
        elements = {field["name"]: field["type"] for field in type_["fields"]}.get("elementValue")
        if elements is None or any(type_ is array for array in arrays):  # an array may be its own element
            return str(type_["name"]).rpartition(".")[2]
        return f"{_noted_type(without_null(elements), (*arrays, type_)) or ''}[]"
    kind, logical = (type_["type"], type_.get("logicalType")) if isinstance(type_, dict) else (type_, None)
    if kind in ("bytes", "fixed"):
        return None if isinstance(type_, dict) and _logical(type_) else "bytes"
    if (kind, logical) in (("string", "json"), ("long", "time-interval-micros")):
        return str(logical)
    return None


class _Compiled(NamedTuple):
    read: Read
    is_empty: bool  # its values have no bytes
    values: int = 1  # how many a value without bytes holds


class _Compiler:
    def __init__(self, written: _Written) -> None:
        self._written = written
        self._named: dict[int, _Compiled] = {}  # by the object that defines a type, whose name may be that of another

    def compile(self, schema: Any) -> _Compiled:
        if isinstance(schema, list):
            return _Compiled(_union([self.compile(branch).read for branch in schema]), False)
        if isinstance(schema, str):
            return _Compiled(_PRIMITIVES[schema], schema == "null")
        kind = schema["type"]
        if kind in ("record", "error", "enum", "fixed"):
            if id(schema) not in self._named:
                self._named[id(schema)] = self._of_named(schema, kind)
            return self._named[id(schema)]
        if kind == "array":
            item = self.compile(schema["items"])
            if item.is_empty:  # a few bytes would hold any number of them
                raise AvroError("its schema has an array of elements without bytes")
            return _Compiled(_array(item.read, self._written), False)
        if kind == "map":
            return _Compiled(_map(self.compile(schema["values"]).read, self._written), False)
        if (logical := _logical(schema)) is not None:
            return _Compiled(self._bounded(_labelled(kind, logical), _zeros(schema)), False)
        return self.compile(kind)

    def _bounded(self, read: Read, longest: int) -> Read:
        return _counted(read, longest, self._written) if longest > _ELEMENT else read

    def _of_named(self, schema: dict[str, Any], kind: str) -> _Compiled:
        if kind == "enum":
            symbols = [_quoted(symbol) for symbol in schema["symbols"]]
            return _Compiled(self._bounded(_enum(symbols), max(map(len, symbols), default=0)), False)
        if kind == "fixed":
            size = schema["size"]
            if type(size) is not int or size < 0:
                raise AvroError("no Avro file: its schema has a fixed whose size is no number of bytes")
            logical = _logical(schema)
            read = _fixed(size, logical or _base64)
            return _Compiled(self._bounded(read, _zeros(schema)) if logical else read, size == 0)
        cell: list[Read] = []
        # Its fields may hold it.
        self._named[id(schema)] = _Compiled(lambda data, place: cell[0](data, place), False)
        fields = [(field["name"], self.compile(field["type"])) for field in schema["fields"]]
        cell.append(_record([(name, field.read) for name, field in fields], self._written))
        empty = [field.values for _, field in fields if field.is_empty]
        if sum(empty) > _VALUES_WITHOUT_BYTES:  # records of records, each of two, are very many soon
            raise AvroError("its schema has a record of very many values without bytes")
        return _Compiled(cell[0], len(empty) == len(fields), 1 + sum(empty))


def _slice(data: bytes, place: int, length: int) -> tuple[bytes, int]:
    ends = place + length
    if length < 0:
        raise ValueError("a value has fewer than no bytes")
    if ends > len(data):
        raise EOFError
    return data[place:ends], ends


def _bytes(data: bytes, place: int) -> tuple[bytes, int]:
    length = data[place]
    if length < 128 and not length & 1 and (ends := place + 1 + (length >> 1)) <= len(data):  # as most are
        return data[place + 1 : ends], ends
    length, place = long_at(data, place)
    return _slice(data, place, length)


def _int(data: bytes, place: int) -> tuple[int, int]:
    number, place = long_at(data, place)
    if not -0x80000000 <= number <= 0x7FFFFFFF:
        raise ValueError("a number has more than 32 bits")
    return number, place


def _count(data: bytes, place: int) -> tuple[int, int]:
    # Of an array or a map, which come in parts. Below zero, the number of bytes follows.
    count, place = long_at(data, place)
    if count < 0:
        count = -count
        _, place = long_at(data, place)
    return count, place


def _read_null(data: bytes, place: int) -> tuple[str, int]:
    return "null", place


def _read_boolean(data: bytes, place: int) -> tuple[str, int]:
    return "true" if data[place] else "false", place + 1


def _read_int(data: bytes, place: int) -> tuple[str, int]:
    number, place = _int(data, place)
    return str(number), place


def _read_long(data: bytes, place: int) -> tuple[str, int]:
    number, place = long_at(data, place)
    return str(number), place


def _read_float(data: bytes, place: int) -> tuple[str, int]:
    return _float(*struct.unpack_from("<f", data, place)), place + 4


def _read_double(data: bytes, place: int) -> tuple[str, int]:
    return _double(*struct.unpack_from("<d", data, place)), place + 8


def _read_bytes(data: bytes, place: int) -> tuple[str, int]:
    value, place = _bytes(data, place)
    return _base64(value), place


def _read_string(data: bytes, place: int) -> tuple[str, int]:
    value, place = _bytes(data, place)
    return _quoted(value.decode()), place


_PRIMITIVES: dict[str, Read] = {
    "null": _read_null,
    "boolean": _read_boolean,
    "int": _read_int,
    "long": _read_long,
    "float": _read_float,
    "double": _read_double,
    "bytes": _read_bytes,
    "string": _read_string,
}


def _labelled(kind: str, render: Render) -> Read:
    value_at: Callable[[bytes, int], tuple[Any, int]] = {"int": _int, "long": long_at, "bytes": _bytes}[kind]

    def read(data: bytes, place: int) -> tuple[str, int]:
        value, place = value_at(data, place)
        return render(value), place

    return read


def _fixed(size: int, render: Render) -> Read:
    def read(data: bytes, place: int) -> tuple[str, int]:
        value, place = _slice(data, place, size)
        return render(value), place

    return read


def _counted(value: Read, length: int, written: _Written) -> Read:
    def read(data: bytes, place: int) -> tuple[str, int]:
        written.add(length)
        return value(data, place)

    return read


def _enum(symbols: list[str]) -> Read:
    def read(data: bytes, place: int) -> tuple[str, int]:
        index, place = long_at(data, place)
        if not 0 <= index < len(symbols):
            raise ValueError(f"an enum of {len(symbols)} symbols has none of the number {index}")
        return symbols[index], place

    return read


def _union(branches: list[Read]) -> Read:
    # Nearly all indexes are one byte, and nearly all fields are unions.
    of_one_byte = {index << 1: branch for index, branch in enumerate(branches[:64])}

    def read(data: bytes, place: int) -> tuple[str, int]:
        if (branch := of_one_byte.get(data[place])) is not None:
            return branch(data, place + 1)
        index, place = long_at(data, place)
        if not 0 <= index < len(branches):
            raise ValueError(f"a union of {len(branches)} types has none of the number {index}")
        return branches[index](data, place)

    return read


def _array(item: Read, written: _Written) -> Read:
    def read(data: bytes, place: int) -> tuple[str, int]:
        texts = []
        count, place = _count(data, place)
        while count:
            written.add(_ELEMENT * count)
            for _ in range(count):
                text, place = item(data, place)
                texts.append(text)
            count, place = _count(data, place)
        return "[" + ",".join(texts) + "]", place

    return read


def _map(value: Read, written: _Written) -> Read:
    # A name that it has twice stays twice.
    def read(data: bytes, place: int) -> tuple[str, int]:
        texts = []
        count, place = _count(data, place)
        while count:
            written.add(_ELEMENT * count)
            for _ in range(count):
                name, place = _read_string(data, place)
                text, place = value(data, place)
                texts.append(f"{name}:{text}")
            count, place = _count(data, place)
        return "{" + ",".join(texts) + "}", place

    return read


def _record(fields: list[tuple[str, Read]], written: _Written) -> Read:
    if not fields:
        return _counted(lambda data, place: ("{}", place), len("{}"), written)
    begun = [(("," if i else "{") + _quoted(name) + ":", read) for i, (name, read) in enumerate(fields)]
    length = sum(len(name) + len("null") for name, _ in begun)

    def read(data: bytes, place: int) -> tuple[str, int]:
        written.add(length)
        texts = []
        for name, field in begun:
            text, place = field(data, place)
            texts.append(name)
            texts.append(text)
        texts.append("}")
        return "".join(texts), place

    return read


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


def _zeros(schema: dict[str, Any]) -> int:
    # Of a logical type that is read as one.
    return schema.get("scale", 0) if schema["logicalType"] == "decimal" else 0


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
