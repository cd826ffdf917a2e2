"""Append a source's change records to a staging table: `spark-submit append.py datastream --help`, or spanner."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict
from importlib import import_module

from reconcile_jobs.append_arguments import arguments
from reconcile_jobs.console import Console
from reconcile_jobs.errors import explained
from reconcile_jobs.shutdown import Shutdown

# Imported when they are asked for: each has a Job, whose fields are its options, and run.
JOBS = {"datastream": "reconcile_jobs.datastream", "spanner": "reconcile_jobs.spanner.job"}


def main(words: list[str], console: Console, shutdown: Shutdown) -> None:
    """Append what the words ask for; the counts are one line of JSON on standard output. Raises JobError."""
    started = time.monotonic()
    asked = vars(arguments(words, __doc__))
    source = import_module(JOBS[asked.pop("source")])

    from reconcile_jobs import session

    spark = session.start(f"append {asked['staging']}")
    shutdown.watch(spark)
    totals = source.run(spark, source.Job(**asked), shutdown.stop, console.say, console.progress)
    console.result(asdict(totals) | {"seconds": round(time.monotonic() - started, 1)})


if __name__ == "__main__":
    console, shutdown, code = Console("append"), Shutdown(), 0
    sys.stderr = console.err
    try:
        main(sys.argv[1:], console, shutdown)
    except Exception as problem:
        if os.environ.get("RECONCILE_TRACEBACK"):
            raise
        failure = explained(problem)
        console.say(str(failure))
        code = failure.exit_code
    shutdown.end(code)
