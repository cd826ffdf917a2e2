"""Records a second from a change stream to staging, ours against a bare client: what such a benchmark is made of.

The server is a process of its own, and so is the job, once with each number of executor cores. Both sides take turns;
ratios are medians of pairs, and the first pair warms up.
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
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]
os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "conf"))

PARTITIONS = 8


class Race(ABC):
    """A stream, and who reads it. Each reader returns the number of records that it found."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    @abstractmethod
    def server(self) -> AbstractContextManager[Any]:
        """Return what serves `records` records in `PARTITIONS` partitions at its `address`."""

    @abstractmethod
    def bare_client(self, address: str) -> int:
        """Read the stream with the client alone, and look at every value."""

    @abstractmethod
    def our_reader(self, address: str) -> int:
        """Make every record of the stream the text that is staged, without Spark."""

    @abstractmethod
    def job(self, spark: SparkSession, address: str, number: int) -> int:
        """Append the stream to a table of this number."""


def parser(description: str | None, records: int) -> argparse.ArgumentParser:
    """Return what every such benchmark can be asked, by default for so many records."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--records", type=int, default=records)
    made.add_argument("--repeats", type=int, default=3)
    made.add_argument("--warm-up", type=int, default=3, help="rounds that are not counted")
    made.add_argument("--cores", type=int, nargs="+", default=[1, 2], help="of Spark's executor")
    made.add_argument("--without-spark", action="store_true", help="only the reader in one process")
    made.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    made.add_argument("--job", nargs=2, help=argparse.SUPPRESS)
    return made


def run(race: Race) -> None:
    """Print a line for each number of cores, or be one of the race's processes."""
    options = race.options
    if options.serve:
        return _serve(race)
    if options.job:
        return _append(race, options.job[0], int(options.job[1]))
    me = [sys.executable, str(Path(sys.argv[0]).resolve()), *sys.argv[1:]]
    server = subprocess.Popen([*me, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout and server.stdin
    address = server.stdout.readline().strip()
    print(f"{'records a second':24}{'ours':>12}{'bare client':>14}{'ratio':>9}")
    if options.without_spark:
        pairs = [
            (_seconds(race.our_reader, address), _seconds(race.bare_client, address))
            for _ in range(options.warm_up + options.repeats)
        ]
        _report("reader without Spark", options.records, pairs[options.warm_up :])
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
            for _ in range(options.warm_up + options.repeats):
                records, ours = json.loads(spark.stdout.readline())
                assert records == options.records, records
                pairs.append((ours, _seconds(race.bare_client, address)))
                spark.stdin.write("\n")
                spark.stdin.flush()
            spark.wait(60)
        _report(f"job, {cores} core{'s' * (cores > 1)}", options.records, pairs[options.warm_up :])
    server.stdin.close()
    server.wait(10)


def _serve(race: Race) -> None:
    """Serve until standard input ends."""
    with race.server() as server:
        print(server.address, flush=True)
        sys.stdin.read()


def _append(race: Race, address: str, cores: int) -> None:
    """Run the job so often, and print the seconds of each as JSON."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master(f"local[{cores}]").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for number in range(race.options.warm_up + race.options.repeats):
        began = time.monotonic()
        records = race.job(spark, address, number)
        print(json.dumps([records, time.monotonic() - began]), flush=True)
        sys.stdin.readline()


def _seconds(read: Callable[[str], int], address: str) -> float:
    began = time.monotonic()
    read(address)
    return time.monotonic() - began


def _report(name: str, records: int, pairs: list[tuple[float, float]]) -> None:
    """Print both rates, and the median ratio."""
    rates = [records / statistics.median(side) for side in zip(*pairs, strict=True)]
    ratio = statistics.median(bare / ours for ours, bare in pairs)
    print(f"{name:24}{rates[0]:12,.0f}{rates[1]:14,.0f}{ratio:9.2f}", flush=True)
