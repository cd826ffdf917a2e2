"""The options of the data source of Spanner's change streams: what they mean, and what is refused."""

import pytest
from reconcile_jobs.errors import UsageError
from reconcile_jobs.spanner.data_source import Options, seconds

SECOND = 10**9


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("start", "", "needs the option start"),
        ("start", "yesterday", "yesterday is no timestamp"),
        ("window", "1 day", "1 day is no interval"),
        ("heartbeat", "500ms", "out of range"),
        ("heartbeat", "10m", "out of range"),
        ("readers", "0", "number from 1 on"),
        ("readers", "x", "cannot be"),
        ("partitionCheck", "maybe", "can be fail or warn"),
        ("database", "a/b", "is no name"),
    ],
)
def test_options_that_cannot_be_are_refused(option: str, value: str, sentence: str):
    given = {"project": "p", "instance": "i", "database": "d", "stream": "s", "start": "2026-05-01T09:00:00Z"}
    assert Options.parse(given).window == 60 * SECOND
    with pytest.raises(UsageError, match=sentence) as refused:
        Options.parse(given | {option: value})
    assert "\n" not in str(refused.value)


def test_intervals():
    assert [seconds(text) for text in ("500ms", "10s", "5m", "2 h")] == [0.5, 10, 300, 7200]
