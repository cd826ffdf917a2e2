"""A retry of the quarantine on real tables: killed between its statements, and with a base table that is restored."""

from __future__ import annotations

from typing import Any

import pytest
from datastream import Staged, event
from file_formats import file_format
from plain_dbt import CompilerError, PlainProject, Rows
from process.spark_warehouse import SparkWarehouse
from pyspark.sql import SparkSession
from tables import restore, versions

BEFORE = {"id": "bigint", "name": "varchar(3)", "size": "int"}
LONGER = {**BEFORE, "name": "varchar(9)"}
WIDER = {**LONGER, "size": "bigint"}
OTHER = {**LONGER, "size": "string"}
BIG = 3_000_000_000


class KilledError(Exception):
    """The run ends here."""


class Shop:
    """One model, of which the declaration is corrected."""

    def __init__(self, spark: SparkSession, schema: str, materialized: str = "current_state") -> None:
        self.schema, self.materialized, self.warehouse = schema, materialized, SparkWarehouse(spark)
        self.project = PlainProject(self.warehouse, schema, file_format=file_format())
        self.project.source(schema, "changes")
        self.project.variables["reconcile_register_models"] = False
        # The old name of 1 does not come back with the retry, and neither does 2, which was deleted.
        self.deliver(1, (1, "one", 1), (2, "two", 2), (3, "three", 3), (4, "abc", BIG))
        self.deliver(2, (1, "eleven", 11), (2, "twelve", 12), (5, "five", 5))
        self.deliver(3, (1, "uno", 111), (6, "far too long", 6))
        self.deliver(3, (2, "", 0), change_type="DELETE")

    def deliver(self, batch: int, *rows: tuple[int, str, int], change_type: str = "INSERT") -> None:
        records = [
            event("mysql", dict(zip(BEFORE, row, strict=True)), change_type,
                  metadata={"log_position": 1000 * batch + 10 * row[0] + (change_type == "DELETE")})
            for row in rows
        ]  # fmt: skip
        self.warehouse.stage(f"{self.schema}.changes", [Staged(record, "things", batch) for record in records])

    def run(
        self, columns: dict[str, str], *, retry: bool = False, full_refresh: bool = False, lives: Any = None
    ) -> str:
        """Run the model; `lives`: how often it writes before it is killed."""
        sql = f"{{{{ config(materialized='{self.materialized}', unique_key='id') }}}}\n"
        self.project.model(
            "things", sql + "{{ reconcile.datastream_mysql(source('lake', 'changes'), object='things') }}", columns
        )
        self.project.variables["retry_quarantine"] = retry
        count = 0

        def query(sql: str) -> Rows:
            nonlocal count
            writes = sql.strip().startswith(("alter", "merge", "insert", "create or replace"))
            count += writes and "reconcile_columns_seen" not in sql
            if lives is not None and count > lives:
                raise KilledError(sql)
            return self.warehouse.query(sql)

        self.project.begin("run", ["things"], full_refresh=full_refresh)
        self.project.context["run_query"] = query
        try:
            return self.project.materialize(self.project.node("things"))
        finally:
            self.project.context["run_query"] = self.warehouse.query

    def rows(self) -> list[tuple[Any, ...]]:
        names = ", ".join(BEFORE)
        return sorted(map(tuple, self.warehouse.sql(f"select {names} from {self.schema}.things").collect()))

    def base(self) -> list[str]:
        """Return the rows of the base table, but for the ids of records, which are new in each shop."""
        rows = self.warehouse.table(f"{self.schema}.things__base").drop("_change_id").collect()
        return sorted(map(str, rows))

    def kept(self) -> list[str]:
        """Return the base table without ids, and without the hashes of its order.

        A table that goes on keeps the hashes of former types.
        """
        found = self.warehouse.table(f"{self.schema}.things__base").drop("_change_id", "_change_sequence")
        return sorted(map(str, found.select(*sorted(found.columns)).collect()))

    def quarantined(self) -> int:
        return self.warehouse.table(f"{self.schema}.things__quarantine").count()

    def version(self) -> int:
        """Return the version of the base table, of Delta."""
        return int(self.warehouse.sql(f"describe history {self.schema}.things__base limit 1").first().version)

    def findings(self) -> list[Any]:
        return self.warehouse.sql(self.project.test("ledger_balances", "things")).collect()


FITTING = [(1, "uno", 111), (3, "three", 3), (5, "five", 5)]


def test_a_retry_that_is_killed_is_ended_and_a_restored_table_is_brought_back(spark: SparkSession) -> None:
    """The base table is then that of a rebuild, and so it is once a wider type has read the rest."""
    shop = Shop(spark, "retried")
    shop.run(BEFORE)
    assert (shop.rows(), shop.quarantined()) == ([(1, "uno", 111)], 6)
    with pytest.raises(KilledError, match=r"^\s*merge into"):  # what fits has left the quarantine
        shop.run(LONGER, retry=True, lives=3)
    assert (shop.rows(), shop.quarantined()) == ([(1, "uno", 111)], 2)
    with pytest.raises(CompilerError, match="built with other columns"):
        shop.run(BEFORE)
    assert shop.run(LONGER) == "REPLAY batches 1-3: 2 of 10 applied, 2 quarantined; quarantine retried from batch 1 on"
    assert (shop.rows(), shop.quarantined(), shop.findings()) == (FITTING, 2, [])
    assert shop.run(LONGER) == "nothing new"
    before = shop.base()
    if file_format() == "delta":
        shop.warehouse.query("restore table retried.things__base to version as of 0")
        assert shop.run(LONGER, retry=True).endswith("; quarantine retried from batch 1 on")
        assert (shop.base(), shop.findings()) == (before, [])
    else:  # Iceberg sets back no properties, so the table would still say that it has what the retry brought
        first, *_, last = versions(spark, "retried.things__base")
        restore(spark, "retried.things__base", first)
        with pytest.raises(CompilerError, match="was set back to before"):
            shop.run(LONGER, retry=True)
        restore(spark, "retried.things__base", last)
        assert shop.base() == before
    narrow = shop.version() if file_format() == "delta" else 0
    assert shop.run(WIDER, retry=True).endswith("; quarantine retried with all records in staging")
    wide = (sorted([*FITTING, (4, "abc", BIG)]), 1, [])
    assert (shop.rows(), shop.quarantined(), shop.findings()) == wide
    if file_format() == "delta":  # it goes on with the wider type, and what only that reads is in no quarantine
        shop.warehouse.query(f"restore table retried.things__base to version as of {narrow}")
        (row,) = shop.findings()  # what this test has cached reads the narrow type
        assert row.finding == "the base table has a different number of rows than after this range"
        shop.deliver(4, (7, "seven", 7))
        assert shop.run(WIDER).endswith("; quarantine retried from batch 1 on")
        assert (shop.rows(), shop.findings()) == (sorted([*wide[0], (7, "seven", 7)]), [])
    kept = shop.kept()
    shop.run(WIDER, full_refresh=True)
    assert shop.kept() == kept
    before = shop.base()
    applied = 9 if file_format() == "delta" else 8
    with pytest.raises(CompilerError, match=f"{applied} records that were applied would be quarantined"):
        shop.run({**WIDER, "name": "varchar(2)"}, retry=True)
    assert shop.base() == before


@pytest.mark.soak
@pytest.mark.parametrize("materialized", ["current_state", "history"])
@pytest.mark.parametrize("columns", [LONGER, WIDER, OTHER], ids=["longer", "wider", "reads all"])
def test_a_retry_may_be_killed_before_each_statement(
    spark: SparkSession, materialized: str, columns: dict[str, str]
) -> None:
    expected = None
    for lives in range(12):
        shop = Shop(spark, f"killed_{materialized}_{len(columns)}_{columns['size']}_{lives}", materialized)
        shop.run(BEFORE)
        try:
            shop.run(columns, retry=True, lives=lives)
        except KilledError:
            killed = True
        else:
            killed = False
        try:
            shop.run(columns)
            taken = shop.quarantined() > 2  # the run has taken the declaration, and retried nothing
        except CompilerError as refused:
            assert "built with other columns" in str(refused)
            taken = True
        if taken:
            shop.run(columns, retry=True)
        assert shop.findings() == []
        rows = shop.kept()
        if expected is None:
            shop.run(columns, full_refresh=True)
            expected = shop.kept()
        assert rows == expected, lives
        if not killed:
            break
    assert lives > 3 and not killed
