"""Tables that earlier versions made are gone on with: nothing is lost, and what has come since is applied."""

from __future__ import annotations

from pathlib import Path

import file_formats
import pytest
from kept_tables import KEPT, NEXT, opened
from plain_dbt import CompilerError
from pyspark.sql import SparkSession
from tables import commits

# Of each materialization one; of each source in `make matrix`.
QUICK = ("oracle_orders_past", "mysql_order_lines")
OTHERS = ("mysql_orders_past", "oracle_customers", "postgresql_orders", "sqlserver_order_lines")
SETS = [
    pytest.param(QUICK, id="two-models", marks=pytest.mark.soak),
    pytest.param(OTHERS, id="four-others", marks=pytest.mark.matrix),
]


def wants_a_rebuild(model: str) -> bool:
    """Whether what its rows follow from has changed since: the order by `lsn`, and how texts become bytes."""
    return model.startswith(("postgresql", "sqlserver")) or "order_lines" in model


@pytest.mark.parametrize("models", SETS)
@pytest.mark.parametrize("kept", sorted(KEPT.iterdir()), ids=lambda kept: kept.name)
def test_tables_of_an_earlier_version_are_gone_on_with(
    spark: SparkSession, kept: Path, models: tuple[str, ...]
) -> None:
    with opened(spark, kept, models) as tables:
        rebuilt = {name for name in models if wants_a_rebuild(name)}
        written = {name: commits(spark, f"kept.{name}__base") for name in models if name not in rebuilt}
        for name in rebuilt:
            with pytest.raises(CompilerError, match="was built with other"):
                tables.project.run(name)
            tables.project.run(name, full_refresh=True)
        tables.run()
        # Models of Oracle get the columns by which keys are followed: columns and a property, or a snapshot. And they
        # say that deletes without keys are kept.
        added = 3 if file_formats.file_format() == "delta" else 1
        written = {name: number + (added if name.startswith("oracle") else 0) for name, number in written.items()}
        assert {name: commits(spark, f"kept.{name}__base") for name in written} == written, "nothing is new"
        if "oracle_orders_past" in models:
            tables.run()
            assert {name: commits(spark, f"kept.{name}__base") for name in written} == written, "nothing is new"
        tables.deliver(NEXT)
        tables.run()
        for name in models:
            assert tables.rows(name) == tables.true_rows(name), name
            assert len(tables.true_rows(name)) > 10
            for test in ("ledger_balances", "no_quarantine"):
                assert tables.warehouse.sql(tables.project.test(test, name)).collect() == [], (test, name)
