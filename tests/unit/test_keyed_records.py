"""Which parts of a record of Spanner are of erased keys, and what is left of it. No Spark.

Records of Datastream's files: tests/unit/test_erasure.py.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from reconcile_jobs.erased_keys import ErasedKeys, KeyOf
from reconcile_jobs.keyed_records import SPANNER, KeyColumn, Left

ID, CODE = KeyColumn("Id", ("id",), True), KeyColumn("Code", ("code",), False)
SECRET = b"0123456789abcdef0123456789abcdef"


def mod(id_: Any, **new: Any) -> dict[str, Any]:
    return {"keys": {"Id": id_}, "new_values": new, "old_values": {}}


def record(*mods: Any, **more: Any) -> bytes:
    return json.dumps({"commit_timestamp": "2026-05-01T09:00:00Z", "mods": mods, **more}).encode()


def keys(content: bytes, *columns: KeyColumn) -> list[set[tuple[str, ...]] | None]:
    return [None if part is None else set(part) for part in SPANNER.reading(content, columns or (ID,)).parts]


def test_each_mod_is_of_the_key_in_its_keys_whatever_form_they_have():
    assert keys(record(mod("7"), mod("007"), mod(8))) == [{("7",)}, {("7",)}, {("8",)}]
    assert keys(record({"keys": '{"ID": "7"}', "new_values": "{}"})) == [{("7",)}]
    assert keys(record({"keys": {"Id": "7", "Code": "a"}}), ID, CODE) == [{("7", "a")}]
    assert keys(record(mod("8", Id="7"))) == [{("8",)}], "a key among the new values is none"


@pytest.mark.parametrize(
    "unreadable",
    [{}, {"keys": None}, {"keys": "{"}, {"keys": {"Id": None}}, {"keys": {}}, "7", None, [], {"keys": "7"}],
)
def test_a_mod_whose_keys_cannot_be_read_is_of_no_key_and_the_others_are(unreadable: Any):
    assert keys(record(mod("7"), unreadable)) == [{("7",)}, None]
    read = SPANNER.reading(record(mod("7"), unreadable), (ID,))
    assert (read.can_be_read, read.places({("7",)}.__contains__)) == (True, [0])
    assert read.places({("7",)}.__contains__, with_unreadable=True) == [0, 1]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"null", b"[]", b"\xff", b"[" * 100_000, b"{}", record(), b'{"mods": {}}', b'{"mods": 7}',
                b'{"mods": [{"keys": {"Id": "7"}}], "mods": []}']
)  # fmt: skip
def test_what_is_no_record_has_no_key_and_a_note_takes_its_place(content: bytes):
    read = SPANNER.reading(content, (ID,))
    assert (read.parts, read.can_be_read) == ((None,), False)
    assert SPANNER.without(content, [0], "People", "e1") == Left(
        '{"erased_record":{"object":"People","erasure":"e1"}}', True
    )


def test_a_mark_takes_the_place_of_an_erased_mod_and_all_else_stays_as_it_was():
    content = (
        '{"commit_timestamp":"2026-05-01T09:00:00.000000001Z","number":12345678901234567890.10,"twice":1,"twice":2,'
        '"mods":[{"keys":{"Id":"7"},"new_values":{"Name":"x"}},{"keys":{"Id":"8"},"new_values":{"F":1.50,"T":"\u00e9\\ud800"}}],'
        '"flags":[true,null,[]]}'
    )
    left = SPANNER.without(content.encode(), [0], "People", "e1")
    assert left == Left(
        '{"commit_timestamp":"2026-05-01T09:00:00.000000001Z","number":12345678901234567890.10,"twice":1,"twice":2,'
        '"mods":[{"erased":"e1"},{"keys":{"Id":"8"},"new_values":{"F":1.50,"T":"\\u00e9\\ud800"}}],'
        '"flags":[true,null,[]]}',
        False,
    )
    assert keys(left.record.encode()) == [set(), {("8",)}]
    assert SPANNER.without(left.record.encode(), [1], "People", None).record.count("erased") == 2


def test_all_mods_of_a_record_may_be_erased_and_it_still_is_one_of_its_transaction():
    content = record(mod("7"), mod("7"), server_transaction_id="t")
    left = SPANNER.without(content, [0, 1], "People", None)
    assert json.loads(left.record) == {
        "commit_timestamp": "2026-05-01T09:00:00Z", "mods": [{"erased": ""}, {"erased": ""}],
        "server_transaction_id": "t",
    }  # fmt: skip
    assert not left.is_note


@pytest.mark.parametrize(
    ("change_id", "place"),
    [
        ("2026-05-01T09:00:00Z/t/00000000/1", 1), ("2026-05-01T09:00:00Z/t/x/0", 0), ("0", 0), ("t/2", None),
        ("t/", None), ("", None), (None, None), ("t/\u0661", None),
        ('2026-05-01T09:00:00Z/backfill/{"Id":"8"}', 1), ('2026/backfill/{"Id":"9"}', None), ("2026/backfill/", None),
    ],
)  # fmt: skip
def test_a_quarantined_row_is_of_the_mod_that_its_id_names(change_id: str | None, place: int | None):
    read = SPANNER.reading(record(mod("7"), mod("8")), (ID,))
    assert SPANNER.own_place(change_id, read, (ID,)) == place


@pytest.mark.parametrize("change_id", ['2026/backfill/{"Id":null}', "2026/backfill/x", "2026-05-01T09:00:00Z"])
def test_a_quarantined_row_whose_id_has_no_key_is_of_the_mod_without_a_key_and_not_of_an_erased_one(change_id: str):
    read = SPANNER.reading(record(mod("7"), mod(None), mod("8"), backfill=True), (ID,))
    assert SPANNER.own_place(change_id, read, (ID,)) == 1
    assert read.places({("7",)}.__contains__) == [0]


@pytest.mark.parametrize("levels", [450, 900])
def test_a_record_that_can_be_read_can_be_written_however_deep_it_is(levels: int):
    deep = "[" * levels + '{"a":' * 9 + "1" + "}" * 9 + "]" * levels
    content = f'{{"mods":[{{"keys":{{"Id":"7"}}}}],"deep":{deep}}}'
    assert SPANNER.without(content.encode(), [0], "People", None).record == (
        f'{{"mods":[{{"erased":""}}],"deep":{deep}}}'
    )


def test_letters_stay_as_they_are_so_that_a_record_does_not_grow():
    content = '{"mods":[{"keys":{"Id":"7"}}],"text":"жé😀","half":"\\ud800"}'
    assert SPANNER.without(content.encode(), [0], "People", None).record == (
        '{"mods":[{"erased":""}],"text":"жé😀","half":"\\ud800"}'
    )


def test_a_quarantined_row_of_a_record_with_one_mod_is_of_this_one():
    assert SPANNER.own_place(None, SPANNER.reading(record(mod("7")), (ID,)), (ID,)) == 0


def test_an_append_takes_the_mods_of_erased_keys_out_of_records_of_their_object():
    of = KeyOf(("People",), (ID,))
    digest = ErasedKeys(SECRET).digest(of, ("7",))
    erased = ErasedKeys(SECRET, (of,), frozenset({digest}), SPANNER)
    content = record(mod("7"), mod("8"), mod("7.0"))
    left = erased.without("People", content)
    assert left and [("keys" in one, one.get("erased")) for one in json.loads(left.record)["mods"]] == [
        (False, ""), (True, None), (False, ""),
    ]  # fmt: skip
    assert erased.without("People", record(mod("8"))) is None
    assert erased.without("Orders", content) is None
    assert erased.without("People", b"{") is None
    assert erased.without("People", left.record.encode()) is None, "what is erased is erased"
