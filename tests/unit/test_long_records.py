"""A record that is too long is told by what its beginning says, whatever that is."""

import json

import pytest
from reconcile_jobs.long_records import LongRecord, if_long
from reconcile_jobs.staging import raw_rows


def note_of(text, object_of_path=None):
    long = LongRecord("byte 0")
    for place in range(0, len(text), 7):
        long.add(text[place : place + 7].encode(errors="surrogatepass"))
    note = json.loads(long.note(object_of_path))
    assert note.pop("long_record")["bytes"] == len(text.encode(errors="surrogatepass"))
    return note


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ('{"a":1,"b":"x', {"a": 1}),
        (' { "a" : "1" , "b" : [1, {"c":null}] , "d":', {"a": "1", "b": [1, {"c": None}]}),
        ('{"a":12', {}),
        ('{"a":12}', {"a": 12}),
        ('{"n":1.10,"a":1', {"n": "1.10"}),
        ('{"a":"\\ud800","b":1,', {"a": "\ud800", "b": 1}),
        ("x" * 100, {}),
        ("", {}),
        ("[1,2]", {}),
        ('{"a" 1,"b":2,', {}),
        ("{1:2,", {}),
        ('{"a":' + "[" * 50_000, {}),
        ('{"long_record":1,"a":2,', {"a": 2}),
    ],
)
def test_what_stands_whole_in_the_beginning_is_kept(text, members):
    assert note_of(text) == members


def test_the_note_begins_with_what_models_look_for():
    long = LongRecord()
    long.add(b'{"long_record":1,"object":"A","payload":"')
    assert long.note("B").startswith('{"long_record":{"bytes":41,"sha256":"')
    assert json.loads(long.note("B"))["object"] == "A"
    assert note_of("{", "B") == {"object": "B"}


@pytest.mark.parametrize(
    ("record", "is_long"), [("x" * 20, False), ("x" * 21, True), ("é" * 10, False), ("é" * 11, True)]
)
def test_a_record_is_as_long_as_its_bytes(record, is_long):
    assert (if_long(record, 20) is not None) == is_long


def test_what_a_job_writes_for_itself_is_never_too_long():
    rows = raw_rows(["x" * 100, "x" * 100], ["#cut", "orders"], ["o", "o"], longest=20).to_pylist()
    assert [row["record"] == "x" * 100 for row in rows] == [True, False]
    assert rows[1]["record"].startswith('{"long_record":{"bytes":100,')


@pytest.mark.parametrize("letter", ["a", "\u00e9", "\u4e2d", "\U0001f600"])
def test_a_record_of_a_reader_is_measured_in_bytes(letter):
    size = len(letter.encode())
    whole, over = letter * (120 // size), letter * (120 // size + 1)
    found = raw_rows([whole, over], ["shop.orders"] * 2, ["here"] * 2, longest=120).to_pylist()
    assert found[0]["record"] == whole
    assert json.loads(found[1]["record"])["long_record"]["bytes"] == len(over.encode())
