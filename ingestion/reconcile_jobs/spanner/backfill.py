"""The rows that were there before a change stream's start, read at exactly that timestamp, as records of its form.

A backfill record looks like a data change record of mod_type INSERT and value_capture_type NEW_ROW, with
`"backfill": true`, the read timestamp as commit_timestamp, and up to a hundred rows as its mods. It belongs to no
transaction: server_transaction_id and record_sequence are empty, and both counts 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
from google.cloud.spanner_v1 import types

from reconcile_jobs.long_records import LONGEST
from reconcile_jobs.process.errors import Fault, UsageError
from reconcile_jobs.spanner.queries import Client
from reconcile_jobs.spanner.stream_decoder import Rows, TornResult, compact_json
from reconcile_jobs.spanner.windows import ChangeStream
from reconcile_jobs.staging import RAW_ROWS, raw_rows
from reconcile_jobs.timestamps import as_text

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Table", "backfill_frame", "read_rows", "rows_of", "shares_of", "watched_tables"]

# Rows of one record, and the characters after which it is closed. A record names the column types once for its rows.
_MODS = 100
_CHARACTERS = 200_000

# Rows kept back while no resume token has come, as each row can be given only once.
_KEPT_BACK = 50_000

# Seconds without a message after which a read is taken for dead.
_PATIENCE = 120


@dataclass(frozen=True)
class Column:
    """A column that the stream watches, or of the key; `position` counts from 1."""

    name: str
    position: int
    key: bool


@dataclass(frozen=True)
class Table:
    """A table as change records name it, and the columns to read."""

    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Share:
    """One part of a table's rows, which one task reads."""

    table: Table
    session: str
    transaction: bytes
    partition: bytes


def watched_tables(client: Client, stream: ChangeStream) -> list[Table]:
    """Return what a change stream watches, by the database's schema as it is now. Raises UsageError for nothing."""
    of_stream = f"WHERE change_stream_name = '{stream.name}'"
    (everything,) = _column(
        client,
        f'SELECT "all" FROM information_schema.change_streams {of_stream}'
        if stream.postgresql
        else f"SELECT IF(`all`, 'YES', 'NO') FROM information_schema.change_streams {of_stream}",
    )
    whole: dict[tuple[str, str], bool] = {}
    watched: set[tuple[str, str, str]] = set()
    if everything != "YES":
        yes = "all_columns" if stream.postgresql else "IF(all_columns, 'YES', 'NO')"
        for schema, table, all_columns in _texts(
            client, f"SELECT table_schema, table_name, {yes} FROM information_schema.change_stream_tables {of_stream}"
        ):
            whole[schema, table] = all_columns == "YES"
        for schema, table, column in _texts(
            client,
            f"SELECT table_schema, table_name, column_name FROM information_schema.change_stream_columns {of_stream}",
        ):
            watched.add((schema, table, column))
    keys = set(
        _texts(
            client,
            "SELECT table_schema, table_name, column_name FROM information_schema.index_columns "
            "WHERE index_type = 'PRIMARY_KEY'",
        )
    )
    columns: dict[tuple[str, str], list[Column]] = {}
    for schema, table, column, position in _texts(
        client,
        "SELECT c.table_schema, c.table_name, c.column_name, CAST(c.ordinal_position AS "
        f"{'varchar' if stream.postgresql else 'STRING'}) FROM information_schema.columns AS c "
        "JOIN information_schema.tables AS t ON t.table_schema = c.table_schema AND t.table_name = c.table_name "
        # Change streams do not watch generated columns; one in a key is there all the same.
        "WHERE t.table_type = 'BASE TABLE' AND UPPER(c.table_schema) NOT IN "
        "('INFORMATION_SCHEMA', 'SPANNER_SYS', 'PG_CATALOG') AND (c.is_generated = 'NEVER' OR EXISTS (SELECT 1 FROM "
        "information_schema.index_columns AS k WHERE k.index_type = 'PRIMARY_KEY' AND k.table_schema = c.table_schema "
        "AND k.table_name = c.table_name AND k.column_name = c.column_name))",
    ):
        key = (schema, table, column) in keys
        if key or everything == "YES" or whole.get((schema, table)) or (schema, table, column) in watched:
            columns.setdefault((schema, table), []).append(Column(column, int(position), key))
    default = "public" if stream.postgresql else ""
    tables = [
        Table(table if schema == default else f"{schema}.{table}", tuple(sorted(some, key=lambda c: c.position)))
        for (schema, table), some in sorted(columns.items())
        if everything == "YES" or (schema, table) in whole
    ]
    if not tables:
        raise UsageError(
            f"The change stream {stream.name} watches no table of {client.database}: alter it to watch one."
        )
    return tables


def _texts(client: Client, sql: str) -> list[tuple[str, ...]]:
    return [tuple(value.string_value for value in row) for row in client.rows(sql)]


def _column(client: Client, sql: str) -> list[str]:
    return [row[0] for row in _texts(client, sql)]


def shares_of(client: Client, tables: list[Table], moment: int) -> list[Share]:
    """Return the parts in which the rows of the tables, as they were at `moment`, can be read. Raises JobError."""
    read_only = types.TransactionOptions.ReadOnly()
    options = types.TransactionOptions(read_only=read_only)
    begin = types.BeginTransactionRequest.pb(types.BeginTransactionRequest(session=client.session, options=options))
    timestamp = begin.options.read_only.read_timestamp
    timestamp.seconds, timestamp.nanos = divmod(moment, 10**9)
    transaction = client.unary("BeginTransaction", begin, types.Transaction).id
    shares = []
    for table in tables:
        request = types.PartitionReadRequest.pb(
            types.PartitionReadRequest(
                session=client.session,
                transaction=types.TransactionSelector(id=transaction),
                table=table.name,
                columns=[column.name for column in table.columns],
                key_set=types.KeySet(all_=True),
            )
        )
        response = client.unary("PartitionRead", request, types.PartitionResponse, in_transaction=True)
        for partition in response.partitions:
            shares.append(Share(table, client.session, transaction, partition.partition_token))
    return shares


def read_rows(client: Client, share: Share, moment: int) -> Iterator[str]:
    """Yield the rows of a share as backfill records. Raises JobError."""
    table = share.table
    fields: Any = None
    types_text, mods, size = "", list[str](), 0
    for fields, row in rows_of(client, share):
        if not types_text:
            types_text = _column_types(table, fields)
        keys: dict[str, Any] = {}
        values: dict[str, Any] = {}
        for column, value in zip(table.columns, row, strict=True):
            (keys if column.key else values)[column.name] = _plain(value)
        mods.append(compact_json({"keys": keys, "new_values": values, "old_values": {}}))
        size += len(mods[-1])
        if len(mods) == _MODS or size >= _CHARACTERS:
            yield _record(table, types_text, mods, moment)
            mods, size = [], 0
    if mods:
        yield _record(table, types_text, mods, moment)


def _record(table: Table, types_text: str, mods: list[str], moment: int) -> str:
    rest: Mapping[str, Any] = {
        "backfill": True,
        "commit_timestamp": as_text(moment),
        "is_last_record_in_transaction_in_partition": True,
        "is_system_transaction": False,
        "mod_type": "INSERT",
        "number_of_partitions_in_transaction": 0,
        "number_of_records_in_transaction": 0,
        "record_sequence": "",
        "server_transaction_id": "",
        "table_name": table.name,
        "transaction_tag": "",
        "value_capture_type": "NEW_ROW",
    }
    return f'{{"column_types":{types_text},"mods":[{",".join(mods)}],{compact_json(rest)[1:]}'


def rows_of(client: Client, share: Share) -> Iterator[tuple[Any, list[Any]]]:
    """Yield the fields and the values of each row, once: rows are kept back until a resume token has come for them."""
    request = types.ReadRequest.pb(
        types.ReadRequest(
            session=share.session,
            transaction=types.TransactionSelector(id=share.transaction),
            table=share.table.name,
            columns=[column.name for column in share.table.columns],
            key_set=types.KeySet(all_=True),
            partition_token=share.partition,
        )
    )
    rows, kept, given, failures = Rows(), list[list[Any]](), False, 0
    while True:
        request.resume_token = rows.resume_token
        call = client.open("StreamingRead", request, _PATIENCE)
        try:
            for message in call.messages():
                kept += rows.add(message)
                if message.resume_token or len(kept) > _KEPT_BACK:
                    failures = 0
                    given = given or bool(kept)
                    beyond = not message.resume_token
                    yield from ((rows.fields, row) for row in kept)
                    kept = []
                    if beyond:
                        rows.resume_token = b""
            rows.end()
            yield from ((rows.fields, row) for row in kept)
            return
        except (grpc.RpcError, TornResult) as problem:
            failures = client.failed(problem, failures, in_transaction=True)
            if given and not rows.resume_token:
                raise Fault(
                    f"The rows of {share.table.name} could not be read completely: run the same command again."
                ) from None
            kept = []
            if not rows.rewind():
                rows = Rows()
        finally:
            call.close()


def _column_types(table: Table, fields: Any) -> str:
    return compact_json(
        [
            {
                "name": column.name,
                "type": _type(field.type_),
                "is_primary_key": column.key,
                "ordinal_position": column.position,
            }
            for column, field in zip(table.columns, fields, strict=True)
        ]
    )


def _type(kind: Any) -> dict[str, Any]:
    """Return a type as change records give it."""
    described: dict[str, Any] = {"code": types.TypeCode(kind.code).name}
    if kind.type_annotation:
        described["type_annotation"] = types.TypeAnnotationCode(kind.type_annotation).name
    if kind.code == types.TypeCode.ARRAY:
        described["array_element_type"] = _type(kind.array_element_type)
    if kind.proto_type_fqn:
        described["proto_type_fqn"] = kind.proto_type_fqn
    return described


def _plain(value: Any) -> Any:
    """Return a value as Spanner's JSON has it, which is how change records have it too."""
    kind = value.WhichOneof("kind")
    if kind == "null_value":
        return None
    if kind == "list_value":
        return [_plain(item) for item in value.list_value.values]
    return getattr(value, kind)


def backfill_frame(
    spark: SparkSession,
    client: Client,
    stream: ChangeStream,
    tables: list[Table],
    moment: int,
    readers: int,
    longest: int = LONGEST,
) -> DataFrame:
    """Return `record`, `object` and `origin` of the tables' rows at `moment`. The frame reads them when evaluated."""
    shares = shares_of(client, tables, moment)
    numbered = spark.range(0, len(shares), 1, min(len(shares), readers))

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Client(stream.database) as reader:
            for batch in batches:
                for number in batch.column("id").to_pylist():
                    share = shares[number]
                    for record in read_rows(reader, share, moment):
                        yield raw_rows([record], [share.table.name], [f"{stream.name}/backfill"], longest=longest)

    return numbered.mapInArrow(read, RAW_ROWS)  # type: ignore[arg-type]
