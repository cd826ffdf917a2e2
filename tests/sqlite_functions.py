"""Functions of Spark that SQLite lacks, for tests that let SQLite run the project's SQL."""

from __future__ import annotations

import json
import sqlite3
from typing import Any


class _CountIf:
    """How many rows satisfy a condition."""

    def __init__(self) -> None:
        self._count = 0

    def step(self, condition: Any) -> None:
        self._count += bool(condition)

    def finalize(self) -> int:
        return self._count


def _get_json_object(text: str, path: str) -> Any:
    found = json.loads(text)
    for name in path.removeprefix("$.").split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def teach(database: sqlite3.Connection) -> None:
    """Let a database have count_if and get_json_object."""
    database.create_aggregate("count_if", 1, _CountIf)  # type: ignore[arg-type]
    database.create_function("get_json_object", 2, _get_json_object)
