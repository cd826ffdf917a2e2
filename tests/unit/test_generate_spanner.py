"""Models of Spanner's change streams: types and keys that the records name, in both dialects, whatever names hold."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from generated import generated, observed, planned, texts
from reconcile_jobs.generation.declarations import Declaration
from reconcile_jobs.generation.escaping import unrendered
from reconcile_jobs.generation.observations import Observations, Place
from reconcile_jobs.generation.project import Project
from reconcile_jobs.generation.spanner_records import add_data_change, of_column_types, place_of
from reconcile_jobs.generation.streams import SPANNER
from reconcile_jobs.generation.tables import Answer, tables_of
from reconcile_jobs.process.errors import UsageError
from spanner import data_change_record, mod

RAISE = "{{ exceptions.raise_compiler_error('evaluated') }}"
ODD = ["a'b\"c`d", RAISE, "{% raw %}", "李雷 Ö", "</script>", "- x: y # z", "null", "a\nb", "or.ders", ".", "a."]


def column(name: str, type_: Any, place: int, is_key: bool = False) -> dict[str, Any]:
    """Return a column as a change record describes it; a type may be its code alone."""
    described = {"code": type_} if isinstance(type_, str) else type_
    return {"name": name, "type": described, "is_primary_key": is_key, "ordinal_position": place}


def array_of(type_: Any) -> dict[str, Any]:
    return {"code": "ARRAY", "array_element_type": {"code": type_} if isinstance(type_, str) else type_}


def postgresql(code: str, annotation: str) -> dict[str, Any]:
    return {"code": code, "type_annotation": annotation}


KEY = [column("OrderId", "INT64", 1, True), column("LineNo", "INT64", 2, True)]


def lines(values: dict[str, Any], types: list[dict[str, Any]], **fields: Any) -> str:
    return data_change_record(
        [mod({"OrderId": "1", "LineNo": "2"}, values)],
        **{"table_name": "Lines", "column_types": [*KEY, *types], **fields},
    )


def test_a_model_is_as_if_written_by_hand(tmp_path: Path) -> None:
    types = [column("At", "TIMESTAMP", 4), column("Amount", "NUMERIC", 3), column("Tags", array_of("STRING"), 5)]
    record = lines({"Amount": "1.5", "At": "2026-11-21T11:33:12.5Z", "Tags": []}, types)
    plan = generated(tmp_path, [record], stream=SPANNER, tags=("shop",))
    assert (plan.written, plan.refusals, plan.misfits) == (["lines"], [], [])
    found = {name: text.decode() for name, text in texts(tmp_path).items()}
    assert found["lines.sql"] == (
        "{{ config(materialized='current_state', unique_key=['OrderId', 'LineNo'], tags=['shop']) }}\n"
        "{{ reconcile.spanner_change_stream(source('lake', 'shop_changes'), object='Lines') }}\n"
    )
    assert found["lines.yml"].partition("\n")[2] == (
        "models:\n  - name: lines\n    data_tests:\n      - reconcile.one_payload_per_sequence:\n"
        "          arguments:\n            key:\n              - OrderId\n              - LineNo\n"
        "      - reconcile.key_is_the_sources\n      - reconcile.no_pending_rows\n    columns:\n"
        "      - name: OrderId\n        data_type: bigint  # Spanner: INT64\n"
        "      - name: LineNo\n        data_type: bigint  # Spanner: INT64\n"
        "      - name: Amount\n        data_type: decimal(38,9)  # Spanner: NUMERIC\n"
        "      - name: At\n        data_type: timestamp  # Spanner: TIMESTAMP\n"
        "      - name: Tags\n        data_type: array<string>  # Spanner: ARRAY<STRING>\n"
    )
    assert "- reconcile.transactions_complete" in found["_sources.yml"]
    assert planned(tmp_path, [record], stream=SPANNER).files == {}, "a second run changes no byte"
    assert Project(tmp_path).models["lines"].calls[0].objects == ("Lines",)


TYPES: dict[str, tuple[Any, Any, str]] = {
    **{
        code: (code, value, data_type)
        for code, value, data_type in (
            ("BOOL", True, "boolean"), ("INT64", "7", "bigint"), ("FLOAT64", 1.5, "double"), ("FLOAT32", 0.5, "float"),
            ("STRING", "x", "string"), ("BYTES", "AA==", "binary"), ("DATE", "2026-02-03", "date"),
            ("JSON", "{}", "string"), ("UUID", "x", "string"), ("ENUM", "1", "bigint"), ("PROTO", "AA==", "binary"),
            ("INTERVAL", "P1D", "string"), ("NOBODY_KNOWS_YET", "x", "string"),
            ("TIMESTAMP", "2026-11-21T11:33:12.123456000Z", "timestamp"), ("NUMERIC", "-0.123456789", "decimal(38,9)"),
        )
    },
    "NaN": ("FLOAT64", "NaN", "double"),
    "whole": ("FLOAT64", 3, "double"),
    "nanoseconds": ("TIMESTAMP", "2026-11-21T11:33:12.123456789Z", "string"),
    "nanoseconds in an array": (array_of("TIMESTAMP"), [None, "2026-11-21T11:33:12.1234567Z"], "array<string>"),
    "an array that is NULL in the emulator": (array_of("TIMESTAMP"), "NULL", "array<timestamp>"),
    "a numeric without an annotation": ("NUMERIC", "NaN", "string"),
    "ten places": ("NUMERIC", "0.1234567891", "string"),
    "thirty digits": ("NUMERIC", "1" * 30, "string"),
    "PG numeric": (postgresql("NUMERIC", "PG_NUMERIC"), "1.5", "string"),
    "PG jsonb": (postgresql("JSON", "PG_JSONB"), "{}", "string"),
    "PG oid": (postgresql("INT64", "PG_OID"), "7", "bigint"),
    "PG numerics": (array_of(postgresql("NUMERIC", "PG_NUMERIC")), ["1.5"], "array<string>"),
    "no annotation": (postgresql("INT64", "TYPE_ANNOTATION_CODE_UNSPECIFIED"), "7", "bigint"),
    "bytes in an array": (array_of("BYTES"), ["AA=="], "array<binary>"),
    "an array of an array": (array_of(array_of("INT64")), [], "array<array<bigint>>"),
}  # fmt: skip


@pytest.mark.parametrize("case", TYPES)
def test_a_type_is_the_one_that_the_records_name_and_holds_every_value_that_came(case: str) -> None:
    type_, value, data_type = TYPES[case]
    found = observed([lines({"x": None}, [column("x", type_, 3)]), lines({"x": value}, [column("x", type_, 3)])],
                     add=add_data_change)  # fmt: skip
    (table,), refusals = tables_of(found, [of_column_types(found)])
    assert refusals == []
    (x,) = (column for column in table.columns if column.name == "x")
    assert x.declaration.data_type == data_type and x.declaration.encoding is None
    assert x.of_the_source().declaration == x.declaration, "and so it is with --columns"


def test_what_a_column_was_and_is_fits_its_type() -> None:
    """A STRING may become BYTES, and a column of another type may come under the same name."""
    for one, other in itertools.permutations(["STRING", "BYTES", "INT64"], 2):
        found = observed([lines({"x": "1"}, [column("x", type_, 3)]) for type_ in (one, other)], add=add_data_change)
        assert of_column_types(found)[Place(None, "", "Lines")].columns["x"] == Declaration(
            "string", witness=f"Spanner: {', '.join(sorted([one, other]))}"
        )


def test_columns_are_in_the_tables_order_though_each_record_names_those_that_changed() -> None:
    records = [(lines({name: "1"}, [column(name, "INT64", place)]), batch) for batch, (name, place) in
               enumerate([("z", 3), ("a", 5), ("m", 4)], 1)]  # fmt: skip
    whole = observed(records, add=add_data_change)
    for seed in range(6):
        random.Random(seed).shuffle(records)
        parts = [observed(records[:1], add=add_data_change), observed(records[1:], add=add_data_change)]
        found = Observations.from_rows([row for part in parts for row in part.rows()])
        assert tables_of(found, [of_column_types(found)]) == tables_of(whole, [of_column_types(whole)])
        (table,), _ = tables_of(found, [of_column_types(found)])
        assert [column.name for column in table.columns] == ["OrderId", "LineNo", "z", "m", "a"]


def test_a_column_without_a_value_is_not_declared() -> None:
    """Deletes name all columns; a run ends where no record ever had a declared column."""
    record = lines({}, [column("x", "INT64", 3)], mod_type="DELETE")
    (table,), _ = tables_of(found := observed([record], add=add_data_change), [of_column_types(found)])
    assert [column.name for column in table.columns] == ["OrderId", "LineNo"]


REFUSED = {
    "a table of one row": (
        data_change_record([mod({}, {"x": "1"})], column_types=[column("x", "INT64", 1)]), "no key",
        "The table has no primary key. Give a file with `--keys`: `Things: [...]`",
    ),
    "torn": (lines({"x": "1"}, [])[:-9], "no columns", "No record of it that can be read has values"),
    "no mods": (data_change_record([], column_types=KEY), "no columns", "No record of it that can be read"),
    "mods of text": (data_change_record(["x"], column_types="x"), "no columns", "No record of it that can be read"),
    "no types": (data_change_record([mod({"Id": "1"})]), "no key", "Its records name no primary key."),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_table_without_a_model_has_a_reason(case: str) -> None:
    record, reason, advice = REFUSED[case]
    found = Observations()
    add_data_change(found, record, "Things", 1)
    tables, (refusal,) = tables_of(found, [of_column_types(found)])
    assert (tables, refusal.reason) == ([], reason) and refusal.advice.startswith(advice)


def test_parts_of_mods_may_be_texts_of_json() -> None:
    parts = {"keys": '{"OrderId": "1", "LineNo": "2"}', "new_values": '{"x": 1.50}'}
    found = observed([data_change_record([parts], column_types=[*KEY, column("x", "FLOAT64", 3)], table_name="Lines")],
                     add=add_data_change)  # fmt: skip
    (table,), _ = tables_of(found, [of_column_types(found)])
    assert [column.declaration.data_type for column in table.columns] == ["bigint", "bigint", "double"]


def test_a_file_of_keys_names_the_key_of_a_table_that_has_none(tmp_path: Path) -> None:
    record = data_change_record([mod({}, {"x": "1"})], column_types=[column("x", "INT64", 1)])
    plan = generated(tmp_path, [record], stream=SPANNER, answers={"Things": Answer(("_change_id",))})
    assert plan.written == ["things"] and "unique_key='_change_id'" in (tmp_path / "things.sql").read_text()
    with pytest.raises(UsageError, match="Things has encodings, and the bytes of Spanner need none"):
        planned(tmp_path, [record], stream=SPANNER, answers={"Things": Answer(("x",), {"x": "hex"})})


def test_cuts_are_no_records_and_records_of_no_table_are_counted() -> None:
    found = Observations()
    for record, name in (("{}", None), ("{}", ""), ('{"cut_time": "x"}', "#cut")):
        add_data_change(found, record, name, 1)
    assert (found.tables, found.nameless) == ({}, 2)


def test_a_named_schema_is_a_schema_and_the_default_one_is_none(tmp_path: Path) -> None:
    records = [lines({}, [], table_name=name) for name in ("sales.Orders", "Orders")]
    assert planned(tmp_path, records, stream=SPANNER).written == []
    assert planned(tmp_path, records, stream=SPANNER, name="{schema}_{table}").written == ["orders", "sales_orders"]
    generated(tmp_path, records, stream=SPANNER, name="{schema}/{schema}_{table}")
    assert {*texts(tmp_path)} >= {"orders.sql", "sales/sales_orders.sql"}
    assert "object='sales.Orders'" in (tmp_path / "sales" / "sales_orders.sql").read_text()
    plan = planned(tmp_path, records, stream=SPANNER, select=["sales.*"])
    assert (plan.files, plan.unchanged) == ({}, ["sales_orders"])


def test_names_are_those_of_the_records(tmp_path: Path) -> None:
    assert len({place_of(name) for name in ODD}) == len(ODD)
    types = [column(name, "STRING", number, number == 0) for number, name in enumerate(ODD)]
    keys, values = {ODD[0]: "x"}, dict.fromkeys(ODD[1:], "y")
    records = [data_change_record([mod(keys, values)], table_name=name, column_types=types) for name in ODD]
    plan = generated(tmp_path, records, stream=SPANNER, name="{schema}_{table}")
    refused = {refusal.label for refusal in plan.refusals}
    called = {call.objects[0] for model in Project(tmp_path).models.values() for call in model.calls}
    assert len(called) + len(refused) == len(ODD) and called >= {RAISE, "</script>", "李雷 Ö", "or.ders", "a\nb"}
    assert {refusal.reason for refusal in plan.refusals} <= {"two tables of one name"}
    for name in plan.written:
        (entry,) = yaml.safe_load((tmp_path / f"{name}.yml").read_text(encoding="utf-8"))["models"]
        assert [unrendered(one["name"]) for one in entry["columns"]] == [name for name in ODD if "\n" not in name]
    assert planned(tmp_path, records, stream=SPANNER, name="{schema}_{table}").files == {}


def test_what_people_do_to_the_files_stays_and_new_columns_are_added(tmp_path: Path) -> None:
    first = lines({"x": "1"}, [column("x", "INT64", 3)])
    generated(tmp_path, [first], stream=SPANNER)
    (tmp_path / "lines.sql").rename(tmp_path / "ours.sql")
    text = (tmp_path / "lines.yml").read_text().replace("name: lines\n", "name: ours  # of us\n", 1)
    (tmp_path / "lines.yml").write_text(text)
    assert planned(tmp_path, [first], stream=SPANNER).files == {}
    news = [first, lines({"x": "1", "note": "y"}, [column("x", "INT64", 3), column("note", "STRING", 4)])]
    for only_columns in (True, False):
        plan = planned(tmp_path, news, stream=SPANNER, only_columns=only_columns)
        assert plan.added == ["ours: 1 column added: note string"]
        (added,) = plan.files.values()
        lines_of_note = ["      - name: note", "        data_type: string  # Spanner: STRING"]
        assert added.removeprefix(text).splitlines() == [*lines_of_note, "        config: {meta: {added: true}}"]


def test_numbers_that_do_not_fit_what_somebody_declared_are_said(tmp_path: Path) -> None:
    record = lines({"x": 1.5}, [column("x", "FLOAT64", 3)])
    generated(tmp_path, [record], stream=SPANNER)
    file = tmp_path / "lines.yml"
    file.write_text(file.read_text().replace("data_type: double", "data_type: int"))
    (said,) = planned(tmp_path, [record], stream=SPANNER).misfits
    assert said.startswith("lines: x is declared int, and values came") and "declare double, and" in said


def test_models_of_another_source_are_not_taken_for_these(tmp_path: Path) -> None:
    (tmp_path / "lines.sql").write_text(
        "{{ reconcile.datastream_mysql(source('lake', 'shop_changes'), object='Lines') }}"
    )
    plan = planned(tmp_path, [lines({"x": "1"}, [])], stream=SPANNER, name="{table}_of_spanner")
    assert plan.written == ["lines_of_spanner"]
    assert json.dumps([*plan.news]).count("has no model") == 1
