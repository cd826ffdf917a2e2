"""Data changes put together from their messages, as the JSON that is staged."""

import base64
import json
from typing import Any

import pytest
from fake_bigtable import FakeBigtable, Mutation, delete_column, delete_family, delete_row, set_cell
from google.cloud.bigtable_v2 import types
from hypothesis import given, settings
from hypothesis import strategies as st
from reconcile_jobs.bigtable.change_decoder import Change, ChangeDecoder, TornChange

MICROS = 1_790_000_000_123_456


def messages(*mutations: Any, server: FakeBigtable | None = None, **commit: Any) -> list[Any]:
    """A commit as the server sends it."""
    server = server or FakeBigtable()
    done = server.commit(b"\xff\x00k", *mutations, **{"micros": MICROS, "tiebreaker": 7} | commit)
    assert done is not None
    return [message.data_change for message in server._messages(done, "the token", MICROS + 5)]


def decoded(some: list[Any]) -> dict[str, Any]:
    decoder = ChangeDecoder()
    *before, last = [decoder.add(message) for message in some]
    assert before == [None] * len(before)
    assert isinstance(last, Change) and decoder.is_between_changes
    assert (last.token, last.low_watermark) == ("the token", (MICROS + 5) * 1000)
    return dict(json.loads(last.json))


def test_a_change_as_it_is_staged():
    record = decoded(
        messages(
            set_cell("f", b"\x00q", 1000, b"\xffv"),
            delete_column("f", b"q", 5, 9),
            delete_column("f", b""),
            delete_family('g"'),
        )
    )
    assert record == {
        "row_key": "/wBr",
        "type": "user",
        "source_cluster_id": "c1",
        "commit_timestamp": "2026-09-21T14:13:20.123456000Z",
        "tiebreaker": 7,
        "token": "the token",
        "estimated_low_watermark": "2026-09-21T14:13:20.123461000Z",
        "entries": [
            {"set_cell": {"family": "f", "qualifier": "AHE=", "timestamp_micros": 1000, "value": "/3Y="}},
            {
                "delete_from_column": {
                    "family": "f",
                    "qualifier": "cQ==",
                    "start_timestamp_micros": 5,
                    "end_timestamp_micros": 9,
                }
            },
            {
                "delete_from_column": {
                    "family": "f",
                    "qualifier": "",
                    "start_timestamp_micros": 0,
                    "end_timestamp_micros": 0,
                }
            },
            {"delete_from_family": {"family": 'g"'}},
        ],
    }


def test_garbage_collection_has_no_cluster_and_another_type_its_name_or_number():
    collected = decoded(messages(delete_column("f", b"q"), kind=2))
    assert (collected["type"], collected["source_cluster_id"]) == ("garbage_collection", "")
    assert decoded(messages(delete_family("f"), kind=0))["type"] == "type_unspecified"
    assert decoded(messages(delete_family("f"), kind=9))["type"] == "9"


def test_an_entry_of_another_kind_is_kept_as_it_is():
    value = {"raw_value": b"q"}
    add = Mutation(add_to_cell={"family_name": "f", "column_qualifier": value, "input": {"int_value": 3}})
    row = Mutation(delete_from_row={})
    future = Mutation.FromString(b"\xfa\x01\x03new")  # a field that no version of the client has
    server = FakeBigtable()
    done = server.commit(b"k", add, future)
    assert done is not None
    done.mutations.append(row)  # which no change stream brings
    (message,) = server._messages(done, "the token", MICROS + 5)
    assert decoded([message.data_change])["entries"] == [
        {
            "add_to_cell": {
                "family_name": "f",
                "column_qualifier": {"raw_value": "cQ=="},
                "input": {"int_value": "3"},
            }
        },
        {"unknown": {"protobuf": base64.b64encode(b"\xfa\x01\x03new").decode()}},
        {"delete_from_row": {}},
    ]


def test_a_change_in_many_messages_and_a_value_in_chunks():
    server = FakeBigtable(value_chunk=3, entries_per_message=2)
    entries = [set_cell("f", b"q", 1, b"abcdefgh"), delete_family("g"), set_cell("g", b"", 2, b""), delete_family("f")]
    some = messages(*entries, set_cell("f", b"z", 3, b"xyz1"), server=server)
    assert len(some) == 6 and [m.type_ for m in some] == [1, 3, 3, 3, 3, 3]
    assert some[1].chunks[0].mutation.set_cell.family_name == "ignored"
    record = decoded(some)
    assert [next(iter(entry)) for entry in record["entries"]] == [
        "set_cell",
        "delete_from_family",
        "set_cell",
        "delete_from_family",
        "set_cell",
    ]
    assert record["entries"][0]["set_cell"]["value"] == base64.b64encode(b"abcdefgh").decode()
    assert record["entries"][4]["set_cell"] == {
        "family": "f",
        "qualifier": "eg==",
        "timestamp_micros": 3,
        "value": base64.b64encode(b"xyz1").decode(),
    }


BYTES = st.binary(max_size=12)
ENTRIES = st.lists(
    st.one_of(
        st.builds(set_cell, st.text("fg_-.9", min_size=1), BYTES, st.integers(0, 2**62), BYTES),
        st.builds(delete_column, st.just("f"), BYTES, st.integers(0, 2**62), st.integers(0, 2**62)),
        st.builds(delete_family, st.just("f")),
    ),
    min_size=1,
    max_size=6,
)


@settings(deadline=None)  # other processes may have the machine
@given(ENTRIES, st.integers(1, 13), st.integers(1, 7), BYTES.filter(bool), st.integers(0, 2**31 - 1))
def test_however_it_is_cut_a_change_is_what_was_committed(
    entries: list[Any], value_chunk: int, entries_per_message: int, row: bytes, tiebreaker: int
):
    server = FakeBigtable(value_chunk=value_chunk, entries_per_message=entries_per_message)
    done = server.commit(row, *entries, micros=MICROS, tiebreaker=tiebreaker)
    assert done is not None
    record = decoded([message.data_change for message in server._messages(done, "the token", MICROS + 5)])
    assert record.pop("token") and record.pop("estimated_low_watermark")
    assert record == done.record()


def torn(change: Any) -> list[Any]:
    some = messages(
        set_cell("f", b"q", 1, b"abcdefgh"),
        delete_family("g"),
        server=FakeBigtable(value_chunk=3, entries_per_message=1),
    )
    change(some)
    return some


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda some: some.pop(0), "had not begun"),
        (lambda some: some.pop(1), "with a gap"),
        (lambda some: some.insert(2, some[0]), "begins within another"),
        (lambda some: some[1].chunks[0].ClearField("chunk_info"), "something else within a value"),
        (lambda some: some[1].chunks[0].mutation.CopyFrom(delete_row()), "something else within a value"),
        (lambda some: setattr(some[2].chunks[0].mutation.set_cell, "value", b"x"), "shorter or longer"),
        (lambda some: setattr(some[1], "done", True), "ends within a value"),
        (lambda some: setattr(some[-1], "token", ""), "without a token"),
    ],
)
def test_messages_that_do_not_make_a_change_are_no_change(change: Any, complaint: str):
    decoder = ChangeDecoder()
    with pytest.raises(TornChange, match=complaint):
        for message in torn(change):
            decoder.add(message)


def test_what_the_decoder_takes_for_granted_of_the_client():
    kinds = types.ReadChangeStreamResponse.DataChange.Type
    assert {kind.name: kind.value for kind in kinds} == {
        "TYPE_UNSPECIFIED": 0,
        "USER": 1,
        "GARBAGE_COLLECTION": 2,
        "CONTINUATION": 3,
    }
