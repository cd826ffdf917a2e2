"""The verdict of a comparison is the worst verdict of its rows."""

from __future__ import annotations

import itertools

import pytest
from plain_dbt import PlainProject
from recorder import Recorder

WORST_FIRST = ("confirmed", "unprovable", "in_flight")


@pytest.mark.parametrize("numbers", list(itertools.product((0, 1, 3), repeat=4)))
def test_a_comparison_has_the_worst_verdict_of_its_rows(numbers: tuple[int, ...]) -> None:
    counts = dict(zip(("matched", *WORST_FIRST), numbers, strict=True))
    expected = next((name for name in WORST_FIRST if counts[name]), "match")
    macros = PlainProject(Recorder(), "demo").macros
    assert macros._verdict_of({**counts, "compared": sum(numbers)}) == expected
