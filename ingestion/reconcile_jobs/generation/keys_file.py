"""The file of --keys: what a person says of tables whose records do not name their key, or how bytes are encoded."""

from __future__ import annotations

import re
from typing import Any

from reconcile_jobs.generation.tables import Answer
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.process.yaml_files import read_yaml
from reconcile_jobs.staging import quoted

__all__ = ["read_keys"]

_FORM = "write `shop.orders: [id]`, or `shop.orders: {key: [id], encodings: {photo: base64}}`"


def read_keys(file: str | None) -> dict[str, Answer]:
    """Return what the file says of each table, by the table's label. Raises UsageError."""
    if file is None:
        return {}
    read = read_yaml(file, "--keys")
    if not isinstance(read, dict):
        raise UsageError(f"--keys {file} is no list of tables: {_FORM}.")
    return {_label(name): _answer(file, name, said) for name, said in read.items()}


def _label(name: Any) -> str:
    """Return a name with backticks only where they are needed."""
    parts = re.findall(r"`(?:[^`]|``)+`|[^`.]+", str(name))
    plain = [part[1:-1].replace("``", "`") if part[0] == "`" else part for part in parts]
    return ".".join(part if re.fullmatch(r"[^`.\s]+", part) else quoted(part) for part in plain)


def _answer(file: str, name: Any, said: Any) -> Answer:
    key, encodings = (said.get("key", []), said.get("encodings", {})) if isinstance(said, dict) else (said, {})
    key = [key] if isinstance(key, str) else key
    is_right = isinstance(key, list) and all(isinstance(column, str) for column in key) and isinstance(encodings, dict)
    is_right = is_right and not (isinstance(said, dict) and {*said} - {"key", "encodings"})
    if not is_right or not (key or encodings):
        raise UsageError(f"--keys {file}: what stands at {name} is neither a key nor encodings: {_FORM}.")
    if wrong := [text for text in encodings.values() if text not in ("hex", "base64")]:
        raise UsageError(f"--keys {file}: {name} has the encoding {wrong[0]}; the encodings are hex and base64.")
    return Answer(tuple(key), {str(column): text for column, text in encodings.items()})
