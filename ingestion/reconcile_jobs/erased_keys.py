"""Erased keys: a register beside a staging table, by which an append knows the records that it is to drop.

The register, `<staging>__erased`, has keyed digests and no key. A property of the staging table says that there is one,
which fields are the key of each object, and by which secret the digests were made; without this property an append
does nothing for it. Nothing here raises a value of a record, or writes one into a message.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from reconcile_jobs.keyed_records import DATASTREAM, NOTES, NOTES_SOURCE, Key, KeyColumn, KeyedRecords, Left
from reconcile_jobs.plain_forms import plain_object
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.process.secret_files import read_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["KEY_FILE", "VARIABLE", "ErasedKeys", "KeyOf", "Register", "name_of", "property_of", "read_property"]

# Spark hides a property, such as spark.yarn.appMasterEnv.<variable>, only if its name has such a word.
VARIABLE, KEY_FILE = "RECONCILE_ERASURE_SECRET", "--erasure-key-file"


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
class ErasedKeys:
    """The erased keys of a staging table, as digests, and the secret; it does not show the secret where it is printed.

    `of`: the objects that have erased keys.
    """

    secret: bytes = field(repr=False)
    of: tuple[KeyOf, ...] = ()
    digests: frozenset[str] = frozenset()
    records: KeyedRecords = DATASTREAM
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

    def without(self, object_: str, content: bytes) -> Left | None:
        """Return what is left of a record without erased keys; None if it has none. One that cannot be read has none.

        A later erasure may know the table by other columns, so each is asked.
        """
        places: set[int] = set()
        for of in self._known.get(object_, []):
            places.update(self.records.reading(content, of.columns).places(partial(self._has, of)))
        return self.records.without(content, places, object_, None) if places else None

    def _has(self, of: KeyOf, key: Key) -> bool:
        return self.digest(of, key) in self.digests


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

    def __init__(self, key_file: str | None = None, records: KeyedRecords = DATASTREAM) -> None:
        """Take where the secret is, which is read only if there is a register, and what the job appends."""
        self.records = records
        self._key_file, self._known, self._keys = key_file, "", ErasedKeys(b"")

    def keys(self, staging: str, text: str, digests: Callable[[], Iterable[str]]) -> ErasedKeys:
        """Return the erased keys. `text`: the property; `digests`: reads the register. Raises UsageError."""
        if text != self._known:
            of, secret = self.refuse_other_secret(staging, text)
            self._keys = ErasedKeys(secret, of, frozenset(digests()), self.records)
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

    def left_out(
        self, spark: SparkSession, staging: str, register: str, text: str, rows: DataFrame, object_: str, row: str
    ) -> tuple[DataFrame, int]:
        """Return the rows of a table without those of erased keys of an object, and how many these are.

        `row`: SQL for the JSON of a row.
        """
        from pyspark.sql import functions as f

        keys = self._read(spark, staging, register, text)
        if not any(object_ in of.objects for of in keys.of):
            return rows, 0
        is_erased = f.udf(
            lambda row: keys.without(object_, b'{"row":%b}' % bytes(row)) is not None, "boolean", useArrow=False
        )(f.expr(f"cast({row} as binary)"))
        return rows.where(~is_erased), rows.where(is_erased).count()

    def marked(self, spark: SparkSession, staging: str, register: str, text: str, rows: DataFrame) -> DataFrame:
        """Return the rows of an append without what has erased keys.

        `register`: the register's name as SQL.
        """
        from pyspark.sql import functions as f

        keys = self._read(spark, staging, register, text)
        names = sorted({name for one in keys.of for name in one.objects})

        def left(object_: str | None, record: Any) -> tuple[str, bool] | None:
            found = keys.without(object_, bytes(record)) if object_ is not None and record is not None else None
            return (found.record, found.is_note) if found else None

        # Not through Arrow, which hands over one row at a time in a job: see the settings of Datastream's. As bytes,
        # since a record may be no UTF-8.
        without = f.udf(left, "record string, is_note boolean", useArrow=False)
        content = f.when(f.col("object").isin(names), f.expr("cast(record as binary)"))
        return rows.withColumn("rest", without("object", content)).selectExpr(
            "coalesce(rest.record, record) as record",
            f"if(rest.is_note, '{NOTES_SOURCE}', source) as source",
            f"if(rest.is_note, '{NOTES}', object) as object",
            *(name for name in rows.columns if name not in ("record", "source", "object")),
        )

    def _read(self, spark: SparkSession, staging: str, register: str, text: str) -> ErasedKeys:
        return self.keys(staging, text, lambda: (row.digest for row in spark.table(register).collect()))
