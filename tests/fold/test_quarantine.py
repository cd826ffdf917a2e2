"""No value is lost in silence: what a column cannot hold exactly is quarantined with its reason; the others go on."""

from __future__ import annotations

import itertools
import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any, NamedTuple

import pytest
from avro_files import avro_file, decimal, record
from datastream import Staged, event
from long_notes import long_record
from memory import Memory
from pyspark.sql import SparkSession
from reconcile_jobs.avro_json import json_records

ROUND = {"config": {"meta": {"round": True}}}
COLUMNS: dict[str, Any] = {
    "id": "string",
    "tiny": "tinyint",
    "small": "smallint",
    "medium": "int",
    "big": "bigint",
    "amount": "decimal(38,10)",
    "whole": "decimal(38,0)",
    "real": "float",
    "ratio": "double",
    "flag": "boolean",
    "text": "string",
    "code": "char(3)",
    "label": "varchar(5)",
    "data": {"data_type": "binary", "config": {"meta": {"encoding": "base64"}}},
    "day": "date",
    "at": "timestamp",
    "wall": "timestamp_ntz",
    "customerid": "bigint",
    "rounded_amount": {"data_type": "decimal(12,2)", **ROUND},
    "rounded_big": {"data_type": "bigint", **ROUND},
    "rounded_at": {"data_type": "timestamp", **ROUND},
    "rounded_day": {"data_type": "date", **ROUND},
}
NESTED = {
    "id": "string",
    "longs": "array<bigint>",
    "prices": "array<decimal(12,2)>",
    "tags": "array<string>",
    "days": "map<string,date>",
    "counts": "map<int,double>",
}
MODELS = {"things": COLUMNS, "nested": NESTED}
# how a value is delivered: as the only field beside the key, or with all fields in the order of the columns
ALONE, IN_PLACE, IN_CAPITALS = HOW = ("", ", all fields in place", ", all fields in capitals")
DIGITS_40 = "1234567890123456789012345678901234567890"
BIGINT, ALL_DIGITS = "declare bigint", "declare string for all digits"
OR_FLOAT = ", or double if it is a float at the source, or `meta: {round: true}`"
TIME_OF_DAY = "it has a time of day: declare timestamp or timestamp_ntz, or `meta: {round: true}`"
ZONE = "it has a zone: declare timestamp"
TOO_FINE = "it is finer than a microsecond: declare string for all digits, or `meta: {round: true}`"
ELEMENTS, ENTRIES = "declare another type for its elements", "declare other types for its keys or values"


class Good(NamedTuple):
    """A value that arrives: as JSON, and as Spark prints what the column then holds."""

    column: str
    json: str
    expected: str | None


class Bad(NamedTuple):
    """A value that its column cannot hold exactly, and what its reason says that helps."""

    column: str
    json: str
    cure: str = "declare string"


GOOD = [
    Good("tiny", "-128", "-128"),
    Good("small", "32767", "32767"),
    Good("medium", "-2147483648", "-2147483648"),
    Good("big", "9223372036854775807", "9223372036854775807"),
    Good("big", '"-9223372036854775808"', "-9223372036854775808"),
    Good("big", "12.0", "12"),
    Good("big", "1E+3", "1000"),
    Good("big", '"1.5e1"', "15"),
    Good("big", "-0", "0"),
    Good("big", "9.223372036854775807e18", "9223372036854775807"),
    Good("big", "null", None),
    Good("amount", "1234567890123456789012345678.0123456789", "1234567890123456789012345678.0123456789"),
    Good("amount", '"-1234567890123456789012345678.0123456789"', "-1234567890123456789012345678.0123456789"),
    Good("amount", "0E-10", "0E-10"),
    Good("amount", "1.10", "1.1000000000"),
    Good("amount", "1.5e-9", "1.5E-9"),
    Good("amount", "1.00000000000000000000", "1.0000000000"),
    Good("amount", '"+7"', "7.0000000000"),
    Good("amount", "1.2345678901234567890123E18", "1234567890123456789.0123000000"),
    Good("whole", "99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
    Good("whole", "1e37", "1" + "0" * 37),
    Good("real", "0.1", "0.1"),
    Good("real", '"NaN"', "NaN"),
    Good("ratio", "0.1", "0.1"),
    Good("ratio", "1.7976931348623157e308", "1.7976931348623157E308"),
    Good("ratio", "5e-324", "4.9E-324"),
    Good("ratio", "123456789012345678901234567890123456789012", "1.2345678901234568E41"),
    Good("ratio", '"-Infinity"', "-Infinity"),
    Good("ratio", "3", "3.0"),
    Good("flag", "true", "true"),
    Good("flag", '"FALSE"', "false"),
    Good("flag", "1", "true"),
    Good("flag", '"0"', "false"),
    Good("text", '"NULL"', "NULL"),
    Good("text", '""', ""),
    Good("text", '" two  spaces "', " two  spaces "),
    Good("text", '"line\\nbreak \\u0000 \\"quoted\\" \\\\ ü \\ud83d\\ude00"', 'line\nbreak \x00 "quoted" \\ ü 😀'),
    Good("text", r'"\\ud800 \ud83d\ude00\uD83D\uDE00"', "\\ud800 😀😀"),
    Good("text", '"{\\"a\\": 1.10}"', '{"a": 1.10}'),
    Good("text", '{"b": 1.10, "a": [ ]}', '{"a":[],"b":1.1}'),
    Good("text", "[1.10]", "[1.1]"),
    Good("text", "1.10", "1.10"),
    Good("text", "1e5", "1e5"),
    Good("text", "1E400", "1E400"),
    Good("text", "12", "12"),
    Good("text", DIGITS_40, DIGITS_40),
    Good("text", f"-0.{DIGITS_40}000", f"-0.{DIGITS_40}000"),
    Good("text", "true", "true"),
    Good("text", '"2026-02-30"', "2026-02-30"),
    Good("code", '"abc"', "abc"),
    Good("code", '"a"', "a"),
    Good("label", '"äöü😀ß"', "äöü😀ß"),
    Good("data", '"AAH/"', "0001FF"),
    Good("data", '""', ""),
    Good("day", '"2024-02-29"', "2024-02-29"),
    Good("day", '"2024-02-29T00:00:00Z"', "2024-02-29"),
    Good("day", '"2024-02-29 00:00:00.000"', "2024-02-29"),
    Good("day", '"0001-01-01"', "0001-01-01"),
    Good("day", '"9999-12-31"', "9999-12-31"),
    Good("at", '"2026-11-21T11:33:12.123456Z"', "2026-11-21 11:33:12.123456"),
    Good("at", '"2026-11-21T11:33:12"', "2026-11-21 11:33:12"),
    Good("at", '"2026-11-21 11:33:12.5"', "2026-11-21 11:33:12.5"),
    Good("at", '"2026-11-21T11:33:12.123456000Z"', "2026-11-21 11:33:12.123456"),
    Good("at", '"2026-11-21T11:33:12+05:30"', "2026-11-21 06:03:12"),
    Good("at", '"2026-11-21T11:33:12-08"', "2026-11-21 19:33:12"),
    Good("at", '"2026-11-21"', "2026-11-21 00:00:00"),
    Good("at", '"2026-03-29T02:30:00"', "2026-03-29 02:30:00"),
    Good("wall", '"2026-11-21T11:33:12.123456"', "2026-11-21 11:33:12.123456"),
    Good("wall", '"2026-11-21T11:33:12Z"', "2026-11-21 11:33:12"),
    Good("wall", '"2026-11-21 11:33-00:00"', "2026-11-21 11:33:00"),
    Good("longs", "[1, null, 9223372036854775807]", "[1, null, 9223372036854775807]"),
    Good("longs", '"[1, 2]"', "[1, 2]"),
    Good("longs", "[]", "[]"),
    Good("prices", '[1.1, "2.25"]', "[1.10, 2.25]"),
    Good("tags", '["a", null, ""]', "[a, null, ]"),
    Good("days", '{"a": "2024-02-29", "b": null}', "{a -> 2024-02-29, b -> null}"),
    Good("counts", '{"1": 0.5, "2": 3}', "{1 -> 0.5, 2 -> 3.0}"),
    Good("CustomerId", "7", "7"),
    Good("rounded_amount", "1.005", "1.01"),
    Good("rounded_amount", '"123.4549999"', "123.45"),
    Good("rounded_big", "12.5", "13"),
    Good("rounded_at", '"2026-11-21T11:33:12.123456789Z"', "2026-11-21 11:33:12.123456"),
    Good("rounded_day", '"2024-02-29T23:59:59"', "2024-02-29"),
]

BAD = [
    Bad("tiny", "128", BIGINT),
    Bad("small", "-32769", BIGINT),
    Bad("medium", "2147483648", BIGINT),
    Bad("big", '"twelve"'),
    Bad("big", '""'),
    Bad("big", "12.5", "declare 'decimal(20,1)'" + OR_FLOAT),
    Bad("big", '"12.5"', "declare 'decimal(20,1)'" + OR_FLOAT),
    Bad("big", "9223372036854775808", "declare decimal(20,0)"),
    Bad("big", "9223372036854775807.5", "declare 'decimal(20,1)', or double if it is a float at the source"),
    Bad("big", "1e-1"),
    Bad("big", "true", "declare boolean"),
    Bad("big", '{"a": 1}'),
    Bad("big", "[1]"),
    Bad("big", '"12d"'),
    Bad("big", '"0x10"'),
    Bad("amount", DIGITS_40, ALL_DIGITS),
    Bad("amount", f'"{DIGITS_40}"', ALL_DIGITS),
    Bad("amount", "1.123456789012", "declare 'decimal(38,12)'" + OR_FLOAT),
    Bad("amount", '"1.123456789012"', "declare 'decimal(38,12)'" + OR_FLOAT),
    Bad("amount", "1.12345678901", "declare 'decimal(38,11)'" + OR_FLOAT),
    Bad("amount", "0.00000000001", "declare 'decimal(38,11)'" + OR_FLOAT),
    Bad("amount", "1e-11"),
    Bad("amount", "1e29"),
    Bad("amount", "99999999999999999999999999999.5", ALL_DIGITS),
    Bad("amount", "1.00000000000000000000000000000000000000001", ALL_DIGITS + OR_FLOAT),
    Bad("amount", '"1,5"'),
    Bad("amount", "1e-999999999"),
    Bad("amount", '"1e-999999999"'),
    Bad("amount", "1E+999999999"),
    Bad("amount", '"1.\uff11"'),
    Bad("big", "1e-999999999"),
    Bad("rounded_amount", '"1e-999999999"'),
    Bad("amount", '"NaN"'),
    Bad("amount", "true"),
    Bad("whole", "0.5", "declare 'decimal(38,1)'" + OR_FLOAT),
    Bad("whole", "1e38"),
    Bad("real", "1e39"),
    Bad("ratio", "1e400"),
    Bad("ratio", "-1e400"),
    Bad("ratio", '"1e400"'),
    Bad("ratio", '"0x1p3"'),
    Bad("ratio", '"1d"'),
    Bad("ratio", '"one"'),
    Bad("flag", '"yes please"'),
    Bad("flag", "2", BIGINT),
    Bad("code", '"abcd"'),
    Bad("label", '"abcdef"'),
    Bad("data", '"not base64!"'),
    Bad("data", '"AAH/A"'),
    Bad("data", "1234", BIGINT),
    Bad("data", "true"),
    Bad("day", '"2026-02-30"'),
    Bad("day", '"2026-13-01"'),
    Bad("day", '"2026"', BIGINT),
    Bad("day", "2026", BIGINT),
    Bad("day", '"2026-11"'),
    Bad("day", '"2026-11-21T11:33:12"', TIME_OF_DAY),
    Bad("day", '"2026-05-01T00:00:00-08:00"', ZONE),
    Bad("day", '"2026-05-01 00:00:00+05:30"', ZONE),
    Bad("day", '"21.11.2026"'),
    Bad("day", '"today"'),
    Bad("at", '"2026"', BIGINT),
    Bad("at", "1795260792", BIGINT),
    Bad("at", '"2026-02-30T00:00:00Z"'),
    Bad("at", '"2026-11-21T25:00:00Z"'),
    Bad("at", '"2026-11-21T11:33:12.1234567Z"', TOO_FINE),
    Bad("at", '"2026-11-21T11:33:12.123456789Z"', TOO_FINE),
    Bad("at", '"2026-11-21T11:33:12 Europe/Berlin"'),
    Bad("at", '"now"'),
    Bad("wall", '"2026-11-21T11:33:12+02:00"', ZONE),
    Bad("wall", '"2026-11-00"'),
    Bad("at", '"2026-11-00"'),
    Bad("day", '"2026-11-00"'),
    Bad("wall", '"2026-11-21T11:33:12.1234567"', TOO_FINE),
    Bad("longs", '[1, "x"]', ELEMENTS),
    Bad("longs", "[1.5]", ELEMENTS),
    Bad("longs", "[9223372036854775808]", ELEMENTS),
    Bad("longs", '{"a": 1}'),
    Bad("longs", "7"),
    Bad("prices", "[1.005]", ELEMENTS),
    Bad("tags", "[1.10]", ELEMENTS),
    Bad("tags", "[[1]]", ELEMENTS),
    Bad("days", '{"a": "2026-02-30"}', ENTRIES),
    Bad("days", "[1]"),
    Bad("counts", '{"x": 0.5}', ENTRIES),
    Bad("counts", '{"1": 1e400}', ENTRIES),
    Bad("rounded_amount", "12345678901", "declare 'decimal(13,2)'"),
    Bad("rounded_amount", '"1.0.0"'),
    Bad("rounded_at", '"2026-02-30"'),
]

# records whose payload is whole: (what is wrong, the reason's words, the record)
ID = '{"id": "%s"}'
MALFORMED = [
    ("missing key", "key id is missing or NULL", event("oracle", '{"big": 1}')),
    ("one that is too long", " bytes at byte 7'); staging has a note", long_record(event("oracle", ID))),
    ("the beginning of a long one", "too long for staging ('10 bytes at byte 7')", long_record('{"x":"yyyy')),
    ("NULL key", "key id is missing or NULL", event("oracle", '{"id": null, "big": 1}')),
    ("missing SCN", "scn, which orders changes, is missing or unreadable", event("oracle", ID, without=["scn"])),
    ("NULL SCN", "scn, which orders changes", event("oracle", ID, metadata={"scn": None})),
    ("SCN of text", "scn, which orders changes", event("oracle", ID, metadata={"scn": "soon"})),
    ("supplementation without SCN", "scn, which orders changes",
     event("oracle", ID, without=["scn"], read_method="oracle-supplementation")),
    ("missing rs_id", "rs_id, which orders changes", event("oracle", ID, without=["rs_id"])),
    ("rs_id of two fields", "rs_id, which orders changes", event("oracle", ID, metadata={"rs_id": "0x0073cb.0000"})),
    ("missing ssn", "ssn, which orders changes", event("oracle", ID, without=["ssn"])),
    ("unknown change type", "change type 'TRUNCATE' is unknown", event("oracle", ID, "TRUNCATE")),
    ("missing change type", "change type is missing", event("oracle", ID, without=["change_type"])),
    ("an insert that is deleted", "is_deleted is true, and the change type is 'INSERT'",
     event("oracle", ID, metadata={"is_deleted": True})),
    ("an update that is deleted", "is_deleted is true, and the change type is 'UPDATE-INSERT'",
     event("oracle", ID, "UPDATE-INSERT", metadata={"is_deleted": True})),
    ("a delete that is not deleted", "is_deleted is false, and the change type is 'DELETE'",
     event("oracle", ID, "DELETE", metadata={"is_deleted": False})),
    ("unknown read method", "read method 'oracle-guess' is unknown", event("oracle", ID, read_method="oracle-guess")),
    ("missing read method", "read method is missing", event("oracle", ID, without=["read_method"])),
    ("backfill without read_timestamp", "read_timestamp, which orders backfill rows",
     event("oracle", ID, read_method="oracle-backfill", without=["read_timestamp"])),
    ("backfill of the year 1", "read_timestamp, which orders backfill rows",
     event("oracle", ID, read_method="oracle-backfill", read_timestamp="0001-01-01T00:00:00Z")),
    ("rs_id after a tab", "rs_id, which orders changes", event("oracle", ID, metadata={"rs_id": "\t0x1.1.1"})),
    ("a high surrogate alone", "half of a surrogate pair", event("oracle", r'{"id": "1", "text": "\ud800"}')),
    ("two high ones", "half of a surrogate pair", event("oracle", r'{"id": "1", "text": "\uD83D\ud83d\ude00"}')),
    ("a low surrogate first", "half of a surrogate pair", event("oracle", r'{"id": "1", "text": "a\uDC00\uD800"}')),
    ("one after a backslash", "half of a surrogate pair", event("oracle", r'{"id": "1", "text": "\\\udbff"}')),
    ("no payload", "the record has no payload", event("oracle", None, without=["payload"])),
    ("payload null", "the record has no payload", event("oracle", "null")),
    ("payload a list", "payload", event("oracle", "[1, 2]")),
    ("payload a text", "payload", event("oracle", '"{}"')),
    ("no metadata", "the record has no source_metadata", event("oracle", ID, without=["source_metadata"])),
    ("metadata null", "the record has no source_metadata", event("oracle", ID, source_metadata=None)),
    ("metadata a list", "metadata", event("oracle", ID, source_metadata=[1])),
    ((
        "two names but for case"
    ), (
        "the names of several fields differ from it only in upper and lower case; declare the column"
    ),
     event("oracle", '{"id": "%s", "CustomerID": 1, "customerId": 1}')),
    ("digits of a deeper field of the name", "text: '{a number whose digits cannot be found in the record}'",
     event("oracle", '{"id": "%s", "other": {"text": 1.0}, "text": 1.00}')),
    ("digits of a field in another case", "text: '{a number whose digits cannot be found in the record}'",
     event("oracle", '{"id": "%s", "TEXT": 1.0, "text": 1.00}')),
    ("one field twice", "big: several fields have this name", event("oracle", '{"id": "%s", "big": 1, "big": 2}')),
    ("two values that cannot be held",
     "big: 'x' is not exactly a bigint; declare string; day: 'y' is not exactly a date; declare string",
     event("oracle", '{"id": "%s", "big": "x", "day": "y"}')),
]  # fmt: skip

# payloads of several fields that arrive: (what is proven, fields, the columns expected)
PAYLOADS = [
    ("the exact name before another case", '"CUSTOMERID": 1, "customerid": 2, "CustomerId": 3', {"customerid": "2"}),
    ("names in capitals", '"TEXT": "a", "BIG": 5', {"text": "a", "big": "5"}),
    ("fields that no column declares", '"unknown": {"big": 1.5, "text": 1.50}, "big": 3', {"big": "3"}),
    ("digits of a field after text that looks like it", '"label": "x", "note": "\\"text\\": 1.0", "text": 1.00',
     {"label": "x", "text": "1.00"}),
]  # fmt: skip


class Same(NamedTuple):
    """A value as Avro has it, of which type, and as JSON has it; and whether its column can hold it."""

    column: str
    type: Any
    value: Any
    json: str
    fits: bool = True


def _logical(kind: str, logical: str) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical}


MOMENT = datetime(2026, 11, 21, 11, 33, 12, 123456)
IN_BOTH = [
    Same("tiny", "int", -128, "-128"),
    Same("big", "long", 9223372036854775807, "9223372036854775807"),
    Same("big", "long", 9007199254740993, '"9007199254740993"'),
    Same("big", decimal(38, 10), Decimal("12.5"), "12.5000000000", False),  # no whole number
    Same("small", "int", 32768, "32768", False),  # too large
    Same("amount", decimal(38, 10), Decimal("-1234567890123456789012345678.0123456789"),
         "-1234567890123456789012345678.0123456789"),
    Same("amount", decimal(38, 10), Decimal("1.1"), "1.1"),
    Same("amount", decimal(38, 10), Decimal("0E-10"), "0"),
    Same("amount", decimal(38, 12), Decimal("1.123456789012"), "1.123456789012", False),  # too fine
    Same("amount", decimal(60, 2), Decimal(DIGITS_40 + ".25"), f'"{DIGITS_40}.25"', False),  # too large
    Same("whole", decimal(38, 0), Decimal("9" * 38), "9" * 38),
    Same("rounded_amount", decimal(20, 3), Decimal("1.005"), "1.005"),
    Same("real", "float", 0.1, "0.1"),
    Same("real", "float", 3.4028234663852886e38, "3.4028235e38"),
    Same("ratio", "double", 5e-324, "5e-324"),
    Same("ratio", "double", 0.1, "0.1"),
    Same("ratio", "double", nan, '"NaN"'),
    Same("ratio", "double", -inf, '"-Infinity"'),
    Same("flag", "boolean", True, "true"),
    Same("text", "string", 'ü😀 "quoted" \\ \n\0', '"ü😀 \\"quoted\\" \\\\ \\n\\u0000"'),
    Same("text", "string", "", '""'),
    Same("text", ["null", "string"], None, "null"),
    Same("text", "boolean", True, "true"),
    Same("text", decimal(10, 2), Decimal("1.10"), "1.10"),
    Same("label", "string", "abcdef", '"abcdef"', False),  # too long
    Same("data", "bytes", b"\x00\x01\xff", '"AAH/"'),
    Same("data", "bytes", b"", '""'),
    Same("day", _logical("int", "date"), date(2024, 2, 29), '"2024-02-29"'),
    Same("day", _logical("int", "date"), date(1, 1, 1), '"0001-01-01"'),
    Same("day", _logical("long", "timestamp-millis"), MOMENT.replace(tzinfo=UTC, microsecond=0),
         '"2026-11-21T11:33:12.000Z"', False),  # not midnight
    Same("at", _logical("long", "timestamp-micros"), MOMENT.replace(tzinfo=UTC), '"2026-11-21T11:33:12.123456Z"'),
    Same("at", _logical("long", "timestamp-millis"), MOMENT.replace(tzinfo=UTC, microsecond=5000),
         '"2026-11-21T11:33:12.005Z"'),
    Same("wall", _logical("long", "local-timestamp-micros"), MOMENT, '"2026-11-21T11:33:12.123456"'),
    Same("longs", {"type": "array", "items": ["null", "long"]}, [1, None, 2**63 - 1], "[1, null, 9223372036854775807]"),
    Same("prices", {"type": "array", "items": decimal(12, 2)}, [Decimal("1.10"), Decimal("2.25")], "[1.1, 2.25]"),
    Same("prices", {"type": "array", "items": decimal(12, 3)}, [Decimal("1.005")], "[1.005]", False),  # too fine
    Same("tags", {"type": "array", "items": "string"}, ["a", ""], '["a", ""]'),
    Same("days", {"type": "map", "values": _logical("int", "date")}, {"a": date(2024, 2, 29)}, '{"a": "2024-02-29"}'),
    Same("counts", {"type": "map", "values": "double"}, {"1": 0.5}, '{"1": 0.5}'),
]  # fmt: skip
FORMS = ("JSON", "Avro")


class Outcome(NamedTuple):
    """What one run of two models made of all the records."""

    rows: dict[str, dict[str, str | None]]
    types: dict[str, dict[str, str]]
    quarantine: list[Any]
    ledger: dict[str, Any]
    staged: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def outcome(spark: SparkSession) -> Outcome:
    """All good and bad records in one batch, through one run."""
    staged = _staged()
    outcome = Outcome({}, {}, [], {}, staged)
    with Memory(spark) as memory:
        memory.stage(
            "quarantine_staging.changes",
            [
                Staged(record, f"SHOP.{model.upper()}", 1, origin=name)
                for model, records in staged.items()
                for name, record in records.items()
            ],
        )
        project = memory.project("quarantine")
        project.source("quarantine_staging", "changes")
        for model, columns in MODELS.items():
            project.model(
                model,
                "{{ config(materialized='current_state', unique_key='id') }}\n"
                f"{{{{ reconcile.datastream_oracle(source('lake', 'changes'), object='SHOP.{model.upper()}') }}}}",
                columns,
            )
        project.run(*MODELS)
        for model, columns in MODELS.items():
            shown = [f"{'hex' if name == 'data' else 'string'}(`{name}`) as `{name}`" for name, of in columns.items()]
            rows = memory.table(f"quarantine.{model}")
            outcome.rows.update({row.id: row.asDict() for row in rows.selectExpr(*shown).collect()})
            outcome.types[model] = dict(rows.dtypes)
            outcome.quarantine.extend(memory.rows(f"quarantine.{model}__quarantine"))
        outcome.ledger.update({row.relation: row for row in memory.rows("quarantine.reconcile_ledger")})
    return outcome


def _staged() -> dict[str, dict[str, str]]:
    """Return the records of each model by what they are called."""
    staged: dict[str, dict[str, str]] = {model: {} for model in MODELS}
    for value, how in itertools.product([*GOOD, *BAD], HOW):
        staged[_model(value.column)][_id(value, how)] = event("oracle", _payload(value, how))
    for name, _, malformed in MALFORMED:
        staged["things"][name] = malformed.replace("%s", name)
    for name, fields, _ in PAYLOADS:
        # What the envelope calls as a column is called is none of its digits.
        staged["things"][name] = event("oracle", f'{{"id": "{name}", {fields}}}', metadata={"text": 1.0})
    for same in IN_BOTH:
        staged[_model(same.column)][_named(same, "JSON")] = event(
            "oracle", f'{{"id": {json.dumps(_named(same, "JSON"))}, "{same.column}": {same.json}}}'
        )
        staged[_model(same.column)][_named(same, "Avro")] = event("oracle", _of_avro(same))
    return staged


def _model(column: str) -> str:
    return "nested" if column in NESTED else "things"


def _id(value: Good | Bad, how: str = ALONE) -> str:
    return f"{value.column} {value.json}{how}"


def _payload(value: Good | Bad, how: str) -> str:
    fields = {"id": json.dumps(_id(value, how)), value.column: value.json}
    if how != ALONE:
        nothing = dict.fromkeys(MODELS[_model(value.column)], "null")
        fields = {**nothing, "id": fields["id"], value.column.lower(): value.json}
    named = {name.upper() if how == IN_CAPITALS else name: text for name, text in fields.items()}
    return f"{{{', '.join(f'{json.dumps(name)}: {text}' for name, text in named.items())}}}"


def _named(same: Same, form: str = "") -> str:
    return f"{same.column} {same.json} {form}".strip()


def _of_avro(same: Same) -> str:
    """Return the JSON that staging has of a payload that came as Avro."""
    schema = record("payload", **{"id": "string", same.column: same.type})
    (text,) = json_records(avro_file(schema, {"id": _named(same, "Avro"), same.column: same.value}))
    return text


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("value", GOOD, ids=_id)
def test_a_value_that_fits_arrives_exactly(outcome: Outcome, value: Good, how: str) -> None:
    expected = {value.column.lower(): value.expected} if value.expected is not None else {}
    _only(outcome, _id(value, how), expected, _model(value.column))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("value", BAD, ids=_id)
def test_a_value_that_does_not_fit_is_quarantined_with_column_type_and_what_helps(
    outcome: Outcome, value: Bad, how: str
) -> None:
    error = _error(outcome, _id(value, how))
    assert error.startswith(f"{value.column}: ")
    assert error.endswith(f" is not exactly a {_said(MODELS[_model(value.column)][value.column])}; {value.cure}")


def _declarations(value: Bad) -> list[Any]:
    """Return the columns that a reason says to declare instead."""
    types = r"bigint|string|boolean|double|timestamp_ntz|timestamp|decimal\([0-9,]+\)"
    declared: list[Any] = re.findall(rf"(?:declare|or) '?({types})", value.cure)
    if "`meta: {round: true}`" in value.cure:
        was = MODELS[_model(value.column)][value.column]
        declared.append({"data_type": was, **ROUND})
    return declared


def test_what_a_reason_says_to_declare_holds_the_value(spark: SparkSession) -> None:
    cases = [(value, column) for value in BAD for column in _declarations(value)]
    columns = {f"c{n}": column for n, column in enumerate({str(column): column for _, column in cases}.values())}
    named = {str(column): name for name, column in columns.items()}
    with Memory(spark) as memory:
        project = memory.project("cured")
        project.source("cured", "changes")
        payloads = [f'{{"id": {n}, "{named[str(column)]}": {value.json}}}' for n, (value, column) in enumerate(cases)]
        memory.stage("cured.changes", [Staged(event("oracle", payload), "things", 1) for payload in payloads])
        project.model(
            "things",
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            "{{ reconcile.datastream_oracle(source('lake', 'changes'), object='things') }}",
            {"id": "bigint", **columns},
        )
        project.run("things")
        held = {row.id for row in memory.table("cured.things").select("id").collect()}
        reasons = [row._change_error for row in memory.rows("cured.things__quarantine")]
    assert len(held) + len(reasons) == len(cases) > 100
    assert not reasons


@pytest.mark.parametrize(("name", "reason"), [case[:2] for case in MALFORMED], ids=[case[0] for case in MALFORMED])
def test_a_malformed_record_is_quarantined_with_its_reason(outcome: Outcome, name: str, reason: str) -> None:
    assert reason in _error(outcome, name)


@pytest.mark.parametrize(("name", "expected"), [case[::2] for case in PAYLOADS], ids=[case[0] for case in PAYLOADS])
def test_fields_find_their_columns(outcome: Outcome, name: str, expected: dict[str, str]) -> None:
    _only(outcome, name, expected, "things")


@pytest.mark.parametrize("same", IN_BOTH, ids=_named)
def test_json_and_avro_of_one_value_come_to_the_same(outcome: Outcome, same: Same) -> None:
    rows, errors = [], []
    for form in FORMS:
        name = _named(same, form)
        rows.append({**outcome.rows.get(name, {}), "id": None})
        errors.append([row._change_error for row in outcome.quarantine if row.origin == name])
    assert rows[0] == rows[1]
    assert errors[0] == errors[1]
    assert [_named(same, form) in outcome.rows for form in FORMS] == [same.fits] * 2
    assert len(errors[0]) == (not same.fits)


def test_the_quarantine_holds_each_record_as_delivered(outcome: Outcome) -> None:
    delivered = {name: record for records in outcome.staged.values() for name, record in records.items()}
    bad = [*(_id(value, how) for value in BAD for how in HOW), *(case[0] for case in MALFORMED)]
    bad += [_named(same, form) for same in IN_BOTH for form in FORMS if not same.fits]
    assert {row.origin: row.record for row in outcome.quarantine} == {name: delivered[name] for name in bad}
    assert len(outcome.quarantine) == len(bad)
    assert {row._change_batch for row in outcome.quarantine} == {1}


@pytest.mark.parametrize("model", MODELS)
def test_columns_have_the_declared_types(outcome: Outcome, model: str) -> None:
    assert outcome.types[model] == {column: _type(said) for column, said in MODELS[model].items()}


@pytest.mark.parametrize("model", MODELS)
def test_the_ledger_counts_them(outcome: Outcome, model: str) -> None:
    good = [value for value in GOOD if _model(value.column) == model]
    bad = [value for value in BAD if _model(value.column) == model]
    whole = model == "things"
    line = outcome.ledger[f"quarantine.{model}"]
    assert line.delivered == len(outcome.staged[model])
    both = [same.fits for same in IN_BOTH if _model(same.column) == model]
    refused, arrived = (len(FORMS) * both.count(fits) for fits in (False, True))
    assert line.quarantined == len(HOW) * len(bad) + whole * len(MALFORMED) + refused
    assert line.applied == line.inserted == len(HOW) * len(good) + whole * len(PAYLOADS) + arrived


def _type(said: Any) -> str:
    data_type = said if isinstance(said, str) else said["data_type"]
    return "string" if data_type.startswith(("char", "varchar")) else data_type


def _said(said: Any) -> str:
    data_type = said if isinstance(said, str) else said["data_type"]
    if data_type == "binary":
        return "binary in base64"
    return f"var{data_type}" if data_type.startswith("char") else data_type


def _only(outcome: Outcome, name: str, expected: dict[str, str | None], model: str) -> None:
    """Check that a record's row has these values and NULL in all other columns."""
    errors = [row._change_error for row in outcome.quarantine if row.origin == name]
    assert not errors
    assert outcome.rows[name] == {**dict.fromkeys(MODELS[model]), "id": name, **expected}


def _error(outcome: Outcome, name: str) -> str:
    assert name not in outcome.rows, f"arrived as {[v for v in outcome.rows[name].values() if v is not None]}"
    (row,) = (row for row in outcome.quarantine if row.origin == name)
    return str(row._change_error)


LONG = {"text": json.dumps("y" * 20_000_001), "number": "9" * 1500}


@pytest.mark.parametrize("column", ["declared", "undeclared"])
def test_a_value_beyond_what_the_json_reader_takes_by_itself_arrives_and_loses_no_record(
    spark: SparkSession, column: str
) -> None:
    with Memory(spark) as memory:
        project = memory.project("long_values")
        project.source("long_values", "changes")
        records = [event("postgresql", f'{{"id": "{kind}", "{column}": {value}}}') for kind, value in LONG.items()]
        memory.stage("long_values.changes", [Staged(record, "things", 1) for record in records])
        project.model(
            "things",
            "{{ config(materialized='current_view', unique_key='id') }}\n"
            "{{ reconcile.datastream_postgresql(source('lake', 'changes'), object='things') }}",
            {"id": "string", "declared": "string"},
        )
        project.run("things")
        rows = {row.id: row.declared for row in memory.rows("long_values.things")}
    assert rows == {kind: value.strip('"') if column == "declared" else None for kind, value in LONG.items()}
