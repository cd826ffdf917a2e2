"""The variable only_new_records: what a run leaves as it is, and what it does not leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from plain_dbt import CompilerError
from shapes import SHAPES, Life

LEFT = "no new records, left as it is"
# Of a table each: the sources, both materializations, formats and catalogs.
KINDS = (
    "oracle", "oracle_fresh", "mysql_composite_key", "mysql_history", "postgresql", "sqlserver", "append_table",
    "snapshots", "spanner", "bigtable", "iceberg_mysql", "models_in_a_catalog",
)  # fmt: skip


def built(name: str) -> Life:
    """Return a model that has applied all that staging has, and whose run asks for new records alone."""
    life = Life(SHAPES[name])
    life.statements("first run")
    life._nothing_new()
    life.warehouse.last_appended_at = 1_767_225_600_000_000
    life.project.variables["only_new_records"] = True
    return life


def run(life: Life, **flags: Any) -> tuple[list[str], str]:
    """Return what the model sends once the run has begun, and what dbt prints or the sentence of a refusal."""
    try:
        life.project.begin("run", ["orders"], **flags)
        life.warehouse.statements.clear()
        said = life.project.materialize(life.project.node("orders"))
    except CompilerError as error:
        said = str(error)
    return life.warehouse.statements, said


@pytest.mark.parametrize("name", KINDS)
def test_a_model_without_new_records_sends_nothing(name: str) -> None:
    assert run(built(name)) == ([], LEFT)


def test_the_start_of_the_run_asks_no_base_table() -> None:
    life = built("mysql_composite_key")
    life.warehouse.statements.clear()
    life.project.begin("run", ["orders"])
    assert not [sql for sql in life.warehouse.statements if "orders__base" in sql]


# --- what is not left ------------------------------------------------------------------------------------------------


def new_records(life: Life) -> None:
    life._increment()


def set_back(life: Life) -> None:
    """Staging was restored to before the last batch of the model."""
    life.warehouse.staged = 2


def appended_anew(life: Life) -> None:
    """Staging was restored, and has another batch under the number of the last one."""
    life.warehouse.appended_at[3] = 1_767_225_600_000_001


def gone(life: Life) -> None:
    """Staging has no record of the last batch any more, and nothing was purged."""
    life.warehouse.appended_at[3] = None


def purged_through(life: Life, batch: int) -> None:
    object = life.shape.object
    life.warehouse.purges = {object: batch}
    property = life.project.macros._purge_property(object).strip()
    life.warehouse.properties.setdefault("lake.shop_changes", {})[property] = str(batch)


def purged(life: Life) -> None:
    """A batch was purged that the model has not applied."""
    life.warehouse.staged = 5
    purged_through(life, 5)


def gone_after_a_purge(life: Life) -> None:
    """The last batch is gone, and what was purged are those before it."""
    purged_through(life, 2)
    gone(life)


def without_relation(kind: str) -> Callable[[Life], None]:
    def drop(life: Life) -> None:
        life.warehouse.relations.pop(f"demo.orders{kind}")

    return drop


def without_account(life: Life) -> None:
    """The ledger was lost."""
    life.warehouse.ledger = (0, 0)


TROUBLES = {
    "new records": new_records, "staging set back": set_back, "another batch of the same number": appended_anew,
    "the last batch gone": gone, "purged too early": purged,
    "the last batch gone, that before it purged": gone_after_a_purge, "no account": without_account,
    "no base table": without_relation("__base"), "no quarantine": without_relation("__quarantine"),
    "no view": without_relation(""), "no view of changes": without_relation("__changes"),
}  # fmt: skip


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_model_in_trouble_does_and_says_the_same_as_without_the_variable(trouble: str) -> None:
    runs = []
    for asked in (True, False):
        life = built("mysql_composite_key")
        life.project.variables["only_new_records"] = asked
        TROUBLES[trouble](life)
        statements, said = run(life)
        runs.append((sorted(sql for sql in statements if "as seconds" not in sql), said.split(" in ")[0]))
    assert runs[0] == runs[1]
    assert runs[0][1] != LEFT


def test_a_new_snapshot_beside_the_log_is_applied() -> None:
    assert "repaired at pg_snapshot" in run(built("postgresql_beside_a_snapshot"))[1]


def test_a_snapshot_beside_the_log_that_was_applied_is_no_new_one() -> None:
    life = built("postgresql_beside_a_snapshot")
    batch = life.warehouse.staged
    life.warehouse.ledger, life.warehouse.base_batch = (batch, batch), batch
    assert run(life) == ([], LEFT)


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_model_of_which_all_batches_were_purged_is_left_whether_or_not_records_of_others_have_the_last_one(
    is_gone: bool,
) -> None:
    life = built("mysql_composite_key")
    purged_through(life, 3)
    if is_gone:
        life.warehouse.appended_at[3] = None
    assert run(life) == ([], LEFT)


def test_a_model_is_not_left_that_lacks_its_table_of_deletes_without_a_key() -> None:
    life = built("oracle")
    life.warehouse.ledger_deletes = life.warehouse.deletes_batch = 3
    life.warehouse.has("demo.orders__row_deletes")
    assert run(life) == ([], LEFT)
    del life.warehouse.relations["demo.orders__row_deletes"]
    assert run(life)[1] != LEFT


def test_a_model_whose_config_says_full_refresh_is_made_anew_by_every_run() -> None:
    for said, is_left in ((None, True), (False, True), (True, False)):
        life = built("mysql_composite_key")
        life.project.node("orders")["config"]["full_refresh"] = said
        assert (run(life)[1] == LEFT) is is_left


@pytest.mark.parametrize("flags", [{"full_refresh": True}, {"empty": True}])
def test_a_run_that_makes_a_model_anew_leaves_none(flags: dict[str, bool]) -> None:
    assert run(built("mysql_composite_key"), **flags)[1] != LEFT


def test_without_the_variable_nothing_is_left() -> None:
    life = built("mysql_composite_key")
    life.project.variables.pop("only_new_records")
    statements, said = run(life)
    assert said == "nothing new" and statements
