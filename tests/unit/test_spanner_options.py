"""The options of the data source of Spanner's change streams: what they mean, and what is refused."""

from types import SimpleNamespace

import pytest
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.spanner.data_source import Options, _StreamReader, next_start, seconds

SECOND = 10**9


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("start", "", "needs the option start"),
        ("start", "yesterday", "yesterday is not a timestamp"),
        ("window", "1 day", "1 day is not an interval"),
        ("heartbeat", "500ms", "out of range"),
        ("heartbeat", "10m", "out of range"),
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


def test_the_partition_check_warns_where_that_is_asked_for():
    given = {"project": "p", "instance": "i", "database": "d", "stream": "s", "start": "2026-05-01T09:00:00Z"}
    checks = {None: False, "fail": False, "warn": True}
    found = {asked: Options.parse(given | ({"partitionCheck": asked} if asked else {})).lenient for asked in checks}
    assert found == checks


def test_intervals():
    assert [seconds(text) for text in ("500ms", "10s", "5m", "2 h")] == [0.5, 10, 300, 7200]


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
