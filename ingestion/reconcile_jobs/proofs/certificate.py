"""The certificate of a proof: a JSON document with all that was found, and an HTML page of it without anything else."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from reconcile_jobs.process.console import printable
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.proofs.comparison import Bucket
from reconcile_jobs.proofs.proving import Proof
from reconcile_jobs.proofs.verdicts import Proven, megabytes

__all__ = ["FORMAT", "document_of", "html_of", "text_of", "written"]

FORMAT = 1

# So many rows of a model stand on the page; the document has all.
_SHOWN = 500
_PACKAGE = Path(__file__).parents[3]


def document_of(proof: Proof, url: str, again: Sequence[str]) -> dict[str, Any]:
    """Return the proof as plain values. `url` has no properties of the connection; `again`: the command's words."""
    return {
        "format": FORMAT,
        "state": proof.state,
        "made_at": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
        "began_at": f"{proof.began:%Y-%m-%d %H:%M:%S} UTC",
        "source": {"database": proof.database, "url": url},
        "position": {
            "kind": proof.requests.kind,
            "value": proof.requests.cut.position,
            **proof.requests.cut.properties,
        },
        "models": [_model(proof, result) for result in proof.results],
        "not_compared": [{"name": name, "reason": why} for name, why in proof.not_compared.items()],
        "tools": _tools(),
        "again": f"spark-submit {shlex.join(again)}",
    }


def _model(proof: Proof, result: Proven) -> dict[str, Any]:
    plan, said = result.plan, result.sides
    source, model = result.sums
    found = result.found
    return {
        "name": plan.name,
        "unique_id": plan.id,
        "relation": plan.model["relation"],
        "table": result.compared_to,
        "state": result.state,
        "reasons": list(result.reasons),
        "rows": {"source": source.rows, "model": model.rows},
        "buckets": found.buckets if found else 0,
        "differing_buckets": found.differing if found else 0,
        "rows_read": found.read if found else 0,
        "counts": result.totals(),
        "differences": [vars(difference) for difference in result.differences],
        "key": list(plan.model["key"]),
        "columns": [
            {"name": ours.name, "type": ours.source_type, "source_type": theirs.source_type, "kind": ours.whole_kind}
            for theirs, ours in plan.pairs
        ],
        "tolerances": plan.tolerances,
        "unprovable": dict(plan.unprovable),
        "left_out": list(plan.model.get("left_out", ())),
        "only_in_source": list(plan.only_in_source),
        "quarantined": said.get("quarantined"),
        "pending": said.get("pending"),
        "gaps": said.get("gaps", []),
        "batches": said.get("batches", [None, None]),
        "delivered": said.get("delivered"),
        "versions": said.get("versions"),
        "staged": said.get("staged"),
        "form_columns": said.get("form_columns"),
        "allowance": proof.requests.allowance(result),
        "uncertainty": plan.model["uncertainty"],
        "digests": {"source": _sums(source), "model": _sums(model)},
        "sql": {"source": result.sql[0], "model": result.sql[1]},
        "seconds": round(result.seconds, 1),
        "bytes": result.bytes,
    }


def _sums(bucket: Bucket) -> dict[str, Any]:
    # As texts: JSON's numbers lose digits in many programs.
    return {"rows": bucket.rows, "first": str(bucket.first), "second": str(bucket.second)}


def _tools() -> dict[str, str]:
    tools = {"Python": platform.python_version()}
    project = _PACKAGE / "dbt_project.yml"
    text = project.read_text() if project.exists() else ""
    if declared := re.search(r"^version: *['\"]?([^'\"\s]+)", text, re.MULTILINE):
        tools["dbt-reconcile"] = declared[1]
    for package in ("dbt-core", "dbt-spark", "pyspark"):
        try:
            tools[package] = version(package)
        except PackageNotFoundError:
            continue
    return tools


def _page() -> str:
    # Not by its path: the package may come as a zip file.
    return resources.files(__package__).joinpath("certificate.html.jinja").read_text(encoding="utf-8")


def text_of(document: Mapping[str, Any]) -> str:
    """Return the document as JSON."""
    text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    # A database may have texts with half of a surrogate pair, which no file holds but as this escape.
    return text.encode("utf-8", "backslashreplace").decode()


def html_of(text: str) -> str:
    """Return the page of a document, given as JSON."""
    # Not at the start: `--help`, and executors, need no templates.
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"number": _number, "megabytes": megabytes}
    return environment.from_string(_page()).render(
        proof=_shown(json.loads(text)), digest=hashlib.sha256(text.encode()).hexdigest(), most=_SHOWN, signs=_SIGNS
    )


# No state is told by its colour alone.
_SIGNS = {"equal": "=", "different": "\u2260", "not proven": "?", "in flight": "\u2026"}


def _shown(value: Any) -> Any:
    """Return values whose texts hide nothing: what would turn a line around is written out."""
    if isinstance(value, str):
        return "\n".join(printable(line) for line in value.split("\n"))
    if isinstance(value, list):
        return [_shown(each) for each in value]
    if isinstance(value, dict):
        return {_shown(name): _shown(each) for name, each in value.items()}
    return value


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def written(path: Path, page: str, text: str) -> None:
    """Write page and document, each whole or not at all. Raises UsageError."""
    contents = {path: page, path.with_suffix(".json"): text}
    beside = {file: file.with_name(f".{os.getpid()}.{file.name[-50:]}") for file in contents}
    try:
        for file, content in contents.items():
            beside[file].write_text(content, encoding="utf-8")
        for file in reversed(contents):  # the page last, which has the digest of the document
            beside[file].replace(file)
    except OSError as problem:
        for part in beside.values():
            with suppress(OSError):
                part.unlink()
        raise UsageError(f"--certificate {file} cannot be written: {problem.strerror}.") from None
