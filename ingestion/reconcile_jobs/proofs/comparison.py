"""Two tables compared by the sums of their buckets: buckets that differ are split, and only their rows are read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from reconcile_jobs.process.errors import Fault
from reconcile_jobs.proofs.canonical_form import Field
from reconcile_jobs.proofs.dialect import HALF, Dialect

__all__ = ["Bucket", "Comparison", "Row", "Side", "Table", "compared"]

# Digits of the first level, 4,096 buckets, and of the last: 16 ** 10 buckets hold about one row each of any table.
_FIRST, _LAST = 3, 10
# A bucket is split until it has about as many rows. Fewer rows would be read for more buckets compared.
_ROWS = 10
# A query of buckets returns about as many at most.
_BUCKETS = 1 << 18


@dataclass(frozen=True)
class Bucket:
    """How many rows a bucket has, and the sums of both halves of their hashes."""

    rows: int = 0
    first: int = 0
    second: int = 0


@dataclass(frozen=True)
class Row:
    """The canonical form of a row's key, and the hash of the row."""

    key: str
    digest: str


class Side(Protocol):
    """The rows of one side. All calls must see the same rows."""

    def buckets(self, digits: int, within: Sequence[str]) -> Mapping[str, Bucket]:
        """Return the buckets that have rows, by their numbers; with `within`, only the splits of these."""

    def rows(self, within: Sequence[str]) -> list[Row]:
        """Return the rows of some buckets."""


@dataclass(frozen=True)
class Table:
    """A side that is asked in SQL. `relation` is SQL, and `run` returns the rows of a query as texts."""

    dialect: Dialect
    relation: str
    key: Sequence[Field]
    fields: Sequence[Field]
    run: Callable[[str], list[Sequence[str]]]

    def buckets(self, digits: int, within: Sequence[str]) -> dict[str, Bucket]:
        """One query, which reads the whole table."""
        found = self.run(self.dialect.buckets(self.relation, self.key, self.fields, digits, within))
        return {number: Bucket(int(rows), int(first), int(second)) for number, rows, first, second in found}

    def rows(self, within: Sequence[str]) -> list[Row]:
        """One query, which reads the whole table and returns some rows."""
        found = self.run(self.dialect.rows(self.relation, self.key, self.fields, within))
        return [Row(key, digest) for key, digest in found]


@dataclass(frozen=True)
class Comparison:
    """What the comparison of a source and a model found. Keys are in canonical form, sorted.

    `rows` of both; how many `buckets` of the first level there were and how many of them differ; `read`: the rows of
    the source that came as rows.
    """

    rows: tuple[int, int]
    buckets: int
    differing: int
    read: int
    missing: Sequence[str] = ()
    unexpected: Sequence[str] = ()
    different: Sequence[str] = ()

    @property
    def is_equal(self) -> bool:
        """Whether every row of one side is one of the other."""
        return not (self.missing or self.unexpected or self.different)


def compared(source: Side, model: Side) -> Comparison:
    """Compare two tables. Raises Fault where a side does not show the same rows twice."""
    digits, within = _FIRST, list[str]()
    ours, theirs = source.buckets(digits, within), model.buckets(digits, within)
    rows = sum(bucket.rows for bucket in ours.values()), sum(bucket.rows for bucket in theirs.values())
    count = len({*ours, *theirs})
    within = _differing(ours, theirs)
    differing = len(within)
    while within and (further := _further(digits, within, ours, theirs)):
        digits += further
        ours, theirs = source.buckets(digits, within), model.buckets(digits, within)
        parts = _differing(ours, theirs)
        _check_seen(within, {number[: digits - further] for number in parts})
        within = parts
    if not within:
        return Comparison(rows, count, 0, 0)
    of_source, of_model = source.rows(within), model.rows(within)
    _check_counted(within, of_source, ours)
    _check_counted(within, of_model, theirs)
    missing, unexpected, different = _differences(of_source, of_model)
    return Comparison(rows, count, differing, len(of_source), missing, unexpected, different)


def _differing(ours: Mapping[str, Bucket], theirs: Mapping[str, Bucket]) -> list[str]:
    nothing = Bucket()
    return sorted(number for number in {*ours, *theirs} if ours.get(number, nothing) != theirs.get(number, nothing))


def _further(digits: int, within: Sequence[str], ours: Mapping[str, Bucket], theirs: Mapping[str, Bucket]) -> int:
    """Return by how many digits the buckets are to be split, 0 where they have few rows."""
    nothing = Bucket()
    most = sum(max(ours.get(number, nothing).rows, theirs.get(number, nothing).rows) for number in within)
    further = 0
    while (
        digits + further < _LAST
        and most > len(within) * _ROWS * 16**further
        and (not further or len(within) * 16 ** (further + 1) <= _BUCKETS)
    ):
        further += 1
    return further


def _check_seen(within: Sequence[str], seen: set[str]) -> None:
    if gone := [number for number in within if number not in seen]:
        raise Fault(
            f"{len(gone)} of {len(within)} buckets that differed are equal in their parts (the first is {gone[0]}): "
            "the rows changed between two queries. Nothing is proven: compare again, both sides at one position."
        )


def _check_counted(within: Sequence[str], rows: Sequence[Row], buckets: Mapping[str, Bucket]) -> None:
    """Compare the rows that were read with the sums of the buckets that they were read for."""
    counted = sum(buckets[number].rows for number in within if number in buckets)
    sums = [sum(int(row.digest[first : first + HALF], 16) for row in rows) for first in (0, HALF)]
    expected = [
        sum(getattr(buckets[number], half) for number in within if number in buckets) for half in ("first", "second")
    ]
    if (len(rows), sums) != (counted, expected):
        raise Fault(
            f"The {len(rows)} rows of {len(within)} buckets are not the {counted} that their sums were of: the rows "
            "changed between two queries. Nothing is proven: compare again, both sides at one position."
        )


def _differences(source: Sequence[Row], model: Sequence[Row]) -> tuple[list[str], list[str], list[str]]:
    """Return the keys of rows that only the source has, that only the model has, and that both have otherwise."""
    ours, theirs = _by_key(source), _by_key(model)
    return (
        sorted({*ours} - {*theirs}),
        sorted({*theirs} - {*ours}),
        sorted(key for key in {*ours} & {*theirs} if ours[key] != theirs[key]),
    )


def _by_key(rows: Sequence[Row]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        found[row.key][row.digest] += 1
    return found
