"""How a value that Spanner returns is read: exactly, NULLs within arrays included, which the emulator cannot hold."""

import pytest
from google.protobuf.struct_pb2 import ListValue, Value
from pyspark.sql import types
from reconcile_jobs.errors import DataError
from reconcile_jobs.exact_text import reader_of
from reconcile_jobs.snapshot_spanner import Field

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
