"""How long a pass over a Bigtable change stream goes on, and what the end of a partition says: without a server."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from google.cloud.bigtable_v2 import types
from reconcile_jobs.bigtable import job
from reconcile_jobs.bigtable.change_decoder import TornChange
from reconcile_jobs.bigtable.partition_reader import Finished, Limits, _Reading
from reconcile_jobs.bigtable.partitions import Moved
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.errors import Fault


class Rounds:
    """A run whose rounds bring so many records each, and leave the low watermark where it is said."""

    def __init__(self, *brought: tuple[int, int], ends: bool = False) -> None:
        self.brought, self.ends = list(brought), ends
        self.rounds, self.last = 0, []  # type: ignore[var-annotated]
        self.stop, self.said = threading.Event(), []  # type: ignore[var-annotated]
        self.say = self.said.append
        self.refuse_early_end = Caller().refuse_early_end
        self.client = SimpleNamespace(source="the stream")
        self.totals, self.low_watermark = SimpleNamespace(records=0), 0

    def _round(self, cut: Any, target: int, until: int | None, may_be_last: bool = False) -> Any:
        records, self.low_watermark = self.brought[self.rounds]
        self.rounds += 1
        self.totals.records += records
        self.last.append(may_be_last)
        return SimpleNamespace(round=self.rounds, reached=self.ends and self.rounds == len(self.brought))


_reached = job._reached


@pytest.mark.parametrize(
    ("partitions", "reached"),
    [
        ([(True, 9), (True, 12)], True), ([(True, 9), (True, 8)], False),
        ([(True, 9), (False, 12)], False),  # a part that waits for others, whose changes may be earlier
        ([], True),
    ],
)  # fmt: skip
def test_the_target_is_reached_when_every_partition_is_there_and_none_waits(
    partitions: list[tuple[bool, int]], reached: bool
):
    cut: Any = SimpleNamespace(partitions=[SimpleNamespace(is_whole=w, low_watermark=at) for w, at in partitions])
    assert _reached(cut, 9) == reached


@pytest.fixture(autouse=True)
def reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "_reached", lambda cut, target: cut.reached)


def passed(rounds: Rounds) -> Rounds:
    job._Run._pass(rounds, SimpleNamespace(round=0, reached=False), 9)  # type: ignore[arg-type]
    return rounds


def test_a_pass_goes_on_while_anything_comes_or_the_watermark_moves():
    still, moving, coming = [(0, 0)] * job._STALLED, [(0, at) for at in range(1, 9)], [(1, 0)] * 8
    assert passed(Rounds(*coming, *still)).rounds == 8 + job._STALLED
    assert passed(Rounds(*moving, *[(0, 8)] * job._STALLED)).rounds == 8 + job._STALLED
    assert passed(Rounds(*still[1:], (1, 0), *still)).rounds == 2 * job._STALLED


def test_a_pass_that_stands_still_ends_after_five_rounds_with_a_sentence_and_the_last_is_known_as_such():
    rounds = passed(Rounds(*[(0, 0)] * 99))
    assert rounds.last == [False] * 4 + [True]
    (said,) = rounds.said
    assert "the low watermark of the stream stays at" in said


def test_a_pass_ends_where_it_was_to_end_and_says_nothing():
    rounds = passed(Rounds((1, 5), (0, 9), ends=True))
    assert (rounds.rounds, rounds.said) == (2, [])


def test_a_pass_that_is_stopped_is_not_done():
    rounds = Rounds()
    rounds.stop.set()
    with pytest.raises(Fault, match="Stopped before everything was appended"):
        passed(rounds)


class Waits:
    """A clock whose waits take no time and are counted."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    def seconds(self) -> float:
        return 0.0

    def now(self) -> int:
        return 7

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        self.waited.append(seconds)
        return stop.is_set()


def followed(rounds: Rounds, end: int | None, begins_at: int = 0, has_more: bool = False) -> list[float]:
    """Follow a stream every 60 seconds, and return the waits between its rounds."""
    rounds.clock, rounds.has_more = Waits(), has_more  # type: ignore[attr-defined]
    cut: Any = SimpleNamespace(round=begins_at, reached=begins_at > 0)
    job._Run._follow(rounds, cut, end, 60.0)  # type: ignore[arg-type]
    return rounds.clock.waited  # type: ignore[attr-defined,no-any-return]


def test_a_stream_that_is_followed_to_an_end_waits_between_rounds_and_not_after_the_last():
    rounds = Rounds((1, 5), (0, 5), (1, 9), ends=True)
    assert followed(rounds, end=9) == [60.0, 60.0]
    assert rounds.rounds == 3


def test_a_round_that_left_something_to_read_is_followed_at_once():
    assert followed(Rounds((1, 5), (1, 9), ends=True), end=9, has_more=True) == []


def test_a_stream_that_was_followed_to_its_end_is_not_read_again():
    rounds = Rounds()
    assert (followed(rounds, end=9, begins_at=1), rounds.rounds) == ([], 0)


def test_without_an_end_a_stream_is_followed_until_the_job_is_to_stop():
    rounds = Rounds((1, 5), (1, 9), ends=True)
    round_ = rounds._round

    def stopping(*given: Any, **named: Any) -> Any:
        rounds.stop.set() if rounds.rounds == 1 else None
        return round_(*given, **named)

    rounds._round = stopping  # type: ignore[method-assign]
    assert (followed(rounds, end=None), rounds.rounds) == ([60.0, 60.0], 2)


def heard(*watermarks: int, target: int) -> list[bool]:
    """Return after each heartbeat whether the partition is finished; after None, a change, nothing is."""
    reading = _Reading.__new__(_Reading)
    reading.partition, reading.limits = SimpleNamespace(rows="rows"), Limits(target)  # type: ignore[assignment]
    reading.finished, reading._quiet = None, 0
    found = []
    for number, at in enumerate(watermarks):
        heartbeat: Any = types.ReadChangeStreamResponse.Heartbeat.pb()()
        heartbeat.estimated_low_watermark.seconds, heartbeat.estimated_low_watermark.nanos = divmod(at, 10**9)
        heartbeat.continuation_token.token = f"token {number}"
        reading._heard(heartbeat)
        found.append(reading.finished is not None)
    assert (reading.token, reading.low_watermark) == (f"token {len(watermarks) - 1}", watermarks[-1])
    return found


def test_a_partition_is_finished_by_its_watermark_or_by_two_heartbeats_with_nothing_between_them():
    second = 10**9
    assert heard(2 * second + 6, target=2 * second + 7) == [False]
    assert heard(2 * second + 7, target=2 * second + 7) == [True]
    assert heard(5, 5, target=second) == [False, True]


@pytest.mark.parametrize(
    ("tasks", "shares"), [(1, [[1, 2, 3, 4, 5]]), (2, [[1, 3, 5], [2, 4]]), (9, [[1], [2], [3], [4], [5]])]
)
def test_partitions_are_shared_out_each_once(tasks: int, shares: list[list[int]]):
    assert job.shares_of([1, 2, 3, 4, 5], tasks) == shares  # type: ignore[list-item,comparison-overlap]


def closed(**said: Any) -> Any:
    reading = _Reading.__new__(_Reading)
    reading.partition, reading.token, reading.low_watermark = SimpleNamespace(rows="rows"), "token", 7
    reading.finished = None
    reading._closed(types.ReadChangeStreamResponse.CloseStream(**said))
    return reading.finished


def test_a_partition_that_is_closed_with_an_error_and_no_token_was_not_read():
    with pytest.raises(TornChange, match="closed with code 14: away"):
        closed(status={"code": 14, "message": "away"})


def test_a_partition_that_ends_by_itself_goes_on_from_its_token():
    assert closed() == Finished("rows", Moved("token", 7))  # type: ignore[arg-type]
