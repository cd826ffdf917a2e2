"""Write the state of all models as one page, and as metrics: `spark-submit report.py --help`."""

from __future__ import annotations

import datetime  # as a whole: an older Python has no UTC in it, and is to hear what reconcile_jobs says of that
import sys
from pathlib import Path

from reconcile_jobs.monitoring import facts, metrics
from reconcile_jobs.monitoring.state import state_of
from reconcile_jobs.process import session
from reconcile_jobs.process.command_line import Parser
from reconcile_jobs.process.console import Console
from reconcile_jobs.process.errors import JobError, UsageError, in_sentences
from reconcile_jobs.process.written_files import write
from reconcile_jobs.staging import TableName

_EPILOG = """
The job reads the views reconcile_status and reconcile_models, which `dbt run` creates in one schema. It shows the
present content of the tables, for the models that the project had when dbt created the views.

The page is one file of HTML. It loads nothing, runs no script, and can be printed. It has a row for each model, the
worst first. The metrics are OpenMetrics text, of gauges only, and without anything that Prometheus' older text format
lacks. Each file is replaced as a whole. If the state cannot be read, both files say so, and the job ends with the code
of the failure.

  0  nothing is wrong
  1  data are wrong or missing
  2  the command or the configuration is wrong, or a table of the package is missing
  3  somebody has to look
  4  time may cure it: models that have not applied all of staging, rows in flight, no append within --appended-within

What has which code, `status.py --help` says: the exit codes are the same.

Standard output is one line of JSON: models, staging_tables, the number of findings with exit code 1 (wrong),
3 (look) and 4 (wait), and status: right, or the word of the exit code.
"""


def main(words: list[str], console: Console) -> None:
    """Write the page and the metrics. Raises JobError for the worst of what is not right."""
    parser = Parser(prog="report.py", description=__doc__, epilog=_EPILOG)
    facts.add_options(parser)
    parser.add_argument("--html", type=Path, metavar="FILE", help="the page, state.html for example")
    parser.add_argument("--metrics", type=Path, metavar="FILE", help="the metrics, metrics.prom for example")
    options = parser.parse_args(words)
    from reconcile_jobs.monitoring import page  # here, so that a Python without Jinja is told in a sentence

    files = [path.resolve() for path in (options.html, options.metrics) if path]
    if not files or len({*files}) < len(files):
        raise UsageError("Name a file to write, with --html or --metrics or both, and another one with each.")
    view = TableName.parse(options.status, "--status")
    limits = facts.limits_of(options)
    try:
        with in_sentences():
            read = facts.read_all(session.start(f"report {view}"), view)
            state = state_of(read, limits)
            html, text = page.html(state, str(view)), metrics.text(state)
    except JobError as failure:
        # A page of before would go on saying what it said.
        at = datetime.datetime.now(datetime.UTC)
        _write(options.html, page.unknown(str(view), str(failure), at), options.metrics, metrics.unknown(at))
        raise
    _write(options.html, html, options.metrics, text)
    found = facts.findings(read.status, limits)
    console.result({"models": len(state.models), **facts.summary(read.status, found)})
    facts.ended(found, str(options.html or "what status.py says"))


def _write(html_file: Path | None, html: str, metrics_file: Path | None, text: str) -> None:
    write({path: content for path, content in ((html_file, html), (metrics_file, text)) if path})


if __name__ == "__main__":
    console = Console("report")
    sys.exit(console.exit_code(lambda: main(sys.argv[1:], console)))
