"""The erasure of keys from a staging table and from all that its models keep, in an order in which nothing comes back.

First the register, so that later records are dropped; then staging, from which a rebuild reads; then the ledgers, which
say what is gone; then the quarantines, base tables, copies and results. A property of the staging table,
`reconcile.erasure`, says what has begun. So the same command ends what a killed one has begun, and when all is done it
finds nothing.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from reconcile_jobs.erased_keys import (
    KEY_FILE,
    VARIABLE,
    ErasedKeys,
    KeyOf,
    Register,
    name_of,
    property_of,
    read_property,
)
from reconcile_jobs.erasure.keys_file import KeysFile, keys_of_file
from reconcile_jobs.erasure.models import Base, NotReached, has_key, key_columns, models_of
from reconcile_jobs.erasure.tables import Account, ErasureTables, Staged, refuse_several_tables
from reconcile_jobs.erasure.versions import delete_versions
from reconcile_jobs.keyed_records import RECORDS, SNAPSHOT, Key, KeyColumn, KeyedRecords, key_of_values
from reconcile_jobs.process.errors import Fault, UsageError, explained
from reconcile_jobs.process.secret_files import read_key
from reconcile_jobs.retention.files import TableFiles
from reconcile_jobs.retention.plan import Reader
from reconcile_jobs.retention.tables import ROWS_OF_SNAPSHOT, beside, named
from reconcile_jobs.staging import TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Erasure", "Result"]

# Properties of the staging table, without their common beginning: the erasure that has begun, and the register.
_BEGUN, _ERASED = "erasure", "erased"


@dataclass
class Result:
    """What an erasure came to.

    `source`: that of the records. `records`: change records of staging and rows of snapshots beside them, erased by
    this command or by the one that it ends. `rows`: of each other table. `ledgers`: of how many rows of each the
    examples were erased. `unreadable`: records that stay, since nobody can read their keys. `source_tables`: the append
    tables and snapshot tables from which records came.
    """

    keys: int
    objects: tuple[str, ...]
    records: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0
    without_object: int = 0
    landing_files: list[str] = field(default_factory=list)
    not_reached: list[NotReached] = field(default_factory=list)
    tables: list[TableName] = field(default_factory=list)
    versions_deleted: list[TableName] = field(default_factory=list)
    ledgers: dict[str, int] = field(default_factory=dict)
    source: str = "datastream"
    source_tables: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Model:
    """A model whose base table has the key, and its tables that are there."""

    reader: Reader
    base: TableName
    of_base: Base
    quarantine: TableName | None
    copies: tuple[tuple[TableName, Base], ...]  # base tables that hold the same rows: copies, earlier moments
    quarantines: tuple[TableName, ...]  # those of earlier moments


@dataclass(frozen=True)
class _Begun:
    """An erasure that has begun: its id, a keyed digest of its keys and objects, and the accounts of that moment."""

    id: str
    of: str
    accounts: tuple[Account, ...]

    def text(self) -> str:
        said = {"id": self.id, "of": self.of, "accounts": [asdict(one) for one in self.accounts]}
        return json.dumps(said).encode().hex()

    @classmethod
    def read(cls, text: str, staging: TableName) -> _Begun:
        """Raises UsageError for a text that this job has not written."""
        try:
            said = json.loads(bytes.fromhex(text))
            return cls(str(said["id"]), str(said["of"]), tuple(Account(**one) for one in said["accounts"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UsageError(
                f"The property reconcile.{_BEGUN} of the staging table {staging} is not as this job has written it: "
                "set it to what it was before somebody changed it."
            ) from None


class Erasure:
    """The erasure of the keys of a file from the objects of one registered model."""

    def __init__(
        self,
        spark: SparkSession,
        staging: TableName,
        chosen: Reader,
        file: KeysFile,
        reason: str,
        say: Callable[[str], None],
        key_file: str | None = None,
        with_unreadable: bool = False,
    ) -> None:
        """Take what is to be erased. `key_file`: the file with the secret of the register."""
        self._spark, self._staging, self._chosen, self._file = spark, staging, chosen, file
        self._reason, self._say, self._key_file, self._with_unreadable = reason, say, key_file, with_unreadable
        self._tables = ErasureTables(spark, staging)

    def run(self, now: bool = False) -> Result:
        """Erase, and with `now` delete the old versions too. Raises JobError."""
        readers, not_reached = models_of(self._chosen, self._tables.tables.readers())
        models, columns = self._models(readers, not_reached)
        keys = keys_of_file(self._file, columns)
        of = self._as_known(KeyOf(tuple(sorted(self._chosen.objects)), columns))
        records = self._records_of(of)
        self._tables.take_records_of(records)
        self._refuse_other_fields(of)
        erased = ErasedKeys(self._secret(), (of,))
        digests = [erased.digest(of, key) for key in keys]
        begun = self._begun(erased, digests)
        id_ = begun.id if begun else str(uuid.uuid4())
        staged, last = self._staged(of, keys, id_), self._tables.last_batch()
        refuse_several_tables(staged.tables)
        result = Result(len(keys), of.objects, source=records.source, not_reached=not_reached)
        self._register(of, erased, digests, id_)
        # What is appended from now on has been compared with the register.
        if self._tables.last_batch() != last:
            staged = self._staged(of, keys, id_)
        result.unreadable, result.without_object = staged.unreadable, self._tables.unread_objects()
        is_new = begun is None and (staged.found or self._has_rows(models, columns, keys))
        # As long as staging has all records, runs in between have counted them.
        if is_new or (begun is not None and not self._tables.notes(of.objects, [id_])):
            accounts = self._tables.accounts([model.reader for model in models])
            begun = _Begun(id_, self._digest(erased, digests), tuple(accounts))
            self._tables.keep({_BEGUN: begun.text()})
        if begun is not None:
            self._erase(begun, of, models, keys, staged, result)
        result.records = sum(int(row.records) for row in self._tables.notes(of.objects, [id_]))
        files, tables = set[str](), set[str]()
        ids = {id_, *(erasure for digest, erasure in self._tables.registered().items() if digest in set(digests))}
        for row in self._tables.notes(of.objects, sorted(ids)):
            of_row = SNAPSHOT if row.object.startswith(ROWS_OF_SNAPSHOT) else records
            if row.origin and of_row.is_of_file:
                files.add(row.origin)
            elif row.origin and of_row.end_of_table:
                tables.add(row.origin.rpartition(of_row.end_of_table)[0])
        result.landing_files, result.source_tables = sorted(files), sorted(tables)
        result.tables = self._all_tables(models)
        if now:
            self._delete_versions(result)
        if begun is not None:
            self._tables.keep({_BEGUN: ""})
            self._refuse_what_came_back(of, models, keys)
        return result

    def _as_known(self, of: KeyOf) -> KeyOf:
        """Return it by the name that the register has of it, unless other tables have the same name there."""
        text = self._tables.tables.properties().get(_ERASED)
        known = read_property(str(self._staging), text)[1] if text else ()
        others = {one.name for one in known if one.objects != of.objects}
        same = (one for one in known if (one.objects, one.columns) == (of.objects, of.columns))
        return next((one for one in same if one.name not in others), of)

    def _staged(self, of: KeyOf, keys: Sequence[Key], id_: str) -> Staged:
        return self._tables.staged(of.objects, of.columns, keys, self._with_unreadable, id_)

    # --- the plan ---

    def _models(
        self, readers: Sequence[Reader], not_reached: list[NotReached]
    ) -> tuple[list[_Model], tuple[KeyColumn, ...]]:
        """Return the models with their tables, and the columns of the key. Raises UsageError."""
        models: list[_Model] = []
        columns: tuple[KeyColumn, ...] | None = None
        names = self._file.columns
        for reader in readers:
            if not reader.has_base:
                continue
            model = named(reader.relation)
            base = beside(model, "base")
            said = self._tables.base(base)
            if said is None:
                if self._is_run(reader):
                    why = f"has a base table {base} that this session does not have: give the job its catalog"
                    not_reached.append(NotReached(reader.relation, why))
                continue
            if columns is None and reader == self._chosen:
                columns = key_columns(reader.relation, said, names, self._file.path)
            if not has_key(said, names):
                why = (
                    "has another key: rebuild it with --full-refresh, which reads staging without these records; "
                    "delete its copies and its rows in quarantine by hand"
                )
                not_reached.append(NotReached(reader.relation, why))
                continue
            models.append(self._model(reader, model, base, said))
        if columns is None:
            for model_ in models:
                return models, key_columns(model_.reader.relation, model_.of_base, names, self._file.path)
            raise UsageError(
                f"Neither {self._chosen.relation} nor another model of its records has a base table in this session, "
                "so nothing says what its key is: run the model, or name another one with --model."
            )
        return models, columns

    def _model(self, reader: Reader, model: TableName, base: TableName, said: Base) -> _Model:
        copies = []
        copy = beside(model, "snapshot")
        if (of_copy := self._tables.base(copy)) is not None and set(self._file.columns) <= set(of_copy.types):
            copies.append((copy, of_copy))
        quarantines = []
        for earlier in self._tables.earlier_moments(model):
            of_earlier = self._tables.base(earlier)
            if of_earlier is not None:
                if not of_earlier.may_be_of(said):  # another project may have a model of this name
                    continue
                copies.append((earlier, of_earlier))
            of_moment = beside(TableName((*earlier.parts[:-1], model.parts[-1])), "quarantine")
            if self._tables.has(of_moment):
                quarantines.append(of_moment)
        quarantine = beside(model, "quarantine")
        return _Model(
            reader, base, said, quarantine if self._tables.has(quarantine) else None, tuple(copies), tuple(quarantines)
        )

    def _is_run(self, reader: Reader) -> bool:
        return bool(self._tables.accounts([reader]))

    def _records_of(self, of: KeyOf) -> KeyedRecords:
        """Return of which source the records are. Raises UsageError for one whose records cannot be erased."""
        # Where staging has no record any more, a quarantine may.
        job = self._tables.tables.properties().get("job", "")
        of_job = next((source for source in RECORDS if f"{job} ".startswith(f"{source} ")), "datastream")
        sources = self._tables.sources(of.objects) or {of_job}
        if others := sorted(sources - RECORDS.keys()):
            raise UsageError(
                f"{self._staging} has records of {', '.join(of.objects)} from the source {', '.join(others)}, which "
                "erase.py cannot erase so far: nothing was erased."
            )
        if len(sources) > 1:
            raise UsageError(
                f"{self._staging} has records of {', '.join(of.objects)} from several sources "
                f"({', '.join(sorted(sources))}), and so far all of them have to be of one: nothing was erased."
            )
        return RECORDS[sources.pop()]

    def _refuse_other_fields(self, of: KeyOf) -> None:
        readable, records = self._tables.readable(of.objects, of.columns)
        if records and not readable:
            names = ", ".join(column.name for column in of.columns)
            raise UsageError(
                f"None of {records:,} records of {', '.join(of.objects)} in {self._staging} has the field {names} in "
                "its payload, in its row or in the keys of its mods, so nobody can tell which are of these keys, and "
                "nothing was erased. Columns that are filled from the metadata (source_columns) and keys that are "
                "addresses are not supported so far."
            )

    def _secret(self) -> bytes:
        return read_key(self._key_file, KEY_FILE, VARIABLE, "The register of erased keys")

    def _digest(self, erased: ErasedKeys, digests: Sequence[str]) -> str:
        return erased.digest(erased.of[0], tuple(sorted(digests)))

    def _begun(self, erased: ErasedKeys, digests: Sequence[str]) -> _Begun | None:
        """Return the erasure that has begun and not ended. Raises UsageError if it is one of other keys."""
        text = self._tables.tables.properties().get(_BEGUN)
        if not text:
            return None
        begun = _Begun.read(text, self._staging)
        if begun.of != self._digest(erased, digests):
            raise UsageError(
                f"Another erasure of {self._staging} has begun and not ended: first run that command again, with the "
                "same keys."
            )
        self._say(f"An erasure that was begun earlier goes on: {begun.id}.")
        return begun

    def _has_rows(self, models: Sequence[_Model], columns: Sequence[KeyColumn], keys: Sequence[Key]) -> bool:
        """Return whether any table but staging has something of the keys."""
        for model in models:
            for table, base in ((model.base, model.of_base), *model.copies):
                if self._tables.rows_of_keys(table, base, columns, keys):
                    return True
            for quarantine in (model.quarantine, *model.quarantines):
                if quarantine and self._tables.quarantined(quarantine, columns, keys, self._with_unreadable).found:
                    return True
        return bool(self._differences(models, columns, keys))

    # --- the steps ---

    def _register(self, of: KeyOf, erased: ErasedKeys, digests: Sequence[str], id_: str) -> None:
        """Write the keys into the register, and let the staging table say that there is one. Raises UsageError."""
        text = self._tables.tables.properties().get(_ERASED)
        known, _ = Register(self._key_file).refuse_other_secret(str(self._staging), text) if text else ((), b"")
        there = self._tables.registered()
        new = [digest for digest in digests if digest not in there]
        if new:
            self._tables.add_to_register(new, id_, self._reason)
        if new or not text or of not in known:
            all_ = known if of in known else (*known, of)
            self._tables.keep({_ERASED: property_of(name_of(erased.secret), all_, id_)})
        self._say(
            f"{self._staging}: {len(new):,} of {len(digests):,} keys were entered into {self._tables.register}, which "
            "has digests and no keys; append jobs drop later records of them."
        )

    def _erase(
        self,
        begun: _Begun,
        of: KeyOf,
        models: Sequence[_Model],
        keys: Sequence[Key],
        staged: Staged,
        result: Result,
    ) -> None:
        # Before staging has changed: a rebuild between two attempts may leave fewer records in the quarantine.
        for model in models:
            if model.quarantine is not None:
                gone = self._tables.quarantined(model.quarantine, of.columns, keys, self._with_unreadable).rows
                copy = beside(named(model.reader.relation), "snapshot")
                self._tables.tables.note_erased(copy, model.quarantine, [one.batch for one in gone])
        if staged.found:
            self._tables.erase_staged(staged.found)
        for model in models:
            self._mark(begun, of, model, keys)
        for model in models:
            account = _account(begun, model.reader)
            for quarantine in (model.quarantine, *model.quarantines):
                if quarantine is None:
                    continue
                found = self._tables.quarantined(quarantine, of.columns, keys, self._with_unreadable, with_left=True)
                result.unreadable += found.unreadable
                if found.found:
                    self._tables.erase_quarantined(quarantine, found.found)
                    result.rows[str(quarantine)] = len(found.found)
            if account is not None and model.quarantine is not None:
                number = self._tables.correct_reasons(account, model.quarantine, self._matches(of.columns, keys))
                result.ledgers |= {account.ledger: result.ledgers.get(account.ledger, 0) + number} if number else {}
            for table, base in ((model.base, model.of_base), *model.copies):
                if number := self._tables.rows_of_keys(table, base, of.columns, keys):
                    self._tables.erase_rows(table, base, of.columns, keys)
                    result.rows[str(table)] = number
        relations = [model.reader.relation for model in models]
        for table, texts in self._differences(models, of.columns, keys).items():
            self._tables.erase_differences(table, relations, texts)
            result.rows[str(table)] = len(texts)

    def _mark(self, begun: _Begun, of: KeyOf, model: _Model, keys: Sequence[Key]) -> None:
        """Write into the ledger of a model what is erased of it, once."""
        account = _account(begun, model.reader)
        if account is None or self._tables.has_marks(account, begun.id):
            return
        records: Counter[int] = Counter()
        micros: dict[int, int] = {}
        for row in self._tables.notes(of.objects, [begun.id]):
            if row.object in model.reader.objects and row.batch is not None and row.batch <= account.batch:
                records[row.batch] += row.records
                micros[row.batch] = max(row.micros, micros.get(row.batch, 0))
        quarantined: Counter[int] = Counter()
        if model.quarantine is not None:
            found = self._tables.quarantined(model.quarantine, of.columns, keys, self._with_unreadable)
            quarantined = Counter(one.batch for one in found.rows if one.batch is not None)
        base_batch = self._tables.largest_other_batch(model.base, model.of_base, of.columns, keys)
        batches = sorted({*records, *quarantined}) or [account.batch]
        marks = [(batch, records[batch], quarantined[batch], micros.get(batch), base_batch) for batch in batches]
        self._tables.write_marks(account, begun.id, marks)

    def _differences(
        self, models: Sequence[_Model], columns: Sequence[KeyColumn], keys: Sequence[Key]
    ) -> dict[TableName, list[str]]:
        """Return the tables of parity's differences that name one of the keys, with the texts of these keys."""
        relations = [model.reader.relation for model in models]
        found = {}
        for table in self._tables_of_ledgers(models, "reconcile_parity_differences"):
            if texts := self._tables.differences(table, relations, self._matches(columns, keys)):
                found[table] = texts
        return found

    def _tables_of_ledgers(self, models: Sequence[_Model], *names: str) -> list[TableName]:
        ledgers = dict.fromkeys(named(model.reader.ledger) for model in models)
        found = [TableName((*ledger.parts[:-1], name)) for ledger in ledgers for name in names]
        return [table for table in found if self._tables.has(table)]

    def _matches(self, columns: Sequence[KeyColumn], keys: Sequence[Key]) -> Callable[[str], bool]:
        """Return whether the JSON of a key, as parity and ledgers have it, is one of the keys."""
        wanted = set(keys)

        def matches(text: str) -> bool:
            try:
                said = json.loads(text, parse_int=str, parse_float=str)
            except (ValueError, RecursionError):
                return False
            return isinstance(said, dict) and not wanted.isdisjoint(key_of_values(said.items(), columns) or ())

        return matches

    def _all_tables(self, models: Sequence[_Model]) -> list[TableName]:
        found = [self._staging, self._tables.register]
        for model in models:
            found.append(model.base)
            found += [model.quarantine] if model.quarantine else []
            found += [table for table, _ in model.copies]
            found += model.quarantines
        names = ("reconcile_ledger", "reconcile_parity_differences", "reconcile_columns_seen")
        return list(dict.fromkeys([*found, *self._tables_of_ledgers(models, *names)]))

    def _delete_versions(self, result: Result) -> None:
        files = TableFiles(self._spark, self._tables.tables)
        for table in result.tables:
            if table == self._staging and (why := files.needed_versions(table, is_staging=True)):
                result.not_reached.append(NotReached(str(table), f"keeps its old versions, since {why}"))
                continue
            try:
                delete_versions(self._spark, table)
                result.versions_deleted.append(table)
            except Exception as problem:
                result.not_reached.append(NotReached(str(table), f"keeps its old versions: {explained(problem)}"))

    def _refuse_what_came_back(self, of: KeyOf, models: Sequence[_Model], keys: Sequence[Key]) -> None:
        """Raise Fault if another process has written records or rows of the keys meanwhile."""
        if self._tables.staged(of.objects, of.columns, keys, False).found or self._has_rows(models, of.columns, keys):
            raise Fault(
                "An append or a run of dbt that had begun before this command has written rows of these keys while it "
                "ran: when all of them have ended, run the same command again, which erases these too."
            )


def _account(begun: _Begun, reader: Reader) -> Account | None:
    return next((one for one in begun.accounts if (one.ledger, one.relation) == (reader.ledger, reader.relation)), None)
