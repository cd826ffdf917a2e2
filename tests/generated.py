"""Models generated in plain Python, as `generate.py` does it: records in, files out, no Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reconcile_jobs.generation.avro_types import Header
from reconcile_jobs.generation.datastream_records import add_event
from reconcile_jobs.generation.names import Pattern
from reconcile_jobs.generation.observations import Add, Observations
from reconcile_jobs.generation.plan import Plan, Settings, plan_of
from reconcile_jobs.generation.project import Project
from reconcile_jobs.generation.streams import DATASTREAM, Stream
from reconcile_jobs.generation.tables import Answer, tables_of
from reconcile_jobs.generation.witnesses import of_headers
from reconcile_jobs.process.written_files import write

STAGING = ("lake", "shop_changes")


def observed(records: Iterable[Any], batch: int = 1, add: Add = add_event) -> Observations:
    """Return what records show; each is a text or what JSON has of it, and may come with its batch."""
    found = Observations()
    for record in records:
        record, number = record if isinstance(record, tuple) else (record, batch)
        event = json.loads(record) if isinstance(record, str) else record
        add(
            found,
            record if isinstance(record, str) else json.dumps(record),
            event.get("object", event.get("table_name")),
            number,
        )
    return found


def change(
    table: str = "orders", payload: Mapping[str, Any] | None = None, key: Sequence[str] | None = ("id",),
    schema: str = "shop", **metadata: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return a change of a MySQL table."""
    of_key = {} if key is None else {"primary_keys": list(key)}
    return {
        "uuid": "u1", "read_timestamp": "2026-11-21T10:00:00Z",
        "source_timestamp": "2026-11-21T09:59:58Z", "read_method": "mysql-cdc-binlog",
        "object": f"{schema}_{table}", "payload": dict(payload or {"id": 1, "status": "new"}),
        "source_metadata": {
            "database": schema, "table": table, "change_type": "INSERT",
            "log_file": "bin.000001", "log_position": 4, **of_key, **metadata
        },
    }  # fmt: skip


def planned(
    into: Path, records: Iterable[Any] | Observations, *, name: str = "{table}", headers: Sequence[Header] = (),
    answers: Mapping[str, Answer] | None = None, select: Sequence[str] = (), exclude: Sequence[str] = (),
    stream: Stream = DATASTREAM, **settings: Any,
) -> Plan:  # fmt: skip
    """Return what a run would write."""
    observations = records if isinstance(records, Observations) else observed(records, add=stream.add)
    testimonies = [stream.testimony(observations)] if stream.testimony else [of_headers(headers)]
    tables, refusals = tables_of(observations, testimonies, answers, select, exclude)
    return plan_of(Project(into), tables, refusals, Settings(STAGING, Pattern(name), stream=stream, **settings))


def generated(into: Path, records: Iterable[Any] | Observations, **options: Any) -> Plan:
    """Run once, and return what was written."""
    plan = planned(into, records, **options)
    write(plan.files)
    return plan


def texts(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
