"""Two ways to say what partial records come to: applied one after the other, and joined in the order of arrival."""

from __future__ import annotations

import random

from histories import Record, fold, generate
from laws import Key, Row


def test_joining_in_any_order_of_arrival_gives_what_the_fold_gives() -> None:
    chance = random.Random(1)
    orders = 0
    by_key: dict[Key, list[Record]] = {}
    for record in generate("spanner", 300, seed=3):
        if not record.bad:
            by_key.setdefault(record.key, []).append(record)
    pending = 0
    for key, good in by_key.items():
        (folded,) = fold(good)[key]
        ranks = {record.identity: f"{i:03}" for i, record in enumerate(sorted(good, key=lambda record: record.rank))}
        for _ in range(20):
            orders += 1
            row = Row()
            for record in chance.sample(good, len(good)):
                row = row.joined(record, ranks[record.identity])
            assert (row.live, row.pending) == (folded.live, folded.pending)
            assert row.sequences == {ranks[record.identity] for record in folded.writers}
            pending += row.pending
    assert orders > 10_000 and pending > 100
