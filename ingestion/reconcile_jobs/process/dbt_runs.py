"""dbt in the process of an append: what was appended is merged at once, in the same Spark session."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from threading import Event
from typing import Any, TextIO, TypeVar

from reconcile_jobs.process.clock import Clock
from reconcile_jobs.process.dbt_commands import invoke
from reconcile_jobs.process.errors import DataError, Fault, UsageError

__all__ = ["DbtRuns", "DbtTotals", "append_and_run"]

_COMMANDS = ("run", "build")

Totals = TypeVar("Totals")


@dataclass
class DbtTotals:
    """What dbt has done so far. `failed`: the models and tests that failed in the last run."""

    runs: int = 0
    failed_runs: int = 0
    failed: list[str] = field(default_factory=list)
    seconds: float = 0.0


class DbtRuns:
    """Runs of one dbt command. `out`: where dbt speaks, which is not the job's standard output."""

    def __init__(self, command: str, stop: Event, out: TextIO) -> None:
        """Read the command, as `build --select tag:shop`. Raises UsageError."""
        try:
            self._words = shlex.split(command)
        except ValueError as problem:
            raise UsageError(f"--dbt {command} cannot be read: {problem}.") from None
        if not out.isatty():
            self._words.append("--no-use-colors")
        if not set(self._words) & set(_COMMANDS):
            raise UsageError(f"--dbt '{command}' runs no models: write it as --dbt 'build --select tag:shop'.")
        self._command, self._stop, self._out = command, stop, out
        self.totals = DbtTotals()

    def run(self) -> bool:
        """Run the command once, and return whether it came to its end.

        What fails is counted; the next run tries it again. Raises UsageError.
        """
        began = time.monotonic()
        with contextlib.redirect_stdout(self._out):
            done = invoke(self._words, self._stop)
        self.totals.runs += 1
        self.totals.seconds = round(self.totals.seconds + time.monotonic() - began, 1)
        if self._stop.is_set() and not done.success:
            return False
        if type(done.exception).__name__ == "DbtUsageException":
            raise UsageError(f"--dbt '{self._command}': {done.exception}.")
        results: Any = getattr(done.result, "results", None) or []
        failed = [result.node.name for result in results if result.status in ("error", "fail", "runtime error")]
        self.totals.failed = failed or ([] if done.success else ["dbt itself"])
        self.totals.failed_runs += not done.success
        return True

    def refuse_failed(self) -> None:
        """Raise DataError where something failed in the last run."""
        if self.totals.failed:
            names = ", ".join(self.totals.failed)
            raise DataError(
                f"What was appended is in staging, and in the last run of dbt {names} failed: see what dbt said above, "
                "and run the same command again."
            )


def append_and_run(
    append: Callable[[], Totals],
    dbt: DbtRuns,
    every: float | None,
    stop: Event,
    is_refused: Callable[[], bool],
    clock: Clock | None = None,
) -> Totals:
    """Append, and run dbt where something came, at the beginning, and after a failure; again every so many seconds.

    Returns the totals of all passes. `every` None: one pass. `is_refused`: whether what came is not to be merged.
    """
    clock = clock or Clock()
    totals: Totals | None = None
    while True:
        began = clock.seconds()
        passed: Any = append()
        has_news = totals is None or passed.last_batch is not None or dbt.totals.failed
        if has_news and not is_refused() and (stop.is_set() or not dbt.run()) and every is None:
            raise Fault("Stopped before everything was merged: run the same command again.")
        totals = passed if totals is None else _added(totals, passed)
        if every is None or stop.is_set():
            return totals
        clock.wait(stop, max(0.0, every - (clock.seconds() - began)))
        if stop.is_set():
            return totals


def _added(before: Totals, after: Totals) -> Totals:
    """Return the totals of two passes: counts are added up, of everything else the latest is known."""
    both = {}
    for of in fields(before):  # type: ignore[arg-type]
        first, then = getattr(before, of.name), getattr(after, of.name)
        if of.name == "first_batch":
            both[of.name] = then if first is None else first
        elif isinstance(then, int) and of.name != "last_batch" and not of.metadata.get("latest"):
            both[of.name] = first + then
        else:
            both[of.name] = first if then is None else then
    return replace(before, **both)  # type: ignore[type-var]
