"""Tombstones that the job deletes on real tables, and a record that comes after its tombstone is gone; no dbt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from datastream import Staged, event
from functional.maintained_shop import Later, Shop
from pyspark.sql import SparkSession
from reconcile_jobs.retention.tables import Tables
from reconcile_jobs.retention.tombstones import TombstoneResult, Tombstones


def night(shop: Shop, age: timedelta = timedelta(days=90)) -> TombstoneResult:
    clock: Any = Later()
    tables = Tables(shop.spark, shop.staging)
    return Tombstones(shop.spark, tables, age, lambda text: None, clock).run()


def late(shop: Shop, key: int, place: int) -> None:
    """Stage a change of long ago as a batch of its own."""
    shop.batch += 1
    text = event("postgresql", {"id": key, "name": "late"}, "UPDATE", metadata={"lsn": f"0/{place:X}"})
    shop.warehouse.stage(f"{shop.staging.schema}.changes", [Staged(text, "shop.things", shop.batch)])


def quarantined(shop: Shop) -> list[tuple[int, str]]:
    rows = shop.spark.table(f"{shop.projects['shop'].schema}.things__quarantine").collect()
    return sorted((row._change_batch, row._change_error.rpartition(": ")[2]) for row in rows)


def balances(shop: Shop) -> list[Any]:
    return list(shop.warehouse.sql(shop.projects["shop"].test("ledger_balances", "things")).collect())


@pytest.mark.soak
def test_a_record_that_comes_after_its_tombstone_is_gone_brings_no_row_back(spark: SparkSession) -> None:
    shop = Shop(spark, "without_tombstones")
    base = f"{shop.projects['shop'].schema}.things__base"
    of_sales = f"{shop.projects['sales'].schema}.things__base"
    past = f"{shop.projects['shop'].schema}.past"

    def run(**how: Any) -> None:
        for project in shop.projects:
            shop.run(project, **how)

    shop.append(k1="one", k2="two", k3="three")
    run()
    shop.append(k2=None)  # the fourth place
    run()
    result = night(shop)
    assert result.waiting == {base.removesuffix("__base"): 1, of_sales.removesuffix("__base"): 1}
    assert result.kept == {past: "a history, in which each delete is the end of a version"}
    late(shop, 2, 3)
    shop.append(k4="four")
    run()
    assert (quarantined(shop), shop.live("shop")) == (
        [(3, "it came too late")],
        [(1, "one"), (3, "three"), (4, "four")],
    )
    # Staging has the records of before the horizon: a rebuild could apply them.
    assert night(shop).deleted == {}
    assert shop.purge().batch == 4, "a late record keeps nothing back"
    # A view of before the horizon may still be there, had the run been killed that took it.
    assert night(shop).deleted == {}
    shop.append(k6="six")
    run()
    assert night(shop).deleted == {base: 1, of_sales: 1}
    assert not spark.table(base).where("id = 2").collect()
    assert balances(shop) == []
    assert night(shop).deleted == {}

    # A delete of long ago, and a change of which the tombstone is gone.
    late(shop, 3, 2)
    late(shop, 2, 2)
    run()
    came_late = [(3, "it came too late"), (6, "it came too late"), (7, "it came too late")]
    live = [(1, "one"), (3, "three"), (4, "four"), (6, "six")]
    assert (quarantined(shop), shop.live("shop"), balances(shop)) == (came_late, live, [])
    shop.projects["shop"].variables["retry_quarantine"] = True
    shop.run("shop", "things")
    shop.projects["shop"].variables.pop("retry_quarantine")
    assert (quarantined(shop), shop.live("shop"), balances(shop)) == (came_late, live, [])
    # A rebuild begins with the copy of before, which has the tombstone, and reads what came since.
    run(full_refresh=True)
    assert (quarantined(shop), shop.live("shop"), balances(shop)) == (came_late, live, [])
    # It goes again, and then a copy of the base table lacks it, too.
    assert night(shop).deleted == {base: 1, of_sales: 1}
    shop.append(k5="five")
    run()
    assert shop.purge().batch == 8
    late(shop, 2, 1)
    run()
    run(full_refresh=True)
    assert shop.live("shop") == shop.live("sales") == sorted([*live, (5, "five")])
    assert (quarantined(shop), balances(shop)) == ([*came_late, (9, "it came too late")], [])
