"""generate.py --snapshot: the test of parity in the YAML of a new model, where a source declares its snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from generated import change, generated, planned
from jinja2 import Environment
from reconcile_jobs.generation.names import SnapshotPattern
from reconcile_jobs.generation.streams import SPANNER
from reconcile_jobs.process.errors import UsageError
from spanner import data_change_record, mod

ODD = 'it\'s "q" </script> 李\n{x} # \\'


def parity(into: Path, model: str = "orders") -> Any:
    """Return the arguments of the model's test of parity, None if it has none."""
    (entry,) = yaml.safe_load((into / f"{model}.yml").read_text(encoding="utf-8"))["models"]
    tests = [test["reconcile.parity"]["arguments"] for test in entry["data_tests"] if "reconcile.parity" in test]
    return tests[0] if tests else None


def declared(into: Path, *tables: str, name: str = "lake", **more: str) -> None:
    into.mkdir(parents=True, exist_ok=True)
    source = {"name": name, **more, "tables": [{"name": table} for table in tables]}
    (into / "snapshots.yml").write_text(yaml.safe_dump({"sources": [source]}))


def compared(said: str) -> tuple[str, ...]:
    """Return the names that dbt gets from a call of source(...) in an argument, which it renders."""
    found: list[tuple[str, ...]] = []
    Environment().from_string(f"{{{{ {said} }}}}").render(source=lambda *names: found.append(names) or "")
    return found[0]


def test_a_new_model_whose_snapshot_is_declared_has_the_test(tmp_path: Path) -> None:
    declared(tmp_path, "orders_source")
    pattern = SnapshotPattern("lake.{table}_source")
    records = [change(key=["status", "id"]), change("lines"), change("log", key=[])]
    plan = generated(tmp_path, records, snapshot=pattern)
    assert plan.written == ["lines", "orders"] and parity(tmp_path, "lines") is None
    assert parity(tmp_path) == {"compare_to": "source('lake', 'orders_source')", "key": ["status", "id"]}
    assert planned(tmp_path, records, snapshot=pattern).files == {}
    declared(tmp_path, "orders_source", "lines_source")
    assert planned(tmp_path, records, snapshot=pattern).files == {}, "YAML that is there gets columns, and no tests"
    (tmp_path / "lines.yml").unlink()
    generated(tmp_path, records, snapshot=pattern)
    assert parity(tmp_path, "lines") == {"compare_to": "source('lake', 'lines_source')", "key": "id"}


def test_the_names_are_those_by_which_models_call_the_source(tmp_path: Path) -> None:
    # dbt renders names in YAML: this one is `{{ x }}`, which is not to be rendered again.
    table = {"name": "{{ '{{ x }}' }}", "identifier": "Shop_Orders"}
    (tmp_path / "snapshots.yml").write_text(
        yaml.safe_dump({"sources": [{"name": ODD, "schema": "Lake", "tables": [table]}]})
    )
    generated(tmp_path, [change()], snapshot=SnapshotPattern("lake.{schema}_{table}"))
    said = parity(tmp_path)["compare_to"]
    assert compared(said) == (ODD, "{{ x }}")
    assert "{{" not in said and "\n" not in said and said.startswith("source('")


def test_where_nothing_can_be_compared_there_is_no_test(tmp_path: Path) -> None:
    declared(tmp_path, "orders_source")
    (tmp_path / "orders.sql").write_text(
        "{{ config(materialized='history', unique_key='id') }}\n"
        "{{ reconcile.datastream_mysql(source('lake', 'shop_changes'), table='shop.orders') }}\n"
    )
    pattern = SnapshotPattern("lake.{table}_source")
    generated(tmp_path, [change()], snapshot=pattern)
    assert parity(tmp_path) is None and "history_is_sound" in (tmp_path / "orders.yml").read_text()
    other = tmp_path / "events"
    declared(other, "orders_source")
    (other / "orders.sql").write_text(
        "{{ config(materialized='current_state', unique_key='_change_id') }}\n"
        "{{ reconcile.datastream_mysql(source('lake', 'shop_changes'), table='shop.orders') }}\n"
    )
    generated(other, [change()], snapshot=pattern)
    assert "parity" not in (other / "orders.yml").read_text()


def test_spanner_without_a_schema(tmp_path: Path) -> None:
    declared(tmp_path, "orders_source")
    key = [{"name": "Id", "type": {"code": "INT64"}, "is_primary_key": True, "ordinal_position": 1}]
    record = data_change_record([mod({"Id": "1"})], table_name="Orders", column_types=key)
    generated(tmp_path, [record], stream=SPANNER, snapshot=SnapshotPattern("lake.{schema}_{table}_source"))
    assert parity(tmp_path) == {"compare_to": "source('lake', 'orders_source')", "key": "Id"}


@pytest.mark.parametrize("text", ["{table}", "lake.orders", "a.b.{table}", ".{table}", "{table}.", "lake.{tabel}", "{"])
def test_a_pattern_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--snapshot .* is no pattern of tables: write schema and table"):
        SnapshotPattern(text)
