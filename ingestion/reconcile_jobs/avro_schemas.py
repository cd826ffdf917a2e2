"""The schema of an Avro file, in which each type stands where the file has only its name."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["PRIMITIVES", "AvroError", "is_null", "is_record", "resolved_schema", "without_null"]

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class AvroError(ValueError):
    """What stands in a file is no Avro, or is torn; the message says what and where, in bytes."""


def resolved_schema(schema: bytes) -> Any:
    """Return a schema without names that stand for types, and without objects that only wrap one.

    A type that is used by its name is the very object that defines it; so a type may hold itself, and who walks through
    a schema has to stop there. A label of an object as {"type": {"type": "long"}}, a `logicalType` say, is ignored:
    Avro defines labels for the type itself. Raises AvroError.
    """
    read = json.loads(schema)
    try:
        json.dumps(read, ensure_ascii=False).encode()
    except UnicodeEncodeError as problem:
        raise AvroError("its schema has a name with half of a surrogate pair, which is no character") from problem
    return _resolved(read, "", {})


def _resolved(schema: Any, namespace: str, named: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_resolved(branch, namespace, named) for branch in schema]
    if isinstance(schema, str):
        return schema if schema in PRIMITIVES else _named(schema, namespace, named)
    kind = schema["type"]
    if kind in ("record", "error", "enum", "fixed"):
        return _definition(schema, kind, namespace, named)
    if kind == "array":
        return schema | {"items": _resolved(schema["items"], namespace, named)}
    if kind == "map":
        return schema | {"values": _resolved(schema["values"], namespace, named)}
    return schema if kind in PRIMITIVES else _resolved(kind, namespace, named)


def _named(name: str, namespace: str, named: dict[str, Any]) -> Any:
    full_name = name if "." in name or not namespace else f"{namespace}.{name}"
    found = named.get(full_name, named.get(name))
    if found is None:
        raise AvroError(f"no Avro file: its schema has no type {name}")
    return found


def _definition(schema: dict[str, Any], kind: str, namespace: str, named: dict[str, Any]) -> dict[str, Any]:
    name = schema["name"]
    if "." in name:
        namespace = name.rpartition(".")[0]
    else:
        namespace = schema.get("namespace", namespace)
        name = f"{namespace}.{name}" if namespace else name
    definition = named[name] = dict(schema)  # before its fields: they may hold it
    if kind in ("record", "error"):
        definition["fields"] = [
            field | {"type": _resolved(field["type"], namespace, named)} for field in schema["fields"]
        ]
    return definition


def is_record(type_: Any) -> bool:
    """Whether a type is a record; an error is one by another name."""
    return isinstance(type_, dict) and type_["type"] in ("record", "error")


def is_null(type_: Any) -> bool:
    """Whether a type is null, with or without labels."""
    return type_ == "null" or (isinstance(type_, dict) and type_["type"] == "null")


def without_null(type_: Any) -> Any:
    """Return the one type of a union with null, or None: any other union names no one type."""
    if not isinstance(type_, list):
        return type_
    real = [branch for branch in type_ if not is_null(branch)]
    return real[0] if len(real) == 1 else None
