"""What the job of a change stream keeps with its staging table: where it began, from which later runs resume."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import ClassVar, Self

from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.staging import Staging, TableName, changed_by_hand
from reconcile_jobs.timestamps import as_text, nanoseconds

__all__ = ["Beginning", "first_start"]


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """What the jobs of all change streams keep, under the name of the source."""

    source: ClassVar[str]
    start: int  # where the stream is read from, in nanoseconds since 1970; in JSON RFC 3339
    backfill: bool  # whether the first batch brings what was there
    appended: bool  # whether a batch has been appended since
    lost: bool = False  # whether a checkpoint was lost since: the start is then where the table ended

    @classmethod
    def of(cls, staging: Staging) -> Self | None:
        """Return what is kept with the table, None before the first run. Raises UsageError for what no job has kept."""
        text = staging.kept(cls.source)
        if text is None:
            return None
        try:
            kept = json.loads(text)
            return cls(**kept | {"start": nanoseconds(kept["start"])})
        except (ValueError, TypeError, KeyError, RecursionError):
            raise UsageError(changed_by_hand(staging.name, f"reconcile.{cls.source}", text)) from None

    def keep(self, staging: Staging) -> Self:
        """Keep it with the table, unless the table has it, and return it."""
        if self != self.of(staging):
            values = asdict(self) | {"start": as_text(self.start)}
            staging.keep(self.source, json.dumps({key: values[key] for key in values if key != "lost" or self.lost}))
        return self

    def refuse_other_beginning(self, table: TableName, asked: int | None, lacks_backfill: bool) -> None:
        """Raise UsageError if `--start` or `--backfill` asks for another beginning than the table had.

        `asked`: the moment of `--start`, None without the option; after a lost checkpoint any moment is accepted here.
        `lacks_backfill`: `--backfill` is given, and the table was begun without it.
        """
        if asked is not None and asked != self.start and not self.lost:
            raise UsageError(
                f"{table} began at {as_text(self.start)}, and later runs continue where the run before ended: remove "
                "--start, or name a new table with --staging."
            )
        if lacks_backfill:
            raise UsageError(
                f"{table} began without --backfill: remove --backfill, or name a new table with --staging."
            )

    @classmethod
    def refuse_without(cls, staging: Staging) -> None:
        """Raise UsageError for a table with batches which says neither where it began nor where it ends."""
        if staging.last_batch:
            raise UsageError(
                f"{staging.name} has had {staging.last_batch} batches, and says neither where it began (its property "
                f"reconcile.{cls.source}) nor where it ends (its rows of the object #cut): restore what is gone, or "
                "name a new table with --staging."
            )

    def refuse_unknown_end(self, why: str) -> None:
        """Raise UsageError where batches were appended; `why` says that the table does not tell where they end."""
        if self.appended:
            raise UsageError(f"{why}: name a new table with --staging.")

    def without_checkpoint(self, table: TableName, asked: int | None, end: int | None) -> Self:
        """Return where to go on after `end`, up to which the table has everything (None: no batch says)."""
        if end is None:
            self.refuse_unknown_end(
                f"The checkpoint of {table} is lost, and no batch in the table has the time up to which it is complete"
            )
        start = self.start if end is None else end + 1
        if asked is not None and asked > start and not self.lost:
            raise UsageError(
                f"{table} ends at {as_text(start)}, and the records between this time and --start would be missing: "
                "remove --start."
            )
        # What was there is in staging already, unless not even the first batch is.
        return replace(self, start=start, backfill=self.backfill and end is None, lost=True)

    def refuse_late(self, target: int, is_end: bool, now: str) -> None:
        """Raise UsageError where the start lies after what is to be got to: `--end`, or else the time now."""
        if target < self.start:
            late = "--end is before --start" if is_end else "--start is in the future"
            raise UsageError(f"{late}: the time now is {now}, and the start is {as_text(self.start)}.")


def first_start(
    kept: Beginning | None, asked: int | None, now: int, table: TableName, say: Callable[[str], None]
) -> int:
    """Return where a table without a batch begins: as asked, or where it was first tried, or now."""
    if kept is None or asked is not None:
        return asked or now
    say(f"{table} begins at {as_text(kept.start)}, the start of the first attempt")
    return kept.start
