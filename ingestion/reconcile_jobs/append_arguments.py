"""What `append.py` is asked for: the options of each source, whose job has a field for each, and the expectations."""

from __future__ import annotations

import argparse
import re
from typing import Any

from reconcile_jobs.expectations import Expected
from reconcile_jobs.long_records import LONGEST
from reconcile_jobs.process.command_line import Parser, in_seconds, interval, seconds_of
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.staging import TableName

__all__ = ["arguments"]

DATASTREAM_HELP = """
Files and directories whose names begin with _ or . are hidden: they are not read, but named by each run, as are local
links that lead nowhere; a link to a directory above itself is refused. With --format auto, names that end in .json,
.jsonl or .ndjson (perhaps .gz or .bz2 after it) are JSON lines, those in .avro Avro; any other is not read, but
recorded in staging by its name. Files must appear whole (renamed into place, as object stores do), and a file is known
by its path: it is appended once, and what is written into it later is not seen. One that is written to while it is
read is named, with exit code 1, or counted as changed_files with --skip-corrupt-files.

Standard output is one line of JSON: files, records, unreadable (records without an object, of which the first is named
by its file and line), long_records, corrupt_files, ignored_files, changed_files, broken_links, hidden_files (null if
looking for them takes longer than the run), first_batch, last_batch, seconds, and with --expect expectations. Exit
codes: 0 done, also with unreadable records, which --expect fail refuses; 1 a file cannot be read or was written to, or
records are not as expected; 2 usage or configuration; 4 a fault that a retry may cure.
"""

SPANNER_HELP = """
Without --every the job appends what was committed up to its own start (or --end), and ends. It reads in windows: each
is one batch, and holds every commit of its time, across partitions and tables. The credentials are Google's
application default ones; with SPANNER_EMULATOR_HOST in the environment the emulator is read, without any.

Standard output is one line of JSON: windows, records, backfill_records, first_batch, last_batch, cut_time (every commit
up to it is in staging), seconds, and with --expect expectations. Exit codes: 0 done; 1 records are not as expected;
2 usage or configuration; 4 a fault that a retry may cure.
"""

BIGTABLE_HELP = """
Without --every the job goes on until the low watermark of every partition has passed its own start (or --end), and
ends; a watermark that stands still, because a cluster has not replicated, it does not wait for. It reads in rounds,
each of which is a batch that also holds where it ended. The low watermark is Bigtable's own estimate: replicated
changes may come after it. With --backfill give a --start that lies before whatever has not been replicated yet.

The credentials are Google's application default ones; with BIGTABLE_EMULATOR_HOST in the environment that server is
read, without any.

Standard output is one line of JSON: rounds, records, backfill_records, first_batch, last_batch, low_watermark, seconds,
and with --expect expectations. Exit codes: 0 done; 1 records are not as expected; 2 usage or configuration; 4 a fault
that a retry may cure.
"""

SNAPSHOT_HELP = """
For a table that has no log: a reference table, or an export each night. The rows are compared with the snapshot of the
same object that was staged before, and what differs is appended: a key that is new is an insert, one that is gone a
delete. A snapshot that equals the one before appends no record. Models read them with the macro snapshots.

The snapshot table is one that snapshot.py has finished. Snapshots of an object are staged in the order in which they
were taken: the moment is that of the snapshot table, or --at. The same snapshot is staged once. One staging table holds
the snapshots of many objects; the records of a log go to another one.

Standard output is one line of JSON: rows, inserted, updated, deleted, unchanged, taken_at, first_batch, last_batch,
seconds. Exit codes: 0 done; 1 the snapshot is empty, or the key is none; 2 usage or configuration; 4 a fault that a
retry may cure.
"""


def _positive(text: str) -> int:
    if not re.fullmatch(r"[0-9]+", text) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return int(text)


_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30}


def _size(text: str) -> int:
    found = re.fullmatch(r"([0-9]+)([kmg])b?", text.lower())
    # A row of Spark's holds less than 2 GiB, of which the record is one value.
    if not found or not 2**20 <= (size := int(found[1]) * _UNITS[found[2]]) <= 2**30:
        raise argparse.ArgumentTypeError(f"{text} is no size from 1m to 1g; write 32m")
    return size


def _factor(text: str) -> float:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) or float(text) <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 1")
    return float(text)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len({name.lower() for name in names}) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r} names no columns, or one twice; write id or order_id,line")
    return names


def _short(text: str) -> str:
    interval(text)
    return text.replace(" ", "")


def _heartbeat(text: str) -> str:
    if not 1 <= seconds_of(text) <= 300:
        raise argparse.ArgumentTypeError(f"{text} is out of range: Spanner takes 1s to 5m")
    return _short(text)


def arguments(
    words: list[str], description: str | None
) -> tuple[str, dict[str, Any], tuple[str, float | None] | None, Expected | None]:
    """Return the source, the fields of its job, what dbt runs and how often, and what is expected of the records.

    Where dbt runs with the appends, it is not the job that keeps going. Raises UsageError.
    """
    parser = Parser(prog="append.py", description=description, formatter_class=argparse.HelpFormatter)
    sources = parser.add_subparsers(dest="source", required=True, metavar="SOURCE")
    files = _source(sources, "datastream", "files that Datastream wrote", "Datastream's files", DATASTREAM_HELP)
    files.add_argument("--path", required=True, help="a directory (searched recursively), a file or a pattern")
    _add_staging(files)
    files.add_argument("--format", choices=["auto", "json", "avro"], default="auto", help="(default: auto, by name)")
    files.add_argument("--max-files", type=_positive, metavar="N", help="at most so many files in one batch")
    files.add_argument("--every", type=interval, metavar="30s", help="keep going, looking for files so often")
    files.add_argument(
        "--skip-corrupt-files", action="store_true", help="record the name of a file that cannot be read, and go on"
    )
    spanner = _source(sources, "spanner", "a Spanner change stream", "a change stream's records", SPANNER_HELP)
    spanner.add_argument("--project", required=True, help="the Google Cloud project of the instance")
    spanner.add_argument("--instance", required=True, help="the Spanner instance")
    spanner.add_argument("--database", required=True, help="the database, of either dialect")
    spanner.add_argument("--stream", required=True, help="the change stream, by its name in the database")
    _add_staging(spanner)
    _add_extent(
        spanner,
        within="the stream's retention period, and with --backfill the database's",
        end="the last commit timestamp",
        there="the rows that were there at the start",
    )
    spanner.add_argument("--every", type=interval, metavar="10s", help="keep going, with a window so often")
    spanner.add_argument(
        "--window", type=_short, default="60s", metavar="60s", help="at most so long a time in one batch (default: 60s)"
    )
    spanner.add_argument(
        "--heartbeat",
        type=_heartbeat,
        default="10s",
        metavar="10s",
        help="how often Spanner says that it is there, 1s to 5m; a query that misses ten is made again (default: 10s)",
    )
    spanner.add_argument(
        "--table",
        dest="tables",
        action="append",
        default=None,
        metavar="TABLE",
        help="begin only if the stream watches it; may be repeated",
    )
    spanner.add_argument(
        "--partition-check",
        choices=["fail", "warn"],
        default="fail",
        help="what happens where the partitions that were read are not those that Spanner names (default: fail)",
    )
    streams = "a Bigtable table's change stream"
    bigtable = _source(sources, "bigtable", streams, "a change stream's data changes", BIGTABLE_HELP)
    bigtable.add_argument("--project", required=True, help="the Google Cloud project of the instance")
    bigtable.add_argument("--instance", required=True, help="the Bigtable instance")
    bigtable.add_argument("--table", required=True, help="the table, whose change stream is enabled")
    bigtable.add_argument("--app-profile", required=True, help="an app profile with single-cluster routing")
    _add_staging(bigtable, has_checkpoint=False)
    _add_extent(
        bigtable,
        within="the change stream's retention period",
        end="the commit timestamp to get to",
        there="the cells that are there already",
    )
    bigtable.add_argument("--every", type=seconds_of, metavar="10s", help="keep going, with a round so often")
    differences = "the differences of a snapshot from the one before it"
    snapshot = _source(sources, "snapshot", "a snapshot of a table that has no log", differences, SNAPSHOT_HELP)
    snapshot.add_argument(
        "--table",
        type=lambda text: TableName.parse(text, "--table"),
        required=True,
        metavar="SCHEMA.TABLE",
        help="the snapshot table, as snapshot.py has made it",
    )
    _add_staging(snapshot, has_checkpoint=False, is_log=False)
    snapshot.add_argument(
        "--key", type=_names, required=True, metavar="NAME,...", help="the columns that tell rows apart, never NULL"
    )
    snapshot.add_argument("--object", metavar="NAME", help="the table's name in staging (default: that of --table)")
    snapshot.add_argument(
        "--at", metavar="TIME", help="when the snapshot was taken, as 2026-05-01T09:00:00Z (default: as its table says)"
    )
    snapshot.add_argument(
        "--allow-empty", action="store_true", help="take a snapshot without rows, which deletes every row"
    )
    snapshot.add_argument(
        "--allow-new-columns",
        action="store_true",
        help="take a snapshot with more columns, or other types, than before; each row then counts as updated",
    )
    asked = vars(parser.parse_args(words))
    expected = _expected(asked)  # which still sees an interval that is dbt's
    return asked.pop("source"), asked, _dbt(asked), expected


def _source(sources: Any, name: str, help: str, records: str, epilog: str) -> argparse.ArgumentParser:
    description = f"Append {records} to a staging table, each once."
    return sources.add_parser(name, help=help, description=description, epilog=epilog)  # type: ignore[no-any-return]


def _dbt(asked: dict[str, Any]) -> tuple[str, float | None] | None:
    """Take dbt out of what was asked for, and the interval with it. Raises UsageError."""
    command = asked.pop("dbt")
    if command is None:
        return None
    if asked.get("every") is None:
        return command, None
    if asked.get("end") is not None:
        raise UsageError("--dbt with --every has no end: leave --end or --every out.")
    every, asked["every"] = in_seconds(asked["every"]), None
    return command, every


def _add_staging(parser: argparse.ArgumentParser, has_checkpoint: bool = True, is_log: bool = True) -> None:
    longer = "of a longer record staging holds a note, and models put it into quarantine"
    parser.add_argument(
        "--staging",
        type=TableName.parse,
        required=True,
        metavar="SCHEMA.TABLE",
        help="the table, made if it is missing",
    )
    parser.add_argument(
        "--dbt",
        metavar="COMMAND",
        help="run dbt in this process whenever something was appended, as --dbt 'build --select tag:shop'",
    )
    parser.add_argument(
        "--longest-record",
        type=_size,
        default=LONGEST,
        metavar="32m",
        help=f"{longer if is_log else 'a longer row ends the job'} (1m to 1g, default: 32m)",
    )
    if has_checkpoint:
        where = "what was appended (default: lakehouse/_checkpoints/SCHEMA.TABLE)"
        parser.add_argument("--checkpoint", metavar="DIR", help=where)
    if is_log:
        _add_expectations(parser)


def _add_extent(parser: argparse.ArgumentParser, within: str, end: str, there: str) -> None:
    parser.add_argument(
        "--start",
        metavar="TIME",
        help=f"where the first run begins, as 2026-05-01T09:00:00Z, within {within} (default: now); every later run "
        "goes on where the one before ended",
    )
    parser.add_argument("--end", metavar="TIME", help=f"{end} (default: now)")
    parser.add_argument("--backfill", action="store_true", help=f"also append {there}")


def _add_expectations(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "expectations",
        "With --expect what was appended is validated by Great Expectations: records can be read, their object and "
        "change type are known, what orders them is there, they came in time, and no more or fewer than usual.",
    )
    group.add_argument(
        "--expect",
        nargs="?",
        choices=["warn", "fail"],
        const="warn",
        help="say what is not met, and with fail exit with 1, until it is let pass by a run with warn (default: warn)",
    )
    group.add_argument(
        "--expect-object",
        action="append",
        metavar="OBJECT",
        help="an object that may come; may be repeated (default: those that staging had before)",
    )
    group.add_argument(
        "--expect-lag", type=seconds_of, metavar="24h", help="the longest time from commit to append (default: 24h)"
    )
    group.add_argument(
        "--expect-volume",
        type=_factor,
        metavar="10",
        help="how many times more or fewer records than the median day of the week before one day may bring, by object "
        "(default: 10); judged once staging holds four days",
    )
    group.add_argument(
        "--data-docs",
        metavar="DIR",
        help="where results and Data Docs are kept (default: lakehouse/_expectations/SCHEMA.TABLE)",
    )


def _expected(asked: dict[str, Any]) -> Expected | None:
    """Take the expectations out of what was asked for. Raises UsageError."""
    on_failure = asked.pop("expect", None)
    given = {name: asked.pop(name, None) for name in ("expect_object", "expect_lag", "expect_volume", "data_docs")}
    if on_failure is None:
        if any(given.values()):
            name = next(name for name, value in given.items() if value).replace("_", "-")
            raise UsageError(f"--{name} says what to expect, and --expect is not given: add it, or leave --{name} out.")
        return None
    if asked["every"] is not None:
        raise UsageError("--expect looks at what a run has appended, and --every has no end: leave one of them out.")
    return Expected(
        on_failure=on_failure,
        objects=tuple(given["expect_object"]) if given["expect_object"] else None,
        max_lag=given["expect_lag"] or 24 * 3600,
        volume_factor=given["expect_volume"] or 10.0,
        data_docs=given["data_docs"],
    )
