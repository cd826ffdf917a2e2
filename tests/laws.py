"""Checks of the laws on what dbt made of staged histories; each raises `LawBroken`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from datastream import Staged
from histories import COLUMNS, KEY, Record, fold
from lakes import Lake, stored

Key = tuple[Any, ...]
COUNTS = (
    "delivered", "applied", "superseded", "duplicate", "quarantined", "pending",
    "inserted", "updated", "deleted", "tombstoned",
)  # fmt: skip


class LawBroken(AssertionError):
    """What dbt made of the histories is not what the laws demand."""


class StagedHistories:
    """Histories of several sources in one staging table, in a delivery of their own order and split into batches."""

    def __init__(
        self, lake: Lake, schema: str, records: Mapping[str, list[Record]], delivery: int, again: bool = False
    ) -> None:
        """Stage them; `again` appends everything once more, as a batch after the others."""
        self.lake = lake
        self.table, self.delivery = f"{schema}.delivery_{delivery}", delivery
        self.records = {source: [(self._batch(record), record) for record in told] for source, told in records.items()}
        self.last = max(batch for told in self.records.values() for batch, _ in told)
        if delivery:
            for told in self.records.values():
                told.reverse()
        if again:
            for told in self.records.values():
                told.extend([(self.last + 1, record) for _, record in told])
        rows = [
            Staged(r.text, source, batch, source="spanner" if source == "spanner" else "datastream")
            for source, told in self.records.items()
            for batch, r in told
            if r.place == 0
        ]
        lake.stage(self.table, sorted(rows, key=lambda row: row.batch))

    def _batch(self, record: Record) -> int:
        return record.batches[self.delivery]

    def upto(self, source: str, batch: int, first: int = 1) -> list[tuple[int, Record]]:
        return [(number, record) for number, record in self.records[source] if first <= number <= batch]


class Lakehouse:
    """A project with one model for each source, over a view of the staged histories that grows batch by batch."""

    materialized = "current_state"
    # Sources whose rows may have a later batch than that of a rebuild: see decision 0053.
    later_batches: frozenset[str] = frozenset()

    def __init__(
        self, schema: str, staged: StagedHistories, sources: Iterable[str] = (), config: str = "",
        replaced: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:  # fmt: skip
        self.lake, self.schema, self.staged, self.batch = staged.lake, schema, staged, 0
        self.sources = list(sources or staged.records)
        self.accounts: dict[str, list[Any]] = {source: [] for source in self.sources}
        self._sequences: dict[tuple[str, int], dict[str, str]] = {}
        self.project = self.lake.project(schema, replaced)
        self.project.source(f"{schema}_staging", "changes")
        for source in self.sources:
            macro = "spanner_change_stream" if source == "spanner" else f"datastream_{source}"
            self.project.model(
                source,
                f"{{{{ config(materialized='{self.materialized}', unique_key={list(KEY)}{config}) }}}}\n"
                f"{{{{ reconcile.{macro}(source('lake', 'changes'), object='{source}') }}}}",
                COLUMNS,
            )

    def run(self, upto: int, *, full_refresh: bool = False) -> None:
        """Let the batches up to this one be there, and run the models."""
        self.deliver(upto)
        self.project.run(*self.sources, full_refresh=full_refresh)
        ledger = self.lake.table(f"{self.schema}.reconcile_ledger").orderBy("recorded_at").collect()
        for source in self.sources:
            self.accounts[source].append([row for row in ledger if row.relation == f"{self.schema}.{source}"][-1])

    def deliver(self, upto: int) -> None:
        """Let the batches up to this one be there."""
        self.batch = upto
        self.lake.view(
            f"{self.schema}_staging.changes", f"select * from {_quoted(self.staged.table)} where batch <= {upto}"
        )

    def forget_last_account(self) -> None:
        """Leave the base table as it is and the ledger as if the last run had died before it."""
        self.lake.delete(f"{self.schema}.reconcile_ledger", "kind <> 'rebuild'")

    def sequences(self, source: str) -> dict[str, str]:
        """Return the SQL's own sequence of each record by its uuid: asked once, for all batches that are there."""
        if (source, self.batch) not in self._sequences:
            changes = self.lake.table(f"{self.schema}.{source}__changes").select("_change_id", "_change_sequence")
            self._sequences[source, self.batch] = {row._change_id: row._change_sequence for row in changes.collect()}
        return self._sequences[source, self.batch]

    def base(self, source: str) -> dict[Key, Any]:
        rows = stored(self.lake, f"{self.schema}.{source}__base").collect()
        found = {tuple(row[name] for name in KEY): row.asDict() for row in rows}
        demand(len(found) == len(rows), f"{source}: the base has a key twice")
        return found

    def ties(self, source: str) -> set[Key]:
        """Return the keys of which several payloads have one place in the log: a hash of their values decides."""
        ranks: dict[Any, set[Any]] = {}
        for _, record in self.staged.upto(source, self.batch):
            ranks.setdefault((record.key, record.rank), set()).add(record.identity)
        return {key for (key, _), identities in ranks.items() if len(identities) > 1}

    # --- the laws ---

    def check(self) -> None:
        """Check all that can be said of one project."""
        self.check_state()
        self.check_quarantine()
        self.check_ledger()

    def check_state(self) -> None:
        """Law 1: live rows, tombstones and batches are those that the fold of the delivered records gives."""
        for source in self.sources:
            delivered = self.staged.upto(source, self.batch)
            base, expected = self.base(source), fold(record for _, record in delivered)
            first_batch: dict[Any, int] = {}
            for batch, record in delivered:
                if not record.bad:
                    first_batch[record.identity] = min(batch, first_batch.get(record.identity, batch))
            demand(base.keys() == expected.keys(), f"{source}: keys {some(base.keys() ^ expected.keys())}")
            wrong = {}
            for key, rivals in expected.items():
                row = base[key]
                # A row of Oracle leaves a trace of each record that it keeps beside its own: see decision 0041.
                kept_too = [found.batch for found in row.get("_change_displaced") or []]
                seen = (row["_deleted"], row["amount"], row["note"], row["other"], row["_change_batch"])
                allowed = {
                    (
                        folded.deleted,
                        *folded.values,
                        max([*kept_too, *(first_batch[record.identity] for record in folded.writers)]),
                    )
                    for folded in rivals
                }
                if source in self.later_batches:
                    allowed = {(*each[:-1], max(each[-1], seen[-1])) for each in allowed}
                if seen not in allowed:
                    wrong[key] = (seen, allowed)
            demand(not wrong, f"{source}: {len(wrong)} keys are not as folded: {some(wrong.items())}")
            live = {tuple(row) for row in self.lake.table(f"{self.schema}.{source}").select(*COLUMNS).collect()}
            kept = {tuple(base[key][name] for name in COLUMNS) for key, rivals in expected.items() if rivals[0].live}
            demand(live == kept, f"{source}: the view's rows are not the live ones: {some(live ^ kept)}")

    def check_live(self, source: str, relation: str) -> set[Any]:
        """Law 1, of a view alone: its rows are the live ones of the fold of the delivered records. Return them."""
        rows = [tuple(row) for row in self.lake.table(f"{self.schema}.{relation}").collect()]
        live, expected = set(rows), fold(record for _, record in self.staged.upto(source, self.batch))
        demand(len(live) == len(rows), f"{relation}: a row comes twice")
        keys = {row[: len(KEY)] for row in rows}
        demand(len(keys) == len(rows), f"{relation}: a key comes twice")
        there = {key for key, rivals in expected.items() if rivals[0].live}
        demand(keys == there, f"{relation}: the live keys are others: {some(keys ^ there)}")
        allowed = {(*key, *folded.values) for key in there for folded in expected[key]}
        demand(live <= allowed, f"{relation}: rows are not as folded: {some(live - allowed)}")
        return live

    def check_quarantine(self) -> None:
        """Laws 3 and 4: what is bad is in quarantine as often as it was delivered."""
        for source in self.sources:
            rows = self.lake.table(f"{self.schema}.{source}__quarantine").collect()
            seen = Counter((row._change_batch, row.record) for row in rows)
            bad = Counter((b, record.text) for b, record in self.staged.upto(source, self.batch) if record.bad)
            demand(seen == bad, f"{source}: quarantined {some((seen - bad) | (bad - seen))}")

    def check_ledger(self) -> None:
        """Law 3: each account is that of replaying its range in plain Python, and no batch is in none.

        The sequences are the SQL's own; they must tell records of a key apart exactly if the records are different.
        """
        for source in self.sources:
            sequences = self.sequences(source)
            identities = {(r.identity, sequences[r.uuid]) for _, r in self.staged.upto(source, self.batch) if not r.bad}
            for side, what in enumerate(("identity with several sequences", "sequence of several identities")):
                often = Counter((identity[0], (identity, sequence)[side]) for identity, sequence in identities)
                demand(max(often.values()) == 1, f"{source}: one {what}: {often.most_common(1)}")
            base: dict[Key, Row] = {}
            covered = 0
            for line in self.accounts[source]:
                gapless = {"apply": covered + 1, "replay": min(line.first_batch, covered + 1), "rebuild": 1}[line.kind]
                demand(line.first_batch == gapless, f"{source}: {line.kind} from {line.first_batch} after {covered}")
                covered = line.last_batch
                records = self.staged.upto(source, line.last_batch, line.first_batch)
                expected = _account(records, sequences, {} if line.kind == "rebuild" else base)
                base = expected.pop("base")  # type: ignore[assignment]
                seen = {name: line[name] for name in expected}
                demand(seen == expected, f"{source}: {line.kind} counts {seen}, should be {expected}")
                classes = ("applied", "superseded", "duplicate", "quarantined", "pending")
                demand(line.delivered == sum(line[name] for name in classes), f"{source}: {line} does not add up")
            demand(covered == self.batch, f"{source}: batches up to {covered} of {self.batch} are accounted for")


class Row(NamedTuple):
    """What orders a row of the base: sequences of its newest record, of the one that set it whole, of later columns."""

    newest: str = ""
    whole: str = ""
    deleted: bool = False
    columns: Mapping[str, str] = {}

    def joined(self, record: Record, sequence: str) -> Row:
        """Return the row after one more record, whichever came before."""
        newest, columns = max(self.newest, sequence), dict(self.columns)
        if record.columns is not None:
            columns.update(
                {c: sequence for c in record.columns if sequence > self.whole and sequence > columns.get(c, "")}
            )
            return Row(newest, self.whole, self.deleted, columns)
        if sequence <= self.whole:
            return Row(newest, self.whole, self.deleted, columns)
        return Row(newest, sequence, record.kind == "delete", {c: s for c, s in columns.items() if s > sequence})

    @property
    def sequences(self) -> set[str]:
        return {self.newest, self.whole, *self.columns.values()} - {""}

    @property
    def live(self) -> bool:
        return self.whole != "" and not self.deleted

    @property
    def pending(self) -> bool:
        return not self.live and self.newest > self.whole


def _account(
    records: list[tuple[int, Record]], sequences: Mapping[str, str], base: Mapping[Key, Row]
) -> dict[str, Any]:
    """Return the account of a range, and the base after it."""
    count = Counter(delivered=len(records), quarantined=sum(record.bad for _, record in records))
    by_key: dict[Key, dict[str, list[Record]]] = {}
    for _, record in records:
        if not record.bad:
            by_key.setdefault(record.key, {}).setdefault(sequences[record.uuid], []).append(record)
    after = dict(base)
    for key, by_sequence in by_key.items():
        before = after.get(key, Row())
        for sequence, copies in by_sequence.items():
            after[key] = after.get(key, Row()).joined(copies[0], sequence)
        row = after[key]
        for sequence, copies in by_sequence.items():
            known, sets_row = sequence in before.sequences, sequence == row.whole
            count["duplicate"] += len(copies) - 1 + known
            if known:
                continue
            if sequence not in row.sequences:
                count["superseded"] += 1
            elif row.pending and not sets_row:
                count["pending"] += 1
            else:
                count["applied"] += 1
                effects = (
                    ("tombstoned", "deleted") if row.deleted else ("inserted" if sets_row else "updated", "updated")
                )
                count[effects[before.live]] += 1
    return {"base": after, **{name: count[name] for name in COUNTS}}


def check_same(one: Mapping[Key, Any], other: Mapping[Key, Any], what: str) -> None:
    """Laws 1, 2 and 5: two base tables hold the very same rows."""
    different = [
        (key, one.get(key), other.get(key)) for key in one.keys() | other.keys() if one.get(key) != other.get(key)
    ]
    demand(not different, f"{what}: {len(different)} rows differ: {some(different)}")


def without_batches(base: Mapping[Key, Any]) -> dict[Key, Any]:
    """Return rows of a base table without the batches of the records that they keep, which follow from the delivery."""
    return {
        key: {
            **{name: value for name, value in row.items() if name != "_change_batch"},
            # A row's own record is among them only for its batch.
            "_change_contenders": [
                found[:-1] for found in row.get("_change_contenders") or [] if found.sequence != row["_change_sequence"]
            ],
            "_change_displaced": [{**found.asDict(), "batch": None} for found in row.get("_change_displaced") or []],
        }
        for key, row in base.items()
    }


def _quoted(name: str) -> str:
    schema, table = name.split(".")
    return f"`{schema}`.`{table}`"


def demand(held: bool, otherwise: str) -> None:
    if not held:
        raise LawBroken(otherwise)


def some(items: Iterable[Any]) -> str:
    """Show a few; histories do not depend on each other, so the one with the lowest number is as good as any."""
    listed = sorted(map(str, items))
    return "; ".join(listed[:3]) + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")
