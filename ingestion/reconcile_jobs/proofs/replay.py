"""A proof again: the model's checksums at the recorded versions, and whether they are those of the certificate."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconcile_jobs.process import session
from reconcile_jobs.process.errors import JobError, UsageError, explained
from reconcile_jobs.proofs.canonical_form import field_of
from reconcile_jobs.proofs.certificate import FORMAT
from reconcile_jobs.proofs.comparison import FIRST, Bucket, total
from reconcile_jobs.proofs.proving import Project, model_side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Replayed", "read_proof", "replayed", "worst_of"]

_STATES = ("different", "not recomputed", "same")

# What Delta, Iceberg and Spark say of a version that is not there, or whose files are not.
_GONE = re.compile(
    r"VERSION_NOT_FOUND|BEYOND_DELETED_FILE_RETENTION|Cannot time travel|FILE_NOT_(?:EXIST|FOUND)|"
    r"FileNotFoundException|Cannot find (?:matching )?snapshot",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Replayed:
    """What became of one model's checksums. `reason`: why they could not be recomputed, or what they are now."""

    name: str
    state: str
    reason: str = ""

    @property
    def line(self) -> str:
        """The result as a line for people."""
        return f"{self.name}   {self.state}" + (f": {self.reason}" if self.reason else "")


def worst_of(states: Sequence[str]) -> str:
    """Return the worst of the states of models."""
    return next(state for state in _STATES if state in states)


def read_proof(path: Path) -> dict[str, Any]:
    """Return the document of a certificate. Raises UsageError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        said = getattr(problem, "strerror", None) or "it is not JSON"
        raise UsageError(
            f"--replay {path} cannot be read: {said}; give the JSON that stands beside the page."
        ) from None
    if not isinstance(document, dict) or "models" not in document or "position" not in document:
        raise UsageError(f"--replay {path} is not the JSON of a certificate of prove.py.")
    if document.get("format") != FORMAT:
        raise UsageError(f"--replay {path} has the format {document.get('format')}, and this version reads {FORMAT}.")
    return document


def replayed(start: Callable[[], SparkSession], project: Project, path: Path) -> list[Replayed]:
    """Recompute the checksums of all models of a certificate. Raises UsageError."""
    document = read_proof(path)
    spark = start()
    with session.settings(spark, {"spark.sql.session.timeZone": "UTC"}):
        return [_replayed(spark, project, document, model) for model in document["models"]]


def _changed(recorded: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> str:
    """Return which columns have another type than the certificate says."""
    types = {column["name"]: column["type"] for column in now}
    return "; ".join(
        f"the column {column['name']} is {types.get(column['name'])} now, and was {column['type']}"
        for column in recorded
        if types.get(column["name"], "").lower() != column["type"].lower()
    )


def _reason(problem: JobError, version: int | None) -> str:
    """Return why rows could not be read; that the recorded version is gone in words of its own."""
    if version is None or not _GONE.search(str(problem)):
        return str(problem)
    return (
        f"the base table's version {version} is not there any more; VACUUM (Delta) or expire_snapshots (Iceberg) has "
        "deleted it, or files of it"
    )


def _replayed(spark: SparkSession, project: Project, document: Mapping[str, Any], model: Mapping[str, Any]) -> Replayed:
    name, recorded = model["name"], model["digests"]["model"]
    if model["staged"] is None or model["versions"] is None or not model["sql"]["model"]:
        return Replayed(name, "not recomputed", "the proof did not come to its rows")
    position = {name: document["position"][name] for name in ("kind", "value", "taken_at")}
    request = {
        **{name: model[name] for name in ("unique_id", "key", "tolerances", "allowance", "uncertainty")},
        "columns": [column["name"] for column in model["columns"]],
        "position": position,
        "compared_to": model["table"],
        "source_rows": "reconcile_proof_rows",
        "store_values": False,
        **{name: model[name] for name in ("versions", "staged", "form_columns")},
    }
    fields = [field_of(column["name"], column["kind"], column["type"]) for column in model["columns"]]
    try:
        (said,) = project.ask("rows", [request])
        if said["complaints"]:
            return Replayed(name, "not recomputed", "; ".join(said["complaints"]))
        if changed := _changed(model["columns"], said["columns"]):
            return Replayed(name, "not recomputed", changed)
        side = model_side(spark, said["sql"], fields, len(model["key"]))
        now = total(side.buckets(FIRST, ()))
    except Exception as problem:
        return Replayed(name, "not recomputed", _reason(explained(problem), model["versions"]["model"]))
    if now == Bucket(recorded["rows"], int(recorded["first"]), int(recorded["second"])):
        return Replayed(name, "same")
    return Replayed(
        name,
        "different",
        f"{now.rows:,} rows with the sums {now.first}:{now.second}, recorded were "
        f"{recorded['rows']:,} with {recorded['first']}:{recorded['second']}",
    )
