"""What the header of one of Datastream's Avro files says of the columns of its table."""

from __future__ import annotations

import io
import json
from typing import Any, NamedTuple

import fastavro

from reconcile_jobs.avro_json import AvroError, json_records
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
        schema = json.loads(fastavro.reader(io.BytesIO(content)).metadata["avro.schema"])
    except (AvroError, StopIteration, ValueError, LookupError, EOFError, RecursionError):
        return None
    if not isinstance(first, dict):
        return None
    place = place_of(first.get("source_metadata"))
    fields = {field["name"]: field["type"] for field in schema.get("fields", [])} if isinstance(schema, dict) else {}
    payload = _without_null(fields.get("payload"))
    if place is None or not isinstance(payload, dict) or payload.get("type") != "record":
        return None
    source = source_of(first.get("read_method"), first["source_metadata"])
    named: dict[str, Any] = {}
    _name(schema, named)
    types = {field["name"]: field["type"] for field in payload["fields"]}
    return Header(place, {name: _declaration_of(type_, source, named) for name, type_ in types.items()})


def _declaration_of(type_: Any, source: str | None, named: dict[str, Any]) -> Declaration:
    try:
        return _declaration(type_, source, named)
    except RecursionError:
        return Declaration("string", "json", "Avro: a type that holds itself")


def _name(schema: Any, named: dict[str, Any]) -> None:
    """Collect the named types, which later fields refer to by name."""
    if isinstance(schema, list):
        for branch in schema:
            _name(branch, named)
    elif isinstance(schema, dict):
        if "name" in schema and schema.get("type") in ("record", "enum", "fixed", "error"):
            named[str(schema["name"]).rpartition(".")[2]] = schema
        for field in schema.get("fields", []):
            _name(field["type"], named)
        for part in ("items", "values"):
            _name(schema.get(part), named)
        if isinstance(schema.get("type"), dict | list):
            _name(schema["type"], named)


def _without_null(type_: Any) -> Any:
    if not isinstance(type_, list):
        return type_
    real = [branch for branch in type_ if branch != "null" and not (isinstance(branch, dict) and _is_null(branch))]
    return real[0] if len(real) == 1 else (real or "null")


def _is_null(branch: dict[str, Any]) -> bool:
    return branch.get("type") == "null"


_PRIMITIVES = {
    "boolean": "boolean", "int": "int", "long": "bigint", "float": "float", "double": "double", "bytes": "binary",
    "fixed": "binary", "string": "string", "enum": "string",
}  # fmt: skip


def _declaration(type_: Any, source: str | None, named: dict[str, Any]) -> Declaration:
    type_ = _without_null(type_)
    if isinstance(type_, list):  # a value may be of several types: the record has it as JSON has it
        return Declaration("string", witness="Avro: a union")
    if isinstance(type_, str) and type_ not in _PRIMITIVES:
        type_ = named.get(type_.rpartition(".")[2], type_)
    kind, logical = (type_.get("type"), type_.get("logicalType")) if isinstance(type_, dict) else (type_, None)
    if isinstance(kind, dict | list):
        return _declaration(kind, source, named)
    if kind == "record":
        return _of_record(type_, source, named)
    if kind == "array":
        element = _declaration(type_["items"], source, named)
        return Declaration(f"array<{element.data_type}>", witness=f"Avro: array of {_after_colon(element)}")
    if kind == "map":
        element = _declaration(type_["values"], source, named)
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


def _of_record(type_: dict[str, Any], source: str | None, named: dict[str, Any]) -> Declaration:
    name = str(type_["name"]).rpartition(".")[2]
    fields = {field["name"]: field["type"] for field in type_.get("fields", [])}
    if "elementValue" in fields:
        element = _declaration(fields["elementValue"], source, named)
        # How many dimensions it has, only values show; one is what nearly all have.
        return Declaration(f"array<{element.data_type}>", witness=f"Avro: array of {_after_colon(element)}")
    found = of_kind(name) or Declaration("string", "json")
    return Declaration(found.data_type, found.encoding, f"Avro: record {name}")
