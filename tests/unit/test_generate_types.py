"""What a column is declared as: by headers of Avro, by notes of the append job, by values."""

from __future__ import annotations

import io
import itertools
import json
import pickle
import random
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from generated import change, generated, observed, planned
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle
from reconcile_jobs.generation import avro_files, staged_tables
from reconcile_jobs.generation.avro_files import Listed, as_text, from_text, newest_of_each_schema
from reconcile_jobs.generation.avro_types import Header, header_of
from reconcile_jobs.generation.datastream_records import add_event, place_of, source_of
from reconcile_jobs.generation.declarations import (
    Declaration,
    Number,
    Values,
    declaration_of_values,
    holds,
    joined,
    of_kind,
)
from reconcile_jobs.generation.keys_file import read_keys
from reconcile_jobs.generation.observations import Observations, Place
from reconcile_jobs.generation.streams import DATASTREAM
from reconcile_jobs.generation.tables import Answer, tables_of
from reconcile_jobs.generation.witnesses import Witness, of_headers
from reconcile_jobs.generation.yaml_text import column_lines, model_text
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.process.session import ship_by_value


def values_of(*written: str, kind: str | None = None) -> Values:
    """Return what values are, each as JSON has it."""
    values = Values()
    for text in written:
        values.add(json.loads(text, parse_int=Number, parse_float=Number), kind)
    return values


WIDENED = {
    "whole numbers": (("1", "-7", "null"), "bigint"),
    "the largest bigint": (("9223372036854775807", "-9223372036854775808"), "bigint"),
    "one more": (("1", "9223372036854775808"), "decimal(20,0)"),
    "one less": (("-9223372036854775809",), "decimal(20,0)"),
    "21 digits": (("1" + "0" * 20,), "decimal(38,0)"),
    "39 digits": (("1" + "0" * 38,), "string"),
    "places": (("1.5",), "string"),
    "places of zeros, as a decimal has them": (("5.00", "5"), "string"),
    "an exponent": (("1e3",), "string"),
    "texts": (('"1"',), "string"),
    "numbers and texts": (("1", '"1"'), "string"),
    "booleans": (("true", "false", "null"), "boolean"),
    "booleans and numbers": (("true", "1"), "string"),
    "nothing but NULL": (("null",), "string"),
    "no value": ((), "string"),
    "objects": (("{}", "null"), "string json"),
    "lists and texts": (("[1]", '"new"'), "string json"),
}


@pytest.mark.parametrize("case", WIDENED)
def test_values_give_the_type_that_holds_them_and_what_may_come(case: str) -> None:
    written, expected = WIDENED[case]
    values = values_of(*written)
    found = declaration_of_values(values)
    assert " ".join(filter(None, (found.data_type, found.encoding))) == expected
    assert holds(found, values)


@given(st.lists(st.sampled_from([text for written, _ in WIDENED.values() for text in written]), max_size=6), st.data())
def test_order_and_parts_of_the_values_make_no_difference(written: list[str], data: st.DataObject) -> None:
    whole = values_of(*written)
    parts: list[Values] = [Values(), Values()]
    for text in data.draw(st.permutations(written)):
        data.draw(st.sampled_from(parts)).merge(values_of(text))
    parts[0].merge(Values.from_json(json.loads(json.dumps(parts[1].to_json()))))
    assert declaration_of_values(parts[0]) == declaration_of_values(whole)
    for data_type in ("int", "decimal(5,2)", "boolean", "double", "date", "string"):
        assert holds(Declaration(data_type), parts[0]) == holds(Declaration(data_type), whole)


HELD = [
    ("tinyint", ("127", "-128"), True), ("tinyint", ("128",), False), ("int", ("5.00",), True),
    ("int", ("5.01",), False),
    ("bigint", ('"12"',), True), ("integer", ("1e3",), True), ("long", ("true",), False), ("int", ("{}",), False),
    ("decimal(5,2)", ("999.99", "-999.9"), True), ("decimal(5,2)", ("1000",), False),
    ("decimal(5,2)", ("0.001",), False),
    ("decimal(38,10)", ("1" * 28 + "." + "1" * 10,), True), ("decimal(38,10)", ("0." + "1" * 11,), False),
    ("boolean", ("0", "1", "true"), True), ("boolean", ("2",), False), ("boolean", ("-1",), False),
    ("double", ("1.5", "1"), True), ("double", ("true",), False), ("date", ("20",), False), ("date", ('"x"',), True),
    ("timestamp", ("true",), False), ("timestamp_ltz", ("1",), False),
    ("binary", ("1",), False), ("string", ("{}", "1", "true"), True),
    ("array<int>", ("[]",), True), ("DECIMAL( 5 , 2 )", ("1000",), False), ("varchar(3)", ("1",), True),
    # Each at its ends, under each of its names.
    ("tinyint", ("-129",), False), ("byte", ("127",), True), ("byte", ("128",), False),
    ("smallint", ("32767", "-32768"), True), ("short", ("32768",), False), ("smallint", ("-32769",), False),
    ("int", ("2147483647", "-2147483648"), True), ("integer", ("2147483648",), False),
    ("bigint", (str(2**63 - 1), str(-(2**63))), True), ("long", (str(2**63),), False),
    ("decimal", ("9" * 10,), True), ("decimal", ("1" + "0" * 10,), False), ("decimal", ("0.1",), False),
    ("numeric(3)", ("999",), True), ("numeric(3)", ("1000",), False), ("dec(2,1)", ("0.01",), False),
    ("decimal(5,2)", ("-1000",), False), ("decimal(5,2)", ('"x"',), True), ("decimal(5,2)", ("true",), False),
    ("boolean", ('"x"',), True), ("boolean", ("{}",), False), ("boolean", ("0.5",), False),
    ("real", ("1.5",), True), ("real", ("true",), False), ("float", ("{}",), False),
    ("timestamp", ("{}",), True), ("timestamp_ntz", ("1",), False),
    ("binary", ('"x"',), True), ("binary", ("{}",), False),
]  # fmt: skip


@pytest.mark.parametrize(("data_type", "written", "expected"), HELD)
def test_what_a_declared_type_holds(data_type: str, written: tuple[str, ...], expected: bool) -> None:
    assert holds(Declaration(data_type), values_of(*written)) is expected


JOINED = [
    ("int", "bigint", "bigint"), ("tinyint", "smallint", "smallint"), ("float", "double", "double"),
    ("int", "decimal(20,0)", "decimal(20,0)"), ("bigint", "decimal(10,2)", "decimal(21,2)"),
    ("decimal(10,2)", "decimal(8,4)", "decimal(12,4)"), ("decimal(28,0)", "decimal(30,10)", "decimal(38,10)"),
    ("decimal(38,0)", "decimal(38,10)", "string"),
    ("date", "timestamp", "string"), ("double", "decimal(5,2)", "string"), ("binary", "string", "string"),
    ("tinyint", "decimal(2,1)", "decimal(4,1)"), ("smallint", "decimal(5,1)", "decimal(6,1)"),
    ("int", "decimal(5,2)", "decimal(12,2)"), ("smallint", "int", "int"), ("int", "float", "string"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "expected"), JOINED)
def test_two_witnesses_of_one_column_are_joined(one: str, other: str, expected: str) -> None:
    for pair in ((one, other), (other, one)):
        assert joined(*(Declaration(data_type) for data_type in pair)).data_type == expected


def test_what_one_of_two_witnesses_calls_json_is_json_and_both_are_named() -> None:
    json_, text = Declaration("string", "json", "Avro: json"), Declaration("string", witness="Avro: string")
    assert joined(json_, text) == Declaration("string", "json", "Avro: json; Avro: string")
    assert joined(text, json_) == Declaration("string", "json", "Avro: string; Avro: json")
    assert joined(*(Declaration(name, witness="the values") for name in ("int", "bigint"))).witness == "the values"


NOTED = {
    "bytes": "binary", "json": "string json", "time-interval-micros": "string microseconds", "varchar": "string",
    "timestampTz": "timestamp", "datetime": "timestamp_ntz", "timeTz": "string time", "interval": "string interval",
    "geometry": "string json", "[]": "array<string>", "bytes[]": "array<binary>", "timestampTz[]": "array<timestamp>",
    "datetime[]": "array<timestamp_ntz>", "json[]": "array<string>",
}  # fmt: skip


@pytest.mark.parametrize("kind", NOTED)
def test_each_note_of_the_append_job_tells_a_type(kind: str) -> None:
    found = of_kind(kind)
    assert found is not None and found.witness == f"Avro, as staged: {kind}"
    assert " ".join(filter(None, (found.data_type, found.encoding))) == NOTED[kind]
    assert of_kind("") is None


# --- Avro ------------------------------------------------------------------------------------------------------------

_ARRAY = {
    "type": "record", "name": "multidimensionalArray_a", "fields": [
        {"name": "nestedArray", "type": ["null", {"type": "array", "items": "multidimensionalArray_a"}]},
        {"name": "elementValue", "type": ["null", "int"]},
    ],
}  # fmt: skip
_VARCHAR = {
    "type": "record", "name": "varchar",
    "fields": [{"name": "value", "type": "string"}, {"name": "length", "type": "int"}],
}  # fmt: skip
AVRO: dict[str, tuple[Any, Any, str, str]] = {
    "an int": ("int", 1, "int", "Avro: int"),
    "a long": ("long", 1, "bigint", "Avro: long"),
    "a boolean": ("boolean", True, "boolean", "Avro: boolean"),
    "a float": ("float", 1.5, "float", "Avro: float"),
    "a double": ("double", 1.5, "double", "Avro: double"),
    "bytes": ("bytes", b"x", "binary", "Avro: bytes"),
    "a text": ("string", "x", "string", "Avro: string"),
    "a decimal": ({"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 4}, b"\1", "decimal(18,4)",
                  "Avro: decimal(18,4)"),
    "a long decimal": ({"type": "bytes", "logicalType": "decimal", "precision": 65, "scale": 30}, b"\1", "string",
                       "Avro: decimal(65,30)"),
    "an unsigned bigint": ({"type": "string", "logicalType": "number"}, "1", "decimal(20,0)", "Avro: number"),
    "a date": ({"type": "int", "logicalType": "date"}, 1, "date", "Avro: date"),
    "a moment": ({"type": "long", "logicalType": "timestamp-micros"}, 1, "timestamp", "Avro: timestamp-micros"),
    "a wall clock": ({"type": "long", "logicalType": "local-timestamp-micros"}, 1, "timestamp_ntz",
                     "Avro: local-timestamp-micros"),
    "a moment in milliseconds": ({"type": "long", "logicalType": "timestamp-millis"}, 1, "timestamp",
                                 "Avro: timestamp-millis"),
    "a wall clock in milliseconds": ({"type": "long", "logicalType": "local-timestamp-millis"}, 1, "timestamp_ntz",
                                     "Avro: local-timestamp-millis"),
    "a moment in nanoseconds": ({"type": "long", "logicalType": "timestamp-nanos"}, 1, "string",
                                "Avro: timestamp-nanos"),
    "a wall clock in nanoseconds": ({"type": "long", "logicalType": "local-timestamp-nanos"}, 1, "string",
                                    "Avro: local-timestamp-nanos"),
    "a time in milliseconds": ({"type": "int", "logicalType": "time-millis"}, 1, "string time", "Avro: time-millis"),
    "a uuid": ({"type": "string", "logicalType": "uuid"}, "x", "string", "Avro: uuid"),
    "a decimal of 38 places": ({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 38}, b"\1",
                               "decimal(38,38)", "Avro: decimal(38,38)"),
    "a decimal of 39 digits": ({"type": "bytes", "logicalType": "decimal", "precision": 39}, b"\1", "string",
                               "Avro: decimal(39,0)"),
    "a decimal of few bytes": ({"type": "fixed", "name": "d", "size": 2, "logicalType": "decimal", "precision": 4,
                                "scale": 0}, b"\0\1", "decimal(4,0)", "Avro: decimal(4,0)"),
    "a word of a list": ({"type": "enum", "name": "e", "symbols": ["a"]}, "a", "string", "Avro: enum"),
    "so many bytes": ({"type": "fixed", "name": "f", "size": 2}, b"xy", "binary", "Avro: fixed"),
    "a list": ({"type": "array", "items": "int"}, [1], "array<int>", "Avro: array of int"),
    "a map": ({"type": "map", "values": "long"}, {"a": 1}, "map<string,bigint>", "Avro: map of long"),
    "a time": ({"type": "long", "logicalType": "time-micros"}, 1, "string time", "Avro: time-micros"),
    "a span": ({"type": "long", "logicalType": "time-interval-micros"}, 1, "string microseconds",
               "Avro: time-interval-micros"),
    "json": ({"type": "string", "logicalType": "json"}, "{}", "string json", "Avro: json"),
    "varchar of 2020": (_VARCHAR, {"value": "x", "length": 1}, "string", "Avro: record varchar"),
    "an array": (_ARRAY, {"nestedArray": [{"nestedArray": None, "elementValue": 1}], "elementValue": None},
                 "array<int>", "Avro: array of int"),
    "a union": (["null", "int", "string"], 1, "string", "Avro: a union"),
    "an unknown logical type": ({"type": "string", "logicalType": "x"}, "x", "string", "Avro: string"),
}  # fmt: skip


def avro_file(columns: dict[str, tuple[Any, Any]], table: str = "orders", records: int = 1) -> bytes:
    """Return a file of MySQL changes as Datastream writes them, all columns nullable."""
    metadata = {"table": "string", "database": "string", "log_file": "string", "log_position": "long"}
    payload = [
        {"name": name, "type": type_ if isinstance(type_, list) else ["null", type_]}
        for name, (type_, _) in columns.items()
    ]
    schema = {
        "type": "record", "name": "o", "fields": [
            {"name": "read_method", "type": "string"},
            {"name": "source_metadata", "type": {"type": "record", "name": "m", "fields": [
                *({"name": name, "type": type_} for name, type_ in metadata.items()),
                {"name": "primary_keys", "type": {"type": "array", "items": "string"}},
            ]}},
            {"name": "payload", "type": {"type": "record", "name": "payload", "fields": payload}},
        ],
    }  # fmt: skip
    record = {
        "read_method": "mysql-cdc-binlog",
        "source_metadata": {
            "table": table,
            "database": "shop",
            "log_file": "b.1",
            "log_position": 4,
            "primary_keys": ["id"],
        },
        "payload": {name: value for name, (_, value) in columns.items()},
    }
    # Logical types are the writer's business: bytes and numbers are written as they are.
    return _written(schema, [record] * records)


def _written(schema: Any, rows: list[Any]) -> bytes:

    plain = json.loads(json.dumps(schema).replace('"logicalType"', '"logical"'))
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(plain), rows, sync_marker=b"0" * 16)
    return _with_schema(out.getvalue(), schema)


def _with_schema(content: bytes, schema: Any) -> bytes:

    out = io.BytesIO()
    header = fastavro.reader(io.BytesIO(content))
    meta = {**header.metadata, "avro.schema": json.dumps(schema)}
    fields = [("magic", {"type": "fixed", "name": "magic", "size": 4}), ("meta", {"type": "map", "values": "bytes"}),
              ("sync", {"type": "fixed", "name": "sync", "size": 16})]  # fmt: skip
    form = fastavro.parse_schema(
        {"type": "record", "name": "h", "fields": [{"name": name, "type": type_} for name, type_ in fields]}
    )
    source = io.BytesIO(content)
    read: Any = fastavro.schemaless_reader(source, form, None)
    fastavro.schemaless_writer(out, form, read | {"meta": {name: str(text).encode() for name, text in meta.items()}})
    return out.getvalue() + content[source.tell() :]


@pytest.mark.parametrize("case", AVRO)
def test_the_header_of_an_avro_file_tells_the_type(case: str) -> None:
    type_, value, expected, witness = AVRO[case]
    header = header_of(avro_file({"id": ("int", 1), "x": (type_, value)}))
    assert header is not None and header.place == (None, "shop", "orders")
    found = header.columns["x"]
    assert " ".join(filter(None, (found.data_type, found.encoding))) == expected
    assert found.witness == witness
    assert from_text(as_text(header)) == header


def test_a_file_that_is_torn_or_empty_has_no_header() -> None:
    whole = avro_file({"id": ("int", 1)})
    assert header_of(b"") is None and header_of(whole[:90]) is None and header_of(b"Obj\x01" + b"x" * 50) is None
    assert header_of(avro_file({"id": ("int", 1)}, records=0)) is None


def test_of_two_types_of_one_name_in_two_namespaces_each_is_declared() -> None:
    other = {"type": "enum", "name": "x", "namespace": "b", "symbols": ["A"]}
    four = {"type": "fixed", "name": "x", "size": 1, "namespace": "a"}
    header = header_of(avro_file({"f": (four, b"1"), "e": (other, "A"), "g": ("a.x", b"1"), "h": ("b.x", "A")}))
    assert header is not None
    assert {name: found.data_type for name, found in header.columns.items()} == {
        "f": "binary", "e": "string", "g": "binary", "h": "string",
    }  # fmt: skip


def test_a_payload_that_an_earlier_field_defines_has_a_header() -> None:
    reader = fastavro.reader(io.BytesIO(avro_file({"id": ("int", 1), "x": ("long", 2)})))
    schema = json.loads(reader.metadata["avro.schema"])
    payload = schema["fields"].pop()["type"]
    before = {"name": "before", "type": {"type": "array", "items": payload}}
    schema["fields"] = [before, *schema["fields"], {"name": "payload", "type": payload["name"]}]
    header = header_of(_written(schema, [{"before": []} | row for row in reader]))  # type: ignore[operator]
    assert header is not None
    assert {name: found.data_type for name, found in header.columns.items()} == {"id": "int", "x": "bigint"}


def test_of_each_schema_of_an_object_the_newest_file_is_read() -> None:
    key, other = "a" * 40, "b" * 40
    folder = "s3://lake/shop_orders/2026/11/21/10/00"
    files = [
        Listed(f"{folder}/{key}_cdc_1.avro", 2), Listed(f"{folder}/{key}_cdc_2.avro", 1),
        Listed(f"{folder}/{other}_cdc_1.avro", 1), Listed(f"{folder}/{key}_cdc_0.avro", 2),
        Listed("s3://lake/export.avro", 1), Listed("s3://lake/export2.avro", 1),
        Listed(f"s3://lake/shop_lines/2026/11/21/10/00/{key}_cdc_1.avro", 1),
    ]  # fmt: skip
    random.shuffle(files)
    assert newest_of_each_schema(files) == sorted([
        f"{folder}/{key}_cdc_1.avro", f"{folder}/{other}_cdc_1.avro", "s3://lake/export.avro", "s3://lake/export2.avro",
        f"s3://lake/shop_lines/2026/11/21/10/00/{key}_cdc_1.avro",
    ])  # fmt: skip


MOMENT = ({"type": "long", "logicalType": "timestamp-micros"}, 0)


def declared(records: list[Any], headers: Sequence[Header] = (), **options: Any) -> dict[str, str]:
    (table,), refusals = tables_of(observed(records), [of_headers(headers)], **options)
    assert refusals == []
    return {
        column.name: " ".join(filter(None, (column.declaration.data_type, column.declaration.encoding)))
        for column in table.columns
    }


def test_a_value_that_a_header_does_not_hold_widens_its_type() -> None:
    header = header_of(avro_file({"id": ("int", 1), "n": ("int", 1), "total": (AVRO["a decimal"][0], b"\1")}))
    assert header is not None
    rows = [
        change(payload={"id": 1, "n": 2, "total": 1}),
        change(payload={"id": 1, "n": 2**40, "total": 1.5, "new": 1}),
    ]
    found = declared(rows, headers=[header])
    assert found == {"id": "int", "n": "bigint", "total": "decimal(18,4)", "new": "bigint"}


def test_of_a_column_that_headers_declare_otherwise_the_type_is_the_one_that_holds_all() -> None:
    """Whatever the order of the files, and however each spells the name."""
    told = [header_of(avro_file({"id": ("int", 1), name: (type_, 1)})) for name, type_ in (("n", "int"), ("N", "long"))]
    headers = [header for header in told if header]
    for order in (headers, headers[::-1]):
        (witness,) = of_headers(order).values()
        assert {name: of.data_type for name, of in witness.columns.items()} == {"id": "int", "n": "bigint"}


def test_what_the_append_job_noted_tells_the_type_where_no_header_does() -> None:
    kinds = {"a": "bytes", "b": "json", "c": "time-interval-micros", "d": "timestampTz", "e": "[]", "f": "geometry"}
    payload = {"id": 1, "a": "eA==", "b": "{}", "c": 5, "d": {"timestamp": "x"}, "e": {}, "f": {}, "g": 1}
    record = change(payload=payload) | {"avro_types": kinds}
    assert declared([record]) == {
        "id": "bigint", "a": "binary", "b": "string json", "c": "string microseconds", "d": "timestamp",
        "e": "array<string>", "f": "string json", "g": "bigint",
    }  # fmt: skip


def test_two_notes_of_one_column_leave_its_type_to_the_values() -> None:
    records = [change(payload={"id": 1, "at": "x"}) | {"avro_types": {"at": kind}} for kind in ("timestampTz", "bytes")]
    assert declared(records) == {"id": "bigint", "at": "string"}


def test_bytes_of_mysql_are_hexadecimal_digits_and_need_no_encoding() -> None:
    header = header_of(avro_file({"id": ("int", 1), "photo": ("bytes", b"x")}))
    assert header is not None
    assert declared([change(payload={"id": 1, "photo": "78"})], headers=[header]) == {"id": "int", "photo": "binary"}


def test_zero_dates_that_came_are_declared_and_a_key_of_them_is_a_string(tmp_path: Path) -> None:
    header = header_of(avro_file({"id": ("int", 1), "born": MOMENT, "seen": MOMENT, "day": MOMENT, "paid": MOMENT}))
    assert header is not None
    none = {"born": "0000-00-00", "seen": "0000-00-00 00:00:00", "day": "0000-00-00T00:00:00.000000Z"}
    records = [change(payload={"id": 1, **none, "paid": None}, key=["id", "day"])]
    (table,), _ = tables_of(observed(records), [of_headers([header])])
    found = {c.name: (c.declaration.data_type, c.declaration.zero_dates_are_null) for c in table.columns}
    assert found == {
        "id": ("int", False), "born": ("timestamp", True), "seen": ("timestamp", True), "day": ("string", False),
        "paid": ("timestamp", False),
    }  # fmt: skip
    (born,) = [column for column in table.columns if column.name == "born"]
    assert "config: {meta: {zero_date: 'null'}}" in column_lines(born)
    assert column_lines(born)[1].endswith("; zero dates came: they become NULL")
    merged = Observations.from_rows([*observed(records).rows(), *observed(records).rows()])
    assert merged.tables[None, "shop", "orders"].columns["born"].zero_dates == 2  # type: ignore[index]


def test_json_that_the_catalog_calls_a_text_is_declared_as_json() -> None:
    header = header_of(avro_file({"id": ("int", 1), "doc": ("string", "x"), "note": ("string", "x")}))
    assert header is not None
    records = [change(payload={"id": 1, "doc": {"a": 1}, "note": "x"}), change(payload={"id": 2, "doc": "new"})]
    assert declared(records, headers=[header]) == {"id": "int", "doc": "string json", "note": "string"}


def test_a_text_of_oracle_that_came_with_its_length_stays_a_text() -> None:
    told = avro_file({"id": ("int", 1), "city": ({"type": "string", "logicalType": "varchar"}, "x")})
    header = header_of(told)
    assert header is not None
    record = change(payload={"id": 1, "city": {"length": 30, "value": "Bern"}}) | {"read_method": "oracle-backfill"}
    (place,) = observed([record]).tables
    types = declared([record], headers=[header._replace(place=place)])
    assert types == {"id": "int", "city": "string"}


# --- keys, sources, encodings ----------------------------------------------------------------------------------------


def test_the_newest_record_that_names_a_key_decides() -> None:
    records = [
        (change(key=["id"]), 1),
        (change(key=["id", "status"]), 3),
        (change(key=None), 9),
        (change(key=["a"]), 2),
    ]
    for order in (records, records[::-1]):
        assert observed(order).tables[None, "shop", "orders"].key == ["id", "status"]  # type: ignore[index]
    index = change(key=[], replication_index=["id"])
    assert observed([index]).tables[None, "shop", "orders"].key == ["id"]  # type: ignore[index]


def test_a_key_is_the_one_that_a_person_names_else_that_of_the_dictionary_else_that_of_the_records() -> None:
    records = [change(payload={"id": 1, "status": "new", "no": 3})]
    place = Place(None, "shop", "orders")
    dictionary = {place: Witness(key=("Status",), description="Orders of all")}
    headers = {place: Witness(key=("no",), description="of a worse witness")}
    for testimonies, answers, key in (
        ([], {}, ("id",)),
        ([dictionary, headers], {}, ("status",)),
        ([{place: Witness()}, headers], {}, ("no",)),
        ([dictionary], {"shop.orders": Answer(("no",))}, ("no",)),
    ):
        (table,), _ = tables_of(observed(records), testimonies, answers)
        assert (table.key, table.named_key) == (key, ("id",)), "spelled as the records spell it"
    (table,), _ = tables_of(observed(records), [dictionary, headers])
    assert table.description == "Orders of all"
    assert '    description: "Orders of all"\n' in model_text("orders", table, "current_state")


def test_the_address_of_a_row_is_a_key_of_the_package(tmp_path: Path) -> None:
    record = change(key=[], scn=1) | {"read_method": "oracle-cdc"}
    generated(tmp_path, [record], answers={"shop.orders": Answer(("_row_id",))})
    assert "unique_key='_row_id'" in (tmp_path / "orders.sql").read_text()
    text = (tmp_path / "orders.yml").read_text()
    assert "key_is_the_sources" in text and "one_payload_per_sequence" not in text


REFUSED: dict[str, tuple[list[Any], str, str]] = {
    "no key, of Oracle": (
        [change(key=[], scn=1)], "no key", "which makes each event a row. `[_row_id]` makes the row's address the key.",
    ),
    "no key among ten columns": (
        [change(payload={f"c{number}": 1 for number in range(10)}, key=None)], "no key",
        "(of c0, c1, c2, c3, c4, c5, c6, c7 and 2 more), or `shop.orders: [_change_id]`, which makes each event a row.",
    ),
    "no key": ([change(key=[])], "no key", "The table has no primary key. Give a file with `--keys`: `shop.orders: ["),
    "key unknown": ([change(key=None)], "no key", "Its records name no primary key."),
    "a key that no model can declare": (
        [change(payload={"a\nb": 1}, key=["a\nb"])], "key not possible", "no model can declare a column of this name",
    ),
    "a key that no record carries": ([change(key=["uid"])], "key not in the records", "The key has the column uid"),
    "no source": (
        [change(read_method="cdc", log_position=None)], "source unknown", "Nothing in its records shows whether",
    ),
    "two sources": (
        [change(), change(lsn="0/1")], "two sources", "Its records are of mysql and postgresql.",
    ),
    "columns of one name": (
        [change(payload={"id": 1, "ID": 2})], "two columns of one name", "names differ in case only (id)",
    ),
    "bytes as text": (
        [change(lsn="0/1", log_position=None, payload={"id": 1, "a": "x"}) | {"avro_types": {"a": "bytes"}},
         change(lsn="0/1", log_position=None, payload={"id": 1, "a": "x"})],
        "encoding unknown", "The column a has bytes, which arrive as text",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_records_do_not_tell_is_named_and_not_guessed(tmp_path: Path, case: str) -> None:
    records, reason, advice = REFUSED[case]
    records = [
        record | ({"read_method": "cdc"} if case in ("no source", "bytes as text") else {}) for record in records
    ]
    plan = generated(tmp_path, records)
    (refusal,) = plan.refusals
    assert (refusal.label, refusal.reason) == ("shop.orders", reason) and advice in refusal.advice
    assert plan.written == [] and [path.name for path in plan.files] == ["_not_generated.md"]
    assert f"| shop.orders | {reason} |" in (tmp_path / "_not_generated.md").read_text()
    assert generated(tmp_path, records).files == {}, "a second run changes nothing"


def test_a_renamed_case_of_a_column_is_one_column_spelled_as_last() -> None:
    rows = [(change(payload={"ID": 1, "Total": 1}, key=["ID"]), 1), (change(payload={"id": 1, "Total": 2}), 2)]
    assert declared(rows) == {"id": "bigint", "Total": "bigint"}


def test_a_column_is_spelled_as_in_its_last_batch_in_whatever_parts_the_records_come() -> None:
    rows = [(change(payload={name: 1}, key=["id"]), batch) for name, batch in (("ID", 1), ("id", 3), ("ID", 5))]
    for order in itertools.permutations(rows):
        parts = [row for part in order for row in observed([part]).rows()]
        for found in (observed(order), Observations.from_rows(parts)):
            (table,), _ = tables_of(found)
            assert [column.name for column in table.columns] == ["ID"] and table.key == ("ID",)


def test_a_note_on_null_says_nothing_of_the_values_that_have_none() -> None:
    """Two values, one with a note: nothing tells whether the other is hex or base64."""
    of_source = change(lsn="0/1", log_position=None) | {"read_method": "postgresql-cdc"}
    noted = {"avro_types": {"photo": "bytes"}}
    records = [of_source | {"payload": {"id": 1, "photo": value}} | of
               for value, of in (("eA==", noted), (None, noted), ("eA==", {}))]  # fmt: skip
    tables, (refusal,) = tables_of(observed(records))
    assert (tables, refusal.reason) == ([], "encoding unknown")


def test_a_file_of_keys_gives_keys_and_encodings(tmp_path: Path) -> None:
    file = tmp_path / "keys.yml"
    file.write_text("shop.orders: [id]\nshop.`or.ders`: id\nshop.photos: {key: [ID], encodings: {Photo: base64}}\n")
    answers = read_keys(str(file))
    assert answers == {
        "shop.orders": Answer(("id",)), "shop.`or.ders`": Answer(("id",)),
        "shop.photos": Answer(("ID",), {"Photo": "base64"}),
    }  # fmt: skip
    records = [
        change(key=None), change("or.ders", key=[]), change("photos", {"id": 1, "photo": "eA=="}, key=None),
    ]  # fmt: skip
    plan = generated(tmp_path / "models", records, answers=answers)
    assert plan.refusals == [] and len(plan.written) == 3
    text = (tmp_path / "models" / "photos.yml").read_text()
    assert "data_type: binary  # the values: text in base64, by --keys" in text and "encoding: base64" in text
    assert "unique_key='id'" in (tmp_path / "models" / "photos.sql").read_text(), "as the records spell it"


def test_each_event_is_a_row_where_a_person_says_so(tmp_path: Path) -> None:
    answers = {"shop.orders": Answer(("_change_id",))}
    generated(tmp_path, [change(key=[])], answers=answers)
    assert "unique_key='_change_id'" in (tmp_path / "orders.sql").read_text()
    assert "data_tests" not in (tmp_path / "orders.yml").read_text()
    assert planned(tmp_path, [change(key=[])], answers=answers).files == {}


BAD_KEYS = {
    "a list": ("- a\n", "is no list of tables: write `shop.orders: \\[id\\]`"),
    "no YAML": ("a: [\n", "cannot be read"),
    "a number": ("shop.orders: 7\n", "what stands at shop.orders is neither a key nor encodings"),
    "an unknown word": ("shop.orders: {keys: [id]}\n", "what stands at shop.orders is neither"),
    "nothing": ("shop.orders: {}\n", "what stands at shop.orders is neither"),
    "an unknown word beside a key": (
        "shop.orders: {key: [id], encoding: {a: hex}}\n",
        "what stands at shop.orders is neither",
    ),
    "an encoding": ("shop.orders: {encodings: {a: utf-8}}\n", "shop.orders has the encoding utf-8; the encodings are"),
}


@pytest.mark.parametrize("case", BAD_KEYS)
def test_a_file_of_keys_of_another_form_is_refused(tmp_path: Path, case: str) -> None:
    (tmp_path / "keys.yml").write_text(BAD_KEYS[case][0])
    with pytest.raises(UsageError, match=BAD_KEYS[case][1]):
        read_keys(str(tmp_path / "keys.yml"))


UNFIT_ANSWERS = {
    "an unknown table": ({"shop.order": Answer(("id",))}, "--keys names shop.order, and no staged record"),
    "an unknown column": ({"shop.orders": Answer(("uid",))}, "no column uid; its columns are id, status"),
    "an unknown encoded column": ({"shop.orders": Answer((), {"a": "hex"})}, "shop.orders has no column a, whose"),
}  # fmt: skip


def test_a_column_of_bytes_whose_encoding_nothing_tells_is_listed_among_the_columns() -> None:
    """In the order of the records, from which the name is to be copied."""
    record = change(lsn="0/1", log_position=None, read_method="cdc", payload={"id": 1, "Photo": "x", "area": 2})
    records = [record | {"avro_types": {"Photo": "bytes"}}, record]
    with pytest.raises(UsageError, match=r"shop\.orders has no column uid; its columns are id, Photo, area\.$"):
        tables_of(observed(records), answers={"shop.orders": Answer(("uid",))})


@pytest.mark.parametrize("case", UNFIT_ANSWERS)
def test_a_file_of_keys_that_fits_no_record_is_refused(case: str) -> None:
    answers, said = UNFIT_ANSWERS[case]
    with pytest.raises(UsageError, match=said):
        tables_of(observed([change()]), answers=answers)
    assert Path("keys.yml").exists() is False
    with pytest.raises(UsageError, match=r"--keys keys.yml cannot be read: No such file"):
        read_keys("keys.yml")


# --- observations ----------------------------------------------------------------------------------------------------


def test_the_order_and_the_parts_of_the_records_make_no_difference() -> None:
    records = [(change("orders", {"id": n, "x" * (n % 3 + 1): n}, uuid=str(n)), n) for n in range(12)]
    records += [(change("lines", {"id": n}), n) for n in range(3)]
    records.append((change("twins", {"id": 1, "Name": "a", "NAME": "b"}), 1))
    whole = observed(records)
    assert [refusal.reason for refusal in tables_of(whole)[1]] == ["two columns of one name"]
    for seed in range(10):
        random.Random(seed).shuffle(records)
        parts = [observed(records[:7]), observed(records[7:])]
        rows = [row for part in parts for row in part.rows()]
        random.Random(seed).shuffle(rows)
        found = Observations.from_rows(rows)
        assert tables_of(found) == tables_of(whole)
        assert {place.table: of.records for place, of in found.tables.items()} == {"orders": 12, "lines": 3, "twins": 1}


def test_what_spark_runs_travels_to_executors_that_do_not_have_the_package() -> None:
    ship_by_value()
    records = [json.dumps(change()), "{", json.dumps(change("lines", {"id": 10**40, "x": 1.50}))]
    batch = pa.RecordBatch.from_pydict({"record": records, "object": ["a", None, "b"], "batch": [1, 1, 2]})
    function = pickle.loads(cloudpickle.dumps(staged_tables.reader(add_event)))
    rows = [text for made in function(iter([batch, batch])) for text in made.column("seen").to_pylist()]
    found = Observations.from_rows(rows)
    assert (found.nameless, {place.table: of.records for place, of in found.tables.items()}) == (
        2, {"orders": 2, "lines": 2},
    )  # fmt: skip
    content = pa.RecordBatch.from_pydict({"content": [avro_file({"id": ("int", 1)}), b""]})
    headers = pickle.loads(cloudpickle.dumps(avro_files._headers))
    (made,) = headers(iter([content]))
    assert [from_text(text).place.table for text in made.column("header").to_pylist()] == ["orders"]


def test_records_without_a_table_are_counted() -> None:
    found = Observations()
    for record in (
        None,
        "",
        "{",
        "7",
        "{}",
        '{"source_metadata": {"table": "a"}}',
        "[" * 5000,
        '{"source_metadata": []}',
    ):
        add_event(found, record, None, 1)
    assert (found.nameless, found.tables) == (8, {})
    assert Observations.from_rows([*found.rows(), *found.rows()]).nameless == 16
    found.merge(Observations(nameless=3))
    assert found.nameless == 11


class Staged:
    """Rows of staging, of which SQLite tells those that a condition is true of."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def where(self, condition: str) -> Staged:
        with sqlite3.connect(":memory:") as tables:
            tables.execute("create table staged (record, object, batch, source)")
            tables.executemany("insert into staged values (?, ?, ?, ?)", self.rows)
            return Staged(tables.execute(f"select * from staged where {condition}").fetchall())

    def select(self, *names: str) -> Staged:
        self.columns = {name: [row[at] for row in self.rows] for at, name in enumerate(names)}
        return self

    def mapInArrow(self, function: Any, schema: str) -> Staged:
        made = function(iter([pa.RecordBatch.from_pydict(self.columns)]))
        self.rows = [{"seen": text} for batch in made for text in batch.column("seen").to_pylist()]
        return self

    def collect(self) -> list[Any]:
        return self.rows


@pytest.mark.parametrize(("since", "tables"), [(None, ["a", "b", "c"]), (2, ["b", "c"]), (3, ["c"]), (4, [])])
def test_only_records_of_the_source_and_of_a_batch_and_later_ones_are_read(
    since: int | None, tables: list[str]
) -> None:
    rows = [(json.dumps(change(table)), f"o_{table}", batch, "datastream") for batch, table in enumerate("abc", 1)]
    rows.append((json.dumps(change("other")), "other", 3, "spanner"))
    staged: Any = Staged(rows)
    found = staged_tables.observed(staged, DATASTREAM, since)
    assert sorted(place.table for place in found.tables) == tables


def test_two_databases_with_tables_of_one_name_are_two_tables(tmp_path: Path) -> None:
    records = [change("ORDERS", scn=1, database=name) for name in ("DB1", "DB2", None)]
    for record in records:
        record["source_metadata"]["schema"] = "SHOP"
    *records, nowhere = records
    plan = generated(tmp_path, records, name="{database}_{table}")
    assert plan.written == ["db1_orders", "db2_orders"]
    assert "table='DB1.SHOP.ORDERS'" in (tmp_path / "db1_orders.sql").read_text()
    assert planned(tmp_path, records, name="{database}_{table}").files == {}
    assert [refusal.reason for refusal in planned(tmp_path, [*records, nowhere]).refusals] == ["database unknown"]


def test_an_object_of_two_tables_is_of_neither_alone(tmp_path: Path) -> None:
    """A model that reads the object takes the records of both."""
    records = [change("c", schema="a_b"), change("b_c", schema="a"), change("orders")]
    tables, refusals = tables_of(observed(records))
    assert refusals == []
    assert {table.label: table.objects for table in tables} == {
        "a.b_c": (), "a_b.c": (), "shop.orders": ("shop_orders",),
    }  # fmt: skip
    (tmp_path / "both.sql").write_text(
        "{{ config(materialized='current_state', unique_key='id') }}\n"
        "{{ reconcile.datastream_mysql(source('lake', 'shop_changes'), object='a_b_c') }}\n"
    )
    assert generated(tmp_path, records).written == ["b_c", "c", "orders"]


def test_select_and_exclude_are_patterns_of_names(tmp_path: Path) -> None:
    records = [change("orders"), change("lines"), change("orders", schema="crm")]
    assert planned(tmp_path, records, select=["shop.*"]).written == ["lines", "orders"]
    assert planned(tmp_path, records, select=["*.o*"], exclude=["crm.*"]).written == ["orders"]


def test_places_and_sources_of_odd_metadata() -> None:
    assert place_of({"schema": ["shop"], "table": "a", "database": 7}) == ("7", "shop", "a")
    assert place_of({"schema": "", "table": "a", "database": "d"}) == (None, "d", "a")
    assert place_of({"table": "a"}) is None and place_of("x") is None
    assert source_of("cdc", {"binlog_position": 0}) == "mysql" and source_of(None, {}) is None


def test_names_that_the_package_has_for_itself_are_left_out_and_said(tmp_path: Path) -> None:
    records = [change(payload={"id": 1, "_deleted": True, "_Change_type": "x", "a\nb": 1, "${HOME}": 1})]
    generated(tmp_path, records)
    text = (tmp_path / "orders.yml").read_text()
    assert text.count("# not declared, since the package takes no such name: ") == 4 and text.count("- name: ") == 2
    assert planned(tmp_path, records).files == {}
