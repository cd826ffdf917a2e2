"""The names of models: safe in files, in a metastore and in dbt, and no two alike on a disk that ignores case."""

from __future__ import annotations

import hashlib
import re
import string
import unicodedata
from collections.abc import Mapping
from pathlib import PurePosixPath

from reconcile_jobs.generation.tables import Table
from reconcile_jobs.process.errors import UsageError

__all__ = ["Pattern", "SnapshotPattern", "colliding", "is_reserved", "safe_name"]

_FIELDS = ("table", "schema", "database", "source")
_LONGEST = 90  # the package's own tables have up to 15 characters more, a metastore takes 128
# What Windows takes for a device, in any folder and with any ending.
_DEVICES = {"con", "prn", "aux", "nul", *(f"{name}{digit}" for name in ("com", "lpt") for digit in range(10))}
# What the package appends to a model's name.
_OF_THE_PACKAGE = ("__base", "__changes", "__quarantine", "__row_deletes", "__range_deletes")


class Pattern:
    """How models are called: '{schema}_{table}'; before a slash stands a folder below --into: '{schema}/{table}'.

    `suffix`: what each name ends in.
    """

    def __init__(self, text: str, suffix: str = "") -> None:
        if not _names_a_table(text):
            raise UsageError(
                f"--name {text} is no pattern of names: write {{table}} and what else the name has, as "
                "'{schema}_{table}', of {table}, {schema}, {database} and {source}."
            )
        self._text, self._suffix = text, suffix

    def ending_in(self, suffix: str) -> Pattern:
        """Return a pattern of names that end in something more."""
        return Pattern(self._text, suffix)

    def path_of(self, table: Table) -> PurePosixPath:
        """Return the folder below --into and the name of a table's model."""
        # A slash of the pattern is a folder, a slash of a name is not.
        *folders, name = (safe_name(part) for part in _parts(self._text, "/", table) if part)
        return PurePosixPath(*folders, f"{name}{self._suffix}")


class SnapshotPattern:
    """How the tables of snapshots are called, as 'lake.{table}_source': schema and table."""

    def __init__(self, text: str) -> None:
        if text.count(".") != 1 or not all(text.split(".")) or not _names_a_table(text):
            raise UsageError(
                f"--snapshot {text} is no pattern of tables: write schema and table, as 'lake.{{table}}_source', of "
                "{table}, {schema}, {database} and {source}."
            )
        self._text = text

    def relation_of(self, table: Table) -> tuple[str, str]:
        """Return schema and table of a table's snapshot, of the letters that names of models have."""
        schema, name = (safe_name(part) if part else "" for part in _parts(self._text, ".", table))
        return schema, name


def _names_a_table(text: str) -> bool:
    try:
        parts = [part[1:] for part in string.Formatter().parse(text) if part[1] is not None]
    except ValueError:
        return False
    fields = [name if not spec and not conversion else None for name, spec, conversion in parts]
    return "table" in fields and all(name in _FIELDS for name in fields)


def _parts(text: str, mark: str, table: Table) -> list[str]:
    """Return what becomes of a pattern's parts between marks; a mark within a name is none."""
    fields = {"table": table.name, "schema": table.schema, "database": table.database or "", "source": table.source}
    # Without a schema, as in Spanner, `{schema}_` is nothing, and neither is a folder that is called after it.
    text = text if table.schema else re.sub(r"\{schema\}[_-]?", "", text)
    return [part.format(**fields) for part in text.split(mark)]


def safe_name(text: str) -> str:
    """Return a name of lower-case letters a to z, digits and _, which a metastore, a file and dbt take.

    What stands for letters without an equal ends in a part of a hash: 李雷 and 顧客 are two names.
    """
    folded = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(character for character in folded if not unicodedata.combining(character))
    name = re.sub(r"[^a-z0-9_]", "_", plain)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    if not re.search(r"[a-z0-9]", name) or re.search(r"[^\x00-\x7f]", plain):
        name = f"{name.strip('_')}_{digest}".lstrip("_")
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}_{digest}"
    if name[0].isdigit() or not re.search(r"[a-z]", name):
        name = f"t_{name.lstrip('_')}"
    return f"{name}_" if name in _DEVICES or name.endswith(_OF_THE_PACKAGE) else name


def is_reserved(name: str) -> bool:
    """Whether the package has a table or view of such a name itself."""
    return name.lower().startswith("reconcile_")


def colliding(names: Mapping[str, str]) -> set[str]:
    """Return the keys whose names are not theirs alone; case does not distinguish names."""
    owners: dict[str, list[str]] = {}
    for key, name in names.items():
        owners.setdefault(name.lower(), []).append(key)
    return {key for keys in owners.values() if len(keys) > 1 for key in keys}
