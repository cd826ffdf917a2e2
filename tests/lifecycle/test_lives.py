"""dbt on real tables does what the rules were proven of in memory: the same statements, and the very same rows.

All models live in one project, through the phases of their lives; tests/fold proves the rules themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from file_formats import file_format
from lives import CASES, MORE_CASES, PHASES, Lives
from memory import Memory
from pyspark.sql import SparkSession

PROJECTS = [
    pytest.param(("lives", CASES), id="each-kind"),
    pytest.param(("more_lives", MORE_CASES), id="two-kinds-at-once", marks=pytest.mark.matrix),
]


@pytest.fixture(scope="module", params=PROJECTS)
def lives(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lives]:
    with Memory(spark) as memory:
        yield Lives(spark, tmp_path_factory.mktemp("lives"), memory, *request.param)


def merged(lives: Lives) -> list[str]:
    return [name for name, case in lives.cases.items() if "__base" in case.parts]


@pytest.mark.parametrize("phase", PHASES)
def test_a_merge_leaves_the_very_rows_that_the_fold_level_computes(lives: Lives, phase: str) -> None:
    """Law 1 on real tables: rows, versions, quarantine, keyless deletes and ledger, model by model."""
    by_dbt, in_memory = lives.after(phase).states[phase]
    assert by_dbt.keys() == in_memory.keys()
    different = [table for table in by_dbt if by_dbt[table] != in_memory[table]]
    assert not different, {table: _difference(by_dbt[table], in_memory[table]) for table in different}
    shown = [name for name in merged(lives) if name in by_dbt]
    assert shown and all(by_dbt[name] and by_dbt[f"{name}__base"] for name in shown), "no rows prove nothing"


def _difference(one: list[str], other: list[str]) -> str:
    return f"only by dbt {sorted(set(one) - set(other))[:2]}, only in memory {sorted(set(other) - set(one))[:2]}"


@pytest.mark.skipif(file_format() != "delta", reason="memory stands in for Delta, whose statements are the plain ones")
@pytest.mark.parametrize("phase", PHASES)
def test_dbt_issues_the_statements_that_plain_jinja_renders(lives: Lives, phase: str) -> None:
    by_dbt, in_memory = lives.after(phase).statements[phase]
    for name in lives.cases:
        assert by_dbt[name] == in_memory[name], name


def test_nothing_new_writes_nothing(lives: Lives) -> None:
    assert lives.after("nothing new").commits["nothing new"] == lives.commits["increment"]
    assert lives.states["nothing new"] == lives.states["increment"]


def test_a_run_for_new_records_alone_leaves_every_other_model(lives: Lives) -> None:
    """And it sees on real tables that theirs are there."""
    said = lives.after("left as they are").said["left as they are"]
    assert {name: said[name] for name in merged(lives)} == dict.fromkeys(merged(lives), "no new records, left as it is")
    assert not [name for name in merged(lives) if lives.statements["left as they are"][0][name]]
    assert lives.commits["left as they are"] == lives.commits["increment"]


def test_a_restored_base_table_mends_itself_and_records_that_come_again_change_nothing(lives: Lives) -> None:
    """Law 2: the base tables were set back to the first run, and every record was delivered once more."""
    before, after = lives.after("restored").states["increment"][0], lives.states["restored"][0]
    for name in merged(lives):
        assert after[name] == before[name], name
        assert after[f"{name}__base"] == before[f"{name}__base"], name


def test_a_full_refresh_gives_the_rows_of_the_increments(lives: Lives) -> None:
    """Law 5."""
    before, after = lives.after("full refresh").states["restored"][0], lives.states["full refresh"][0]
    assert lives.refreshed
    for name in lives.refreshed:
        assert after[name] == before[name], name
        assert after[f"{name}__base"] == before[f"{name}__base"], name


def test_data_tests_find_on_real_tables_what_they_find_in_memory(lives: Lives) -> None:
    lives.after("full refresh")
    outcome = lives.dbt.project.dbt("test", succeed=False)
    results = [result for result in outcome.result.results if result.node.resource_type == "test"]
    found = {(result.node.test_metadata.name, _model_of(result)): str(result.status) for result in results}
    expected = {
        (test, name): "fail" if test in lives.memory.project.failing_tests(name) else "pass"
        for name, case in lives.cases.items()
        for test in case.data_tests
    }
    assert found == expected
    assert "fail" in found.values(), "tests that find nothing prove nothing"


def _model_of(result: object) -> str:
    unique_id = result.node.attached_node  # type: ignore[attr-defined]
    return str(unique_id).split(".")[-1]


def test_the_relations_of_a_project_are_those_of_its_models(lives: Lives) -> None:
    lives.after("full refresh")
    assert lives.dbt.spark.catalog.tableExists(f"{lives.dbt.schema}.reconcile_unrouted")
