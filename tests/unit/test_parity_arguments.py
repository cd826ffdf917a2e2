"""parity.py's command line, refused before Spark starts, and what it says of the comparisons that were found."""

from types import SimpleNamespace
from typing import Any

import parity
import pytest
from reconcile_jobs.process import session
from reconcile_jobs.process.errors import DataError, Fault, JobError, Undecided, UsageError


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


def compared(verdict: str, confirmed: int = 0, unprovable: int = 0, in_flight: int = 0) -> Any:
    class Row(SimpleNamespace):
        def __getitem__(self, name: str) -> int:
            return int(vars(self)[name])

    matched = 100 - confirmed - unprovable - in_flight
    counts = {"confirmed": confirmed, "unprovable": unprovable, "in_flight": in_flight}
    return Row(
        relation=f"shop.{verdict}", compared_to="lake.copy", verdict=verdict, compared=100, matched=matched, **counts
    )


MATCH, IN_FLIGHT = compared("match"), compared("in_flight", in_flight=1)
UNPROVABLE, CONFIRMED = compared("unprovable", 0, 2, 3), compared("confirmed", 4, 5, 6)


@pytest.mark.parametrize(
    ("last", "counts", "kind", "says"),
    [
        ([MATCH, MATCH], (2, 200, 200, 0, 0, 0), None, ""),
        (
            [MATCH, IN_FLIGHT], (2, 200, 199, 0, 0, 1), Fault,
            "199 of 200 rows match, 0 differ, 0 are unprovable, 1 in flight: shop.in_flight with lake.copy in_flight; "
            "test again later.",
        ),
        (
            [IN_FLIGHT, UNPROVABLE], (2, 200, 194, 0, 2, 4), Undecided,
            "194 of 200 rows match, 0 differ, 2 are unprovable, 4 in flight: shop.in_flight with lake.copy in_flight, "
            "shop.unprovable with lake.copy unprovable.",
        ),
        (
            [UNPROVABLE, MATCH, CONFIRMED], (3, 300, 280, 4, 7, 9), DataError,
            "280 of 300 rows match, 4 differ, 7 are unprovable, 9 in flight: shop.unprovable with lake.copy "
            "unprovable, shop.confirmed with lake.copy confirmed.",
        ),
    ],
    ids=["all match", "some in flight", "some unprovable", "some confirmed"],
)  # fmt: skip
def test_the_sums_are_one_line_of_json_and_the_exit_code_is_that_of_the_worst(
    last: list[Any], counts: tuple[int, ...], kind: type[JobError] | None, says: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(session, "start", lambda name: None)
    monkeypatch.setattr(parity, "newest", lambda spark, results, relation, run: last)
    results: list[dict[str, int]] = []
    console: Any = SimpleNamespace(result=results.append)
    try:
        parity.main(["--results", "shop.reconcile_parity"], console)
        assert kind is None
    except JobError as refused:
        assert (type(refused), str(refused)) == (kind, says)
    names = ("comparisons", "compared", "matched", "confirmed", "unprovable", "in_flight")
    assert results == [dict(zip(names, counts, strict=True))]
