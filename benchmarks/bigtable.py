"""Changes a second from a Bigtable change stream to staging, against the bare client decoding the same stream.

The server sends what it has encoded before: partitions of changes, each of one row with four cells. The bare client is
google-cloud-bigtable's own messages, one partition after the other in one process: every field and every value of every
change looked at, nothing kept. The job is `append.py bigtable`'s, from a start to the low watermark of now, in one
round.

    python benchmarks/bigtable.py [--records 400000] [--repeats 3] [--cores 1 2]
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import grpc
import stream_races
from fake_bigtable import FakeBigtable, set_cell
from google.cloud.bigtable_v2 import types as T
from reconcile_jobs.bigtable.calls import Client, SourceTable
from reconcile_jobs.bigtable.partition_reader import Finished, Limits, read_partitions
from reconcile_jobs.bigtable.partitions import RowRange, initial
from reconcile_jobs.timestamps import as_text
from stream_races import PARTITIONS, Race

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CELLS = 4
ROW = 48  # bytes of a value


class Canned(FakeBigtable):
    """Sends messages that were encoded beforehand, and then a heartbeat: every range from its beginning."""

    def __init__(self, records: int) -> None:
        keys = [b"", *(b"%d" % number for number in range(1, PARTITIONS)), b""]
        super().__init__(ranges=list(pairwise(keys)))
        self.messages: dict[bytes, list[bytes]] = {}
        for start, _ in self.ranges:
            made = self.messages[start] = []
            for number in range(records // PARTITIONS):
                row = (start or b"0") + b"/row/%08d" % number
                cells = [set_cell("f", b"q%d" % q, 1000 * number, os.urandom(ROW)) for q in range(CELLS)]
                commit = self.commit(row, *cells)
                assert commit is not None
                (message,) = self._messages(commit, "token", commit.micros)
                made.append(message.SerializeToString())
            self.log.clear()
            self._by_row.clear()

    def _read(self, request: Any, context: Any) -> Iterator[Any]:
        rows = request.partition.row_range
        if not request.continuation_tokens.tokens:
            yield from self.messages[rows.start_key_closed]
        beat = T.ReadChangeStreamResponse.pb()()
        beat.heartbeat.continuation_token.token = "token"
        beat.heartbeat.estimated_low_watermark.seconds = 2**33
        while context.is_active():
            yield beat.SerializeToString()
            time.sleep(0.2)

    def _faulty(self, method: str, answer: Any) -> Any:
        return answer


def looked_at(change: Any) -> tuple[Any, ...]:
    """Return what a change says, as Python has it."""
    committed, watermark = change.commit_timestamp, change.estimated_low_watermark
    return (
        change.type_,
        change.source_cluster_id,
        change.row_key,
        (committed.seconds, committed.nanos),
        change.tiebreaker,
        change.token,
        (watermark.seconds, watermark.nanos),
        [
            (cell.family_name, cell.column_qualifier, cell.timestamp_micros, cell.value)
            for cell in (chunk.mutation.set_cell for chunk in change.chunks)
        ],
    )


class BigtableRace(Race):
    """Against google-cloud-bigtable's messages."""

    def server(self) -> FakeBigtable:
        return Canned(self.options.records)

    def bare_client(self, address: str) -> int:
        count = 0
        channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1)])
        read = channel.unary_stream(
            "/google.bigtable.v2.Bigtable/ReadChangeStream",
            request_serializer=T.ReadChangeStreamRequest.pb().SerializeToString,
            response_deserializer=T.ReadChangeStreamResponse.pb().FromString,
        )
        with Client(SourceTable("p", "i", "t", "single", address)) as client:
            ranges = list(client.partitions())
        for start, end in ranges:
            request = T.ReadChangeStreamRequest.pb()(
                table_name="projects/p/instances/i/tables/t", app_profile_id="single"
            )
            request.partition.row_range.start_key_closed, request.partition.row_range.end_key_open = start, end
            call = read(request)
            for message in call:
                if message.WhichOneof("stream_record") != "data_change":
                    call.cancel()
                    break
                count += 1
                looked_at(message.data_change)
        channel.close()
        return count

    def our_reader(self, address: str) -> int:
        with Client(SourceTable("p", "i", "t", "single", address)) as client:
            partitions = initial([RowRange(*rows) for rows in client.partitions()], 0)
            found = read_partitions(client, partitions, Limits(0, seconds=600))
            return sum(len(some[1]) for some in found if not isinstance(some, Finished))

    def job(self, spark: SparkSession, address: str, number: int) -> int:
        from reconcile_jobs.bigtable.job import Job, run
        from reconcile_jobs.staging import TableName

        os.environ["BIGTABLE_EMULATOR_HOST"] = address
        # One round holds it all.
        start = as_text(time.time_ns() - 3600 * 10**9)
        table = TableName.parse(f"bench.t{number}")
        return run(spark, Job("p", "i", "t", "single", table, start=start, round_seconds=600)).records


if __name__ == "__main__":
    stream_races.run(BigtableRace(stream_races.parser(__doc__, 400_000).parse_args()))
