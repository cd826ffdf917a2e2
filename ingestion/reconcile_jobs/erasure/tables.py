"""What an erasure asks of tables, and what it writes there.

Keys stand in no statement: a commit of Delta keeps its conditions, and a session may log its SQL. They are temporary
views of the session, with which tables are joined.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reconcile_jobs.cuts import CUT
from reconcile_jobs.erasure.models import Base
from reconcile_jobs.keyed_records import (
    DATASTREAM,
    NOTES,
    NOTES_SOURCE,
    SNAPSHOT,
    Key,
    KeyColumn,
    KeyedRecords,
    Left,
)
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.process.session import ship_by_value
from reconcile_jobs.retention.files import TableFiles
from reconcile_jobs.retention.plan import Reader
from reconcile_jobs.retention.tables import (
    ROWS_OF_SNAPSHOT,
    Tables,
    accounts_sql,
    beside,
    create_table,
    named,
    of_objects,
    patiently,
)
from reconcile_jobs.staging import JSON_LIMITS, TableName, keep_all, literal, quoted
from reconcile_jobs.staging import SNAPSHOT as CUT_BESIDE_LOG
from reconcile_jobs.table_formats import format_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Account", "ErasureTables", "Found", "Staged", "corrected_reasons", "refuse_several_tables"]

# What a note has as its source and its object.
_OF_NOTE = (NOTES_SOURCE, NOTES)

# The columns of the register; ingestion/reconcile_jobs/erased_keys.py has what a digest is.
_REGISTER = (
    "digest string COMMENT 'HMAC-SHA256 of the objects and the key, in hex'",
    "erasure string COMMENT 'the id of the erasure that wrote this row'",
    "reason string COMMENT 'as --reason of erase.py has it'",
    "erased_at timestamp",
)


@dataclass(frozen=True)
class Account:
    """What a ledger has of a model when an erasure begins: its last batch, and the number of its last row."""

    ledger: str
    relation: str
    object: str
    batch: int
    entry: int
    micros: int  # when the last row was written


@dataclass(frozen=True)
class Found:
    """A record with something that is to be erased: its object and batch, its digest, and what it came from.

    `left`: what stands in its place, where that was asked. `change_id`: of a quarantined row, which is of one part of
    its record. `is_own`: whether this part is to be erased, and the row with it; if not, others of the record are.
    """

    object: str | None
    batch: int | None
    digest: str
    origin: str | None = None
    error: str | None = None
    change_id: str | None = None
    left: Left | None = None
    is_own: bool = True


@dataclass(frozen=True)
class Staged:
    """What was found: records with something to erase, how many cannot be read, and how many records there are.

    `tables`: the objects, each with a table that its records name.
    """

    found: list[Found]
    unreadable: int
    records: int
    tables: list[tuple[str, str]]

    @property
    def rows(self) -> list[Found]:
        """The rows of a quarantine that are to be erased themselves."""
        return [one for one in self.found if one.is_own]


class ErasureTables:
    """The tables of one erasure. Each question reads them as they are at that moment."""

    def __init__(self, spark: SparkSession, staging: TableName) -> None:
        """Open the staging table. Raises UsageError if it is none."""
        self.spark, self.staging = spark, staging
        self.tables = Tables(spark, staging)
        self._files = TableFiles(spark, self.tables)
        self.register = beside(staging, "erased")
        self._records: KeyedRecords = DATASTREAM
        ship_by_value()

    # --- what is asked ---

    def has(self, table: TableName) -> bool:
        """Return whether this session has a table, and not a view."""
        return self._files.exists(table)

    def base(self, table: TableName) -> Base | None:
        """Return what a base table says; None if there is none."""
        if not self.has(table):
            return None
        properties = format_of(self.spark, table.catalog).properties(self.spark, table.sql)
        types = {field.name: field.dataType.simpleString() for field in self.spark.table(table.sql).schema}
        return Base(types, properties.get("reconcile.declaration"), properties.get("reconcile.columns"))

    def sources(self, objects: Sequence[str]) -> set[str]:
        """Return the sources of the records of objects."""
        rows = self._rows(f"SELECT DISTINCT source FROM {self.staging.sql} WHERE {of_objects(objects)}")
        return {str(row.source) for row in rows}

    def take_records_of(self, records: KeyedRecords) -> None:
        """Read the records of objects as those of a source."""
        self._records = records

    def accounts(self, readers: Sequence[Reader]) -> list[Account]:
        """Return the accounts of the models that have been run, by their ledgers."""
        found = []
        for ledger in dict.fromkeys(reader.ledger for reader in readers):
            if not self.has(named(ledger)):
                continue
            of_ledger = [reader.relation for reader in readers if reader.ledger == ledger and reader.has_base]
            if not of_ledger:
                continue
            names = ", ".join(map(literal, of_ledger))
            last = {
                row.relation: row
                for row in self._rows(
                    "SELECT relation, max(if(kind = 'erasure', NULL, object)) AS object, "
                    f"unix_micros(max(recorded_at)) AS micros FROM {named(ledger).sql} WHERE relation IN ({names}) "
                    "GROUP BY relation"
                )
            }
            for row in self._rows(accounts_sql(named(ledger), of_ledger)):
                known = last[row.relation]
                found.append(
                    Account(ledger, row.relation, known.object or "", row.ledger_batch, row.entry, known.micros)
                )
        return found

    def readable(self, objects: Sequence[str], columns: Sequence[KeyColumn], most: int = 1000) -> tuple[int, int]:
        """Return of how many of some records of objects the key can be read, and how many these are."""
        from pyspark.sql import functions as f

        records = self._records
        can = f.udf(lambda record: records.reading(bytes(record), columns).can_be_read, "boolean", useArrow=False)
        some = self.spark.table(self.staging.sql).where(of_objects(objects)).limit(most)
        readable = some.select(can(f.expr("cast(record AS binary)")).alias("readable"))
        row = readable.selectExpr("count_if(readable) AS readable", "count(*) AS n").collect()[0]
        return int(row.readable), int(row.n)

    def staged(
        self,
        objects: Sequence[str],
        columns: Sequence[KeyColumn],
        keys: Sequence[Key],
        with_unreadable: bool,
        erasure: str | None = None,
    ) -> Staged:
        """Return what staging has of the keys, also in snapshots beside a log.

        `erasure`: the id in what is left; None: what is left is not asked.
        """
        records = self.spark.table(self.staging.sql).where(of_objects(_with_snapshots(objects))).selectExpr(
            "record", "object", "batch", "origin", "cast(null AS string) AS error", "cast(null AS string) AS change_id"
        )  # fmt: skip
        return self._found(records, columns, keys, with_unreadable, erasure or "", erasure is not None)

    def quarantined(
        self,
        table: TableName,
        columns: Sequence[KeyColumn],
        keys: Sequence[Key],
        with_unreadable: bool,
        with_left: bool = False,
    ) -> Staged:
        """Return what a quarantine has of the keys. `with_left`: and what is to be left of the records."""
        rows = self.spark.table(table.sql).selectExpr(
            "record", "cast(null AS string) AS object", "_change_batch AS batch", "origin", "_change_error AS error",
            "_change_id AS change_id",
        )  # fmt: skip
        return self._found(rows, columns, keys, with_unreadable, "", with_left)

    def _found(
        self,
        rows: DataFrame,
        columns: Sequence[KeyColumn],
        keys: Sequence[Key],
        with_unreadable: bool,
        erasure: str,
        with_left: bool,
    ) -> Staged:
        from pyspark.sql import functions as f

        wanted, of_log = frozenset(keys), self._records

        def look(record: Any, object_: str | None, change_id: str | None) -> tuple[Any, ...]:
            records = SNAPSHOT if (object_ or "").startswith(ROWS_OF_SNAPSHOT) else of_log
            content = b"" if record is None else bytes(record)
            read = records.reading(content, columns)
            places = read.places(wanted.__contains__, with_unreadable)
            if not places:
                return False, None in read.parts, read.table, None, None
            left = records.without(content, places, object_ or "", erasure) if with_left else None
            own = records.own_place(change_id, read, columns)
            # A row of which nobody knows the part may be of the keys.
            is_own = own is None or own in places
            return True, None in read.parts, read.table, (left.record, left.is_note) if left else None, is_own

        kinds = (
            "is_found boolean, is_unreadable boolean, of string, left struct<record: string, is_note: boolean>, "
            "is_own boolean"
        )
        udf = f.udf(look, kinds, useArrow=False)
        looked = (
            rows.alias("records")
            .withColumn("look", udf(f.expr("cast(record AS binary)"), "object", "change_id"))
            .withColumn("digest", f.expr(_digest_of("records")))
        )
        kept = looked.drop("record").persist()
        try:
            counts = kept.selectExpr("count(*) AS n", "count_if(look.is_unreadable) AS unreadable").collect()[0]
            tables = kept.where("look.of <> ''").select("object", "look.of").distinct().collect()
            found = kept.where("look.is_found").collect()
        finally:
            kept.unpersist()
        each = [
            Found(
                row.object, row.batch, row.digest, row.origin, row.error, row.change_id,
                Left(*row.look.left) if row.look.left else None, row.look.is_own,
            )
            for row in found
        ]  # fmt: skip
        return Staged(each, 0 if with_unreadable else counts.unreadable, counts.n, [tuple(row) for row in tables])

    def last_batch(self) -> int:
        """Return the largest batch of staging."""
        self.spark.catalog.refreshTable(self.staging.sql)
        return int(self._rows(f"SELECT max(batch) AS batch FROM {self.staging.sql}")[0].batch or 0)

    def unread_objects(self) -> int:
        """Return how many records of staging name no object, so that nobody knows of which table they are."""
        return int(self._rows(f"SELECT count(*) AS n FROM {self.staging.sql} WHERE object IS NULL")[0].n)

    def notes(self, objects: Sequence[str], erasures: Iterable[str]) -> list[Any]:
        """Return what erasures have left in staging: erasure, object, batch, origin, records, micros.

        `records`: how many change records were erased, or rows of a snapshot beside a log.
        """
        objects = _with_snapshots(objects)
        part = "get_json_object(record, '$.erased_record.{}')"
        notes = (
            f"SELECT {part.format('erasure')} AS erasure, {part.format('object')} AS object, batch, origin, "
            f"appended_at FROM {self.staging.sql} WHERE object = '{NOTES}' AND source = '{NOTES_SOURCE}'"
        )
        marks = self._records.erasures_of_marks
        if marks:
            notes += (
                f" UNION ALL SELECT explode({marks}) AS erasure, object, batch, origin, appended_at "
                f"FROM {self.staging.sql} WHERE {of_objects(objects)}"
            )
        return self._rows(
            f"SELECT erasure, object, batch, origin, count(*) AS records, unix_micros(max(appended_at)) AS micros "
            f"FROM ({notes}) WHERE {of_objects(objects)} AND erasure IN "
            f"({', '.join(map(literal, erasures)) or 'NULL'}) "
            "GROUP BY erasure, object, batch, origin ORDER BY batch, origin"
        )

    def registered(self) -> dict[str, str]:
        """Return the digests of the register, each with its erasure."""
        if not self.has(self.register):
            return {}
        rows = self.spark.table(self.register.sql).select("digest", "erasure").collect()
        return {row.digest: row.erasure for row in rows}

    def rows_of_keys(self, table: TableName, base: Base, columns: Sequence[KeyColumn], keys: Sequence[Key]) -> int:
        """Return how many rows of a base table, or of a copy, have one of the keys."""
        with self._keys(columns, keys) as view:
            joined = f"SELECT count(*) AS n FROM {table.sql} AS t LEFT SEMI JOIN {view} AS k ON {_same(base, columns)}"
            return int(self._rows(joined)[0].n)

    def largest_other_batch(
        self, table: TableName, base: Base, columns: Sequence[KeyColumn], keys: Sequence[Key]
    ) -> int:
        """Return the largest batch of the rows of a base table that have none of the keys."""
        with self._keys(columns, keys) as view:
            query = (
                f"SELECT max(t._change_batch) AS batch FROM {table.sql} AS t "
                f"LEFT ANTI JOIN {view} AS k ON {_same(base, columns)}"
            )
            return int(self._rows(query)[0].batch or 0)

    def differences(self, table: TableName, relations: Sequence[str], matches: Callable[[str], bool]) -> list[str]:
        """Return the texts of keys in a table of differences of parity that are of the keys."""
        rows = self._rows(
            f"SELECT DISTINCT key FROM {table.sql} WHERE key IS NOT NULL AND relation IN "
            f"({', '.join(map(literal, relations))})"
        )
        return [row.key for row in rows if matches(row.key)]

    def earlier_moments(self, model: TableName) -> list[TableName]:
        """Return the base tables of a model that the variable as_of built into other schemas of its catalog."""
        catalog = model.parts[:-2]
        schemas = self._rows(f"SHOW SCHEMAS IN {quoted(*catalog)}" if catalog else "SHOW SCHEMAS")
        found = []
        for row in schemas:
            table = beside(TableName((*catalog, row[0], model.parts[-1])), "base")
            if row[0] == model.parts[-2] or not self.has(table):
                continue
            if "reconcile.as_of" in format_of(self.spark, table.catalog).properties(self.spark, table.sql):
                found.append(table)
        return found

    def has_marks(self, account: Account, id_: str) -> bool:
        """Return whether a ledger has the rows of this erasure for a model."""
        rows = self._rows(
            f"SELECT count(*) AS n FROM {named(account.ledger).sql} WHERE relation = {literal(account.relation)} "
            f"AND kind = 'erasure' AND invocation_id = {literal(id_)}"
        )
        return bool(rows[0].n)

    # --- what is written ---

    def keep(self, texts: dict[str, str]) -> None:
        """Keep texts with the staging table, all of them in one commit. Raises Fault."""
        self._patiently(self.staging, lambda: keep_all(self.spark, self.staging, texts))

    def add_to_register(self, digests: Sequence[str], erasure: str, reason: str) -> None:
        """Write digests into the register, which is made if there is none."""
        if not self.has(self.register):
            create_table(self.spark, self.register, _REGISTER, self.spark.sql)
        rows = [(digest, erasure, reason) for digest in digests]
        with self._view(rows, ("digest string", "erasure string", "reason string")) as view:
            self._execute(
                self.register,
                f"INSERT INTO {self.register.sql} BY NAME SELECT *, current_timestamp() AS erased_at FROM {view}",
            )

    def erase_staged(self, found: Sequence[Found]) -> None:
        """Put what is left of each of these records in its place, in one commit.

        Staging says of each snapshot how many rows it has; that number becomes smaller with them.
        """
        rows = {
            (one.object, one.batch, one.digest, one.left.record, *(_OF_NOTE if one.left.is_note else (None, None)))
            for one in found
            if one.left
        }
        rows |= self._cuts_beside_log(found)
        if self._records is SNAPSHOT:
            rows |= self._cuts_of_snapshots(found)
        columns = ("object string", "batch bigint", "digest string", "record string", "source string", "note string")
        with self._view(sorted(rows, key=str), columns) as view:
            self._execute(
                self.staging,
                f"MERGE INTO {self.staging.sql} AS t USING {view} AS k "
                f"ON {_same_record()} WHEN MATCHED THEN "
                "UPDATE SET record = k.record, source = coalesce(k.source, t.source), "
                "object = coalesce(k.note, t.object)",
            )

    def _cuts_beside_log(self, found: Sequence[Found]) -> set[tuple[Any, ...]]:
        """Return what becomes of the rows that say how many rows a snapshot beside the log has, each in its batch."""
        batches = [one.batch for one in found if (one.object or "").startswith(ROWS_OF_SNAPSHOT)]
        gone = Counter(batch for batch in batches if batch is not None)
        if not gone:
            return set()
        cuts = self._cuts(CUT_BESIDE_LOG, f"batch IN ({', '.join(map(str, sorted(gone)))})")
        return {_smaller(cut, gone[cut.batch]) for cut in cuts}

    def _cuts_of_snapshots(self, found: Sequence[Found]) -> set[tuple[Any, ...]]:
        """Return what becomes of the rows that say how many rows the newest snapshot of an object without a log has."""
        with self._view(
            sorted({(one.object, one.batch, one.digest) for one in found}, key=str),
            ("object string", "batch bigint", "digest string"),
        ) as view:
            # A snapshot has each key of which the newest record is no delete.
            staged = (
                "SELECT t.object, t.batch, k.digest AS erased, "
                f"from_json(t.record, 'change string, key string', {JSON_LIMITS}) AS said "
                f"FROM {self.staging.sql} AS t LEFT JOIN {view} AS k ON {_same_record()} "
                f"WHERE t.object IN (SELECT object FROM {view})"
            )
            newest = (
                "SELECT object, max_by(said.change, batch) AS change, "
                "max_by(said.change, if(erased IS NULL, batch, NULL)) AS change_left "
                f"FROM ({staged}) GROUP BY object, said.key"
            )
            rows = self._rows(
                "SELECT object, count_if(change <> 'delete') - count_if(change_left <> 'delete') AS n "
                f"FROM ({newest}) GROUP BY object"
            )
        gone = {row.object: int(row.n) for row in rows}
        newest_cuts = {json.loads(cut.record)["object"]: cut for cut in self._cuts(CUT, "true")}
        return {_smaller(newest_cuts[object_], n) for object_, n in gone.items() if n and object_ in newest_cuts}

    def _cuts(self, object_: str, condition: str) -> list[Any]:
        """Return object, batch, record and digest of what snapshots say of themselves, in the order of the batches."""
        return self._rows(
            f"SELECT object, batch, record, {_digest_of('t')} AS digest FROM {self.staging.sql} AS t "
            f"WHERE object = {literal(object_)} AND source = 'snapshot' AND {condition} ORDER BY batch"
        )

    def erase_quarantined(self, table: TableName, found: Sequence[Found]) -> None:
        """Delete these rows of a quarantine, or what their records have of other rows, in one commit."""
        rows = {
            (one.batch, one.change_id, one.digest, None if one.is_own or not one.left else one.left.record)
            for one in found
        }
        columns = ("batch bigint", "change_id string", "digest string", "record string")
        with self._view(sorted(rows, key=str), columns) as view:
            self._execute(
                table,
                f"MERGE INTO {table.sql} AS t USING {view} AS k ON t._change_batch <=> k.batch "
                f"AND t._change_id <=> k.change_id AND {_digest_of('t')} = k.digest "
                "WHEN MATCHED AND k.record IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET record = k.record",
            )

    def erase_rows(self, table: TableName, base: Base, columns: Sequence[KeyColumn], keys: Sequence[Key]) -> None:
        """Delete the rows of a base table, or of a copy, that have one of the keys."""
        with self._keys(columns, keys) as view:
            self._execute(
                table,
                f"MERGE INTO {table.sql} AS t USING {view} AS k ON {_same(base, columns)} WHEN MATCHED THEN DELETE",
            )

    def erase_differences(self, table: TableName, relations: Sequence[str], texts: Sequence[str]) -> None:
        """Delete the rows of a table of differences of parity that have one of these texts as their key."""
        with self._view([(text,) for text in texts], ("key string",)) as view:
            self._execute(
                table,
                f"MERGE INTO {table.sql} AS t USING {view} AS k ON t.key = k.key AND t.relation IN "
                f"({', '.join(map(literal, relations))}) WHEN MATCHED THEN DELETE",
            )

    def write_marks(self, account: Account, id_: str, marks: Sequence[tuple[int, int, int, int | None, int]]) -> None:
        """Write into a ledger what was erased of a model.

        `marks`: batch, records of staging, records of the quarantine, when the batch was appended, and the largest
        batch of the base table without the keys. The rows stand behind the last one that the ledger had when the
        erasure began, and before all that runs have written since.
        """
        columns = ("batch bigint", "delivered bigint", "quarantined bigint", "micros bigint", "base_batch bigint")
        with self._view(marks, columns) as view:
            ledger = named(account.ledger)
            self._execute(
                ledger,
                f"INSERT INTO {ledger.sql} BY NAME SELECT {literal(account.relation)} AS relation, "
                f"{literal(account.object)} AS object, 'erasure' AS kind, batch AS first_batch, batch AS last_batch, "
                f"delivered, quarantined, base_batch, {literal(id_)} AS invocation_id, "
                f"greatest(current_timestamp(), timestamp_micros({account.micros + 1})) AS recorded_at, "
                f"{account.entry}L AS entry, timestamp_micros(micros) AS last_appended_at FROM {view}",
            )

    def correct_reasons(self, account: Account, quarantine: TableName, matches: Callable[[str], bool]) -> int:
        """Take what was erased out of the reasons that a ledger has of a quarantine; return of how many rows."""
        ledger = named(account.ledger)
        of_model = f"relation = {literal(account.relation)}"
        # Also batches of which no row of the quarantine was erased: it may have been emptied since.
        erased = self._rows(
            f"SELECT DISTINCT first_batch AS batch FROM {ledger.sql} WHERE {of_model} AND kind = 'erasure'"
        )
        batches = {int(row.batch) for row in erased}
        table = self.spark.table(ledger.sql)
        if "quarantine_reasons" not in table.columns:
            return 0
        rows = table.where(f"{of_model} AND size(quarantine_reasons) > 0")
        # With each NULL, as what becomes of a reason has it: else each row would look as if it had to change.
        reasons_in_json = "to_json(quarantine_reasons, map('ignoreNullFields', 'false')) AS reasons"
        rows = rows.selectExpr("entry", "unix_micros(recorded_at) AS micros", reasons_in_json)
        noted = [(row.entry, row.micros, json.loads(row.reasons)) for row in rows.collect()]
        of_reasons = {each["batch"] for _, _, reasons in noted for reason in reasons for each in reason["batches"]}
        left = [
            (row.batch, row.error, row.origin)
            for row in self._rows(
                f"SELECT _change_batch AS batch, _change_error AS error, origin FROM {quarantine.sql} "
                f"WHERE _change_batch IN ({', '.join(map(str, sorted(of_reasons))) or 'NULL'})"
            )
        ]
        corrected = []
        for entry, micros, before in noted:
            after = corrected_reasons(before, batches, left, matches)
            if after != before:
                corrected.append((entry, micros, json.dumps(after)))
        if corrected:
            kind = next(field.dataType for field in table.schema if field.name == "quarantine_reasons").simpleString()
            with self._view(corrected, ("entry bigint", "micros bigint", "reasons string")) as view:
                self._execute(
                    ledger,
                    f"MERGE INTO {ledger.sql} AS t USING (SELECT entry, micros, "
                    f"from_json(concat('{{\"r\":', reasons, '}}'), 'r {kind}').r AS r FROM {view}) AS k "
                    f"ON t.{of_model} AND t.entry <=> k.entry AND unix_micros(t.recorded_at) = k.micros "
                    "AND t.quarantine_reasons IS NOT NULL WHEN MATCHED THEN UPDATE SET quarantine_reasons = k.r",
                )
        return len(corrected)

    # --- Spark ---

    @contextmanager
    def _keys(self, columns: Sequence[KeyColumn], keys: Sequence[Key]) -> Iterator[str]:
        with self._view(keys, [f"k{place} string" for place, _ in enumerate(columns)]) as view:
            yield view

    @contextmanager
    def _view(self, rows: Sequence[Sequence[Any]], columns: Sequence[str]) -> Iterator[str]:
        """Let rows be a temporary view for a while."""
        import pyarrow as pa

        kinds = {"string": pa.string(), "bigint": pa.int64()}
        fields = [column.split(" ") for column in columns]
        schema = pa.schema([(name, kinds[kind]) for name, kind in fields])
        dicts = [dict(zip(schema.names, row, strict=True)) for row in rows]
        name = f"reconcile_erasure_{uuid.uuid4().hex}"
        self.spark.createDataFrame(pa.Table.from_pylist(dicts, schema)).createOrReplaceTempView(name)
        try:
            yield name
        finally:
            self.spark.catalog.dropTempView(name)

    def _execute(self, table: TableName, sql: str) -> None:
        self._patiently(table, lambda: self.spark.sql(sql))

    def _patiently(self, table: TableName, act: Callable[[], object]) -> None:
        patiently(
            act,
            f"Other processes wrote to {table} each time that the erasure did: when they have ended, run the same "
            "command again, which goes on from there.",
        )

    def _rows(self, sql: str) -> list[Any]:
        return self.spark.sql(sql).collect()


def corrected_reasons(
    reasons: Sequence[Mapping[str, Any]],
    batches: set[int],
    left: Sequence[tuple[int, str, str | None]],
    matches: Callable[[str], bool],
) -> list[dict[str, Any]]:
    """Return the reasons of a range without what was erased; see macros/ledger/quarantine_reasons.sql.

    `batches`: those of which records were erased. `left`: batch, reason and origin of what the quarantine still has of
    all batches of the reasons. `matches`: whether the text of a key is that of one that was erased.
    """
    found: list[dict[str, Any]] = []
    forms = {_form(reason["reason"]) for reason in reasons if reason.get("reason")}
    for reason in reasons:
        of = dict(reason)
        form = _form(of["reason"]) if of.get("reason") else None
        # An entry without a reason is of all forms that have none of their own.
        rows = [row for row in left if (_form(row[1]) == form if form is not None else _form(row[1]) not in forms)]
        now = Counter(batch for batch, _, _ in rows)
        is_touched = any(each["batch"] in batches for each in of["batches"])
        if is_touched:
            counts = [
                {"batch": each["batch"], "records": now[each["batch"]] if each["batch"] in batches else each["records"]}
                for each in of["batches"]
            ]
            of["batches"] = [each for each in counts if each["records"]]
        if not of["batches"]:
            continue
        is_of_key = bool(of.get("example_key")) and matches(of["example_key"])
        is_gone = is_touched and (of.get("reason"), of.get("example_origin")) not in {row[1:] for row in rows}
        if form is not None and (is_of_key or is_gone):
            other = min(
                (row for row in rows if row[0] in {each["batch"] for each in of["batches"]}), default=None, key=str
            )
            of |= {
                "reason": other[1] if other else _without_values(str(of["reason"])),
                "example_key": None,
                "example_origin": other[2] if other else None,
            }
        found.append({name: of.get(name) for name in ("reason", "example_key", "example_origin", "batches")})
    return found


def _form(reason: str) -> str:
    """Return a reason without the values that it quotes, as macros/ledger/quarantine_reasons.sql has it."""
    return re.sub("'[^']*'", "", reason)


def _without_values(reason: str) -> str:
    """Return the beginning of a reason, in which no value can stand. A value may hold a quote itself."""
    beginning, quote, _ = reason.partition("'")
    return f"{beginning.rstrip()} (erased)" if quote else reason


def _digest_of(table: str) -> str:
    """Return SQL by which a record is known in a statement without its text."""
    return f"sha2(cast({table}.record AS binary), 256)"


def _same_record() -> str:
    """Return the condition that a record `t` of staging is the record `k`, of which the digest is known."""
    return f"t.object = k.object AND t.batch <=> k.batch AND {_digest_of('t')} = k.digest"


def _with_snapshots(objects: Sequence[str]) -> list[str]:
    """Return the objects of records, and those of the rows of their snapshots beside the log."""
    return [*objects, *(f"{ROWS_OF_SNAPSHOT}{of}" for of in objects)]


def _smaller(cut: Any, rows: int) -> tuple[Any, ...]:
    """Return what a snapshot says of itself without some of its rows, as `erase_staged` merges it."""
    said = json.loads(cut.record)
    text = json.dumps(said | {"rows": said["rows"] - rows}, separators=(",", ":"), ensure_ascii=False)
    return cut.object, cut.batch, cut.digest, text, None, None


def _same(base: Base, columns: Sequence[KeyColumn]) -> str:
    """Return the condition that a row `t` has the key of a row `k`."""
    return " AND ".join(
        f"t.{quoted(column.name)} = try_cast(k.k{place} AS {base.types[column.name]})"
        if column.is_number
        else f"cast(t.{quoted(column.name)} AS string) = k.k{place}"
        for place, column in enumerate(columns)
    )


def refuse_several_tables(tables: Iterable[tuple[str, str]]) -> None:
    """Raise UsageError if the records of one object are of several tables, whose keys are not of one row."""
    of_objects: dict[str, list[str]] = {}
    for object_, table in sorted(tables):
        of_objects.setdefault(object_, []).append(table.replace('"', ""))
    for object_, names in of_objects.items():
        if len(names) > 1:
            raise UsageError(
                f"The records of {object_} in staging are of several tables ({', '.join(names[:5])}), and a key may be "
                "of another row in each: nothing was erased. So far each object has to be of one table."
            )
