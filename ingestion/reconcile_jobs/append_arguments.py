"""What `append.py` is asked for: the options of each source, whose job has a field for each, and the expectations."""

from __future__ import annotations

import argparse
import re
from typing import Any

from reconcile_jobs.expectations import Expected
from reconcile_jobs.long_records import LONGEST
from reconcile_jobs.masks import read_masks
from reconcile_jobs.process.command_line import Parser, in_seconds, interval, seconds_of
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.staging import TableName

__all__ = ["arguments"]

DATASTREAM_HELP = """
The job does not read hidden files and directories. Their names begin with . or _, but a name that begins with _ and
contains = is not hidden. The job does not read local links that lead nowhere. Each run names the first hidden file and
the first such link, with the number of the others. A link to a directory above itself is an error.

With --format auto, names that end in .json, .jsonl or .ndjson, also followed by .gz or .bz2, are JSON lines. Names that
end in .avro are Avro. The job does not read other files, but it records their names in staging.

Files must appear whole: rename them into place, as object stores do. The job knows a file by its path, and appends it
once. It does not see what is written into the file later.

A torn file of Avro, gzip or bzip2 ends the job with exit code 1, and nothing of its batch is appended: deliver the file
again under the same path. With --skip-corrupt-files the job counts the file as corrupt_files and continues. A plain
JSON file that ends too early is not an error: a cut line counts as unreadable. If a file is written to while the job
reads it, the job appends what it has read, ends with exit code 1 and names the file; with --skip-corrupt-files it
counts the file as changed_files and continues. In these three cases, deliver the file again under another name.

Standard output is one line of JSON: files, records, unreadable, long_records, erased_records, corrupt_files,
ignored_files, changed_files, broken_links, hidden_files, first_batch, last_batch, seconds; with --expect also
expectations, with --dbt also dbt. erased_records counts records of keys that erase.py has erased; the job drops them,
and they are not among the records. unreadable counts records without an object; the job names the file and line of
the first one. hidden_files is null if the search for hidden files takes longer than the run.

With --masks, values are replaced by keyed digests (sha256) or left out (drop) before a record is staged. A record that
cannot be read is staged without its text: its length, and a keyed digest of it. The key is in
RECONCILE_MASK_SECRET or in the file of --mask-key-file. Later runs need the same masks, or more, and the same key.

Exit codes: 0 done, also with unreadable records (--expect fail refuses them); 1 a file cannot be read or was written
to, records are not as expected, or dbt failed; 2 the command or the configuration is wrong; 4 a fault that a
retry may cure.
"""

SPANNER_HELP = """
Without --every the job appends all commits up to its own start (or --end), and ends. It reads in windows. Each window
is one batch, and holds every commit of its time, across partitions and tables. A window without records usually leaves
no batch. The job uses Google's application default credentials. If SPANNER_EMULATOR_HOST is set, it reads the emulator
without credentials.

Standard output is one line of JSON: windows, records, backfill_records, erased_mods, first_batch, last_batch, cut_time
(every commit up to this time is in staging), seconds; with --expect also expectations, with --dbt also dbt. erased_mods
counts mods of keys that erase.py has erased; the job drops them, and staging holds a mark without values in the place
of each.

Exit codes: 0 done; 1 records are not as expected, or dbt failed; 2 the command or the configuration is wrong; 4 a
fault that a retry may cure.
"""

BIGTABLE_HELP = """
Without --every the job reads until the low watermark of every partition has passed its own start (or --end), and ends.
It does not wait for a watermark that has stopped because a cluster has not replicated. It reads in rounds. Each round
is one batch, which also holds the position where the round ended. A round that brings nothing new usually leaves no
batch. The low watermark is Bigtable's own estimate: replicated changes from before it may arrive later. With
--backfill, choose a --start before all changes that are not replicated yet.

The job uses Google's application default credentials. If BIGTABLE_EMULATOR_HOST is set, it reads that server without
credentials.

Standard output is one line of JSON: rounds, records, backfill_records, first_batch, last_batch, low_watermark, seconds;
with --expect also expectations, with --dbt also dbt.

Exit codes: 0 done; 1 records are not as expected, or dbt failed; 2 the command or the configuration is wrong; 4 a
fault that a retry may cure.
"""

TABLE_HELP = """
Reads tables to which Datastream itself appends each change (append-only write mode), as Delta or Iceberg tables of this
session. Each run appends the rows that the tables got since the previous run, one batch for each table. Models read
them with the macro datastream_append. Compaction of files is no change. A table that was changed in another way (MERGE,
DELETE, an overwrite, a restore), or whose history since the last run is gone, is refused. With --reread the job reads
the whole table, and appends the records that staging does not have.

Standard output is one line of JSON: tables (that had new rows), records, erased_records, first_batch, last_batch,
seconds. erased_records counts rows of keys that erase.py has erased; the job drops them, and they are not among the
records.

Exit codes: 0 done; 1 a row is too long; 2 the command or the configuration is wrong, or a table was not only appended
to; 4 a fault that a retry may cure.
"""

SNAPSHOT_HELP = """
Beside a log, that is into the staging table of append.py datastream, spanner or bigtable: the job appends all rows of
the snapshot, and its position in the log. The next run of a model begins from them, or repairs its rows, deletes
included, where changes of the log were lost. This is for the logs of Oracle, MySQL, PostgreSQL and SQL Server, and for
the change streams of Spanner and Bigtable: docs/repair.md says for each what a snapshot contains. Before any record of
the log is there, say --beside-log, --object and --key.

For a table without a log, for example a reference table or an export each night: the job compares the snapshot with the
previous snapshot of the object in staging, and appends the differences. A new key is an insert, a row with other values
is an update, and a missing key is a delete. If the two snapshots are equal, the job appends no record. Models read the
records with the macro snapshots.

The snapshot table must be the complete result of snapshot.py. Stage the snapshots of an object in the order in which
they were taken. The job reads this time from the snapshot table, or from --at. It stages a snapshot only once. One
staging table holds the snapshots of many objects.

Standard output is one line of JSON: rows, erased_rows, inserted, updated, deleted, unchanged, taken_at, first_batch,
last_batch, seconds; beside a log: object, rows, erased_rows, position, taken_at, first_batch, last_batch, seconds; with
--dbt also dbt. erased_rows counts rows of keys that erase.py has erased; the job leaves them out, and they are not
among the rows.

Exit codes: 0 done; 1 the snapshot is empty, a key is NULL or repeated, a row is too long, or dbt failed; 2 the command
or the configuration is wrong; 4 a fault that a retry may cure.
"""


def _positive(text: str) -> int:
    if not re.fullmatch(r"[0-9]+", text) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return int(text)


_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30}


def _size(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,12})([kmg])b?", text.lower())
    # A row of Spark's holds less than 2 GiB, of which the record is one value.
    if not found or not 2**20 <= (size := int(found[1]) * _UNITS[found[2]]) <= 2**30:
        raise argparse.ArgumentTypeError(f"{text} is not a size from 1m to 1g; write for example 32m")
    return size


def _factor(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) or float(text) <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 1")
    return float(text)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len({name.lower() for name in names}) < len(names):
        raise argparse.ArgumentTypeError(
            f"{text!r} names no column, or a column twice; write for example id or order_id,line"
        )
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
    files.add_argument(
        "--format",
        choices=["auto", "json", "avro"],
        default="auto",
        help="the format of the files (default: auto, by their names)",
    )
    files.add_argument("--max-files", type=_positive, metavar="N", help="the greatest number of files in one batch")
    files.add_argument(
        "--every", type=interval, metavar="30s", help="keep running, and look for files at this interval"
    )
    files.add_argument(
        "--skip-corrupt-files", action="store_true", help="record the name of a file that cannot be read, and continue"
    )
    _add_masks(files)
    _add_erasure_key(files)
    spanner = _source(sources, "spanner", "a Spanner change stream", "the records of a change stream", SPANNER_HELP)
    spanner.add_argument("--project", required=True, help="the Google Cloud project of the instance")
    spanner.add_argument("--instance", required=True, help="the Spanner instance")
    spanner.add_argument("--database", required=True, help="the database, of either dialect")
    spanner.add_argument("--stream", required=True, help="the change stream, by its name in the database")
    _add_staging(spanner)
    _add_extent(
        spanner,
        within="the stream's retention period, and with --backfill also the database's",
        end="the last commit timestamp to append",
        existing="the rows that existed at the start",
    )
    spanner.add_argument("--every", type=interval, metavar="10s", help="keep running, with a window at this interval")
    spanner.add_argument(
        "--window",
        type=_short,
        default="60s",
        metavar="60s",
        help="the longest time that one batch covers (default: 60s)",
    )
    spanner.add_argument(
        "--heartbeat",
        type=_heartbeat,
        default="10s",
        metavar="10s",
        help="the interval of Spanner's heartbeats, 1s to 5m; a query without any record for ten intervals is repeated "
        "(default: 10s)",
    )
    spanner.add_argument(
        "--table",
        dest="tables",
        action="append",
        default=None,
        metavar="TABLE",
        help="begin only if the stream watches this table; may be repeated",
    )
    spanner.add_argument(
        "--partition-check",
        choices=["fail", "warn"],
        default="fail",
        help="what to do if the partitions that were read differ from those that Spanner lists (default: fail)",
    )
    _add_erasure_key(spanner)
    streams = "a Bigtable table's change stream"
    bigtable = _source(sources, "bigtable", streams, "the data changes of a change stream", BIGTABLE_HELP)
    bigtable.add_argument("--project", required=True, help="the Google Cloud project of the instance")
    bigtable.add_argument("--instance", required=True, help="the Bigtable instance")
    bigtable.add_argument("--table", required=True, help="the table; its change stream must be enabled")
    bigtable.add_argument("--app-profile", required=True, help="an app profile with single-cluster routing")
    _add_staging(bigtable, has_checkpoint=False)
    _add_extent(
        bigtable,
        within="the change stream's retention period",
        end="the commit timestamp to reach",
        existing="the cells that already exist",
    )
    bigtable.add_argument("--every", type=seconds_of, metavar="10s", help="keep running, with a round at this interval")
    tables = _source(sources, "table", "a table that Datastream appends to", "the new rows of tables", TABLE_HELP)
    tables.add_argument(
        "--table",
        dest="tables",
        action="append",
        type=lambda text: TableName.parse(text, "--table"),
        required=True,
        metavar="SCHEMA.TABLE",
        help="a table that Datastream writes in append-only mode; may be repeated",
    )
    _add_staging(tables, has_checkpoint=False, is_log=False)
    tables.add_argument("--object", metavar="NAME", help="the table's name in staging (default: that of --table)")
    tables.add_argument("--every", type=seconds_of, metavar="60s", help="keep running, and read at this interval")
    tables.add_argument(
        "--reread", action="store_true", help="read each table whole, and append the records that staging does not have"
    )
    _add_erasure_key(tables)
    differences = "the differences between a snapshot and the previous one"
    snapshot = _source(sources, "snapshot", "a snapshot of a table, with or without a log", differences, SNAPSHOT_HELP)
    snapshot.add_argument(
        "--table",
        type=lambda text: TableName.parse(text, "--table"),
        required=True,
        metavar="SCHEMA.TABLE",
        help="the snapshot table, as snapshot.py created it",
    )
    _add_staging(snapshot, has_checkpoint=False, is_log=False)
    snapshot.add_argument(
        "--key",
        type=_names,
        metavar="NAME,...",
        help="the columns that identify a row, never NULL; required for a table without a log (default beside a log: "
        "those that its records name)",
    )
    snapshot.add_argument(
        "--object",
        metavar="NAME",
        help="the object, which is the table's name in staging (default: the name in --table; beside a log, that of "
        "the source's table)",
    )
    snapshot.add_argument(
        "--beside-log",
        action="store_true",
        help="the staging table is that of a log, and may have no records yet (default: only if it has the log's)",
    )
    snapshot.add_argument(
        "--at",
        metavar="TIME",
        help="when the snapshot was taken, for example 2026-05-01T09:00:00Z; not beside a log (default: the time in "
        "its table)",
    )
    snapshot.add_argument(
        "--allow-empty", action="store_true", help="accept a snapshot without rows, which deletes every row"
    )
    snapshot.add_argument(
        "--allow-new-columns",
        action="store_true",
        help="accept a snapshot with more columns, or other types, than before; a row of which a value is then written "
        "differently counts as updated",
    )
    _add_erasure_key(snapshot)
    asked = vars(parser.parse_args(words))
    expected = _expected(asked)  # which still sees an interval that is dbt's
    asked |= _masks(asked)
    if asked["source"] == "table":
        asked["tables"] = tuple(asked["tables"])
        if asked["reread"] and asked["every"] is not None:
            raise UsageError("--reread reads each table only once: remove --every.")
    return asked.pop("source"), asked, _dbt(asked), expected


def _source(sources: Any, name: str, help: str, records: str, epilog: str) -> argparse.ArgumentParser:
    description = f"Append {records} to a staging table, each once."
    return sources.add_parser(name, help=help, description=description, epilog=epilog)  # type: ignore[no-any-return]


def _add_erasure_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--erasure-key-file",
        metavar="FILE",
        help="a file of mode 600 with the key of the register of erased keys, if erase.py has made one (default: the "
        "variable RECONCILE_ERASURE_SECRET)",
    )


def _add_masks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--masks",
        metavar="FILE",
        help="a file of YAML with the fields of each object to mask, as `shop.customers: {email: sha256, ssn: drop}`; "
        "their values are never staged in clear",
    )
    parser.add_argument(
        "--mask-key-file",
        metavar="FILE",
        help="a file of mode 600 with the key of the masks (default: the variable RECONCILE_MASK_SECRET)",
    )


# Where the option is there only to be refused: whoever gives it must not believe that values are masked.
_UNMASKED = {
    "spanner": "records of Spanner cannot be masked yet; let the change stream watch other columns",
    "bigtable": "records of Bigtable cannot be masked yet; stage a table without such cells",
    "table": "rows of append tables cannot be masked yet; leave the columns out of the stream",
    "snapshot": "append.py snapshot stages the values of the snapshot table as they are: give --masks to snapshot.py, "
    "which makes that table",
}


def _masks(asked: dict[str, Any]) -> dict[str, Any]:
    """Take the masks out of what was asked for, and return them as the job has them. Raises UsageError."""
    masks, key_file = asked.pop("masks", None), asked.pop("mask_key_file", None)
    if (why := _UNMASKED.get(asked["source"])) is None:
        return {"masks": read_masks(masks, key_file)}
    if masks is not None or key_file is not None:
        raise UsageError(f"--masks is not for append.py {asked['source']}, and nothing was appended: {why}.")
    return {}


def _dbt(asked: dict[str, Any]) -> tuple[str, float | None] | None:
    """Take dbt out of what was asked for, and the interval with it. Raises UsageError."""
    command = asked.pop("dbt")
    if command is None:
        return None
    if asked.get("every") is None:
        return command, None
    if asked.get("end") is not None:
        raise UsageError("--dbt with --every does not end: remove --end or --every.")
    every, asked["every"] = in_seconds(asked["every"]), None
    return command, every


def _add_staging(parser: argparse.ArgumentParser, has_checkpoint: bool = True, is_log: bool = True) -> None:
    longer = "for a longer record staging holds a note, which models put into quarantine"
    parser.add_argument(
        "--staging",
        type=TableName.parse,
        required=True,
        metavar="SCHEMA.TABLE",
        help="the staging table; also CATALOG.SCHEMA.TABLE. It is created if it is missing",
    )
    if parser.prog.split()[-1] in _UNMASKED:
        parser.add_argument("--masks", help=argparse.SUPPRESS)
        parser.add_argument("--mask-key-file", help=argparse.SUPPRESS)
    parser.add_argument(
        "--dbt",
        metavar="COMMAND",
        help="run dbt in this process after the first pass, after each pass that appended something, and after a "
        "failed run of dbt; for example --dbt 'build --select tag:shop'",
    )
    parser.add_argument(
        "--longest-record",
        type=_size,
        default=LONGEST,
        metavar="32m",
        help=f"the longest record (1m to 1g, default: 32m); {longer if is_log else 'a longer row ends the job'}",
    )
    if has_checkpoint:
        where = "the record of what was appended (default: lakehouse/_checkpoints/SCHEMA.TABLE)"
        parser.add_argument("--checkpoint", metavar="DIR", help=where)
    if is_log:
        _add_expectations(parser)


def _add_extent(parser: argparse.ArgumentParser, within: str, end: str, existing: str) -> None:
    parser.add_argument(
        "--start",
        metavar="TIME",
        help=f"where the first run begins, for example 2026-05-01T09:00:00Z, within {within} (default: now); later "
        "runs continue where the run before ended",
    )
    parser.add_argument("--end", metavar="TIME", help=f"{end} (default: now; with --every, no end)")
    parser.add_argument("--backfill", action="store_true", help=f"also append {existing}")


def _add_expectations(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "expectations",
        "With --expect, Great Expectations validates the appended records: the records can be\n"
        "read, their object and change type are known, the fields that order them exist, they\n"
        "arrived in time, and their number is not unusual.",
    )
    group.add_argument(
        "--expect",
        nargs="?",
        choices=["warn", "fail"],
        const="warn",
        help="report expectations that are not met (default: warn); with fail, exit with 1 until a run with warn "
        "accepts the records",
    )
    group.add_argument(
        "--expect-object",
        action="append",
        metavar="OBJECT",
        help="an object that records may have; may be repeated (default: the objects that staging had before)",
    )
    group.add_argument(
        "--expect-lag", type=seconds_of, metavar="24h", help="the longest time from commit to append (default: 24h)"
    )
    group.add_argument(
        "--expect-volume",
        type=_factor,
        metavar="10",
        help="by what factor the records of the last day may differ from the median day of the week before, by object "
        "(default: 10); checked once staging holds four days",
    )
    group.add_argument(
        "--data-docs",
        metavar="DIR",
        help="the directory for results and Data Docs (default: lakehouse/_expectations/SCHEMA.TABLE)",
    )


def _expected(asked: dict[str, Any]) -> Expected | None:
    """Take the expectations out of what was asked for. Raises UsageError."""
    on_failure = asked.pop("expect", None)
    given = {name: asked.pop(name, None) for name in ("expect_object", "expect_lag", "expect_volume", "data_docs")}
    if on_failure is None:
        if any(given.values()):
            name = next(name for name, value in given.items() if value).replace("_", "-")
            raise UsageError(f"--{name} works only with --expect: add --expect, or remove --{name} out.")
        return None
    if asked["every"] is not None:
        raise UsageError(
            "--expect checks the records of a run that ends, and a run with --every does not end: remove one of them."
        )
    return Expected(
        on_failure=on_failure,
        objects=tuple(given["expect_object"]) if given["expect_object"] else None,
        max_lag=given["expect_lag"] or 24 * 3600,
        volume_factor=given["expect_volume"] or 10.0,
        data_docs=given["data_docs"],
    )
