"""The models that have to lose a key: those that are registered with one staging table and read the same objects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconcile_jobs.keyed_records import KeyColumn
from reconcile_jobs.plain_forms import spellings
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.retention.plan import Reader

__all__ = ["Base", "NotReached", "digest_of_key", "has_key", "key_columns", "models_of", "readers_called"]

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal")


@dataclass(frozen=True)
class Base:
    """What a base table says: its columns with their types as Spark names them, and its properties."""

    types: Mapping[str, str]
    declaration: str | None = None
    columns: str | None = None

    def may_be_of(self, staging: Base) -> bool:
        """Return whether this table may be built from the staging table of another one, as far as both say it."""
        own, other = (json.loads(base.declaration or "{}").get("staging") for base in (self, staging))
        return own is None or other is None or own == other


@dataclass(frozen=True)
class NotReached:
    """What may still hold a key, and why."""

    what: str
    why: str


def readers_called(model: str, readers: Iterable[Reader]) -> list[Reader]:
    """Return the readers of this name, which may have its schema or not; each relation once for each ledger."""
    name = model.lower()
    return [
        reader for reader in readers
        if reader.relation.lower() == name or reader.relation.lower().rpartition(".")[2] == name
    ]  # fmt: skip


def models_of(chosen: Reader, readers: Iterable[Reader]) -> tuple[list[Reader], list[NotReached]]:
    """Return the readers of the objects of one of them, this one first, and those of which nothing can be known.

    Raises UsageError for a model of which no object is known, and where another model reads further objects.
    """
    if not chosen.objects:
        raise UsageError(
            f"{chosen.relation} has no source macro, so nobody knows which records are of it: name a model with a "
            "source macro with --model."
        )
    found, not_reached = [chosen], []
    for reader in readers:
        if reader == chosen:
            continue
        if not reader.objects:
            not_reached.append(
                NotReached(reader.relation, "has no source macro, so it may hold these rows: delete them there by hand")
            )
        elif set(reader.objects) & set(chosen.objects):
            if further := sorted(set(reader.objects) - set(chosen.objects)):
                raise UsageError(
                    f"{reader.relation} reads the records of {chosen.relation}, and those of {', '.join(further)} too: "
                    f"give --model {reader.relation}, which erases the keys in all of them."
                )
            found.append(reader)
    return found, not_reached


def digest_of_key(columns: Iterable[str]) -> str:
    """Return the digest of a unique_key that a declaration has: macros/model/model_settings.sql."""
    # As Jinja sorts: upper and lower case are the same.
    text = json.dumps(sorted(columns, key=str.lower))
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def has_key(base: Base, columns: Sequence[str]) -> bool:
    """Return whether these columns are the unique_key with which a base table was built."""
    try:
        digest = json.loads(base.declaration or "{}").get("unique_key")
    except ValueError:
        digest = None
    return set(columns) <= set(base.types) and digest in (None, digest_of_key(columns))


def key_columns(relation: str, base: Base, columns: Sequence[str], file: str) -> tuple[KeyColumn, ...]:
    """Return the columns of a key as the base table of a model has them. Raises UsageError."""
    if not has_key(base, columns):
        raise UsageError(
            f"The columns of {file} ({', '.join(columns)}) are not the unique_key of {relation}: write the names of "
            "exactly these columns into its first line, as the model's config has them."
        )
    former = _former_names(base)
    found = []
    for name in columns:
        kind = base.types[name].lower()
        is_number = kind.split("(")[0] in _NUMBERS
        if not is_number and not kind.startswith(("string", "varchar")):
            raise UsageError(
                f"The key column {name} of {relation} is a {kind}, and so far only keys of whole numbers, decimals and "
                "texts can be erased: nothing was erased."
            )
        fields = dict.fromkeys(spelling for of in [name, *former.get(name, [])] for spelling in spellings(of))
        found.append(KeyColumn(name, tuple(fields), is_number))
    return tuple(found)


def _former_names(base: Base) -> dict[str, list[str]]:
    """Return the former names of each column that was renamed at the source: meta `was`."""
    try:
        said = json.loads(bytes.fromhex(base.columns or "5b5d"))
        return {str(column["name"]): list(map(str, column["was"])) for column in said if column.get("was")}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
