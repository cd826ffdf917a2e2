"""Rows from chunks, and one JSON for both dialects."""

import gc
import json
from types import SimpleNamespace
from typing import Any

import pytest
from fake_spanner import COLUMN_TYPES, RECORD, chunks, cuts, encoded, list_of, spanner_type
from google.cloud.spanner_v1 import types as T
from google.protobuf.struct_pb2 import Struct, Value
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.spanner import stream_decoder, windows
from reconcile_jobs.spanner.stream_decoder import (
    ChildPartitions,
    DataChange,
    Heartbeat,
    RecordDecoder,
    Rows,
    TornResult,
    merged,
)
from reconcile_jobs.timestamps import as_text, nanoseconds, sort_key, zulu

# Every type of a column: its type, a value as Spanner's JSON has it, and an awkward one.
COLUMNS: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "b": ({"code": "BOOL"}, True, None),
    "i": ({"code": "INT64"}, "9223372036854775807", "-9223372036854775808"),
    "f": ({"code": "FLOAT64"}, 1.5, "NaN"),
    "g": ({"code": "FLOAT32"}, 0.10000000149011612, "-Infinity"),
    "n": ({"code": "NUMERIC"}, "12345678901234567890123456789.123456789", "-0.000000001"),
    "pn": ({"code": "NUMERIC", "type_annotation": "PG_NUMERIC"}, "1.10", "NaN"),
    "s": ({"code": "STRING"}, 'a"\\é\n<&>\u2028表😀', ""),
    "y": ({"code": "BYTES"}, "AP8=", ""),
    "d": ({"code": "DATE"}, "2026-02-03", "0001-01-01"),
    "t": ({"code": "TIMESTAMP"}, "2026-02-03T04:05:06.123456789Z", "2026-02-03T04:05:06Z"),
    "j": ({"code": "JSON"}, '{"a": [1, null], "b": 1.10}', "null"),
    "pj": ({"code": "JSON", "type_annotation": "PG_JSONB"}, '{"a": 1.10}', "[]"),
    "u": ({"code": "UUID"}, "7b2b8a3e-0c5f-4f6e-9d1e-2f3a4b5c6d7e", None),
}
ARRAYS = {
    f"a{name}": ({"code": "ARRAY", "array_element_type": kind}, [value, other, None], [])
    for name, (kind, value, other) in COLUMNS.items()
}


def record_of_everything(which: int) -> dict[str, Any]:
    columns = COLUMNS | ARRAYS
    types = [
        {"name": name, "type": kind, "is_primary_key": name == "i", "ordinal_position": number}
        for number, (name, (kind, *_)) in enumerate(columns.items(), 1)
    ]
    values = {name: column[which] for name, column in columns.items()}
    return {
        "commit_timestamp": "2026-05-01T09:00:00.123456789Z",
        "record_sequence": "00000001",
        "server_transaction_id": "6329047911",
        "is_last_record_in_transaction_in_partition": True,
        "table_name": "shop.Everything",
        "column_types": types,
        "mods": [{"keys": {"i": values.pop("i")}, "new_values": values, "old_values": {"s": None}}],
        "mod_type": "UPDATE",
        "value_capture_type": "NEW_ROW_AND_OLD_VALUES",
        "number_of_records_in_transaction": 2,
        "number_of_partitions_in_transaction": 1,
        "transaction_tag": "app=ä",
        "is_system_transaction": False,
    }


CHILDREN = {
    "start_timestamp": "2026-05-01T09:00:01.5Z",
    "record_sequence": "00000001",
    "child_partitions": [
        {"token": "c", "parent_partition_tokens": ["a", "b"]},
        {"token": "d", "parent_partition_tokens": ["a"]},
    ],
}
SAMPLES = [
    {"data_change_record": record_of_everything(1)},
    {"data_change_record": record_of_everything(2)},
    {"heartbeat_record": {"timestamp": "2026-05-01T09:00:00.5Z"}},
    {"child_partitions_record": CHILDREN},
]


def googlesql(sample: dict[str, Any]) -> tuple[Any, Value]:
    struct = {kind: [sample[kind]] if kind in sample else [] for kind in RECORD[1]}
    return T.Type.pb(spanner_type(RECORD)), encoded(RECORD, [struct])


def postgresql(sample: dict[str, Any]) -> tuple[Any, Value]:
    text = json.dumps(sample)
    for moment in ("09:00:00.123456789", "09:00:00.5", "09:00:01.5"):
        text = text.replace(moment + "Z", moment + "+00:00")
    text = text.replace("04:05:06Z", "04:05:06+00:00")
    kind = T.Type(code=T.TypeCode.JSON, type_annotation=T.TypeAnnotationCode.PG_JSONB)
    return T.Type.pb(kind), Value(string_value=text)


def messages(kind: Any, parts: list[tuple[Value, bool]]) -> list[Any]:
    fields = [T.StructType.Field(name="ChangeRecord", type_=T.Type.wrap(kind))]
    metadata = T.ResultSetMetadata.pb(T.ResultSetMetadata(row_type=T.StructType(fields=fields)))
    return [
        T.PartialResultSet.pb()(values=[part], chunked_value=more, metadata=None if i else metadata)
        for i, (part, more) in enumerate(parts)
    ]


def decoded(kind: Any, parts: list[tuple[Value, bool]]) -> list[Any]:
    rows, found = Rows(), []
    for message in messages(kind, parts):
        for row in rows.add(message):
            found += RecordDecoder(rows.fields).records(row)
    assert rows.whole
    return found


def whole(sent: tuple[Any, Value]) -> list[Any]:
    return decoded(sent[0], [(sent[1], False)])


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: next(iter(sample)))
def test_both_dialects_give_the_same(sample: dict[str, Any]):
    (one,), (other,) = whole(googlesql(sample)), whole(postgresql(sample))
    assert one == other


@pytest.mark.parametrize("which", [1, 2])
def test_a_data_change_record_is_staged_whole(which: int):
    record = record_of_everything(which)
    (change,) = whole(googlesql({"data_change_record": record}))
    assert isinstance(change, DataChange)
    assert json.loads(change.json) == record
    assert (change.table, change.identity) == ("shop.Everything", ("6329047911", "00000001"))
    assert change.committed == "2026-05-01T09:00:00.123456789"
    # One text for one record, whatever order its fields came in.
    assert change.json == json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def test_heartbeats_and_children():
    assert whole(postgresql(SAMPLES[2])) == [Heartbeat("2026-05-01T09:00:00.500000000")]
    assert whole(postgresql(SAMPLES[3])) == [
        ChildPartitions("2026-05-01T09:00:01.5Z", (("c", ("a", "b")), ("d", ("a",))))
    ]


def test_the_children_of_the_initial_query_have_no_parents():
    for parents in ([], [None]):
        child = {"token": "c", "parent_partition_tokens": parents}
        sample = {"child_partitions_record": CHILDREN | {"child_partitions": [child]}}
        for dialect in (googlesql, postgresql):
            assert whole(dialect(sample)) == [ChildPartitions("2026-05-01T09:00:01.5Z", (("c", ()),))]


def test_numbers_that_are_int64_become_text():
    record = record_of_everything(1)
    record["mods"] = [{"keys": {"i": 2**63 - 1}, "new_values": {"ai": [1, None], "f": 3}, "old_values": {}}]
    for dialect in (googlesql, postgresql):
        (change,) = whole(dialect({"data_change_record": record}))
        (mod,) = json.loads(change.json)["mods"]
        assert mod == {"keys": {"i": str(2**63 - 1)}, "new_values": {"ai": ["1", None], "f": 3}, "old_values": {}}


def test_what_is_no_number_without_quotes_becomes_text():
    text = json.dumps({"data_change_record": record_of_everything(1)}).replace('"f": 1.5', '"f": NaN')
    assert '"f": NaN' in text
    (change,) = decoded(postgresql(SAMPLES[0])[0], [(Value(string_value=text), False)])
    assert json.loads(change.json, parse_constant=pytest.fail)["mods"][0]["new_values"]["f"] == "NaN"


@pytest.mark.parametrize("dialect", [googlesql, postgresql])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: next(iter(sample)))
def test_a_record_cut_anywhere_is_the_same_record(dialect: Any, sample: dict[str, Any]):
    kind, value = dialect(sample)
    expected = decoded(kind, [(value, False)])
    count = 0
    for left, right in cuts(value):
        count += 1
        assert merged(left, right) == value
        # The merge is by far the most of it; decoding some of the cuts shows that nothing else counts.
        if count % 23 == 0:
            assert decoded(kind, [(left, True), (right, False)]) == expected
    assert count > 30
    for size in (1, 2, 7, 100):
        assert decoded(kind, list(chunks(value, size))) == expected


VALUES = [
    encoded(["ARRAY", "INT64"], ["1", None, "23"]),
    encoded(["ARRAY", "FLOAT64"], [1.5, "NaN", None, 2.5, "-Infinity"]),
    encoded(["ARRAY", "BOOL"], [True, None, None, False]),
    encoded(
        ["ARRAY", {"a": ["ARRAY", "STRING"], "b": "BOOL", "c": "BYTES"}],
        [{"a": ["x", "", None], "b": True, "c": "AP8="}, None],
    ),
    Value(struct_value=Struct(fields={"a": Value(string_value="xy"), "b": encoded(["ARRAY", "STRING"], ["p", "q"])})),
    Value(string_value="text"),
    list_of([]),
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_value_of_any_type_cut_twice_anywhere_is_the_same_value(value: Value):
    found = 0
    for left, right in cuts(value):
        assert merged(left, right) == value
        for first, second in cuts(left):
            found += 1
            assert merged(merged(first, second), right) == value
    assert found


def test_the_examples_of_the_reference():
    def of(python: Any) -> Value:
        if isinstance(python, list):
            return list_of([of(item) for item in python])
        if isinstance(python, dict):
            return Value(struct_value=Struct(fields={name: of(item) for name, item in python.items()}))
        return Value(string_value=python) if isinstance(python, str) else Value(number_value=python)

    for first, rest, whole in [
        ("foo", "bar", "foobar"),
        ([2, 3], [4], [2, 3, 4]),
        (["a", "b"], ["c", "d"], ["a", "bc", "d"]),
        (["a", ["b", "c"]], [["d"], "e"], ["a", ["b", "cd"], "e"]),
        ({"a": "1"}, {"b": "2"}, {"a": "1", "b": "2"}),
        ({"a": "1"}, {"a": "2"}, {"a": "12"}),
        ({"a": ["1"]}, {"a": ["2"]}, {"a": ["12"]}),
    ]:
        assert merged(of(first), of(rest)) == of(whole)


@pytest.mark.parametrize("value", [Value(bool_value=True), Value(number_value=1), Value(null_value=0)])
def test_what_cannot_come_in_chunks_is_refused(value: Value):
    with pytest.raises(ValueError, match="cannot come in chunks"):
        merged(value, value)
    with pytest.raises(ValueError, match="goes on as"):
        merged(Value(string_value="a"), value)


def test_rows_of_several_columns_over_several_messages():
    fields = [T.StructType.Field(name=name, type_=spanner_type("STRING")) for name in "ab"]
    metadata = T.ResultSetMetadata.pb(T.ResultSetMetadata(row_type=T.StructType(fields=fields)))
    message = T.PartialResultSet.pb()
    text = lambda *texts: [Value(string_value=one) for one in texts]  # noqa: E731
    rows = Rows()
    assert rows.add(
        message(metadata=metadata, values=text("1", "2", "3", "x"), chunked_value=True, resume_token=b"t")
    ) == [text("1", "2")]
    assert rows.add(message(values=text("y"), chunked_value=True)) == []
    assert rows.add(message(values=text("z", "5"))) == [text("3", "xyz")]
    assert not rows.whole
    assert rows.rewind() == b"t"
    assert rows.add(message(values=text("Y", "5", "6"))) == [text("3", "xY"), text("5", "6")]
    assert rows.whole


def test_a_result_that_ends_within_a_value_or_a_row_is_torn():
    fields = [T.StructType.Field(name=name, type_=spanner_type("STRING")) for name in "ab"]
    other = T.ResultSetMetadata.pb(T.ResultSetMetadata(row_type=T.StructType(fields=fields[:1])))
    metadata = T.ResultSetMetadata.pb(T.ResultSetMetadata(row_type=T.StructType(fields=fields)))
    message = T.PartialResultSet.pb()
    one, two = Value(string_value="1"), Value(string_value="2")
    for values, chunked in (([one], False), ([one, two], True), ([one, two, one], False)):
        rows = Rows()
        rows.add(message(metadata=metadata, values=values, chunked_value=chunked))
        with pytest.raises(TornResult):
            rows.end()
    rows = Rows()
    # Columns are told once; a message may have no values, and then nothing of it is cut.
    assert rows.add(message(metadata=metadata, values=[one], chunked_value=True)) == []
    assert rows.add(message(metadata=other, chunked_value=True)) == []
    assert rows.add(message(values=[one, two])) == [[Value(string_value="11"), two]]
    rows.end()


def test_of_what_may_be_null_null_is_none():
    for code in ("BOOL", "INT64", "STRING", "JSON", "TIMESTAMP"):
        convert = stream_decoder._converter(T.Type.pb(spanner_type(code)))
        assert convert(Value(null_value=0)) is None
    convert = stream_decoder._converter(T.Type.pb(spanner_type("INT64")))
    assert convert(Value(string_value="-9007199254740993")) == -9007199254740993
    assert stream_decoder._JsonRecords().of_value(Value(null_value=0)) is None
    assert stream_decoder._JsonRecords().of_value(Value(string_value='{"heartbeat_record": {}}')) == {
        "heartbeat_record": {}
    }


def test_lists_of_nothing_stay_lists():
    assert merged(list_of([]), list_of([])).WhichOneof("kind") == "list_value"
    both = merged(list_of([Value(number_value=1)]), list_of([Value(number_value=2)]))
    assert [value.number_value for value in both.list_value.values] == [1, 2]
    apart = merged(list_of([Value(string_value="a")]), list_of([Value(number_value=2)]))
    assert len(apart.list_value.values) == 2


def test_json_has_no_number_that_is_none():
    with pytest.raises(ValueError, match="Out of range"):
        stream_decoder.compact_json({"a": float("nan")})
    assert stream_decoder.compact_json({"b": 1, "a": ["ü"]}) == '{"a":["ü"],"b":1}'


def test_a_stream_with_mutable_key_ranges_is_refused():
    kind = T.Type.pb(T.Type(code=T.TypeCode.PROTO, proto_type_fqn="google.spanner.v1.ChangeStreamRecord"))
    with pytest.raises(UsageError, match="MUTABLE_KEY_RANGE"):
        decoded(kind, [(Value(string_value=""), False)])
    with pytest.raises(UsageError, match="MUTABLE_KEY_RANGE"):
        decoded(postgresql(SAMPLES[0])[0], [(Value(string_value='{"partition_start_record": {}}'), False)])


def test_the_column_types_of_different_tables_are_told_apart():
    fields = messages(googlesql(SAMPLES[0])[0], [(Value(), False)])[0].metadata.row_type.fields
    decoder = RecordDecoder(fields)
    for name in ("A", "B", "A"):
        types = [COLUMN_TYPES[0] | {"name": name}]
        record = record_of_everything(1) | {"column_types": types, "mods": [{"keys": {name: "1"}}]}
        (change,) = decoder.records([googlesql({"data_change_record": record})[1]])
        assert isinstance(change, DataChange)
        assert json.loads(change.json)["column_types"] == types


def record_with_columns(*names: str) -> dict[str, Any]:
    types = [COLUMN_TYPES[0] | {"name": name} for name in names]
    return record_of_everything(1) | {"column_types": types, "mods": [{"keys": {names[0]: "1"}}]}


def columns_in_memory() -> int:
    gc.collect()
    return sum(isinstance(some, stream_decoder._Columns) for some in gc.get_objects())


@pytest.mark.parametrize(("dialect", "kept"), [(googlesql, 500), (postgresql, 100)])
def test_of_ever_new_lists_of_columns_only_so_many_are_kept(dialect: Any, kept: int):
    decoder = RecordDecoder(messages(dialect(SAMPLES[0])[0], [(Value(), False)])[0].metadata.row_type.fields)
    before = columns_in_memory()
    for number in [*range(kept + 50), *range(50)]:
        record = record_with_columns("k", str(number))
        (change,) = decoder.records([dialect({"data_change_record": record})[1]])
        assert isinstance(change, DataChange)
        assert json.loads(change.json)["column_types"] == record["column_types"]
    assert columns_in_memory() - before <= kept


def test_a_list_of_columns_is_searched_among_the_last_ones_only_and_the_one_found_last_first():
    class Text(str):
        looks = 0

        def startswith(self, *of: Any) -> bool:
            Text.looks += 1
            return super().startswith(*of)

    decoder = RecordDecoder(messages(postgresql(SAMPLES[0])[0], [(Value(), False)])[0].metadata.row_type.fields)

    def looks(*names: str) -> int:
        Text.looks = 0
        sent = Text(postgresql({"data_change_record": record_with_columns(*names)})[1].string_value)
        list(decoder.records([SimpleNamespace(string_value=sent, WhichOneof=lambda _: "string_value")]))
        return Text.looks

    assert looks("usual") == 0
    for number in range(300):
        assert looks("k", str(number)) == min(1 + number, 100)
        assert looks("usual") == 2, "behind the one that is new"
        assert looks("usual") == 1


def test_a_column_may_be_called_as_the_list_of_columns_is():
    for dialect in (googlesql, postgresql):
        sent = []
        everything = record_of_everything(2)["column_types"]
        for value in ("x", COLUMN_TYPES, COLUMN_TYPES, 0, everything, "x"):
            # The mods come first, and so this value before the list.
            record = record_of_everything(1) | {"column_types": COLUMN_TYPES}
            del record["mods"]
            mods = [{"keys": {"column_types": value}, "new_values": {}, "old_values": {}}]
            sent.append({"mods": mods} | record)
        sent.append(record_of_everything(2))
        decoder = RecordDecoder(messages(dialect(SAMPLES[0])[0], [(Value(), False)])[0].metadata.row_type.fields)
        changes = [change for r in sent for change in decoder.records([dialect({"data_change_record": r})[1]])]
        assert [json.loads(change.json) for change in changes if isinstance(change, DataChange)] == sent


# Timestamps


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("0001-01-01T00:00:00Z", -62135596800 * 10**9),
        ("9999-12-31T23:59:59.999999999Z", 253402300800 * 10**9 - 1),
    ],
)
def test_timestamps_keep_their_nanoseconds(text: str, moment: int):
    assert nanoseconds(text) == moment
    assert nanoseconds(as_text(moment)) == moment
    assert len(as_text(moment)) == 30


@pytest.mark.parametrize("text", ["2026-05-01", "yesterday", "2026-05-01T09:00:00", "2026-02-30T00:00:00Z", ""])
def test_what_is_no_timestamp_is_refused(text: str):
    with pytest.raises(ValueError, match=r"."):
        nanoseconds(text)


def test_timestamps_of_different_lengths_are_put_in_order():
    texts = [
        "2026-05-01T09:00:00Z",
        "2026-05-01T09:00:00.000000001Z",
        "2026-05-01T09:00:00.1Z",
        "2026-05-01T09:00:00.12Z",
    ]
    assert sorted(reversed(texts), key=sort_key) == texts
    assert zulu("2026-05-01T09:00:00.10+00:00") == "2026-05-01T09:00:00.10Z"


def test_records_of_one_moment_are_known_when_a_query_brings_them_again() -> None:
    """A query that is made again begins at the last moment of which something was seen."""
    nobody: Any = None
    partition = windows._Partition(nobody, nobody, None, "2026-11-21T11:33:12Z", "2026-11-21T11:34:12Z")
    early, late = sort_key("2026-11-21T11:33:13.000000001Z"), sort_key("2026-11-21T11:33:13.000000002Z")
    first, *same = (
        DataChange("t", "{}", moment, ("x", place)) for moment, place in ((early, "1"), (late, "1"), (late, "2"))
    )
    assert [partition._is_new(record) for record in (first, *same)] == [True] * 3
    assert [partition._is_new(record) for record in (first, *same)] == [False] * 3
    assert not partition._is_new(Heartbeat(late)) and [partition._is_new(record) for record in same] == [False] * 2
