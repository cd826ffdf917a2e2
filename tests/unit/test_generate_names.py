"""Names of tables and columns, whatever they hold: files, YAML and Jinja say these very names, and no others."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import yaml
from generated import change, generated, observed, planned, texts
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment
from reconcile_jobs.generation.escaping import (
    commented,
    in_cell,
    jinja_literal,
    unrendered,
    yaml_value,
)
from reconcile_jobs.generation.names import Pattern, safe_name
from reconcile_jobs.generation.project import Project
from reconcile_jobs.generation.tables import is_undeclarable
from reconcile_jobs.process.errors import UsageError

DROP = "'; drop table lake.canary; --"
RAISE = "{{ exceptions.raise_compiler_error('evaluated') }}"
ODD = [
    "a`b\"c'd e.f;g,h=i(j){k}\tl\\m/n%s$o?p:q--r/*s", "``", " a", "a ", "a\\'b", "*", "&x", "!t", "- a", "? a", "\\E.*",
    "ÄÖ 李雷 🦆",
    "李雷", "顧客", "a" * 200, "0", "select", "null", "Yes", "no", "on", "~", "1e3", "2026-11-21",
    "%(a)s", "{% raw %}", "{# #}", "}}", RAISE, DROP, "a\nb", "a\r\nb", "a\u2028b\u0085c\u00a0d", "\ufeffa", "# a",
    "a # b", "a: b", "a:", "[a", "{a", "a|b", ">", "con", "aux", "..", "/", "orders__base",
    "orders__row_deletes", "Orders__Range_Deletes", "é",
    "e\u0301", "null\u200b",
]  # fmt: skip
# What is appended to the names of models.
RELATIONS = Path(__file__).parents[2] / "macros" / "model" / "model_relations.sql"
OF_THE_PACKAGE = tuple(re.findall(r"this\.identifier ~ '(\w+)'", RELATIONS.read_text()))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(ODD)


@given(TEXTS)
def test_a_literal_of_jinja_is_the_text(text: str) -> None:
    literal = jinja_literal(text)
    assert Environment(keep_trailing_newline=True).from_string(f"{{{{ {literal} }}}}").render() == text
    assert not re.search(r"\{\{|\{%|\{#|\}\}|%\}|#\}|[\n\r]", literal), "nor does dbt see a block in it"


@given(TEXTS)
def test_a_value_of_yaml_is_the_text_in_one_line(text: str) -> None:
    value = yaml_value(text)
    for document in (f"a: {value}  # c\n", f"a: {value}\nb: 1\n", f"- {value}\n- b\n"):
        read = yaml.safe_load(document)
        found = read["a"] if isinstance(read, dict) else read[0]
        assert isinstance(found, str) and unrendered(found) == text
        assert len(document.splitlines()) == document.count("\n")


@pytest.mark.parametrize("text", ["{# gone #}", "a {# b #} c", "{#", "#}", "{{ x }}", "{% raw %}", "}}", "%}"])
def test_a_value_of_yaml_with_a_block_of_jinja_is_the_text_once_jinja_has_rendered_it(text: str) -> None:
    """As dbt does it, by Jinja itself: it would leave out a comment without a word."""
    assert Environment().from_string(yaml.safe_load(yaml_value(text))).render() == text


@given(TEXTS)
def test_a_comment_has_one_line_and_a_cell_no_block_of_jinja(text: str) -> None:
    assert yaml.safe_load(f"a: 1  # {commented(text)}\nb: 2\n") == {"a": 1, "b": 2}
    cell = in_cell(text)
    assert not re.search(r"\{[{%#]", cell) and len(cell.splitlines()) <= 1
    assert "|" not in cell.replace("\\|", "")


@given(TEXTS.filter(bool))
def test_a_models_name_is_safe_everywhere(text: str) -> None:
    name = safe_name(text)
    assert re.fullmatch(r"[a-z_][a-z0-9_]{0,120}", name) and re.search(r"[a-z]", name)
    assert name not in ("con", "aux", "nul", "prn") and not name.endswith(OF_THE_PACKAGE)
    assert safe_name(text) == name


@pytest.mark.parametrize("ending", OF_THE_PACKAGE)
def test_a_models_name_is_none_of_the_packages_own_relations_of_another_model(ending: str) -> None:
    assert safe_name(f"Orders{ending}") == f"orders{ending}_"
    assert {"__base", "__row_deletes"} <= {*OF_THE_PACKAGE}, "they are read from the macro"


@pytest.mark.parametrize("device", ["con", "PRN", "aux", "nul", "com0", "com9", "lpt0", "lpt1", "LPT9"])
def test_a_models_name_is_no_device_of_windows(device: str) -> None:
    assert safe_name(device) == f"{device.lower()}_"
    assert safe_name(f"{device}x") == f"{device.lower()}x"


def test_a_long_name_is_cut_and_ends_in_a_part_of_its_hash() -> None:
    assert safe_name("a" * 90) == "a" * 90
    assert re.fullmatch("a{90}_[0-9a-f]{8}", safe_name("a" * 91))
    assert safe_name("a" * 91) != safe_name("a" * 92)


def test_names_that_have_no_letters_of_ascii_are_told_apart() -> None:
    assert safe_name("李雷") != safe_name("顧客")
    assert (safe_name("Orders"), safe_name("SHOP_ORDERS"), safe_name("Größe"), safe_name("9a")) == (
        "orders", "shop_orders", "grosse", "t_9a",
    )  # fmt: skip


def _project(tmp_path: Path, tables: dict[str, list[str]], **options: Any) -> tuple[Path, Any]:
    records = []
    for number, (table, columns) in enumerate(tables.items()):
        payload = {name: f"{number} of {name}" for name in columns}
        records.append(change(table, payload, columns[:2], object=f"o{number}"))
    into = tmp_path / "models"
    return into, (records, generated(into, records, **options))


def _distinct(names: list[str]) -> list[str]:
    """Return names that Spark, which ignores case, tells apart."""
    return [*{name.lower(): name for name in names}.values()]


def test_columns_and_keys_of_any_name_are_declared(tmp_path: Path) -> None:
    columns = [name for name in _distinct(ODD) if not is_undeclarable(name)]
    into, (records, plan) = _project(tmp_path, {"orders": columns})
    assert plan.written == ["orders"] and plan.misfits == []
    (entry,) = yaml.safe_load((into / "orders.yml").read_text(encoding="utf-8"))["models"]
    assert [unrendered(column["name"]) for column in entry["columns"]] == columns
    (test,) = (test for test in entry["data_tests"] if isinstance(test, dict))
    key = test["reconcile.one_payload_per_sequence"]["arguments"]["key"]
    assert [unrendered(name) for name in key] == columns[:2]
    model = Project(into).models["orders"]
    assert model.unique_key == columns[:2]
    assert planned(into, records).files == {}


def test_tables_of_any_name_have_files_of_safe_names_that_differ(tmp_path: Path) -> None:
    columns = ["id", "b"]
    into, (records, plan) = _project(tmp_path, dict.fromkeys(ODD, columns))
    files = [*texts(into)]
    assert len({name.casefold() for name in files}) == len(files)
    assert all(re.fullmatch(r"[a-z0-9_]+\.(sql|yml|md)", name) for name in files)
    called = {call.tables[0][2] for model in Project(into).models.values() for call in model.calls}
    refused = {refusal.label for refusal in plan.refusals}
    assert len(called) + len(refused) == len(ODD) and called <= {*ODD} and called >= {RAISE, DROP, "李雷", "con"}
    assert {refusal.reason for refusal in plan.refusals} == {"two tables of one name"}
    assert "two tables of one name" in (into / "_not_generated.md").read_text()
    assert generated(into, records).files == {}


def test_a_name_with_a_dot_is_a_mapping(tmp_path: Path) -> None:
    into, _ = _project(tmp_path, {"or.ders": ["id"]})
    assert (into / "or_ders.sql").read_text().splitlines()[1] == (
        "{{ reconcile.datastream_mysql(source('lake', 'shop_changes'), table={'schema': 'shop', 'table': 'or.ders'}) }}"
    )


def test_names_equal_but_for_case_are_two_tables_of_one_name_until_the_pattern_tells_them_apart(tmp_path: Path) -> None:
    records = [change("orders"), change("Orders"), change("orders", schema="crm"), change("lines")]
    into = tmp_path / "models"
    plan = generated(into, records)
    assert plan.written == ["lines"]
    assert [refusal.label for refusal in plan.refusals] == ["crm.orders", "shop.Orders", "shop.orders"]
    assert plan.summary("m.md") == (
        "1 model written, 0 unchanged, 3 not written: two tables of one name (3); see m.md"
    )  # fmt: skip
    plan = generated(into, records, name="{schema}_{table}")
    assert plan.written == ["crm_orders"] and plan.unchanged == ["lines"]
    assert [refusal.label for refusal in plan.refusals] == ["shop.Orders", "shop.orders"]
    # By hand, the person chooses the name.
    (into / "shop_capitals.sql").write_text(
        "{{ config(materialized='current_state', unique_key='id') }}\n"
        "{{ reconcile.datastream_mysql(source('lake', 'shop_changes'), table='shop.Orders') }}\n"
    )
    plan = generated(into, records, name="{schema}_{table}")
    assert plan.written == ["shop_capitals", "shop_orders"] and plan.refusals == []
    assert not (into / "_not_generated.md").exists()
    assert "shop_capitals" in (into / "shop_capitals.yml").read_text()


def test_a_name_that_a_model_elsewhere_in_the_project_has_is_taken(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: shop\n")
    (tmp_path / "models" / "marts").mkdir(parents=True)
    (tmp_path / "models" / "marts" / "Orders.sql").write_text("select 1")
    plan = generated(tmp_path / "models" / "shop", [change(), change("reconcile_ledger")])
    assert [(refusal.label, refusal.reason) for refusal in plan.refusals] == [
        ("shop.orders", "two tables of one name"), ("shop.reconcile_ledger", "name of the package"),
    ]  # fmt: skip
    assert "Orders.sql has the name orders already" in plan.refusals[0].advice


def test_a_folder_for_each_schema(tmp_path: Path) -> None:
    into = tmp_path / "models"
    records = [change(), change(schema="../crm")]
    generated(into, records, name="{schema}/{schema}_{table}", tags=("a'b", "c"))
    assert {*texts(into)} >= {"shop/shop_orders.sql", "___crm/___crm_orders.yml"}
    assert "tags=['a\\'b', 'c']" in (into / "shop" / "shop_orders.sql").read_text()
    assert planned(into, records).files == {}


@pytest.mark.parametrize("text", ["orders", "{tabel}", "{table!r}", "{table:>9}", "{", "{table.schema}", "{}"])
def test_a_pattern_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--name .* is no pattern of names: write \{table\}"):
        Pattern(text)


def test_the_names_of_this_page_are_odd_in_every_way() -> None:
    categories = {unicodedata.category(character)[0] for name in ODD for character in name}
    assert categories >= {"C", "L", "M", "N", "P", "S", "Z"}
    found = observed([change(name, {name: 1}, [name]) for name in ODD])
    assert json.dumps(sorted(place.table for place in found.tables)) == json.dumps(sorted(ODD))
