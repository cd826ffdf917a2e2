"""The options of the data source of Spanner's change streams: what they mean, and what is refused."""

from types import SimpleNamespace
from typing import Any

import pytest
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.spanner.data_source import Options, SpannerChangeStream, _StreamReader, next_start, seconds
from reconcile_jobs.spanner.job import _NEVER, Totals, _Run
from reconcile_jobs.staging import Appended

SECOND = 10**9


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("start", "", "needs the option start"),
        ("start", "yesterday", "yesterday is not a timestamp"),
        ("window", "1 day", "1 day is not an interval"),
        ("heartbeat", "500ms", "out of range"),
        ("heartbeat", "999ms", "out of range"),
        ("heartbeat", "301s", "out of range"),
        ("heartbeat", "10m", "out of range"),
        ("window", "0s", "0s is not an interval"),
        ("longestRecord", "1m", "is wrong"),
        ("end", "tomorrow", "tomorrow is not a timestamp"),
        *((name, "", f"needs the option {name}") for name in ("project", "instance", "database", "stream")),
        ("readers", "0", "number from 1 on"),
        ("readers", "x", "is wrong"),
        ("partitionCheck", "maybe", "must be fail or warn"),
        ("database", "a/b", "is not a valid name"),
    ],
)
def test_options_that_cannot_be_are_refused(option: str, value: str, sentence: str):
    given = {"project": "p", "instance": "i", "database": "d", "stream": "s", "start": "2026-05-01T09:00:00Z"}
    assert Options.parse(given).window == 60 * SECOND
    with pytest.raises(UsageError, match=sentence) as refused:
        Options.parse(given | {option: value})
    assert "\n" not in str(refused.value)


def test_options_that_can_be_are_taken_and_others_have_defaults():
    given = {"project": "p", "instance": "i", "database": "d", "stream": "s", "start": "2026-05-01T09:00:00Z"}
    parsed = Options.parse(given)
    assert (parsed.end, parsed.heartbeat, parsed.readers, parsed.control) == (None, 10_000, 64, False)
    assert (parsed.lenient, parsed.longest) == (False, 32 * 2**20)
    for heartbeat, milliseconds in (("1s", 1000), ("1000ms", 1000), ("5m", 300_000)):
        assert Options.parse(given | {"heartbeat": heartbeat}).heartbeat == milliseconds
    more = {"end": "1970-01-01T00:00:01Z", "window": "500ms", "readers": "1", "control": "True", "longestRecord": "7"}
    parsed = Options.parse(given | more)
    assert (parsed.end, parsed.window, parsed.readers, parsed.control) == (SECOND, SECOND // 2, 1, True)
    assert parsed.longest == 7


def test_a_query_that_ends_is_told_where():
    given = {"project": "p", "instance": "i", "database": "d", "stream": "s", "start": "1970-01-01T00:00:01Z"}
    with pytest.raises(UsageError, match="needs the option end, except in a streaming query"):
        SpannerChangeStream(given).reader(None)
    with pytest.raises(UsageError, match="end is before the option start"):
        SpannerChangeStream(given | {"end": "1970-01-01T00:00:00.999999999Z"}).reader(None)
    SpannerChangeStream(given | {"end": "1970-01-01T00:00:01Z"}).reader(None)


@pytest.mark.parametrize(
    ("cut_time", "at", "says"),
    [
        (None, 0, "reading the first window"),
        ("1970-01-01T00:00:40.000000001Z", 60, "; up to 1970-01-01T00:00:40Z"),
        ("1970-01-01T00:00:00Z", 60, "; up to 1970-01-01T00:00:00Z"),
        ("1970-01-01T00:00:00Z", 61, "; up to 1970-01-01T00:00:00Z, 61 seconds behind"),
        ("1970-01-01T00:00:00Z", 119, ", 119 seconds behind"),
        ("1970-01-01T00:00:00Z", 120, ", 2 minutes behind"),
        ("1970-01-01T00:00:00Z", 7_199, ", 119 minutes behind"),
        ("1970-01-01T00:00:00Z", 7_200, ", 2 hours behind"),
        ("1970-01-01T00:00:00Z", 172_799, ", 47 hours behind"),
        ("1970-01-01T00:00:00Z", 172_800, ", 2 days behind"),
    ],
)
def test_a_run_tells_how_far_it_is_and_how_far_behind(cut_time: str | None, at: int, says: str):
    """Behind Spanner's time, which goes on while the run reads, and no further than its target."""
    for target, now, passed in ((None, at - 10, 10.0), (at, at + 999, 10.0)):
        said: list[str] = []
        run = _Run.__new__(_Run)
        run.totals, run.progress = Totals(windows=1_234, records=5, cut_time=cut_time), said.append
        run.clock, run.started = SimpleNamespace(seconds=lambda passed=passed: passed), 0.0  # type: ignore[assignment]
        run.now, run.target = now * SECOND, _NEVER if target is None else target * SECOND
        run.show()
        assert said[0].endswith(says)
        assert cut_time is None or said[0].startswith("1,234 windows, 5 records, 0/s; up to ")


def test_the_partition_check_warns_where_that_is_asked_for():
    given = {"project": "p", "instance": "i", "database": "d", "stream": "s", "start": "2026-05-01T09:00:00Z"}
    checks = {None: False, "fail": False, "warn": True}
    found = {asked: Options.parse(given | ({"partitionCheck": asked} if asked else {})).lenient for asked in checks}
    assert found == checks


def test_intervals():
    assert [seconds(text) for text in ("500ms", "10s", "5m", "2 h")] == [0.5, 10, 300, 7200]


def test_what_an_append_leaves_is_counted():
    """Of the rows of a first batch one is its cut, and the records of the window are no backfill."""
    window: Any = SimpleNamespace(
        persist=lambda level: window, where=lambda condition: rows, unpersist=lambda: None
    )  # fmt: skip
    rows: Any = SimpleNamespace(unionByName=lambda other: rows)
    run: Any = object.__new__(_Run)
    cut = {"start": "1970-01-01T00:00:00Z", "cut_time": "1970-01-01T00:00:09Z"}
    appended = Appended(batch=7, rows=9, without_object=0, erased=2)
    run._checked = lambda window: (cut, 3)
    run.staging = SimpleNamespace(append=lambda *given: appended, has_begun=lambda *given: False)
    run.begun, run.job = SimpleNamespace(backfill=False), SimpleNamespace(window="60s")
    run.last_cut, run.target, run.query_id, run.checkpoint, run.totals = None, _NEVER, "q", "c", Totals()
    run.count = lambda batch: None
    run.show = lambda: None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "reconcile_jobs.spanner.job.replace", lambda begun, **_: SimpleNamespace(keep=lambda _: run.begun)
        )
        run._append(window, 0)
        run._append(window, 1)
    assert (run.totals.windows, run.totals.records, run.totals.erased_mods) == (2, 6, 4)
    assert (run.totals.backfill_records, run.totals.cut_time) == (0, cut["cut_time"])


# --- windows ----------------------------------------------------------------------------------------------------------


def windows(start: int, end: int | None, window: int, now: int) -> list[tuple[int, int]]:
    """Return the windows that Spark asks for in order, each with its first nanosecond and the one after its last."""
    reader = _StreamReader.__new__(_StreamReader)
    reader._options = SimpleNamespace(start=start, end=end, window=window)  # type: ignore[assignment]
    reader._planner = SimpleNamespace(client=lambda: SimpleNamespace(now=lambda: now), shares=lambda *_: [])  # type: ignore[assignment]
    reader._at = None
    found, at = [], reader.initialOffset()
    for _ in range(10):
        until = reader.latestOffset()
        reader.partitions(at, until)
        if next_start(until) == next_start(at):
            return found
        found.append((next_start(at), next_start(until)))
        at = until
    raise AssertionError(f"no end: {found}")


def test_windows_follow_one_another_to_the_last_nanosecond():
    assert windows(100, 130, 10, 1000) == [(100, 110), (110, 120), (120, 130), (130, 131)]
    assert windows(100, 129, 10, 1000) == [(100, 110), (110, 120), (120, 130)]
    assert windows(100, None, 10, 125) == [(100, 110), (110, 120), (120, 126)]
    assert windows(100, 200, 10, 105) == [(100, 106)]
    assert windows(100, 100, 10, 1000) == [(100, 101)]
    assert windows(100, None, 10, 99) == []
