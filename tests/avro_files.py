"""Avro files as Datastream writes them: unions with null, records by name, labels that libraries do not know."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import fastavro

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
TIME = {"type": "long", "logicalType": "time-micros"}
DATE = {"type": "int", "logicalType": "date"}
OFFSET = {"type": "int", "logicalType": "time-millis"}
JSON = {"type": "string", "logicalType": "json"}
NUMBER = {"type": "string", "logicalType": "number"}
TIME_INTERVAL = {"type": "long", "logicalType": "time-interval-micros"}

_OPTIONAL = {
    "log_file": ["null", "string"], "log_position": ["null", "long"], "binlog_file": ["null", "string"],
    "binlog_position": ["null", "long"], "change_type": ["null", "string"], "is_deleted": ["null", "boolean"],
    "scn": ["null", "long"], "rs_id": ["null", "string"], "ssn": ["null", "long"], "row_id": ["null", "string"],
    "lsn": ["null", "string"], "tx_id": ["null", "string", "long"],
    "primary_keys": ["null", {"type": "array", "items": "string"}],
    "physical_location": ["null", {"type": "array", "items": "long"}],
    "replication_index": ["null", {"type": "array", "items": "string"}],
}  # fmt: skip


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    """Return the type of one of Datastream's records, as `timestampTz`."""
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def array(column: str, element: Any) -> dict[str, Any]:
    """Return the type of an array of any number of dimensions."""
    name = f"multidimensionalArray_{column}"
    return record(name, nestedArray=["null", {"type": "array", "items": name}], elementValue=["null", element])


def nested(values: Any) -> dict[str, Any]:
    """Return a list, or a list of lists, as the value of such a type."""
    if isinstance(values, list):
        return {"nestedArray": [nested(value) for value in values], "elementValue": None}
    return {"nestedArray": None, "elementValue": values}


def avro_file(schema: Any, *records: Any, **options: Any) -> bytes:
    """Return the content of a file."""
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(schema), records, **options)
    return file.getvalue()


def avro_events(types: Mapping[str, Any], events: Iterable[tuple[str, Mapping[str, Any]]]) -> bytes:
    """Return a file of Datastream's events: of each its JSON without a payload, and its payload in Avro's values.

    `types` are those of the payload's fields. Timestamps of the envelope are ISO 8601 in the JSON, or milliseconds.
    """
    told = [(json.loads(text), payload) for text, payload in events]
    metadata = {name: _OPTIONAL.get(name, "string") for event, _ in told for name in event["source_metadata"]}
    times = ("read_timestamp", "source_timestamp")
    schema = record(
        "shop_things",
        **{
            name: MILLIS if name in times else "string"
            for name in told[0][0]
            if name not in ("source_metadata", "payload")
        },
        source_metadata=record("source_metadata", **metadata),
        payload=record("payload"),
    )
    schema["fields"][-1]["type"]["fields"] = [
        {"name": name, "type": ["null", type_], "default": None} for name, type_ in types.items()
    ]
    return avro_file(
        schema,
        *(
            {
                **{name: _millis(value) if name in times else value for name, value in event.items()},
                "source_metadata": {
                    name: _text_or(event["source_metadata"].get(name), kind) for name, kind in metadata.items()
                },
                "payload": {name: payload.get(name) for name in types},
            }
            for event, payload in told
        ),
    )


def _text_or(value: Any, kind: Any) -> Any:
    return str(value) if kind == "string" else value


def _millis(text: str | int) -> int:
    return text if isinstance(text, int) else int(datetime.fromisoformat(text).timestamp() * 1000 + 0.5)
