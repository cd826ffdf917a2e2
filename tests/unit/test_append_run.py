"""What the append jobs do alike, over a query of plain Python: each look at it is a batch, or its end."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from reconcile_jobs.append_run import AppendRun
from reconcile_jobs.datastream import Totals
from reconcile_jobs.process import failpoints
from reconcile_jobs.process.caller import Caller


class Query:
    """A query with so many batches, and what Spark's writer is told of it."""

    id = "the query"

    def __init__(self, batches: int) -> None:
        self.left, self.stopped = batches, 0
        self.foreachBatch = lambda batch: setattr(self, "batch", batch) or self  # type: ignore[func-returns-value]
        self.option = lambda name, value: self
        self.start = lambda: self

    def awaitTermination(self, seconds: float) -> bool:
        if self.left == 0:
            return True
        self.left -= 1
        try:
            self.batch("rows", 7)  # type: ignore[attr-defined]
        except Exception as problem:
            raise RuntimeError("a page of Spark's") from problem
        return False

    def stop(self) -> None:
        self.stopped += 1


class Run(AppendRun[Totals]):
    def __init__(self, **given: Any) -> None:
        self.settings: dict[str, str] = {}
        conf = SimpleNamespace(get=self.settings.get, set=self.settings.__setitem__, unset=self.settings.pop)
        super().__init__(SimpleNamespace(conf=conf), Caller(**given), Totals())  # type: ignore[arg-type]
        self.shown = 0

    def show(self) -> None:
        self.shown += 1

    def over(self, query: Query, append: Callable[[Any, int], None], ends: Any = lambda query: False) -> Any:
        return self.follow(query, "a checkpoint", append, ends)  # type: ignore[arg-type]


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(failpoints, "reach", names.append)
    return names


def test_each_batch_is_appended_by_the_query_s_id_and_passes_the_places_of_a_kill(reached: list[str]):
    run, query, appended = Run(), Query(2), []
    assert run.over(query, lambda rows, epoch: appended.append((run.query_id, rows, epoch))) is query
    assert appended == [("the query", "rows", 7)] * 2
    assert reached == ["before_checkpoint", "after_checkpoint", "before_checkpoint", "after_checkpoint"]
    assert (run.shown, query.stopped) == (2, 1)
    run.over(Query(1), lambda rows, epoch: None)  # the batches of the query before were appended too
    assert reached[4:] == ["after_checkpoint", "before_checkpoint", "after_checkpoint"]


def test_spark_takes_the_checkpoint_of_a_run_that_was_killed_early_and_only_while_the_query_runs(reached: list[str]):
    run, seen = Run(), []
    run.over(Query(1), lambda rows, epoch: seen.append(dict(run.settings)))
    assert seen == [{"spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false"}]
    assert run.settings == {}


def test_a_query_that_is_to_end_is_stopped(reached: list[str]):
    run, query = Run(), Query(5)
    run.over(query, lambda rows, epoch: None, lambda query: query.left == 3)
    assert (query.left, run.shown, query.stopped) == (3, 2, 1)


def test_what_failed_inside_a_batch_is_raised_as_it_was(reached: list[str]):
    def append(rows: Any, epoch: int) -> None:
        raise ValueError("what it was")

    query = Query(2)
    with pytest.raises(ValueError, match="what it was"):
        Run().over(query, append)
    assert (reached, query.stopped) == ([], 1)
    query.awaitTermination = lambda seconds: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    with pytest.raises(ZeroDivisionError):
        Run().over(query, append)


def test_appends_are_counted_and_those_of_nothing_have_no_number():
    run = Run(clock=SimpleNamespace(seconds=iter([10.0, 14.0]).__next__))
    for batch, ends in ((None, (None, None)), (3, (3, 3)), (None, (3, 3)), (4, (3, 4))):
        run.count(batch)
        assert (run.totals.first_batch, run.totals.last_batch) == ends
    run.totals.records = 12345
    assert run.so_far("2 rounds") == "2 rounds, 12,345 records, 3,086/s"
