"""Sums of buckets find each row that differs, read few others, and notice rows that change meanwhile."""

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pytest
from canonical_form import digest, row_form
from reconcile_jobs.process.errors import Fault
from reconcile_jobs.proofs.comparison import Bucket, Row, compared


class Hashed(NamedTuple):
    """A row's canonical forms, hashed once."""

    key: str
    of_key: str
    of_row: str


class Rows:
    """A side in memory, which counts what it is asked."""

    def __init__(self, rows: Iterable[tuple[str, str]]) -> None:
        self.hashed = [
            Hashed(row_form([key]), digest(row_form([key])), digest(row_form([key, value]))) for key, value in rows
        ]
        self.asked: list[tuple[int, int]] = []

    def _within(self, within: Sequence[str]) -> list[Hashed]:
        wanted = {*within}
        lengths = {len(number) for number in within}
        assert len(lengths) <= 1
        length = lengths.pop() if lengths else 0
        return [row for row in self.hashed if not within or row.of_key[:length] in wanted]

    def buckets(self, digits: int, within: Sequence[str]) -> dict[str, Bucket]:
        found: dict[str, Bucket] = {}
        for row in self._within(within):
            was = found.get(row.of_key[:digits], Bucket())
            halves = int(row.of_row[:15], 16), int(row.of_row[15:30], 16)
            found[row.of_key[:digits]] = Bucket(was.rows + 1, was.first + halves[0], was.second + halves[1])
        self.asked.append((digits, len(found)))
        return found

    def rows(self, within: Sequence[str]) -> list[Row]:
        assert within, "all rows were asked for"
        return [Row(row.key, row.of_row) for row in self._within(within)]


def table(count: int) -> dict[str, str]:
    return {str(number): f"value {number}" for number in range(count)}


def test_equal_tables_are_one_query_each():
    sides = [Rows(table(20_000).items()) for _ in range(2)]
    found = compared(*sides)
    assert found.is_equal
    assert (found.rows, found.differing, found.read) == ((20_000, 20_000), 0, 0)
    assert [side.asked for side in sides] == [[(3, found.buckets)]] * 2
    assert 4000 < found.buckets <= 4096


@pytest.mark.parametrize("seed", range(5))
def test_every_row_that_differs_is_named_and_few_others_are_read(seed):
    chance = random.Random(seed)
    source = table(30_000)
    model = dict(source)
    keys = chance.sample([*source], 90)
    missing, unexpected, different = keys[:30], [f"more {number}" for number in range(30)], keys[60:]
    for key in missing:
        del model[key]
    for key in unexpected:
        model[key] = "new"
    for key in different:
        model[key] += " "
    ours = Rows(chance.sample([*source.items()], len(source)))
    theirs = Rows(model.items())
    found = compared(ours, theirs)
    assert not found.is_equal
    for named, expected in ((found.missing, missing), (found.unexpected, unexpected), (found.different, different)):
        assert [*named] == sorted(row_form([key]) for key in expected)
    assert found.rows == (30_000, 30_000)
    assert 60 <= found.read <= 20 * 90


def test_large_buckets_are_split_until_they_have_few_rows():
    source = table(60_000)
    model = source | {"77": "another", "4711": "another"}
    ours = Rows(source.items())
    found = compared(ours, Rows(model.items()))
    assert [*found.different] == sorted(row_form([key]) for key in ("77", "4711"))
    assert [digits for digits, _ in ours.asked] == [3, 4]
    assert found.differing == 2 and found.read < 40


def changed(count):
    return {str(number): f"another {number}" for number in range(count)}


@pytest.mark.parametrize(("ours", "theirs"), [(30, 30), (30, 20), (20, 30)])
def test_no_more_rows_are_read_than_somebody_allows(ours, theirs):
    """Of either side, whichever has more."""
    found = compared(Rows(table(ours).items()), Rows(changed(theirs).items()), most=29)
    assert (found.unread, found.read, found.is_equal) == (30, 0, False)
    found = compared(Rows(table(ours).items()), Rows(changed(theirs).items()), most=30)
    assert (found.unread, found.read, len(found.different)) == (0, ours, 20 if ours != theirs else 30)


def test_equal_rows_are_never_too_many():
    assert compared(Rows(table(30).items()), Rows(table(30).items()), most=0).is_equal


def test_values_that_changed_places_are_two_rows_that_differ():
    source, model = table(5000), table(5000)
    model["1"], model["2"] = source["2"], source["1"]
    assert [*compared(Rows(source.items()), Rows(model.items())).different] == [row_form(["1"]), row_form(["2"])]


def test_a_row_that_is_there_twice_differs():
    rows = [*table(100).items()]
    found = compared(Rows(rows), Rows([*rows, rows[5]]))
    assert [*found.different] == [row_form(["5"])]
    assert found.rows == (100, 101)


def test_two_rows_twice_do_not_cancel_each_other():
    rows = [*table(100).items()]
    assert not compared(Rows(rows), Rows([*rows, rows[5], rows[5]])).is_equal


@pytest.mark.parametrize("sides", [([], []), ([("1", "a")], []), ([], [("1", "a")])])
def test_empty_sides(sides):
    found = compared(*map(Rows, sides))
    assert found.rows == tuple(map(len, sides))
    assert found.is_equal == (not any(sides))
    assert [len(found.missing), len(found.unexpected)] == [*map(len, sides)]


def test_more_splits_than_one_query_returns_are_made_step_by_step(monkeypatch):
    monkeypatch.setattr("reconcile_jobs.proofs.comparison._BUCKETS", 16)
    monkeypatch.setattr("reconcile_jobs.proofs.comparison.FIRST", 1)
    source = table(20_000)
    model = source | {"77": "another"}
    ours = Rows(source.items())
    assert len(compared(ours, Rows(model.items())).different) == 1
    assert [digits for digits, _ in ours.asked] == [1, 2, 3]


class Moving(Rows):
    """A side whose rows change after so many questions."""

    def __init__(self, rows, later, after):
        super().__init__(rows)
        self.later, self.after = Rows(later).hashed, after

    def _within(self, within):
        self.after -= 1
        if self.after < 0:
            self.hashed = self.later
        return super()._within(within)


@pytest.mark.parametrize("after, says", [(1, "equal in their parts"), (2, "are not the")])
def test_rows_that_change_between_two_queries_prove_nothing(after, says):
    source = [*table(60_000).items()]
    changed = [*(table(60_000) | {"77": "another"}).items()]
    with pytest.raises(Fault, match=says):
        compared(Rows(source), Moving(changed, source, after))
