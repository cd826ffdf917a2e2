"""What the monitoring views say of a project, and what of it is not right: read in one place for every report."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from reconcile_jobs.process.command_line import seconds_of
from reconcile_jobs.process.counted import counted
from reconcile_jobs.process.errors import DataError, Fault, JobError, Undecided, UsageError, causes
from reconcile_jobs.staging import TableName

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

__all__ = [
    "EXIT_CODES",
    "Facts",
    "Limits",
    "add_options",
    "ended",
    "finding",
    "findings",
    "in_utc",
    "is_late",
    "is_stopped",
    "limits_of",
    "read",
    "read_all",
    "since",
    "summary",
]

# What the views call what is not right, worst first, and the exit code of each.
EXIT_CODES = {"wrong": 1, "look": 3, "wait": 4}
_FAILURES: dict[int, type[JobError]] = {1: DataError, 3: Undecided, 4: Fault}


@dataclass(frozen=True)
class Limits:
    """What the user says is right.

    The longest time since an append, the longest time that a record may wait for a run, and the objects that no model
    needs to read.
    """

    appended_within: timedelta = timedelta(hours=24)
    applied_within: timedelta = timedelta(hours=24)
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class Facts:
    """The rows of reconcile_status and of reconcile_models, and the time of the session when they were read."""

    status: list[Any]
    models: list[Any]
    now: datetime


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every report has."""
    parser.add_argument(
        "--status",
        required=True,
        metavar="SCHEMA.VIEW",
        help="the view reconcile_status of the project; also CATALOG.SCHEMA.VIEW",
    )
    parser.add_argument(
        "--appended-within",
        type=seconds_of,
        default=seconds_of("24h"),
        metavar="24h",
        help="the longest time since a staging table's last append (default: 24h)",
    )
    parser.add_argument(
        "--applied-within",
        type=seconds_of,
        default=seconds_of("24h"),
        metavar="24h",
        help="the longest time that a record in staging may wait until a model has applied it (default: 24h)",
    )
    parser.add_argument(
        "--ignore-object",
        action="append",
        default=[],
        metavar="NAME",
        help="an object that no model needs to read; may be repeated",
    )


def limits_of(options: argparse.Namespace) -> Limits:
    """Return what the options of `add_options` say is right."""
    return Limits(
        appended_within=timedelta(seconds=options.appended_within),
        applied_within=timedelta(seconds=options.applied_within),
        ignored=tuple(options.ignore_object),
    )


def read(spark: SparkSession, view: TableName) -> list[Row]:
    """Return the rows of reconcile_status, and with each the time of the session now. Raises UsageError."""
    with _read_once(spark, _beside(view, "reconcile_ledger")):
        return _rows(spark, view, "state")


def read_all(spark: SparkSession, view: TableName) -> Facts:
    """Return the rows of reconcile_status and of reconcile_models beside it. Raises UsageError.

    Both are of the same moment, and what reconcile_models reads of reconcile_status is read once.
    """
    with _read_once(spark, _beside(view, "reconcile_ledger"), view):
        status = _rows(spark, view, "state")
        rows = _rows(spark, _beside(view, "reconcile_models"), "is_built")
    return Facts(status, rows, next((row.now for row in (*status, *rows)), datetime.now()))


def _beside(view: TableName, name: str) -> TableName:
    return TableName((*view.parts[:-1], name))


@contextmanager
def _read_once(spark: SparkSession, *names: TableName) -> Iterator[None]:
    """Keep what is read of tables and views, of those that exist: the views name the ledger eight times."""
    kept = []
    try:
        for name in names:
            with _readable(name):
                if spark.catalog.tableExists(name.sql):
                    spark.catalog.cacheTable(name.sql)
                    kept.append(name)
        yield
    finally:
        for name in reversed(kept):
            with _readable(name):
                spark.catalog.uncacheTable(name.sql)


def _rows(spark: SparkSession, view: TableName, newest_column: str) -> list[Row]:
    with _readable(view):
        if not spark.catalog.tableExists(view.sql):
            raise UsageError(f"{view} does not exist; `dbt run` makes it.")
        if newest_column not in spark.table(view.sql).columns:
            raise UsageError(
                f"{view} was created by an earlier version of the package; run `dbt run`, which replaces it."
            )
        return spark.sql(f"SELECT *, current_timestamp() AS now FROM {view.sql}").collect()


@contextmanager
def _readable(view: TableName) -> Iterator[None]:
    try:
        yield
    except JobError:
        raise
    except Exception as problem:
        story = "\n".join(message for _, message in causes(problem))
        found = re.search(r"TABLE_OR_VIEW_NOT_FOUND\][^`\n]*(`[^\n]*`) cannot be found", story)
        if found is None:
            raise
        raise UsageError(
            f"{view} reads {found[1]}, which does not exist: restore it, or run `dbt run`, which makes the views, and "
            "a ledger that is missing, anew."
        ) from problem


def findings(rows: Iterable[Any], limits: Limits) -> list[tuple[int, str]]:
    """Return what is not right as exit code and sentence, the worst first."""
    found = [each for row in rows if (each := finding(row, limits))]
    return sorted(found, key=lambda each: list(EXIT_CODES.values()).index(each[0]))


def finding(row: Any, limits: Limits) -> tuple[int, str] | None:
    """Return what a row of reconcile_status says is not right, as exit code and sentence; None: it is right."""
    if row.kind == "appended":
        return (EXIT_CODES["wait"], _missing_append(row)) if is_stopped(row, limits) else None
    if row.state is None or (row.kind == "unrouted" and row.object in limits.ignored):
        return None
    if is_late(row, limits):
        # Time has not cured it: unlike a source, which may have nothing to append, a run has records to apply.
        return EXIT_CODES["look"], f"{row.relation}: {_what(row)}: {_late(row)}"
    return EXIT_CODES[row.state], f"{row.relation}: {_what(row)}"


def is_late(row: Any, limits: Limits) -> bool:
    """Whether a row of reconcile_status says that a model has left records unapplied for too long."""
    return row.kind == "not_applied" and row.at is not None and since(row) > limits.applied_within


def is_stopped(appended: Any, limits: Limits) -> bool:
    """Whether a staging table, given as its row of the kind appended, has had no append for too long."""
    return appended.at is None or since(appended) > limits.appended_within


def since(row: Any) -> timedelta:
    """Return the time since what a row of reconcile_status is of: the last append to a staging table, for example."""
    # Times without a zone would be an hour off where the clocks of the process's zone change in between.
    return in_utc(row.now) - in_utc(row.at)


def summary(rows: Iterable[Any], found: list[tuple[int, str]]) -> dict[str, Any]:
    """Return the counts that a report ends with."""
    words = {code: word for word, code in EXIT_CODES.items()}
    return {
        "staging_tables": sum(row.kind == "appended" for row in rows),
        **{word: sum(code == each for each, _ in found) for word, code in EXIT_CODES.items()},
        "status": words[found[0][0]] if found else "right",
    }


def ended(found: list[tuple[int, str]], see: str) -> None:
    """End a report. Raises the JobError of the worst finding, if there is one; `see`: where to look."""
    if found:
        raise _FAILURES[found[0][0]](
            f"{len(found)} finding{'s' if len(found) > 1 else ''}, the worst first; see {see}."
        )


def in_utc(at: datetime) -> datetime:
    """Return a time as Spark gives it, without a zone and of the process's own, as one in UTC."""
    return at.astimezone(UTC)


def _late(row: Any) -> str:
    hours = int(since(row).total_seconds()) // 3600
    waited = f"{hours} hour{'' if hours == 1 else 's'}" if hours < 48 else f"{hours // 24} days"
    return (
        f"no run has applied them for {waited}: look whether `dbt run` still runs, and what it says of this model; the "
        "next run that succeeds applies them"
    )


def _missing_append(row: Any) -> str:
    if row.at is None:
        return f"{row.relation}: nothing has been appended yet"
    return f"{row.relation}: nothing appended since {_time(row.at)}, batch {row.last_batch}"


def _what(row: Any) -> str:
    records = counted(row.records or 0, "record")
    if row.kind == "quarantined":
        return f"{records} in quarantine, {_batches(row)}: {row.detail}"
    if row.kind == "set_back":
        return (
            f"{row.detail}: the staging table was restored or made anew; restore its newest version, or rebuild the "
            "model with `dbt run --full-refresh` when the staging table has all records again"
        )
    if row.kind == "never_built":
        return (
            f"the model {row.detail} is declared and was never built: run `dbt run --select {row.detail}`, and see "
            "what it says if it fails; or disable the model"
        )
    if row.kind == "unrouted" and row.object is None:
        return f"{records} without an object, {_batches(row)}: see reconcile_unrouted"
    if row.kind == "unrouted":
        return f"no model reads {row.object}, {records}, {_batches(row)}: {row.detail}"
    if row.kind == "drift":
        return f"{row.detail} since batch {row.first_batch}, {records}"
    if row.kind == "pending":
        return f"{counted(row.records or 0, 'row')} wait for the rest of their columns, or for their row"
    if row.kind == "not_applied":
        return f"{records} not applied yet, {_batches(row)}, the first of {_time(row.at)}"
    return f"{counted(row.records or 0, 'row')} {row.detail}, at {_time(row.at)}"  # parity


def _batches(row: Any) -> str:
    if row.first_batch == row.last_batch:
        return f"batch {row.first_batch}"
    return f"batches {row.first_batch} to {row.last_batch}"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"
