"""Erased keys: a register beside a staging table, by which an append knows the records that it is to drop.

The register, `<staging>__erased`, has keyed digests and no key. A property of the staging table says that there is one,
which fields are the key of each object, and by which secret the digests were made; without this property an append
does nothing for it. Nothing here raises a value of a record, or writes one into a message.
"""

from __future__ import annotations

import hmac
import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reconcile_jobs.plain_forms import plain_number, plain_object, spellings
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.process.secret_files import read_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "KEY_FILE",
    "NOTES",
    "NOTES_SOURCE",
    "UNREADABLE",
    "VARIABLE",
    "ErasedKeys",
    "Key",
    "KeyColumn",
    "KeyOf",
    "Reading",
    "Register",
    "key_of_values",
    "name_of",
    "note",
    "property_of",
    "read_property",
    "reading",
]

# Spark hides a property, such as spark.yarn.appMasterEnv.<variable>, only if its name has such a word.
VARIABLE, KEY_FILE = "RECONCILE_ERASURE_SECRET", "--erasure-key-file"

# The object and the source of what stands in staging for an erased record. No model reads them.
NOTES, NOTES_SOURCE = "#erased", "erasure"

# The values of a key, as texts in one form: see `KeyColumn.text`.
Key = tuple[str, ...]


@dataclass(frozen=True)
class KeyColumn:
    """A column of a key: its name in the models, the field's names in records, and whether values are numbers."""

    name: str
    fields: tuple[str, ...]
    is_number: bool

    def text(self, value: Any) -> str | None:
        """Return the one text of a value, as a record or a file of keys has it; None of what cannot be a key."""
        if isinstance(value, bool):
            return None if self.is_number else str(value).lower()
        if not isinstance(value, str):
            return None
        return plain_number(value.strip()) if self.is_number else str(value)


@dataclass(frozen=True)
class KeyOf:
    """Which columns are the key of some objects, which are all of one table, perhaps under several names.

    `name`: what digests are made of beside the key; of itself, the names of the objects.
    """

    objects: tuple[str, ...]
    columns: tuple[KeyColumn, ...]
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", json.dumps(sorted(self.objects)))


@dataclass(frozen=True)
class Reading:
    """What one record says: the keys that it has, none if they cannot be read, and the name of its table."""

    keys: frozenset[Key] | None
    table: str | None = None

    @property
    def is_of_no_row(self) -> bool:
        """Whether the record can be read and has no values at all, as a delete by an address has none."""
        return self.keys is not None and not self.keys


class _Number(str):
    """The text of a number, as a record has it."""


def _pairs(pairs: list[tuple[str, Any]]) -> _Object:
    return _Object(pairs)


class _Object(list[tuple[str, Any]]):
    """The members of an object. A name may stand there twice."""


UNREADABLE = Reading(None)


def reading(content: bytes, columns: Sequence[KeyColumn]) -> Reading:
    """Return the keys in the payload of a record of Datastream, one for each value that a name has there."""
    try:
        record = json.loads(
            content.decode(), parse_float=_Number, parse_int=_Number, parse_constant=_Number, object_pairs_hook=_pairs
        )
    except (ValueError, RecursionError):
        return UNREADABLE
    if not isinstance(record, _Object):
        return UNREADABLE
    table = next((_table(value) for name, value in record if name == "source_metadata"), None)
    payloads = [value for name, value in record if name == "payload"]
    if not payloads:
        return Reading(None, table)
    if all(payload is None for payload in payloads):
        return Reading(frozenset(), table)
    keys: set[Key] = set()
    for payload in payloads:
        found = key_of_values(payload, columns) if isinstance(payload, _Object) else None
        if found is None:
            return Reading(None, table)
        keys |= found
    return Reading(frozenset(keys), table)


def key_of_values(members: Iterable[tuple[str, Any]], columns: Sequence[KeyColumn]) -> set[Key] | None:
    """Return the keys that these names and values hold; None where a column of the key has no value."""
    of_column: list[list[str]] = [[] for _ in columns]
    for name, value in members:
        for place, column in enumerate(columns):
            if any(spelling in column.fields for spelling in spellings(name)):
                text = column.text(value)
                if text is not None:
                    of_column[place].append(text)
    return set(itertools.product(*of_column)) if all(of_column) else None


def _table(metadata: Any) -> str | None:
    """Return the table that a record names, "" if it names none; None of what are no metadata."""
    if not isinstance(metadata, _Object):
        return None
    said = dict(metadata)
    return ".".join(json.dumps(said[name]) for name in ("database", "schema", "table") if said.get(name) is not None)


def note(object_: str, erasure: str) -> str:
    """Return SQL for what stands in staging for an erased record. `object_`, `erasure`: SQL."""
    return (
        f"to_json(named_struct('erased_record', named_struct('object', {object_}, 'erasure', {erasure})), "
        "map('ignoreNullFields', 'true'))"
    )


@dataclass(frozen=True)
class ErasedKeys:
    """The erased keys of a staging table, as digests, and the secret; it does not show the secret where it is printed.

    `of`: the objects that have erased keys.
    """

    secret: bytes = field(repr=False)
    of: tuple[KeyOf, ...] = ()
    digests: frozenset[str] = frozenset()
    # By object, what may have its keys: a later erasure may know the table by more names.
    _known: dict[str, list[KeyOf]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for object_ in {object_ for of in self.of for object_ in of.objects}:
            names, more = set[str](), {object_}
            while more - names:
                names |= more
                more = {name for of in self.of if names & {*of.objects} for name in of.objects}
            self._known[object_] = [of for of in self.of if names & {*of.objects}]

    def digest(self, of: KeyOf, key: Key) -> str:
        """Return what the register has of a key: 64 hex digits."""
        return _digest(self.secret, json.dumps([of.name, *key], ensure_ascii=True))

    def has(self, object_: str, content: bytes) -> bool:
        """Return whether a record of Datastream has an erased key. One that cannot be read has none."""
        for of in self._known.get(object_, []):
            keys = reading(content, of.columns).keys or ()
            if any(self.digest(of, key) in self.digests for key in keys):
                return True
        return False


def _digest(secret: bytes, text: str) -> str:
    return hmac.digest(secret, text.encode(), "sha256").hex()


def name_of(secret: bytes) -> str:
    """Return the name of a secret: a short digest of it, which is no secret."""
    return _digest(secret, "\0the name of this key")[:12]


# --- what a staging table says of its register -----------------------------------------------------------------------


def property_of(by: str, of: Iterable[KeyOf], erasure: str) -> str:
    """Return the text of the property, in hex: Spark hides values with words such as password.

    `erasure`: the id of the last one, by which an append that runs notices that the register has changed.
    """
    objects = [
        {
            "objects": list(one.objects), "columns": [[c.name, list(c.fields), c.is_number] for c in one.columns],
            "name": one.name,
        }
        for one in of
    ]  # fmt: skip
    return json.dumps({"by": by, "of": objects, "erasure": erasure}, separators=(",", ":")).encode().hex()


def read_property(staging: str, text: str) -> tuple[str, tuple[KeyOf, ...]]:
    """Return the name of the secret, and the objects with erased keys. Raises UsageError for another text."""
    try:
        said = json.loads(bytes.fromhex(text))
        of = tuple(
            KeyOf(
                tuple(map(str, one["objects"])),
                tuple(KeyColumn(str(n), tuple(map(str, fields)), bool(number)) for n, fields, number in one["columns"]),
                # Before there was a name, tables of names that differ in case shared their digests.
                str(one.get("name") or ",".join(sorted({plain_object(str(of)) for of in one["objects"]}))),
            )
            for one in said["of"]
        )
        return str(said["by"]), of
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError(
            f"The property reconcile.erased of the staging table {staging} is not as a job has written it: set it to "
            "what it was before somebody changed it."
        ) from None


class Register:
    """The register as an append job has it: read when the job begins, and again whenever the property has changed."""

    def __init__(self, key_file: str | None = None) -> None:
        """Take where the secret is. It is read only if there is a register."""
        self._key_file, self._known, self._keys = key_file, "", ErasedKeys(b"")

    def keys(self, staging: str, text: str, digests: Callable[[], Iterable[str]]) -> ErasedKeys:
        """Return the erased keys. `text`: the property; `digests`: reads the register. Raises UsageError."""
        if text != self._known:
            of, secret = self.refuse_other_secret(staging, text)
            self._keys = ErasedKeys(secret, of, frozenset(digests()))
            self._known = text
        return self._keys

    def refuse_other_secret(self, staging: str, text: str) -> tuple[tuple[KeyOf, ...], bytes]:
        """Return the objects with erased keys, and the secret. Raises UsageError if the digests are of another one."""
        by, of = read_property(staging, text)
        secret = read_key(self._key_file, KEY_FILE, VARIABLE, f"The register of erased keys of {staging}")
        if name_of(secret) != by:
            raise UsageError(
                f"The erased keys of {staging} are known by the key {by}, and this run has the key {name_of(secret)}: "
                f"it would find none of them. Give the key of before, in {VARIABLE} or with {KEY_FILE}."
            )
        return of, secret

    def marked(self, spark: SparkSession, staging: str, register: str, text: str, rows: DataFrame) -> DataFrame:
        """Return the rows of an append with a note in place of each record of an erased key.

        `register`: the register's name as SQL.
        """
        from pyspark.sql import functions as f

        keys = self.keys(staging, text, lambda: (row.digest for row in spark.table(register).collect()))
        names = sorted({name for one in keys.of for name in one.objects})

        def has(object_: str | None, record: Any) -> bool:
            return object_ is not None and record is not None and keys.has(object_, bytes(record))

        # Not through Arrow, which hands over one row at a time in a job: see the settings of Datastream's. As bytes,
        # since a record may be no UTF-8.
        is_erased = f.udf(has, "boolean", useArrow=False)
        content = f.when(f.col("object").isin(names), f.expr("cast(record as binary)"))
        marked = rows.withColumn("is_erased", is_erased("object", content))
        return marked.selectExpr(
            f"if(is_erased, {note('object', 'cast(null as string)')}, record) as record",
            f"if(is_erased, '{NOTES_SOURCE}', source) as source",
            f"if(is_erased, '{NOTES}', object) as object",
            *(name for name in rows.columns if name not in ("record", "source", "object")),
        )
