"""Texts become exactly the value that they denote, or are refused with a reason."""

import math
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as t
from reconcile_jobs.exact_text import NotExact, reader_of


def read(data_type: t.DataType, text: str) -> object:
    """Read a text, by way of Arrow as Spark gets it."""
    reader = reader_of(data_type)
    assert reader is not None
    return pa.array([reader.read(text)], reader.arrow())[0].as_py()


ACCEPTED = [
    (t.BooleanType(), "t", True),
    (t.BooleanType(), "False", False),
    (t.BooleanType(), "1", True),
    *((t.BooleanType(), text, True) for text in ("T", "true", "TRUE")),
    *((t.BooleanType(), text, False) for text in ("f", "F", "0")),
    (t.ByteType(), "-128", -128),
    (t.ShortType(), "+32767", 32767),
    (t.IntegerType(), "007", 7),
    (t.LongType(), "-9223372036854775808", -(1 << 63)),
    (t.LongType(), "12.000", 12),
    (t.LongType(), "1.2E+1", 12),
    (t.DecimalType(38, 10), "1.12345678900000", Decimal("1.123456789")),
    (
        t.DecimalType(38, 10),
        "-9999999999999999999999999999.9999999999",
        Decimal("-9999999999999999999999999999.9999999999"),
    ),
    (t.DecimalType(38, 0), "99999999999999999999999999999999999999", Decimal("9" * 38)),
    (t.DecimalType(5, 5), "0.12345", Decimal("0.12345")),
    (t.DecimalType(5, 5), ".5", Decimal("0.5")),
    (t.DecimalType(12, 2), "1e3", Decimal(1000)),
    (t.DecimalType(12, 2), "0e999999999", Decimal(0)),
    (t.DecimalType(12, 2), "0" * 1000 + "1.50" + "0" * 1000, Decimal("1.5")),
    (t.DoubleType(), "1e-300", 1e-300),
    (t.DoubleType(), "Infinity", math.inf),
    (t.DoubleType(), "-inf", -math.inf),
    *((t.DoubleType(), text, math.inf) for text in ("+Infinity", "INF", "+inf")),
    *((t.FloatType(), text, -math.inf) for text in ("-Infinity", "-INF")),
    (t.StringType(), " NULL\n", " NULL\n"),
    (t.StringType(), "", ""),
    (t.VarcharType(3), "αβγ", "αβγ"),
    (t.CharType(3), "a", "a"),
    (t.BinaryType(), r"\x", b""),
    (t.BinaryType(), r"\x9F7a", b"\x9f\x7a"),
    (t.DateType(), "0001-01-01", date(1, 1, 1)),
    (t.DateType(), "2024-02-29 00:00:00", date(2024, 2, 29)),
    (t.TimestampType(), "2026-11-21 11:33:13.049844+00", datetime(2026, 11, 21, 11, 33, 13, 49844, UTC)),
    (t.TimestampType(), "2026-11-21T11:33:13Z", datetime(2026, 11, 21, 11, 33, 13, tzinfo=UTC)),
    (t.TimestampType(), "2026-11-21 11:33:13.5 UTC", datetime(2026, 11, 21, 11, 33, 13, 500000, UTC)),
    (t.TimestampType(), "2026-11-21 00:10:00-05:30", datetime(2026, 11, 21, 5, 40, tzinfo=UTC)),
    (t.TimestampType(), "1900-01-01 00:00:00+00:19:32", datetime(1899, 12, 31, 23, 40, 28, tzinfo=UTC)),
    (t.TimestampType(), "2026-11-21 00:10:00-0530", datetime(2026, 11, 21, 5, 40, tzinfo=UTC)),
    (t.TimestampType(), "2026-11-21 00:10:00 +02", datetime(2026, 11, 20, 22, 10, tzinfo=UTC)),
    (t.TimestampType(), "2026-11-21 23:59:59-18:59:59", datetime(2026, 11, 22, 18, 59, 58, tzinfo=UTC)),
    (t.TimestampType(), "0001-01-01 00:00:00+00", datetime(1, 1, 1, tzinfo=UTC)),
    (t.TimestampType(), "9999-12-31 23:59:59.999999+00", datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),
    (t.ByteType(), "-128", -128),
    (t.ShortType(), "-32768", -32768),
    (t.ShortType(), "32767", 32767),
    (t.IntegerType(), "-2147483648", -2147483648),
    (t.TimestampType(), "2026-11-21 11:33", datetime(2026, 11, 21, 11, 33, tzinfo=UTC)),
    (t.TimestampType(), "2026-11-21", datetime(2026, 11, 21, tzinfo=UTC)),
    (t.TimestampType(), "2026-11-21 11:33:13.123456000", datetime(2026, 11, 21, 11, 33, 13, 123456, UTC)),
    (t.TimestampType(), "9999-12-31 23:59:59.999999", datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),
    (t.TimestampNTZType(), "1969-12-31 23:59:59.999999", datetime(1969, 12, 31, 23, 59, 59, 999999)),
]

REFUSED = [
    (t.BooleanType(), "yes", "none of"),
    (t.BooleanType(), "", "none of"),
    (t.ByteType(), "128", "outside"),
    (t.IntegerType(), "2147483648", "outside"),
    (t.LongType(), "9223372036854775808", "outside"),
    (t.LongType(), "9" * 5000, "digits before"),
    (t.LongType(), "12.5", "rounded"),
    (t.LongType(), "1e999999999", "digits before"),
    (t.LongType(), "abc", "not a number"),
    (t.LongType(), " 12", "not a number"),
    (t.LongType(), "1_000", "not a number"),
    (t.LongType(), "١٢", "not a number"),
    (t.LongType(), "0x1F", "not a number"),
    (t.LongType(), "", "not a number"),
    (t.DecimalType(38, 10), "1.123456789012", "rounded to 10"),
    (t.DecimalType(38, 10), "1e-11", "rounded"),
    (t.DecimalType(38, 0), "1" * 39, "digits before"),
    (t.DecimalType(5, 5), "1", "digits before"),
    (t.DecimalType(12, 2), "NaN", "not a number"),
    (t.DecimalType(12, 2), "1,50", "not a number"),
    (t.DoubleType(), "1e400", "too large"),
    (t.DoubleType(), "1.0d", "not a number"),
    (t.FloatType(), "1e39", "too large"),
    (t.VarcharType(3), "abcd", "4 characters"),
    (t.VarcharType(3), "abc ", "4 characters"),
    (t.BinaryType(), "9f7a", "not binary"),
    (t.BinaryType(), r"\x9f7", "not binary"),
    (t.DateType(), "2026-02-30", "does not exist"),
    (t.DateType(), "2026", "form"),
    (t.DateType(), "21-NOV-26", "form"),
    (t.DateType(), "2026-11-21 00:00:01", "time of day"),
    (t.DateType(), "2026-11-21 00:00:00+02", "time zone"),
    (t.DateType(), "0000-01-01", "does not exist"),
    (t.TimestampType(), "2026-02-29 11:00:00", "does not exist"),
    (t.TimestampType(), "2026-11-21 24:00:00", "does not exist"),
    (t.TimestampType(), "2026-11-21 11:33:60", "does not exist"),
    (t.TimestampType(), "2026-11-21 11:60:00", "does not exist"),
    (t.TimestampType(), "2026-11-21 11:33:13+19", "time zone that does not exist"),
    (t.TimestampType(), "2026-11-21 11:33:13+18:60", "time zone that does not exist"),
    (t.TimestampType(), "2026-11-21 11:33:13+00:00:60", "time zone that does not exist"),
    (t.TimestampType(), "0001-01-01 00:00:00+00:00:01", "outside the years"),
    (t.TimestampType(), "9999-12-31 23:59:59.999999-00:00:01", "outside the years"),
    (t.ByteType(), "-129", "outside"),
    (t.ShortType(), "32768", "outside"),
    (t.ShortType(), "-32769", "outside"),
    (t.TimestampType(), "2026-11-21 11:33:13.1234567", "microsecond"),
    (t.TimestampType(), "2026-11-21 11:33:13+25", "time zone"),
    (t.TimestampType(), "2026-11-21 11:33:13 Europe/Berlin", "form"),
    (t.TimestampType(), "0001-01-01 00:00:00+01", "outside the years"),
    (t.TimestampType(), "9999-12-31 23:59:59-01", "outside the years"),
    (t.TimestampType(), "0044-03-15 BC", "form"),
    (t.TimestampType(), "infinity", "form"),
    (t.TimestampNTZType(), "2026-11-21 11:33:13+00", "time zone"),
]


@pytest.mark.parametrize(("data_type", "text", "expected"), ACCEPTED)
def test_accepted(data_type, text, expected):
    value = read(data_type, text)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(("data_type", "text", "reason"), REFUSED)
def test_refused(data_type, text, reason):
    with pytest.raises(NotExact, match=reason):
        read(data_type, text)


def test_not_a_number_and_negative_zero():
    assert math.isnan(read(t.DoubleType(), "NaN"))
    assert math.copysign(1, read(t.DoubleType(), "-0")) == -1


@pytest.mark.parametrize(
    "data_type",
    [
        t.ArrayType(t.IntegerType()),
        t.StructType(),
        t.VariantType(),
        t.DayTimeIntervalType(),
        t.NullType(),
        t.StringType("UTF8_LCASE"),
    ],
)
def test_types_that_csv_cannot_carry(data_type):
    assert reader_of(data_type) is None


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_any_bigint(number):
    assert read(t.LongType(), str(number)) == number


@given(st.integers(1, 38).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, p))), st.data())
def test_any_decimal(size, data):
    precision, scale = size
    number = Decimal(f"{data.draw(st.integers(1 - 10**precision, 10**precision - 1))}E-{scale}")
    assert read(t.DecimalType(precision, scale), f"{number:f}") == number
    assert read(t.DecimalType(precision, scale), str(number)) == number


@given(st.floats(allow_nan=False))
def test_any_double(number):
    assert struct.pack("d", read(t.DoubleType(), repr(number))) == struct.pack("d", number)


@given(st.floats(allow_nan=False, width=32))
def test_any_float(number):
    assert read(t.FloatType(), repr(number)) == number


@given(
    st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.none()),
    st.timedeltas(timedelta(hours=-18), timedelta(hours=18)),
)
def test_any_moment(moment, offset):
    offset = timedelta(minutes=offset // timedelta(minutes=1))
    sign = "-" if offset < timedelta() else "+"
    hours, minutes = divmod(abs(offset) // timedelta(minutes=1), 60)
    text = f"{moment.isoformat(' ')}{sign}{hours:02}:{minutes:02}"
    assert read(t.TimestampType(), text) == (moment - offset).replace(tzinfo=UTC)
    assert read(t.TimestampNTZType(), moment.isoformat()) == moment
    assert read(t.DateType(), moment.date().isoformat()) == moment.date()
