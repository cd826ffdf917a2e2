"""Avro to JSON: every digit, every year, every branch."""

import io
import json
import struct
import uuid
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from avro_files import DATE, JSON, MICROS, NUMBER, OFFSET, TIME_INTERVAL, array, record
from avro_files import avro_file as avro
from hypothesis import example, given
from hypothesis import strategies as st
from reconcile_jobs import avro_blocks, avro_json
from reconcile_jobs.avro_json import AvroError, json_records

HEADER: Any = fastavro.parse_schema(
    record("header", magic={"type": "fixed", "name": "magic", "size": 4}, meta={"type": "map", "values": "bytes"},
           sync={"type": "fixed", "name": "sync", "size": 16})
)  # fmt: skip


def of_one_field(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": "x", "type": kind}]}


def field(kind: Any, *values: Any) -> list[str]:
    """The texts that values of one type get."""
    texts = list(json_records(avro(of_one_field(kind), *({"x": value} for value in values))))
    assert all(text.startswith('{"x":') and text.endswith("}") and json.loads(text) for text in texts)
    return [text[5:-1] for text in texts]


def labelled(plain: Any, label: Any, *values: Any) -> list[str]:
    """The texts of values that are written as one type and labelled as another of the same bytes.

    Python's own types, in which fastavro takes timestamps and the like, could not hold them.
    """
    content = avro(of_one_field(plain), *({"x": value} for value in values))
    return [text[5:-1] for text in json_records(with_schema(content, of_one_field(label)))]


def with_schema(content: bytes, schema: Any) -> bytes:
    """Return a file with another schema of the same bytes in its header, to the letter."""
    source = io.BytesIO(content)
    header: Any = fastavro.schemaless_reader(source, HEADER, None)
    header["meta"]["avro.schema"] = json.dumps(schema).encode()
    changed = io.BytesIO()
    fastavro.schemaless_writer(changed, HEADER, header)
    return changed.getvalue() + content[source.tell() :]


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10}


def test_a_decimal_of_more_digits_than_python_writes_is_a_text_of_all_of_them():
    digits = "12345678901" * 1000
    label = DECIMAL | {"precision": 20000, "scale": 3}
    value = int(Decimal(digits)).to_bytes(5000, "big", signed=True)
    assert labelled("bytes", label, value) == [f'"{digits[:-3]}.{digits[-3:]}"']
    negative = (-int(Decimal(digits))).to_bytes(61_300, "big", signed=True)
    assert labelled("bytes", label, negative) == [f'"-{digits[:-3]}.{digits[-3:]}"']
    assert labelled("bytes", DECIMAL | {"scale": 16_383}, b"\x01") == ["0." + "1".rjust(16_383, "0")]


def test_a_decimal_of_very_many_places_or_bytes_is_refused_before_it_is_written_out():
    with pytest.raises(AvroError, match="its schema has a decimal of 16,384 places, and 16,383 are read"):
        labelled("bytes", DECIMAL | {"scale": 16_384}, b"\x01")
    with pytest.raises(AvroError, match="a decimal has 61,301 bytes, and 61,300 are read"):
        labelled("bytes", DECIMAL, b"\x01" * 61_301)
    # Not a number of places, though Python takes it for 1.
    assert labelled("bytes", DECIMAL | {"scale": True}, b"\x01") == ['"AQ=="']


def test_a_decimal_keeps_every_digit_and_its_scale():
    texts = ["12.3400000000", "-0.0000000001", "0E-10", "1234567890123456789012345678.0123456789"]
    assert field(DECIMAL, *map(Decimal, texts)) == [
        "12.3400000000",
        "-0.0000000001",
        "0.0000000000",
        "1234567890123456789012345678.0123456789",
    ]


def test_a_decimal_longer_than_json_numbers_are_read_exactly_is_text():
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2}
    assert field(kind, Decimal("9" * 40 + ".25"), Decimal("1.25")) == ['"' + "9" * 40 + '.25"', "1.25"]


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_any_decimal_is_the_decimal_that_was_written(unscaled: int, scale: int):
    kind = {"type": "fixed", "name": "d", "size": 17, "logicalType": "decimal", "precision": 38, "scale": scale}
    value = Decimal((0 if unscaled >= 0 else 1, tuple(map(int, str(abs(unscaled)))), -scale))
    (text,) = field(kind, value)
    assert Decimal(text).as_tuple() == value.as_tuple()


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_long_is_the_long_that_was_written(value: int):
    assert field("long", value) == [str(value)]


@given(st.floats())
def test_any_double_is_the_double_that_was_written(value: float):
    (text,) = field("double", value)
    assert struct.pack("<d", float(text.strip('"'))) == struct.pack("<d", value) or value != value


@given(st.floats(width=32))
def test_any_float_is_the_float_that_was_written(value: float):
    (text,) = field("float", value)
    assert struct.pack("<f", float(text.strip('"'))) == struct.pack("<f", value) or value != value


def test_a_float_is_as_short_as_it_can_be():
    assert field("float", 0.1, 16777216.0, 3.4028234663852886e38) == ["0.1", "16777216.0", "3.4028234663852886e+38"]


def test_what_is_no_number_is_text():
    assert field("double", float("nan"), float("inf"), float("-inf")) == ['"NaN"', '"Infinity"', '"-Infinity"']


@pytest.mark.parametrize(
    ("logical", "value", "text"),
    [
        ("timestamp-millis", 1795260794123, "2026-11-21T11:33:14.123Z"),
        ("timestamp-micros", 1795260794123456, "2026-11-21T11:33:14.123456Z"),
        ("timestamp-nanos", 1795260794123456789, "2026-11-21T11:33:14.123456789Z"),
        ("local-timestamp-millis", -1, "1969-12-31T23:59:59.999"),
        ("local-timestamp-micros", 951782400000000, "2000-02-29T00:00:00.000000"),
        ("timestamp-micros", -62135596800000001, "0000-12-31T23:59:59.999999Z"),
        ("timestamp-micros", -62198755200000000, "-0001-01-01T00:00:00.000000Z"),
        ("timestamp-millis", 253402300800000, "+10000-01-01T00:00:00.000Z"),
        ("timestamp-micros", 2**63 - 1, "+294247-01-10T04:00:54.775807Z"),
        ("time-micros", 86399999999, "23:59:59.999999"),
    ],
)
def test_a_time_keeps_every_digit_and_every_year(logical: str, value: int, text: str):
    assert labelled("long", {"type": "long", "logicalType": logical}, value) == [f'"{text}"']


def test_dates_and_times_of_day():
    assert labelled("int", {"type": "int", "logicalType": "date"}, 0, -1, 2932896, 2932897, -719528, 11016) == [
        '"1970-01-01"',
        '"1969-12-31"',
        '"9999-12-31"',
        '"+10000-01-01"',
        '"0000-01-01"',
        '"2000-02-29"',
    ]
    assert labelled("int", {"type": "int", "logicalType": "time-millis"}, 0, 45296789) == [
        '"00:00:00.000"',
        '"12:34:56.789"',
    ]


def test_bytes_and_fixed_are_base64():
    assert field("bytes", b"", b"\x00\xff\n") == ['""', '"AP8K"']
    assert field({"type": "fixed", "name": "f", "size": 2}, b"\x00\xff") == ['"AP8="']


@pytest.mark.parametrize("scale", ["2", None, -1, 100.0])
def test_a_decimal_whose_scale_is_no_number_is_read_as_the_type_beneath(scale: Any):
    plain = {"type": "fixed", "name": "f", "size": 2}
    decimal = {**plain, "logicalType": "decimal", "precision": 4, "scale": scale}
    assert labelled(plain, decimal, b"ab") == field(plain, b"ab")


def test_a_logical_type_that_is_unknown_is_read_as_the_type_beneath():
    assert labelled("long", {"type": "long", "logicalType": "interval"}, 5) == ["5"]
    assert labelled("int", {"type": "int", "logicalType": "timestamp-micros"}, 5) == ["5"]


@pytest.mark.parametrize("label", [["timestamp-micros"], {"name": "timestamp-micros"}, 7, None], ids=repr)
def test_a_logical_type_that_is_no_text_is_ignored(label: Any):
    assert field({"type": "long", "logicalType": label}, 5) == ["5"]
    assert field({"type": "fixed", "name": "f", "size": 2, "logicalType": label}, b"\x00\xff") == ['"AP8="']
    assert field({"type": "array", "items": {"type": "int", "logicalType": label}}, [5]) == ["[5]"]


# fastavro writes none of these schemas, so the bytes are written under the plain type.
@pytest.mark.parametrize(
    ("plain", "wrapped", "value", "text"),
    [
        ("long", {"type": MICROS}, 0, '"1970-01-01T00:00:00.000000Z"'),
        ("long", {"type": {"type": MICROS}}, 0, '"1970-01-01T00:00:00.000000Z"'),
        ("long", {"type": {"type": "long"}, "logicalType": "timestamp-micros"}, 0, "0"),
        (["null", "long"], {"type": ["null", "long"]}, 5, "5"),
        (["null", "long"], {"type": ["null", "long"]}, None, "null"),
        (
            ["null", "long"],
            {"type": ["null", {"type": MICROS}], "logicalType": "date"},
            0,
            '"1970-01-01T00:00:00.000000Z"',
        ),
        (
            ["null", "int", "string"],
            [{"type": {"type": "null"}}, {"type": DATE}, {"type": {"type": "string"}}],
            5,
            '"1970-01-06"',
        ),
        (
            ["null", "int", "string"],
            [{"type": {"type": "null"}}, {"type": DATE}, {"type": {"type": "string"}}],
            None,
            "null",
        ),
        (
            {"type": "array", "items": "int"},
            {"type": {"type": "array", "items": {"type": DATE}}},
            [5],
            '["1970-01-06"]',
        ),
        (
            {"type": "map", "values": "int"},
            {"type": {"type": "map", "values": {"type": DATE}}},
            {"a": 5},
            '{"a":"1970-01-06"}',
        ),
        (record("inner", day="int"), {"type": record("inner", day={"type": DATE})}, {"day": 5}, '{"day":"1970-01-06"}'),
    ],
    ids=repr,
)
def test_a_type_in_an_object_of_its_own_is_read_as_the_type(plain: Any, wrapped: Any, value: Any, text: str):
    assert labelled(plain, wrapped, value) == [text]


def test_uuids_and_durations():
    value = uuid.UUID(int=5)
    assert field({"type": "string", "logicalType": "uuid"}, str(value)) == [f'"{value}"']
    duration = {"type": "fixed", "name": "d", "size": 12}
    months_days_millis = struct.pack("<III", 1, 2, 3004)
    assert labelled(duration, duration | {"logicalType": "duration"}, months_days_millis) == ['"P1M2DT3.004S"']


def test_the_branch_of_a_union_decides_how_a_value_reads():
    date = {"type": "int", "logicalType": "date"}
    timestamp = {"type": "long", "logicalType": "timestamp-millis"}
    assert labelled(
        ["null", "int", "long", "string", "bytes"],
        ["null", date, timestamp, "string", "bytes"],
        None,
        5,
        2**40,
        "5",
        b"5",
    ) == ["null", '"1970-01-06"', '"2004-11-03T19:53:47.776Z"', '"5"', '"NQ=="']


def test_the_same_schema_with_names_that_avro_does_not_allow():
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "int"}]}
    content = avro(schema, {"x": 1}).replace(b'"name": "x"', b'"name": "$"')
    assert list(json_records(content)) == ['{"$":1}']


def test_nested_types_and_types_known_by_name():
    schema = {
        "type": "record",
        "name": "node",
        "namespace": "a.b",
        "fields": [
            {"name": "mood", "type": {"type": "enum", "name": "mood", "symbols": ["GOOD", "BAD"]}},
            {"name": "moods", "type": {"type": "array", "items": "mood"}},
            {"name": "by_name", "type": {"type": "map", "values": ["null", DECIMAL]}},
            {"name": "next", "type": ["null", "a.b.node"]},
        ],
    }
    last = {"mood": "BAD", "moods": [], "by_name": {}, "next": None}
    first = {"mood": "GOOD", "moods": ["BAD", "GOOD"], "by_name": {'a"é': Decimal("1.5"), "b": None}, "next": last}
    assert list(json_records(avro(schema, first))) == [
        '{"mood":"GOOD","moods":["BAD","GOOD"],"by_name":{"a\\"é":1.5000000000,"b":null},'
        '"next":{"mood":"BAD","moods":[],"by_name":{},"next":null}}'
    ]


@given(st.text())
def test_any_text_is_the_text_that_was_written(value: str):
    (text,) = field("string", value)
    assert json.loads(text) == value
    assert "\n" not in text


def test_records_of_records_without_bytes_are_refused_before_one_is_read():
    """Each has two of the one before: forty of them would be a million million values, of no bytes."""
    schema: dict[str, Any] = {"type": "record", "name": "r0", "fields": [{"name": "a", "type": "null"}]}
    for number in range(1, 40):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"r{number - 1}"}]
        schema = {"type": "record", "name": f"r{number}", "fields": fields}
    told = io.BytesIO()
    fastavro.writer(told, schema, [])
    with pytest.raises(AvroError, match="a record of very many values without bytes"):
        list(json_records(told.getvalue()))


MANY_ZEROS = {"type": "bytes", "logicalType": "decimal", "precision": 1000, "scale": 1000}
LONG_NAME = {"type": "record", "name": "r", "fields": [{"name": "n" * 1000, "type": "int"}]}
LONG_SYMBOL = {"type": "enum", "name": "e", "symbols": ["A" * 1000]}


def listed(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (listed("int"), range(20)),
        ({"type": "map", "values": "int"}, {str(number): number for number in range(20)}),
        (listed(MANY_ZEROS), [Decimal(0)] * 2),
        ({"type": "map", "values": MANY_ZEROS}, {"a": Decimal(0), "b": Decimal(0)}),
        (listed(LONG_NAME), [{"n" * 1000: 1}] * 2),
        (listed(LONG_SYMBOL), ["A" * 1000] * 2),
    ],
    ids=["elements", "entries", "zeros", "zeros of entries", "names", "symbols"],
)
def test_a_record_that_is_much_longer_than_its_bytes_is_refused_before_it_is_there(
    kind: Any, value: Any, monkeypatch: pytest.MonkeyPatch
):
    content = avro(record("r0", x=kind), {"x": value})
    assert list(json_records(content))
    monkeypatch.setattr(avro_json, "_TEXT_OF_RECORD", 1200)
    with pytest.raises(AvroError, match=r"a record has very many values, .* \(after byte \d+\)"):
        list(json_records(content))


@pytest.mark.parametrize("fields", [1, 50])
def test_a_block_of_records_that_are_much_longer_than_its_bytes_is_refused(
    fields: int, monkeypatch: pytest.MonkeyPatch
):
    """Some hundred thousand bytes would be terabytes of text, in records without bytes or of one."""
    names = {f"n{number}": "null" for number in range(fields)}
    content = avro(record("r", **names), *[dict.fromkeys(names)] * 100)
    read = list(json_records(content))
    assert len(read) == 100
    text = sum(map(len, read))
    monkeypatch.setattr(avro_json, "_TEXT_OF_BLOCK", text)
    assert list(json_records(content)) == read
    monkeypatch.setattr(avro_json, "_TEXT_OF_BLOCK", text // 2)
    found = []
    with pytest.raises(AvroError, match=r"a block very few bytes for its text"):
        for one in json_records(content):
            found.append(one)
    assert 0 < len(found) < 60, "refused as soon as it is too much"


def test_what_is_told_of_a_payload_counts_too(monkeypatch: pytest.MonkeyPatch):
    """Each record is one byte, and gets the names of all fields of bytes."""
    payload = record("p", **{f"b{number}": "bytes" for number in range(50)})
    content = avro(record("r", payload=["null", payload]), *[{"payload": None}] * 100)
    read = list(json_records(content))
    assert len(read[0]) > 400
    monkeypatch.setattr(avro_json, "_TEXT_OF_BLOCK", 0)
    monkeypatch.setattr(avro_json, "_TEXT_OF_BYTE", 100)
    with pytest.raises(AvroError, match=r"a block very few bytes for its text"):
        list(json_records(content))


def test_memory_that_ends_is_no_torn_file(monkeypatch: pytest.MonkeyPatch):
    def no_memory(*of: object) -> None:
        raise MemoryError

    monkeypatch.setattr(avro_blocks, "decompressed", no_memory)
    with pytest.raises(MemoryError):
        list(json_records(avro(record("r", x="int"), {"x": 1})))


def test_an_empty_record_and_what_is_no_record_at_all():
    assert list(json_records(avro({"type": "record", "name": "r", "fields": []}, {}))) == ["{}"]
    assert list(json_records(avro({"type": "array", "items": "int"}, [1, 2]))) == ["[1,2]"]


# Blocks of a dozen long records, and of a hundred short ones, whose number takes two bytes.
@pytest.mark.parametrize("times", [20, 1], ids=["few", "many"])
@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_a_file_cut_anywhere_but_between_blocks_is_refused(codec: str, times: int):
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "string"}]}
    content = avro(schema, *({"x": str(i) * times} for i in range(200)), codec=codec, sync_interval=500)
    whole = list(json_records(content))
    between_blocks = set()
    for end in range(len(content)):
        try:
            assert list(json_records(content[:end])) == whole[: len(list(json_records(content[:end])))]
            between_blocks.add(end)
        except AvroError as refused:
            assert str(refused).startswith("no ")
    marker = content[-16:]
    assert between_blocks == {end for end in range(len(content)) if content[:end].endswith(marker)}


@pytest.mark.parametrize("content", [b"", b"O", b'{"object":"A"}\n', b"Obj\x01", b"Obj\x01\x00" + b"0" * 16])
def test_what_is_no_avro_is_refused(content: bytes):
    with pytest.raises(AvroError, match=r"no (whole )?Avro file"):
        list(json_records(content))


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "snappy", "zstandard", "lz4"])
def test_every_codec_is_read(codec):
    assert list(json_records(avro(of_one_field("string"), {"x": "SHOP.A"}, codec=codec))) == ['{"x":"SHOP.A"}']


@pytest.mark.parametrize(
    "schema", [of_one_field("string"), record("e", x="string", next=["null", "e"])], ids=["plain", "recursive"]
)
def test_a_damaged_block_of_snappy_is_refused_and_no_value_is_changed(schema: Any):
    content = avro(schema, *({"x": f"SHOP.A{number}", "next": None} for number in range(40)), codec="snappy")
    assert len(list(json_records(content))) == 40
    for place in range(content.index(b"SHOP.A"), len(content) - 16):
        damaged = bytearray(content)
        damaged[place] ^= 4
        with pytest.raises(AvroError):
            list(json_records(bytes(damaged)))


def test_a_codec_without_its_library_is_no_torn_file(monkeypatch: pytest.MonkeyPatch):
    """Torn files may be left out, on request; of this one all records would be lost."""

    def read(content: Any) -> Any:
        raise ValueError("zstandard codec is supported but you need to install zstandard")

    content = avro(of_one_field("long"), {"x": 1}, codec="zstandard")
    monkeypatch.setattr(fastavro, "block_reader", read)
    monkeypatch.setattr(avro_blocks, "_zstd", lambda: None)
    with pytest.raises(ValueError, match="you need to install zstandard") as failure:
        list(json_records(content))
    assert not isinstance(failure.value, AvroError)


# --- what JSON does not tell ------------------------------------------------------------------------------------------


def told(**types: Any) -> Any:
    """Return what is told of the fields of a payload of these types."""
    unions = {name: ["null", *(type_ if isinstance(type_, list) else [type_])] for name, type_ in types.items()}
    payload = record("payload", **unions)
    schema = record("event", uuid="string", payload=["null", payload])
    (line,) = json_records(avro(schema, {"uuid": "1", "payload": dict.fromkeys(types)}))
    assert line.startswith('{"uuid":"1","payload":{')
    return json.loads(line).get("avro_types")


def test_what_json_does_not_tell_of_a_payload_is_told_beside_it():
    time_zone = record("datastream.timestampTz", timestamp=MICROS, offset=OFFSET)
    assert told(
        plain="string", whole="long", number=NUMBER, exact=DECIMAL, day=DATE, bytes="bytes", document=JSON,
        span=TIME_INTERVAL, at=time_zone, again="datastream.timestampTz", list=array("list", "int"),
        parts=array("parts", "bytes"), documents=array("documents", JSON),
        moments=array("moments", "datastream.timestampTz"),
        fixed={"type": "fixed", "name": "four", "size": 4}, kind={"type": "enum", "name": "kind", "symbols": ["a"]},
        plain_list={"type": "array", "items": "bytes"}, pairs={"type": "map", "values": "bytes"},
        either=["bytes", "string"],
    ) == {
        "bytes": "bytes", "document": "json", "span": "time-interval-micros", "at": "timestampTz",
        "again": "timestampTz", "list": "[]", "parts": "bytes[]", "documents": "json[]", "moments": "timestampTz[]",
        "fixed": "bytes",
    }  # fmt: skip


def test_what_is_told_of_a_payload_is_told_of_a_type_in_an_object_too():
    payload = record("payload", bytes=["null", "bytes"], document=["null", "string"])
    wrapped = record("payload", bytes={"type": ["null", {"type": "bytes"}]}, document=["null", {"type": JSON}])
    content = avro(record("event", payload=["null", payload]), {"payload": {"bytes": b"\xff", "document": "{}"}})
    (line,) = json_records(with_schema(content, record("event", payload={"type": ["null", {"type": wrapped}]})))
    assert json.loads(line) == {
        "payload": {"bytes": "/w==", "document": "{}"},
        "avro_types": {"bytes": "bytes", "document": "json"},
    }


FOUR = {"type": "fixed", "name": "four", "size": 4}
MONEY = {"type": "fixed", "name": "money", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}


def test_of_a_type_that_is_used_by_its_name_the_same_is_told_as_of_the_type():
    """Text that is told not to be bytes is read as MySQL's hex; a type that SQL does not know, as no text at all."""
    mood = {"type": "enum", "name": "mood", "symbols": ["GOOD"]}
    assert told(
        four=FOUR, again=["four"], list=array("list", "four"), money=MONEY,
        more="money", lists=array("lists", "money"), mood=mood, moods="mood", others=array("others", "mood"),
    ) == {"four": "bytes", "again": "bytes", "list": "bytes[]", "lists": "[]", "others": "[]"}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "name"),
    [
        ("p", "p"), (["null", "p"], "p"), ({"type": "array", "items": "p"}, "p"),
        ({"type": "map", "values": "p"}, "p"), ("p", "a.p"),
    ],
    ids=repr,
)  # fmt: skip
def test_a_payload_is_described_that_an_earlier_field_defines(before: Any, name: str):
    payload = record("p", x=["null", FOUR], y="bytes", z=["null", "four"])
    defined = json.loads(json.dumps(before).replace('"p"', json.dumps(payload)))
    schema = record("e", before=defined, payload=["null", name]) | {"namespace": "a"}
    empty = {"p": b"\x00\x00\x00", "array": b"\x00", "map": b"\x00", "null": b"\x00"}
    kind = before if isinstance(before, str) else before[0] if isinstance(before, list) else before["type"]
    (line,) = json_records(one_block(schema, empty[kind] + b"\x02\x02\x00\x10\x83\x00\x02\xff\x00"))
    read = json.loads(line)
    assert read["payload"] == {"x": "ABCDAA==", "y": "/w==", "z": None}
    assert read["avro_types"] == {"x": "bytes", "y": "bytes", "z": "bytes"}


def test_of_two_types_of_one_name_that_of_the_namespace_is_described():
    text = {"type": "enum", "name": "x", "namespace": "b", "symbols": ["A"]}
    inner = {"type": "fixed", "name": "x", "size": 1}
    schema = record("a.e", other=text, payload=record("p", first=inner, again={"type": "x"}, mine="a.x", others="b.x"))
    (line,) = json_records(one_block(schema, b"\x00" + b"\x01\x02\x03" + b"\x00"))
    assert json.loads(line) == {
        "other": "A", "payload": {"first": "AQ==", "again": "Ag==", "mine": "Aw==", "others": "A"},
        "avro_types": {"first": "bytes", "again": "bytes", "mine": "bytes"},
    }  # fmt: skip


def test_where_there_is_nothing_to_tell_nothing_is_told():
    assert told(id="long", word="string") is None
    schema = record("event", uuid="string", avro_types="string", payload=record("payload", bytes="bytes"))
    (line,) = json_records(avro(schema, {"uuid": "1", "avro_types": "mine", "payload": {"bytes": b""}}))
    assert json.loads(line)["avro_types"] == "mine"
    (line,) = json_records(avro(record("event", payload=["null", "string", "bytes"]), {"payload": "a"}))
    assert json.loads(line) == {"payload": "a"}


def test_a_name_without_a_namespace_is_of_the_one_around_it():
    inner = {"type": "record", "name": "inner", "fields": [
        {"name": "kind", "type": {"type": "enum", "name": "S", "symbols": ["a", "b"]}},
        {"name": "outer", "type": ["null", "outer"]},
    ]}  # fmt: skip
    schema = {"type": "record", "name": "outer", "namespace": "x.y", "fields": [
        {"name": "inner", "type": ["null", inner]}, {"name": "again", "type": "x.y.S"}, {"name": "short", "type": "S"},
    ]}  # fmt: skip
    deep = {"inner": None, "again": "a", "short": "b"}
    # fastavro would write whole names.
    content = avro(schema, {"inner": {"kind": "b", "outer": deep}, "again": "b", "short": "a"})
    (line,) = json_records(with_schema(content, schema))
    assert json.loads(line) == {"inner": {"kind": "b", "outer": deep}, "again": "b", "short": "a"}


# --- what a wrong byte makes of a file ---


# Where the parts of a block begin, after the header: the number of records, that of bytes, the records.
COUNT, FIRST_BYTE = 0, 2


def with_number(content: bytes, place: int, number: int) -> bytes:
    """Return a file with another number of one byte in its first block."""
    source = io.BytesIO(content)
    fastavro.schemaless_reader(source, HEADER, None)
    place += source.tell()
    zigzag = number << 1 if number >= 0 else (-number << 1) - 1
    return content[:place] + bytes([zigzag]) + content[place + 1 :]


def test_a_block_holds_as_many_records_as_it_says():
    content = avro(of_one_field("string"), *({"x": f"text {n}"} for n in range(5)))
    assert with_number(content, COUNT, 5) == content
    assert len(list(json_records(content))) == 5
    for count, why in ((4, "more than the 4 records"), (0, "more than the 0"), (-1, "of -1 rec"), (-5, "of -5 rec")):
        with pytest.raises(AvroError, match=why):
            list(json_records(with_number(content, COUNT, count)))
    with pytest.raises(AvroError, match="ends in the middle"):
        list(json_records(with_number(content, COUNT, 6)))


BRANCHES: list[Any] = [
    ["null", "string"], ["string", "null"], ["null", {"type": "map", "values": ["null", "long"]}], ["long"],
    ["null", "long", "string"], ["null", record("r2", y=["null", "bytes"])],
    ["null", {"type": "array", "items": "int"}], {"type": "enum", "name": "e", "symbols": ["A", "B"]},
]  # fmt: skip


@pytest.mark.parametrize("kind", BRANCHES, ids=repr)
def test_an_index_below_zero_or_behind_the_last_is_of_nothing(kind: Any):
    values = {"string": "", "long": 0, "null": None}
    first = kind["symbols"][0] if isinstance(kind, dict) else values[kind[0]]
    content = avro(of_one_field(kind), {"x": first})
    assert len(list(json_records(content))) == 1
    assert with_number(content, FIRST_BYTE, 0) == content
    branches = len(kind["symbols"]) if isinstance(kind, dict) else len(kind)
    for index in (*range(-64, 0), *range(branches, 64)):
        with pytest.raises(AvroError, match="no whole Avro file"):
            list(json_records(with_number(content, FIRST_BYTE, index)))


def one_block(schema: Any, block: bytes) -> bytes:
    """Return a file with these bytes as its only record, which no writer would write."""
    whole = avro(of_one_field("string"), {"x": ""})
    source = io.BytesIO(whole)
    header: Any = fastavro.schemaless_reader(source, HEADER, None)
    header["meta"]["avro.schema"] = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    made = io.BytesIO()
    fastavro.schemaless_writer(made, HEADER, header)
    for number in (1, len(block)):
        fastavro.schemaless_writer(made, fastavro.parse_schema("long"), number)
    return made.getvalue() + block + header["sync"]


def zigzag(number: int) -> bytes:
    """Return a number of any size, seven bits to a byte, as no writer would write one that is too large."""
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    written = bytearray()
    while rest > 127:
        written.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*written, rest])


@pytest.mark.parametrize("kind", BRANCHES, ids=repr)
@given(index=st.integers(-(2**70), 2**70) | st.integers(-300, 300))
@example(index=-9)
@example(index=-10)
@example(index=2**64)
def test_no_index_but_those_of_the_schema_is_of_something(kind: Any, index: int):
    branches = kind["symbols"] if isinstance(kind, dict) else kind
    for schema in (of_one_field(kind), record("e", x=kind, next=["null", "e"])):
        content = one_block(schema, zigzag(index) + bytes(20))
        with pytest.raises(AvroError, match="no whole Avro file") as refused:
            list(json_records(content))
        # Of an index of the schema a value is read, and then there is more.
        assert ("more than the 1 records" in str(refused.value)) == (0 <= index < len(branches))


def test_each_of_very_many_branches_is_told_by_its_index():
    """From the 65th on an index has two bytes, of which the first looks like an index of one byte."""
    kind = [{"type": "enum", "name": f"e{number}", "symbols": [f"of {number}"]} for number in range(200)]
    for index in range(len(kind)):
        content = one_block(of_one_field(kind), zigzag(index) + zigzag(0))
        assert [json.loads(text) for text in json_records(content)] == [{"x": f"of {index}"}]


LONGS: list[Any] = ["long", MICROS, {"type": "long", "logicalType": "time-nanos"}, ["null", "long"]]
INTS: list[Any] = ["int", DATE, OFFSET]


@pytest.mark.parametrize("kind", [*LONGS, *INTS], ids=repr)
@given(number=st.integers(-(2**80), 2**80) | st.integers(-(2**64), 2**64) | st.integers(-(2**33), 2**33))
@example(number=2**63)
@example(number=2**70)
@example(number=-(2**63) - 1)
@example(number=2**31)
def test_a_number_that_does_not_fit_is_no_number(kind: Any, number: int):
    bits = 32 if kind in INTS else 64
    content = one_block(of_one_field(kind), (b"\x02" if isinstance(kind, list) else b"") + zigzag(number))
    if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        assert len(list(json_records(content))) == 1
    else:
        with pytest.raises(AvroError, match="no whole Avro file: ValueError: a number has more than"):
            list(json_records(content))


LISTS: list[Any] = ["string", "bytes", {"type": "array", "items": "int"}, {"type": "map", "values": "int"}]


@pytest.mark.parametrize("kind", LISTS, ids=repr)
def test_a_length_or_a_count_that_does_not_fit_is_none(kind: Any):
    for number in (2**64, 2**64 + 1, 2**70, -(2**64)):
        with pytest.raises(AvroError, match="a number has more than"):
            list(json_records(one_block(of_one_field(kind), zigzag(number) + bytes(9))))


def test_a_number_that_takes_more_bytes_than_it_needs_is_read_up_to_ten():
    padded = b"\x8a" + b"\x80" * 8
    assert list(json_records(one_block(of_one_field("long"), padded + b"\x00"))) == ['{"x":5}']
    with pytest.raises(AvroError, match="a number has more than ten bytes"):
        list(json_records(one_block(of_one_field("long"), padded + b"\x80\x00")))


@pytest.mark.parametrize("place", [0, 1], ids=["records", "bytes"])
def test_the_numbers_of_a_block_fit_too(place: int):
    content = avro(of_one_field("long"), {"x": 7})
    source = io.BytesIO(content)
    fastavro.schemaless_reader(source, HEADER, None)
    begins = source.tell() + place
    assert content[begins] == 2  # one record, of one byte
    damaged = content[:begins] + zigzag(2**64 + 1) + content[begins + 1 :]
    with pytest.raises(AvroError, match="a number has more than 64 bits"):
        list(json_records(damaged))


def test_the_number_of_members_in_the_header_fits_too():
    content = avro(of_one_field("long"), {"x": 7})
    assert content[4:5] == b"\x04"  # the schema and the codec
    for count in (2**64 + 2, 2**70 + 2):
        with pytest.raises(AvroError, match="a number has more than"):
            list(json_records(content[:4] + zigzag(count) + content[5:]))


def test_a_name_that_a_map_has_twice_stays_twice():
    """A model then quarantines the record; one of the two values would be lost in silence."""
    schema = of_one_field({"type": "map", "values": ["null", "string"]})
    twice = b"\x04" + b"\x02a\x02\x02v" + b"\x02a\x02\x02w" + b"\x00"
    assert list(json_records(one_block(schema, twice))) == ['{"x":{"a":"v","a":"w"}}']


NESTED = record("r", x=record("n", next=["null", "n"]))


@pytest.mark.parametrize("depth", [0, 1, 100])
def test_a_record_may_hold_one_of_its_own_type(depth: int):
    (text,) = json_records(one_block(NESTED, b"\x02" * depth + b"\x00"))
    assert text == '{"x":' + '{"next":' * (depth + 1) + "null" + "}" * (depth + 2)


def test_a_record_that_holds_itself_a_million_times_ends_no_process():
    with pytest.raises(AvroError, match=r"one in another too many times to be read \(after byte \d+\)"):
        list(json_records(one_block(NESTED, b"\x02" * 1_000_000 + b"\x00")))


def test_a_name_in_a_schema_that_is_no_text_is_refused():
    for name in (b'"f\\ud800"', b'"\\udc00\\ud800"'):
        schema = b'{"type":"record","name":"e","fields":[{"name":' + name + b',"type":"string"}]}'
        with pytest.raises(AvroError, match="half of a surrogate pair"):
            list(json_records(one_block(schema, b"\x02x")))
