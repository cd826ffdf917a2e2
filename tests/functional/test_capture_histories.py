"""The histories of the real capture: the versions that replaying the source's log gives, however it was delivered."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from shop import Shop
from tables import restore, versions
from true_versions import shown, true_versions
from truth import COLUMNS, DELIVERIES, SOURCES, rows_of

pytestmark = pytest.mark.soak


def wrong(shop: Shop) -> dict[str, list[Any]]:
    """Return how each history differs from the replayed one, for those that do."""
    found = {}
    for source, table in shop.models:
        width = len(COLUMNS[table])
        rows: Counter[Any] = Counter()
        for row, copies in rows_of(shop.spark, f"{shop.schema}.{source}_{table}").items():
            *validity, change_type, _, change_id = row[width:]
            rows[(*row[:width], *validity, change_type, change_id)] += copies
        true = shown(true_versions(source, table))
        odd = [("unexpected", *row) for row in (rows - true).elements()]
        odd += [("missing", *row) for row in (true - rows).elements()]
        if odd:
            found[f"{source}_{table}"] = odd[:5]
    return found


TESTS = ["reconcile.history_is_sound", "reconcile.ledger_balances", "reconcile.no_quarantine"]
# Delivered in two parts, each out of order; the others all at once.
STEPWISE = ("oracle",)


def failures(shop: Shop, *select: str) -> int:
    """Run the data tests and return how many rows they found; a test that ends otherwise is the test's failure."""
    outcome = shop.project.dbt("test", "--select", *(select or ["*"]), succeed=False).result
    results = [result for result in outcome.results if result.node.resource_type == "test"]
    assert results and [result.message for result in results if result.status not in ("pass", "fail")] == []
    return sum(result.failures for result in results)


@pytest.fixture(scope="module")
def shop(spark, tmp_path_factory) -> Shop:
    shop = Shop(spark, tmp_path_factory.mktemp("histories"), "histories", "json", materialized="history", tests=TESTS)
    shop.deliver(4, 1, sources=STEPWISE)
    shop.run("--select", *(f"{source}_*" for source in STEPWISE))
    shop.deliver(3, 2, sources=STEPWISE)
    shop.deliver(*DELIVERIES, sources=[source for source in SOURCES if source not in STEPWISE])
    shop.run()
    return shop


@pytest.mark.parametrize("table", COLUMNS)
def test_the_four_sources_tell_one_story(table):
    """What is compared with: the logs of three sources were derived from the fourth's."""
    stories = [
        {key: [version.values for version in told] for key, told in true_versions(source, table).items()}
        for source in SOURCES
    ]
    assert all(story == stories[0] for story in stories)
    assert sum(map(len, stories[0].values())) > 1000


def test_every_key_has_exactly_the_versions_of_the_log(shop):
    assert wrong(shop) == {}


@pytest.mark.matrix
def test_the_histories_are_sound_and_their_ledger_balances(shop):
    assert failures(shop) == 0


BASE = "shop_histories.postgresql_orders__base"
SPOILT = {
    "an overlap": f"update {BASE} set valid_to = valid_to + interval 1 hour where id = {{id}} and valid_to is not null",
    "a gap": f"update {BASE} set valid_to = valid_to - interval 1 second where id = {{id}} and valid_to is not null",
    "a current version lost": f"delete from {BASE} where id = {{id}} and valid_to is null",
    "two current versions": f"update {BASE} set _change_valid_to = null where id = {{id}}",
    "a record twice": f"insert into {BASE} select * from {BASE} where id = {{id}} and valid_to is null",
    "a current version closed": f"update {BASE} set _change_valid_to = valid_from where id = {{id}}",
}


@pytest.mark.parametrize("what", SPOILT)
@pytest.mark.matrix
def test_history_is_sound_finds(shop, what):
    """In one row of several versions, of which none is a delete."""
    several = "select id from {} group by id having count(*) > 2 and count_if(_change_type = 'delete') = 0 order by id"
    row = shop.spark.sql(several.format(BASE)).first().id
    version = versions(shop.spark, BASE)[-1]
    shop.spark.sql(SPOILT[what].format(id=row))
    try:
        assert failures(shop, "postgresql_orders,test_name:history_is_sound") > 0
    finally:
        restore(shop.spark, BASE, version)


@pytest.mark.matrix
def test_delivery_by_delivery_backwards_twice_and_rebuilt_the_versions_are_the_same(spark, tmp_path):
    sources = ("mysql", "postgresql")
    shop = Shop(spark, tmp_path, "histories_backwards", "json", sources, materialized="history", tests=TESTS)
    for delivery in reversed(DELIVERIES):
        shop.deliver(delivery)
        shop.run()
    assert wrong(shop) == {}
    shop.deliver(*DELIVERIES, as_="again")
    shop.run()
    assert wrong(shop) == {}
    assert failures(shop) == 0
    shop.run("--full-refresh")
    assert wrong(shop) == {}
    assert failures(shop) == 0
