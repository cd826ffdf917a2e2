"""The folders and modules of `reconcile_jobs` import each other in one direction; `process/` is the ground."""

from __future__ import annotations

import ast
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2] / "ingestion" / "reconcile_jobs"


def imports() -> dict[str, set[str]]:
    """Return for each folder, and for each module that stands in none, which others it imports."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in ROOT.rglob("*.py"):
        part = file.relative_to(ROOT).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("reconcile_jobs"):
                names = node.module.split(".")[1:2] or [alias.name for alias in node.names]
                found[part] |= {*names} - {part}
    return found


def test_imports_run_downwards_only():
    order = [*TopologicalSorter(imports()).static_order()]  # raises CycleError, which names a circle
    known = {"process", "append_run", "spanner", "bigtable", "snapshots", "generation", "proofs"}
    assert known <= {*order}, "this looks at nothing"
    assert imports()["process"] == set(), "process/ serves all others, and needs none"
    of_entries = {"snapshots", "generation", "proofs"}
    # A proof reads the rows that differ as a snapshot reads them all.
    others = {part: found - ({"snapshots"} if part == "proofs" else set()) for part, found in imports().items()}
    assert not [part for part, found in others.items() if found & of_entries], "these are for the entries"
    assert "snapshots" not in imports()["generation"], "models are written without reading rows of the source"
