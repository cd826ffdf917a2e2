"""Tombstones that are deleted, and the horizons up to which they may be: see docs/decisions/0074-horizons.md.

A horizon is a place in the order of changes. This job proposes it, and the next run of the model that applies records
takes it with the first batch of its range: from that batch on, records up to the horizon are quarantined. Tombstones up
to the horizon are deleted once staging has no record of the batches before: then nothing can be applied again that they
hold back. So each step is of one call of the job, and a call that is killed leaves nothing to be ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from reconcile_jobs.process.clock import Clock
from reconcile_jobs.process.counted import counted
from reconcile_jobs.retention.plan import NOT_ENDED, Account, Reader
from reconcile_jobs.retention.purge import last_purged
from reconcile_jobs.retention.tables import HORIZON, Tables, beside, create_table, named, patiently
from reconcile_jobs.staging import TableName, literal, property_pairs, quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Horizon", "TombstoneResult", "Tombstones", "horizon_to_delete", "horizons_table", "why_kept"]

# The columns of the table of horizons, which stands beside the ledger; macros/ledger/horizons.sql reads it, and writes
# the rows of the kind `taken`.
_COLUMNS = (
    "relation string COMMENT 'schema.name of the model, as the ledger has it'",
    "kind string COMMENT 'proposed: by maintain.py; taken: by a run of the model; deleted: tombstones up to the "
    "horizon were deleted'",
    "sequence string COMMENT 'the horizon, of the form of _change_sequence: records up to it come too late'",
    "first_batch bigint COMMENT 'the first batch whose records a run has compared with the horizon, or may'",
    "declaration string COMMENT 'what makes the order, as digests: staging table, sources, form of the order'",
    "entry bigint COMMENT 'the number of the last row of the ledger then; NULL for the kind taken'",
    "invocation_id string COMMENT 'the run that took the horizon; NULL for other kinds'",
    "recorded_at timestamp",
)

_CONFLICTS = (
    "Other processes wrote to {} each time that tombstones were to be deleted: run the same command again, which goes "
    "on from there."
)


@dataclass(frozen=True)
class Horizon:
    """A horizon that a run has taken: records up to `sequence` come too late in batches from `first_batch` on."""

    first_batch: int
    sequence: str


@dataclass(frozen=True)
class _Model:
    """A model, its account, its base table, the table of its horizons, and what the base table says of itself."""

    reader: Reader
    account: Account
    base: TableName
    table: TableName
    said: Mapping[str, str]

    @property
    def order(self) -> str:
        """What makes the order: `declaration_of_order` in macros/ledger/horizons.sql."""
        return " ".join(_declaration(self.said)[aspect] for aspect in ("staging", "sources", "sequence"))


@dataclass
class TombstoneResult:
    """What was done: tombstones deleted, by base table; tombstones that wait for a horizon and models, with reasons.

    `waiting`: the tombstones up to a horizon that was proposed, by model; its next run with records takes the horizon.
    """

    deleted: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)


def horizons_table(ledger: TableName) -> TableName:
    """Return the table of horizons that stands beside a ledger."""
    return TableName((*ledger.parts[:-1], "reconcile_horizons"))


def why_kept(reader: Reader, account: Account | None) -> str | None:
    """Return why the tombstones of a model all stay; None if they may go."""
    if reader.materialized != "current_state":
        return "a history, in which each delete is the end of a version"
    if not reader.objects:
        return "without a source macro, so its objects are not known"
    if account is None:
        return "never run"
    if account.problem:
        return account.problem
    if account.is_under_way:
        return NOT_ENDED
    if account.is_restored:
        return "its base table was restored; run the model"
    return None


def horizon_to_delete(taken: Iterable[Horizon], applied: int, oldest_batch: int | None) -> Horizon | None:
    """Return the farthest horizon up to which tombstones may go; None if there is none.

    `applied`: the last batch that the model has applied. `oldest_batch`: the first batch of which staging has records
    of the model's objects; None if it has none. Records before the horizon's first batch could be applied again, and
    would bring rows back that the tombstones hold back.
    """
    last = applied if oldest_batch is None else min(applied, oldest_batch - 1)
    fitting = [one for one in taken if one.first_batch <= last + 1]
    return max(fitting, key=lambda one: one.sequence, default=None)


class Tombstones:
    """The tombstones of the models that read a staging table, and their horizons."""

    def __init__(
        self,
        spark: SparkSession,
        tables: Tables,
        age: timedelta,
        say: Callable[[str], None],
        clock: Clock | None = None,
    ) -> None:
        """Take what is asked: tombstones go whose delete was committed, and applied, so long ago (`age`)."""
        self._spark, self._tables, self._say = spark, tables, say
        self._age, self._now = age // timedelta(microseconds=1), (clock or Clock()).now() // 1000

    def run(self, dry_run: bool = False) -> TombstoneResult:
        """Delete the tombstones that may go, and propose horizons for others. Raises JobError."""
        result = TombstoneResult()
        readers = [reader for reader in self._tables.readers() if reader.has_base]
        for reader, account in self._tables.accounts(readers, last_purged(self._tables.properties())):
            base = beside(named(reader.relation), "base")
            why, said = why_kept(reader, account), {}
            if why is None:
                said = self._tables.said_of_base(base)
                why = self._why_kept(base, said)
            if why or account is None:
                result.kept[reader.relation] = why or "never run"
                continue
            of = _Model(reader, account, base, horizons_table(named(reader.ledger)), said)
            known = self._known(of) if self._tables.has(of.table) else []
            self._delete(
                of, [Horizon(row.first_batch, row.sequence) for row in known if row.kind == "taken"], result, dry_run
            )
            self._propose(of, max((row.sequence for row in known), default=""), result, dry_run)
        return result

    def _why_kept(self, base: TableName, said: Mapping[str, str]) -> str | None:
        """Return why all tombstones of a base table stay, by the table itself; None if they may go."""
        if "cell_time" in self._spark.table(base.sql).columns:
            return "cells, of which deletes name ranges"
        if said.get("reconcile.snapshot_applied"):
            return "a snapshot beside the log gives records another place in the order"
        if not {"staging", "sources", "sequence"} <= _declaration(said).keys():
            return "built by an earlier version of this package; rebuild it"
        return None

    # --- tombstones that go ---

    def _delete(self, of: _Model, taken: list[Horizon], result: TombstoneResult, dry_run: bool) -> None:
        horizon = horizon_to_delete(taken, of.account.applied, self._tables.first_batch(of.reader))
        # A run that has taken a horizon, and was killed, has left views without it. A later one has made them anew.
        if horizon is None or not self._tables.has_later_range(of.reader, horizon.first_batch):
            return
        is_tombstone, upto = self._is_tombstone(of.base), f"_change_sequence <= {literal(horizon.sequence)}"
        # The rows of the largest batch show what was applied: see `base_is_unchanged` in not_overtaken.sql.
        gone = (
            f"{is_tombstone} AND {upto} AND _change_batch < {horizon.first_batch} "
            f"AND _change_batch < {of.account.base_batch}"
        )
        number = self._count(of.base, gone)
        if not number:
            return
        late = self._count(of.base, f"NOT ({is_tombstone}) AND {upto} AND _change_batch >= {horizon.first_batch}")
        if late:
            self._say(
                f"{of.base}: {counted(late, 'row')} of changes that came too late: a run wrote them that had begun "
                "before another one took the horizon, and a rebuild would quarantine them"
            )
        if not dry_run:
            # First: the ledger's number of rows no longer holds as soon as the tombstones are gone. A run at this
            # moment may have counted them already, and writes one row or two.
            self._note(of, "deleted", horizon.sequence, horizon.first_batch, of.account.entry + 2)
            # The base table says it, too: see `horizon_of_base` in macros/materializations/take_horizon.sql.
            of_base = {HORIZON: f"{horizon.first_batch} {horizon.sequence}"}
            if of.said.get(HORIZON) != of_base[HORIZON]:
                set_property = f"ALTER TABLE {of.base.sql} SET TBLPROPERTIES ({property_pairs(of_base)})"
                self._patiently(of.base, lambda: self._spark.sql(set_property))
            self._patiently(of.base, lambda: self._spark.sql(f"DELETE FROM {of.base.sql} WHERE {gone}"))
        result.deleted[str(of.base)] = number
        self._say(f"{of.base}: {counted(number, 'tombstone')} {'would be deleted' if dry_run else 'deleted'}")

    # --- horizons ---

    def _propose(self, of: _Model, farthest: str, result: TombstoneResult, dry_run: bool) -> None:
        """Propose the place of the last tombstone that is old enough. `farthest`: the farthest horizon that is known.

        A record that staging has, and that is not applied, is not late because the model is: ages count from when the
        first such record was appended. A change of the last days, and one whose time is not known, is after the
        horizon: where times and places disagree, tombstones stay.

        The last section of a place is a hash of values, which nobody needs in a horizon. A sign that is greater than
        all hashes stands in its stead, so that all records of this place come too late.
        """
        reader, base = of.reader, of.base
        waiting_since = self._tables.appended_at(reader.objects, of.account.waits_for)
        before = min(self._now, waiting_since or self._now) - self._age
        aged = self._tables.applied_before(reader, before)
        old = f"_change_time < timestamp_micros({before})"
        place = "regexp_replace(_change_sequence, '[^/]+$', '~')"
        found = self._rows(
            f"SELECT max({place}) AS sequence, count(*) AS number FROM {base.sql} CROSS JOIN (SELECT "
            f"min(_change_sequence) AS _change_young FROM {base.sql} WHERE NOT coalesce({old}, false)) "
            f"WHERE {self._is_tombstone(base)} AND {old} AND _change_batch <= {aged} "
            f"AND coalesce({place} < _change_young, true)"
        )[0]
        if found.sequence is None or found.sequence <= farthest:
            return
        result.waiting[reader.relation] = int(found.number)
        if dry_run:
            return
        create_table(
            self._spark, of.table, _COLUMNS, lambda sql: self._patiently(of.table, lambda: self._spark.sql(sql))
        )
        self._note(of, "proposed", found.sequence, of.account.applied + 1, of.account.entry)

    # --- statements ---

    def _is_tombstone(self, base: TableName) -> str:
        """Return the condition for a row of which nothing is left but its delete."""
        columns = self._spark.table(base.sql).columns
        # Iceberg reserves the shorter name: see macros/table_formats/stored_column.sql.
        deleted = quoted("_change_deleted" if "_change_deleted" in columns else "_deleted")
        whole = " AND _change_row_sequence = _change_sequence" if "_change_row_sequence" in columns else ""
        return deleted + whole

    def _known(self, of: _Model) -> list[Any]:
        """Return the horizons that hold for a base table: see `horizons_in` in macros/ledger/horizons.sql."""
        return self._rows(
            f"SELECT kind, first_batch, sequence FROM {of.table.sql} WHERE relation = {literal(of.reader.relation)} "
            f"AND declaration = {literal(of.order)} "
            f"AND (kind = 'taken' OR kind = 'proposed' AND entry >= {self._tables.rebuilt(of.reader)})"
        )

    def _note(self, of: _Model, kind: str, sequence: str, first_batch: int, entry: int) -> None:
        self._patiently(
            of.table,
            lambda: self._spark.sql(
                f"INSERT INTO {of.table.sql} BY NAME SELECT {literal(of.reader.relation)} AS relation, "
                f"{literal(kind)} AS kind, {literal(sequence)} AS sequence, {first_batch}L AS first_batch, "
                f"{literal(of.order)} AS declaration, {entry}L AS entry, cast(NULL AS string) AS invocation_id, "
                "current_timestamp() AS recorded_at"
            ),
        )

    def _count(self, base: TableName, where: str) -> int:
        return int(self._rows(f"SELECT count(*) AS number FROM {base.sql} WHERE {where}")[0].number)

    def _patiently(self, table: TableName, act: Callable[[], object]) -> None:
        patiently(act, _CONFLICTS.format(table))

    def _rows(self, sql: str) -> list[Any]:
        return self._spark.sql(sql).collect()


def _declaration(said: Mapping[str, str]) -> dict[str, str]:
    """Return the digests of what a base table was built from, by aspect; none if it does not say so."""
    return dict(json.loads(said.get("reconcile.declaration") or "{}"))
