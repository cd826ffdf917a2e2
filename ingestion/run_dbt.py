"""Run dbt within spark-submit: `spark-submit run_dbt.py -- build --select tag:shop`."""

from __future__ import annotations

import sys

from reconcile_jobs.process import session
from reconcile_jobs.process.command_line import Parser
from reconcile_jobs.process.console import Console
from reconcile_jobs.process.dbt_commands import invoke
from reconcile_jobs.process.errors import DataError, Fault, UsageError
from reconcile_jobs.process.shutdown import Shutdown

_EPILOG = """
What follows -- is a command of dbt, in the Spark session that spark-submit configured; the profile has `method:
session`. So dbt runs where nothing but spark-submit runs: on a cluster, as a batch of a managed Spark, in a container.

A dbt command of its own prints the Java stack trace of what Spark refuses. This one prints a sentence. SIGINT (Ctrl-C)
and SIGTERM end it within seconds: the statement that runs is cancelled, and writes nothing.

  0  dbt did everything
  1  models or tests failed; dbt has named them
  2  the command or the configuration is wrong
  4  it was asked to stop: run the same command again
"""


def main(words: list[str], console: Console, shutdown: Shutdown) -> None:
    """Run the dbt command that the words name. Raises JobError."""
    parser = Parser(prog="run_dbt.py", description=__doc__, epilog=_EPILOG)
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="a command of dbt with its options, after --")
    if words[:1] != ["--"]:
        parser.parse_args(words)
        raise UsageError(f"A command of dbt follows --, as in `run_dbt.py -- {' '.join(words)}`.")
    command = parser.parse_args(words).command
    console.progress("starting Spark")
    spark = session.start(f"dbt {command[0]}", shutdown.listen)
    shutdown.watch(spark)
    console.progress("")
    done = invoke(command, shutdown.stop, spark.sparkContext.cancelAllJobs)
    if done.success:
        return
    if shutdown.stop.is_set():
        raise Fault("Stopped before dbt had done everything; what was merged stays: run the same command again.")
    if done.exception is not None:
        raise UsageError(f"dbt refuses: {done.exception}".rstrip(".") + ".")
    raise DataError("Models or tests failed: see what dbt printed above.")


if __name__ == "__main__":
    console, shutdown = Console("run_dbt"), Shutdown()
    shutdown.end(console.exit_code(lambda: main(sys.argv[1:], console, shutdown)))
