"""What a run does for few records, and for no new key: hints and settings, of which nothing is left after the MERGE."""

from __future__ import annotations

import re
from typing import Any

import pytest
from plain_dbt import PlainProject
from recorder import Recorder
from shapes import SHAPES, Life

FEW = 100_000
SMALL_MERGES = "set spark.sql.join.preferSortMergeJoin = false"
THRESHOLD = "set spark.sql.autoBroadcastJoinThreshold = "
GROUPED = "set `spark.sql.iceberg.planning.preserve-data-grouping` = "


def macros(**variables: Any) -> Any:
    return PlainProject(Recorder(), "demo", variables=variables).macros


@pytest.mark.parametrize(
    ("variables", "few"), [({}, FEW), ({"reconcile_broadcast_records": 7}, 7), ({"reconcile_broadcast_records": 0}, 0)]
)
def test_records_are_brought_to_the_rows_as_long_as_they_are_few(variables: dict[str, int], few: int) -> None:
    hints = [macros(**variables).broadcast_hint("record", records) for records in (0, few, few + 1)]
    assert hints == ["/*+ broadcast(record) */ "] * 2 + [""]


@pytest.mark.parametrize("variables", [{}, {"reconcile_broadcast_records": 7}])
def test_on_iceberg_a_merge_of_few_rows_has_settings_instead_of_a_hint(variables: dict[str, int]) -> None:
    few = variables.get("reconcile_broadcast_records", FEW)
    of = macros(**variables).merge_statements
    before, merge, after = of("iceberg", None, {"merged": few}, "merge")[1:]
    assert merge == "merge" and before.startswith(THRESHOLD) and after.startswith(THRESHOLD)
    assert of("iceberg", None, {"merged": few}, "merge")[0] == SMALL_MERGES
    # Of many rows, each task would get all of them. Delta's own MERGE takes the hint.
    assert of("iceberg", None, {"merged": few + 1}, "merge") == of("delta", None, {"merged": 1}, "merge") == ["merge"]


def test_after_a_merge_tables_are_broadcast_by_the_sizes_that_spark_has_seen_again() -> None:
    """Else the next statement broadcasts a base table of any size, by the size that it had when it was made."""
    begun = [sql for sql in macros().get_session_statements() if sql.startswith(THRESHOLD)]
    *_, after = macros().merge_statements("iceberg", None, {"merged": 1}, "merge")
    assert begun == [after] == [f"{THRESHOLD}-1"]


def test_a_scan_after_a_merge_into_buckets_does_not_follow_partitions() -> None:
    """Staging would be read by one task for each object."""
    of_many = macros().merge_statements("iceberg", 16, {"merged": FEW + 1}, "merge")
    assert of_many.index(f"{GROUPED}true") < of_many.index("merge") < of_many.index(f"{GROUPED}false")
    assert len([sql for sql in of_many if "bucketing" in sql and sql.endswith("= true")]) == 2
    assert "set spark.sql.requireAllClusterKeysForCoPartition = false" in of_many[: of_many.index("merge")]
    # And with few rows, both kinds of settings.
    assert {SMALL_MERGES, *of_many} < set(macros().merge_statements("iceberg", 16, {"merged": 1}, "merge"))


@pytest.mark.parametrize("name", ["mysql_composite_key", "oracle", "spanner", "mysql_history", "oracle_history"])
def test_a_merge_without_a_new_key_has_no_insert(name: str) -> None:
    """For an insert Delta needs an outer join, and shuffles the base table for it."""
    life = Life(SHAPES[name])
    life.statements("first run")
    merges = []
    for new_keys in (2, 0):
        life._increment()
        life.warehouse.counts |= {"merged": 7, "new_keys": new_keys, "inserted": new_keys}
        life.project.begin("run", ["orders"])
        life.warehouse.statements.clear()
        life.project.materialize(life.project.node("orders"))
        merges += [sql for sql in life.warehouse.statements if sql.startswith("merge into `demo`.`orders__base`")]
    assert ["\nwhen not matched then insert (" in sql for sql in merges] == [True, False]
    assert all(re.search(r"\nwhen matched .*then update set\n", sql) for sql in merges)


@pytest.mark.parametrize("name", [
    "mysql_composite_key", "oracle", "oracle_history", "spanner", "bigtable", "postgresql_beside_a_large_snapshot",
    "postgresql_history_beside_a_snapshot",
])  # fmt: skip
def test_what_a_run_has_cached_is_neither_of_before_nor_left(name: str) -> None:
    """Spark keeps caches until they are dropped, and a run that died may have left some of the same names."""
    life = Life(SHAPES[name])
    for phase in SHAPES[name].phases:
        there: dict[str, str] = {}
        for sql in life.statements(phase):
            if dropped := re.fullmatch(r"drop view if exists (reconcile_\w+)", sql):
                there[dropped[1]] = "dropped"
            elif cached := re.match(r"cache (?:lazy )?table (reconcile_\w+) as\n", sql):
                assert there.get(cached[1]) == "dropped", f"{phase}: {cached[1]} may be there"
                there[cached[1]] = "cached"
        assert [cache for cache, state in there.items() if state == "cached"] == [], phase
