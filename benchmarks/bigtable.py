"""Changes a second from a Bigtable change stream to staging, against the bare client decoding the same stream.

A server in a process of its own sends what it has encoded before: partitions of changes, each of one row with four
cells. The bare client is google-cloud-bigtable's own messages, one partition after the other in one process: every
field and every value of every change looked at, nothing kept. The job is `append.py bigtable`'s, from a start to the
low watermark of now, in one round, with one and with two executor cores, each a process of its own. Both sides take
turns; ratios are medians of pairs, and the first pair warms up.

    python benchmarks/bigtable.py [--records 400000] [--repeats 3] [--cores 1 2]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]
os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "conf"))

import grpc  # noqa: E402
from fake_bigtable import FakeBigtable, set_cell  # noqa: E402
from google.cloud.bigtable_v2 import types as T  # noqa: E402
from reconcile_jobs.bigtable.calls import Client, SourceTable  # noqa: E402
from reconcile_jobs.bigtable.partition_reader import Finished, Limits, read_partitions  # noqa: E402
from reconcile_jobs.bigtable.partitions import RowRange, initial  # noqa: E402
from reconcile_jobs.timestamps import as_text  # noqa: E402

PARTITIONS = 8
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


def serve(records: int) -> None:
    """Serve until standard input ends."""
    with Canned(records) as server:
        print(server.address, flush=True)
        sys.stdin.read()


def bare_client(address: str) -> int:
    """Look at every field of every change of the stream, and return their number."""
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
        request = T.ReadChangeStreamRequest.pb()(table_name="projects/p/instances/i/tables/t", app_profile_id="single")
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


def our_reader(address: str) -> int:
    """Make every change of the stream the text that is staged, without Spark."""
    with Client(SourceTable("p", "i", "t", "single", address)) as client:
        partitions = initial([RowRange(*rows) for rows in client.partitions()], 0)
        limits = Limits(0, seconds=600)
        return sum(
            len(found[1]) for found in read_partitions(client, partitions, limits) if not isinstance(found, Finished)
        )


def job(address: str, cores: int, repeats: int) -> None:
    """Run the job so often, and print the seconds of each as JSON."""
    from pyspark.sql import SparkSession
    from reconcile_jobs.bigtable.job import Job, run
    from reconcile_jobs.staging import TableName

    os.environ["BIGTABLE_EMULATOR_HOST"] = address
    spark = SparkSession.builder.master(f"local[{cores}]").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for number in range(repeats):
        start = as_text(time.time_ns() - 3600 * 10**9)
        asked = Job("p", "i", "t", "single", TableName.parse(f"bench.t{number}"), start=start, round_seconds=600)
        began = time.monotonic()
        totals = run(spark, asked)
        print(json.dumps([totals.records, time.monotonic() - began]), flush=True)
        sys.stdin.readline()


def main() -> None:
    """Print a line for each number of cores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2], help="of Spark's executor")
    parser.add_argument("--without-spark", action="store_true", help="only the reader in one process")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--job", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.records)
    if options.job:
        return job(options.job[0], int(options.job[1]), options.repeats + 1)
    me = [sys.executable, __file__, "--records", str(options.records), "--repeats", str(options.repeats)]
    server = subprocess.Popen([*me, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout and server.stdin
    address = server.stdout.readline().strip()
    print(f"{'records a second':24}{'ours':>12}{'bare client':>14}{'ratio':>9}")
    if options.without_spark:
        pairs = [(timed(our_reader, address), timed(bare_client, address)) for _ in range(options.repeats + 1)]
        report("reader without Spark", options.records, pairs)
    for cores in () if options.without_spark else options.cores:
        pairs = []
        with tempfile.TemporaryDirectory() as directory:
            spark = subprocess.Popen(
                [*me, "--job", address, str(cores)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=directory,
            )
            assert spark.stdout and spark.stdin
            for _ in range(options.repeats + 1):
                records, ours = json.loads(spark.stdout.readline())
                assert records == options.records, records
                pairs.append((ours, timed(bare_client, address)))
                spark.stdin.write("\n")
                spark.stdin.flush()
            spark.wait(60)
        report(f"job, {cores} core{'s' * (cores > 1)}", options.records, pairs)
    server.stdin.close()
    server.wait(10)


def timed(action: Any, address: str) -> float:
    """Return how long the action takes."""
    began = time.monotonic()
    action(address)
    return time.monotonic() - began


def report(name: str, records: int, pairs: list[tuple[float, float]]) -> None:
    """Print both rates, and the median ratio."""
    kept = pairs[1:]
    rates = [records / statistics.median(side) for side in zip(*kept, strict=True)]
    ratio = statistics.median(bare / ours for ours, bare in kept)
    print(f"{name:24}{rates[0]:12,.0f}{rates[1]:14,.0f}{ratio:9.2f}", flush=True)


if __name__ == "__main__":
    main()
