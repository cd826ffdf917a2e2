"""How a value that Spanner returns is read: exactly, NULLs within arrays included, which the emulator cannot hold."""

from types import SimpleNamespace
from typing import Any

import pytest
from google.cloud.spanner_v1 import types as T
from google.protobuf.struct_pb2 import ListValue, Value
from pyspark.sql import types
from reconcile_jobs.exact_text import reader_of
from reconcile_jobs.process.errors import DataError, UsageError
from reconcile_jobs.snapshots import snapshot_spanner
from reconcile_jobs.snapshots.snapshot_spanner import Field, _fields
from reconcile_jobs.timestamps import nanoseconds

NULL = Value(null_value=0)


def text(said: str) -> Value:
    return Value(string_value=said)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (types.LongType(), text("9223372036854775807"), 9223372036854775807),
        (types.LongType(), NULL, None),
        (types.BooleanType(), Value(bool_value=False), False),
        (types.DoubleType(), Value(number_value=0.1), 0.1),
        (types.DoubleType(), text("-Infinity"), float("-inf")),
        (types.StringType(), text(""), ""),
    ],
)
def test_a_value_is_read_exactly(kind: types.DataType, value: Value, expected: object):
    assert Field("a", "a type", reader_of(kind)).read(value) == expected


COLUMNS = [("public", "orders", "id"), ("", "orders", "number"), ("sales", "orders", "total"), ("public", "o", "x")]


@pytest.mark.parametrize(
    ("table", "columns"), [("orders", ["id", "number"]), ("public.orders", ["id"]), ("sales.orders", ["total"])]
)
def test_a_table_is_of_the_schema_that_is_named_or_of_either_dialects_own(table: str, columns: list[str]):
    rows = [[text(said) for said in column] for column in COLUMNS]
    client: Any = SimpleNamespace(rows=lambda sql: rows)
    assert snapshot_spanner._all_columns(client, table) == [(column, None) for column in columns]


def test_bytes_arrive_in_base64():
    assert Field("a", "BYTES(MAX)", reader_of(types.BinaryType()), is_bytes=True).read(text("AP8=")) == b"\x00\xff"


def test_elements_that_are_null_keep_their_places():
    field = Field("a", "ARRAY<INT64>", reader_of(types.LongType()), is_array=True)
    assert field.read(Value(list_value=ListValue(values=[text("1"), NULL, text("2")]))) == [1, None, 2]
    assert field.read(Value(list_value=ListValue())) == []
    assert field.read(NULL) is None


def test_a_value_that_the_type_cannot_hold_is_named():
    with pytest.raises(DataError, match="Column a, INT64"):
        Field("a", "INT64", reader_of(types.IntegerType())).read(text("2147483648"))


# --- the types of columns ---------------------------------------------------------------------------------------------


def fields_of(*kinds: T.Type, asked: str | None = None) -> list[Field]:
    """Return how columns of these types are read, of a service that tells the types and no rows."""
    columns = [T.StructType.Field(name=f"c{number}", type_=kind) for number, kind in enumerate(kinds)]
    message = T.PartialResultSet.pb(
        T.PartialResultSet(metadata=T.ResultSetMetadata(row_type=T.StructType(fields=columns)))
    )
    call = SimpleNamespace(messages=lambda: iter([message]), close=lambda: None)
    client: Any = SimpleNamespace(
        session="s", retried=lambda once: once(), open=lambda method, request, patience: call
    )  # fmt: skip
    table: Any = SimpleNamespace(name="t", columns=[SimpleNamespace(name=column.name) for column in columns])
    return _fields(client, table, [asked] * len(kinds))


def kind_of(code: str, **said: Any) -> T.Type:
    return T.Type(code=T.TypeCode[code], **said)


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's parser of types needs a session."""
    known = {
        "string": types.StringType(), "binary": types.BinaryType(), "bigint": types.LongType(),
        "decimal(38,9)": types.DecimalType(38, 9),
    }  # fmt: skip
    monkeypatch.setattr(snapshot_spanner, "reader_of_type", lambda said: reader_of(known[said]))


PG_NUMERIC = kind_of("NUMERIC", type_annotation=T.TypeAnnotationCode.PG_NUMERIC)


def test_numeric_of_postgresql_is_text_which_has_all_of_its_digits_and_nan(without_spark: None):
    found = fields_of(
        kind_of("NUMERIC"), PG_NUMERIC, kind_of("ARRAY", array_element_type=PG_NUMERIC),
        kind_of("ARRAY", array_element_type=kind_of("NUMERIC")), kind_of("ARRAY", array_element_type=kind_of("BYTES")),
    )  # fmt: skip
    assert [(field.stored_type, field.is_array, field.is_bytes) for field in found] == [
        ("decimal(38,9)", False, False), ("string", False, False), ("array<string>", True, False),
        ("array<decimal(38,9)>", True, False), ("array<binary>", True, True),
    ]  # fmt: skip


def test_a_type_that_spark_does_not_have_is_refused_with_one_that_it_has(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(snapshot_spanner, "reader_of_type", lambda said: None)
    with pytest.raises(UsageError) as told:
        fields_of(kind_of("INT64"), asked="blob")
    assert str(told.value) == "the column c0 is INT64, and cannot become blob: declare bigint."


def test_what_cannot_become_a_column_is_named_at_once(without_spark: None):
    with pytest.raises(UsageError) as told:
        fields_of(kind_of("STRUCT"), kind_of("ARRAY", array_element_type=kind_of("INT64")), asked="string")
    assert str(told.value) == (
        "the column c0 is STRUCT, which the job cannot read: leave it out, by naming the others in --columns; the "
        "column c1 is ARRAY<INT64>, and its type cannot be chosen: name it without a type in --columns."
    )


def test_an_earlier_time_may_be_asked_for_up_to_spanners_own() -> None:
    now = nanoseconds("2026-05-01T09:00:00.000000001Z")
    client: Any = SimpleNamespace(now=lambda: now)
    assert snapshot_spanner._moment(client, "now") == now
    for at in ("2026-05-01T09:00:00.000000001Z", "2026-05-01T08:59:59Z"):
        assert snapshot_spanner._moment(client, at) == nanoseconds(at)
    with pytest.raises(UsageError, match=r"^--at .*002Z is in the future: the time of Spanner is 2026-05-01T09:00:00"):
        snapshot_spanner._moment(client, "2026-05-01T09:00:00.000000002Z")
