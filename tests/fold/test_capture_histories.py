"""The histories of the real capture: the versions that replaying the source's log gives, however it was delivered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from memory import Memory
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from shop import MODELS, Shop, Way, different
from true_versions import shown, true_versions
from truth import COLUMNS, DELIVERIES, SOURCES

TESTS = ["reconcile.history_is_sound", "reconcile.ledger_balances", "reconcile.no_quarantine"]
ALL = tuple(DELIVERIES)
WAYS = {
    "out of order": Way("json", ((4, 1), (3, 2))),
    "backwards and twice": Way("json", ((4, 3), (2, 1, *ALL))),
}


def merged(memory: Memory, source: str, table: str) -> Shop:
    shop = Shop(memory, "histories", [(source, table)], WAYS, materialized="history", tests=TESTS)
    for batch in (1, 2):
        shop.deliver(batch)
        shop.run()
    return shop


def wrong(shop: Shop, source: str, table: str) -> dict[str, list[Any]]:
    """Return how a history differs from the replayed one, for each way in which it does."""
    width, found = len(COLUMNS[table]), {}
    for way, rows in shop.rows(source, table).items():
        found[way] = Counter[Any]()
        for row, copies in rows.items():
            *validity, change_type, _, change_id = row[width:]
            found[way][(*row[:width], *validity, change_type, change_id)] += copies
    return different(found, shown(true_versions(source, table)))


@pytest.fixture(scope="module")
def shop(spark: SparkSession) -> Iterator[Shop]:
    with Memory(spark) as memory:
        yield merged(memory, "postgresql", "customers")


def test_every_key_has_exactly_the_versions_of_the_log(shop: Shop) -> None:
    assert wrong(shop, "postgresql", "customers") == {}


def test_the_history_is_sound_and_its_ledger_balances(shop: Shop) -> None:
    assert shop.project.failing_tests("postgresql_customers") == set()


Spoil = Callable[[DataFrame, str], DataFrame]


def set_to(column: str, value: str, where: str = "true") -> Spoil:
    return lambda base, row: base.withColumn(column, expr(f"if({row} and {where}, {value}, {column})"))


def later_begin(base: DataFrame, row: str) -> DataFrame:
    """Let the first record of a row be valid a day later than it is; what ends it stays."""
    (first,) = base.where(row).selectExpr("min(_change_sequence)").collect()
    return set_to("valid_from", "valid_from + interval 1 day", f"_change_sequence = '{first[0]}'")(base, row)


BASE = "histories.postgresql_customers__base"
OF_RECORDS = "valid_to is not the valid_from of the next version, or valid_from is NULL or later than the change"
NONE_IS_CURRENT = "no version is current, although the newest record is not a delete"
IS_SHOWN = "_change_valid_to is not null"
# What becomes of the row, and what of it has to be found, whatever else is found too.
SPOILT: dict[str, tuple[Spoil, str]] = {
    "an overlap": (set_to("valid_to", "valid_to + interval 1 hour", "valid_to is not null"), OF_RECORDS),
    "a gap": (set_to("valid_to", "valid_to - interval 1 second", "valid_to is not null"), OF_RECORDS),
    "a current version lost": (lambda base, row: base.where(f"not ({row} and valid_to is null)"), NONE_IS_CURRENT),
    "two current versions": (set_to("_change_valid_to", "null"), "one of several current versions"),
    "a record twice": (
        lambda base, row: base.union(base.where(f"{row} and valid_to is null")), "the record is stored more than once",
    ),
    "a current version closed": (set_to("_change_valid_to", "valid_from"), NONE_IS_CURRENT),
    "a record that nothing ends": (set_to("valid_to", "null", "valid_to is not null"), OF_RECORDS),
    "an end that no record makes": (
        set_to("valid_to", "valid_from + interval 1 hour", "valid_to is null"), OF_RECORDS,
    ),
    "a record that is valid later than its change": (later_begin, OF_RECORDS),
    # Of what people read alone.
    "a shown overlap": (
        set_to("_change_valid_to", "_change_valid_to + interval 1 hour", IS_SHOWN), "overlaps the next version",
    ),
    "a shown gap": (
        set_to("_change_valid_to", "_change_valid_to - interval 1 microsecond", IS_SHOWN),
        "a gap follows the version, and no delete explains it",
    ),
    "a version that ends before it begins": (
        set_to("_change_valid_to", "valid_from - interval 1 second", IS_SHOWN), "ends before it begins",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SPOILT)
def test_history_is_sound_finds(shop: Shop, what: str) -> None:
    """In one row of several versions, of which none is a delete or equals the one before."""
    several = "having count(*) > 2 and count_if(_change_type = 'delete' or _change_repeats) = 0 order by way, id"
    base, version = shop.memory.table(BASE), shop.memory.version(BASE)
    row = shop.memory.sql(f"select way, id from `{BASE.replace('.', '`.`')}` group by way, id {several}").first()
    assert row
    spoil, finding = SPOILT[what]
    shop.memory.keep(BASE, spoil(base, f"way = '{row.way}' and id = {row.id}"))
    try:
        found = shop.project.failing("history_is_sound", "postgresql_customers")
        assert finding in {row.finding for row in found}
    finally:
        shop.memory.restore(BASE, version)


@pytest.mark.soak
def test_a_rebuild_gives_the_same_versions(shop: Shop) -> None:
    shop.run(full_refresh=True)
    assert wrong(shop, "postgresql", "customers") == {}
    assert shop.project.failing_tests("postgresql_customers") == set()


LONG = [("oracle", "orders"), ("mysql", "order_lines")]
OTHERS = [
    pytest.param(*model, id="-".join(model), marks=pytest.mark.soak if model in LONG else pytest.mark.matrix)
    for model in MODELS
    if model != ("postgresql", "customers")
]


@pytest.mark.parametrize(("source", "table"), OTHERS)
def test_every_key_of_the_other_tables_has_exactly_the_versions_of_the_log(
    spark: SparkSession, source: str, table: str
) -> None:
    with Memory(spark) as memory:
        shop = merged(memory, source, table)
        assert wrong(shop, source, table) == {}
        assert shop.project.failing_tests(f"{source}_{table}") == set()


@pytest.mark.soak
@pytest.mark.parametrize("table", COLUMNS)
def test_the_four_sources_tell_one_story(table: str) -> None:
    """What is compared with: the logs of three sources were derived from the fourth's."""
    stories = [
        {key: [version.values for version in told] for key, told in true_versions(source, table).items()}
        for source in SOURCES
    ]
    assert all(story == stories[0] for story in stories)
    assert sum(map(len, stories[0].values())) > 1000
