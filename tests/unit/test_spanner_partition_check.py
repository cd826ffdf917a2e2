"""Whether the partitions that a window was read from are those that the change stream had, each of them once."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from reconcile_jobs.process.errors import Fault
from reconcile_jobs.spanner import job
from reconcile_jobs.spanner.data_source import CUT, READ

CUT_TIME = "2026-05-01T09:00:00.000000000Z"


class Window:
    """What the driver asks of a window's rows; each reading of it may be another."""

    def __init__(self, *readings: list[list[str]]) -> None:
        self._readings = list(readings)

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self

    def collect(self) -> list[Any]:
        tasks = self._readings.pop(0) if len(self._readings) > 1 else self._readings[0]
        rows = [SimpleNamespace(object=CUT, record=json.dumps({"cut_time": CUT_TIME}))]
        for leaves in tasks:
            rows.append(SimpleNamespace(object=READ, record=json.dumps({"leaves": leaves, "records": 1})))
        return rows


def checked(window: Any, alive: set[str], partition_check: str = "fail") -> tuple[int, list[str]]:
    """Return how many records were read, and what was said."""
    run: Any = object.__new__(job._Run)
    said: list[str] = []
    run.say, run.job = said.append, SimpleNamespace(stream="everything", partition_check=partition_check)
    run._fits = lambda leaves, end: leaves == alive
    _, records = run._checked(window)
    return records, said


def test_partitions_that_fit_are_taken():
    assert checked(Window([["A"], ["B", "C"]]), {"A", "B", "C"}) == (2, [])


@pytest.mark.parametrize("tasks", [[["A"], ["A", "B"]], [["A"]], [["A", "B", "C"]], [[], []]])
def test_partitions_that_do_not_fit_or_are_read_twice_are_read_again_and_then_refused(tasks: list[list[str]]):
    with pytest.raises(Fault, match=f"read up to {CUT_TIME} differ from those.*nothing of this window was appended"):
        checked(Window(tasks), {"A", "B"})
    assert checked(Window(tasks, [["A"], ["B"]]), {"A", "B"})[0] == 2
    records, said = checked(Window(tasks), {"A", "B"}, "warn")
    assert records == len(tasks) and "records may be missing" in said[-1]
    assert [sentence.endswith("the window is read again") for sentence in said] == [True, True, False]
