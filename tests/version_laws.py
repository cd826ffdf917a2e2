"""Checks of the laws on histories: every version of every row, against a replay of the records in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from histories import COLUMNS, EPOCH, KEY, NOTHING, VALUE_COLUMNS, Record, Values
from lakes import stored
from laws import COUNTS, Key, Lakehouse, demand, some


class Version(NamedTuple):
    """What a record makes of its row, and how long that holds."""

    kind: str
    values: Values
    known: bool  # the whole row is
    valid_from: int  # microseconds
    valid_to: int | None
    repeats: bool  # the version before it, which ends as this one begins
    folded_to: int | None  # where the versions that repeat it end
    uuid: str
    batch: int


def replay(records: Iterable[tuple[str, int, Record]]) -> dict[str, Version]:
    """Return the version that each distinct record of one key makes, by its sequence.

    Given are sequence, batch and record; of copies the earliest batch counts, and the least time and uuid.
    """
    copies: dict[str, list[tuple[int, Record]]] = {}
    for sequence, batch, record in records:
        copies.setdefault(sequence, []).append((batch, record))
    order = sorted(copies)
    times = [min(_micros(record.time) for _, record in copies[sequence]) for sequence in order]
    versions: list[Version] = []
    values, known = NOTHING, False
    for i, sequence in enumerate(order):
        record = copies[sequence][0][1]
        if record.columns is None:
            values = NOTHING if record.kind == "delete" else record.values
            known = record.kind != "delete"
        else:
            carried = zip(VALUE_COLUMNS, record.values, values, strict=True)
            values = tuple(new if name in record.columns else old for name, new, old in carried)  # type: ignore[assignment]
        valid_from, valid_to = min(times[i:]), min(times[i + 1 :], default=None)
        before = next((version for version in reversed(versions) if version.known), None)
        repeats = known and before is not None and (before.values, before.valid_to) == (values, valid_from)
        uuid = min((_micros(copy.time), copy.uuid) for _, copy in copies[sequence])[1]
        batch = min(batch for batch, _ in copies[sequence])
        versions.append(Version(record.kind, values, known, valid_from, valid_to, repeats, None, uuid, batch))
    for i, version in enumerate(versions):
        run = [version]
        for later in versions[i + 1 :]:
            if later.known and not later.repeats:
                break
            run.extend([later] if later.known else [])
        versions[i] = version._replace(folded_to=run[-1].valid_to)
    return dict(zip(order, versions, strict=True))


class Histories(Lakehouse):
    """As its base, of models that keep every version."""

    materialized = "history"

    def versions(self, source: str, delivered: Iterable[tuple[int, Record]]) -> dict[Key, dict[str, Version]]:
        """Return what these records come to, by key and sequence."""
        sequences = self.sequences(source)
        by_key: dict[Key, list[tuple[str, int, Record]]] = {}
        for batch, record in delivered:
            if not record.bad:
                by_key.setdefault(record.key, []).append((sequences[record.uuid], batch, record))
        for key, records in by_key.items():
            ranks = [record.rank for _, _, record in sorted(records, key=lambda said: said[0])]
            demand(ranks == sorted(ranks), f"{source}: the sequences of {key} are not in the order of its records")
        return {key: replay(records) for key, records in by_key.items()}

    def base(self, source: str) -> dict[Key, Any]:
        """Return the rows of the base table by key and sequence."""
        names = [*KEY, "_change_sequence"]
        rows = stored(self.lake, f"{self.schema}.{source}__base").collect()
        found = {tuple(row[name] for name in names): row.asDict() for row in rows}
        demand(len(found) == len(rows), f"{source}: the base has a version twice")
        return found

    def check_state(self) -> None:
        """Law 1: the versions are those of a replay of the delivered records, in storage and as people read them."""
        for source in self.sources:
            replayed = self.versions(source, self.staged.upto(source, self.batch))
            expected = {(*key, sequence): v for key, told in replayed.items() for sequence, v in told.items()}
            base = self.base(source)
            demand(base.keys() == expected.keys(), f"{source}: records {some(base.keys() ^ expected.keys())}")
            wrong = {}
            for identity, version in expected.items():
                row = base[identity]
                seen = Version(
                    row["_change_type"], tuple(row[name] for name in VALUE_COLUMNS),  # type: ignore[arg-type]
                    row.get("_change_is_known", row["_change_type"] != "delete"), _micros(row["valid_from"]),
                    _micros(row["valid_to"]), row["_change_repeats"], _micros(row["_change_valid_to"]),
                    row["_change_id"], row["_change_batch"],
                )  # fmt: skip
                if not version.known:  # where a run would end that never began
                    seen, version = seen._replace(folded_to=None), version._replace(folded_to=None)
                if seen != version:
                    wrong[identity] = (seen, version)
            demand(not wrong, f"{source}: {len(wrong)} versions are not as replayed: {some(wrong.items())}")
            self._check_view(source, replayed)

    def _check_view(self, source: str, replayed: Mapping[Key, Mapping[str, Version]]) -> None:
        view = self.lake.table(f"{self.schema}.{source}")
        own = ["valid_from", "valid_to", "is_current", "_change_type", "_change_sequence", "_change_id"]
        demand(view.columns == [*COLUMNS, *own], f"{source}: the view's columns are {view.columns}")
        seen = Counter(
            (*row[: len(COLUMNS)], _micros(row.valid_from), _micros(row.valid_to), *row[-4:]) for row in view.collect()
        )
        shown = Counter(
            (*key, *v.values, v.valid_from, v.folded_to, v.folded_to is None, v.kind, sequence, v.uuid)
            for key, told in replayed.items()
            for sequence, v in told.items()
            if v.known and not v.repeats
        )
        demand(
            seen == shown,
            f"{source}: the view's versions are not those that changed: {some((seen - shown) | (shown - seen))}",
        )

    def check_ledger(self) -> None:
        """Law 3: each account is that of replaying its range in plain Python, and no batch is in none."""
        for source in self.sources:
            covered, known = 0, set[tuple[Any, ...]]()
            for line in self.accounts[source]:
                covered, known = line.last_batch, set() if line.kind == "rebuild" else known
                replayed = self.versions(source, self.staged.upto(source, line.last_batch))
                sequences = self.sequences(source)
                records = self.staged.upto(source, line.last_batch, line.first_batch)
                good = [(record.key, sequences[record.uuid]) for _, record in records if not record.bad]
                new = set(good) - known
                known |= new
                count = Counter(delivered=len(records), quarantined=len(records) - len(good))
                count["duplicate"] = len(good) - len(new)
                for key, sequence in new:
                    told = list(replayed[key].items())
                    at = [s for s, _ in told].index(sequence)
                    version, was_live = told[at][1], at > 0 and told[at - 1][1].known
                    if version.kind != "delete" and not version.known:
                        count["pending"] += 1
                        continue
                    count["applied"] += 1
                    effects = ("tombstoned", "deleted") if version.kind == "delete" else ("inserted", "updated")
                    count[effects[was_live]] += 1
                seen = {name: line[name] for name in COUNTS}
                should = {name: count[name] for name in COUNTS}
                demand(seen == should, f"{source}: {line.kind} counts {seen}, should be {should}")
            demand(covered == self.batch, f"{source}: batches up to {covered} of {self.batch} are accounted for")


def _micros(time: datetime | None) -> Any:
    """Return microseconds; of a time without a zone, as PySpark's, in the zone of the machine."""
    if time is None:
        return None
    elapsed = time.astimezone(EPOCH.tzinfo) - EPOCH
    return (elapsed.days * 86400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds
