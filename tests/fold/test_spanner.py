"""A Spanner change stream's records through the SQL that users get: types, order, partial rows, cuts, transactions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from datastream import Staged
from long_notes import long_record
from memory import Memory
from plain_dbt import Relation
from pyspark.sql import SparkSession
from spanner import backfill_record, cut, data_change_record, mod

ROUND = {"config": {"meta": {"round": True}}}
COLUMNS: dict[str, Any] = {
    "Id": "string",
    "Flag": "boolean",
    "Whole": "bigint",
    "Real": "float",
    "Ratio": "double",
    "Amount": "decimal(38,9)",
    "Text": "string",
    "Data": "binary",
    "Day": "date",
    "At": "timestamp",
    "RoundedAt": {"data_type": "timestamp", **ROUND},
    "Document": "string",
    "Flags": "array<boolean>",
    "Wholes": "array<bigint>",
    "Ratios": "array<double>",
    "Amounts": "array<decimal(38,9)>",
    "Texts": "array<string>",
    "Blobs": "array<binary>",
    "Days": "array<date>",
    "Moments": "array<timestamp>",
    "customerid": "bigint",
}


class Value(NamedTuple):
    """A value as staged, and as Spark prints what the column then holds; None: it goes to quarantine."""

    column: str
    staged: Any
    expected: str | None


NULL = "a NULL"
# GoogleSQL's types, then PostgreSQL's where they differ
VALUES = [
    Value("Flag", True, "true"),
    Value("Whole", "9223372036854775807", "9223372036854775807"),
    Value("Whole", "-9223372036854775808", "-9223372036854775808"),
    Value("Whole", "9223372036854775808", None),
    Value("Whole", "1.5", None),
    Value("Ratio", 0.1, "0.1"),
    Value("Ratio", 1e300, "1.0E300"),
    Value("Ratio", 5e-324, "4.9E-324"),
    Value("Ratio", 3, "3.0"),
    Value("Ratio", "NaN", "NaN"),
    Value("Ratio", "-Infinity", "-Infinity"),
    Value("Ratio", "one", None),
    Value("Real", 0.10000000149011612, "0.1"),
    Value("Real", "Infinity", "Infinity"),
    Value("Real", 1e39, None),
    Value("Amount", "99999999999999999999999999999.999999999", "99999999999999999999999999999.999999999"),
    Value("Amount", "0.000000001", "1E-9"),
    Value("Amount", "-1", "-1.000000000"),
    Value("Amount", "0.0000000001", None),
    Value("Text", "NULL", "NULL"),
    Value("Text", "", ""),
    Value("Text", "ü😀 \"quoted\" \\", "ü😀 \"quoted\" \\"),
    Value("Text", 0.25, "0.25"),
    Value("Data", "AAH/", "0001FF"),
    Value("Data", "", ""),
    Value("Data", "not base64!", None),
    Value("Day", "0001-01-01", "0001-01-01"),
    Value("Day", "2026-02-30", None),
    Value("At", "2026-11-21T11:33:12.123456Z", "2026-11-21 11:33:12.123456"),
    Value("At", "2026-11-21T11:33:12Z", "2026-11-21 11:33:12"),
    Value("At", "9999-12-31T23:59:59.999999Z", "9999-12-31 23:59:59.999999"),
    Value("At", "2026-11-21T11:33:12.123456789Z", None),
    Value("RoundedAt", "2026-11-21T11:33:12.123456789Z", "2026-11-21 11:33:12.123456"),
    Value("Document", '{"a": 1.10, "b": [null]}', '{"a": 1.10, "b": [null]}'),
    Value("Document", "[1.10]", "[1.10]"),
    Value("Flags", [True, None, False], "[true, null, false]"),
    Value("Wholes", ["1", None, "-9223372036854775808"], "[1, null, -9223372036854775808]"),
    Value("Wholes", [], "[]"),
    Value("Wholes", "NULL", NULL),  # as the emulator has an array that is NULL
    Value("Wholes", ["1.5"], None),
    Value("Ratios", [0.5, "NaN", "-Infinity"], "[0.5, NaN, -Infinity]"),
    Value("Amounts", ["1.1", None], "[1.100000000, null]"),
    Value("Texts", ["a", None, "", "NULL"], "[a, null, , NULL]"),
    Value("Texts", "NULL", NULL),
    Value("Texts", None, NULL),
    Value("Whole", None, NULL),
    Value("Blobs", ["AAH/", None], "[0001FF, null]"),
    Value("Days", ["2024-02-29", None], "[2024-02-29, null]"),
    Value("Moments", ["2026-11-21T11:33:12.5Z"], "[2026-11-21 11:33:12.5]"),
    Value("Amount", "NaN", None),  # PG.NUMERIC has it
    Value("Text", f"0.{'1234567890' * 5}", f"0.{'1234567890' * 5}"),
    Value("CustomerId", "7", "7"),
]  # fmt: skip

A = {"Id": "%s"}
# records of which nothing can be applied: (what is wrong, the reason's words, the record)
MALFORMED = [
    ("torn", "the record does not have the form of a data change record", data_change_record([mod(A)])[:-9]),
    ("too long", "too long for staging", long_record(data_change_record([mod(A)]))),
    ("no mods", "the record holds no mods", data_change_record([], without=["mods"])),
    ("mods of none", "the record holds no mods", data_change_record([])),
    ("mods an object", "does not have the form", data_change_record("{}")),
    ("a mod of text", "the mod is not an object", data_change_record(["x"])),
    ("no keys", "the mod has no keys", data_change_record([{"new_values": {}}])),
    ("keys of a list", "the mod has no keys", data_change_record([{"keys": [1], "new_values": {}}])),
    ("no key", "key Id is missing or NULL", data_change_record([mod({"Other": "x"})])),
    ("no new values", "the mod has no new_values", data_change_record([{"keys": A}])),
    ("a name twice", "the mod has Id among its keys and its new_values", data_change_record([mod(A, {"Id": "x"})])),
    ("type", "mod_type 'TRUNCATE' is unknown", data_change_record([mod(A)], "TRUNCATE")),
    ("no type", "mod_type is missing", data_change_record([mod(A)], without=["mod_type"])),
    ("capture", "value_capture_type 'NEW' is unknown", data_change_record([mod(A)], value_capture_type="NEW")),
    ("no capture", "value_capture_type is missing", data_change_record([mod(A)], without=["value_capture_type"])),
    ("no time", "commit_timestamp, which orders changes, is missing or unreadable",
     data_change_record([mod(A)], without=["commit_timestamp"])),
    ("time", "commit_timestamp, which", data_change_record([mod(A)], commit_timestamp="1969-12-31T23:59:59Z")),
    ("far time", "commit_timestamp, which", data_change_record([mod(A)], commit_timestamp="2262-04-12T00:00:00Z")),
    ("no transaction", "server_transaction_id, which", data_change_record([mod(A)], server_transaction_id="")),
    ("sequence", "record_sequence, which", data_change_record([mod(A)], record_sequence="0000000x")),
    ("backfill", "a backfill record is an INSERT, and this one 'DELETE'",
     backfill_record([({"Id": "%s"}, {})], "2026-11-21T11:33:12Z", mod_type="DELETE")),
    ("case", "customerid: the names of several fields differ from it only in upper and lower case",
     data_change_record([mod(A, {"CustomerId": "1", "CUSTOMERID": "2"})])),
]  # fmt: skip


def at(nanoseconds: int) -> str:
    return f"2026-11-21T11:33:12.{nanoseconds:09}Z"


def change(key: str, mod_type: str, new_values: dict[str, Any], nanoseconds: int, **fields: Any) -> str:
    return data_change_record(
        [mod({"Id": key}, new_values)], mod_type, commit_timestamp=at(nanoseconds), server_transaction_id=key, **fields
    )


WHOLE = {"value_capture_type": "NEW_ROW"}
# what one key's records come to: (what is proven, records by batch, expected A, B and C; None: no row, "pending")
ROWS: list[tuple[str, list[list[str]], Any]] = [
    ("absent is not NULL", [[change("%s", "INSERT", {"A": "1", "B": "1", "C": "1"}, 1)],
                            [change("%s", "UPDATE", {"B": "2"}, 2)]], ("1", "2", "1")),
    ("a name in another case", [[change("%s", "INSERT", {"A": "1", "B": "1", "C": "1"}, 1)],
                                [change("%s", "UPDATE", {"b": "2"}, 2)]], ("1", "2", "1")),
    ("NULL is not absent", [[change("%s", "INSERT", {"A": "1", "B": "1", "C": "1"}, 1)],
                            [change("%s", "UPDATE", {"B": None}, 2)]], ("1", None, "1")),
    ("one nanosecond", [[change("%s", "UPDATE", {"A": "3"}, 1003), change("%s", "UPDATE", {"A": "2"}, 1002)],
                        [change("%s", "INSERT", {"A": "1", "B": "1"}, 1001)]], ("3", "1", None)),
    ("digits left out", [[change("%s", "UPDATE", {"A": "2"}, 0, ).replace("12.000000000Z", "12.1Z"),
                          change("%s", "INSERT", {"A": "1"}, 99_999_999)]], ("2", None, None)),
    ("a stale update knows a column best", [[change("%s", "INSERT", {"A": "1", "B": "1"}, 1)],
                                            [change("%s", "UPDATE", {"A": "3"}, 3)],
                                            [change("%s", "UPDATE", {"A": "2", "B": "2"}, 2)]], ("3", "2", None)),
    ("nothing shines through a delete", [[change("%s", "INSERT", {"A": "1", "B": "1"}, 1)],
                                         [change("%s", "UPDATE", {"B": "2", "C": "2"}, 2)],
                                         [change("%s", "INSERT", {"A": "4"}, 4)],
                                         [change("%s", "DELETE", {}, 3)]], ("4", None, None)),
    ("a delete", [[change("%s", "UPDATE", {"A": "2"}, 2), change("%s", "DELETE", {}, 3)]], None),
    ("a whole row of an update", [[change("%s", "UPDATE", {"A": "2", "B": None, "C": None}, 2, **WHOLE)]],
     ("2", None, None)),
    ("an update of all columns", [[change("%s", "UPDATE", {"C": "2", "B": None, "A": "2", "Z": "2"}, 2)]],
     ("2", None, "2")),
    ("a whole row without what was not watched", [[change("%s", "INSERT", {"A": "1", "B": "1", "C": "1"}, 1)],
                                                  [change("%s", "UPDATE", {"A": "2", "C": "2"}, 2, **WHOLE)]],
     ("2", "1", "2")),
    ("capture types of one key", [[change("%s", "UPDATE", {"A": "2", "B": "2", "C": None}, 2,
                                          value_capture_type="NEW_ROW_AND_OLD_VALUES")],
                                  [change("%s", "UPDATE", {"B": "3"}, 3, value_capture_type="NEW_VALUES")],
                                  [change("%s", "UPDATE", {"C": "4"}, 4)]], ("2", "3", "4")),
    ("the last mod of a record", [[data_change_record(
        [mod({"Id": "%s"}, {"A": "1"}), mod({"Id": "another"}), mod({"Id": "%s"}, {"A": "2"})])]], ("2", None, None)),
    ("an erased mod says nothing, and the others keep their places", [[data_change_record(
        [{"erased": "e1"}, mod({"Id": "%s"}, {"A": "1"}), {"erased": ""}, mod({"Id": "%s"}, {"A": "2"})])]],
     ("2", None, None)),
    ("a record of erased mods alone", [[change("%s", "INSERT", {"A": "1"}, 1)],
                                       [data_change_record([{"erased": "e1"}, {"erased": "e1"}])]], ("1", None, None)),
    ("record_sequence", [[change("%s", "UPDATE", {"A": "2"}, 1, record_sequence="0000000A"),
                          change("%s", "INSERT", {"A": "1", "B": "1"}, 1, record_sequence="00000009")]],
     ("2", "1", None)),
    ("parts of JSON text", [[data_change_record(
        [{name: json.dumps(part) for name, part in mod({"Id": "%s"}, {"A": "1"}).items()}])]], ("1", None, None)),
    ("backfill after a change of its time", [[backfill_record([({"Id": "%s"}, {"A": "b"})], at(5))],
                                             [change("%s", "UPDATE", {"A": "5", "B": "5"}, 5)]], ("b", None, None)),
    ("backfill before a later change", [[change("%s", "UPDATE", {"B": "6"}, 6)],
                                        [backfill_record([({"Id": "%s"}, {"A": "b", "B": "b"})], at(5))]],
     ("b", "6", None)),
    ("backfill before a delete", [[change("%s", "DELETE", {}, 6)],
                                  [backfill_record([({"Id": "%s"}, {"A": "b"})], at(5))]], None),
    ("never whole", [[change("%s", "UPDATE", {"A": "2"}, 2)], [change("%s", "UPDATE", {"B": "3"}, 3)]], "pending"),
    ("of undeclared columns", [[change("%s", "UPDATE", {"Z": "2"}, 2)]], "pending"),
    ("updated after its delete", [[change("%s", "INSERT", {"A": "1"}, 1), change("%s", "DELETE", {}, 2)],
                                  [change("%s", "UPDATE", {"B": "4"}, 4)]], "pending"),
    ("pending until it is whole", [[change("%s", "UPDATE", {"B": "4"}, 4)], [change("%s", "INSERT", {"A": "3"}, 3)]],
     ("3", "4", None)),
]  # fmt: skip
# batches 1 to 4: 3 of ROWS and the update that still waits for its insert; one more of ROWS
PENDING = [5, 2, 0, 0]
LETTERS = {"Id": "string", "A": "string", "B": "string", "C": "string"}


class Outcome(NamedTuple):
    """What the models made of all the records, batch by batch."""

    failing: dict[str, int]
    types: dict[str, str]
    values: dict[str, dict[str, str | None]]
    quarantine: dict[str, str]
    rows: dict[str, tuple[Any, ...]]
    keys: set[str]
    ledger: list[Any]
    unrouted: set[tuple[str, int]]


MODEL = (
    "{{{{ config(materialized='current_state', unique_key='Id') }}}}\n"
    "{{{{ reconcile.spanner_change_stream(source('lake', 'changes'), object='{}') }}}}"
)


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


@pytest.fixture(scope="module")
def outcome(memory: Memory) -> Outcome:
    staged = [
        Staged(data_change_record([mod({"Id": _id(v)}, {v.column: v.staged})]), "Things", 1, _id(v)) for v in VALUES
    ]
    staged += [Staged(record.replace("%s", name), "Things", 1, name) for name, _, record in MALFORMED]
    staged += [
        Staged(record.replace("%s", name), "Letters", batch, name)
        for name, batches, _ in ROWS
        for batch, records in enumerate(batches, start=1)
        for record in records
    ]
    staged += [Staged(change("x", "INSERT", {}, 1), "Nobodys", 1), Staged(change("y", "INSERT", {}, 1), "Nobodys", 4)]
    cuts = {1: "2026-11-21T11:33:13.000000001Z", 3: "2026-11-21T11:33:14Z", 4: "2026-11-21T11:33:15.123456789Z"}
    staged += [Staged(cut(time, "2026-11-21T11:33:12Z"), "#cut", batch) for batch, time in cuts.items()]
    memory.stage("spanner_staging.all_changes", [row._replace(source="spanner") for row in staged])

    project = memory.project("spanner")
    project.source("spanner_staging", "changes")
    project.model("things", MODEL.format("Things"), COLUMNS)
    project.model("letters", MODEL.format("Letters"), LETTERS)
    project.model("keys", MODEL.format("Letters"), {"Id": "string"})
    # Things come in the first batch alone; a table of keys is merged into once.
    for batch, models in enumerate((["things", "letters"], ["letters", "keys"], ["letters"], ["letters", "keys"]), 1):
        memory.view("spanner_staging.changes", f"select * from `spanner_staging`.`all_changes` where batch <= {batch}")
        project.run(*models)
    project.run("reconcile_unrouted")
    forms = {"binary": "hex(`{0}`)", "array<binary>": "string(transform(`{0}`, x -> hex(x)))"}
    shown = [
        f"{forms.get(said if isinstance(said, str) else '', 'string(`{0}`)').format(name)} as `{name}`"
        for name, said in COLUMNS.items()
    ]
    things = memory.table("spanner.things")
    return Outcome(
        {
            f"{test} {model}": len(project.failing(test, model))
            for test in ("no_pending_rows", "ledger_balances")
            for model in ("things", "letters", "keys")
        },
        dict(things.dtypes),
        {row.Id: row.asDict() for row in things.selectExpr(*shown).collect()},
        {row.origin: row._change_error for row in memory.rows("spanner.things__quarantine")},
        {row.Id: tuple(row)[1:] for row in memory.rows("spanner.letters")},
        {row.Id for row in memory.rows("spanner.keys")},
        memory.table("spanner.reconcile_ledger").orderBy("recorded_at").collect(),
        {(row.object, row.batch) for row in memory.rows("spanner.reconcile_unrouted")},
    )


def _id(value: Value) -> str:
    return f"{value.column} {json.dumps(value.staged)}"


@pytest.mark.parametrize("value", VALUES, ids=_id)
def test_a_value_arrives_exactly_or_is_quarantined(outcome: Outcome, value: Value) -> None:
    if value.expected is None:
        assert _id(value) not in outcome.values
        assert f"{value.column}: " in outcome.quarantine[_id(value)]
    else:
        assert _id(value) not in outcome.quarantine
        column = "customerid" if value.column == "CustomerId" else value.column
        expected = None if value.expected is NULL else value.expected
        assert outcome.values[_id(value)] == {**dict.fromkeys(COLUMNS), "Id": _id(value), column: expected}


def test_columns_have_the_declared_types(outcome: Outcome) -> None:
    declared = {name: said if isinstance(said, str) else said["data_type"] for name, said in COLUMNS.items()}
    assert outcome.types == declared


@pytest.mark.parametrize(("name", "reason"), [case[:2] for case in MALFORMED], ids=[case[0] for case in MALFORMED])
def test_a_malformed_record_is_quarantined_with_its_reason(outcome: Outcome, name: str, reason: str) -> None:
    assert reason in outcome.quarantine[name]
    assert name not in outcome.values


@pytest.mark.parametrize(("name", "expected"), [case[::2] for case in ROWS], ids=[case[0] for case in ROWS])
def test_rows_are_as_their_records_leave_them(outcome: Outcome, name: str, expected: Any) -> None:
    assert outcome.rows.get(name) == (None if expected == "pending" else expected)


def test_rows_that_are_not_whole_are_pending(outcome: Outcome) -> None:
    pending = [name for name, _, expected in ROWS if expected == "pending"]
    assert outcome.failing["no_pending_rows letters"] == len(pending) == 3
    assert outcome.failing["no_pending_rows things"] == 0


def test_of_a_table_of_keys_alone_every_row_is_whole(outcome: Outcome) -> None:
    assert outcome.keys == {"another", *(name for name, _, expected in ROWS if expected is not None)}
    assert outcome.failing["no_pending_rows keys"] == 0
    assert outcome.failing["ledger_balances keys"] == 0


def test_the_ledger_counts_mods_and_balances(outcome: Outcome) -> None:
    lines = [line for line in outcome.ledger if line.relation == "spanner.letters"]
    mods = [
        [
            mod
            for _, batches, _ in ROWS
            for records in batches[n : n + 1]
            for r in records
            for mod in json.loads(r)["mods"]
        ]
        for n in range(4)
    ]
    assert [line.delivered for line in lines] == [sum("erased" not in mod for mod in of_batch) for of_batch in mods]
    assert [line.pending for line in lines] == PENDING
    assert outcome.failing["ledger_balances letters"] == 0
    assert outcome.failing["ledger_balances things"] == 0


def test_the_ledger_has_the_cut_of_the_last_batch(outcome: Outcome) -> None:
    cuts = [str(line.cut_time) for line in outcome.ledger if line.relation == "spanner.letters"]
    assert cuts == ["2026-11-21 11:33:13", "None", "2026-11-21 11:33:14", "2026-11-21 11:33:15.123456"]


def test_a_cut_is_no_unrouted_record(outcome: Outcome) -> None:
    assert outcome.unrouted == {("Nobodys", 1), ("Nobodys", 4)}


OWN = """
{{{{ config(materialized='current_state', unique_key='id', meta={meta}) }}}}
select
    id, a, `it's ``b```, d, kind as _change_type, sequence as _change_sequence, sequence as _change_id,
    cast(null as timestamp) as _change_time, bigint(1) as _change_batch, columns as _change_columns,
    cast(null as string) as _change_error
from values
    (1, 'one', 'one', 'one', 'insert', '1', cast(null as array<string>)),
    (1, 'two', null, null, 'update', '2', array('id', 'a')),
    (1, 'old', 'two', null, 'update', '1a', array('a', 'it\\'s `b`')),
    (1, 'old', 'two', null, 'update', '1a', array('it\\'s `b`', 'id', 'a', 'a')),
    (2, 'one', null, null, 'insert', '1', array('id', 'a')),
    (2, 'two', null, null, 'update', '2', array('a', 'c')),
    (2, 'two', null, null, 'update', '3', array('a', null)),
    (3, 'all', null, 'all', 'update', '1', array('d', 'a', 'it\\'s `b`')),
    (4, 'was', 'was', 'was', 'delete', '1', cast(null as array<string>))
as t(id, a, `it's ``b```, d, kind, sequence, columns)
"""


@pytest.fixture(scope="module")
def own(memory: Memory) -> Memory:
    """Build two models of the users' own change records, one of which takes partial ones."""
    project = memory.project("spanner_own")
    columns = {"id": "int", "a": "string", "it's `b`": "string", "d": "string"}
    project.model("taken", OWN.format(meta="{'partial_records': true}"), columns)
    project.model("refused", OWN.format(meta="{}"), columns)
    project.run("taken", "refused")
    return memory


def test_a_select_of_ones_own_says_that_it_has_partial_records(own: Memory) -> None:
    assert sorted(map(tuple, own.rows("spanner_own.taken"))) == [
        (1, "two", "two", "one"),
        (2, "one", None, None),
        (3, "all", None, "all"),
    ]
    errors = {(row._change_id, row._change_error) for row in own.rows("spanner_own.taken__quarantine")}
    said = "_change_columns names columns that are not declared: "
    assert errors == {("2", said + "a, c"), ("3", said + "a, NULL")}


def test_copies_that_name_their_columns_in_another_order_are_duplicates(own: Memory) -> None:
    (line,) = own.table("spanner_own.reconcile_ledger").where("relation like '%taken'").collect()
    assert (line.delivered, line.duplicate, line.quarantined) == (9, 1, 2)
    assert line.applied + line.superseded + line.pending == 6


@pytest.mark.parametrize("model", ["taken", "refused"])
def test_of_a_row_that_is_deleted_no_value_is_kept(own: Memory, model: str) -> None:
    """Whatever the delete carries."""
    (kept,) = own.table(f"spanner_own.{model}__base").where("_deleted").select("id", "a", "`it's ``b```", "d").collect()
    assert tuple(kept) == (4, None, None, None)


def test_a_model_that_does_not_take_them_quarantines_them(own: Memory) -> None:
    assert [tuple(row) for row in own.rows("spanner_own.refused")] == [(1, "one", "one", "one")]
    errors = [row._change_error for row in own.rows("spanner_own.refused__quarantine")]
    assert len(errors) == 7
    assert {error.split(",")[0] for error in errors} == {"the record carries only some columns"}


def test_a_base_table_of_whole_rows_pays_nothing(own: Memory) -> None:
    extra = ["_change_row_sequence", "_change_column_sequences"]
    plain = ["id", "a", "it's `b`", "d", "_change_sequence", "_change_time", "_change_batch", "_deleted"]
    assert own.table("spanner_own.refused__base").columns == plain
    assert own.table("spanner_own.taken__base").columns == plain + extra


def _part(transaction: str, sequence: int, last: bool, records: int, partitions: int, **fields: Any) -> str:
    return data_change_record(
        [mod({"Id": f"{transaction}-{sequence}"})],
        server_transaction_id=transaction,
        record_sequence=f"{sequence:08}",
        is_last_record_in_transaction_in_partition=last,
        number_of_records_in_transaction=str(records),
        number_of_partitions_in_transaction=str(partitions),
        **fields,
    )


def test_transactions_are_compared_with_what_their_records_say(memory: Memory) -> None:
    good = [
        ("Things", _part("whole", 0, False, 3, 2)),
        ("Things", _part("whole", 1, True, 3, 2)),
        ("Nobodys", _part("whole", 2, True, 3, 2)),
        ("Nobodys", _part("whole", 2, True, 3, 2)),  # delivered twice
        ("Things", _part("small", 0, True, 1, 1)),
        ("Things", backfill_record([({"Id": "b"}, {})], at(1))),
        ("#cut", cut(at(2), at(1))),
    ]
    bad = [
        ("Things", _part("a record is missing", 0, True, 2, 1)),
        ("Things", _part("a partition is missing", 0, True, 1, 2)),
        ("Things", _part("a last record is missing", 0, False, 1, 1)),
        ("Things", _part("too many", 0, False, 1, 1)),
        ("Things", _part("too many", 1, True, 1, 1)),
        ("Nobodys", _part("records that differ", 0, False, 2, 1)),
        ("Nobodys", _part("records that differ", 1, True, 3, 1)),
        ("Things", "{torn"),
    ]
    for table, records in {"whole": good, "broken": good + bad}.items():
        rows = [Staged(record, name, 1, source="spanner") for name, record in records]
        memory.stage(f"spanner_transactions.{table}", rows)
    project = memory.project("spanner_transactions")
    project.source("spanner_transactions", "broken")
    project.model("things", MODEL.format("Things").replace("changes", "broken"), {"Id": "string"})
    assert (
        _incomplete(memory, project.macros.test_transactions_complete(Relation("spanner_transactions", "whole"))) == []
    )
    broken = {json.loads(r)["server_transaction_id"] for _, r in bad if not r.startswith("{torn")} | {None}
    staging = project.macros.test_transactions_complete(Relation("spanner_transactions", "broken"))
    for found in (staging, project.test("transactions_complete", "things", which="compile")):
        incomplete = _incomplete(memory, found)
        assert (set(incomplete), len(incomplete)) == (broken, len(broken))


def _incomplete(memory: Memory, sql: str) -> list[str | None]:
    return [row.server_transaction_id for row in memory.sql(sql).collect()]
