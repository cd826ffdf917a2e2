"""generate.py --columns: lines of new columns in YAML that is there, and nothing else; types in no order of batches."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml
from generated import STAGING, change, generated, observed, planned, texts
from reconcile_jobs.generation.avro_types import Header
from reconcile_jobs.generation.declarations import Declaration
from reconcile_jobs.generation.escaping import unrendered
from reconcile_jobs.generation.names import Pattern
from reconcile_jobs.generation.observations import Place
from reconcile_jobs.generation.plan import Plan, Settings, plan_of
from reconcile_jobs.generation.project import Project
from reconcile_jobs.generation.tables import Answer, tables_of
from reconcile_jobs.generation.witnesses import Witness, of_headers

RAISE = "{{ exceptions.raise_compiler_error('evaluated') }}"
ODD = ["a'b\"c`d", RAISE, "{% raw %}", "李雷 Ö", "</script>", "- x: y # z", "null"]
LATER: dict[str, Any] = {"id": 1, "status": "new", "note": None, "paid_at": "2026-11-21T10:00:00Z", "size": 3}
FIRST = [change(), change("lines", key=[])]
MARK = "config: {meta: {added: true}}"


def added(into: Path, records: list[Any], **options: Any) -> Plan:
    return planned(into, records, only_columns=True, **options)


def lines_added(into: Path, plan: Plan) -> dict[str, list[str]]:
    """Return the lines that each file gets, after seeing that it loses no byte."""
    found = {}
    for path, text in plan.files.items():
        assert text is not None
        before = path.read_text(encoding="utf-8")
        assert text.startswith(before), "new columns come last, and all else stays"
        found[path.name] = text[len(before) :].splitlines()
    return found


def test_only_lines_of_new_columns_are_added_and_each_is_said(tmp_path: Path) -> None:
    generated(tmp_path, FIRST)
    news = [*FIRST, change(payload=LATER), change("unknown"), change("lines", {"line": 1, "id": 2}, [])]
    plan = added(tmp_path, news)
    untold = "# the source has not told the type"
    assert lines_added(tmp_path, plan) == {
        "orders.yml": [
            line
            for name in ("note", "paid_at", "size")
            for line in (
                f"      - name: {name}",
                f"        data_type: string  {untold}",
                f"        {MARK}",
            )
        ]
    }
    assert plan.added == ["orders: 3 columns added: note string, paid_at string, size string"]
    assert (plan.written, plan.models_with_new_columns, plan.columns_added) == (["orders"], ["orders"], 3)
    assert plan.summary_of_columns() == "3 columns added to 1 model, 0 unchanged"
    assert plan.summary_of_columns(will=True) == "3 columns would be added to 1 model, 0 unchanged"
    assert (plan.refusals, plan.misfits, plan.news) == ([], [], ["orders has no column note, paid_at, size"])
    before = (tmp_path / "_not_generated.md").read_bytes()
    for path, text in plan.files.items():
        path.write_text(text or "")
    again = added(tmp_path, news)
    assert (again.files, again.added, again.unchanged) == ({}, [], ["orders"])
    assert again.summary_of_columns() == "0 columns added to 0 models, 1 unchanged"
    assert (tmp_path / "_not_generated.md").read_bytes() == before and "unknown" not in str(texts(tmp_path))


def test_a_new_column_of_a_model_that_is_there_is_marked_and_those_of_a_new_model_are_not(tmp_path: Path) -> None:
    """The model may be built: then its next run fills the column. Without --columns too."""
    generated(tmp_path, FIRST)
    assert "added" not in str(texts(tmp_path))
    news = [*FIRST, change(payload={**LATER, "doc": {"a": 1}}), change("new", {"id": 1}, ["id"])]
    generated(tmp_path, news)
    assert (tmp_path / "orders.yml").read_text().count(MARK) == 3
    assert (tmp_path / "orders.yml").read_text().count("config: {meta: {encoding: json, added: true}}") == 1
    assert "added" not in (tmp_path / "new.yml").read_text()


def test_the_order_and_the_parts_of_batches_make_no_difference(tmp_path: Path) -> None:
    """A value that is a whole number in one batch may be a text in the next; a run comes after each, or after all."""
    generated(tmp_path, FIRST)
    values: list[Any] = [None, 1, "one", {"a": 1}, True]
    whole: set[str] = set()
    for some in itertools.permutations(values, 2):
        plan = added(tmp_path, [*FIRST, *(change(payload={"id": 1, "status": "x", "free": value}) for value in some)])
        whole |= {text or "" for text in plan.files.values()}
    for value in values:
        plan = added(tmp_path, [*FIRST, change(payload={"id": 1, "status": "x", "free": value})])
        whole |= {text or "" for text in plan.files.values()}
    assert len(whole) == 1


def test_the_types_are_those_that_the_source_tells(tmp_path: Path) -> None:
    generated(tmp_path, FIRST)
    place = Place(None, "shop", "orders")
    header = Header(
        place,
        {
            "note": Declaration("string", "json", "Avro: json"),
            "paid_at": Declaration("timestamp", witness="Avro: timestamp-micros"),
            "size": Declaration("bigint", witness="Avro: long"),
        },
    )
    plan = added(tmp_path, [change(payload=LATER)], headers=[header])
    assert plan.added == ["orders: 3 columns added: note string, paid_at timestamp, size bigint"]
    # A value that is none of the type: a string, and not what the values of this batch would fit.
    plan = added(tmp_path, [change(payload=LATER | {"size": 2.5})], headers=[header])
    assert plan.added == ["orders: 3 columns added: note string, paid_at timestamp, size string"]

    known = Witness({"size": Declaration("smallint", witness="MySQL: smallint")}, {"size": RAISE}, ("id",))
    tables, refusals = tables_of(observed([change(payload=LATER)]), [{place: known}, of_headers([header])])
    plan = plan_of(Project(tmp_path), tables, refusals, Settings(STAGING, Pattern("{table}"), only_columns=True))
    assert plan.added == ["orders: 3 columns added: note string, paid_at timestamp, size smallint"]
    (text,) = plan.files.values()
    (column,) = (c for c in yaml.safe_load(text or "")["models"][0]["columns"] if c["name"] == "size")
    assert unrendered(column["description"]) == RAISE


def test_what_a_person_said_of_bytes_counts_and_without_it_the_column_is_left_out(tmp_path: Path) -> None:
    postgresql = {"lsn": "0/1"}
    generated(tmp_path, [change(**postgresql)])
    photo = Header(Place(None, "shop", "orders"), {"photo": Declaration("binary", witness="Avro: bytes")})
    news = [change(payload={"id": 1, "status": "x", "photo": "AAAA"}, **postgresql)]
    plan = added(tmp_path, news, headers=[photo])
    assert plan.files == {} and "orders: photo has bytes, which arrive as text" in plan.misfits[0]
    plan = added(tmp_path, news, headers=[photo], answers={"shop.orders": Answer(encodings={"photo": "base64"})})
    assert plan.added == ["orders: 1 column added: photo binary"]
    assert "encoding: base64" in str(plan.files)


def test_a_model_without_yaml_gets_none(tmp_path: Path) -> None:
    generated(tmp_path, FIRST)
    (tmp_path / "orders.yml").unlink()
    plan = added(tmp_path, [change(payload=LATER)])
    assert plan.files == {}
    assert plan.misfits == ["orders has no YAML that columns could be added to; run this without --columns."]


def test_a_model_written_by_hand_of_a_table_without_a_key_gets_its_columns(tmp_path: Path) -> None:
    (tmp_path / "all_lines.sql").write_text(
        "{{ config(materialized='current_state', unique_key='_change_id') }}\n"
        "{{ reconcile.datastream_mysql(source('lake', 'shop_changes'), table='shop.lines') }}\n"
    )
    (tmp_path / "all_lines.yml").write_text("models:\n- name: all_lines\n  columns:\n  - {name: line}\n")
    plan = added(tmp_path, [change("lines", {"line": 1, "x": 2}, [])])
    assert plan.added == ["all_lines: 1 column added: x string"]


@pytest.mark.parametrize("name", ODD)
def test_names_of_columns_are_added_as_they_are(tmp_path: Path, name: str) -> None:
    generated(tmp_path, FIRST)
    plan = added(tmp_path, [*FIRST, change(payload={"id": 1, "status": "x", name: "y", "a\nb": 1})])
    (text,) = plan.files.values()
    columns = yaml.safe_load(text or "")["models"][0]["columns"]
    assert [unrendered(column["name"]) for column in columns] == ["id", "status", name]
    assert len((text or "").splitlines()) == (text or "").count("\n")
