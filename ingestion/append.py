"""Append a source's change records to a staging table: `spark-submit append.py datastream|spanner|bigtable --help`."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from importlib import import_module

from reconcile_jobs import expectations
from reconcile_jobs.append_arguments import arguments
from reconcile_jobs.caller import Caller
from reconcile_jobs.console import Console
from reconcile_jobs.shutdown import Shutdown

# Imported when they are asked for: each has a Job, whose fields are its options, and run.
JOBS = {
    "datastream": "reconcile_jobs.datastream",
    "spanner": "reconcile_jobs.spanner.job",
    "bigtable": "reconcile_jobs.bigtable.job",
}


def main(words: list[str], console: Console, shutdown: Shutdown) -> None:
    """Append what the words ask for; the counts are one line of JSON on standard output. Raises JobError."""
    started = time.monotonic()
    name, asked, expected = arguments(words, __doc__)
    source = import_module(JOBS[name])

    from reconcile_jobs import session

    staging = asked["staging"]
    spark = session.start(f"append {staging}")
    shutdown.watch(spark)
    totals = source.run(spark, source.Job(**asked), Caller(shutdown.stop, console.say, console.progress))
    result = asdict(totals)
    console.progress("looking at what was appended" if expected else "")
    outcome = expected and expectations.check(spark, staging, name, totals.first_batch, expected, console.say)
    if expected:
        result["expectations"] = outcome and asdict(outcome)
    console.result(result | {"seconds": round(time.monotonic() - started, 1)})
    if expected and outcome and not outcome.success and expected.on_failure == "fail":
        raise expectations.refusal(staging, outcome)


if __name__ == "__main__":
    console, shutdown = Console("append"), Shutdown()
    shutdown.end(console.exit_code(lambda: main(sys.argv[1:], console, shutdown)))
