"""Every type of Datastream, as Avro and as JSON files hold it, comes to the value that was written or to quarantine.

What is expected is not of this package's making: the values are those that a source's own client shows.
"""

from __future__ import annotations

import json
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
AS_INTERVAL = meta("string", encoding="interval")
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
    Case("INTEGER, least", "int", "int", -(2**31), -(2**31), "-2147483648"),
    Case("LONG, largest", "bigint", "long", 2**63 - 1, 2**63 - 1, "9223372036854775807"),
    Case("FLOAT", "float", "float", 45.67, 45.67, "45.67"),
    Case("FLOAT, largest", "float", "float", 3.4028234663852886e38, 3.4028235e38, "3.4028235E38"),
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
    Case("INTERVAL of no form", AS_INTERVAL, "string", "a while", "a while", refused("take `encoding: interval` out")),
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
        refused("is bytes only if the column says"),
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
    Case("array in a text", "string", array("c", "int"), nested([1]), ABSENT, refused("a string; declare an array")),
    Case("BYTES", "binary", "bytes", b"\xde\xad\xbe\xef", ABSENT, "DEADBEEF"),
    Case("BYTES, empty", "binary", "bytes", b"", ABSENT, ""),
    Case(
        "BYTES in a text",
        "binary",
        "string",
        "deadbeef",
        "deadbeef",
        refused("is bytes only if the column says `meta: {encoding: hex}`"),
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
        "GEOMETRY in a text",
        "string",
        GEOMETRY,
        {"value": b"\0", "srid": 0, "type": "POINT"},
        ABSENT,
        refused("a string; declare variant"),
    ),
    Case("infinity", "timestamp", MICROS, 9223372036825200000, ABSENT, refused("infinity_is_null")),
    Case("infinity as NULL", meta("timestamp", infinity_is_null=True), MICROS, -9223372036832400000, ABSENT, None),
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
            ("TIME", TIME_INTERVAL, 1, 1, "timestamp", "of a TIME string with `meta: {encoding: microseconds}`"),
            ("BINARY", "string", "3q2+7w==", "3q2+7w==", "binary", "if it is base64, declare it with `meta: {enc"),
            ("BIT(8)", "long", 102, 102, "binary", "binary in hex; declare bigint"),
            ("zero date", "string", "0000-00-00", "0000-00-00", "date", "`meta: {zero_date: 'null'}` makes NULL"),
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
]


FORMS = ("Avro", "JSON")


def record_of(case: Case, form: str, number: int) -> str | None:
    """Return the record that has this value as its only one, as the append job stages it; its id names the case."""
    column, id_ = f"c{number}", f"{form}: {case.name}"
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
    spark: SparkSession, source: str, cases: list[Case], replaced: dict[str, dict[str, str]] | None = None
) -> Outcome:
    """Run a model that has a column for each case; `replaced` plants a bug."""
    outcome = Outcome({}, {})
    with Memory(spark) as memory:
        project = memory.project("datastream_types", replaced)
        project.source("datastream_types_staging", "changes")
        records = [record_of(case, form, number) for number, case in enumerate(cases) for form in FORMS]
        memory.stage("datastream_types_staging.changes", [Staged(text, "things", 1) for text in records if text])
        project.model(
            "things",
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            f"{{{{ reconcile.datastream_{source}(source('lake', 'changes'), object='things') }}}}",
            {"id": "string", **{f"c{number}": case.column for number, case in enumerate(cases)}},
        )
        project.run("things")
        shown = [_shown(f"c{number}", case.column) for number, case in enumerate(cases)]
        columns = {f"{form}: {case.name}": f"c{number}" for number, case in enumerate(cases) for form in FORMS}
        for row in memory.table("datastream_types.things").selectExpr("id", *shown).collect():
            outcome.values[row.id] = row[columns[row.id]]
        for row in memory.rows("datastream_types.things__quarantine"):
            outcome.reasons[json.loads(row.record)["payload"]["id"]] = row._change_error
    return outcome


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> dict[str, Outcome]:
    return {
        source: outcome_of(spark, source, [case for case in CASES if case.source == source])
        for source in ("postgresql", "mysql", "oracle")
    }


def _shown(name: str, column: Any) -> str:
    data_type = column if isinstance(column, str) else column["data_type"]
    forms = {
        "binary": "hex(%s)",
        "array<binary>": "cast(transform(%s, x -> hex(x)) as string)",
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
    Bug("moments with an offset stay records", TEXTS,
        {"'$.timestamp', 'string'), text)": "'$.moment', 'string'), text)"}, "TIMESTAMP_TZ"),
    Bug("JSON stays as Avro has it", TEXTS, {"null, to_json({{ json }}))": "null, {{ source }})"}, "JSON"),
    Bug("a time of MySQL loses its sign", TEXTS, {"if({{ text }} like '-%', '-', '')": "''"}, "TIME_INTERVAL, least"),
    Bug("infinity is a moment", TEXTS, {"then 'infinity'": "then {{ text }}"}, "infinity"),
    Bug("an array of more dimensions has NULLs", VALUES,
        {"'array<variant>') is null": "'array<variant>') is null or true"}, "array of more dimensions than declared"),
]  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_a_planted_bug_is_found(spark: SparkSession, bug: Bug) -> None:
    (case,) = (case for case in CASES if (case.name, case.source) == (bug.wrong, bug.source))
    assert not outcome_of(spark, bug.source, [case], {bug.file: bug.changes}).is_right(case, "Avro")
