"""Two tables compared by the sums of their buckets: buckets that differ are split, and only their rows are read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from reconcile_jobs.process.errors import Fault
from reconcile_jobs.proofs.canonical_form import Field
from reconcile_jobs.proofs.dialect import HALF, Dialect

__all__ = ["FIRST", "Bucket", "Comparison", "Row", "Side", "Table", "compared", "total"]

# Digits of the first level, 4,096 buckets, and of the last: 16 ** 10 buckets hold about one row each of any table.
FIRST, _LAST = 3, 10
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
    """The canonical form of a row's key, the hash of the row, and of a row that is to be shown its values."""

    key: str
    digest: str
    values: tuple[Any, ...] = ()


class Side(Protocol):
    """The rows of one side. All calls must see the same rows."""

    def buckets(self, digits: int, within: Sequence[str]) -> Mapping[str, Bucket]:
        """Return the buckets that have rows, by their numbers; with `within`, only the splits of these."""

    def rows(self, within: Sequence[str]) -> list[Row]:
        """Return the rows of some buckets."""


@dataclass(frozen=True)
class Table:
    """A side that is asked in SQL. `relation` and `values` are SQL, and `run` returns the rows of a query as texts."""

    dialect: Dialect
    relation: str
    key: Sequence[Field]
    fields: Sequence[Field]
    run: Callable[[str], Sequence[Sequence[Any]]]
    values: Sequence[str] = ()

    def buckets(self, digits: int, within: Sequence[str]) -> dict[str, Bucket]:
        """One query, which reads the whole table."""
        found = self.run(self.dialect.buckets(self.relation, self.key, self.fields, digits, within))
        return {number: Bucket(int(rows), int(first), int(second)) for number, rows, first, second in found}

    def rows(self, within: Sequence[str]) -> list[Row]:
        """One query, which reads the whole table and returns some rows."""
        found = self.run(self.dialect.rows(self.relation, self.key, self.fields, within, self.values))
        return [Row(key, digest, tuple(values)) for key, digest, *values in found]


@dataclass(frozen=True)
class Comparison:
    """What the comparison of a source and a model found. Keys are in canonical form, sorted.

    `sums`: of each side, all buckets as one; how many `buckets` of the first level there were and how many of them
    differ; `source_rows`: the rows of the source in the buckets that differ. `unread`: how
    many of them there are if they were too many to be read.
    """

    sums: tuple[Bucket, Bucket]
    buckets: int
    differing: int
    source_rows: Sequence[Row] = ()
    missing: Sequence[str] = ()
    unexpected: Sequence[str] = ()
    different: Sequence[str] = ()
    unread: int = 0

    @property
    def is_equal(self) -> bool:
        """Whether every row of one side is one of the other."""
        return not (self.missing or self.unexpected or self.different or self.unread)

    @property
    def rows(self) -> tuple[int, int]:
        """How many rows each side has."""
        source, model = self.sums
        return source.rows, model.rows

    @property
    def read(self) -> int:
        """How many rows of the source came as rows."""
        return len(self.source_rows)

    @property
    def keys(self) -> set[str]:
        """The keys of all rows that differ."""
        return {*self.missing, *self.unexpected, *self.different}


def total(buckets: Mapping[str, Bucket]) -> Bucket:
    """Return the sums of all buckets."""
    of_all = buckets.values()
    return Bucket(
        sum(bucket.rows for bucket in of_all),
        sum(bucket.first for bucket in of_all),
        sum(bucket.second for bucket in of_all),
    )


def compared(source: Side, model: Side, most: int | None = None) -> Comparison:
    """Compare two tables. Raises Fault where a side does not show the same rows twice.

    `most`: how many rows are read at most; the rows of the buckets that differ stay unread if they are more.
    """
    digits, within = FIRST, list[str]()
    ours, theirs = source.buckets(digits, within), model.buckets(digits, within)
    sums, count = (total(ours), total(theirs)), len({*ours, *theirs})
    within = _differing(ours, theirs)
    differing = len(within)
    while not (too_many := _too_many(within, ours, theirs, most)) and (
        further := _further(digits, within, ours, theirs)
    ):
        digits += further
        ours, theirs = source.buckets(digits, within), model.buckets(digits, within)
        parts = _differing(ours, theirs)
        _check_seen(within, {number[: digits - further] for number in parts})
        within = parts
    if too_many:
        return Comparison(sums, count, differing, unread=too_many)
    if not within:
        return Comparison(sums, count, 0)
    of_source, of_model = source.rows(within), model.rows(within)
    _check_counted(within, of_source, ours)
    _check_counted(within, of_model, theirs)
    missing, unexpected, different = _differences(of_source, of_model)
    return Comparison(sums, count, differing, of_source, missing, unexpected, different)


def _too_many(within: Sequence[str], ours: Mapping[str, Bucket], theirs: Mapping[str, Bucket], most: int | None) -> int:
    """Return how many rows the buckets have if they are too many to be read, else 0.

    Buckets that are split to their end have about _ROWS rows, and at least one of them differs in each.
    """
    rows = max(sum(side[number].rows for number in within if number in side) for side in (ours, theirs))
    return rows if most is not None and min(rows, len(within) * _ROWS) > most else 0


def _differing(ours: Mapping[str, Bucket], theirs: Mapping[str, Bucket]) -> list[str]:
    nothing = Bucket()
    return sorted(number for number in {*ours, *theirs} if ours.get(number, nothing) != theirs.get(number, nothing))


def _further(digits: int, within: Sequence[str], ours: Mapping[str, Bucket], theirs: Mapping[str, Bucket]) -> int:
    """Return by how many digits the buckets are to be split, 0 where they have few rows, or where there are none."""
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
