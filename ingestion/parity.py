"""Report the result of the last comparisons as an exit code: `spark-submit parity.py --help`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from reconcile_jobs.process import session
from reconcile_jobs.process.command_line import Parser
from reconcile_jobs.process.console import Console
from reconcile_jobs.process.errors import DataError, Fault, Undecided, UsageError
from reconcile_jobs.staging import TableName, literal

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_EPILOG = """
`dbt test` writes a row to reconcile_parity for each comparison of `reconcile.parity`, and ends with 1 for every kind of
difference. This job reads the newest row of each test, or the rows of one run. Its exit code shows what to do:

  0  every row in scope matches
  1  differences are confirmed: look at reconcile_parity_differences
  2  the command or the configuration is wrong, or there is no comparison yet
  3  some rows are unprovable, none is confirmed: first repair the records in quarantine and the pending rows
  4  some rows are in flight, none is confirmed or unprovable: test again later, or with a later snapshot

Standard output is one line of JSON: comparisons, and the sums of their compared, matched, confirmed, unprovable and
in_flight rows.
"""
_COUNTS = ["compared", "matched", "confirmed", "unprovable", "in_flight"]


def main(words: list[str], console: Console) -> None:
    """Print what the comparisons came to. Raises JobError unless every row matched."""
    parser = Parser(prog="parity.py", description=__doc__, epilog=_EPILOG)
    parser.add_argument(
        "--results",
        required=True,
        metavar="SCHEMA.TABLE",
        help="the table reconcile_parity of the project; also CATALOG.SCHEMA.TABLE",
    )
    parser.add_argument(
        "--relation", metavar="SCHEMA.NAME", help="only comparisons of this model; also CATALOG.SCHEMA.NAME"
    )
    parser.add_argument(
        "--run",
        metavar="ID",
        help="only comparisons of the dbt run with this invocation_id (default: the newest of each test)",
    )
    options = parser.parse_args(words)
    results = TableName.parse(options.results, "--results")
    last = newest(session.start(f"parity {results}"), results, options.relation, options.run)
    if not last:
        raise UsageError(f"{results} has no such comparison; run `dbt test` first.")
    sums = {count: sum(row[count] for row in last) for count in _COUNTS}
    console.result({"comparisons": len(last), **sums})
    summary = f"{sums['matched']} of {sums['compared']} rows match, {sums['confirmed']} differ, "
    summary += f"{sums['unprovable']} are unprovable, {sums['in_flight']} in flight: "
    summary += ", ".join(
        f"{row.relation} with {row.compared_to} {row.verdict}" for row in last if row.verdict != "match"
    )
    verdicts = {row.verdict for row in last}
    if "confirmed" in verdicts:
        raise DataError(f"{summary}.")
    if "unprovable" in verdicts:
        raise Undecided(f"{summary}.")
    if "in_flight" in verdicts:
        raise Fault(f"{summary}; test again later.")


def newest(spark: SparkSession, results: TableName, relation: str | None, run: str | None) -> list[Row]:
    """Return the newest comparison of each test, its columns those of reconcile_parity. Raises UsageError."""
    if not spark.catalog.tableExists(results.sql):
        raise UsageError(f"{results} does not exist; `dbt test` makes it where a model has the test reconcile.parity.")
    wanted = ["true"]
    wanted += [f"relation = {literal(relation)}"] if relation else []
    wanted += [f"run_id = {literal(run)}"] if run else []
    return spark.sql(
        f"SELECT last.* FROM (SELECT max_by(struct(*), recorded_at) AS last FROM {results.sql} "
        f"WHERE {' AND '.join(wanted)} GROUP BY test, relation, compared_to) ORDER BY last.relation, last.test"
    ).collect()


if __name__ == "__main__":
    console = Console("parity")
    sys.exit(console.exit_code(lambda: main(sys.argv[1:], console)))
