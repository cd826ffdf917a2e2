"""A project with one model, over a view of staged records that grows batch by batch, and what is checked of any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from datastream import Staged
from lakes import Lake
from laws import COUNTS, demand, some


class Told(Protocol):
    """A record, or an entry of one."""

    @property
    def text(self) -> str: ...
    @property
    def batch(self) -> int: ...
    @property
    def bad(self) -> bool: ...


Record = TypeVar("Record", bound=Told)


class OneModel(Generic[Record]):
    """Subclasses say what the model is called, of what, and what its records come to.

    Its records are staged, unless they are those of another such model, which has staged them.
    """

    name: str
    materialized: str
    tests: tuple[str, ...]
    # The ledger's counts of the records that come, the second list, given those that were applied before.
    account: Callable[[list[Record], list[Record]], dict[str, int]]

    def __init__(
        self, lake: Lake, schema: str, records: Iterable[Record] | OneModel[Record],
        replaced: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:  # fmt: skip
        self.lake, self.schema, self.batch = lake, schema, 0
        self.accounts: list[Any] = []
        self.project = lake.project(schema, replaced)
        self.project.source(f"{schema}_staging", "changes")
        if isinstance(records, OneModel):
            self.records, self.table = records.records, records.table
        else:
            self.records, self.table = list(records), f"{schema}_staging.all_changes"
            lake.stage(self.table, sorted(self.staged(), key=lambda row: row.batch))

    def staged(self) -> Iterable[Staged]:
        """Return the rows of staging."""
        raise NotImplementedError

    def upto(self, batch: int, first: int = 1) -> list[Record]:
        """Return the records of some batches that the model takes."""
        return [record for record in self.records if first <= record.batch <= batch]

    def deliver(self, upto: int) -> None:
        self.batch = upto
        schema, table = self.table.split(".")
        self.lake.view(f"{self.schema}_staging.changes", f"select * from `{schema}`.`{table}` where batch <= {upto}")

    def run(self, upto: int, *, full_refresh: bool = False) -> None:
        self.deliver(upto)
        self.project.run(self.name, full_refresh=full_refresh)
        ledger = self.lake.table(f"{self.schema}.reconcile_ledger").orderBy("recorded_at").collect()
        self.accounts.append(ledger[-1])

    def forget_last_account(self) -> None:
        """Leave the tables as they are and the ledger as if all runs but the first had died before it."""
        self.lake.delete(f"{self.schema}.reconcile_ledger", "kind <> 'rebuild'")

    def failing_tests(self) -> set[str]:
        """Run the model's tests, and return the names of those that fail."""
        return self.project.failing_tests(self.name)

    @property
    def last(self) -> int:
        """The last batch."""
        return max(record.batch for record in self.records)

    def base(self) -> dict[Any, dict[str, Any]]:
        """Return the rows of the base table, by what tells them apart."""
        raise NotImplementedError

    def deletes(self) -> set[tuple[Any, ...]]:
        """Return the deletes without a key that are kept; last their batch."""
        raise NotImplementedError

    def now(self) -> set[tuple[Any, ...]]:
        """Return what the model shows of the present: keys and values."""
        raise NotImplementedError

    # --- the laws ---

    def check(self) -> None:
        self.check_state()
        self.check_quarantine()
        self.check_ledger()

    def check_state(self) -> None:
        """Law 1: what is in the tables follows from the records that were delivered."""
        raise NotImplementedError

    def check_quarantine(self) -> None:
        """Laws 3 and 4: what is bad is in quarantine as often as it was delivered."""
        rows = self.lake.table(f"{self.schema}.{self.name}__quarantine").collect()
        quarantined = Counter((row._change_batch, row.record) for row in rows)
        bad = Counter((record.batch, record.text) for record in self.upto(self.batch) if record.bad)
        demand(quarantined == bad, f"quarantined {some((quarantined - bad) | (bad - quarantined))}")

    def check_ledger(self) -> None:
        """Law 3: each account is that of replaying its range in plain Python."""
        before: list[Record] = []
        for line in self.accounts:
            known = [] if line.kind == "rebuild" else before
            come = self.upto(line.last_batch, line.first_batch)
            expected = type(self).account(known, come)
            seen = {name: line[name] for name in COUNTS}
            demand(seen == expected, f"{line.kind} of {line.last_batch}: counts {seen}, should be {expected}")
            classes = ("applied", "superseded", "duplicate", "quarantined", "pending")
            demand(line.delivered == sum(line[name] for name in classes), f"{line} does not add up")
            before = known + come
