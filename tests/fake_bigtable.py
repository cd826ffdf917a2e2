"""An in-process google.bigtable.v2 with change streams, which no emulator has, over a real socket.

It has one table, replicated between clusters, of which the application profile reads one, `c1`. What is committed on
another cluster reaches its log when the test lets it, whatever the watermark has become meanwhile. The table's cells
are folded from the commits that arrived, in the server's own order: commit timestamp, then tiebreaker. A partition's
stream follows the log of `c1`; where partitions split or merge it is closed with tokens, and a range that is no
partition (any more) is closed at once. Tokens are positions in the log, for each part of a range.
"""

import base64
import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Self

import grpc
from google.cloud.bigtable_v2 import types as T
from google.protobuf.json_format import MessageToDict

Range = tuple[bytes, bytes]  # the first key, and the end: b"" is that of the table
Cell = tuple[bytes, str, bytes, int]  # row key, family, qualifier, timestamp

TABLE = "projects/p/instances/i/tables/t"
GARBAGE_COLLECTION = 2

Mutation = T.Mutation.pb()
_Response = T.ReadChangeStreamResponse.pb()
_DataChange = T.ReadChangeStreamResponse.DataChange.pb()
_Chunk = T.ReadChangeStreamResponse.MutationChunk.pb()
_CloseStream = T.ReadChangeStreamResponse.CloseStream.pb()
_Token = T.StreamContinuationToken.pb()


def set_cell(family: str, qualifier: bytes, micros: int, value: bytes) -> Any:
    cell = {"family_name": family, "column_qualifier": qualifier, "timestamp_micros": micros, "value": value}
    return Mutation(set_cell=cell)


def delete_column(family: str, qualifier: bytes, start: int = 0, end: int = 0) -> Any:
    times = {"start_timestamp_micros": start, "end_timestamp_micros": end}
    return Mutation(delete_from_column={"family_name": family, "column_qualifier": qualifier, "time_range": times})


def delete_family(family: str) -> Any:
    return Mutation(delete_from_family={"family_name": family})


def delete_row() -> Any:
    return Mutation(delete_from_row={})


def holds(rows: Range, key: bytes) -> bool:
    return rows[0] <= key and (not rows[1] or key < rows[1])


def common(one: Range, other: Range) -> Range | None:
    """The rows that two ranges share."""
    start = max(one[0], other[0])
    ends = [end for end in (one[1], other[1]) if end]
    end = min(ends) if ends else b""
    return None if end and start >= end else (start, end)


def exactly(parts: Iterable[Range], whole: Range) -> bool:
    """Whether ranges cover another one, each key once."""
    parts = sorted(parts)
    if not parts or parts[0][0] != whole[0] or parts[-1][1] != whole[1]:
        return False
    return all(left[1] and left[1] == right[0] for left, right in pairwise(parts))


def moment(micros: int) -> dict[str, int]:
    return {"seconds": micros // 10**6, "nanos": micros % 10**6 * 1000}


def text(micros: int) -> str:
    return f"{datetime.fromtimestamp(micros // 10**6, UTC):%Y-%m-%dT%H:%M:%S}.{micros % 10**6:06d}000Z"


def micros_of(stamp: Any) -> int:
    return int(stamp.seconds * 10**6 + stamp.nanos // 1000)


@dataclass
class Commit:
    """One row's mutation, as a cluster applied it."""

    row: bytes
    mutations: list[Any]
    micros: int
    tiebreaker: int
    cluster: str
    kind: int = 1

    @property
    def order(self) -> tuple[int, int]:
        return self.micros, self.tiebreaker

    def record(self) -> dict[str, Any]:
        """What is staged of it, but for token and watermark."""
        return {
            "row_key": base64.b64encode(self.row).decode(),
            "type": {1: "user", 2: "garbage_collection"}.get(self.kind, str(self.kind)),
            "source_cluster_id": self.cluster,
            "commit_timestamp": text(self.micros),
            "tiebreaker": self.tiebreaker,
            "entries": [_entry(mutation) for mutation in self.mutations],
        }


def _entry(mutation: Any) -> dict[str, Any]:
    kind = mutation.WhichOneof("mutation")
    if kind is None:
        return {"unknown": {"protobuf": base64.b64encode(mutation.SerializeToString()).decode()}}
    content = MessageToDict(
        getattr(mutation, kind), preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    if kind == "set_cell":
        names = {"family": "family_name", "qualifier": "column_qualifier", "value": "value"}
        entry = {name: content[field] for name, field in names.items()}
        return {kind: entry | {"timestamp_micros": mutation.set_cell.timestamp_micros}}
    if kind == "delete_from_column":
        times = mutation.delete_from_column.time_range
        entry = {
            "family": content["family_name"],
            "qualifier": content["column_qualifier"],
            "start_timestamp_micros": times.start_timestamp_micros,
            "end_timestamp_micros": times.end_timestamp_micros,
        }
        return {kind: entry}
    if kind == "delete_from_family":
        return {kind: {"family": content["family_name"]}}
    return {kind: MessageToDict(getattr(mutation, kind), preserving_proto_field_name=True)}


@dataclass
class Fault:
    """Fails a call before the message after `after` of them; `code` None: nothing more comes, "end": it ends."""

    method: str
    after: int
    code: grpc.StatusCode | str | None
    details: str = "planted"
    row: bytes | None = None  # only a call whose range holds it
    within: bool = False  # only in the middle of a change, or of a row


@dataclass
class _Position:
    """How far the parts of a range were read; commits before `start` are left out."""

    parts: list[tuple[Range, int]]
    start: int

    def token(self) -> str:
        parts = [[rows[0].hex(), rows[1].hex(), at] for rows, at in self.parts]
        return base64.urlsafe_b64encode(json.dumps({"parts": parts, "start": self.start}).encode()).decode()

    @classmethod
    def of(cls, token: str) -> "_Position":
        told = json.loads(base64.urlsafe_b64decode(token))
        parts = [((bytes.fromhex(start), bytes.fromhex(end)), at) for start, end, at in told["parts"]]
        return cls(parts, told["start"])

    def within(self, rows: Range) -> "_Position":
        parts = [(part, at) for known, at in self.parts if (part := common(known, rows))]
        return _Position(parts, self.start)

    def read(self, at: int) -> None:
        """Everything before this place in the log has been read."""
        self.parts = [(rows, max(at, old)) for rows, old in self.parts]

    def wants(self, at: int, commit: Commit) -> bool:
        return commit.micros >= self.start and any(holds(rows, commit.row) and at >= old for rows, old in self.parts)


@dataclass
class FakeBigtable:
    """The server. What tests change of it they may change while it runs."""

    ranges: list[Range] = field(default_factory=lambda: [(b"", b"m"), (b"m", b"")])
    value_chunk: int = 10**9  # bytes of a value in one message
    entries_per_message: int = 10**9
    enabled: bool = True
    profiles: dict[str, bool] = field(default_factory=lambda: {"single": True, "everywhere": False, "default": False})
    samples: list[bytes] = field(default_factory=list)
    seed: int = 0
    workers: int = 64
    ahead: int = 0  # microseconds by which its clock is before the machine's
    fault_rate: float = 0.0  # of messages before which the call fails
    too_old: tuple[grpc.StatusCode, str] = (
        grpc.StatusCode.OUT_OF_RANGE,
        "The continuation token is older than the change stream retention period.",
    )

    def __post_init__(self) -> None:
        self.log: list[Commit] = []  # of c1, in the order of arrival
        self._by_row: dict[bytes, list[Commit]] = {}
        self.on_the_way: list[Commit] = []  # committed on other clusters, not yet in c1
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, Any]] = []
        self.closings: list[tuple[Range, list[Range]]] = []  # ranges that were closed, and the new partitions
        self.held: dict[bytes, int] = {}  # row key -> watermark of its partition, in microseconds
        self.oldest = 0  # place in the log: what is before it fell out of the retention period
        self.oldest_start = 0  # microseconds
        self.on_hang: Callable[[], None] = lambda: None  # again and again while a call hangs
        self._answers: dict[str, Any] = {}  # what a test puts in the place of a method
        self._last = 0
        self._ties = 0
        self._random = random.Random(self.seed)
        self._changed = threading.Condition()
        self._stopped = False

    def __enter__(self) -> Self:
        handlers = {}
        for method, answer in (
            ("GenerateInitialChangeStreamPartitions", self._initial),
            ("ReadChangeStream", self._read),
            ("ReadRows", self._rows),
            ("SampleRowKeys", self._samples),
        ):
            request = getattr(T, f"{method}Request").pb()
            handlers[method] = grpc.unary_stream_rpc_method_handler(
                self._faulty(method, answer),
                request.FromString,
                lambda sent: sent if isinstance(sent, bytes) else sent.SerializeToString(),
            )
        self._server = grpc.server(futures.ThreadPoolExecutor(self.workers))
        service = grpc.method_handlers_generic_handler("google.bigtable.v2.Bigtable", handlers)
        self._server.add_generic_rpc_handlers([service])
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._server.stop(0)

    # What a test does

    def now(self) -> int:
        """The server's clock, in microseconds: later at each call."""
        with self._changed:
            self._last = max(self._last + 1, time.time_ns() // 1000 + self.ahead)
            return self._last

    def commit(
        self,
        row: bytes,
        *mutations: Any,
        cluster: str = "c1",
        micros: int | None = None,
        tiebreaker: int | None = None,
        arrives: bool = True,
        kind: int = 1,
    ) -> Commit | None:
        """Apply a row's mutation on a cluster, and on c1 too unless it is still to arrive. None: it changes nothing."""
        with self._changed:
            at = self.now() if micros is None else micros
            applied: list[Any] = []
            for mutation in mutations:
                applied += self._as_applied(row, mutation, at)
            if not applied:
                return None
            self._ties += 1
            done = Commit(row, applied, at, self._ties if tiebreaker is None else tiebreaker, cluster, kind)
            if kind == GARBAGE_COLLECTION:
                done.cluster = ""
            if arrives:
                self._arrived(done)
            else:
                self.on_the_way.append(done)
            return done

    def _arrived(self, commit: Commit) -> None:
        self.log.append(commit)
        self._by_row.setdefault(commit.row, []).append(commit)
        self._changed.notify_all()

    def _as_applied(self, row: bytes, mutation: Any, at: int) -> list[Any]:
        kind = mutation.WhichOneof("mutation")
        if kind == "delete_from_row":
            families = {family for _, family, _, _ in self._cells_of(row)}
            return [delete_family(family) for family in sorted(families)]
        if kind == "set_cell" and mutation.set_cell.timestamp_micros == -1:
            cell = mutation.set_cell
            return [set_cell(cell.family_name, cell.column_qualifier, at // 1000 * 1000, cell.value)]
        return [mutation]

    def replicate(self, count: int | None = None) -> None:
        """Let what is on the way arrive in c1, the oldest first."""
        with self._changed:
            number = len(self.on_the_way) if count is None else count
            arrived, self.on_the_way = self.on_the_way[:number], self.on_the_way[number:]
            for commit in arrived:
                self._arrived(commit)

    def collect_garbage(self, row: bytes, versions: int = 1) -> Commit | None:
        """Delete all but the newest versions of each of a row's columns."""
        columns: dict[tuple[str, bytes], list[int]] = {}
        for _, family, qualifier, micros in self._cells_of(row):
            columns.setdefault((family, qualifier), []).append(micros)
        deletions = [
            delete_column(family, qualifier, 0, sorted(all_of_it)[-versions])
            for (family, qualifier), all_of_it in sorted(columns.items())
            if len(all_of_it) > versions
        ]
        return self.commit(row, *deletions, kind=GARBAGE_COLLECTION)

    def reshard(self, old: list[Range], new: list[Range]) -> None:
        """Replace partitions by others of the same rows: one by several, several by one, or both at once."""
        assert exactly(old, (min(old)[0], max(old)[1])) and exactly(new, (min(old)[0], max(old)[1]))
        with self._changed:
            self.ranges = sorted([rows for rows in self.ranges if rows not in old] + new)
            self._changed.notify_all()

    def split(self, key: bytes) -> None:
        """Split the partition that holds the key in front of it."""
        (rows,) = [rows for rows in self.ranges if holds(rows, key)]
        if rows[0] != key:
            self.reshard([rows], [(rows[0], key), (key, rows[1])])

    def merge(self, key: bytes) -> None:
        """Merge the partition that begins with the key into the one before it."""
        (left,) = [rows for rows in self.ranges if rows[1] == key and key]
        (right,) = [rows for rows in self.ranges if rows[0] == key]
        self.reshard([left, right], [(left[0], right[1])])

    def forget(self) -> None:
        """Let all that is in the log fall out of the retention period."""
        with self._changed:
            self.oldest, self.oldest_start = len(self.log), self.now()

    def cells(self) -> dict[Cell, bytes]:
        """The table: what the commits that arrived come to, in the server's own order."""
        found: dict[Cell, bytes] = {}
        with self._changed:
            for row in self._by_row:
                found |= self._cells_of(row)
        return found

    def _cells_of(self, row: bytes) -> dict[Cell, bytes]:
        cells: dict[Cell, bytes] = {}
        for commit in sorted(self._by_row.get(row, ()), key=lambda c: c.order):
            for mutation in commit.mutations:
                self._apply(cells, row, mutation)
        return cells

    @staticmethod
    def _apply(cells: dict[Cell, bytes], row: bytes, mutation: Any) -> None:
        kind = mutation.WhichOneof("mutation")
        if kind == "set_cell":
            cell = mutation.set_cell
            cells[row, cell.family_name, cell.column_qualifier, cell.timestamp_micros] = cell.value
        elif kind == "delete_from_column":
            column = mutation.delete_from_column
            start, end = column.time_range.start_timestamp_micros, column.time_range.end_timestamp_micros
            for cell in list(cells):
                named = cell[1:3] == (column.family_name, column.column_qualifier)
                if named and start <= cell[3] and (not end or cell[3] < end):
                    del cells[cell]
        elif kind == "delete_from_family":
            for cell in list(cells):
                if cell[1] == mutation.delete_from_family.family_name:
                    del cells[cell]

    # What it answers

    def _faulty(self, method: str, answer: Any) -> Any:
        def answered(request: Any, context: Any) -> Iterator[Any]:
            with self._changed:
                self.requests.append((method, request))
            self._check(request, context)
            within, count = False, -1
            for count, message in enumerate(self._answers.get(method, answer)(request, context)):
                if not context.is_active():
                    return  # nobody hears it any more: the fault is for the next one
                self._fail(method, request, context, count, within)
                if any(fault.code == "ended" for fault in self.faults):
                    self.faults = [fault for fault in self.faults if fault.code != "ended"]
                    return
                yield message
                within = _is_within(message)
            if method == "ReadRows" and context.is_active():  # after the last row, and before its end
                self._fail(method, request, context, count + 1, within)

        return answered

    def _fail(self, method: str, request: Any, context: Any, count: int, within: bool) -> None:
        if self.fault_rate and self._random.random() < self.fault_rate:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the connection was lost")
        for fault in self.faults:
            if fault.method != method or count < fault.after or (fault.within and not within):
                continue
            if fault.row is not None and not holds(_range(request.partition.row_range), fault.row):
                continue
            if fault.code == "end":
                fault.code = "ended"
                return
            self.faults.remove(fault)
            if fault.code is None:
                while context.is_active() and not self._stopped:
                    time.sleep(0.02)
                    self.on_hang()
            else:
                context.abort(fault.code, fault.details)
            return

    def _check(self, request: Any, context: Any) -> None:
        if request.table_name != TABLE:
            context.abort(grpc.StatusCode.NOT_FOUND, f'Table not found: "{request.table_name}"')
        if request.app_profile_id not in self.profiles:
            context.abort(grpc.StatusCode.NOT_FOUND, f"App profile not found: {request.app_profile_id}")
        if "ChangeStream" not in type(request).__name__:
            return
        if not self.profiles[request.app_profile_id]:
            context.abort(
                grpc.StatusCode.FAILED_PRECONDITION,
                "Single cluster routing must be configured on the app profile to read change streams.",
            )
        if not self.enabled:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "Change streams are not enabled on the table.")

    def _initial(self, request: Any, context: Any) -> Iterator[Any]:
        response = T.GenerateInitialChangeStreamPartitionsResponse.pb()
        for rows in sorted(self.ranges, key=lambda _: self._random.random()):
            yield response(partition=_partition(rows))

    def _samples(self, request: Any, context: Any) -> Iterator[Any]:
        for number, key in enumerate([*sorted(self.samples), b""]):
            yield T.SampleRowKeysResponse.pb()(row_key=key, offset_bytes=1000 * number)

    def _asked(self, request: Any, context: Any) -> _Position:
        """Return the position to read from. Aborts what the service does not take."""
        me = _range(request.partition.row_range)
        if request.WhichOneof("start_from") == "start_time":
            start = micros_of(request.start_time)
            if start > self.now():
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "start_time must not be in the future.")
            if start < self.oldest_start:
                context.abort(
                    grpc.StatusCode.INVALID_ARGUMENT, "start_time must be within the change stream retention period."
                )
            return _Position([(me, 0)], start)
        tokens = request.continuation_tokens.tokens
        if not exactly([_range(token.partition.row_range) for token in tokens], me):
            context.abort(
                grpc.StatusCode.INVALID_ARGUMENT, "The continuation tokens' partitions do not cover the partition."
            )
        positions = [_Position.of(token.token) for token in tokens]
        for token, position in zip(tokens, positions, strict=True):
            if not exactly([rows for rows, _ in position.parts], _range(token.partition.row_range)):
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The token is not of this partition.")
        parts = [part for position in positions for part in position.parts]
        if any(at < self.oldest for _, at in parts):
            context.abort(*self.too_old)
        return _Position(parts, max(position.start for position in positions))

    def _read(self, request: Any, context: Any) -> Iterator[Any]:
        me = _range(request.partition.row_range)
        position = self._asked(request, context)
        heartbeat = request.heartbeat_duration.ToNanoseconds() / 10**9 or 5.0
        following = time.monotonic() + heartbeat
        at = min(place for _, place in position.parts)
        watermark = 0  # of a stream that is behind, not that of now
        while context.is_active() and not self._stopped:
            with self._changed:
                if at >= len(self.log) and me in self.ranges:
                    self._changed.wait(max(0.0, min(0.1, following - time.monotonic())))
                live, end = list(self.ranges), len(self.log)
                found = self.log[at:end]
                rest = self._random.random() < 0.5  # whether a partition that ended still gives what it has
            if me not in live and not rest:
                yield self._close(me, position, live)
                return
            for place, commit in enumerate(found, at):
                if not position.wants(place, commit):
                    continue
                position.read(place + 1)
                watermark = max(watermark, self._watermark(me, commit.micros))
                yield from self._messages(commit, position.token(), watermark)
                following = time.monotonic() + heartbeat
            at = end
            position.read(end)
            if me not in live:
                yield self._close(me, position, live)
                return
            if time.monotonic() >= following:
                following += heartbeat
                token = _Token(partition=_partition(me), token=position.token())
                watermark = max(watermark, self._watermark(me, self.now()))
                estimate = moment(watermark)
                yield _Response(heartbeat={"continuation_token": token, "estimated_low_watermark": estimate})

    def _close(self, me: Range, position: _Position, live: list[Range]) -> Any:
        close = _CloseStream()
        close.status.code, close.status.message = grpc.StatusCode.OUT_OF_RANGE.value[0], "The partition has changed."
        new = [rows for rows in live if common(rows, me)]
        for rows in new:
            part = common(rows, me)
            assert part is not None
            close.continuation_tokens.add(partition=_partition(part), token=position.within(part).token())
            close.new_partitions.add(row_range=_partition(rows).row_range)
        with self._changed:
            self.closings.append((me, new))
        return _Response(close_stream=close)

    def _watermark(self, rows: Range, micros: int) -> int:
        """What is estimated of a partition that was read up to a commit: that, unless the test holds it back."""
        return min([micros, *(held for key, held in self.held.items() if holds(rows, key))])

    def _messages(self, commit: Commit, token: str, watermark: int) -> Iterator[Any]:
        """One change in as many messages as it takes."""
        portions: list[list[Any]] = [[]]
        for mutation in commit.mutations:
            for chunk in self._chunks(mutation):
                portions[-1].append(chunk)
                unfinished = chunk.HasField("chunk_info") and not chunk.chunk_info.last_chunk
                if unfinished or len(portions[-1]) >= self.entries_per_message:
                    portions.append([])
        if not portions[-1] and len(portions) > 1:
            portions.pop()
        for number, chunks in enumerate(portions):
            change = _DataChange(type_=commit.kind if number == 0 else 3, chunks=chunks)
            if number == 0:
                change.row_key, change.tiebreaker = commit.row, commit.tiebreaker
                change.source_cluster_id = commit.cluster
                stamp = moment(commit.micros)
                change.commit_timestamp.seconds, change.commit_timestamp.nanos = stamp["seconds"], stamp["nanos"]
            if number == len(portions) - 1:
                change.done, change.token = True, token
                stamp = moment(watermark)
                change.estimated_low_watermark.seconds = stamp["seconds"]
                change.estimated_low_watermark.nanos = stamp["nanos"]
            yield _Response(data_change=change)

    def _chunks(self, mutation: Any) -> Iterator[Any]:
        if mutation.WhichOneof("mutation") != "set_cell" or len(mutation.set_cell.value) <= self.value_chunk:
            yield _Chunk(mutation=mutation)
            return
        value = mutation.set_cell.value
        for offset in range(0, len(value), self.value_chunk):
            chunk = _Chunk(mutation=mutation)
            if offset:  # what a client is to ignore
                chunk.mutation.CopyFrom(set_cell("ignored", b"ignored", 1, b""))
            chunk.mutation.set_cell.value = value[offset : offset + self.value_chunk]
            chunk.chunk_info.chunked_value_size = len(value)
            chunk.chunk_info.chunked_value_offset = offset
            chunk.chunk_info.last_chunk = offset + self.value_chunk >= len(value)
            yield chunk

    def _rows(self, request: Any, context: Any) -> Iterator[Any]:
        """ReadRows, of all versions: a message holds a few chunks, and a row may begin anew.

        Of filters it knows a chain of the two by which one cell of a row is asked for, without its value.
        """
        if any(
            rows.end_key_open and rows.end_key_open in (rows.start_key_open + b"\0", rows.start_key_closed)
            for rows in request.rows.row_ranges
        ):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Error in field 'row_ranges' : Row range is empty")
        with self._changed:
            cells = sorted(self.cells().items(), key=lambda item: (*item[0][:3], -item[0][3]))
            log_random = random.Random(self._random.random())
        chunk_type, response = T.ReadRowsResponse.CellChunk.pb(), T.ReadRowsResponse.pb()
        ranges, filters = request.rows.row_ranges, request.filter.chain.filters
        wanted = [item for item in cells if not ranges or any(_asks_for(rows, item[0][0]) for rows in ranges)]
        per_row = max((one.cells_per_row_limit_filter for one in filters), default=0)
        rows: dict[bytes, list[Any]] = {}
        for (row, family, qualifier, micros), stored in wanted:
            value = b"" if any(one.strip_value_transformer for one in filters) else stored
            if request.rows_limit and row not in rows and len(rows) == request.rows_limit:
                break
            chunks = rows.setdefault(row, [])
            if per_row and len(chunks) == per_row:
                continue
            size = min(self.value_chunk, 10**9)
            pieces = [value[offset : offset + size] for offset in range(0, len(value), size)] or [b""]
            for number, piece in enumerate(pieces):
                chunk = chunk_type(value=piece)
                if number == 0:
                    chunk.row_key, chunk.timestamp_micros = row if not chunks else b"", micros
                    chunk.family_name.value, chunk.qualifier.value = family, qualifier
                if number < len(pieces) - 1:
                    chunk.value_size = len(value)
                chunks.append(chunk)
        for chunks in rows.values():
            _leave_out_what_repeats(chunks)
            chunks[-1].commit_row = True
            if log_random.random() < 0.2:  # a row is read again from its beginning
                yield response(chunks=[*chunks[: log_random.randrange(len(chunks))], chunk_type(reset_row=True)])
            for start in range(0, len(chunks), 3):
                yield response(chunks=chunks[start : start + 3])


def _leave_out_what_repeats(chunks: list[Any]) -> None:
    family = qualifier = None
    for chunk in chunks:
        if not chunk.HasField("family_name"):
            continue
        this = (chunk.family_name.value, chunk.qualifier.value)
        if this[0] == family:
            chunk.ClearField("family_name")
            if this[1] == qualifier:
                chunk.ClearField("qualifier")
        family, qualifier = this


def _asks_for(rows: Any, key: bytes) -> bool:
    start, end = rows.WhichOneof("start_key"), rows.WhichOneof("end_key")
    if start == "start_key_open" and key <= rows.start_key_open:
        return False
    if start == "start_key_closed" and key < rows.start_key_closed:
        return False
    return not (end == "end_key_open" and rows.end_key_open and key >= rows.end_key_open)


def _is_within(message: Any) -> bool:
    if isinstance(message, _Response):
        return message.WhichOneof("stream_record") == "data_change" and not message.data_change.done
    chunks = getattr(message, "chunks", ())
    return bool(chunks) and not chunks[-1].commit_row and not chunks[-1].reset_row


def _partition(rows: Range) -> Any:
    return T.StreamPartition.pb()(row_range={"start_key_closed": rows[0], "end_key_open": rows[1]})


def _range(rows: Any) -> Range:
    return rows.start_key_closed, rows.end_key_open
