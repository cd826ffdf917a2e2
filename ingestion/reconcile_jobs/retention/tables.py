"""What a purge asks of a staging table, its readers, their ledgers and base tables, and what it writes there."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reconcile_jobs.process.errors import Fault, UsageError, causes
from reconcile_jobs.retention.plan import NOT_ENDED, Account, Reader, StagedObject
from reconcile_jobs.staging import TableName, keep_all, kept, literal, property_pairs, quoted
from reconcile_jobs.table_formats import format_of, properties_of_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "DECLARED_IN",
    "HORIZON",
    "ROWS_OF_SNAPSHOT",
    "Tables",
    "accounts_sql",
    "beside",
    "create_table",
    "is_conflict",
    "named",
    "objects_sql",
    "of_objects",
    "patiently",
]

# A property of the copy of a base table: the batch up to which everything had been applied to it; empty until the copy
# is finished. macros/materializations/purged_staging.sql reads it.
_BASE_SNAPSHOT = "reconcile.base_snapshot"
# The same: the batch up to which the table of deletes without a key had them then.
_DELETES_BATCH = "reconcile.deletes_batch"
_COPIED_FROM = "reconcile.copied_from"
# The same, `<batch> <records>`: how many records the quarantine of the model had up to the last purged batch.
_QUARANTINED = "reconcile.quarantined"

# A property of a base table and of its copy: the declarations with which the rows were made, as digests.
_DECLARATION = "reconcile.declaration"
# Of a base table: with which columns it was built, see macros/model/columns_as_built.sql.
_COLUMNS = "reconcile.columns"
# Of a base table and of its copy: see macros/materializations/retry_of_quarantine.sql (`_begun_retry`).
_RETRIED = "reconcile.retried"
# The same: the horizon up to which tombstones are gone, `<first batch> <sequence>`.
HORIZON = "reconcile.horizon"
# Of a base table of Iceberg: see macros/materializations/declared_in.sql.
DECLARED_IN = "reconcile.declared_in"

# Records in batches that runs read. No run reads the others; they stay, and reconcile.ledger_balances reports them.
_IN_BATCHES = "batch BETWEEN 1 AND {}"

# The rows of a ledger that have a range of batches each.
_OF_RANGES = "kind IN ('apply', 'replay', 'rebuild')"

# Why a record is in quarantine that is not after the horizon of its table: macros/change_records/before_horizon.sql.
_TOO_LATE = (
    "the change is not after the horizon of the table, up to which its tombstones may be deleted: it came too late"
)

# The columns of the table of registered models; macros/ledger/readers_of.sql writes the rows.
_READERS = (
    "staging string COMMENT 'schema.name of the staging table, as the ledger has it'",
    "ledger string COMMENT 'schema.name of the ledger that has the account of the model'",
    "relation string COMMENT 'schema.name of the model'",
    "materialized string COMMENT 'current_state, history or current_view'",
    "objects string COMMENT 'the objects that the model reads, as a JSON list; an empty list for a model without a "
    "source macro, which may read every object'",
    "registered_at timestamp",
)

# What a table's format says where another commit came in between, and how often a statement is tried.
_CONFLICT = re.compile(r"Concurrent|MetadataChanged|ProtocolChanged|CommitFailed|ValidationException")
_ATTEMPTS = 5

# What follows this is the object of which a snapshot stands beside the log.
ROWS_OF_SNAPSHOT = "#snapshot of "


def named(relation: str) -> TableName:
    """Return a table by its name in a ledger, where no part holds a dot."""
    return TableName(tuple(relation.split(".")))


def beside(table: TableName, suffix: str) -> TableName:
    """Return the table that stands beside another one, as `orders__base` beside `orders`."""
    return TableName((*table.parts[:-1], f"{table.parts[-1]}__{suffix}"))


# Columns of the ledger that came later.
_LATER_COLUMNS = ("deletes_batch", "retried")


def accounts_sql(ledger: TableName, relations: Sequence[str], columns: Collection[str] = _LATER_COLUMNS) -> str:
    """Return the query for what a ledger has of models, as macros/ledger/ledger.sql has it (`_accounts`).

    `columns`: those of the ledger. One of an earlier version lacks the later ones before its next run.
    """
    later = [name if name in columns else f"cast(null as bigint) as {name}" for name in _LATER_COLUMNS]
    return f"""select
    relation,
    coalesce(max(last_batch), 0) as ledger_batch,
    coalesce(max_by(base_batch, place), 0) as ledger_base_batch,
    coalesce(max(place.entry), 0) as entry,
    max_by(unix_micros(last_appended_at), struct(last_batch, place)) as last_appended_at,
    coalesce(max_by(deletes_batch, place) filter (where deletes_batch is not null), 0) as ledger_deletes_batch,
    coalesce(max(retried), 0) as ledger_retried,
    max_by(invocation_id, place) as invocation
from (
    select *, max(if(kind = 'rebuild', place, null)) over (partition by relation) as rebuilt
    from (
        select relation, kind, last_batch, base_batch, last_appended_at, {", ".join(later)}, invocation_id,
            struct(coalesce(entry, 0) as entry, recorded_at) as place
        from {ledger.sql}
        where relation in ({", ".join(map(literal, relations))})
    )
)
where rebuilt is null or place >= rebuilt
group by relation"""


def objects_sql(ledger: TableName, relations: Sequence[str]) -> str:
    """Return the query for the objects of the last range that a ledger has of models, separated by commas."""
    return f"""select relation, max_by(object, struct(coalesce(entry, 0), recorded_at)) as object
from {ledger.sql}
where relation in ({", ".join(map(literal, relations))}) and kind not in ('purge', 'snapshot', 'erasure')
group by relation"""


class Tables:
    """The tables of one purge. Each question reads them as they are at that moment."""

    def __init__(self, spark: SparkSession, staging: TableName) -> None:
        """Open the staging table. Raises UsageError if it is none."""
        self._spark, self._staging = spark, staging
        if not self.has(staging):
            raise UsageError(f"The staging table {staging} does not exist: correct --staging.")
        if not {"record", "object", "batch", "appended_at"} <= set(spark.table(staging.sql).columns):
            raise UsageError(f"The table {staging} is not a staging table: correct --staging.")

    # --- what is asked ---

    def properties(self) -> dict[str, str]:
        """Return what is kept with the staging table, see `staging.kept`."""
        self._refresh(self._staging)
        return kept(self._spark, self._staging)

    def readers(self) -> list[Reader]:
        """Return the registered models, of each its newest registration."""
        self._refresh(self._staging)
        table = beside(self._staging, "readers")
        if not self.has(table):
            return []
        rows = self._rows(
            "SELECT ledger, relation, max_by(struct(staging, materialized, objects), registered_at) AS reader "
            f"FROM {table.sql} GROUP BY ledger, relation ORDER BY ledger, relation"
        )
        return [
            Reader(
                row.reader.staging, row.ledger, row.relation, row.reader.materialized,
                tuple(json.loads(row.reader.objects)),
            )
            for row in rows
        ]  # fmt: skip

    def aged(self, before_micros: int) -> int:
        """Return the last batch that is older than a moment, as all batches before it are; 0 if there is none.

        `before_micros`: the moment, in microseconds since 1970.
        """
        table, young_from = self._staging.sql, f"batch >= 1 AND appended_at >= timestamp_micros({before_micros})"
        young = self._rows(f"SELECT min(batch) AS batch FROM {table} WHERE {young_from}")[0].batch
        if young is not None:
            return int(young) - 1
        return int(self._rows(f"SELECT max(batch) AS batch FROM {table}")[0].batch or 0)

    def staged(self, batch: int) -> list[StagedObject]:
        """Return the objects of which staging has records up to a batch, and how many of each."""
        is_old = _IN_BATCHES.format(batch)
        rows = self._rows(
            f"SELECT object, source, count_if({is_old}) AS records, max(if({is_old}, batch, NULL)) AS last "
            f"FROM {self._staging.sql} WHERE {is_old} OR object LIKE '{ROWS_OF_SNAPSHOT}%' "
            "GROUP BY object, source ORDER BY object"
        )
        beside_log = {
            row.object.removeprefix(ROWS_OF_SNAPSHOT)
            for row in rows
            if row.source == "snapshot" and row.object is not None and row.object.startswith(ROWS_OF_SNAPSHOT)
        }
        objects: dict[str | None, StagedObject] = {}
        for row in rows:
            known = objects.get(row.object, StagedObject(row.object, 0, has_snapshot=row.object in beside_log))
            objects[row.object] = replace(
                known,
                records=known.records + row.records,
                last=max(known.last, row.last or 0),
                is_snapshot=known.is_snapshot or row.source == "snapshot",
            )
        return list(objects.values())

    def records(self, objects: Sequence[str], batch: int) -> int:
        """Return how many records of these objects staging has up to a batch."""
        return int(self._rows(f"SELECT count(*) AS n FROM {self._staging.sql} WHERE {_up_to(objects, batch)}")[0].n)

    def first_batch(self, reader: Reader) -> int | None:
        """Return the first batch of which staging has records of a model's objects; None if it has none."""
        return self._first_records({reader: 0})[reader]

    def appended_at(self, objects: Sequence[str], batch: int | None) -> int | None:
        """Return when the first record of objects was appended from a batch on, in microseconds; None without one."""
        if batch is None:
            return None
        since = f"{of_objects(objects)} AND batch >= {batch}"
        found = self._rows(f"SELECT unix_micros(min(appended_at)) AS at FROM {self._staging.sql} WHERE {since}")[0].at
        return None if found is None else int(found)

    def applied_before(self, reader: Reader, micros: int) -> int:
        """Return the last batch that a model has applied and that was appended before a moment; 0 if there is none.

        Since its last rebuild: before it, the same numbers may have been those of other batches.
        """
        found = self._rows(
            "SELECT max(last_batch) AS batch FROM (SELECT *, max(if(kind = 'rebuild', entry, NULL)) OVER () AS rebuilt "
            f"FROM {named(reader.ledger).sql} WHERE relation = {literal(reader.relation)} "
            f"AND {_OF_RANGES}) "
            f"WHERE coalesce(entry >= rebuilt, true) AND last_appended_at < timestamp_micros({micros})"
        )
        return int(found[0].batch or 0)

    def said_of_base(self, base: TableName) -> dict[str, str]:
        """Return the properties of a base table."""
        return dict(format_of(self._spark, base.catalog).properties(self._spark, base.sql))

    def rebuilt(self, reader: Reader) -> int:
        """Return the number of the row that a ledger has of a model's last rebuild; 0 if there is none."""
        of_model = f"relation = {literal(reader.relation)} AND kind = 'rebuild'"
        rows = self._rows(f"SELECT max(entry) AS entry FROM {named(reader.ledger).sql} WHERE {of_model}")
        return int(rows[0].entry or 0)

    def has_later_range(self, reader: Reader, batch: int) -> bool:
        """Return whether a ledger has a range of a model after the one with which a batch was applied."""
        rows = self._rows(
            f"SELECT max(entry) > min(if(last_batch >= {batch}, entry, NULL)) AS is_later FROM "
            f"{named(reader.ledger).sql} WHERE relation = {literal(reader.relation)} "
            f"AND {_OF_RANGES}"
        )
        return bool(rows[0].is_later)

    def accounts(self, readers: Iterable[Reader], purged: int) -> list[tuple[Reader, Account | None]]:
        """Return the readers with their accounts, see `plan.Account`; None if a model was never run.

        `purged`: the last batch from which records of any object were purged before.
        """
        of_ledgers: dict[str, list[Reader]] = defaultdict(list)
        for reader in readers:
            of_ledgers[reader.ledger].append(reader)
        found: list[tuple[Reader, Account | None]] = []
        for name, of_ledger in of_ledgers.items():
            if not self.has(named(name)):
                gone = Account(0, 0, 0, problem=f"its ledger {name} is not in this session")
                found += [(reader, gone) for reader in of_ledger]
                continue
            relations = [reader.relation for reader in of_ledger]
            columns = self._spark.table(named(name).sql).columns
            known = {row.relation: row for row in self._rows(accounts_sql(named(name), relations, columns))}
            objects = {row.relation: row.object for row in self._rows(objects_sql(named(name), relations))}
            for reader in of_ledger:
                row, base = known.get(reader.relation), beside(named(reader.relation), "base")
                if row is None or not reader.has_base:
                    found.append((reader, None))
                    continue
                quarantine = beside(named(reader.relation), "quarantine")
                missing = {"base": base, "quarantine": quarantine}
                why = [f"its {of} table {table} is not in this session" for of, table in missing.items()
                       if not self.has(table)]  # fmt: skip
                of_base = {} if why else format_of(self._spark, base.catalog).properties(self._spark, base.sql)
                if not why:
                    why += self._of_others(reader, base, of_base, objects.get(reader.relation), row.ledger_retried)
                why += self._of_deletes(reader, row.ledger_deletes_batch) if not why else []
                if why:
                    found.append((reader, Account(0, 0, 0, problem=why[0])))
                    continue
                base_batch = self._largest_batch(base, row.ledger_base_batch)
                held = self._quarantined(quarantine, reader.objects) if reader.objects else ()
                account = Account(
                    row.ledger_batch, row.ledger_base_batch, base_batch,
                    quarantined=held, appended_at=row.last_appended_at,
                    retried=_number_of_retry(of_base.get(_RETRIED) or ""), deletes_batch=row.ledger_deletes_batch,
                    entry=row.entry,
                )  # fmt: skip
                found.append((reader, account))
        return self._with_staging(found, purged)

    def _with_staging(
        self, found: list[tuple[Reader, Account | None]], purged: int
    ) -> list[tuple[Reader, Account | None]]:
        """Return the accounts with what staging says: whether it still has what was applied, and what was not."""
        times = self._append_times(
            {account.ledger_batch for _, account in found if account and account.appended_at is not None}
        )
        waits_for = self._first_records(
            {reader: account.applied for reader, account in found if account and not account.problem and reader.objects}
        )
        with_staging: list[tuple[Reader, Account | None]] = []
        for reader, account in found:
            if account is None or account.problem:
                with_staging.append((reader, account))
                continue
            problem = None
            if account.appended_at is not None:
                batch, at = account.ledger_batch, account.appended_at
                # As macros/materializations/range_to_apply.sql notices it (`_refuse_replaced_batches`).
                if times.get(batch) not in (None, at) or (batch not in times and purged < batch):
                    problem = f"its last batch, {batch:,}, is not in staging any more"
            with_staging.append((reader, replace(account, waits_for=waits_for.get(reader), problem=problem)))
        return with_staging

    def _of_others(
        self, reader: Reader, base: TableName, of_base: Mapping[str, str], objects: str | None, ledger_retried: int
    ) -> list[str]:
        """Return why a model has applied other records than those that it reads now: it was not rebuilt since.

        Or a retry of its quarantine, or a rebuild, has not ended, or the base table was restored to before it: the base
        table lacks what is no longer quarantined. See `_begun_retry` in retry_of_quarantine.sql.
        `objects`: those of its last row in the ledger. The next run of such a model is refused until it is rebuilt.
        `of_base`: the properties of the base table.
        `ledger_retried`: the greatest number of a mark, by the ledger.
        """
        table_format = format_of(self._spark, base.catalog)
        retried = of_base.get(_RETRIED) or ""
        quarantine = beside(named(reader.relation), "quarantine")
        of_quarantine = table_format.properties(self._spark, quarantine.sql)
        later = max(_number_of_retry(of_quarantine.get(_RETRIED) or ""), ledger_retried)
        is_under_way = " " in retried and _number_of_retry(retried) > ledger_retried
        if is_under_way or later > _number_of_retry(retried):
            return ["a retry of its quarantine has not ended, or its base table was restored; run the model"]
        if table_format.was_set_back_before(self._spark, base.sql, of_base.get(DECLARED_IN) or ""):
            return ["its base table was set back to before it took its declaration; rebuild it"]
        declaration = of_base.get(_DECLARATION)
        staging = json.loads(declaration).get("staging") if declaration else None
        if staging is not None and reader.objects and staging != declared_staging(reader.staging):
            return ["its base table was built from another staging table"]
        if (
            objects is not None
            and reader.objects
            and sorted(objects.split(", ")) != sorted(", ".join(reader.objects).split(", "))
        ):
            return [f"its base table was built from the records of {objects}"]
        return []

    def _of_deletes(self, reader: Reader, ledger_deletes_batch: int) -> list[str]:
        """Return why a model lacks deletes without a key that it had when its last range was applied."""
        if not ledger_deletes_batch:
            return []
        tables = [beside(named(reader.relation), kind) for kind in ("row_deletes", "range_deletes")]
        there = [table for table in tables if self.has(table)]
        if not there:
            return ["its table of deletes without a key is not in this session"]
        batches = [self._largest_batch(table, ledger_deletes_batch) for table in there]
        if max(batches) < ledger_deletes_batch:
            return [f"its table {there[0]} was restored; run the model"]
        return [NOT_ENDED] if max(batches) > ledger_deletes_batch else []

    def _quarantined(self, quarantine: TableName, objects: Sequence[str]) -> tuple[tuple[int, int], ...]:
        """Return the batches of which staging still has records of objects that are quarantined, with how many.

        The quarantine also has records that were purged, and records that came too late, see `is_late` in
        macros/change_records/before_horizon.sql: they keep nothing back.
        """
        rows = self._rows(
            f"SELECT _change_batch AS batch, count(*) AS records FROM {quarantine.sql} "
            f"WHERE NOT endswith(_change_error, {literal(_TOO_LATE)}) AND _change_batch IN "
            f"(SELECT batch FROM {self._staging.sql} WHERE {of_objects(objects)} "
            "AND batch >= 1) GROUP BY _change_batch ORDER BY _change_batch"
        )
        return tuple((int(row.batch), int(row.records)) for row in rows)

    def _append_times(self, batches: Iterable[int]) -> dict[int, int]:
        wanted = sorted(batches)
        if not wanted:
            return {}
        rows = self._rows(
            f"SELECT batch, unix_micros(max(appended_at)) AS at FROM {self._staging.sql} "
            f"WHERE batch IN ({', '.join(map(str, wanted))}) GROUP BY batch"
        )
        return {row.batch: row.at for row in rows}

    def _first_records(self, applied: Mapping[Reader, int]) -> dict[Reader, int | None]:
        """Return for each reader the first batch after those applied that has records of its objects."""
        readers = list(applied)
        if not readers:
            return {}
        rows = self._rows(
            " UNION ALL ".join(
                f"SELECT {place} AS place, min(batch) AS batch FROM {self._staging.sql} "
                f"WHERE {of_objects(reader.objects)} AND batch > {applied[reader]}"
                for place, reader in enumerate(readers)
            )
        )
        return {readers[row.place]: row.batch for row in rows}

    def _largest_batch(self, base: TableName, known: int) -> int:
        """Return the largest batch of a base table; files of before `known` are only read if it was restored."""
        query = f"SELECT max(_change_batch) AS batch FROM {base.sql}"
        found = self._rows(f"{query} WHERE _change_batch >= {known}")[0].batch
        return int(found if found is not None else self._rows(query)[0].batch or 0)

    def copied_batch(self, base: TableName, copy: TableName) -> int | None:
        """Return the batch that a copy of a base table has; None if there is no such table.

        It is 0 if the copy is not finished, was set back on Iceberg since, lacks a range that the base table has marked
        (see `marked_range` in retry_of_quarantine.sql), or was made while the model had other declarations: another
        staging table has other batch numbers. Raises UsageError for a table that is no copy of this job and for a view.
        """
        if not self.has(copy):
            return None
        is_view = self._spark.catalog.getTable(copy.sql).tableType == "VIEW"
        table_format = format_of(self._spark, copy.catalog)
        of_copy = {} if is_view else table_format.properties(self._spark, copy.sql)
        batch = of_copy.get(_BASE_SNAPSHOT)
        if batch is None:
            raise UsageError(
                f"{copy} exists, and this job has not made it: rename it, so that the copy of the model's base table "
                "can have this name. Nothing was purged."
            )
        of_base = format_of(self._spark, base.catalog).properties(self._spark, base.sql)
        if any((of_copy.get(note) or "") != (of_base.get(note) or "") for note in (_DECLARATION, _RETRIED)):
            return 0
        return (
            0
            if table_format.was_set_back_before(self._spark, copy.sql, of_copy.get(DECLARED_IN) or "")
            else int(batch or 0)
        )

    def has_keyless_deletes(self, base: TableName) -> bool:
        """Return whether deletes that name no key are kept beside a base table, and so not in a copy of it."""
        return not {"_change_contenders", "cell_time"}.isdisjoint(self._spark.table(base.sql).columns)

    # --- what is written ---

    def make_readers(self) -> None:
        """Make the table of registered models, if there is none. Runs register their models where it exists."""
        table = beside(self._staging, "readers")
        if self.has(table):
            return
        create_table(self._spark, table, _READERS, self._execute)

    def keep(self, texts: dict[str, str]) -> None:
        """Keep texts with the staging table, all of them in one commit. Raises Fault."""
        self._patiently(lambda: keep_all(self._spark, self._staging, texts))

    def copy(self, base: TableName, copy: TableName) -> int:
        """Copy a base table, in one commit, as a copy that is not finished; return the largest batch of its rows."""
        table_format, schema = format_of(self._spark, copy.catalog), self._spark.table(base.sql).schema
        of_base = format_of(self._spark, base.catalog).properties(self._spark, base.sql)
        # A table of Iceberg that is replaced keeps its properties.
        properties = {note: of_base.get(note) or "" for note in (_RETRIED, HORIZON)} | {_BASE_SNAPSHOT: ""}
        if declaration := of_base.get(_DECLARATION):
            properties[_DECLARATION] = declaration
        if version := table_format.staging_properties.get("format-version"):
            properties["format-version"] = version
        columns = _columns_of_copy(schema.fieldNames(), of_base.get(_COLUMNS) or "")
        properties |= properties_of_columns(table_format, columns.values(), [schema.simpleString()])
        selected = ", ".join(
            quoted(stored) + (f" AS {quoted(name)}" if name != stored else "") for stored, name in columns.items()
        )
        self._execute(
            f"CREATE OR REPLACE TABLE {copy.sql} USING {table_format.name} "
            f"TBLPROPERTIES ({property_pairs(properties)}) "
            f"AS SELECT {selected} FROM {base.sql}"
        )
        return self._largest_batch(copy, 0)

    def finish_copy(
        self, copy: TableName, batch: int, last_batch: str, deletes_batch: int, quarantine: TableName, purged: int
    ) -> None:
        """Let a copy say that everything up to a batch had been applied to it, and on Iceberg in which snapshot.

        `last_batch`: see `plan.Account`. The copy has records up to it. `deletes_batch`: the same; the ledger may be
        restored together with the table of these deletes, or with the quarantine, and then only the copy says what they
        lack. `purged`: the last batch of the records that are to be purged of the model's objects.
        """
        properties = {
            _BASE_SNAPSHOT: str(batch), _COPIED_FROM: last_batch, _DELETES_BATCH: str(deletes_batch),
            _QUARANTINED: f"{purged} {self._quarantined_up_to(quarantine, purged)}",
        }  # fmt: skip
        if snapshot := format_of(self._spark, copy.catalog).present_snapshot(self._spark, copy.sql):
            properties[DECLARED_IN] = snapshot
        self._execute(f"ALTER TABLE {copy.sql} SET TBLPROPERTIES ({property_pairs(properties)})")

    def note_erased(self, copy: TableName, quarantine: TableName, batches: Iterable[int | None]) -> None:
        """Let a copy say that the quarantine has fewer records. `batches`: of each record that is about to go."""
        if not self.has(copy):
            return
        said = format_of(self._spark, copy.catalog).properties(self._spark, copy.sql)
        upto, known = map(int, (said.get(_QUARANTINED) or "0 0").split(" "))
        gone = sum(1 for batch in batches if batch is not None and batch <= upto)
        left = self._quarantined_up_to(quarantine, upto) - gone if known and gone else known
        # Fewer than it expects: the quarantine was restored, and a rebuild has to say so.
        if left < known <= left + gone:
            of = property_pairs({_QUARANTINED: f"{upto} {left}"})
            self._execute(f"ALTER TABLE {copy.sql} SET TBLPROPERTIES ({of})")

    def _quarantined_up_to(self, quarantine: TableName, batch: int) -> int:
        counted = f"SELECT count(*) AS records FROM {quarantine.sql} WHERE _change_batch <= {batch}"
        return int(self._rows(counted)[0].records)

    def write_purge(self, ledger: TableName, staging: str, marks: Mapping[str, int], id_: str) -> None:
        """Write the purge into a ledger, as macros/ledger/purged_through.sql does for one object.

        `staging`: the name of the staging table in this ledger. `marks`: the last purged batch, by object. `id_`: that
        of this purge.
        """
        purged = ", ".join(f"struct({literal(of)} AS object, {batch}L AS batch)" for of, batch in marks.items())
        self._execute(
            f"INSERT INTO {ledger.sql} BY NAME "
            f"SELECT {literal(staging)} AS relation, purged.object, 'purge' AS kind, 1L AS first_batch, "
            f"purged.batch AS last_batch, {literal(id_)} AS invocation_id, current_timestamp() AS recorded_at "
            f"FROM (SELECT explode(array({purged})) AS purged)"
        )

    def take_back_purge(self, ledger: TableName, staging: str, id_: str) -> None:
        """Delete from a ledger, if it is there, what a purge has written."""
        if self.has(ledger):
            self._execute(
                f"DELETE FROM {ledger.sql} WHERE relation = {literal(staging)} AND kind = 'purge' "
                f"AND invocation_id = {literal(id_)}"
            )

    def delete(self, objects: Sequence[str], batch: int) -> bool:
        """Delete the records of objects up to a batch in one commit; return False if another commit came first."""
        try:
            self._spark.sql(f"DELETE FROM {self._staging.sql} WHERE {_up_to(objects, batch)}")
        except Exception as problem:
            if not is_conflict(problem):
                raise
            return False
        return True

    def _execute(self, sql: str) -> None:
        self._patiently(lambda: self._spark.sql(sql))

    def _patiently(self, act: Callable[[], object]) -> None:
        patiently(
            act,
            f"Other processes changed a table each time that the purge of {self._staging} wrote to it: run the same "
            "command again, which goes on from there.",
        )

    def has(self, table: TableName) -> bool:
        """Return whether this session has a table, which from then on is read as it is now."""
        own = table.catalog in (None, "spark_catalog")
        if not own and not self._spark.conf.get(f"spark.sql.catalog.{table.catalog}", None):
            return False  # Spark refuses to look into a catalog that it does not know
        if not self._spark.catalog.tableExists(table.sql):
            return False
        self._refresh(table)
        return True

    def _refresh(self, table: TableName) -> None:
        """Let the session forget what it knows of a table: Iceberg's catalogs keep the state that was read first."""
        self._spark.catalog.refreshTable(table.sql)

    def _rows(self, sql: str) -> list[Any]:
        return self._spark.sql(sql).collect()


def declared_staging(name: str) -> str:
    """Return the digest of a staging table's name that a declaration has: `_declaration` in model_settings.sql."""
    return hashlib.md5(json.dumps(name).encode(), usedforsecurity=False).hexdigest()


def of_objects(objects: Sequence[str]) -> str:
    """Return the condition for the records of objects, as SQL."""
    return f"{quoted('object')} IN ({', '.join(map(literal, objects))})"


def _up_to(objects: Sequence[str], batch: int) -> str:
    """Return the condition for the records of objects up to a batch, as SQL."""
    return f"{of_objects(objects)} AND {_IN_BATCHES.format(batch)}"


def _number_of_retry(retried: str) -> int:
    """Return the number in a mark `3` or `3 17`, 0 without a mark."""
    return int(retried.partition(" ")[0] or 0)


def _columns_of_copy(stored: Sequence[str], built: str) -> dict[str, str]:
    """Return the columns of a copy by those of its base table: under the names that the model declares.

    The base table may hold a renamed column under its former name, and columns that the model no longer declares. A
    rebuild takes columns of the copy by their names. `built`: the property reconcile.columns of the base table.
    """
    columns = json.loads(bytes.fromhex(built)) if built else []
    names = {column["stored"]: column["name"] for column in columns if "stored" in column and not column.get("removed")}
    removed = {column.get("stored", column["name"]) for column in columns if column.get("removed")} - names.keys()
    return {name: names.get(name, name) for name in stored if name not in removed}


def create_table(
    spark: SparkSession, table: TableName, columns: Iterable[str], execute: Callable[[str], object]
) -> None:
    """Make a table of this package's own beside a staging table, if there is none. `execute`: sends a statement."""
    table_format = format_of(spark, table.catalog)
    version = table_format.staging_properties.get("format-version")
    properties = f" TBLPROPERTIES ('format-version' = '{version}')" if version else ""
    create = f"CREATE TABLE IF NOT EXISTS {table.sql} ({', '.join(columns)}) USING {table_format.name}{properties}"
    try:
        execute(create)
    except Exception:
        # A job before this one may have been killed while it made the table.
        if table.catalog is not None or not table_format.go_on_making(spark, table.sql, *table.parts):
            raise
        execute(create)


def patiently(act: Callable[[], object], sentence: str) -> None:
    """Do what can be done again, where other commits come in between. Raises Fault with the sentence."""
    for attempt in range(_ATTEMPTS):
        try:
            act()
            return
        except Exception as problem:
            if not is_conflict(problem):
                raise
            if attempt + 1 == _ATTEMPTS:
                raise Fault(sentence) from problem
            time.sleep(1 + attempt)


def is_conflict(problem: Exception) -> bool:
    """Return whether a statement failed since another commit came in between; it then wrote nothing."""
    return any(_CONFLICT.search(f"{kind} {message}") for kind, message in causes(problem))
