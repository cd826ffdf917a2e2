"""What a staged record of Datastream shows of its table."""

from __future__ import annotations

import json
import re
from typing import Any

from reconcile_jobs.generation.observations import Observations, Place, decoded, is_half

__all__ = ["add_event", "key_of", "place_of", "source_of"]


def add_event(found: Observations, record: str | None, object_: str | None, batch: int) -> None:
    """Take note of a staged record."""
    event = decoded(record)
    metadata = event.get("source_metadata") if event else None
    place = place_of(metadata)
    if event is None or metadata is None or place is None:
        found.nameless += 1
        return
    observed = found.of(place)
    observed.records += 1
    if object_:
        observed.objects.add(object_)
    if source := source_of(event.get("read_method"), metadata):
        observed.sources.add(source)
    newest = [batch, str(event.get("read_timestamp") or ""), str(event.get("uuid") or "")]
    if (key := key_of(metadata)) is not None:
        observed.add_key(key, newest)
    payload, kinds = event.get("payload"), event.get("avro_types")
    if isinstance(payload, dict):
        observed.add_values(payload, kinds if isinstance(kinds, dict) else {}, newest, batch)


def place_of(metadata: Any) -> Place | None:
    """Return the table that the metadata of a record name, None if they name none."""
    if not isinstance(metadata, dict):
        return None
    database, schema, table = (_text(metadata.get(name)) for name in ("database", "schema", "table"))
    # Datastream's documentation shows SQL Server's schema as a list of one name.
    schema = re.sub(r'^\["|"\]$', "", schema) if schema else schema
    if not table or not (schema or database) or any(map(is_half, filter(None, (database, schema, table)))):
        return None
    return Place(database if schema else None, schema or database or "", table)


def _text(value: Any) -> str | None:
    # As Spark's from_json reads what is no text into a string.
    if value is None or value == "":
        return None
    return str(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def source_of(read_method: Any, metadata: dict[str, Any]) -> str | None:
    """Return the source database of a record, as the macro `source_of_event` finds it; None if nothing shows it."""
    method, lsn = str(read_method or ""), str(metadata.get("lsn") or "")
    if metadata.get("scn") is not None or metadata.get("row_id") is not None or method.startswith("oracle"):
        return "oracle"
    if "/" in lsn or method.startswith("postgres"):
        return "postgresql"
    if ":" in lsn or method.startswith("sqlserver"):
        return "sqlserver"
    positions = (metadata.get("log_position"), metadata.get("binlog_position"))
    return "mysql" if any(position is not None for position in positions) or method.startswith("mysql") else None


def key_of(metadata: dict[str, Any]) -> list[str] | None:
    """Return the key columns that a record names, as the macro `key_of_record`; []: none; None: it tells no key."""
    primary, index = metadata.get("primary_keys"), metadata.get("replication_index")
    for names in (primary or None, index, primary):
        if isinstance(names, list):
            return [str(name) for name in names]
    return None
