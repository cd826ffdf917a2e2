"""The compaction of a staging table and of what its models write: table by table, and it gives way to whoever writes.

Each statement is one commit of the table's format, and leaves the same rows. So a job that is killed leaves nothing to
be ended, and the next one begins anew with what the tables then have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from reconcile_jobs.process.errors import JobError, explained
from reconcile_jobs.retention.files import TableFiles, compacted_tables
from reconcile_jobs.retention.tables import Tables, is_conflict
from reconcile_jobs.staging import TableName

__all__ = ["WORTH", "Compacted", "Compaction", "CompactionResult", "Left"]

# A table is compacted if it will have fewer files, by at least this number.
WORTH = 10

# How often it is tried where another commit comes in between. Each append to a staging table of Delta changes the
# table's properties, before which an OPTIMIZE gives way.
_ATTEMPTS = 3


@dataclass(frozen=True)
class Compacted:
    """A table that was compacted, or would be: how many files it had, and has (about, if it would be)."""

    table: str
    before: int
    after: int


@dataclass(frozen=True)
class Left:
    """A table of which something was left undone, and why."""

    table: str
    why: str


@dataclass
class CompactionResult:
    """What a compaction came to.

    `tables`: how many there are. `tidied`: of how many the old versions were deleted. `failures`: by table, why it
    could not be compacted.
    """

    tables: int = 0
    compacted: list[Compacted] = field(default_factory=list)
    tidied: int = 0
    left: list[Left] = field(default_factory=list)
    failures: dict[str, JobError] = field(default_factory=dict)

    def refuse_failures(self) -> None:
        """Raise the first failure's kind of error, if there is one, with the names of all tables that had one."""
        for failure in self.failures.values():
            raise type(failure)(
                f"{len(self.failures):,} of {self.tables:,} tables could not be compacted, each for the reason that "
                f"its line names: {', '.join(self.failures)}."
            )


class Compaction:
    """The compaction of a staging table, of its models' tables, and of their ledgers and results."""

    def __init__(
        self,
        tables: Tables,
        files: TableFiles,
        staging: TableName,
        say: Callable[[str], None],
        combines: bool = True,
        deletes_versions: bool = False,
        worth: int = WORTH,
    ) -> None:
        """Take what is done: whether it `combines` small files, and `deletes_versions` that are old."""
        self._tables, self._files, self._staging, self._say = tables, files, staging, say
        self._combines, self._deletes_versions, self._worth = combines, deletes_versions, worth

    def run(self, dry_run: bool = False) -> CompactionResult:
        """Compact what is worth it; say of each table what was done. A failure of one table does not stop the next."""
        result = CompactionResult()
        for table in compacted_tables(self._staging, self._tables.readers()):
            try:
                if not self._files.exists(table):
                    continue
                result.tables += 1
                if self._combines:
                    self._combine(table, result, dry_run)
                if self._deletes_versions and not dry_run:
                    self._remove_versions(table, result)
            except Exception as problem:
                failure = explained(problem)
                result.failures[str(table)] = failure
                self._leave(table, str(failure), result)
        return result

    def _combine(self, table: TableName, result: CompactionResult, dry_run: bool) -> None:
        files = self._files.of(table)
        if files.fewer < self._worth:
            return
        if dry_run:
            done = Compacted(str(table), files.number, files.number - files.fewer)
            result.compacted.append(done)
            self._say(f"{table}: {done.before:,} files, would become about {done.after:,}")
            return
        for _ in range(_ATTEMPTS):
            try:
                self._files.compact(table)
                gave_way = False
            except Exception as problem:
                if not is_conflict(problem):
                    raise
                gave_way = True
            # Of several commits the earlier ones may have done it.
            now = self._files.of(table)
            if not gave_way or now.fewer < self._worth:
                break
        else:
            self._leave(table, f"{now.number:,} files stay, since other processes wrote at the same moment", result)
            return
        result.compacted.append(Compacted(str(table), files.number, now.number))
        self._say(f"{table}: {files.number:,} files -> {now.number:,}")

    def _remove_versions(self, table: TableName, result: CompactionResult) -> None:
        if why := self._files.needed_versions(table, table == self._staging):
            self._leave(table, f"old versions stay, since {why}", result)
            return
        try:
            self._files.remove_versions(table)
            result.tidied += 1
        except Exception as problem:
            if not is_conflict(problem):
                raise
            self._leave(table, "old versions stay, since another process wrote to it at the same moment", result)

    def _leave(self, table: TableName, why: str, result: CompactionResult) -> None:
        result.left.append(Left(str(table), why))
        self._say(f"{table}: {why}")
