"""Masks: nothing of a masked value is in what is staged, kept, said or printed."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import hmac
import json
import pickle
import random
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import reconcile_jobs
from avro_files import avro_file, record
from pyspark import cloudpickle
from pyspark.sql import types as t
from reconcile_jobs import datastream_records
from reconcile_jobs import masks as masks_module
from reconcile_jobs.append_arguments import arguments
from reconcile_jobs.avro_json import AvroError
from reconcile_jobs.csv_records import Dialect
from reconcile_jobs.exact_text import reader_of
from reconcile_jobs.jdbc.database import Column as SourceColumn
from reconcile_jobs.long_records import LONGEST, LongRecord
from reconcile_jobs.masks import (
    ColumnMask,
    Masks,
    RowMasks,
    keep_masks,
    keep_masks_of_rows,
    plain_number,
    read_masks,
    read_row_masks,
)
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.snapshots import snapshot_csv, snapshot_jdbc
from reconcile_jobs.snapshots.snapshot_jdbc import Partitions, Target

CANARY = "canary-7f31"
KEY = "0123456789abcdef0123456789abcdef"
FIELDS = {"email": "sha256", "ssn": "drop", "limit": "sha256"}
MASKS = Masks({"shop_customers": FIELDS}, KEY.encode())
PLACE = "gs://bucket/shop/shop_customers/2026/05/01/09/00/a.json"


def digest(text: str) -> str:
    return hmac.new(KEY.encode(), text.encode(), hashlib.sha256).hexdigest()


def event(payload: str, **more: Any) -> str:
    envelope = json.dumps({"uuid": "7", "object": "shop_customers", "source_metadata": {"schema": "shop"}, **more})
    return f'{envelope[:-1]}, "payload": {payload}}}'


def staged(text: str | bytes) -> dict[str, Any]:
    """Return a record as it is staged; no canary is in it."""
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    found = MASKS.record(content)
    assert CANARY not in found and CANARY.encode().hex() not in found
    read: dict[str, Any] = json.loads(found, parse_float=Decimal)
    return read


def test_a_masked_record_begins_with_its_mark_and_keeps_all_else_to_the_digit():
    found = MASKS.record(
        event(f'{{"id": 1.10, "email": "{CANARY}", "ssn": "{CANARY}", "limit": 12.50, "b": "\\u00e9"}}').encode()
    )
    name = MASKS.by
    assert found == (
        f'{{"masked":{{"by":"{name}","fields":{{"email":"sha256","limit":"sha256","ssn":"drop"}}}},'
        '"uuid": "7","object": "shop_customers","source_metadata": {"schema": "shop"},'
        f'"payload":{{"id": 1.10,"email":"{digest(CANARY)}","limit":"{digest("12.5")}","b": "\\u00e9"}}}}'
    )


@pytest.mark.parametrize("spelled", ["email", "EMAIL", "Email", "\\u0065mail"])
def test_a_field_is_masked_in_any_case_and_spelling(spelled: str):
    assert list(staged(event(f'{{"{spelled}": "{CANARY}"}}'))["payload"].values()) == [digest(CANARY)]


def test_a_field_that_is_there_twice_is_masked_twice():
    found = MASKS.record(event(f'{{"email": "{CANARY}1", "email": "{CANARY}2"}}').encode())
    assert CANARY not in found and digest(f"{CANARY}1") in found and digest(f"{CANARY}2") in found


@pytest.mark.parametrize("object_", ["shop_customers", "shop.customers", "SHOP_CUSTOMERS", "Shop.Customers"])
def test_an_object_is_masked_in_each_of_its_names(object_: str):
    assert staged(event(f'{{"email": "{CANARY}"}}', object=object_))["payload"] == {"email": digest(CANARY)}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("null", None), ('""', ""), ('"a"', "a"), ("12.50", "12.5"), ("12.5", "12.5"), ("1e2", "100"), ("-0", "0"),
        ("-0.0", "0"), ("100", "100"), ('"12.50"', "12.50"), ("true", "true"), ('{"a": 1}', '{"a": 1}'),
        ("[1, 2]", "[1, 2]"), ('"\\u00e9"', "é"),
        ("123456789012345678901234567890.10", "123456789012345678901234567890.1"),
    ],
)  # fmt: skip
def test_what_is_hashed_is_the_text_of_the_value(value: str, text: str | None):
    assert staged(event(f'{{"email": {value}}}'))["payload"] == {"email": None if text is None else digest(text)}


def test_numbers_of_any_length_have_one_form():
    for _ in range(500):
        digits = "".join(random.choices("0123456789", k=random.randint(1, 60)))
        text = f"{random.choice(['', '-'])}{int(digits)}.{random.randint(0, 9999)}{'0' * random.randint(0, 4)}"
        plain = plain_number(text)
        assert Decimal(plain) == Decimal(text) and plain_number(plain) == plain and not plain.endswith(".")
    assert plain_number("9" * 5000 + "e300") == "9" * 5000 + "0" * 300
    assert [plain_number(text) for text in (".5", "-.50", "+5.", "007")] == ["0.5", "-0.5", "5", "7"]
    assert plain_number("NaN") == "NaN" and plain_number("1e9999") == "1e9999" and plain_number("007a") == "007a"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f'{{"object":"shop_customers","payload":{{"email":"{CANARY}', "it is not one whole JSON object"),
        (CANARY, "it is not one whole JSON object"),
        (f'["{CANARY}"]', "it is not one whole JSON object"),
        (event("{}") + event(f'{{"email": "{CANARY}"}}'), "it is not one whole JSON object"),
        (event(f'{{"email": "{CANARY}",}}'), "it is not one whole JSON object"),
        (event(f"{{'email': '{CANARY}'}}"), "it is not one whole JSON object"),
        (f'{{"payload":{{"email":"{CANARY}"}}}}', "it does not name one object"),
        (f'{{"object":"a","object":"shop_customers","payload":{{"email":"{CANARY}"}}}}', "it does not name one object"),
        (f'{{"object":{{"email":"{CANARY}"}}}}', "it does not name one object"),
        (f'{{"object":7,"email":"{CANARY}"}}', "it does not name one object"),
        (f'{{"object":"others","masked":{{}},"email":"{CANARY}"}}', "it has a member masked, which only this job"),
        (f'{{"object":"others","email":"{CANARY}"'.encode() + b'\xff"}', "it cannot be read"),
        ('{"a":' * 100_000 + f'"{CANARY}"', "it is not one whole JSON object"),
    ],
)  # fmt: skip
def test_a_record_that_cannot_be_read_is_staged_without_its_text(text: str | bytes, why: str):
    content = text if isinstance(text, bytes) else text.encode()
    found = staged(content)
    withheld = found.pop("withheld_record")
    assert found == {} and withheld["why"].startswith(why) and withheld["bytes"] == len(content)
    assert withheld["hmac"] == hmac.new(KEY.encode(), content, hashlib.sha256).hexdigest()


@pytest.mark.parametrize("payload", [f'"{CANARY}"', f'["{CANARY}"]', "7"])
def test_a_payload_of_another_form_is_withheld_and_the_record_names_its_table(payload: str):
    found = staged(event(payload))
    assert [*found] == ["masked", "withheld_record", "object", "source_metadata"]
    assert found["withheld_record"]["why"] == "its payload is not an object"


def test_members_that_no_model_reads_are_not_staged():
    text = event("null", PAYLOAD={"email": CANARY}, before={"email": CANARY}, email=CANARY)
    assert [*staged(text)] == ["masked", "uuid", "object", "source_metadata", "payload"]


def test_what_datastream_writes_beside_the_payload_stays_as_it_was_delivered():
    delivered = (
        '{"uuid": "7", "read_timestamp": "2026-05-01T09:00:00.5Z", "source_timestamp": 1.50, "object": '
        '"shop_customers", "read_method": "mysql-cdc", "stream_name": "s", "schema_key": "k", "sort_keys": [1, 2.0], '
        '"source_metadata": {"scn": 10}'
    )
    found = MASKS.record(f'{delivered}, "payload": {{"id": 1}}}}'.encode())
    members = json.loads(found, parse_float=Decimal)
    assert [*members][1:-1] == [*json.loads(f"{delivered}}}")]
    for member in ('"source_timestamp": 1.50', '"sort_keys": [1, 2.0]', '"schema_key": "k"', '"stream_name": "s"'):
        assert member in found


def test_records_of_other_objects_stay_as_they_are():
    text = event('{"email": "a@b", "n": 1.10}', object="shop_orders")
    assert MASKS.record(text.encode()) == text


def test_a_mask_goes_to_an_executor_that_has_no_module_of_it():
    """As `ship_by_value` sends it."""
    cloudpickle.register_pickle_by_value(reconcile_jobs)
    try:
        sent = cloudpickle.dumps(lambda line: MASKS.record(bytes(line)))
    finally:
        cloudpickle.unregister_pickle_by_value(reconcile_jobs)
    code = 'import pickle, sys; f = pickle.load(sys.stdin.buffer); print(f(b\'{"object":"x"\'))'
    ran = subprocess.run([sys.executable, "-I", "-c", code], input=sent, capture_output=True, check=True)
    assert b"withheld_record" in ran.stdout
    assert pickle.loads(pickle.dumps(MASKS)) == MASKS


def test_the_key_is_in_no_text_of_the_masks():
    masks = ColumnMask("sha256", MASKS), RowMasks(MASKS, "shop_customers"), MASKS
    assert (
        KEY not in f"{masks!r} {masks} {MASKS.mark('shop_customers')} {RowMasks(MASKS, 'shop_customers').properties()}"
    )
    assert MASKS.by == Masks({}, KEY.encode()).by != Masks({}, KEY.upper().encode()).by


# --- the readers -----------------------------------------------------------------------------------------------------


class Seen(set):
    """An accumulator, without Spark."""

    def add(self, some):
        self |= some


def rows_of(read: Any, content: bytes, origin: str, longest: int = LONGEST) -> list[str]:
    return [row["record"] for batch in read(content, origin, longest, Seen(), MASKS) for row in batch.to_pylist()]


CUSTOMERS = record(
    "r", object="string", uuid="string",
    payload=record("payload", id="long", email=["null", "string"], ssn=["null", "string"], limit=["null", "bytes"]),
)  # fmt: skip


def customer(**payload: Any) -> dict[str, Any]:
    whole = {"id": 1, "email": None, "ssn": None, "limit": None, **payload}
    return {"object": "shop_customers", "uuid": "7", "payload": whole}


def test_avro_and_compressed_and_plain_json_give_one_digest():
    values = {"email": f"{CANARY}@é", "ssn": CANARY}
    (of_avro,) = rows_of(
        datastream_records._avro_rows, avro_file(CUSTOMERS, customer(**values, limit=CANARY.encode())), PLACE
    )
    line = json.dumps(customer(**values), ensure_ascii=False).encode()
    (of_gzip,) = rows_of(datastream_records._packed_rows, gzip.compress(line), f"{PLACE}.gz")
    (of_bzip,) = rows_of(datastream_records._packed_rows, bz2.compress(line), f"{PLACE}.bz2")
    found = [json.loads(text) for text in (of_avro, of_gzip, of_bzip, MASKS.record(line))]
    assert {one["payload"]["email"] for one in found} == {digest(f"{CANARY}@é")}
    assert not any("ssn" in one["payload"] for one in found)
    assert CANARY not in of_avro + of_gzip + of_bzip
    # By its type a digest would be read as bytes, for example.
    assert found[0]["avro_types"] == {}


def test_a_damaged_avro_file_is_named_without_what_a_library_says_of_its_bytes(monkeypatch: pytest.MonkeyPatch):
    def torn(content: bytes) -> Any:
        yield from ()
        raise AvroError(f"no whole Avro file: KeyError: '{CANARY}\nand more' (after byte 17)")

    monkeypatch.setattr(datastream_records, "json_records", torn)
    with pytest.raises(AvroError, match=r"^no whole Avro file: KeyError \(after byte 17\)$") as raised:
        rows_of(datastream_records._avro_rows, b"", PLACE)
    assert raised.value.__suppress_context__


@pytest.mark.parametrize("kind", ["avro", "packed"])
def test_a_record_that_is_too_long_is_a_note_without_a_value(kind: str):
    payload = {"email": CANARY, "ssn": CANARY}
    if kind == "avro":
        content = avro_file(CUSTOMERS, customer(**payload, limit=CANARY.encode() * 1000))
        (note,) = rows_of(datastream_records._avro_rows, content, PLACE, 1000)
    else:
        line = json.dumps({**customer(**payload), "email": CANARY, "rest": CANARY * 1000}).encode()
        (note,) = rows_of(datastream_records._packed_rows, gzip.compress(line), f"{PLACE}.gz", 1000)
    assert CANARY not in note and note.startswith('{"long_record":{"bytes":')
    read = json.loads(note)
    assert [*read["long_record"]] == ["bytes", "place", "hmac"]
    assert read["masked"]["fields"] == FIELDS and read["object"] == "shop_customers" and "payload" not in read


def long(text: str) -> LongRecord:
    found = LongRecord("byte 0")
    found.add(text.encode())
    return found


def test_a_long_record_that_names_no_object_shows_nothing_of_its_beginning():
    for path in (None, "shop_customers", "shop_orders"):
        note = MASKS.note_of_long(long(f'{{"email":"{CANARY}","uuid":"7","rest":"' + "x" * 90_000), path)
        assert CANARY not in note and "email" not in note.replace('"email":"sha256"', "")
    of_others = MASKS.note_of_long(long(event(f'{{"email": "{CANARY}"}}', object="shop_orders")))
    assert CANARY not in of_others and json.loads(of_others)["object"] == "shop_orders" and "masked" not in of_others


def canaries() -> set[str]:
    """Return in which reader's rows, and in which spelling of a field, a canary stands."""
    found = set()
    for name, spelled in (("as declared", "email"), ("in capitals", "EMAIL"), ("escaped", "\\u0065mail")):
        line = event(f'{{"{spelled}": "{CANARY}"}}').encode()
        (of_gzip,) = rows_of(datastream_records._packed_rows, gzip.compress(line), f"{PLACE}.gz")
        found |= {
            f"{reader} {name}" for reader, text in (("line", MASKS.record(line)), ("gzip", of_gzip)) if CANARY in text
        }
    (of_avro,) = rows_of(datastream_records._avro_rows, avro_file(CUSTOMERS, customer(email=CANARY)), PLACE)
    (of_long,) = rows_of(
        datastream_records._avro_rows, avro_file(CUSTOMERS, customer(email=CANARY, limit=b"x" * 2000)), PLACE, 1000
    )
    return found | {name for name, text in (("Avro", of_avro), ("long", of_long)) if CANARY in text}


PLANTED: dict[str, tuple[Any, str, Any, set[str]]] = {
    "records of archives and of Avro pass by": (
        datastream_records, "_masked", lambda record, masks: record,
        {"gzip as declared", "gzip in capitals", "Avro"},
    ),
    "notes of long records pass by": (
        datastream_records, "note_of_long", lambda long, origin, masks: long.note(), {"long"},
    ),
    "names are compared as they are": (
        masks_module, "spellings", lambda name: (name,), {"line in capitals", "gzip in capitals"},
    ),
    "a value is its own digest": (
        Masks, "digest", lambda self, text: text,
        {*(f"{reader} {name}" for reader in ("line", "gzip") for name in ("as declared", "in capitals", "escaped")),
         "Avro"},
    ),
}  # fmt: skip


def test_no_reader_lets_a_value_through():
    assert canaries() == set()


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, bug: str):
    where, name, wrong, found = PLANTED[bug]
    monkeypatch.setattr(where, name, wrong)
    assert canaries() >= found


# --- the file of masks, and the key ----------------------------------------------------------------------------------


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILE_MASK_SECRET", KEY)


def written(tmp_path: Path, text: str) -> str:
    (tmp_path / "masks.yml").write_text(text)
    return str(tmp_path / "masks.yml")


def test_masks_are_read_by_object_and_field(tmp_path: Path, key: None):
    file = written(tmp_path, "shop.customers: {email: sha256, SSN: drop, limit: sha256}\nshop.orders:\n  note: drop\n")
    found = read_masks(file, None)
    assert found == Masks({"shop_customers": FIELDS, "shop_orders": {"note": "drop"}}, KEY.encode())
    assert read_masks(None, None) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "names no objects: write `shop.customers: "),
        ("[a]", "names no objects"),
        ("{}", "names no objects"),
        ("a: [", "cannot be read: "),
        ("shop.customers: [email]", "what stands at shop.customers is no list of fields"),
        ("shop.customers: {}", "what stands at shop.customers is no list of fields"),
        ("7: {email: drop}", "what stands at 7 is no list of fields"),
        ("shop.customers: {email: md5}", "email of shop.customers is 'md5'; a mask is sha256 or drop"),
        ("shop.customers: {email: }", "email of shop.customers is None; a mask is sha256 or drop"),
        ("shop.customers: {7: drop}", "the field 7 of shop.customers is no text"),
        ("shop.customers: {address.city: drop}", "address.city of shop.customers has a dot. A mask is for a whole"),
        ("shop.customers: {email: drop, Email: sha256}", "has Email of shop.customers twice"),
        ("shop.customers: {a: drop}\nSHOP_CUSTOMERS: {a: drop}", "has SHOP_CUSTOMERS twice, as one object"),
    ],
)
def test_a_file_of_masks_that_is_none_is_refused(tmp_path: Path, key: None, text: str, says: str):
    with pytest.raises(UsageError) as raised:
        read_masks(written(tmp_path, text), None)
    assert says in str(raised.value)


def test_a_key_comes_from_the_environment_or_a_file_that_nobody_else_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("RECONCILE_MASK_SECRET", raising=False)
    file, key_file = written(tmp_path, "a: {b: drop}"), tmp_path / "key"
    key_file.write_text(f"{KEY}\n")

    def refusal(*words: Any) -> str:
        with pytest.raises(UsageError) as raised:
            read_masks(*words)
        assert KEY not in str(raised.value) and CANARY not in str(raised.value)
        return str(raised.value)

    assert "--masks needs a key, and there is none: set RECONCILE_MASK_SECRET" in refusal(file, None)
    assert "--mask-key-file works only with --masks" in refusal(None, str(key_file))
    key_file.chmod(0o640)
    assert "which has mode 640: run chmod 600 on it" in refusal(file, str(key_file))
    key_file.chmod(0o600)
    found = read_masks(file, str(key_file))
    assert found is not None and found.key == KEY.encode()
    monkeypatch.setenv("RECONCILE_MASK_SECRET", KEY)
    assert "There are two keys" in refusal(file, str(key_file))
    monkeypatch.setenv("RECONCILE_MASK_SECRET", CANARY)
    assert f"has {len(CANARY)} characters, and needs 32 or more" in refusal(file, None)
    monkeypatch.delenv("RECONCILE_MASK_SECRET")
    key_file.write_text("")
    assert "has 0 characters, and needs 32 or more" in refusal(file, str(key_file))
    assert "--mask-key-file" in refusal(file, str(tmp_path / "none"))


COMMANDS = {
    "spanner": ["--project", "p", "--instance", "i", "--database", "d", "--stream", "s"],
    "bigtable": ["--project", "p", "--instance", "i", "--table", "t", "--app-profile", "a"],
    "table": ["--table", "lake.t"],
    "snapshot": ["--table", "lake.t"],
}


@pytest.mark.parametrize("source", COMMANDS)
@pytest.mark.parametrize("option", ["--masks", "--mask-key-file"])
def test_a_source_that_cannot_mask_refuses_masks_and_stages_nothing_in_clear(source: str, option: str):
    words = [source, *COMMANDS[source], "--staging", "lake.shop"]
    with pytest.raises(UsageError, match=f"--masks is not for append.py {source}, and nothing was appended: "):
        arguments([*words, option, "x"], None)
    assert "masks" not in arguments(words, None)[1]


def test_datastreams_job_has_the_masks_of_its_file(tmp_path: Path, key: None):
    words = ["datastream", "--path", "/landing", "--staging", "lake.shop"]
    assert arguments(words, None)[1]["masks"] is None
    file = written(tmp_path, "shop.customers: {email: sha256, ssn: drop, limit: sha256}")
    assert arguments([*words, "--masks", file], None)[1]["masks"] == MASKS


# --- what a staging table keeps --------------------------------------------------------------------------------------


class Table:
    """As much of a staging table as masks use."""

    def __init__(self, last_batch: int = 0) -> None:
        self.name, self.last_batch, self.properties = "lake.shop", last_batch, dict[str, str]()

    def kept(self, name: str) -> str | None:
        return self.properties.get(name)

    def keep(self, name: str, value: str) -> None:
        self.properties[name] = value


MORE = Masks({"shop_customers": {**FIELDS, "phone": "drop"}, "shop_orders": {"note": "drop"}}, KEY.encode())


def test_what_was_masked_once_is_never_appended_in_clear():
    table: Any = Table()
    assert keep_masks(table, None) is None and not table.properties
    assert keep_masks(table, MASKS) is None
    assert keep_masks(table, MASKS) is None
    table.last_batch = 4
    assert "the batches up to 4 of lake.shop were appended before these masks" in (keep_masks(table, MORE) or "")
    kept = dict(table.properties)
    with pytest.raises(UsageError, match="and this run would append them in clear: give --masks and the same key"):
        keep_masks(table, None)
    with pytest.raises(
        UsageError, match=r"masked phone of shop_customers in lake.shop by drop, and --masks has no mask"
    ):
        keep_masks(table, MASKS)
    with pytest.raises(UsageError, match=r"are masked with the key \w+, and this run has the key \w+: one value would"):
        keep_masks(table, Masks(MORE.objects, b"another key, of 32 characters 00"))
    assert table.properties == kept
    for text in ("x", b"{}".hex(), b'{"by":"a","objects":[]}'.hex()):
        table.properties["masks"] = text
        with pytest.raises(UsageError, match=r"The property reconcile.masks of the staging table lake.shop is not as"):
            keep_masks(table, MASKS)


def test_a_table_that_holds_records_in_clear_says_so():
    table: Any = Table(last_batch=3)
    assert "were appended before these masks" in (keep_masks(table, MASKS) or "")


COLUMNS = ["id", "EMAIL", "ssn", "limit"]


def test_the_records_of_a_snapshot_say_what_its_table_says():
    table: Any = Table()
    assert keep_masks_of_rows(table, "shop_customers", {}, COLUMNS) == "" and not table.properties
    said = RowMasks(MASKS, "shop.customers").properties()
    mark = keep_masks_of_rows(table, "shop_customers", said, COLUMNS)
    assert mark == f"{MASKS.mark('shop_customers')},"
    assert keep_masks_of_rows(table, "shop_customers", said, ["id", "email"]) == (
        f'"masked":{{"by":"{MASKS.by}","fields":{{"email":"sha256"}}}},'
    )
    with pytest.raises(UsageError, match=r"is masked in lake.shop by sha256, and the snapshot has it in clear"):
        keep_masks_of_rows(table, "shop_customers", {}, COLUMNS)
    other = RowMasks(Masks(MASKS.objects, b"another key, of 32 characters 00"), "shop.customers").properties()
    with pytest.raises(UsageError, match=r"are masked with the key \w+, and those of the snapshot with \w+: take the"):
        keep_masks_of_rows(table, "shop_customers", other, COLUMNS)
    assert keep_masks_of_rows(table, "shop_orders", {}, COLUMNS) == ""
    assert keep_masks(table, MASKS) is None  # the log's job masks the same


def test_a_key_that_was_in_clear_is_not_named_in_clear_by_its_deletes():
    table, said = Table(), RowMasks(MASKS, "shop.customers").properties()
    staging: Any = table
    with pytest.raises(UsageError, match=r"snapshots of shop_customers in lake.shop have the key EMAIL in clear, and"):
        keep_masks_of_rows(staging, "shop_customers", said, COLUMNS, ["id", "EMAIL"])
    assert not table.properties
    assert keep_masks_of_rows(staging, "shop_customers", said, COLUMNS, ["id"])
    assert keep_masks_of_rows(staging, "shop_customers", said, COLUMNS, ["EMAIL"])  # masked already


def test_fields_with_a_mask_that_a_snapshot_lacks_are_named():
    masks = RowMasks(Masks({"shop_customers": {"emial": "sha256", "ssn": "drop"}}, KEY.encode()), "shop.customers")
    assert "the snapshot has no column emial, which --masks names for shop.customers" in (masks.unmet(COLUMNS) or "")
    assert masks.unmet(["SSN", "Emial"]) is None


# --- snapshots -------------------------------------------------------------------------------------------------------


def row_masks() -> RowMasks:
    return RowMasks(MASKS, "shop.customers")


ROWS = Masks({"shop_customers": {**FIELDS, "vip": "sha256", "raw": "sha256"}}, KEY.encode())


def csv_columns() -> list[snapshot_csv.Column]:
    kinds = {
        "id": t.IntegerType(), "email": t.StringType(), "ssn": t.IntegerType(), "limit": t.DecimalType(12, 4),
        "vip": t.BooleanType(), "raw": t.BinaryType(),
    }  # fmt: skip
    found = []
    for name, kind in kinds.items():
        text = reader_of(kind)
        assert text is not None
        found.append(snapshot_csv._masked(snapshot_csv.Column(name, text), RowMasks(ROWS, "shop.customers")))
    return found


def csv_rows(text: str) -> list[dict[str, Any]]:
    lines = [("a.csv", line) for line in text.encode().splitlines()]
    return [
        row for batch in snapshot_csv.typed_rows(lines, csv_columns(), Dialect(), True) for row in batch.to_pylist()
    ]


def test_a_csv_gives_the_digests_of_records():
    assert csv_rows(f"id,email,ssn,limit,vip,raw\n1,{CANARY},7,12.5000,T,\\xff00\n2,,,,,\n") == [
        {"id": 1, "email": digest(CANARY), "ssn": None, "limit": digest("12.5"), "vip": digest("true"),
         "raw": digest("/wA=")},
        {"id": 2, "email": None, "ssn": None, "limit": None, "vip": None, "raw": None},
    ]  # fmt: skip
    assert [column.stored_type for column in csv_columns()] == ["int", "string", "int", "string", "string", "string"]


@pytest.mark.parametrize(
    "text",
    [
        f"id,email,ssn,limit,vip,raw\n{CANARY},a,7,1,t,\\\\x00\n",
        f"id,email,ssn,limit,vip,raw\n1,{CANARY},7,1,t,,{CANARY}\n",
        f"{CANARY},a,7,1,t,\\\\x00\n",
        f"id,email,ssn,limit,vip,raw,{CANARY}\n",
        f'id,email,ssn,limit,vip,raw\n1,"{CANARY}\n',
    ],
)
def test_no_complaint_about_a_csv_with_masks_shows_a_value(text: str):
    with pytest.raises(snapshot_csv.Complaint) as raised:
        csv_rows(text)
    assert CANARY not in str(raised.value) and "a.csv" in str(raised.value)


SOURCE = {
    "id": SourceColumn("id", "integer", "{}", "int", is_number=True),
    "EMAIL": SourceColumn("EMAIL", "text", "{}", "string"),
    "ssn": SourceColumn("ssn", "integer", "{}", "int", is_number=True),
    "limit": SourceColumn("limit", "numeric(12,4)", "{}", "decimal(12,4)", is_number=True),
}


KINDS = {"int": t.IntegerType(), "string": t.StringType(), "decimal(12,4)": t.DecimalType(12, 4)}


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Types are read without Spark."""
    monkeypatch.setattr(snapshot_jdbc, "reader_of_type", lambda kind: reader_of(KINDS[kind]))


def jdbc_targets(asked: str | None = None, partitions: Partitions | None = None) -> list[Target]:
    targets = [snapshot_jdbc.target_of(name, column, None) for name, column in SOURCE.items()]
    return snapshot_jdbc._masked([one for one in targets if isinstance(one, Target)], row_masks(), asked, partitions)


def test_a_database_gives_the_digests_of_records(kinds: None):
    targets = jdbc_targets()
    batch = pa.RecordBatch.from_pydict(
        {"c0": ["1", "2"], "c1": [CANARY, None], "c2": [CANARY, None], "c3": ["12.5000", None]}
    )
    (found,) = snapshot_jdbc.typed_rows([batch], targets)
    assert found.to_pylist() == [
        {"id": 1, "EMAIL": digest(CANARY), "ssn": None, "limit": digest("12.5")},
        {"id": 2, "EMAIL": None, "ssn": None, "limit": None},
    ]
    assert [target.stored_type for target in targets] == ["int", "string", "int", "string"]
    assert CANARY not in repr(targets) and KEY not in repr(targets)


@pytest.mark.parametrize(
    ("source_type", "spark_type", "delivered", "text"),
    [
        ("decimal(12,4)", "decimal(12,4)", "12.5000", "12.5"),  # of MySQL and SQL Server, which are no partition column
        ("bit(1)", "boolean", "1", "1"),
        ("bit", "boolean", "1", "true"),
        ("boolean", "boolean", "t", "true"),
        ("double", "double", "12.50", "12.5"),
    ],
)
def test_a_value_of_each_type_has_the_text_of_records(
    monkeypatch: pytest.MonkeyPatch, source_type: str, spark_type: str, delivered: str, text: str
):
    types = {**KINDS, "boolean": t.BooleanType(), "double": t.DoubleType()}
    monkeypatch.setattr(snapshot_jdbc, "reader_of_type", lambda kind: reader_of(types[kind]))
    target = snapshot_jdbc.target_of("email", SourceColumn("email", source_type, "{}", spark_type), None)
    assert isinstance(target, Target)
    mask = snapshot_jdbc._masked_target(target, row_masks(), None).mask
    assert mask is not None and mask.of(delivered) == digest(text)


def test_a_database_is_not_asked_for_ranges_of_masked_values_nor_for_other_types_of_them(kinds: None):
    with pytest.raises(UsageError, match="--partition-column limit is masked"):
        jdbc_targets(partitions=Partitions("limit", 4))
    with pytest.raises(UsageError, match=r"The column limit is masked, .* leave decimal\(9,2\) out of --columns"):
        jdbc_targets(asked="id, limit decimal(9,2)")
    assert jdbc_targets(asked="id, limit string")


def test_bytes_and_booleans_have_the_text_of_records():
    assert ColumnMask("sha256", MASKS).of(b"\xff\x00") == digest("/wA=")
    assert ColumnMask("sha256", MASKS, "boolean").of("t") == digest("true")
    assert ColumnMask("drop", MASKS).of(CANARY) is None


def test_a_form_that_cannot_be_made_keeps_its_value_to_itself():
    def form(text: str) -> str:
        raise ValueError(text)

    assert ColumnMask("sha256", MASKS, form=form).of(CANARY) == digest(CANARY)


def test_the_masks_of_a_snapshot_are_those_of_one_table(tmp_path: Path, key: None):
    file = written(tmp_path, "shop.customers: {email: sha256, ssn: drop, limit: sha256}")
    assert read_row_masks(file, None, "SHOP.CUSTOMERS") == RowMasks(MASKS, "SHOP.CUSTOMERS")
    assert read_row_masks(None, None, None) is None
    with pytest.raises(UsageError, match="give it with --mask-object"):
        read_row_masks(file, None, None)
    with pytest.raises(UsageError, match=r"has no masks of shop.orders"):
        read_row_masks(file, None, "shop.orders")
