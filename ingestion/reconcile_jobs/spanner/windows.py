"""A window of a change stream: every record committed from one timestamp to another, read partition by partition.

The initial query, without a token, names the partitions that are alive at the window's start. Each is read to the
window's end; where it ends before, its children are read by the reader of the smallest of their parents' tokens: each
token once, with no coordination. What neither ends nor has children is a leaf; the leaves of a window are the
partitions that are alive at its end.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.cloud.spanner_v1 import types
from google.protobuf.struct_pb2 import Struct

from reconcile_jobs.process.errors import Fault, UsageError
from reconcile_jobs.spanner.queries import Client, DatabaseName, text_value
from reconcile_jobs.spanner.stream_decoder import (
    MUTABLE_KEY_RANGE,
    ChildPartitions,
    DataChange,
    Heartbeat,
    Record,
    RecordDecoder,
    Rows,
    TornResult,
)
from reconcile_jobs.timestamps import as_text, nanoseconds, sort_key

__all__ = ["ChangeStream", "Leaf", "Listing", "find_change_stream", "list_partitions", "read_partitions"]

# Heartbeat intervals without a message after which a query is taken for dead.
PATIENCE = 10

# Queries of one reader that are open at a time. gRPC holds back what is not yet asked for.
OPEN_AHEAD = 200

# Attempts to hear from a query what became of its partition.
_ENDS_UNHEARD = 5


@dataclass(frozen=True)
class ChangeStream:
    """A change stream and how to query it; `heartbeat` in milliseconds, 1,000 to 300,000."""

    database: DatabaseName
    name: str
    postgresql: bool = False
    heartbeat: int = 10_000

    def query(self, session: str, start: str, end: str, token: str | None) -> Any:
        """Return the request for the records of a partition, or of the initial query; both ends are included."""
        if self.postgresql:
            names = ("p1", "p2", "p3", "p4")
            sql = f'SELECT * FROM "spanner"."read_json_{self.name}"($1, $2, $3, $4, null)'
        else:
            names = ("start", "end", "token", "heartbeat")
            sql = (
                f"SELECT ChangeRecord FROM READ_{self.name}(start_timestamp => @start, end_timestamp => @end, "
                "partition_token => @token, heartbeat_milliseconds => @heartbeat)"
            )
        values = (start, end, token, str(self.heartbeat))
        codes = (types.TypeCode.TIMESTAMP, types.TypeCode.TIMESTAMP, types.TypeCode.STRING, types.TypeCode.INT64)
        return types.ExecuteSqlRequest.pb(
            types.ExecuteSqlRequest(
                session=session,
                sql=sql,
                params=Struct(fields={name: text_value(value) for name, value in zip(names, values, strict=True)}),
                param_types={name: types.Type(code=code) for name, code in zip(names, codes, strict=True)},
                transaction=types.TransactionSelector(
                    single_use=types.TransactionOptions(read_only=types.TransactionOptions.ReadOnly(strong=True))
                ),
            )
        )


@dataclass(frozen=True)
class Listing:
    """What the initial query says: partitions with the timestamps they begin at, and any records that it brings."""

    tokens: dict[str, str]
    records: list[DataChange] = field(default_factory=list)


@dataclass(frozen=True)
class Leaf:
    """A partition that was read to the window's end."""

    token: str


def find_change_stream(client: Client, name: str, heartbeat: int = 10_000) -> ChangeStream:
    """Return the change stream of that name, with the dialect of its database; `heartbeat` in milliseconds.

    Raises UsageError if the change stream cannot be read.
    """
    # The name becomes part of a query.
    if not re.fullmatch(r"[A-Za-z]\w*", name):
        raise UsageError(f"{name} is not a valid name of a change stream: use only letters, digits and _.")
    rows = client.rows(
        "SELECT option_value FROM information_schema.database_options WHERE option_name = 'database_dialect'"
    )
    postgresql = any(row[0].string_value == "POSTGRESQL" for row in rows)
    streams = [
        row[0].string_value
        for row in client.rows("SELECT change_stream_name FROM information_schema.change_streams ORDER BY 1")
    ]
    if name not in streams:
        found = f"it has {', '.join(streams)}" if streams else "it has none"
        raise UsageError(f"There is no change stream {name} in {client.database} ({found}): name one with --stream.")
    where = f"WHERE change_stream_name = '{name}'"
    for row in client.rows(f"SELECT option_name, option_value FROM information_schema.change_stream_options {where}"):
        if row[0].string_value == "partition_mode" and "IMMUTABLE" not in row[1].string_value.upper():
            raise UsageError(MUTABLE_KEY_RANGE.format(stream=name))
    return ChangeStream(client.database, name, postgresql, heartbeat)


def list_partitions(client: Client, stream: ChangeStream, start: int, end: int) -> Listing:
    """Return the partitions that are alive at `start`, both in nanoseconds since 1970. Raises JobError."""
    tokens: dict[str, str] = {}
    records: list[DataChange] = []
    partition = _Partition(client, stream, None, as_text(start), as_text(end))
    for record in partition.records():
        if isinstance(record, ChildPartitions):
            for token, _ in record.children:
                tokens[token] = max(record.start, as_text(start), key=nanoseconds)
        elif isinstance(record, DataChange):
            records.append(record)
    if not tokens:
        raise Fault(
            f"The change stream {stream.name} has no partition at {as_text(start)}: run the same command again."
        )
    return Listing(tokens, records)


def read_partitions(
    client: Client,
    stream: ChangeStream,
    tokens: Sequence[tuple[str, str]],
    end: int,
    alive_at_end: Collection[str] | None = None,
    lenient: bool = False,
    open_ahead: int = OPEN_AHEAD,
) -> Iterator[tuple[str, DataChange] | Leaf]:
    """Yield what partitions and their descendants hold up to `end`, each record with its token, and the leaves.

    `tokens`: each with the timestamp to begin at. A query that ends without a child although its partition is not
    among `alive_at_end` is made again; where that does not help, Fault is raised, or with `lenient` it counts as a
    leaf. Raises JobError.
    """
    waiting = deque(tokens)
    opened: deque[_Partition] = deque()
    until = as_text(end)
    try:
        while waiting or opened:
            while waiting and len(opened) < open_ahead:
                token, start = waiting.popleft()
                opened.append(_Partition(client, stream, token, start, until))
                opened[-1].open()
            partition = opened[0]
            assert partition.token is not None
            attempts = 0
            while True:
                for record in partition.records():
                    if isinstance(record, DataChange):
                        yield partition.token, record
                children = partition.children
                if children or alive_at_end is None or partition.token in alive_at_end:
                    break
                # A partition may end within the nanosecond after the window.
                if attempts == 0 and partition.token in list_partitions(client, stream, end + 1, end + 1).tokens:
                    break
                attempts += 1
                if attempts == _ENDS_UNHEARD:
                    if lenient:
                        break
                    raise Fault(
                        f"A query of the change stream {stream.name} ended {attempts} times before {until} without "
                        "the end of its partition or its successors; nothing of this window was appended: run the "
                        "same command again, or add --partition-check warn."
                    )
                partition.again(attempts)
            opened.popleft().close()
            for child, (start, parents) in children.items():
                if partition.token == min(parents, default=partition.token):
                    waiting.append((child, start))
            if not children:
                yield Leaf(partition.token)
    finally:
        for partition in opened:
            partition.close()


class _Partition:
    """The query of one partition: resumed or made again until it has ended, each record given once."""

    def __init__(self, client: Client, stream: ChangeStream, token: str | None, start: str, end: str) -> None:
        self.client, self.stream, self.token = client, stream, token
        self.children: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._start, self._end = start, end
        # The last moment of which something was seen, and what was seen of it: what comes again is older, or known.
        self._position = sort_key(start)
        self._seen: set[tuple[str, str]] = set()
        self._rows = Rows()
        self._decoder: RecordDecoder | None = None
        self._call: Any = None
        self._session = ""
        self._failures = 0

    def open(self, resume_token: bytes = b"") -> None:
        """Start the query, from the last moment seen or at a resume token."""
        # The request that a token belongs to must be given again as it was.
        start = self._start if resume_token else self._position + "Z"
        self._start, self._session = start, self.client.session
        request = self.stream.query(self._session, start, self._end, self.token)
        request.resume_token = resume_token
        patience = PATIENCE * self.stream.heartbeat / 1000
        self._call = self.client.open("ExecuteStreamingSql", request, patience)

    def close(self) -> None:
        """Cancel the query if it is still going on."""
        if self._call is not None:
            self._call.close()
            self._call = None

    def again(self, failures: int) -> None:
        """Prepare for the query to be made once more from the last moment seen, after a pause."""
        self.close()
        self._rows = Rows()
        self.client.pause(failures)

    def records(self) -> Iterator[Record]:
        """Yield the records up to the end of the query, but no heartbeats. Raises JobError."""
        resume_token = b""
        while True:
            try:
                if self._call is None:
                    self.open(resume_token)
                for message in self._call.messages():
                    for row in self._rows.add(message):
                        if self._decoder is None:
                            self._decoder = RecordDecoder(self._rows.fields)
                        for record in self._decoder.records(row):
                            if self._is_new(record):
                                self._failures = 0
                                if not isinstance(record, Heartbeat):
                                    yield record
                self._rows.end()
                self.close()
                return
            except (grpc.RpcError, TornResult) as problem:
                resumed = resume_token
                self.close()
                self._failures = self.client.failed(problem, self._failures)
                resume_token = self._rows.rewind()
                in_session = self.client.session == self._session
                if not resume_token or resume_token == resumed or not self._rows.whole or not in_session:
                    # From the last moment seen, and not at the token: if there is no token, if it led nowhere, if it is
                    # of another session, or if a value is unfinished at it. A resumed query may begin at its beginning
                    # (the emulator's do), and then does not bring the rest of that value.
                    resume_token = b""
                    self._rows = Rows()

    def _is_new(self, record: Record) -> bool:
        if isinstance(record, DataChange):
            if record.committed < self._position or (
                record.committed == self._position and record.identity in self._seen
            ):
                return False
            self._advance(record.committed)
            self._seen.add(record.identity)
            return True
        if isinstance(record, Heartbeat):
            later = record.moment > self._position
            self._advance(record.moment)
            return later
        # The position stays: that all children were named is known only at the end of the query.
        known = len(self.children)
        for token, parents in record.children:
            self.children[token] = (record.start, parents)
        return len(self.children) > known

    def _advance(self, moment: str) -> None:
        if moment > self._position:
            self._position = moment
            self._seen.clear()
