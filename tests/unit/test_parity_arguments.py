"""parity.py's command line: refused before Spark starts."""

from types import SimpleNamespace
from typing import Any

import parity
import pytest
from reconcile_jobs.process import session
from reconcile_jobs.process.errors import UsageError


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "--results"),
        (["--results", "no table"], "--results no table is not the name of a table"),
        (["--results", "a.b", "--secret=hidden"], "unrecognized arguments: --secret; see `parity.py --help`"),
    ],
)
def test_what_cannot_be_asked_for_is_a_sentence(words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session, "start", _started)
    with pytest.raises(UsageError) as refused:
        parity.main(words, SimpleNamespace())  # type: ignore[arg-type]
    assert sentence in str(refused.value) and "hidden" not in str(refused.value)


def _started(name: str) -> Any:
    raise AssertionError("Spark was started")
