"""Append a source's change records to a staging table: `spark-submit append.py datastream --help`.

The other sources: spanner, bigtable, table, snapshot.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from typing import Any

from reconcile_jobs import expectations
from reconcile_jobs.append_arguments import arguments
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.console import Console
from reconcile_jobs.process.dbt_runs import DbtRuns, append_and_run
from reconcile_jobs.process.errors import Fault
from reconcile_jobs.process.shutdown import Shutdown

# Imported when they are asked for: each has a Job, whose fields are its options, and run.
JOBS = {
    "datastream": "reconcile_jobs.datastream",
    "spanner": "reconcile_jobs.spanner.job",
    "bigtable": "reconcile_jobs.bigtable.job",
    "table": "reconcile_jobs.append_table",
    "snapshot": "reconcile_jobs.snapshot_job",
}


def main(words: list[str], console: Console, shutdown: Shutdown) -> None:
    """Append what the words ask for; the counts are one line of JSON on standard output. Raises JobError."""
    started = time.monotonic()
    name, asked, with_dbt, expected = arguments(words, __doc__)
    source = import_module(JOBS[name])
    command, every = with_dbt or (None, None)
    dbt = DbtRuns(command, shutdown.stop, console.err) if command else None

    from reconcile_jobs.process import session

    staging = asked["staging"]
    try:
        spark = session.start(f"append {staging}", shutdown.listen)
    except Exception:
        if shutdown.stop.is_set():
            raise Fault("Stopped before anything was appended: run the same command again.") from None
        raise
    shutdown.watch(spark)
    caller = Caller(shutdown.stop, _once(console.say) if dbt else console.say, console.progress, comes_back=bool(every))
    outcome: expectations.Outcome | None = None

    def append() -> Any:
        nonlocal outcome
        totals = source.run(spark, source.Job(**asked), caller)
        if expected:
            console.progress("checking what was appended")
            outcome = expectations.check(spark, staging, name, totals.first_batch, expected, console.say)
        return totals

    def refused() -> expectations.Outcome | None:
        return outcome if expected and outcome and not outcome.success and expected.on_failure == "fail" else None

    totals = append_and_run(append, dbt, every, shutdown.stop, lambda: refused() is not None) if dbt else append()
    result = asdict(totals)
    if expected:
        result["expectations"] = outcome and asdict(outcome)
    if dbt:
        result["dbt"] = asdict(dbt.totals)
    console.result(result | {"seconds": round(time.monotonic() - started, 1)})
    if unexpected := refused():
        raise expectations.refusal(staging, unexpected)
    if dbt:
        dbt.refuse_failed()


def _once(say: Callable[[str], None]) -> Callable[[str], None]:
    """Return what says the same sentence once: a job that comes back finds the same again."""
    printed = set()

    def say_once(sentence: str) -> None:
        if sentence not in printed:
            printed.add(sentence)
            say(sentence)

    return say_once


if __name__ == "__main__":
    console, shutdown = Console("append"), Shutdown()
    shutdown.end(console.exit_code(lambda: main(sys.argv[1:], console, shutdown)))
