"""What the header of one of Datastream's Avro files says of the columns of its table."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from reconcile_jobs.avro_json import AvroError, json_records, schema_of
from reconcile_jobs.avro_schemas import is_null, is_record, without_null
from reconcile_jobs.generation.datastream_records import place_of, source_of
from reconcile_jobs.generation.declarations import Declaration, of_kind
from reconcile_jobs.generation.observations import Place

__all__ = ["Header", "header_of"]


class Header(NamedTuple):
    """The table that the first record of a file names, and the columns' types."""

    place: Place
    columns: dict[str, Declaration]


def header_of(content: bytes) -> Header | None:
    """Return the table, by the first record, and the types of its columns, by the schema, of a whole Avro file.

    None if the file is torn at the beginning, or is not of a table's records.
    """
    try:
        first = json.loads(next(json_records(content)))
        schema = schema_of(content)
    except (AvroError, StopIteration, ValueError, LookupError, EOFError, RecursionError):
        return None
    if not isinstance(first, dict):
        return None
    place = place_of(first.get("source_metadata"))
    fields = {field["name"]: field["type"] for field in schema["fields"]} if is_record(schema) else {}
    payload = without_null(fields.get("payload"))
    if place is None or not is_record(payload):
        return None
    source = source_of(first.get("read_method"), first["source_metadata"])
    types = {field["name"]: field["type"] for field in payload["fields"]}
    return Header(place, {name: _declaration_of(type_, source) for name, type_ in types.items()})


def _declaration_of(type_: Any, source: str | None) -> Declaration:
    try:
        return _declaration(type_, source)
    except RecursionError:
        return Declaration("string", "json", "Avro: a type that holds itself")


def _without_null(type_: Any) -> Any:
    if not isinstance(type_, list):
        return type_
    real = [branch for branch in type_ if not is_null(branch)]
    return real[0] if len(real) == 1 else (real or "null")


_PRIMITIVES = {
    "boolean": "boolean", "int": "int", "long": "bigint", "float": "float", "double": "double", "bytes": "binary",
    "fixed": "binary", "string": "string", "enum": "string",
}  # fmt: skip


def _declaration(type_: Any, source: str | None) -> Declaration:
    type_ = _without_null(type_)
    if isinstance(type_, list):  # a value may be of several types: the record has it as JSON has it
        return Declaration("string", witness="Avro: a union")
    kind, logical = (type_.get("type"), type_.get("logicalType")) if isinstance(type_, dict) else (type_, None)
    if is_record(type_):
        return _of_record(type_, source)
    if kind == "array":
        element = _declaration(type_["items"], source)
        return Declaration(f"array<{element.data_type}>", witness=f"Avro: array of {_after_colon(element)}")
    if kind == "map":
        element = _declaration(type_["values"], source)
        return Declaration(f"map<string,{element.data_type}>", witness=f"Avro: map of {_after_colon(element)}")
    if logical is not None and (found := _of_logical(type_, kind, str(logical), source)):
        return found
    if kind not in _PRIMITIVES:
        return Declaration("string", witness=f"Avro: {kind}")
    return Declaration(_PRIMITIVES[kind], witness=f"Avro: {kind}")


def _after_colon(element: Declaration) -> str:
    return element.witness.partition(": ")[2]


def _of_logical(type_: dict[str, Any], kind: Any, logical: str, source: str | None) -> Declaration | None:
    witness = f"Avro: {logical}"
    if logical == "decimal" and kind in ("bytes", "fixed"):
        digits, places = type_.get("precision"), type_.get("scale", 0)
        witness = f"Avro: decimal({digits},{places})"
        fits = type(digits) is int and type(places) is int and 0 <= places <= digits <= 38
        return Declaration(f"decimal({digits},{places})" if fits else "string", witness=witness)
    if logical == "number":
        # MySQL has it for BIGINT UNSIGNED alone; for Oracle it is a NUMBER of which no digits are known.
        return Declaration("decimal(20,0)" if source == "mysql" else "string", witness=witness)
    if logical == "date":
        return Declaration("date", witness=witness)
    if logical in ("timestamp-micros", "timestamp-millis"):
        # Of MySQL's and Oracle's types this may be a DATE or a DATETIME too: as a timestamp each value is whole.
        return Declaration("timestamp", witness=witness)
    if logical in ("local-timestamp-micros", "local-timestamp-millis"):
        return Declaration("timestamp_ntz", witness=witness)
    if logical in ("time-micros", "time-millis"):
        return Declaration("string", "time", witness)
    if logical in ("json", "time-interval-micros") and (found := of_kind(logical)):
        return Declaration(found.data_type, found.encoding, witness)
    if logical in ("timestamp-nanos", "local-timestamp-nanos", "uuid", "varchar", "duration"):
        return Declaration("string", witness=witness)
    return None


def _of_record(type_: dict[str, Any], source: str | None) -> Declaration:
    name = str(type_["name"]).rpartition(".")[2]
    fields = {field["name"]: field["type"] for field in type_.get("fields", [])}
    if "elementValue" in fields:
        element = _declaration(fields["elementValue"], source)
        # How many dimensions it has, only values show; one is what nearly all have.
        return Declaration(f"array<{element.data_type}>", witness=f"Avro: array of {_after_colon(element)}")
    found = of_kind(name) or Declaration("string", "json")
    return Declaration(found.data_type, found.encoding, f"Avro: record {name}")
