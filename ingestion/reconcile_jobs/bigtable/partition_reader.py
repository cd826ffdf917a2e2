"""Partitions of a change stream, read for a bounded time: their changes, and how far each was read."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import grpc
from google.cloud.bigtable_v2 import types

from reconcile_jobs.bigtable.calls import Client
from reconcile_jobs.bigtable.change_decoder import Change, ChangeDecoder, TornChange
from reconcile_jobs.bigtable.partitions import Closed, Moved, Outcome, Partition, Position, RowRange
from reconcile_jobs.google_service import STREAMS_PER_CHANNEL, Call
from reconcile_jobs.process.errors import Fault

__all__ = ["Finished", "Limits", "read_partition", "read_partitions"]

# Changes that a thread hands on at a time: their number, and the characters of their records.
_CHANGES = 500
_CHARACTERS = 1_000_000

# Such portions that wait for their reader.
_WAITING = 8


@dataclass(frozen=True)
class Limits:
    """How long a round reads.

    A partition is read until its low watermark has reached `target` (nanoseconds since 1970), until two heartbeats
    came with nothing between them, or for `seconds` of the round. `heartbeat`: the seconds between heartbeats.
    """

    target: int
    seconds: float = 20.0
    heartbeat: float = 1.0

    @property
    def patience(self) -> float:
        """The seconds without a message after which a stream is taken for dead."""
        return max(10.0, 10 * self.heartbeat)


@dataclass(frozen=True)
class Finished:
    """The last message about a partition in a round."""

    rows: RowRange
    outcome: Outcome


def read_partition(
    client: Client, partition: Partition, limits: Limits, deadline: float
) -> Iterator[Change | Finished]:
    """Yield a partition's changes, each once and whole, and at last how far it was read. Raises JobError.

    `deadline`, on the client's clock, is looked at after each message: there is one at each heartbeat.
    """
    reading = _Reading(client, partition, limits)
    failures = 0
    while True:
        try:
            for change in reading.messages(deadline):
                failures = 0
                yield change
            if reading.finished is not None:
                yield reading.finished
                return
            # The call ended without a word: it is made again, from the last token.
            failures = client.count_failure(failures, "a stream that ends before its partition")
        except grpc.RpcError as problem:
            failures = client.failed(problem, failures)
        except TornChange as problem:
            failures = client.count_failure(failures, str(problem))


class _Reading:
    """What is known of a partition while it is read: the last token, and the watermark that came with it."""

    def __init__(self, client: Client, partition: Partition, limits: Limits) -> None:
        self.client, self.partition, self.limits = client, partition, limits
        self.token: str | None = None
        self.low_watermark = partition.low_watermark
        self.finished: Finished | None = None
        self._quiet = 0  # heartbeats since the last change

    def messages(self, deadline: float) -> Iterator[Change]:
        """Yield the changes of one call, up to what finishes the partition. Raises grpc.RpcError, TornChange."""
        decoder = ChangeDecoder()
        call = self._open()
        try:
            for message in call.messages():
                kind = message.WhichOneof("stream_record")
                if kind == "data_change":
                    change = decoder.add(message.data_change)
                    if change is None:
                        continue
                    self.token, self.low_watermark, self._quiet = change.token, change.low_watermark, 0
                    yield change
                elif not decoder.is_between_changes:
                    raise TornChange(f"a {kind} within a change")
                elif kind == "heartbeat":
                    self._heard(message.heartbeat)
                elif kind == "close_stream":
                    self._closed(message.close_stream)
                if self.finished is None and self.client.clock.seconds() >= deadline:
                    self._finish()
                if self.finished is not None:
                    return
        finally:
            call.close()

    def _open(self) -> Call:
        request = types.ReadChangeStreamRequest.pb()()
        _set_range(request.partition.row_range, self.partition.rows)
        positions = self.partition.positions
        if self.token is not None:
            positions = (Position(self.partition.rows, self.token),)
        if positions:
            for position in positions:
                token = request.continuation_tokens.tokens.add(token=position.token)
                _set_range(token.partition.row_range, position.rows)
        else:
            assert self.partition.start is not None
            request.start_time.seconds, nanoseconds = divmod(self.partition.start, 10**9)
            request.start_time.nanos = nanoseconds
        request.heartbeat_duration.FromMilliseconds(round(1000 * self.limits.heartbeat))
        response = types.ReadChangeStreamResponse
        return self.client.open("ReadChangeStream", request, response, self.limits.patience)

    def _heard(self, heartbeat: types.ReadChangeStreamResponse.Heartbeat) -> None:
        moment = heartbeat.estimated_low_watermark
        self.token = heartbeat.continuation_token.token
        self.low_watermark = moment.seconds * 10**9 + moment.nanos
        self._quiet += 1
        if self.low_watermark >= self.limits.target or self._quiet >= 2:
            self._finish()

    def _closed(self, close: types.ReadChangeStreamResponse.CloseStream) -> None:
        targets = [_range_of(partition.row_range) for partition in close.new_partitions]
        if not close.continuation_tokens:
            if close.status.code:
                raise TornChange(f"a partition that is closed with code {close.status.code}: {close.status.message}")
            # An end that was not asked for, since none was given: what comes later is asked for in the next round.
            self._finish()
            return
        found = []
        for token in close.continuation_tokens:
            rows = _range_of(token.partition.row_range)
            # Without a new partition that it belongs to, a part is asked for by itself.
            target = next((target for target in targets if target.contains(rows)), rows)
            found.append((Position(rows, token.token), target))
        self.finished = Finished(self.partition.rows, Closed(tuple(found), self.low_watermark))

    def _finish(self) -> None:
        self.finished = Finished(self.partition.rows, Moved(self.token, self.low_watermark))


def _set_range(row_range: types.RowRange, rows: RowRange) -> None:
    # Both are always set: an end that is empty is the table's.
    row_range.start_key_closed, row_range.end_key_open = rows.start, rows.end


def _range_of(row_range: types.RowRange) -> RowRange:
    return RowRange(row_range.start_key_closed, row_range.end_key_open)


def read_partitions(
    client: Client, partitions: Sequence[Partition], limits: Limits
) -> Iterator[tuple[RowRange, list[Change]] | Finished]:
    """Yield the changes of partitions in portions, in order within each, and how far each was read. Raises JobError.

    At most a hundred partitions are read at the same time. A partition whose turn comes after the deadline yields
    nothing.
    """
    deadline = client.clock.seconds() + limits.seconds
    waiting: queue.SimpleQueue[Partition] = queue.SimpleQueue()
    for partition in partitions:
        waiting.put(partition)
    portions: queue.Queue[tuple[RowRange, list[Change]] | Finished | Exception | None] = queue.Queue(_WAITING)
    over = threading.Event()

    def hand_on(portion: tuple[RowRange, list[Change]] | Finished | Exception | None) -> None:
        while not over.is_set():
            try:
                portions.put(portion, timeout=0.5)
                return
            except queue.Full:
                continue
        raise Fault("Stopped while partitions were read: run the same command again.")

    def read_next() -> None:
        try:
            while client.clock.seconds() < deadline:
                try:
                    partition = waiting.get_nowait()
                except queue.Empty:
                    break
                portion: list[Change] = []
                size = 0
                for found in read_partition(client, partition, limits, deadline):
                    if isinstance(found, Finished):
                        if portion:
                            hand_on((partition.rows, portion))
                        hand_on(found)
                        break
                    portion.append(found)
                    size += len(found.json)
                    if len(portion) >= _CHANGES or size >= _CHARACTERS:
                        hand_on((partition.rows, portion))
                        portion, size = [], 0
            hand_on(None)
        except Exception as problem:
            with suppress(Fault):  # nobody is there any more who would hear of it
                hand_on(problem)

    threads = [
        threading.Thread(target=read_next, name=f"bigtable reader {number}", daemon=True)
        for number in range(min(len(partitions), STREAMS_PER_CHANNEL))
    ]
    try:
        for thread in threads:
            thread.start()
        running = len(threads)
        while running:
            portion = portions.get()
            if portion is None:
                running -= 1
            elif isinstance(portion, Exception):
                raise portion
            else:
                yield portion
    finally:
        over.set()
