"""An in-process google.spanner.v1.Spanner with change streams, which does what the emulator cannot.

Time is what a test says: records carry the nanoseconds they are given, and `now` is Spanner's clock. Messages are cut
and resumed by the rules of the protocol; faults are planted by partition and number of message.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.cloud.spanner_v1 import types as T
from google.protobuf.struct_pb2 import ListValue, Value
from reconcile_jobs.timestamps import as_text, nanoseconds

DATA: dict[str, Any] = {
    "commit_timestamp": "TIMESTAMP",
    "record_sequence": "STRING",
    "server_transaction_id": "STRING",
    "is_last_record_in_transaction_in_partition": "BOOL",
    "table_name": "STRING",
    "column_types": [
        "ARRAY",
        {"name": "STRING", "type": "JSON", "is_primary_key": "BOOL", "ordinal_position": "INT64"},
    ],
    "mods": ["ARRAY", {"keys": "JSON", "new_values": "JSON", "old_values": "JSON"}],
    "mod_type": "STRING",
    "value_capture_type": "STRING",
    "number_of_records_in_transaction": "INT64",
    "number_of_partitions_in_transaction": "INT64",
    "transaction_tag": "STRING",
    "is_system_transaction": "BOOL",
}
CHILDREN: dict[str, Any] = {
    "start_timestamp": "TIMESTAMP",
    "record_sequence": "STRING",
    "child_partitions": ["ARRAY", {"token": "STRING", "parent_partition_tokens": ["ARRAY", "STRING"]}],
}
RECORD: list[Any] = [
    "ARRAY",
    {
        "data_change_record": ["ARRAY", DATA],
        "heartbeat_record": ["ARRAY", {"timestamp": "TIMESTAMP"}],
        "child_partitions_record": ["ARRAY", CHILDREN],
    },
]
COLUMN_TYPES = [
    {"name": "k", "type": {"code": "STRING"}, "is_primary_key": True, "ordinal_position": 1},
    {"name": "v", "type": {"code": "STRING"}, "is_primary_key": False, "ordinal_position": 2},
]


def spanner_type(spec: Any) -> T.Type:
    """Return 'INT64' | ['ARRAY', spec] | {name: spec} as Spanner's Type."""
    if isinstance(spec, str):
        return T.Type(code=T.TypeCode[spec])
    if isinstance(spec, list):
        return T.Type(code=T.TypeCode.ARRAY, array_element_type=spanner_type(spec[1]))
    fields = [T.StructType.Field(name=name, type_=spanner_type(kind)) for name, kind in spec.items()]
    return T.Type(code=T.TypeCode.STRUCT, struct_type=T.StructType(fields=fields))


def encoded(spec: Any, value: Any) -> Value:
    """Return a value of such a type as Spanner sends it."""
    if value is None:
        return Value(null_value=0)
    if isinstance(spec, list):
        return Value(list_value=ListValue(values=[encoded(spec[1], item) for item in value]))
    if isinstance(spec, dict):
        return Value(list_value=ListValue(values=[encoded(kind, value.get(name)) for name, kind in spec.items()]))
    if spec == "BOOL":
        return Value(bool_value=value)
    if spec in ("FLOAT64", "FLOAT32") and not isinstance(value, str):
        return Value(number_value=value)
    return Value(string_value=json.dumps(value) if spec == "JSON" else str(value))


def list_of(values: Any) -> Value:
    value = Value()
    value.list_value.SetInParent()
    value.list_value.values.extend(values)
    return value


def cuts(value: Value) -> Iterator[tuple[Value, Value]]:
    """Yield every way in which the protocol lets a value be cut in two."""
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        text = value.string_value
        for i in range(len(text) + 1):
            yield Value(string_value=text[:i]), Value(string_value=text[i:])
    if kind == "list_value":
        items = list(value.list_value.values)
        for i in range(len(items) + 1):
            # Between two elements only where the one before cannot be taken for unfinished.
            if (
                i == 0
                or i == len(items)
                or items[i - 1].WhichOneof("kind") in ("bool_value", "number_value", "null_value")
            ):
                yield list_of(items[:i]), list_of(items[i:])
            if i < len(items):
                for left, right in cuts(items[i]):
                    yield list_of([*items[:i], left]), list_of([right, *items[i + 1 :]])
    if kind == "struct_value":
        names = list(value.struct_value.fields)
        for i in range(1, len(names)):
            left, right = Value(), Value()
            for part, some in ((left, names[:i]), (right, names[i:])):
                for name in some:
                    part.struct_value.fields[name].CopyFrom(value.struct_value.fields[name])
            yield left, right
        for i, name in enumerate(names):
            for first, rest in cuts(value.struct_value.fields[name]):
                left, right = Value(), Value()
                for before in names[:i]:
                    left.struct_value.fields[before].CopyFrom(value.struct_value.fields[before])
                left.struct_value.fields[name].CopyFrom(first)
                right.struct_value.fields[name].CopyFrom(rest)
                for after in names[i + 1 :]:
                    right.struct_value.fields[after].CopyFrom(value.struct_value.fields[after])
                yield left, right


def _cut_at(value: Value, size: int) -> tuple[Value | None, Value, int]:
    """Return the value cut after `size` characters of its texts, as far as it has so many."""
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        text = value.string_value
        if size >= len(text):
            return None, value, size - len(text)
        return Value(string_value=text[:size]), Value(string_value=text[size:]), 0
    if kind == "list_value":
        items = list(value.list_value.values)
        for i, item in enumerate(items):
            left, right, size = _cut_at(item, size)
            if left is not None:
                return list_of([*items[:i], left]), list_of([right, *items[i + 1 :]]), 0
    return None, value, size


def chunks(value: Value, size: int | None) -> Iterator[tuple[Value, bool]]:
    """Yield a value in chunks of so many characters, and whether more is to come."""
    while size is not None:
        left, value, _ = _cut_at(value, size)
        if left is None:
            break
        yield left, True
    yield value, False


@dataclass
class Partition:
    token: str
    start: int
    end: int | None = None
    log: list[tuple[int, dict[str, Any]]] = field(default_factory=list)


@dataclass
class Fault:
    """What happens instead of message number `at` (from 0) of a query of `token`, `times` times.

    In place of a partition's token: the SQL of another query, or the name of a method that answers once.
    """

    token: str | None
    at: int
    code: grpc.StatusCode | None = grpc.StatusCode.UNAVAILABLE  # None: the query ends as if it were complete
    details: str = "planted"
    hang: bool = False
    times: int = 1


@dataclass
class Query:
    token: str | None
    start: str
    end: str
    resume_token: bytes
    heartbeat: int


class FakeSpanner:
    """The server. Partitions P0, P1, ... are alive from `start` on."""

    START = nanoseconds("2026-05-01T09:00:00Z")

    def __init__(
        self,
        postgresql: bool = False,
        partitions: int = 1,
        chunk: int | None = None,
        resume_tokens: bool = True,
        max_streams: int = 1000,
    ) -> None:
        self.postgresql, self.chunk, self.resume_tokens = postgresql, chunk, resume_tokens
        self.last_token = 2**31  # the number of the last message that has a token
        self.stream = "everything"
        self.now = self.START + 3600 * 10**9
        self.partitions = {f"P{i}": Partition(f"P{i}", self.START) for i in range(partitions)}
        self.faults: list[Fault] = []
        self.queries: list[Query] = []
        self.reads: list[bytes] = []  # the resume token of each
        self.rows: list[tuple[str, str]] = []  # of the table T, which one partition holds
        self.sessions = 0
        self.moments: list[int] = []  # at which transactions read, in nanoseconds since 1970
        self.alive: set[str] = set()  # names of sessions
        self.options: dict[str, str] = {}
        self.retention_start = 0
        self.replays = False  # like the emulator's, a resumed query begins at its beginning
        self.forgetful: dict[str, int] = {}  # token: so many queries of it name all its children but the last
        self.together: threading.Barrier | None = None  # partitions' queries answer only when so many are open
        self.on_hang: Callable[[], None] = lambda: None  # again and again while a query hangs
        self.stopped = threading.Event()
        self._transactions = 0
        self._lock = threading.Lock()
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        handlers = {
            "CreateSession": unary(
                self._create_session,
                request_deserializer=T.CreateSessionRequest.deserialize,
                response_serializer=T.Session.serialize,
            ),
            "BeginTransaction": unary(
                self._begin_transaction,
                request_deserializer=T.BeginTransactionRequest.deserialize,
                response_serializer=T.Transaction.serialize,
            ),
            "PartitionRead": unary(
                self._partition_read,
                request_deserializer=T.PartitionReadRequest.deserialize,
                response_serializer=T.PartitionResponse.serialize,
            ),
            "StreamingRead": stream(
                self._read,
                request_deserializer=T.ReadRequest.deserialize,
                response_serializer=lambda sent: sent.SerializeToString(),
            ),
            "ExecuteStreamingSql": stream(
                self._execute,
                request_deserializer=T.ExecuteSqlRequest.deserialize,
                # A benchmark's messages are bytes already.
                response_serializer=lambda sent: sent if isinstance(sent, bytes) else sent.SerializeToString(),
            ),
        }
        self._server = grpc.server(
            futures.ThreadPoolExecutor(512), options=[("grpc.max_concurrent_streams", max_streams)]
        )
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("google.spanner.v1.Spanner", handlers)]
        )
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def __enter__(self) -> "FakeSpanner":
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self._server.stop(0)

    # What happens in the database

    def commit(self, token: str, moment: int, key: str = "k", value: Any = "v", **more: Any) -> dict[str, Any]:
        """Commit a record at so many nanoseconds, in this partition."""
        self._transactions += 1
        record = {
            "commit_timestamp": as_text(moment),
            "record_sequence": "00000000",
            "server_transaction_id": str(self._transactions),
            "is_last_record_in_transaction_in_partition": True,
            "table_name": "T",
            "column_types": COLUMN_TYPES,
            "mods": [{"keys": {"k": key}, "new_values": {"v": value}, "old_values": {}}],
            "mod_type": "INSERT",
            "value_capture_type": "NEW_VALUES",
            "number_of_records_in_transaction": 1,
            "number_of_partitions_in_transaction": 1,
            "transaction_tag": "",
            "is_system_transaction": False,
        } | more
        self._log(token, moment, {"data_change_record": record})
        return record

    def heartbeat(self, token: str, moment: int) -> None:
        self._log(token, moment, {"heartbeat_record": {"timestamp": as_text(moment)}})

    def split(self, token: str, children: list[str], moment: int) -> None:
        self._reshard([token], children, moment)

    def merge(self, tokens: list[str], child: str, moment: int) -> None:
        self._reshard(tokens, [child], moment)

    def _reshard(self, parents: list[str], children: list[str], moment: int) -> None:
        for child in children:
            self.partitions[child] = Partition(child, moment)
        record = {
            "start_timestamp": as_text(moment),
            "record_sequence": "00000001",
            "child_partitions": [{"token": child, "parent_partition_tokens": parents} for child in children],
        }
        for parent in parents:
            self.partitions[parent].end = moment
            self._log(parent, moment, {"child_partitions_record": record})

    def _log(self, token: str, moment: int, record: dict[str, Any]) -> None:
        self.partitions[token].log.append((moment, record))

    # What the client calls

    def _create_session(self, request: Any, context: Any) -> T.Session:
        assert request.session.multiplexed
        self.sessions += 1
        name = f"{request.database}/sessions/s{self.sessions}"
        self.alive.add(name)
        return T.Session(name=name, multiplexed=True)

    def _in_session(self, request: Any, context: grpc.ServicerContext) -> None:
        if request.session not in self.alive:
            context.abort(grpc.StatusCode.NOT_FOUND, f"Session not found: {request.session}")

    def _begin_transaction(self, request: T.BeginTransactionRequest, context: grpc.ServicerContext) -> T.Transaction:
        self._in_session(request, context)
        moment = T.BeginTransactionRequest.pb(request).options.read_only.read_timestamp
        self.moments.append(moment.seconds * 10**9 + moment.nanos)
        return T.Transaction(id=f"transaction of {request.session}".encode())

    def _partition_read(self, request: T.PartitionReadRequest, context: grpc.ServicerContext) -> T.PartitionResponse:
        self._in_session(request, context)
        self._in_transaction(request, context)
        if fault := self._fault("PartitionRead", 0):
            assert fault.code
            context.abort(fault.code, fault.details)
        return T.PartitionResponse(partitions=[T.Partition(partition_token=b"rows of T")])

    def _in_transaction(self, request: Any, context: grpc.ServicerContext) -> None:
        if request.transaction.id != f"transaction of {request.session}".encode():
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Transaction was started in a different session.")

    def _read(self, request: T.ReadRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        with self._lock:
            self.reads.append(request.resume_token)
        self._in_session(request, context)
        self._in_transaction(request, context)
        values = (Value(string_value=text) for row in self.rows for text in row)
        of = [request.partition_token.decode(), request.session]
        yield from self._messages(of, values, _metadata(_texts("k", "v")), request.resume_token, context)

    def _execute(self, request: T.ExecuteSqlRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        self._in_session(request, context)
        wanted = r'"spanner"\."read_json_(\w+)"\(' if self.postgresql else r"\bREAD_(\w+)\("
        found = re.search(wanted, request.sql)
        if not found:
            yield from self._small_query(request, context)
            return
        if found[1] != self.stream:
            context.abort(
                grpc.StatusCode.INVALID_ARGUMENT, f"Table-valued function not found: READ_{found[1]} [at 1:26]"
            )
        read_only = request.transaction.single_use.read_only
        if not read_only.strong or read_only.return_read_timestamp:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "change stream queries must be strong single-use reads")
        values = request._pb.params.fields
        names = ("p1", "p2", "p3", "p4") if self.postgresql else ("start", "end", "token", "heartbeat")
        start, end, token, heartbeat = (
            None if values[name].WhichOneof("kind") == "null_value" else values[name].string_value for name in names
        )
        assert start and end and heartbeat and start.endswith("Z") and end.endswith("Z")
        query = Query(token, start, end, request.resume_token, int(heartbeat))
        with self._lock:
            self.queries.append(query)
        self._check(query, context)
        if self.together and token:
            self.together.wait(20)
        of = [token, request.session, start, end]
        values = (self._value(record) for record in self._records(query))
        yield from self._messages(of, values, _metadata(self._row_type()), request.resume_token, context)

    def _messages(
        self,
        of: list[Any],
        values: Iterator[Value],
        metadata: Any,
        resume_token: bytes,
        context: grpc.ServicerContext,
    ) -> Iterator[Any]:
        """Yield values in messages, from a resume token on; `of`: the request, first what its faults are planted by."""
        skip = 0
        if resume_token:
            request, number = json.loads(resume_token)
            skip = 0 if self.replays else int(number) + 1
            if request != of:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the resume token is of another request")
        number = -1
        for value in values:
            for part, more in chunks(value, self.chunk):
                number += 1
                if number < skip:
                    continue
                fault = self._fault(of[0], number)
                if fault and fault.hang:
                    while context.is_active() and not self.stopped.wait(0.05):
                        self.on_hang()
                    return
                if fault and fault.code is None:
                    return
                if fault and fault.code:
                    context.abort(fault.code, fault.details)
                message = T.PartialResultSet.pb()(values=[part], chunked_value=more)
                if self.resume_tokens and number <= self.last_token:
                    message.resume_token = json.dumps([of, number]).encode()
                if number == 0:
                    message.metadata.CopyFrom(metadata)
                yield message
        if number < 0:
            yield T.PartialResultSet.pb()(metadata=metadata)
        fault = self._fault(of[0], number + 1)  # after the last message
        if fault and fault.code:
            context.abort(fault.code, fault.details)

    def _check(self, query: Query, context: grpc.ServicerContext) -> None:
        if nanoseconds(query.start) < self.retention_start:
            context.abort(
                grpc.StatusCode.OUT_OF_RANGE, "Specified start_timestamp is too far in the past. Please specify a later"
            )
        if not 1000 <= query.heartbeat <= 300_000:
            context.abort(grpc.StatusCode.OUT_OF_RANGE, "heartbeat_milliseconds must be within 1000 and 300000")
        if nanoseconds(query.end) > self.now:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "a window that ends in the future")
        if query.token is None:
            return
        partition = self.partitions.get(query.token)
        if partition is None:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"Specified partition_token is invalid: {query.token}")
            return
        start = nanoseconds(query.start)
        if start < partition.start or (partition.end is not None and start > partition.end):
            context.abort(grpc.StatusCode.OUT_OF_RANGE, "Specified start_timestamp is invalid for the partition")

    def _fault(self, token: str | None, number: int) -> Fault | None:
        with self._lock:
            for fault in self.faults:
                if fault.token == token and fault.at == number and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None

    def _records(self, query: Query) -> Iterator[dict[str, Any]]:
        start, end = nanoseconds(query.start), nanoseconds(query.end)
        if query.token is None:
            alive = [p for p in self.partitions.values() if p.start <= start and (p.end is None or start < p.end)]
            for i, partition in enumerate(alive):
                yield {
                    "child_partitions_record": {
                        "start_timestamp": query.start,
                        "record_sequence": f"{i:08d}",
                        "child_partitions": [{"token": partition.token, "parent_partition_tokens": []}],
                    }
                }
            return
        forgets = self.forgetful.get(query.token, 0) > 0
        if forgets:
            self.forgetful[query.token] -= 1
        for moment, record in sorted(self.partitions[query.token].log, key=lambda entry: entry[0]):
            if forgets and "child_partitions_record" in record:
                children = record["child_partitions_record"]
                named = children["child_partitions"][:-1]
                record = {"child_partitions_record": children | {"child_partitions": named}}
            if start <= moment <= end:
                yield record

    def _value(self, record: dict[str, Any]) -> Value:
        if self.postgresql:
            text = re.sub(r'(_timestamp": "|"timestamp": ")([^"]*?)Z"', r'\1\2+00:00"', json.dumps(record))
            return Value(string_value=text)
        return encoded(RECORD, [{kind: [record[kind]] if kind in record else [] for kind in RECORD[1]}])

    def _row_type(self) -> T.StructType:
        if self.postgresql:
            kind = T.Type(code=T.TypeCode.JSON, type_annotation=T.TypeAnnotationCode.PG_JSONB)
            return T.StructType(fields=[T.StructType.Field(name=f"read_json_{self.stream}", type_=kind)])
        return T.StructType(fields=[T.StructType.Field(name="ChangeRecord", type_=spanner_type(RECORD))])

    @property
    def _schema(self) -> str:
        return "public" if self.postgresql else ""

    def _small_query(self, request: T.ExecuteSqlRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        rows: list[list[str]] = []
        if "database_options" in request.sql:
            rows = [["POSTGRESQL" if self.postgresql else "GOOGLE_STANDARD_SQL"]]
        elif "change_stream_options" in request.sql:
            rows = [[name, value] for name, value in self.options.items()]
        elif re.search(r"[\"`]all[\"`]", request.sql):
            rows = [["YES"]]
        elif "change_streams" in request.sql:
            rows = [[self.stream]]
        elif "information_schema.columns" in request.sql:
            rows = [[self._schema, "T", "k", "1"], [self._schema, "T", "v", "2"]]
        elif "index_columns" in request.sql:
            rows = [[self._schema, "T", "k"]]
        elif request.sql == "SELECT 1":
            rows = [["1"]]
        width = len(rows[0]) if rows else 2
        metadata = _metadata(_texts(*(f"c{i}" for i in range(width))))
        metadata.transaction.read_timestamp.seconds = self.now // 10**9
        metadata.transaction.read_timestamp.nanos = self.now % 10**9
        values = (Value(string_value=text) for row in rows for text in row)
        yield from self._messages([request.sql], values, metadata, b"", context)


def _texts(*names: str) -> T.StructType:
    return T.StructType(fields=[T.StructType.Field(name=name, type_=spanner_type("STRING")) for name in names])


def _metadata(row_type: T.StructType) -> Any:
    return T.ResultSetMetadata.pb(T.ResultSetMetadata(row_type=row_type))
