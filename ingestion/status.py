"""Report what is wrong, the worst first: `spark-submit status.py --help`."""

from __future__ import annotations

import sys

from reconcile_jobs.monitoring import facts
from reconcile_jobs.process import session
from reconcile_jobs.process.command_line import Parser
from reconcile_jobs.process.console import Console
from reconcile_jobs.staging import TableName

_EPILOG = """
The job reads the view reconcile_status, which `dbt run` creates. It writes one line to standard error for each problem,
the worst first. The view shows the present content of the tables, for the models that the project had when dbt created
the view.

  0  nothing is wrong
  1  data are wrong or missing: records in quarantine, differences that parity confirmed, records without an object,
     staging tables that were restored or made anew
  2  the command or the configuration is wrong
  3  somebody has to look: objects that no model reads, columns that are not as declared, pending rows, rows that parity
     cannot decide, models that were never built, records that no run has applied within --applied-within
  4  time may cure it: models that have not applied all of staging, rows in flight, no append within --appended-within

Standard output is one line of JSON: staging_tables, the number of findings with exit code 1 (wrong), 3 (look) and
4 (wait), and status: right, or the word of the exit code.
"""


def main(words: list[str], console: Console) -> None:
    """Print what is not right, worst first. Raises JobError for the worst of it."""
    parser = Parser(prog="status.py", description=__doc__, epilog=_EPILOG)
    facts.add_options(parser)
    options = parser.parse_args(words)
    view = TableName.parse(options.status, "--status")
    limits = facts.limits_of(options)
    rows = facts.read(session.start(f"status {view}"), view)
    found = facts.findings(rows, limits)
    for _, sentence in found:
        console.say(sentence)
    console.result(facts.summary(rows, found))
    facts.ended(found, "--help")


if __name__ == "__main__":
    console = Console("status")
    sys.exit(console.exit_code(lambda: main(sys.argv[1:], console)))
