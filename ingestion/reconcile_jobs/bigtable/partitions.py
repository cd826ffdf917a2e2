"""Which partitions a change stream has, and how far each was read: what a batch ends with and the next one begins with.

A partition is a range of row keys. Bigtable closes it when it splits or merges, and names, for each part of it, a
continuation token and the new partition that the part now belongs to. A new partition can be asked for with tokens
that tile it exactly, so one that others still have to merge into waits, its tokens kept. At every moment each row key
belongs to exactly one position, a token or the moment to start at: what breaks this raises Fault.

A merge may be undone before all of its parts were closed: the rest then never closes, and what waits would wait for
ever. So a part that waits is asked for by itself, once a round: Bigtable goes on with it if it is a partition again,
and otherwise closes it and says where it belongs now.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconcile_jobs.process.errors import Fault
from reconcile_jobs.timestamps import as_text, nanoseconds

__all__ = [
    "Closed",
    "Moved",
    "Outcome",
    "Partition",
    "Position",
    "Request",
    "RowRange",
    "after",
    "from_json",
    "initial",
    "lowest_watermark",
    "requests",
    "to_json",
    "whole_table",
]


@dataclass(frozen=True, order=True)
class RowRange:
    """Row keys from `start` up to but without `end`; an empty `end` is the end of the table."""

    start: bytes
    end: bytes

    def contains(self, other: RowRange) -> bool:
        """Whether every row key of the other one is in this one."""
        return self.start <= other.start and (not self.end or (bool(other.end) and other.end <= self.end))

    def __str__(self) -> str:
        return f"{self.start.hex()}-{self.end.hex()}"


@dataclass(frozen=True, order=True)
class Position:
    """How far the rows of a range were read: the token to go on with."""

    rows: RowRange
    token: str


@dataclass(frozen=True)
class Partition:
    """A partition to read: its tokens or, if it has none yet, the commit timestamp at which to start.

    If the tokens do not tile `rows`, the partition waits for the tokens of partitions that are still to merge into it.
    `low_watermark` is Bigtable's estimate, the lowest of the tokens' partitions. Moments are nanoseconds since 1970.
    """

    rows: RowRange
    positions: tuple[Position, ...]
    start: int | None
    low_watermark: int

    @property
    def is_whole(self) -> bool:
        """Whether it can be asked for."""
        return self.start is not None or tiles((position.rows for position in self.positions), self.rows)


@dataclass(frozen=True)
class Request:
    """A partition to ask for in a round; `waits_for`: the new partition that this part of it waits for."""

    partition: Partition
    waits_for: RowRange | None = None


@dataclass(frozen=True)
class Moved:
    """A partition was read up to `token`; None: nothing came of it."""

    token: str | None
    low_watermark: int


@dataclass(frozen=True)
class Closed:
    """A partition was read to its end; `positions`: its parts, each with the new partition that it belongs to."""

    positions: tuple[tuple[Position, RowRange], ...]
    low_watermark: int


Outcome = Moved | Closed


def tiles(parts: Iterable[RowRange], whole: RowRange) -> bool:
    """Whether the parts, laid end to end, are exactly the whole."""
    at, ended = whole.start, False
    for part in sorted(parts):
        if ended or part.start != at:
            return False
        at, ended = part.end, not part.end
    return at == whole.end and (ended or bool(whole.end))


_TABLE = RowRange(b"", b"")


def initial(ranges: Sequence[RowRange], start: int) -> list[Partition]:
    """Return the partitions of a table from `start` on. Raises Fault where they are not all of it."""
    return _checked([Partition(rows, (), start, start) for rows in sorted(ranges)])


def requests(partitions: Sequence[Partition]) -> list[Request]:
    """Return what to ask for, the lowest watermarks first: of a partition that waits each of its parts."""
    found = []
    for partition in partitions:
        if partition.is_whole:
            found.append(Request(partition))
            continue
        for position in partition.positions:
            part = Partition(position.rows, (position,), None, partition.low_watermark)
            found.append(Request(part, waits_for=partition.rows))
    return sorted(found, key=lambda request: (request.partition.low_watermark, request.partition.rows))


def after(asked: Request, outcome: Outcome | None) -> list[Partition]:
    """Return what a round made of what was asked for; None: it was not read. Raises Fault where it does not fit.

    Parts of one partition may come of several requests: see `whole_table`.
    """
    partition = asked.partition
    if isinstance(outcome, Closed):
        if not tiles((position.rows for position, _ in outcome.positions), partition.rows):
            raise _misfit(f"the tokens with which {partition.rows} was closed do not cover its whole range")
        return [Partition(target, (position,), None, outcome.low_watermark) for position, target in outcome.positions]
    if outcome is None or outcome.token is None:
        return [replace(partition, rows=asked.waits_for or partition.rows)]
    return [Partition(partition.rows, (Position(partition.rows, outcome.token),), None, outcome.low_watermark)]


def whole_table(parts: Iterable[Partition]) -> list[Partition]:
    """Return the partitions after a round, in the order of their row keys, those of one range put together.

    Raises Fault where they are not all of the table.
    """
    return _checked(_merged(parts))


def _merged(partitions: Iterable[Partition]) -> list[Partition]:
    """Return the partitions with those of one range put together."""
    found: dict[RowRange, Partition] = {}
    for partition in partitions:
        known = found.get(partition.rows)
        if known is None:
            found[partition.rows] = partition
            continue
        found[partition.rows] = Partition(
            partition.rows,
            tuple(sorted(known.positions + partition.positions)),
            known.start if partition.start is None else partition.start,
            min(known.low_watermark, partition.low_watermark),
        )
    return sorted(found.values(), key=lambda partition: partition.rows)


def _checked(partitions: list[Partition]) -> list[Partition]:
    held = [
        rows
        for partition in partitions
        for rows in [p.rows for p in partition.positions] + ([] if partition.start is None else [partition.rows])
    ]
    if not tiles(held, _TABLE):
        raise _misfit("the partitions do not cover each row key exactly once")
    return partitions


def _misfit(what: str) -> Fault:
    return Fault(
        f"Bigtable's answers about the partitions of the change stream contradict each other ({what}): run it again."
    )


def lowest_watermark(partitions: Sequence[Partition]) -> int:
    """Return the lowest of the partitions' estimated low watermarks, in nanoseconds since 1970."""
    return min(partition.low_watermark for partition in partitions)


def to_json(partitions: Sequence[Partition]) -> list[dict[str, Any]]:
    """Return partitions as they are staged: keys in base64, moments as text."""
    return [
        {
            **_range_json(partition.rows),
            "tokens": [_range_json(p.rows) | {"token": p.token} for p in partition.positions],
            "start": None if partition.start is None else as_text(partition.start),
            "low_watermark": as_text(partition.low_watermark),
        }
        for partition in partitions
    ]


def from_json(staged: Sequence[Mapping[str, Any]]) -> list[Partition]:
    """Return partitions that were staged."""
    return [
        Partition(
            _range(one),
            tuple(Position(_range(token), token["token"]) for token in one["tokens"]),
            None if one["start"] is None else nanoseconds(one["start"]),
            nanoseconds(one["low_watermark"]),
        )
        for one in staged
    ]


def _range_json(rows: RowRange) -> dict[str, Any]:
    return {
        "start_key": base64.b64encode(rows.start).decode(),
        "end_key": base64.b64encode(rows.end).decode(),
    }


def _range(staged: Mapping[str, Any]) -> RowRange:
    return RowRange(base64.b64decode(staged["start_key"]), base64.b64decode(staged["end_key"]))
