"""What somebody may deliver, write or ask for to harm: nothing is lost in silence, and nothing goes on without end.

docs/decisions/0061-attacks-on-readers.md lists the attacks.
"""

from __future__ import annotations

import argparse
import bz2
import json
import lzma
import os
import re
import signal
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from avro_files import avro_file, record
from google.cloud.bigtable_v2 import types as bigtable
from google.cloud.spanner_v1 import TypeCode
from google.protobuf.struct_pb2 import Value
from plain_spark import Session
from reconcile_jobs import data_docs
from reconcile_jobs.append_arguments import _factor
from reconcile_jobs.avro_blocks import first_too_large
from reconcile_jobs.beginning import Beginning
from reconcile_jobs.bigtable.change_decoder import ChangeDecoder
from reconcile_jobs.checkpoints import checkpoint_damage
from reconcile_jobs.csv_records import Broken, Dialect, records
from reconcile_jobs.data_docs import Run
from reconcile_jobs.datastream_files import Files, format_of_file, kinds, of_other_codecs
from reconcile_jobs.exact_text import NotExact, reader_of
from reconcile_jobs.generation.avro_types import header_of
from reconcile_jobs.generation.datastream_records import add_event
from reconcile_jobs.generation.escaping import unrendered
from reconcile_jobs.generation.keys_file import read_keys
from reconcile_jobs.generation.observations import Observations, Observed
from reconcile_jobs.generation.tables import Column, is_undeclarable
from reconcile_jobs.generation.yaml_edits import Document, NotEditable
from reconcile_jobs.jdbc.connection import read_properties
from reconcile_jobs.jdbc.forms import TEXT_FORMS
from reconcile_jobs.jdbc.harmless_properties import check_properties
from reconcile_jobs.jdbc.kinds import database_of
from reconcile_jobs.json_lines import packed_lines
from reconcile_jobs.landing_area import broken_links
from reconcile_jobs.log_positions import position_of
from reconcile_jobs.long_records import LongRecord
from reconcile_jobs.masks import Masks, plain_number, read_masks
from reconcile_jobs.process.command_line import Parser, interval, seconds_of
from reconcile_jobs.process.errors import UsageError, explained
from reconcile_jobs.process.written_files import write
from reconcile_jobs.proofs.certificate import text_of, written
from reconcile_jobs.retention.purge import _Begun, last_purged
from reconcile_jobs.spanner.stream_decoder import DataChange, RecordDecoder
from reconcile_jobs.staging import batch_of_mark, purge_mark
from reconcile_jobs.timestamps import nanoseconds


@contextmanager
def at_once() -> Iterator[None]:
    """What takes minutes, as it did, fails; what takes a part of a second, as it does, has ten of processor time."""

    def late(*_: object) -> None:
        raise TimeoutError("this takes too long")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, 10)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# --- values ---


def exact(kind: str, text: str) -> Any:
    from pyspark.sql import types

    found = reader_of({"decimal": types.DecimalType(38, 10), "double": types.DoubleType(), "float": types.FloatType(),
                       "binary": types.BinaryType()}[kind])  # fmt: skip
    assert found is not None
    return found.read(text)


@pytest.mark.parametrize("kind", ["decimal", "double", "float"])
def test_a_long_text_that_is_nearly_a_number_costs_no_search(kind: str) -> None:
    with at_once(), pytest.raises(NotExact, match="is not a number"):
        exact(kind, "1" * 300_000 + "x")


def test_a_number_of_a_masked_field_costs_no_search() -> None:
    with at_once():
        assert plain_number("1" * 300_000 + "e10000") == "1" * 300_000 + "e10000"
        masks = Masks({"t": {"n": "sha256"}}, b"k" * 32)
        assert '"payload":{"n":"' in masks.record(b'{"object":"t","payload":{"n":' + b"1" * 300_000 + b"e10000}}")


def test_bytes_are_as_many_as_their_text_says_and_take_about_as_much_memory() -> None:
    text = "\\x" + "aB" * 1_000_000
    tracemalloc.start()
    try:
        assert exact("binary", text) == b"\xab" * 1_000_000
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    for odd in ("\\xabc", "\\xa b0", "\\x0g"):
        with pytest.raises(NotExact, match="is not binary data"):
            exact("binary", odd)


def test_a_float_is_the_nearest_to_its_text_and_not_to_the_nearest_double() -> None:
    # Behind the middle of two floats by less than a double can tell, and before it.
    middle = Decimal(1) + Decimal(2) ** -24
    assert exact("float", str(middle)) == 1.0, "to the even one"
    assert exact("float", f"{middle}000000000000001") == 1.0 + 2.0**-23
    assert exact("float", f"-{middle}000000000000001") == -1.0 - 2.0**-23
    odd = Decimal(1) + Decimal(3) * Decimal(2) ** -24
    assert exact("float", str(odd)) == 1.0 + 2.0**-22
    assert exact("float", "1.0000001788139343261718749999") == 1.0 + 2.0**-23
    assert exact("float", "1e-999999999") == 0.0


@pytest.mark.parametrize("text", ["2026-05-01T09:00:00+99:99", "2026-05-01T09:00:00+19:00", "2026-05-01T09:00:00+00:60",
                                  "2026-05-01T09:00:00.\u0661Z", "2026-05-01T09:00:00+\u0660\u0661"])  # fmt: skip
def test_a_zone_that_does_not_exist_is_no_zone(text: str) -> None:
    with pytest.raises(ValueError, match="is not a timestamp"):
        nanoseconds(text)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59.999999999-01:00"])
def test_a_moment_without_a_text_in_utc_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is outside the years 0001 to 9999 in UTC"):
        nanoseconds(text)


def test_a_position_of_5000_digits_is_none() -> None:
    with pytest.raises(UsageError, match=r"'9{200}\.\.\.', is no pg_current_snapshot"):
        position_of("pg_snapshot", f"{'9' * 5000}:{'9' * 5000}:", "lake.t")


def test_the_object_of_a_long_record_is_its_own_also_behind_a_long_number() -> None:
    long = LongRecord()
    long.add(b'{"n":' + b"9" * 5000 + b',"object":"own","payload":"')
    assert json.loads(long.note("of the path"))["object"] == "own"


# --- Avro ---


def test_a_header_of_a_file_that_is_no_stream_or_holds_itself_ends_no_run() -> None:
    assert header_of(avro_file("string", "a")) is None
    assert header_of(avro_file({"type": "array", "items": "long"}, [1])) is None
    kind = {"type": "record", "name": "A", "fields": [{"name": "elementValue", "type": ["null", "A"]}]}
    schema = record(
        "e", source_metadata=record("m", database="string", table="string"), payload=record("p", x=["null", kind])
    )
    found = header_of(avro_file(schema, {"source_metadata": {"database": "d", "table": "t"}, "payload": {"x": None}}))
    assert found is not None and found.columns["x"].witness == "Avro: a type that holds itself"


# --- files and what they say ---


def test_a_quote_that_is_never_closed_does_not_bring_the_whole_file_into_memory() -> None:
    read = 0

    def lines() -> Iterator[bytes]:
        nonlocal read
        yield b'a,"b'
        while read < 1_000_000:
            read += 1
            yield b"x" * 9

    with pytest.raises(Broken, match="a quote that opens there is not closed within 1,000 bytes") as raised:
        list(records(lines(), Dialect(), 2, longest=1000))
    assert raised.value.line == 1 and read < 200
    whole = [b'a,"' + b"x" * 600, b'y"', b'a,"' + b"x" * 600, b'y"']
    assert len(list(records(whole, Dialect(), 2, longest=1000))) == 2, "each record has this length"


def test_a_line_feed_at_the_end_of_a_name_makes_no_kind_of_file_of_it() -> None:
    assert [format_of_file(f"a.{kind}\n", "auto") for kind in ("json", "jsonl.gz", "avro")] == [None] * 3
    # Hadoop does not decompress it either.
    assert of_other_codecs(["a.zst\n"]) == {} and dict(kinds(Files(json=["a.gz\n"]))) == {"json": ["a.gz\n"]}


@pytest.mark.parametrize("offset", ["null", '"1"', "[1]", "1e999", "true", "-5"])
def test_an_offset_that_is_no_number_of_files_is_damage(tmp_path: Path, offset: str) -> None:
    (tmp_path / "metadata").write_text('{"id": "query"}')
    for part in ("offsets", "commits", "sources/0"):
        (tmp_path / part).mkdir(parents=True)
    for name, text in (("offsets/0", f'v1\n{{}}\n{{"logOffset": {offset}}}'), ("commits/0", "v1\n{}")):
        (tmp_path / name).write_text(text)
    (tmp_path / "sources/0/0").write_text('v1\n{"path": "a.json"}')
    spark: Any = Session()
    assert checkpoint_damage(spark, str(tmp_path)) == "offsets/0 cannot be read"


def secret(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    path.chmod(0o600)
    return path


def test_a_password_is_whole_whatever_characters_it_has(tmp_path: Path) -> None:
    for odd in "\r\x0b\x0c\x1c\x85\u2028":
        file = secret(tmp_path / "p", f"\ufeffuser=u\r\npassword=ab{odd}#cd\n")
        assert read_properties(file) == {"user": "u", "password": f"ab{odd}#cd"}


def test_a_property_that_stands_twice_is_refused_without_its_value(tmp_path: Path) -> None:
    file = secret(tmp_path / "p", "password=first\nPassword=second\n")
    with pytest.raises(UsageError, match=r"line 2: Password stands there a second time; remove one of them\.$"):
        read_properties(file)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("jdbc:mariadb://address=(host=h)(port=1)(allowLocalInfile=true)/db", "allowLocalInfile"),
        ("jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(PROTOCOL=beq)(PROGRAM=/bin/sh)))", "PROGRAM"),
        ("jdbc:oracle:thin:@db?TNS_ADMIN=/dir", "TNS_ADMIN"),
    ],
)
def test_a_property_within_an_address_is_none_but_those_of_an_address(url: str, name: str) -> None:
    with pytest.raises(UsageError, match=f"--url has the property {name}, which is not among"):
        check_properties(database_of(url), url, (), ())
    check_properties(database_of(url), url, (), [name])
    for harmless in (
        "jdbc:mariadb://address=(host=h)(port=1)(type=primary)/db",
        "jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(PROTOCOL=tcp)(HOST=h)(PORT=1))(CONNECT_DATA=(SERVICE_NAME=x)))",
    ):
        check_properties(database_of(harmless), harmless, (), ())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("t: {a: 2026-13-45}", "month must be in 1..12"),
        ("t: {a: " + "9" * 5000 + "}", "Exceeds the limit"),
        ("t: {a\0: drop}", "special characters are not allowed"),
    ],
)
def test_a_file_that_is_no_yaml_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    file = tmp_path / "said.yml"
    file.write_text(text)
    for read in (lambda: read_masks(str(file), None), lambda: read_keys(str(file))):
        with pytest.raises(UsageError, match=rf"^--(masks|keys) .*said.yml cannot be read: {why}"):
            read()


def test_a_masked_field_with_a_blank_that_nobody_sees_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILE_MASK_SECRET", "k" * 40)
    for field in ("email ", " email", "email\u00a0"):
        (tmp_path / "masks.yml").write_text(json.dumps({"shop.t": {field: "drop"}}))
        with pytest.raises(UsageError, match="begins or ends with a blank: remove it"):
            read_masks(str(tmp_path / "masks.yml"), None)


# --- what jobs keep ---


@pytest.mark.parametrize("text", ["abc", "1.5", "-5", "9" * 5000])
def test_a_purge_mark_that_no_job_writes_is_named(text: str) -> None:
    for read in (
        lambda: last_purged({purge_mark("t"): text}),
        lambda: batch_of_mark({purge_mark("t"): text}, purge_mark("t")),
    ):
        with pytest.raises(UsageError, match=r"The property reconcile\.purged\.[0-9a-f]{32} of the staging table is '"):
            read()
    assert last_purged({purge_mark("t"): "7", purge_mark("u"): "", "purge": "abc"}) == 7


@pytest.mark.parametrize("text", ["[" * 100_000, '{"marks":{"a":1e400},"before":{},"ledgers":[],"id":"x","batch":1}'])
def test_what_a_job_keeps_with_its_table_is_refused_where_no_job_has_written_it(text: str) -> None:
    table: Any = "lake.t"
    with pytest.raises(UsageError, match="which this job has not written"):
        _Begun.read(text, table)
    staging: Any = SimpleNamespace(name=table, kept=lambda _: text)

    class OfTest(Beginning):
        source = "test"

    with pytest.raises(UsageError, match="which no job has written"):
        OfTest.of(staging)


# --- change streams ---


def spanner(values: str) -> list[Any]:
    """Return the records of a record in PostgreSQL's dialect, which has these new values."""
    kinds = {"n": {"code": "NUMERIC"}, "a": {"code": "ARRAY", "array_element_type": {"code": "NUMERIC"}},
             "f": {"code": "FLOAT64"}, "s": {"code": "STRING"}}  # fmt: skip
    types = [{"name": name, "type": kind, "ordinal_position": 1} for name, kind in kinds.items()]
    change = {
        "commit_timestamp": "2026-05-01T09:00:00Z", "record_sequence": "1", "server_transaction_id": "1",
        "table_name": "t", "column_types": types, "mods": [{"keys": {}, "new_values": 0, "old_values": {}}],
        "number_of_records_in_transaction": 1, "number_of_partitions_in_transaction": 1,
    }  # fmt: skip
    text = json.dumps({"data_change_record": change}).replace('"new_values": 0', f'"new_values": {values}')
    decoder = RecordDecoder([SimpleNamespace(name="x", type_=SimpleNamespace(code=TypeCode.JSON))])
    return list(decoder.records([Value(string_value=text)]))


def test_a_numeric_that_comes_as_a_number_of_json_keeps_every_digit() -> None:
    (change,) = spanner('{"n":12345678901234567890.1234567890,"a":[1.10,2,null],"f":1.5}')
    assert isinstance(change, DataChange)
    expected = '"new_values":{"a":["1.10","2",null],"f":1.5,"n":"12345678901234567890.1234567890"}'
    assert expected in change.json


def test_a_number_that_no_double_holds_and_half_a_character_end_no_stream() -> None:
    (change,) = spanner('{"f":1e400,"s":"\\ud800\u00e9"}')
    assert isinstance(change, DataChange)
    assert '"new_values":{"f":"1e400","s":"\\ud800\\u00e9"}' in change.json and change.json.encode()
    (whole,) = spanner('{"s":"\u00e9"}')
    assert isinstance(whole, DataChange) and '"s":"\u00e9"' in whole.json


def test_a_value_in_very_many_chunks_is_put_together_in_one_pass() -> None:
    number, decoder = 40_000, ChangeDecoder()
    message = bigtable.ReadChangeStreamResponse.DataChange.pb(
        bigtable.ReadChangeStreamResponse.DataChange(
            type_=1, row_key=b"k", chunks=[{"chunk_info": {"chunked_value_size": number}, "mutation": {"set_cell": {
                "family_name": "f", "value": b"x"}}}]
        )
    )  # fmt: skip
    chunk = message.chunks[0]
    with at_once():
        for place in range(number):
            chunk.chunk_info.chunked_value_offset, chunk.chunk_info.last_chunk = place, place == number - 1
            message.type_, message.done = 1 if place == 0 else 3, place == number - 1
            message.token = "t" if message.done else ""
            change = decoder.add(message)
    assert change is not None and len(json.loads(change.json)["entries"][0]["set_cell"]["value"]) == 53_336


# --- generated models ---


def event(payload: dict[str, Any], table: str = "orders", **more: Any) -> str:
    metadata = {"database": "shop", "table": table, "log_position": 4, "primary_keys": ["id"]}
    return json.dumps({"read_method": "mysql-cdc", "payload": payload, "source_metadata": metadata, **more})


def test_half_a_character_in_a_delivered_name_ends_no_run() -> None:
    found = Observations()
    add_event(found, event({"id": 1, "a\ud800": 2}), "shop_orders", 1)
    add_event(found, event({"id": 1}, "\udc00"), "shop_x", 1)
    assert [place.table for place in found.tables] == ["orders"] and found.nameless == 1
    assert is_undeclarable("a\ud800") and not is_undeclarable("a\u00e9\U0001f600")


def test_notes_of_types_that_are_no_texts_are_none() -> None:
    found = Observations()
    add_event(found, event({"id": 1, "v": "x"}, avro_types={"v": {"a": 1}, "id": ["x"]}), "shop_orders", 1)
    (observed,) = found.tables.values()
    assert all(values.kinds == {} for values in observed.columns.values())


def test_very_many_columns_that_differ_in_case_alone_cost_no_search() -> None:
    names = [f"{letter}{number}" for letter in "cC" for number in range(20_000)]
    observed = Observed()
    with at_once():
        observed.add_values(dict.fromkeys(names), {}, [1, "", ""], 1)
    assert len(observed.twins) == 20_000


@pytest.mark.parametrize("text", ["{{ 1/0 }}", "{{ range(1000000) }}", "{{" * 5000])
def test_what_jinja_cannot_render_is_the_text_itself(text: str) -> None:
    assert unrendered(text) == text


def test_yaml_that_holds_itself_is_not_edited(new_column: Column) -> None:
    text = "models:\n  - name: m\n    meta: &a [*a]\n    columns:\n      - name: a\n"
    with pytest.raises(NotEditable, match="something in the file holds itself, by an alias"):
        Document(text).with_columns("m", [new_column])


@pytest.fixture
def new_column() -> Column:
    from reconcile_jobs.generation.declarations import Declaration, Values

    return Column("new", Declaration("int"), "", Values(), None)


# --- the command line, and files that are written ---


def said(*words: str) -> str:
    parser = Parser(prog="x.py")
    for name in ("--masks", "--mask-key-file"):
        parser.add_argument(name)
    parser.add_argument("--skip", action="store_true")
    with pytest.raises(UsageError) as raised:
        parser.parse_args(words)
    return str(raised.value)


@pytest.mark.parametrize("words", [("--mask=s3cret",), ("--skip=s3cret",), ("--password", "-s3cret"), ("-s3cret",),
                                   ("--mask=a could match s3cret",), ("--skip=a\ns3cret",)])  # fmt: skip
def test_a_sentence_about_the_command_shows_no_value(words: tuple[str, ...]) -> None:
    assert "s3cret" not in said(*words) and said(*words).endswith("see `x.py --help`.")
    assert said("-x", "--Other=s3cret") == "unrecognized arguments: -x, --Other; see `x.py --help`."


def test_a_misspelt_option_is_told_with_the_one_that_was_meant() -> None:
    assert said("--maks", "s3cret") == "unrecognized arguments: --maks; for --maks write --masks; see `x.py --help`."
    parser = Parser(prog="x.py")
    command = parser.add_subparsers(dest="command").add_parser("one")
    command.add_argument("--staging", required=True)
    for word, meant in (("--stagging", "; for --stagging write --staging"), ("--other", "")):
        with pytest.raises(UsageError, match=re.escape(f"are required: --staging{meant}; see `x.py one --help`.")):
            parser.parse_args(["one", word, "s3cret"])


def test_an_option_of_one_value_is_given_once_and_with_a_value() -> None:
    """Of several, argparse takes the last one, and the others would be lost in silence."""
    assert said("--masks", "a", "--masks", "b").startswith("argument --masks: it is given twice, and has one value")
    assert said("--masks=").startswith("argument --masks: it is empty; name a value, or leave the option out")
    parser = Parser(prog="x.py")
    parser.add_argument("--masks", default="")
    parser.add_argument("--more")
    assert parser.parse_args(["--masks=", "--more", "b"]).more == "b", "an empty value that is the default says nothing"


def test_a_length_of_time_is_read_in_its_unit() -> None:
    assert [seconds_of(text) for text in ("1s", "90s", "30m", "24h")] == [1, 90, 1800, 86400]
    assert [interval(text) for text in ("30s", "5 m", "1h")] == ["30 seconds", "5 minutes", "1 hours"]
    for text in ("0s", "00m", "30", "m", "1d", "-1s", "1.5h"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"^{re.escape(text)} is not an interval; write 30s, 5m"):
            seconds_of(text)


def test_a_length_of_time_beyond_a_century_is_refused() -> None:
    assert seconds_of("878400h") == 878400 * 3600
    for text in ("878401h", "9" * 12 + "s"):
        with pytest.raises(argparse.ArgumentTypeError, match="is longer than 100 years"):
            seconds_of(text)
    with pytest.raises(argparse.ArgumentTypeError, match=r"^9{40} is not an interval"):
        seconds_of("9" * 5000 + "s")


@pytest.mark.parametrize("name", ["a\0b", "a\ud800", "loop"])
def test_a_name_that_no_file_can_have_is_a_sentence(tmp_path: Path, name: str) -> None:
    if name == "loop":
        (tmp_path / name).symlink_to(tmp_path / name)
    with pytest.raises(UsageError, match=r"cannot be written .*: name another path"):
        write({tmp_path / name: "text"})


def test_a_certificate_that_cannot_be_written_is_a_sentence_and_the_former_pair_stays(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "proof.html", tmp_path / f"{'x' * 260}.html"):
        with pytest.raises(UsageError, match=r"^--certificate .* cannot be written: (Not a dir|File name too long)"):
            written(path, "page", "{}")
    (tmp_path / "proof.html").write_text("former")
    (tmp_path / "proof.json").mkdir()
    with pytest.raises(UsageError, match=r"--certificate .*proof\.json cannot be written: Is a directory"):
        written(tmp_path / "proof.html", "page", "{}")
    assert (tmp_path / "proof.html").read_text() == "former"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "proof.html", "proof.json"]


def test_half_a_character_in_a_certificate_is_an_escape() -> None:
    assert text_of({"key": "a\ud800\u00e9"}) == '{\n "key": "a\\ud800\u00e9"\n}\n'


# --- a few bytes that cost much ---


@pytest.mark.parametrize("codec", ["bzip2", "xz"])
def test_a_block_of_very_many_empty_streams_is_refused(codec: str) -> None:
    packed = bz2.compress(b"") if codec == "bzip2" else lzma.compress(b"")

    def block(data: bytes) -> bytes:
        head = bytearray()
        for number in (2, len(data) * 2):
            while number > 127:
                head.append(number & 127 | 128)
                number >>= 7
            head.append(number)
        return bytes(head) + data + b"s" * 16

    with at_once():
        assert first_too_large(block(packed * 100_000), 0, codec) == 0
    assert first_too_large(block(packed * 100), 0, codec) is None


def test_very_many_empty_streams_of_a_file_are_read_piece_by_piece() -> None:
    with at_once():
        assert list(packed_lines(bz2.compress(b"") * 200_000 + bz2.compress(b"a"), "a.bz2", 1000)) == [[b"a"]]


def test_links_that_double_with_each_level_are_not_listed_to_their_end(tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    landing.mkdir()
    below = landing
    for number in range(40):
        further = tmp_path / f"level{number}"
        further.mkdir()
        for link in ("left", "right"):
            (below / link).symlink_to(further)
        below = further
    with at_once(), pytest.raises(UsageError, match=r"is one of more than 1,000 ways to the directory .*/level"):
        broken_links([str(landing)], "UTF-8")


def test_a_year_or_an_interval_of_5000_digits_stays_as_it_is() -> None:
    for form, text in (
        ("moment", "9" * 5000 + "-01-01"),
        ("date", "9" * 5000 + "-01-01"),
        ("interval", f"P{'9' * 5000}Y"),
    ):
        assert TEXT_FORMS[form](text) == text
    assert TEXT_FORMS["date"]("294276-12-31") == "+294276-12-31"


# --- places and sentences that are odd ---


def test_a_pipe_or_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "state.html"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write({pipe: "page"})
        assert pipe.is_fifo() and os.read(reader, 10) == b"page"
    finally:
        os.close(reader)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1}', "[" * 100_000, None])
def test_a_file_beside_the_pages_that_no_run_has_written_ends_no_later_run(tmp_path: Path, text: str | None) -> None:
    expectation = {
        "success": True,
        "expectation_config": {"description": "it is"},
        "result": {},
        "exception_info": None,
    }
    run = Run("lake.t", 1, 1, 1, "2026-11-26 16:00:00", [expectation])
    (tmp_path / "runs").mkdir()
    odd = json.dumps(asdict(run) | {"found": [{"success": True}]}) if text is None else text
    (tmp_path / "runs" / "0.json").write_text(odd)
    index = data_docs.write(tmp_path, "1", run)
    assert index.read_text().count("runs/") == 1


def test_a_ring_of_causes_is_told_once() -> None:
    one, other = RuntimeError("one"), RuntimeError("No space left on device")
    one.__cause__, other.__cause__ = other, one
    assert str(explained(one)).startswith("The disk is full")


def test_a_volume_that_nothing_can_exceed_is_no_number() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a number above 1"):
        _factor("9" * 400)
    assert _factor("1.5") == 1.5
