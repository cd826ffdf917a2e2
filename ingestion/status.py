"""Report what is wrong, the worst first: `spark-submit status.py --help`."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from reconcile_jobs.process import session
from reconcile_jobs.process.command_line import Parser, seconds_of
from reconcile_jobs.process.console import Console
from reconcile_jobs.process.errors import DataError, Fault, JobError, Undecided, UsageError
from reconcile_jobs.staging import TableName

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_EPILOG = """
The job reads the view reconcile_status, which `dbt run` creates. It writes one line to standard error for each problem,
the worst first. The view shows the present content of the tables, for the models that dbt had built when it created
the view.

  0  nothing is wrong
  1  data are wrong or missing: records in quarantine, differences that parity confirmed, records without an object
  2  the command or the configuration is wrong
  3  somebody has to look: objects that no model reads, columns that are not as declared, pending rows, rows that parity
     cannot decide
  4  time may cure it: models that have not applied all of staging, rows in flight, no append within --appended-within

Standard output is one line of JSON: staging_tables, the number of findings with exit code 1 (wrong), 3 (look) and
4 (wait), and status: right, or the word of the exit code.
"""

# What an exit code means, worst first.
_WORDS = {1: "wrong", 3: "look", 4: "wait"}


def main(words: list[str], console: Console) -> None:
    """Print what is not right, worst first. Raises JobError for the worst of it."""
    parser = Parser(prog="status.py", description=__doc__, epilog=_EPILOG)
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
        "--ignore-object",
        action="append",
        default=[],
        metavar="NAME",
        help="an object that no model needs to read; may be repeated",
    )
    options = parser.parse_args(words)
    view = TableName.parse(options.status, "--status")
    rows = read(session.start(f"status {view}"), view)
    found = findings(rows, timedelta(seconds=options.appended_within), options.ignore_object)
    for _, sentence in found:
        console.say(sentence)
    worst = found[0][0] if found else 0
    tables = sum(row.kind == "appended" for row in rows)
    console.result(
        {
            "staging_tables": tables,
            **{word: sum(code == each for each, _ in found) for code, word in _WORDS.items()},
            "status": _WORDS.get(worst, "right"),
        }
    )
    if worst:
        raise _FAILURES[worst](f"{len(found)} finding{'s' if len(found) > 1 else ''}, the worst first; see --help.")


def read(spark: SparkSession, view: TableName) -> list[Row]:
    """Return the rows of the view, and with each the time of the session now. Raises UsageError."""
    if not spark.catalog.tableExists(view.sql):
        raise UsageError(f"{view} does not exist; `dbt run` makes it.")
    if "detail" not in spark.table(view.sql).columns:
        raise UsageError(f"{view} was created by an earlier version of the package; run `dbt run`, which replaces it.")
    return spark.sql(f"SELECT *, current_timestamp() AS now FROM {view.sql}").collect()


def findings(rows: list[Any], appended_within: timedelta, ignored: list[str]) -> list[tuple[int, str]]:
    """Return what is not right as exit code and sentence, the worst first."""
    found = [finding for row in rows if (finding := _finding(row, appended_within, ignored))]
    return sorted(found, key=lambda finding: list(_WORDS).index(finding[0]))


def _finding(row: Any, appended_within: timedelta, ignored: list[str]) -> tuple[int, str] | None:
    what, records = row.relation, _counted(row.records)
    if row.kind == "appended":
        return _missing_append(row, appended_within)
    if row.kind == "quarantined":
        return 1, f"{what}: {records} in quarantine, {_batches(row)}: {row.detail}"
    if row.kind == "unrouted" and row.object is None:
        return 1, f"{what}: {records} without an object, {_batches(row)}: see reconcile_unrouted"
    if row.kind == "unrouted":
        if row.object in ignored:
            return None
        return 3, f"{what}: no model reads {row.object}, {records}, {_batches(row)}: {row.detail}"
    if row.kind == "drift":
        return 3, f"{what}: {row.detail} since batch {row.first_batch}, {records}"
    if row.kind == "pending":
        return 3, f"{what}: {_counted(row.records, 'row')} wait for the rest of their columns, or for their row"
    if row.kind == "not_applied":
        return 4, f"{what}: {records} not applied yet, {_batches(row)}, the first of {_time(row.at)}"
    return _comparison(row)


def _missing_append(row: Any, appended_within: timedelta) -> tuple[int, str] | None:
    if row.at is None:
        return 4, f"{row.relation}: nothing has been appended yet"
    if row.now - row.at <= appended_within:
        return None
    return 4, f"{row.relation}: nothing appended since {_time(row.at)}, batch {row.last_batch}"


def _comparison(row: Any) -> tuple[int, str] | None:
    verdict = row.detail.partition(",")[0]
    if verdict == "match":
        return None
    code = {"confirmed": 1, "unprovable": 3, "in_flight": 4}[verdict]
    return code, f"{row.relation}: {_counted(row.records, 'row')} {row.detail}, at {_time(row.at)}"


def _counted(number: int | None, noun: str = "record") -> str:
    return f"{number or 0:,} {noun}{'' if number == 1 else 's'}"


def _batches(row: Any) -> str:
    if row.first_batch == row.last_batch:
        return f"batch {row.first_batch}"
    return f"batches {row.first_batch} to {row.last_batch}"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"


_FAILURES: dict[int, type[JobError]] = {1: DataError, 3: Undecided, 4: Fault}


if __name__ == "__main__":
    console = Console("status")
    sys.exit(console.exit_code(lambda: main(sys.argv[1:], console)))
