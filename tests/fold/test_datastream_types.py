"""Every type of Datastream, as Avro and as JSON files hold it, comes to the value that was written or to quarantine.

What is expected is not of this package's making: the values are those that a source's own client shows.
"""

from __future__ import annotations

import json
from base64 import b64encode
from decimal import Decimal
from math import inf, nan
from typing import Any, NamedTuple

import pytest
from avro_files import (
    DATE,
    JSON,
    MICROS,
    NUMBER,
    OFFSET,
    TIME,
    TIME_INTERVAL,
    array,
    avro_events,
    decimal,
    nested,
    record,
)  # fmt: skip
from datastream import Staged, event
from memory import Memory
from pyspark.sql import SparkSession
from reconcile_jobs.avro_json import json_records

TIMESTAMP_TZ = record("timestampTz", timestamp=MICROS, offset=OFFSET)
TIME_TZ = record("timeTz", time=TIME, offset=OFFSET)
DATETIME = record("datetime", date=DATE, time=TIME)
INTERVAL = record("interval", months="int", hours="int", micros="long")
VARCHAR = record("varchar", value="string", length="int")
GEOMETRY = record("geometry", value="bytes", srid="int", type="string")
NOON = 1795262400_000000  # 2026-11-21 12:00 UTC, in microseconds
HOUR = 3_600_000  # in milliseconds, as offsets are
REFUSED = "is not exactly a"


def meta(data_type: str, **said: Any) -> dict[str, Any]:
    return {"data_type": data_type, "config": {"meta": said}}


HEX, BASE64 = meta("binary", encoding="hex"), meta("binary", encoding="base64")
AS_JSON, AS_TIME = meta("string", encoding="json"), meta("string", encoding="microseconds")
AS_INTERVAL, AS_CLOCK = meta("string", encoding="interval"), meta("string", encoding="time")
UNKNOWN = (
    "(the column does not declare how text encodes bytes; declare `meta: {encoding: hex}` or `meta: "
    "{encoding: base64}`)"
)
ABSENT: Any = object()


class Digits(str):
    """JSON as it stands in the file, whose digits Python would not keep."""


class Case(NamedTuple):
    """A value as Avro and JSON have it, the column that it comes to, and what that shows, or a reason in brackets."""

    name: str
    column: Any
    type: Any
    avro: Any
    json: Any
    shows: str | None
    json_shows: Any = ABSENT  # where the two formats cannot be told alike
    source: str = "postgresql"


def refused(reason: str = REFUSED) -> str:
    return f"({reason})"


CASES = [
    Case("BOOLEAN", "boolean", "boolean", False, False, "false"),
    Case("BOOLEAN, true", "boolean", "boolean", True, True, "true"),
    Case("INTEGER, largest", "int", "int", 2**31 - 1, 2**31 - 1, "2147483647"),
    Case("INTEGER, least", "int", "int", -(2**31), -(2**31), "-2147483648"),
    Case("LONG, largest", "bigint", "long", 2**63 - 1, 2**63 - 1, "9223372036854775807"),
    Case("LONG, least", "bigint", "long", -(2**63), -(2**63), "-9223372036854775808"),
    Case("FLOAT", "float", "float", 45.67, 45.67, "45.67"),
    Case("FLOAT, largest", "float", "float", 3.4028234663852886e38, 3.4028235e38, "3.4028235E38"),
    Case("FLOAT, least", "float", "float", -3.4028234663852886e38, -3.4028235e38, "-3.4028235E38"),
    Case("FLOAT, smallest", "float", "float", 1.401298464324817e-45, 1.4e-45, "1.4E-45"),
    Case("FLOAT, infinite", "float", "float", inf, "Infinity", "Infinity"),
    Case("FLOAT, infinite, as JSON's extension", "float", "float", -inf, Digits("-Infinity"), "-Infinity"),
    Case("FLOAT, NaN", "float", "float", nan, Digits("NaN"), "NaN"),
    Case("FLOAT beyond the largest", "float", "double", 3.5e38, 3.5e38, refused("a float; declare string")),
    Case(
        "DOUBLE, largest", "double", "double", 1.7976931348623157e308, 1.7976931348623157e308, "1.7976931348623157E308"
    ),
    Case(
        "DOUBLE, least", "double", "double", -1.7976931348623157e308, -1.7976931348623157e308, "-1.7976931348623157E308"
    ),
    Case("DOUBLE beyond the largest", "double", NUMBER, "1e400", Digits("1e400"), refused("a double; declare string")),
    Case("DOUBLE, a zero with a sign", "double", "double", -0.0, Digits("-0.0"), "0.0"),
    Case("DOUBLE, infinite, without a sign", "double", "double", inf, "Infinity", "Infinity"),
    Case("DOUBLE, infinite, as JSON's extension", "double", "double", inf, Digits("Infinity"), "Infinity"),
    Case("DOUBLE, NaN as JSON's extension", "double", "double", nan, Digits("NaN"), "NaN"),
    Case("DOUBLE, NaN as text", "string", "double", nan, Digits("NaN"), "NaN"),
    Case("DOUBLE, infinite, as text", "string", "double", -inf, Digits("-Infinity"), "-Infinity"),
    *(
        Case(f"{said} as {of}", of, "double", value, json_, refused(f"a {of}; declare string"))
        for said, value, json_ in (("NaN", nan, Digits("NaN")), ("infinity", -inf, Digits("-Infinity")))
        for of in ("bigint", "decimal(38,10)", "timestamp", "boolean")
    ),
    Case("DOUBLE", "double", "double", 5e-324, 5e-324, "4.9E-324"),
    Case("DOUBLE, NaN", "double", "double", nan, "NaN", "NaN"),
    Case("DOUBLE, infinite", "double", "double", -inf, "-Infinity", "-Infinity"),
    Case("DECIMAL", "decimal(10,2)", decimal(10, 2), Decimal("45678.90"), Digits("45678.90"), "45678.90"),
    Case(
        "DECIMAL, least",
        "decimal(38,10)",
        decimal(38, 10),
        Decimal("-" + "9" * 28 + "." + "9" * 10),
        Digits("-" + "9" * 28 + "." + "9" * 10),
        "-" + "9" * 28 + "." + "9" * 10,
    ),
    Case(
        "DECIMAL(65,30) as text",
        "string",
        decimal(65, 30),
        Decimal("9" * 35 + "." + "9" * 29 + "0"),
        Digits("9" * 35 + "." + "9" * 29 + "0"),
        "9" * 35 + "." + "9" * 29 + "0",
    ),
    Case(
        "DECIMAL(65,30) that fits",
        "decimal(20,2)",
        decimal(65, 30),
        Decimal("1.50" + "0" * 28),
        Digits("1.50" + "0" * 28),
        "1.50",
    ),
    Case(
        "DECIMAL(65,30) that does not",
        "decimal(20,2)",
        decimal(65, 30),
        Decimal("1.505" + "0" * 27),
        Digits("1.505" + "0" * 27),
        refused(),
    ),
    Case("NUMBER", "decimal(20,0)", NUMBER, "18446744073709551615", "18446744073709551615", "18446744073709551615"),
    Case("NUMBER, least", "decimal(38,0)", NUMBER, "-" + "9" * 38, "-" + "9" * 38, "-" + "9" * 38),
    Case("NUMBER of more digits", "decimal(38,0)", NUMBER, "1" + "0" * 38, "1" + "0" * 38, refused("declare string")),
    Case("NUMBER, negative", "decimal(20,0)", NUMBER, "-1", "-1", "-1"),
    Case("NUMBER, empty", "decimal(20,0)", NUMBER, "", "", refused("a decimal(20,0); declare string")),
    Case("NUMBER, empty, as text", "string", NUMBER, "", "", ""),
    Case("NUMBER as text", "string", NUMBER, "1.100", "1.100", "1.100"),
    Case("STRING, empty", "string", "string", "", "", ""),
    Case(
        "STRING that looks like JSON", "string", "string", '{"b": 1,  "a": 2}', '{"b": 1,  "a": 2}', '{"b": 1,  "a": 2}'
    ),
    Case("STRING that looks like a moment", "string", "string", "+29 4247", "+29 4247", "+29 4247"),
    Case("VARCHAR of 2020", "string", VARCHAR, {"value": "Ünterm", "length": 40}, "Ünterm", "Ünterm"),
    Case(
        "VARCHAR of 2020 that is too long",
        "varchar(5)",
        VARCHAR,
        {"value": "Ünterm", "length": 40},
        "Ünterm",
        refused(),
    ),
    Case("VARCHAR of 2021", "string", {"type": "string", "logicalType": "varchar", "length": 40}, "a", "a", "a"),
    Case("VARCHAR of 2020, empty", "string", VARCHAR, {"value": "", "length": 40}, "", ""),
    Case("VARCHAR of 2021, empty", "string", {"type": "string", "logicalType": "varchar", "length": 40}, "", "", ""),
    Case("DATE, largest", "date", DATE, 2932896, "9999-12-31", "9999-12-31"),
    Case("DATE after 9999", "date", DATE, 2932897, "+10000-01-01", "+10000-01-01"),
    Case("DATE after 9999 without a sign", "date", DATE, 2932897, "10000-01-01", "+10000-01-01"),
    Case("DATE of PostgreSQL, largest", "date", DATE, 2145031948, ABSENT, refused("a date; declare string")),
    Case("DATE before 1", "date", DATE, -719163, "0000-12-31", "0000-12-31"),
    Case("DATE of PostgreSQL, least", "date", DATE, -2440588, "-4713-11-24", "-4713-11-24"),
    Case("DATE as text", "string", DATE, -2440588, "-4713-11-24", "-4713-11-24"),
    Case(
        "DATE as PostgreSQL's text before 1",
        "date",
        "string",
        "0044-03-15 BC",
        "0044-03-15 BC",
        refused("declare string"),
    ),
    Case("DATE, infinity", "date", "string", "infinity", "infinity", refused("a date; declare string")),
    Case("DATE", "date", DATE, -719162, "0001-01-01", "0001-01-01"),
    Case("DATE as a midnight", "date", MICROS, NOON - 12 * 3600 * 10**6, "2026-11-21T00:00:00.000000Z", "2026-11-21"),
    Case("DATE as a noon", "date", MICROS, NOON, "2026-11-21T12:00:00.000000Z", refused("declare timestamp or")),
    Case(
        "DATETIME",
        "timestamp_ntz",
        DATETIME,
        {"date": 20778, "time": 30930000001},
        "2026-11-21T08:35:30.000001",
        "2026-11-21 08:35:30.000001",
    ),
    Case(
        "DATETIME, least",
        "timestamp_ntz",
        DATETIME,
        {"date": -719162, "time": 0},
        "0001-01-01T00:00:00",
        "0001-01-01 00:00:00",
    ),
    Case(
        "DATETIME, largest",
        "timestamp_ntz",
        DATETIME,
        {"date": 2932896, "time": 86399_999999},
        "9999-12-31T23:59:59.999999",
        "9999-12-31 23:59:59.999999",
    ),
    Case(
        "DATETIME as text",
        "string",
        DATETIME,
        {"date": 20778, "time": 0},
        "2026-11-21T00:00:00.000000",
        "2026-11-21T00:00:00.000000",
    ),
    Case(
        "DATETIME is no moment",
        "timestamp",
        DATETIME,
        {"date": 20778, "time": 0},
        {"date": "2026-11-21", "time": "00:00:00"},
        refused("a timestamp; declare timestamp_ntz"),
    ),
    Case("TIMESTAMP", "timestamp", MICROS, NOON + 1, "2026-11-21T12:00:00.000001Z", "2026-11-21 12:00:00.000001"),
    Case(
        "TIMESTAMP, least",
        "timestamp",
        MICROS,
        -62135596800_000000,
        "0001-01-01T00:00:00.000000Z",
        "0001-01-01 00:00:00",
    ),
    Case(
        "TIMESTAMP, largest",
        "timestamp",
        MICROS,
        253402300799_999999,
        "9999-12-31T23:59:59.999999Z",
        "9999-12-31 23:59:59.999999",
    ),
    Case("TIMESTAMP before 1970", "timestamp", MICROS, -1, "1969-12-31T23:59:59.999999Z", "1969-12-31 23:59:59.999999"),
    Case("TIMESTAMP as text", "string", MICROS, -1, "1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
    Case(
        "TIMESTAMP finer than a microsecond",
        "timestamp",
        "string",
        "2026-11-21T12:00:00.0000001Z",
        "2026-11-21T12:00:00.0000001Z",
        refused("finer than a microsecond"),
    ),
    Case("TIMESTAMP with a blank, no Z", "timestamp", MICROS, NOON, "2026-11-21 12:00:00", "2026-11-21 12:00:00"),
    Case(
        "TIMESTAMP of a wall clock", "timestamp_ntz", MICROS, NOON, "2026-11-21T12:00:00.000000Z", "2026-11-21 12:00:00"
    ),
    Case(
        "TIMESTAMP_TZ",
        "timestamp",
        TIMESTAMP_TZ,
        {"timestamp": NOON, "offset": HOUR},
        "2026-11-21T13:00:00+01:00",
        "2026-11-21 12:00:00",
    ),
    Case(
        "TIMESTAMP_TZ, negative offset",
        "timestamp",
        TIMESTAMP_TZ,
        {"timestamp": NOON, "offset": -9 * HOUR // 2},
        "2026-11-21T07:30:00-04:30",
        "2026-11-21 12:00:00",
    ),
    Case(
        "TIMESTAMP_TZ, least",
        "timestamp",
        TIMESTAMP_TZ,
        {"timestamp": -62135596800_000000, "offset": -57_540_000},
        "0001-01-01T00:00:00Z",
        "0001-01-01 00:00:00",
    ),
    Case(
        "TIMESTAMP_TZ, largest",
        "timestamp",
        TIMESTAMP_TZ,
        {"timestamp": 253402300799_999999, "offset": 57_540_000},
        "+10000-01-01T15:58:59.999999+15:59",
        "9999-12-31 23:59:59.999999",
    ),
    Case(
        "TIMESTAMP_TZ as text",
        "string",
        TIMESTAMP_TZ,
        {"timestamp": NOON, "offset": HOUR},
        "2026-11-21T12:00:00.000000Z",
        "2026-11-21T12:00:00.000000Z",
    ),
    Case(
        "TIMESTAMP_TZ as a record of JSON",
        "timestamp",
        TIMESTAMP_TZ,
        {"timestamp": NOON, "offset": 0},
        {"timestamp": "2026-11-21T12:00:00Z", "offset": "00:00"},
        "2026-11-21 12:00:00",
    ),
    Case(
        "TIMESTAMP_TZ is no wall clock",
        "timestamp_ntz",
        TIMESTAMP_TZ,
        {"timestamp": NOON, "offset": HOUR},
        "2026-11-21T13:00:00+01:00",
        refused("declare timestamp"),
    ),
    Case("TIME", "string", TIME, 30930000001, "08:35:30.000001", "08:35:30.000001"),
    Case("TIME, least", "string", TIME, 0, "00:00:00.000000", "00:00:00.000000"),
    Case("TIME, largest", "string", TIME, 86399_999999, "23:59:59.999999", "23:59:59.999999"),
    Case("TIME of 24 hours", "string", TIME, 86400_000000, "24:00:00.000000", "24:00:00.000000"),
    Case("TIME without digits", AS_CLOCK, TIME, 30930_000000, "08:35:30", "08:35:30.000000"),
    Case("TIME of few digits", AS_CLOCK, TIME, 30930_500000, "08:35:30.5", "08:35:30.500000"),
    Case(
        "TIME of more digits",
        AS_CLOCK,
        "string",
        "08:35:30.5000001",
        "08:35:30.5000001",
        refused("remove `encoding: time`"),
    ),
    Case(
        "TIME that is longer than its column",
        meta("varchar(5)", encoding="time"),
        "string",
        "08:30:00",
        "08:30:00",
        refused("a varchar(5); declare string"),
    ),
    Case(
        "TIME that is none, in a short column",
        meta("varchar(5)", encoding="time"),
        "string",
        "soon",
        "soon",
        refused("a varchar(5); remove `encoding: time` from its meta"),
    ),
    Case("TIME without seconds", AS_CLOCK, "string", "08:35", "08:35", "08:35:00.000000"),
    Case("TIME that is none", AS_CLOCK, "string", "soon", "soon", refused("remove `encoding: time` from its meta")),
    Case("TIME that is a number", AS_CLOCK, TIME_INTERVAL, 1, 1, refused("remove `encoding: time` from its meta")),
    Case(
        "TIME_TZ without digits",
        AS_CLOCK,
        TIME_TZ,
        {"time": 30930_000000, "offset": -9 * HOUR // 2},
        "08:35:30-0430",
        "08:35:30.000000-04:30",
    ),
    Case("TIME_TZ in UTC", AS_CLOCK, TIME_TZ, {"time": 1, "offset": 0}, "00:00:00.000001Z", "00:00:00.000001+00:00"),
    Case("TIME_TZ of hours", AS_CLOCK, TIME_TZ, {"time": 0, "offset": HOUR}, "00:00:00+01", "00:00:00.000000+01:00"),
    Case(
        "TIME_TZ with seconds of offset",
        AS_CLOCK,
        TIME_TZ,
        {"time": 0, "offset": -57_599_000},
        "00:00:00-15:59:59",
        "00:00:00.000000-15:59:59",
    ),
    Case(
        "TIME_TZ, largest",
        "string",
        TIME_TZ,
        {"time": 86400_000000, "offset": -57_599_000},
        "24:00:00.000000-15:59:59",
        "24:00:00.000000-15:59:59",
    ),
    Case(
        "TIME_TZ",
        "string",
        TIME_TZ,
        {"time": 30930000001, "offset": -9 * HOUR // 2},
        "08:35:30.000001-04:30",
        "08:35:30.000001-04:30",
    ),
    Case("TIME_TZ, UTC", "string", TIME_TZ, {"time": 0, "offset": 0}, "00:00:00.000000+00:00", "00:00:00.000000+00:00"),
    Case("TIME_INTERVAL", AS_TIME, TIME_INTERVAL, 55_845_000_000, 55_845_000_000, "15:30:45.000000"),
    Case("TIME_INTERVAL, least", AS_TIME, TIME_INTERVAL, -3020399_000_000, -3020399_000_000, "-838:59:59.000000"),
    Case("TIME_INTERVAL, largest", AS_TIME, TIME_INTERVAL, 3020399_000_000, 3020399_000_000, "838:59:59.000000"),
    Case("TIME_INTERVAL of a thousandth", AS_TIME, TIME_INTERVAL, -1000, -1000, "-00:00:00.001000"),
    Case("TIME_INTERVAL, nothing", AS_TIME, TIME_INTERVAL, 0, 0, "00:00:00.000000"),
    Case("TIME_INTERVAL of ten hours", AS_TIME, TIME_INTERVAL, 36_000_000_000, 36_000_000_000, "10:00:00.000000"),
    Case("TIME_INTERVAL, least of 64 bits", AS_TIME, TIME_INTERVAL, -(2**63), -(2**63), "-2562047788:00:54.775808"),
    Case("TIME_INTERVAL, largest of 64 bits", AS_TIME, TIME_INTERVAL, 2**63 - 1, 2**63 - 1, "2562047788:00:54.775807"),
    Case(
        "TIME_INTERVAL that is a fraction", AS_TIME, "double", 1.5, 1.5, refused("remove `encoding: microseconds` from")
    ),
    Case("TIME_INTERVAL as a number", "bigint", TIME_INTERVAL, -1, -1, "-1"),
    Case("TIME_INTERVAL, not declared", "string", TIME_INTERVAL, 1_000_000, 1_000_000, "00:00:01.000000", "1000000"),
    Case(
        "INTERVAL",
        AS_INTERVAL,
        INTERVAL,
        {"months": 14, "hours": 76, "micros": 306_789_000},
        "P1Y2M3DT4H5M6.789S",
        "P14MT76H306.789000S",
    ),
    Case(
        "INTERVAL, signs apart",
        AS_INTERVAL,
        INTERVAL,
        {"months": -1, "hours": 24, "micros": -500_000},
        "P-1M1DT-0.5S",
        "P-1MT24H-0.500000S",
    ),
    Case("INTERVAL, nothing", AS_INTERVAL, INTERVAL, {"months": 0, "hours": 0, "micros": 0}, "PT0S", "P0MT0H0.000000S"),
    *(
        Case(
            f"INTERVAL, {said}",
            AS_INTERVAL,
            INTERVAL,
            {"months": months, "hours": hours, "micros": micros},
            text,
            f"P{months}MT{hours}H{Decimal(micros).scaleb(-6):.6f}S",
        )
        for said, months, hours, micros, text in (
            ("least", -(2**31), -(2**31), -(2**63), "P-2147483648MT-2147483648H-9223372036854.775808S"),
            ("largest", 2**31 - 1, 2**31 - 1, 2**63 - 1, "P2147483647MT2147483647H9223372036854.775807S"),
            ("as a record of JSON", 14, -76, 306_789_000, {"months": 14, "hours": -76, "micros": 306_789_000}),
            ("least as a record", -(2**31), 0, -(2**63), {"hours": 0, "micros": -(2**63), "months": -(2**31)}),
        )
    ),
    *(
        Case(f"INTERVAL of {text}", AS_INTERVAL, "string", text, text, shows)
        for text, shows in (
            ("P2147483647D", "P0MT51539607528H0.000000S"),
            ("PT2562047788H", "P0MT2562047788H0.000000S"),
            ("P178956970Y7M", "P2147483647MT0H0.000000S"),
            ("P3000000000M", "P3000000000MT0H0.000000S"),
            ("PT9223372036854.775807S", "P0MT0H9223372036854.775807S"),
            ("PT-2562047788H-54.775808S", "P0MT-2562047788H-54.775808S"),
            ("PT153722867280M54.775807S", "P0MT0H9223372036854.775807S"),
            ("P1W-1D", "P0MT144H0.000000S"),
            (f"P{'9' * 21}M", refused("remove `encoding: interval` from")),
            (f"PT{'9' * 21}S", refused("remove `encoding: interval` from")),
            ("PT0.1234567S", refused("remove `encoding: interval` from")),
        )
    ),
    Case(
        "INTERVAL of other fields",
        AS_INTERVAL,
        JSON,
        '{"months": 1, "hours": 1, "micros": 1, "days": 1}',
        {"months": 1, "hours": 1, "micros": 1, "days": 1},
        refused("remove `encoding: interval` from"),
    ),
    Case(
        "INTERVAL of fractions",
        AS_INTERVAL,
        JSON,
        '{"months": 1.5, "hours": 1, "micros": 1}',
        {"months": 1.5, "hours": 1, "micros": 1},
        refused("remove `encoding: interval` from"),
    ),
    Case(
        "INTERVAL of no form", AS_INTERVAL, "string", "a while", "a while", refused("remove `encoding: interval` from")
    ),
    Case(
        "INTERVAL, not declared",
        "string",
        INTERVAL,
        {"months": 14, "hours": 76, "micros": 1},
        "P14MT76H0.000001S",
        "P14MT76H0.000001S",
    ),
    Case(
        "JSON",
        "string",
        JSON,
        '{"b": [1, 1.5, null], "a": {"x": "ü\\"", "é": true}}',
        {"b": [1, 1.5, None], "a": {"x": 'ü"', "é": True}},
        '{"a":{"x":"ü\\"","é":true},"b":[1,1.5,null]}',
    ),
    Case(
        "JSON that is longer than its column",
        meta("varchar(5)", encoding="json"),
        JSON,
        '{"a": "long"}',
        {"a": "long"},
        refused("a varchar(5); declare string"),
    ),
    Case("JSON, a list", "string", JSON, " [ ] ", [], "[]"),
    Case("JSON, an empty object", AS_JSON, JSON, "{ }", {}, "{}"),
    Case("JSON, a text", AS_JSON, JSON, ' "a"', "a", '"a"'),
    Case("JSON, a number", AS_JSON, JSON, "12", 12, "12"),
    Case("JSON, a text and not declared", "string", JSON, '"a"', "a", refused("with `meta: {encoding: json}`"), "a"),
    Case(
        "JSON with more digits than a double",
        "string",
        JSON,
        '{"a": 1e5, "b": 123456789012345678901234567890123456789012}',
        Digits('{"a": 1e5, "b": 123456789012345678901234567890123456789012}'),
        refused(),
    ),
    Case(
        "JSON of the largest exact number",
        "string",
        JSON,
        '{"a": 12345678901234567890123456789012345678}',
        Digits('{"a": 12345678901234567890123456789012345678}'),
        '{"a":12345678901234567890123456789012345678}',
    ),
    *(
        Case(f"JSON with {what}, {said}", column, JSON, text, Digits(text), refused())
        for said, column in (("as text", "string"), ("declared", AS_JSON), ("as a variant", "variant"))
        for what, text in (
            ("an exponent and 16 digits", '{"a": 9007199254740993e0}'),
            ("an exponent and 17 digits", '{"a": {"b": [1, 12345678901234567E-3]}}'),
            ("an exponent beyond a double's", '{"a": 1e400}'),
            ("an exponent below a double's", '{"a": -1e-400}'),
            ("an exponent beyond a double's in a list of several types", '[1e400, "a"]'),
            ("too many digits among values of several types", f'[{{"b": {"1" * 39}}}, {{"b": "x"}}]'),
            ("too many places", f"[0.{'1' * 39}]"),
            ("an exponent beyond a double's at the end of a line", '{"a": 1e400\n, "b": 1}'),
            ("more digits than a number of text may have", f'{{"a": {"1" * 2000}}}'),
        )
    ),
    *(
        Case(f"JSON with {what}, {said}", column, JSON, text, Digits(text), shows)
        for said, column in (("as text", "string"), ("declared", AS_JSON), ("as a variant", "variant"))
        for what, text, shows in (
            ("a small exponent", '{"a": [1e5, -1.2500E-3, "x"]}', '{"a":[100000.0,-0.00125,"x"]}'),
            ("the largest double", '{"a": 1.7976931348623157e308}', '{"a":1.7976931348623157E308}'),
            ("a zero with an exponent", '{"a": 0e400, "b": 0.0E-7}', '{"a":0.0,"b":0.0}'),
            (
                "digits beside an exponent",
                '{"a": 1e5, "b": 0.1234567890123456}',
                '{"a":100000.0,"b":0.1234567890123456}',
            ),
            (
                "38 digits beside an exponent",
                f'{{"a": 1e5, "b": {"1" * 38}, "c": {"1" * 37}.1, "d": 0.{"1" * 38}}}',
                f'{{"a":100000.0,"b":{"1" * 38},"c":{"1" * 37}.1,"d":0.{"1" * 38}}}',
            ),
            (
                "digests and addresses that look like numbers",
                '{"a": [1e5, "sha256:4e55512ab"], "b": "urn:uuid:12345e67-89ab", "c": "x:04e12"}',
                '{"a":[100000.0,"sha256:4e55512ab"],"b":"urn:uuid:12345e67-89ab","c":"x:04e12"}',
            ),
            ("39 digits that a double keeps", f'{{"a": 1{"0" * 38}}}', '{"a":1.0E38}'),
        )
    ),
    *(
        Case(
            f"JSON with a name twice, {said}",
            column,
            JSON,
            text,
            Digits(text),
            refused("has a name twice: correct it"),
        )
        for said, column in (("as text", "string"), ("declared", AS_JSON), ("as a variant", "variant"))
        for text in ['{"a": [{"x": 1, "x": 2}], "b": "ü"}']
    ),
    Case(
        "JSON with names in several objects",
        "string",
        JSON,
        '[{"x":1},{"x":2}]',
        [{"x": 1}, {"x": 2}],
        '[{"x":1},{"x":2}]',
    ),
    # Where JSON stands in the record itself, nothing distinguishes its null from no value.
    Case("JSON, a null", AS_JSON, JSON, "null", None, "null", json_shows=None),
    Case("JSON, a null and not declared", "string", JSON, "null", None, refused("with `meta: {encoding: json}`"), None),
    Case("JSON that is none", "string", JSON, "{", ABSENT, refused()),
    Case(
        "JSON as a variant",
        "variant",
        JSON,
        '{"b": 1, "a": [null, 2.50]}',
        Digits('{"a": [null, 2.50], "b": 1}'),
        '{"a":[null,2.5],"b":1}',
    ),
    Case("JSON as a variant, no value", "variant", JSON, None, None, None),
    Case("JSON as a variant, a null", "variant", JSON, "null", ABSENT, "null"),
    Case("JSON, no value", AS_JSON, JSON, None, None, None),
    Case("JSON as a variant, a text", "variant", JSON, '"a"', "a", '"a"'),
    Case(
        "JSON as a variant, rounded",
        "variant",
        JSON,
        "[123456789012345678901234567890123456789012]",
        Digits("[123456789012345678901234567890123456789012]"),
        refused(),
    ),
    Case(
        "an object as a map",
        "map<string,string>",
        JSON,
        '{"a": "1", "b": null}',
        {"a": "1", "b": None},
        "{a -> 1, b -> null}",
    ),
    Case("array", "array<int>", array("c", "int"), nested([1, None, -3]), [1, None, -3], "[1, null, -3]"),
    Case("array, empty", "array<int>", array("c", "int"), nested([]), [], "[]"),
    Case(
        "array, nested as in Avro", "array<int>", array("c", "int"), nested([1, None]), nested([1, None]), "[1, null]"
    ),
    Case(
        "array of two dimensions",
        "array<array<string>>",
        array("c", "string"),
        nested([["a", None], []]),
        [["a", None], []],
        "[[a, null], []]",
    ),
    Case(
        "array of more dimensions than declared",
        "array<string>",
        array("c", "string"),
        nested([["a"]]),
        [["a"]],
        refused(),
    ),
    Case(
        "array of fewer dimensions than declared",
        "array<array<string>>",
        array("c", "string"),
        nested(["a"]),
        ["a"],
        refused(),
    ),
    Case(
        "array of moments",
        "array<timestamp>",
        array("c", MICROS),
        nested([NOON]),
        ["2026-11-21T12:00:00Z"],
        "[2026-11-21 12:00:00]",
    ),
    Case("array of bytes", "array<binary>", array("c", "bytes"), nested([b"\xde\xad", b""]), ABSENT, "[DEAD, ]"),
    Case(
        "array of bytes in a text",
        "array<binary>",
        array("c", "string"),
        nested(["dead"]),
        ["dead"],
        refused("the column does not declare how text encodes bytes"),
    ),
    Case(
        "array of bytes in hex",
        meta("array<binary>", encoding="hex"),
        array("c", "string"),
        nested(["dead"]),
        ["dead"],
        "[DEAD]",
    ),
    Case(
        "array of bytes in hex, as bytes",
        meta("array<binary>", encoding="hex"),
        array("c", "bytes"),
        nested([b"\xde\xad"]),
        ABSENT,
        "[DEAD]",
    ),
    Case("array of no value", "array<int>", array("c", "int"), None, None, None),
    Case("array of NULLs", "array<int>", array("c", "int"), nested([None]), [None], "[null]"),
    Case(
        "array of bytes in base64",
        meta("array<binary>", encoding="base64"),
        array("c", "string"),
        nested(["3q2+7w==", "", None]),
        ["3q2+7w==", "", None],
        "[DEADBEEF, , null]",
    ),
    Case(
        "array of bytes in base64, as bytes",
        meta("array<binary>", encoding="base64"),
        array("c", "bytes"),
        nested([b"\xde\xad"]),
        ["3q0="],
        "[DEAD]",
    ),
    Case(
        "array of bytes in base64 that is none",
        meta("array<binary>", encoding="base64"),
        array("c", "string"),
        nested(["3q2+7w==", "dea"]),
        ["3q2+7w==", "dea"],
        refused("array<binary> in base64"),
    ),
    Case(
        "array of arrays of bytes",
        "array<array<binary>>",
        array("c", "bytes"),
        nested([[b"\xde\xad", None], []]),
        ABSENT,
        "[[DEAD, null], []]",
    ),
    Case(
        "array of arrays of bytes in a text",
        "array<array<binary>>",
        array("c", "string"),
        nested([["dead"]]),
        [["dead"]],
        refused("the column does not declare how text encodes bytes"),
    ),
    Case(
        "array of arrays of bytes in hex",
        meta("array<array<binary>>", encoding="hex"),
        array("c", "string"),
        nested([["deadbeef", None], []]),
        [["deadbeef", None], []],
        "[[DEADBEEF, null], []]",
    ),
    Case(
        "map of bytes in a text",
        "map<string,binary>",
        JSON,
        '{"a": "deadbeef"}',
        {"a": "deadbeef"},
        refused("the column does not declare how text encodes bytes"),
    ),
    Case(
        "map of bytes in hex",
        meta("map<string,binary>", encoding="hex"),
        JSON,
        '{"a": "deadbeef", "b": null}',
        {"a": "deadbeef", "b": None},
        "{a -> DEADBEEF, b -> null}",
    ),
    Case(
        "map of bytes in hex that is none",
        meta("map<string,binary>", encoding="hex"),
        JSON,
        '{"a": "3q2+7w=="}',
        {"a": "3q2+7w=="},
        refused("a map<string,binary> in hex; declare other types for its keys or values"),
    ),
    Case(
        "map of bytes by bytes in hex",
        meta("map<binary,array<binary>>", encoding="hex"),
        JSON,
        '{"dead": ["beef", null]}',
        {"dead": ["beef", None]},
        "{DEAD -> [BEEF, null]}",
    ),
    Case(
        "map of bytes by bytes in a text",
        "map<binary,array<binary>>",
        JSON,
        '{"dead": ["beef"]}',
        {"dead": ["beef"]},
        refused("the column does not declare how text encodes bytes"),
    ),
    Case("map of bytes by bytes, empty", "map<binary,array<binary>>", JSON, "{}", {}, "{}"),
    Case(
        "map of bytes where MySQL has hex",
        "map<string,binary>",
        JSON,
        '{"a": "deadbeef"}',
        {"a": "deadbeef"},
        "{a -> DEADBEEF}",
        source="mysql",
    ),
    Case("array in a text", "string", array("c", "int"), nested([1]), ABSENT, refused("a string; declare an array")),
    Case("BYTES", "binary", "bytes", b"\xde\xad\xbe\xef", ABSENT, "DEADBEEF"),
    Case("BYTES, empty", "binary", "bytes", b"", ABSENT, ""),
    Case(
        "BYTES in a text",
        "binary",
        "string",
        "deadbeef",
        "deadbeef",
        refused("the column does not declare how text encodes bytes; declare `meta: {encoding: hex}`"),
    ),
    Case("BYTES, declared and as bytes", HEX, "bytes", b"\xde\xad", "dead", "DEAD"),
    Case("BYTES in base64", BASE64, "string", "3q2+7w==", "3q2+7w==", "DEADBEEF"),
    Case("BYTES in hex", "binary", "string", "DEADbeef", "DEADbeef", "DEADBEEF", source="mysql"),
    Case("BYTES in hex of odd length", "binary", "string", "deadbee", "deadbee", refused(), source="mysql"),
    Case(
        "BYTES in base64 where MySQL has hex",
        "binary",
        "string",
        "3q2+7w==",
        "3q2+7w==",
        refused("in hex"),
        source="mysql",
    ),
    Case(
        "BYTES in base64, declared against the default",
        BASE64,
        "string",
        "deadbeef",
        "deadbeef",
        "75E69D6DE79F",
        source="mysql",
    ),
    Case("BYTES, a number", "binary", "int", 12, 12, refused(), source="mysql"),
    Case("BYTES, long", "binary", "string", "ab" * 65535, "ab" * 65535, "AB" * 65535, source="mysql"),
    Case(
        "GEOMETRY",
        "variant",
        GEOMETRY,
        {"value": b"\0", "srid": 4326, "type": "POINT"},
        {"srid": 4326, "type": "POINT", "value": "AA=="},
        '{"srid":4326,"type":"POINT","value":"AA=="}',
    ),
    Case(
        "GEOMETRY, empty",
        "variant",
        GEOMETRY,
        {"value": b"", "srid": 0, "type": ""},
        {"srid": 0, "type": "", "value": ""},
        '{"srid":0,"type":"","value":""}',
    ),
    Case(
        "GEOMETRY in a text",
        "string",
        GEOMETRY,
        {"value": b"\0", "srid": 0, "type": "POINT"},
        ABSENT,
        refused("a string; declare variant, or keep string with `meta: {encoding: json}`"),
    ),
    Case(
        "GEOMETRY in a text, declared",
        AS_JSON,
        GEOMETRY,
        {"value": b"\0", "srid": 0, "type": "POINT"},
        {"srid": 0, "type": "POINT", "value": "AA=="},
        '{"srid":0,"type":"POINT","value":"AA=="}',
    ),
    Case("infinity", "timestamp", MICROS, 9223372036825200000, ABSENT, refused("infinity_is_null")),
    Case("infinity as NULL", meta("timestamp", infinity_is_null=True), MICROS, -9223372036832400000, ABSENT, None),
    *(
        Case(f"infinity in a text, {said}", column, "string", text, text, shows)
        for said, column, text, shows in (
            ("largest", "timestamp", "infinity", refused("infinity_is_null")),
            ("least", "timestamp", "-infinity", refused("infinity_is_null")),
            ("without a zone", "timestamp_ntz", "infinity", refused("infinity_is_null")),
            ("as NULL", meta("timestamp", infinity_is_null=True), "infinity", None),
            ("least as NULL", meta("timestamp", infinity_is_null=True), "-infinity", None),
            ("as text", "string", "infinity", "infinity"),
            ("as a moment", "timestamp", "+294247-01-10T04:00:25.200000Z", refused("infinity_is_null")),
            ("as a moment as text", "string", "-290308-12-21T19:59:27.600000Z", "-infinity"),
            ("with a capital", "timestamp", "Infinity", refused("declare string")),
        )
    ),
    Case("infinity as text", "string", MICROS, 9223372036825200000, ABSENT, "infinity"),
    Case("infinity without a zone", "timestamp_ntz", MICROS, -9223372036832400000, ABSENT, refused("infinity_is_null")),
    Case(
        "infinity of a TIMESTAMP_TZ",
        "string",
        TIMESTAMP_TZ,
        {"timestamp": -9223372036832400000, "offset": 0},
        ABSENT,
        "-infinity",
    ),
    *(
        Case(f"{name}, {of}", of, type_, avro, json, refused(cure), source="mysql")
        for name, type_, avro, json, of, cure in (
            (
                "BIGINT UNSIGNED",
                NUMBER,
                "18446744073709551615",
                "18446744073709551615",
                "bigint",
                "a bigint; declare decimal(20,0)",
            ),
            ("TINYINT(1)", "int", 2, 2, "boolean", "a boolean; declare bigint"),
            ("TIME", TIME_INTERVAL, 1, 1, "timestamp", "for a TIME string with `meta: {encoding: microseconds}`"),
            ("BINARY", "string", "3q2+7w==", "3q2+7w==", "binary", "if it is base64, declare it with `meta: {enc"),
            ("BIT(8)", "long", 102, 102, "binary", "binary in hex; declare bigint"),
            ("zero date", "string", "0000-00-00", "0000-00-00", "date", "`meta: {zero_date: 'null'}` to make it NULL"),
            ("zero date", "string", "0000-00-00 00:00:00", "0000-00-00 00:00:00", "timestamp_ntz", "zero_date: 'null'"),
            ("FLOAT", "float", 45.67, 45.67, "decimal(4,1)", "declare 'decimal(5,2)', or double if it is a float"),
        )
    ),
    *(
        Case(f"zero date as NULL, {of}", meta(of, zero_date="null"), "string", zero, zero, None, source="mysql")
        for of, zero in (
            ("date", "0000-00-00"),
            ("timestamp", "0000-00-00T00:00:00.000000Z"),
            ("timestamp_ntz", "0000-00-00 00:00:00"),
        )
    ),
    Case("zero date as text", "string", "string", "0000-00-00", "0000-00-00", "0000-00-00", source="mysql"),
    Case(
        "a month of zero",
        meta("date", zero_date="null"),
        "string",
        "2024-00-00",
        "2024-00-00",
        refused("a date; declare string"),
        source="mysql",
    ),
    Case("BIT(n)", "bigint", "long", 102, 102, "102", source="mysql"),
    Case("BIT(1) as a boolean", "boolean", "long", 1, 1, "true", source="mysql"),
    Case("YEAR", "int", "int", 2155, 2155, "2155", source="mysql"),
    Case(
        "BIGINT UNSIGNED",
        "string",
        NUMBER,
        "18446744073709551615",
        "18446744073709551615",
        "18446744073709551615",
        source="mysql",
    ),
    Case("NUMBER(4) of 2020", "int", "float", 1000.0, 1000.0, "1000", source="oracle"),
    *(
        Case(
            f"{length} bytes in hex",
            "binary",
            "string",
            bytes(range(200, 200 + length)).hex(),
            bytes(range(200, 200 + length)).hex(),
            bytes(range(200, 200 + length)).hex().upper(),
            source="mysql",
        )
        for length in range(1, 10)
    ),
    *(
        Case(
            f"{length} bytes in hex where base64 is declared",
            BASE64,
            "string",
            hex_,
            hex_,
            refused("if it is hex, declare"),
        )
        for length in range(1, 10, 2)  # the others are base64 too, of other bytes
        for hex_ in [bytes(range(200, 200 + length)).hex()]
    ),
    *(
        Case(f"{length} bytes, {said}", column, type_, avro, json_, shows, json_shows, source)
        for length in range(10)
        for bytes_ in [bytes(range(200, 200 + length))]
        for hex_, base64_ in [(bytes_.hex(), b64encode(bytes_).decode())]
        for said, column, type_, avro, json_, shows, json_shows, source in (
            ("as bytes", "binary", "bytes", bytes_, base64_, hex_.upper(), UNKNOWN, "postgresql"),
            ("as bytes, declared", BASE64, "bytes", bytes_, base64_, hex_.upper(), ABSENT, "postgresql"),
            ("in base64", BASE64, "string", base64_, base64_, hex_.upper(), ABSENT, "postgresql"),
            ("in hex, declared", HEX, "string", hex_, hex_, hex_.upper(), ABSENT, "postgresql"),
            ("in hex, not declared", "binary", "string", hex_, hex_, UNKNOWN, ABSENT, "postgresql"),
            ("in base64, not declared", "binary", "string", base64_, base64_, UNKNOWN, ABSENT, "postgresql"),
            ("in base64, not declared, of Oracle", "binary", "string", base64_, base64_, UNKNOWN, ABSENT, "oracle"),
            (
                "in base64 where MySQL has hex",
                "binary",
                "string",
                base64_,
                base64_,
                refused("if it is base64, declare it") if length else "",
                ABSENT,
                "mysql",
            ),
        )
    ),
]
# NULL of every type, in every column that a case declares.
CASES += [
    Case(f"NULL of {case.name}", case.column, case.type, None, None, None, source=case.source)
    for case in {json.dumps([case.column, case.type, case.source]): case for case in CASES}.values()
]


FORMS = ("Avro", "JSON")


def columns_of(cases: list[Case]) -> dict[str, Any]:
    """Return the columns of a model, one for all cases that declare the same."""
    distinct = {json.dumps(case.column): case.column for case in cases}
    return {f"c{number}": column for number, column in enumerate(distinct.values())}


def record_of(case: Case, form: str, column: str) -> str | None:
    """Return the record that has this value as its only one, as the append job stages it; its id names the case."""
    id_ = f"{form}: {case.name}"
    if form == "Avro":
        without = event(case.source, None, without=["payload"], object="things")
        return next(
            json_records(avro_events({"id": "string", column: case.type}, [(without, {"id": id_, column: case.avro})]))
        )
    if case.json is ABSENT:
        return None
    value = case.json if isinstance(case.json, Digits) else json.dumps(case.json)
    return event(case.source, f'{{"id": {json.dumps(id_)}, "{column}": {value}}}')


class Outcome(NamedTuple):
    """What became of each record, by its id: the value of its column, or the reason why it is in quarantine."""

    values: dict[str, str | None]
    reasons: dict[str, str]

    def is_right(self, case: Case, form: str) -> bool:
        expected = case.json_shows if form == "JSON" and case.json_shows is not ABSENT else case.shows
        id_ = f"{form}: {case.name}"
        if expected is not None and expected.startswith("("):
            return expected[1:-1] in self.reasons.get(id_, "") and id_ not in self.values
        return (self.values.get(id_, "no row"), self.reasons.get(id_)) == (expected, None)


def outcome_of(
    spark: SparkSession,
    source: str,
    cases: list[Case],
    replaced: dict[str, dict[str, str]] | None = None,
    settings: dict[str, str] | None = None,
) -> Outcome:
    """Run a model that has a column for each declaration; `replaced` plants a bug, `settings` are Spark's."""
    outcome, columns = Outcome({}, {}), columns_of(cases)
    column_of = {json.dumps(column): name for name, column in columns.items()}
    names = {case.name: column_of[json.dumps(case.column)] for case in cases}
    assert len(names) == len(cases), "two cases have one name"
    with Memory(spark) as memory:
        for name, value in (settings or {}).items():
            memory.spark.conf.set(name, value)
        project = memory.project("datastream_types", replaced)
        project.source("datastream_types_staging", "changes")
        records = [record_of(case, form, names[case.name]) for case in cases for form in FORMS]
        memory.stage("datastream_types_staging.changes", [Staged(text, "things", 1) for text in records if text])
        project.model(
            "things",
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            f"{{{{ reconcile.datastream_{source}(source('lake', 'changes'), object='things') }}}}",
            {"id": "string", **columns},
        )
        project.run("things")
        shown = [_shown(name, column) for name, column in columns.items()]
        for row in memory.table("datastream_types.things").selectExpr("id", *shown).collect():
            outcome.values[row.id] = row[names[row.id.partition(": ")[2]]]
        for row in memory.rows("datastream_types.things__quarantine"):
            outcome.reasons[json.loads(row.record)["payload"]["id"]] = row._change_error
    return outcome


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> dict[str, Outcome]:
    outcomes = {}
    for source in ("postgresql", "mysql", "oracle"):
        cases = [case for case in CASES if case.source == source]
        declared = [*columns_of(cases).values()]
        outcomes[source] = Outcome({}, {})
        # Several models of a dozen columns take less time than one of all.
        for at in range(0, len(declared), 12):
            some = [case for case in cases if case.column in declared[at : at + 12]]
            outcome = outcome_of(spark, source, some)
            outcomes[source].values.update(outcome.values)
            outcomes[source].reasons.update(outcome.reasons)
    return outcomes


def _shown(name: str, column: Any) -> str:
    data_type = column if isinstance(column, str) else column["data_type"]
    forms = {
        "binary": "hex(%s)",
        "array<binary>": "cast(transform(%s, x -> hex(x)) as string)",
        "array<array<binary>>": "cast(transform(%s, x -> transform(x, y -> hex(y))) as string)",
        "map<string,binary>": "cast(transform_values(%s, (k, x) -> hex(x)) as string)",
        "map<binary,array<binary>>": "cast(transform_keys(transform_values(%s, (k, x) -> transform(x, y -> hex(y))), "
        "(k, x) -> hex(k)) as string)",
        "variant": "to_json(%s)",
    }
    shown = forms.get(data_type, "cast(%s as string)") % name
    return f"{shown} as {name}"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.source}: {case.name}")
def test_a_value_is_what_was_written_or_is_quarantined_with_a_reason(
    outcomes: dict[str, Outcome], case: Case, form: str
) -> None:
    if form == "JSON" and case.json is ABSENT:
        pytest.skip("how JSON files hold this value is not known")
    outcome, id_ = outcomes[case.source], f"{form}: {case.name}"
    assert outcome.is_right(case, form), (outcome.values.get(id_, "no row"), outcome.reasons.get(id_))


READ_FROM_TEXTS = [
    case
    for case in CASES
    if case.source == "postgresql" and case.column in (AS_INTERVAL, AS_TIME, AS_CLOCK, HEX, BASE64)
]


def test_no_value_ends_a_run_where_casts_are_strict(spark: SparkSession) -> None:
    outcome = outcome_of(spark, "postgresql", READ_FROM_TEXTS, settings={"spark.sql.ansi.enabled": "true"})
    assert [(case, form) for case in READ_FROM_TEXTS for form in FORMS if not outcome.is_right(case, form)] == []


def test_of_a_name_that_json_has_twice_spark_can_take_the_last(spark: SparkSession) -> None:
    """As the reason says that it does."""
    cases = [
        case._replace(shows='{"a":[{"x":2}],"b":"ü"}')
        for case in CASES
        if case.name.startswith("JSON with a name twice")
    ]
    outcome = outcome_of(spark, "postgresql", cases, settings={"spark.sql.variant.allowDuplicateKeys": "true"})
    assert len(cases) == 3
    assert [(case, form) for case in cases for form in FORMS if not outcome.is_right(case, form)] == []


# --- planted bugs -----------------------------------------------------------------------------------------------------


class Bug(NamedTuple):
    """A text of a macro and what becomes of it, and the case that comes out wrong."""

    name: str
    file: str
    changes: dict[str, str]
    wrong: str
    source: str = "postgresql"


TEXTS, VALUES = "macros/values/datastream_texts.sql", "macros/values/typed_value.sql"
BUGS = [
    Bug("hex is read as base64", "macros/sources/datastream_mysql.sql", {", encoding='hex'": ", encoding='base64'"},
        "BYTES in hex", "mysql"),
    Bug("bytes without a declaration are guessed", TEXTS, {"or encoding or 'unknown'": "or encoding or 'hex'"},
        "BYTES in a text"),
    Bug("bytes within a map have no encoding", TEXTS, {"['element', 'key', 'value']": "['element']"},
        "map of bytes in hex"),
    Bug("moments with an offset stay records", TEXTS,
        {"'$.timestamp', 'string'), text)": "'$.moment', 'string'), text)"}, "TIMESTAMP_TZ"),
    Bug("JSON stays as Avro has it", TEXTS, {"null, to_json({{ json }}))": "null, {{ source }})"}, "JSON"),
    Bug("exponents lose no digits", TEXTS, {"[0-9.]*+[eE][-+0-9]+|": ""},
        "JSON with an exponent and 16 digits, as text"),
    Bug("values of several types hide a double", TEXTS, {"'DOUBLE|VARIANT'": "'DOUBLE'"},
        "JSON with an exponent beyond a double's in a list of several types, as text"),
    Bug("a time of MySQL loses its sign", TEXTS, {"if({{ micros }} < 0, '-', '')": "''"}, "TIME_INTERVAL, least"),
    Bug("a part of an interval that is too long is nothing", TEXTS,
        {"""as decimal(20,0))"}) -%}""": """as int)"}) -%}"""}, "INTERVAL of P3000000000M"),
    Bug("base64 needs no padding", VALUES, {"if(length(' ~ text ~ ') % 4 = 0 or ": "if(true or "},
        "1 bytes in hex where base64 is declared"),
    Bug("infinity is a moment", TEXTS, {"then 'infinity'": "then {{ text }}"}, "infinity"),
    Bug("an array of more dimensions has NULLs", VALUES,
        {"'array<variant>') is null": "'array<variant>') is null or true"}, "array of more dimensions than declared"),
]  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_a_planted_bug_is_found(spark: SparkSession, bug: Bug) -> None:
    (case,) = (case for case in CASES if (case.name, case.source) == (bug.wrong, bug.source))
    assert not outcome_of(spark, bug.source, [case], {bug.file: bug.changes}).is_right(case, "Avro")
