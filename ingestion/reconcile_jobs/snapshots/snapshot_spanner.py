"""A table of Spanner becomes a snapshot table: its rows as they were at one timestamp, every value exact."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from google.cloud.spanner_v1 import types

from reconcile_jobs.exact_text import ExactText, NotExact
from reconcile_jobs.process import session
from reconcile_jobs.process.errors import JobError, Undecided, UsageError, explained
from reconcile_jobs.snapshots import snapshot_table
from reconcile_jobs.snapshots.snapshot_jdbc import Snapshot, named_columns, not_exact, reader_of_type, with_the_rest
from reconcile_jobs.spanner.backfill import Column, Table, rows_of, shares_of
from reconcile_jobs.spanner.column_types import SPARK_TYPES
from reconcile_jobs.spanner.queries import Client, DatabaseName
from reconcile_jobs.spanner.stream_decoder import Rows
from reconcile_jobs.staging import TableName, quoted
from reconcile_jobs.timestamps import as_text, asked_moment

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["Field", "load_spanner"]

_COMMENT = "A source's own rows, read from Spanner as of one timestamp; each load replaces them all"

# How many rows Python hands back to Spark at a time.
_BATCH = 10_000


@dataclass(frozen=True)
class Field:
    """A column of the snapshot table; of an array, `text` reads an element."""

    name: str
    source_type: str
    text: ExactText
    is_array: bool = False
    is_bytes: bool = False

    @property
    def stored_type(self) -> str:
        """The type of the table's column, as DDL."""
        return f"array<{self.text.stored_type}>" if self.is_array else self.text.stored_type

    def arrow(self) -> pa.DataType:
        """The type of its values in Arrow."""
        import pyarrow as pa

        return pa.list_(self.text.arrow()) if self.is_array else self.text.arrow()

    def read(self, value: Any) -> Any:
        """Return what Arrow takes for a protobuf Value. Raises DataError where it is not exactly of the type."""
        kind = value.WhichOneof("kind")
        if kind == "null_value":
            return None
        if kind == "list_value":
            return [self.read(item) for item in value.list_value.values]
        text = getattr(value, kind)
        if kind == "bool_value":
            text = "true" if text else "false"
        elif kind == "number_value":
            text = repr(text)
        elif self.is_bytes:
            text = "\\x" + base64.b64decode(text).hex()
        try:
            return self.text.read(text)
        except NotExact as problem:
            raise not_exact(self.name, self.source_type, text, problem, self.text.type_name) from None


def load_spanner(
    spark: SparkSession,
    database: DatabaseName,
    table_name: str,
    into: TableName,
    at: str = "now",
    columns: str | None = None,
    readers: int = 8,
) -> Snapshot:
    """Create or replace the table with the rows that a table of Spanner has at a timestamp.

    Raises UsageError, DataError where a value is not exactly one of its type, Undecided where Spanner no longer has the
    rows of then, and other JobErrors. The table is then as it was.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        snapshot_table.prepare(spark, into)
        with Client(database) as client:
            moment = _moment(client, at)
            asked = named_columns("*" if columns is None else columns)
            if asked[0][0] == "*":
                asked = with_the_rest(asked, [name for name, _ in _all_columns(client, table_name)])
            table = Table(table_name, tuple(Column(name, place, False) for place, (name, _) in enumerate(asked, 1)))
            fields = _fields(client, table, [declared for _, declared in asked])
            shares = shares_of(client, [table], moment)

            def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                import pyarrow as pa

                names = [field.name for field in fields]
                with Client(database) as reader:
                    for batch in batches:
                        for number in batch.column("id").to_pylist():
                            rows = rows_of(reader, shares[number])
                            while some := [row for _, row in islice(rows, _BATCH)]:
                                arrays = [
                                    pa.array([field.read(row[place]) for row in some], field.arrow())
                                    for place, field in enumerate(fields)
                                ]
                                yield pa.RecordBatch.from_arrays(arrays, names=names)

            session.ship_by_value()
            numbered = spark.range(0, len(shares), 1, max(1, min(len(shares), readers)))
            rows = numbered.mapInArrow(read, ", ".join(f"{quoted(field.name)} {field.stored_type}" for field in fields))
            properties = {
                "reconcile.snapshot": "spanner",
                "reconcile.snapshot.database": str(database),
                "reconcile.snapshot.table": table_name,
                "reconcile.snapshot.position_kind": "read_timestamp",
                "reconcile.snapshot.position": as_text(moment),
            }
            snapshot_table.writer(rows, into, _COMMENT, properties).createOrReplace()
    except (JobError, PySparkException, Py4JJavaError) as problem:
        known = explained(problem)
        if "no longer has the rows" in str(known):
            known = Undecided(str(known).replace("--start", "--at"))
        raise known from None
    return Snapshot(spark.table(into.sql).count(), as_text(moment))


def _moment(client: Client, at: str) -> int:
    now = client.now()
    if at == "now":
        return now
    moment = asked_moment("--at", at)
    if moment > now:
        raise UsageError(f"--at {at} is in the future: the time of Spanner is {as_text(now)}. Give an earlier time.")
    return moment


def _all_columns(client: Client, table: str) -> list[tuple[str, None]]:
    """Return the columns of a table but those that Spanner computes, which no change stream brings."""
    schema, _, name = table.rpartition(".")
    wanted = (schema or "public", name), (schema, name)
    rows = client.rows(
        "SELECT table_schema, table_name, column_name FROM information_schema.columns WHERE is_generated = 'NEVER' "
        "ORDER BY table_schema, table_name, ordinal_position"
    )
    texts = [[value.string_value for value in row] for row in rows]
    found: list[tuple[str, None]] = [(column, None) for *whose, column in texts if tuple(whose) in wanted]
    if not found:
        raise UsageError(f"Spanner has no table {table}: write --table exactly as in Spanner.")
    return found


def _fields(client: Client, table: Table, declared: list[str | None]) -> list[Field]:
    """Return how the columns are read, by the types that a read of no rows returns. Raises UsageError."""
    request = types.ReadRequest(
        session=client.session,
        transaction=types.TransactionSelector(
            single_use=types.TransactionOptions(read_only=types.TransactionOptions.ReadOnly(strong=True))
        ),
        table=table.name,
        columns=[column.name for column in table.columns],
        key_set=types.KeySet(),
    )

    def once() -> Any:
        rows, call = Rows(), client.open("StreamingRead", types.ReadRequest.pb(request), patience=60)
        try:
            for message in call.messages():
                rows.add(message)
        finally:
            call.close()
        return rows.fields

    fields: list[Field] = []
    complaints: list[str] = []
    for column, field_type, asked in zip(table.columns, client.retried(once), declared, strict=True):
        is_array = field_type.type_.code == types.TypeCode.ARRAY
        kind = field_type.type_.array_element_type if is_array else field_type.type_
        code = types.TypeCode(kind.code).name
        is_pg_numeric = kind.type_annotation == types.TypeAnnotationCode.PG_NUMERIC
        usual = "string" if is_pg_numeric else SPARK_TYPES.get(code)
        shown = f"ARRAY<{code}>" if is_array else code
        text = reader_of_type(asked or usual) if usual else None
        subject = f"the column {column.name} is {shown}"
        if usual is None:
            complaints.append(f"{subject}, which the job cannot read: leave it out, by naming the others in --columns")
        elif asked and (is_array or usual == "binary") and (text is None or text.type_name != usual):
            complaints.append(f"{subject}, and its type cannot be chosen: name it without a type in --columns")
        elif text is None:
            complaints.append(f"{subject}, and cannot become {asked}: declare {usual}")
        else:
            fields.append(Field(column.name, shown, text, is_array, usual == "binary"))
    if complaints:
        raise UsageError(f"{'; '.join(complaints)}.")
    return fields
