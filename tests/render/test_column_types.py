"""A type that a model declares is read as Spark reads it, aliases too."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest
from by_sqlite import answer
from plain_dbt import PlainProject
from reconcile_jobs.proofs.canonical_form import _ALIASES as ALIASES
from reconcile_jobs.snapshots.snapshot_jdbc import _ROUNDED
from recorder import Recorder
from shapes import POSTGRESQL, SPANNER, Life, Shape

TYPES = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float", "dec": "decimal(10,0)",
    "numeric": "decimal(10,0)", "numeric(5)": "decimal(5,0)", "DECIMAL( 38 , 10 )": "decimal(38,10)",
    "decimal(4,4)": "decimal(4,4)",
    "timestamp_ltz": "timestamp", "Double": "double", "float": "float", "character(3)": "varchar(3)",
    "array<real>": "array<float>", "map<string, long>": "map<string,bigint>",
    "map<decimal(10,2), array<int>>": "map<decimal(10,2),array<int>>",
}  # fmt: skip


@pytest.mark.parametrize("declared", TYPES)
def test_a_type_is_known_by_each_of_its_names(declared: str) -> None:
    macros = PlainProject(Recorder(), "demo").macros
    assert macros.column_type(declared)["label"] == TYPES[declared]


@pytest.mark.parametrize(("declared", "of_iceberg"), [
    ("tinyint", "int"), ("smallint", "int"), ("int", "int"), ("bigint", "bigint"), ("string", "string"),
    ("array<tinyint>", "array<int>"), ("map<smallint,tinyint>", "map<int,int>"),
])  # fmt: skip
def test_iceberg_holds_small_integers_in_four_bytes(declared: str, of_iceberg: str) -> None:
    macros = PlainProject(Recorder(), "demo").macros
    assert macros.stored_type(declared, "iceberg") == of_iceberg
    assert macros.stored_type(declared, "delta") == declared


@pytest.mark.parametrize(
    "name",
    ["_file", "_pos", "_deleted", "_Deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"],
)
def test_a_column_whose_name_iceberg_has_for_itself_has_another_one_in_the_table(name: str) -> None:
    macros = PlainProject(Recorder(), "demo").macros
    for column in (name, f"`{name}`"):
        assert macros.stored_column(column, "iceberg") == f"`_change{name}`"
        assert [macros.stored_column(column, other) for other in ("delta", None)] == [column] * 2
    assert macros.stored_column(f"`{name}s`", "iceberg") == f"`{name}s`"


@pytest.mark.parametrize(("former", "now", "is_obstacle"), [
    ("tinyint", "smallint", False), ("smallint", "int", False), ("int", "bigint", False), ("bigint", "int", True),
    ("smallint", "tinyint", True), ("decimal(10,2)", "decimal(11,2)", False), ("decimal(10,2)", "decimal(11,3)", False),
    ("decimal(10,2)", "decimal(10,3)", True), ("decimal(10,2)", "decimal(12,1)", True),
    ("varchar(5)", "varchar(6)", False), ("varchar(5)", "varchar(4)", True), ("varchar(5)", "string", False),
    ("string", "varchar(5)", True), ("float", "double", True), ("int", "decimal(10,0)", True),
    ("date", "timestamp", True),
])  # fmt: skip
def test_a_type_is_wider_if_it_reads_each_text_as_the_same_value(former: str, now: str, is_obstacle: bool) -> None:
    macros = PlainProject(Recorder(), "demo").macros
    types = macros.column_type(former), macros.column_type(now)
    assert bool(macros.obstacle_to_widening(*types)) is is_obstacle
    # Digits that were rounded away are not known; those before the point are all there.
    rounds_less = former.startswith("decimal") and types[0]["scale"] != types[1].get("scale")
    assert bool(macros.obstacle_to_widening(*types, True)) is (is_obstacle or rounds_less)


@pytest.mark.parametrize(("declared", "source", "expected"), [
    ("hex", None, "hex"), ("base64", "hex", "base64"), (None, "hex", "hex"), (None, None, "unknown"),
])  # fmt: skip
@pytest.mark.parametrize("data_type", [
    "binary", "array<binary>", "array<array<binary>>", "map<string,binary>", "map<binary,int>",
    "map<binary,array<binary>>",
])  # fmt: skip
def test_bytes_have_their_encoding_at_every_depth(
    data_type: str, declared: str | None, source: str | None, expected: str
) -> None:
    macros = PlainProject(Recorder(), "demo").macros
    meta = {"encoding": declared} if declared else {}
    columns = macros.declared_columns([{"name": "c", "data_type": data_type, "meta": meta}])
    (column,) = macros.datastream_columns(columns, source)
    assert {leaf.get("encoding") for leaf in leaves(column["type"]) if leaf["name"] == "binary"} == {expected}
    assert column["type"]["label"].startswith(data_type)


def leaves(type_: dict[str, Any]) -> list[dict[str, Any]]:
    parts = [type_[part] for part in ("element", "key", "value") if part in type_]
    return [leaf for part in parts for leaf in leaves(part)] if parts else [type_]


def test_the_proofs_know_a_type_by_the_same_names() -> None:
    macros = PlainProject(Recorder(), "demo").macros
    for alias, name in ALIASES.items():
        declared = f"{alias}(3)" if name == "string" else alias
        assert macros.column_type(declared)["name"] == name
    assert {re.sub(r"\(.*", "", declared) for declared in TYPES if "<" not in declared} - {*ALIASES} == {
        "DECIMAL", "decimal", "Double", "float",
    }  # fmt: skip


@pytest.mark.parametrize("declared", ["decimal(4,5)", "decimal(0,0)", "decimal(39,0)", "map<decimal(10,2)>"])
def test_a_type_that_spark_does_not_have_is_none(declared: str) -> None:
    assert PlainProject(Recorder(), "demo").macros.column_type(declared) is None


def test_whether_a_variant_lost_digits_is_judged_by_what_was_delivered() -> None:
    """The text of an object in the record is what the variant prints, in which a rounded number looks exact."""
    macros = PlainProject(Recorder(), "demo").macros
    variant = macros.column_type("variant")
    assert "regexp_extract_all(record, " in macros.typed_value("texts[0]", variant, False, "fields[0]")
    of_avro = macros.typed_value("texts[0]", variant, False, "fields[0]", "kinds[0]")
    assert "regexp_extract_all(if(kinds[0] = 'json', texts[0], record), " in of_avro


def test_a_snapshot_refuses_the_numbers_in_json_that_a_model_refuses() -> None:
    sql = str(PlainProject(Recorder(), "demo").macros._may_have_rounded("try_parse_json(c0)", "c0"))
    assert _ROUNDED.format("c0") == f"({sql})"


def test_of_spanner_the_text_null_is_null_in_arrays_and_in_no_other_column():
    """The emulator writes it for an array that is NULL; in a STRING column it is a word."""
    columns = ["id", "tags", "name", "days", "more", "note"]
    types = ["bigint", "array<string>", "string", "array<date>", "array<bigint>", "string"]
    sql = Life(Shape(SPANNER, dict(zip(columns, types, strict=True)))).change_records
    (places,) = re.findall(r"\(field, i\) -> if\(i in \(([\d, ]+)\) and cast\(field as string\) = 'NULL', null,", sql)
    assert [columns[int(place)] for place in places.split(", ")] == ["tags", "days", "more"]
    assert f"array({', '.join(repr(column) for column in columns)}) as names" in sql, "the order of the fields"


@pytest.mark.parametrize(
    ("data_type", "is_other"),
    [
        ("binary", False), ("array<binary>", False), ("map<string,string>", False), ("map<string,binary>", True),
        ("array<array<binary>>", True),
    ],
)  # fmt: skip
def test_a_table_whose_nested_bytes_an_earlier_version_read_must_be_rebuilt(data_type: str, is_other: bool) -> None:
    """That version read them as base64, whatever the source writes; of other types the digest stays as it was."""
    life = Life(Shape(POSTGRESQL, {"id": "bigint", "part": data_type}))
    columns = life.project.macros.form_of_node(life.project.node("orders"))["columns"]
    earlier = {"id": "bigint", "part": data_type}
    digest = hashlib.md5(json.dumps(earlier, sort_keys=True).encode()).hexdigest()
    assert (life.project.macros.digest_of_columns(columns) != digest) is is_other


@pytest.mark.parametrize(("microseconds", "text"), [
    (0, "00:00:00.000000"), (1, "00:00:00.000001"), (999_999, "00:00:00.999999"), (1_000_000, "00:00:01.000000"),
    (59_999_999, "00:00:59.999999"), (60_000_000, "00:01:00.000000"), (3_599_999_999, "00:59:59.999999"),
    (3_600_000_000, "01:00:00.000000"), (28_800_000_000, "08:00:00.000000"), (35_999_999_999, "09:59:59.999999"),
    (36_000_000_000, "10:00:00.000000"), (359_999_999_999, "99:59:59.999999"), (360_000_000_000, "100:00:00.000000"),
    (3_020_399_000_000, "838:59:59.000000"), (-1, "-00:00:00.000001"), (-28_800_000_000, "-08:00:00.000000"),
    (-36_000_000_000, "-10:00:00.000000"), (-3_020_399_000_000, "-838:59:59.000000"),
    (-(2**63), "-2562047788:00:54.775808"),
])  # fmt: skip
def test_a_time_of_mysql_has_two_digits_of_hours_or_more_and_six_of_microseconds(microseconds: int, text: str) -> None:
    sql = PlainProject(Recorder(), "demo").macros._text_of_microseconds(f"'{microseconds}'")
    assert answer(f"select {sql}", {}) == [(text,)]
