"""Records a second from a change stream to staging, against the bare client decoding the same stream without Spark.

A server in a process of its own sends what it has encoded before: partitions of records with twelve columns, several
records to a message. The bare client is google-cloud-spanner's StreamedResultSet, one partition after the other in one
process, every value decoded, nothing kept. The job is `append.py spanner`'s, from a start to the end of the stream, in
one window, with one and with two executor cores, each a process of its own. Both sides take turns; ratios are medians
of pairs, and the first pair warms up.

    python benchmarks/spanner.py [--records 100000] [--repeats 3] [--postgresql]
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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]
os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "conf"))

from fake_spanner import FakeSpanner  # noqa: E402
from google.cloud.spanner_v1 import types as T  # noqa: E402
from google.cloud.spanner_v1.streamed import StreamedResultSet  # noqa: E402
from reconcile_jobs.spanner.queries import Client, DatabaseName  # noqa: E402
from reconcile_jobs.spanner.windows import described, list_partitions, read_partitions  # noqa: E402
from reconcile_jobs.timestamps import as_text  # noqa: E402

PARTITIONS = 8
ROWS_PER_MESSAGE = 20
T0 = FakeSpanner.START

TYPES = {
    "id": "INT64",
    "customer_id": "INT64",
    "status": "STRING",
    "total": "NUMERIC",
    "placed_at": "TIMESTAMP",
    "due_on": "DATE",
    "updated_at": "TIMESTAMP",
    "ratio": "FLOAT64",
    "vip": "BOOL",
    "note": "STRING",
    "payload": "JSON",
    "digest": "BYTES",
}


class Canned(FakeSpanner):
    """Sends messages that were encoded beforehand."""

    def __init__(self, postgresql: bool, records: int) -> None:
        super().__init__(postgresql, PARTITIONS)
        # One window holds it all: a second one would be sent the same messages.
        self.now = T0 + 60 * 10**9 - 1
        self.messages: dict[str, list[bytes]] = {}
        columns = [
            {"name": name, "type": {"code": code}, "is_primary_key": name == "id", "ordinal_position": number}
            for number, (name, code) in enumerate(TYPES.items(), 1)
        ]
        for partition in self.partitions:
            made: list[bytes] = []
            message = T.PartialResultSet.pb()()
            message.metadata.CopyFrom(T.ResultSetMetadata.pb(T.ResultSetMetadata(row_type=self._row_type())))
            for number in range(records // PARTITIONS):
                record = self.commit(
                    partition, T0 + number, column_types=columns, mods=[_mod(number)], mod_type="UPDATE"
                )
                message.values.append(self._value({"data_change_record": record}))
                if len(message.values) == ROWS_PER_MESSAGE:
                    message.resume_token = b"%d" % number
                    made.append(message.SerializeToString())
                    message = T.PartialResultSet.pb()()
            made.append(message.SerializeToString())
            self.messages[partition] = made

    def _execute(self, request: Any, context: Any) -> Iterator[Any]:
        values = request._pb.params.fields
        token = values["p3" if self.postgresql else "token"].string_value if values else ""
        if token:
            yield from self.messages[token]
        else:
            yield from super()._execute(request, context)


def _mod(number: int) -> dict[str, Any]:
    values = {
        "customer_id": str(number % 1000),
        "status": f"status {number % 7}",
        "total": f"{number * 37}.25",
        "placed_at": "2026-05-01T09:00:00.123456Z",
        "due_on": "2026-05-02",
        "updated_at": "2026-05-01T09:00:00.123456Z",
        "ratio": number / 7,
        "vip": number % 2 == 0,
        "note": "n" * (number % 40),
        "payload": '{"a":[1,2,3],"b":"x"}',
        "digest": "AP8AAP8AAP8A",
    }
    return {"keys": {"id": str(number)}, "new_values": values, "old_values": values}


def serve(postgresql: bool, records: int) -> None:
    """Serve until standard input ends."""
    with Canned(postgresql, records) as server:
        print(server.address, flush=True)
        sys.stdin.read()


def bare_client(address: str) -> int:
    """Decode every value of the stream, and return the number of records."""
    count = 0
    with Client(DatabaseName("p", "i", "d", address)) as client:
        stream = described(client, "everything")
        for token, start in list_partitions(client, stream, T0, T0 + 10**9).tokens.items():
            request = stream.query(client.session, start, as_text(T0 + 10**9), token)
            call = client.open("ExecuteStreamingSql", request, 60)
            count += sum(1 for _ in StreamedResultSet(T.PartialResultSet.wrap(m) for m in call.messages()))
    return count


def our_reader(address: str) -> int:
    """Make every record of the stream the text that is staged, without Spark."""
    with Client(DatabaseName("p", "i", "d", address)) as client:
        stream = described(client, "everything")
        tokens = list_partitions(client, stream, T0, T0 + 10**9).tokens
        return sum(
            1 for found in read_partitions(client, stream, list(tokens.items()), T0 + 10**9) if type(found) is tuple
        )


def job(address: str, cores: int, repeats: int) -> None:
    """Run the job so often, and print the seconds of each as JSON."""
    from pyspark.sql import SparkSession
    from reconcile_jobs.spanner.job import Job, run
    from reconcile_jobs.staging import TableName

    os.environ["SPANNER_EMULATOR_HOST"] = address
    spark = SparkSession.builder.master(f"local[{cores}]").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for number in range(repeats):
        asked = Job("p", "i", "d", "everything", TableName.parse(f"bench.t{number}"), start=as_text(T0))
        began = time.monotonic()
        totals = run(spark, asked)
        print(json.dumps([totals.records, time.monotonic() - began]), flush=True)
        sys.stdin.readline()


def main() -> None:
    """Print a line for each number of cores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--without-spark", action="store_true", help="only the reader in one process")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--job", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.postgresql, options.records)
    if options.job:
        return job(options.job[0], int(options.job[1]), options.repeats + 1)
    me = [sys.executable, __file__, "--records", str(options.records), "--repeats", str(options.repeats)]
    serving = [*me, "--serve"] + (["--postgresql"] if options.postgresql else [])
    server = subprocess.Popen(serving, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout and server.stdin
    address = server.stdout.readline().strip()
    print(f"{'records a second':24}{'ours':>12}{'bare client':>14}{'ratio':>9}")
    if options.without_spark:
        pairs = [(timed(our_reader, address), timed(bare_client, address)) for _ in range(options.repeats + 1)]
        report("reader without Spark", options.records, pairs)
    for cores in () if options.without_spark else (1, 2):
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
