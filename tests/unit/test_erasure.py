"""What erase.py and the register of erased keys take for a record of a key, and what they refuse. No Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import erase
import pytest
import reconcile_jobs
from pyspark import cloudpickle
from reconcile_jobs.erased_keys import (
    VARIABLE,
    ErasedKeys,
    KeyOf,
    Register,
    name_of,
    property_of,
    read_property,
)
from reconcile_jobs.erasure.erasure import Result
from reconcile_jobs.erasure.keys_file import keys_of_file, read_keys_file
from reconcile_jobs.erasure.models import (
    Base,
    NotReached,
    digest_of_key,
    has_key,
    key_columns,
    models_of,
    readers_called,
)
from reconcile_jobs.erasure.tables import corrected_reasons, refuse_several_tables
from reconcile_jobs.erasure.versions import is_of_earlier_version, purge_of_deleted_rows
from reconcile_jobs.keyed_records import DATASTREAM, KeyColumn, key_of_values
from reconcile_jobs.process.errors import Fault, JobError, Undecided, UsageError
from reconcile_jobs.retention.plan import Reader
from reconcile_jobs.staging import Staging, TableName

SECRET = b"0123456789abcdef0123456789abcdef"
ID = KeyColumn("id", ("id",), True)
CODE = KeyColumn("code", ("code", "old_code"), False)
OF = KeyOf(("SHOP_PEOPLE", "SHOP.PEOPLE"), (ID,))
STAGING = TableName(("lake", "changes"))


def record(payload: Any, **more: Any) -> bytes:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    said = json.dumps({"source_metadata": {"schema": "SHOP", "table": "PEOPLE"}, **more})
    return f'{said[:-1]}, "payload": {text}}}'.encode()


def reading(content: bytes, columns: tuple[KeyColumn, ...]) -> Any:
    found = DATASTREAM.reading(content, columns)
    (keys,) = found.parts
    return SimpleNamespace(keys=keys, table=found.table)


# --- which record is of which key ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "keys"),
    [
        ('{"id": 7}', {"7"}),
        ('{"id": "7", "name": "x"}', {"7"}),
        ('{"ID": 7.0}', {"7"}),
        ('{"id": 7e0}', {"7"}),
        ('{"id": 12345678901234567890123456789012345678}', {"12345678901234567890123456789012345678"}),
        ('{"id": 7, "id": 8}', {"7", "8"}),
        ('{"id": 7, "ID": "8"}', {"7", "8"}),
        ('{"nested": {"id": 8}, "id": 7}', {"7"}),
        ('{"id": null}', None),
        ('{"id": {"v": 7}}', None),
        ('{"id": true}', None),
        ('{"name": "x"}', None),
        ('[{"id": 7}]', None),
        ('"{}"', None),
        ("null", set()),
    ],
)
def test_a_record_is_of_the_keys_that_its_payload_has(payload: str, keys: set[str] | None):
    found = reading(record(payload), (ID,))
    assert found.keys == (None if keys is None else {(key,) for key in keys})
    assert found.table == '"SHOP"."PEOPLE"'


def test_texts_are_compared_as_they_are_and_found_under_former_names():
    assert reading(record({"code": "1.0"}), (CODE,)).keys == {("1.0",)}
    assert reading(record('{"code": 1.0}'), (CODE,)).keys == {("1.0",)}
    assert reading(record({"OLD_CODE": " é "}), (CODE,)).keys == {(" é ",)}
    assert reading(record({"id": 1, "code": "a"}), (CODE, ID)).keys == {("a", "1")}
    assert reading(record({"id": 1}), (CODE, ID)).keys is None
    assert reading(record({"code": True}), (CODE,)).keys == {("true",)}
    assert reading(record({"id": " 7 "}), (ID,)).keys == {("7",)}


@pytest.mark.parametrize(
    "content", [b"", b"{", b"null", b"[]", b'"x"', b"\xff", b"[" * 100_000, b'{"object": "x"}', record({"id": 1})[:-1]]
)
def test_what_cannot_be_read_has_no_key_and_raises_nothing(content: bytes):
    assert reading(content, (ID,)).keys is None
    assert not ErasedKeys(SECRET, (OF,)).without("SHOP_PEOPLE", content)


def test_a_record_without_metadata_is_still_of_its_key():
    found = reading(b'{"payload": {"id": 7}}', (ID,))
    assert (found.keys, found.table) == ({("7",)}, None)
    assert reading(b'{"payload": {"id": 7}, "source_metadata": 3}', (ID,)).keys == {("7",)}


def test_a_record_is_of_the_table_that_its_metadata_name_with_its_database():
    named = {"table": "PEOPLE", "schema": "SHOP", "database": "EU", "more": "x"}
    assert reading(record({"id": 7}, source_metadata=named), (ID,)).table == '"EU"."SHOP"."PEOPLE"'
    assert reading(record({"id": 7}, source_metadata=named | {"schema": None}), (ID,)).table == '"EU"."PEOPLE"'


# --- the register ----------------------------------------------------------------------------------------------------


def test_an_erased_key_is_found_under_each_name_of_its_object_and_no_other():
    keys = ErasedKeys(SECRET, (OF,))
    keys = ErasedKeys(SECRET, (OF,), frozenset({keys.digest(OF, ("7",))}))
    for object_ in OF.objects:
        assert keys.without(object_, record({"id": 7}))
        assert keys.without(object_, record('{"id": 8, "ID": "7.00"}'))
        assert not keys.without(object_, record({"id": 8}))
    assert not keys.without("SHOP_ORDERS", record({"id": 7}))
    assert SECRET.decode() not in repr(keys)


def test_the_register_goes_to_an_executor_that_has_no_module_of_it():
    """As `ship_by_value` sends it."""
    keys = ErasedKeys(SECRET, (OF,), frozenset({ErasedKeys(SECRET).digest(OF, ("7",))}))
    content = record({"id": 7})
    cloudpickle.register_pickle_by_value(reconcile_jobs)
    try:
        sent = cloudpickle.dumps(lambda: keys.without("SHOP_PEOPLE", content) is not None)
    finally:
        cloudpickle.unregister_pickle_by_value(reconcile_jobs)
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer)())"
    ran = subprocess.run([sys.executable, "-I", "-c", code], input=sent, capture_output=True, check=True)
    assert ran.stdout == b"True\n"


def keys_of(*erased: tuple[KeyOf, str], of: tuple[KeyOf, ...] = ()) -> ErasedKeys:
    digests = [ErasedKeys(SECRET).digest(one, (key,)) for one, key in erased]
    return ErasedKeys(SECRET, of or tuple(one for one, _ in erased), frozenset(digests))


@pytest.mark.parametrize(("one", "other"), [("shop_Orders", "shop_orders"), ("sales.eu_orders", "sales_eu.orders")])
def test_a_key_that_was_erased_in_one_table_is_not_erased_in_another_of_nearly_its_name(one: str, other: str):
    keys = keys_of((KeyOf((one,), (ID,)), "7"), (KeyOf((other,), (ID,)), "8"))
    found = {(object_, id_) for object_ in (one, other) for id_ in (7, 8) if keys.without(object_, record({"id": id_}))}
    assert found == {(one, 7), (other, 8)}


def test_a_table_that_a_later_erasure_knows_by_more_names_keeps_its_erased_keys():
    earlier, later = KeyOf(("SHOP_PEOPLE",), (ID,)), KeyOf(("SHOP.PEOPLE", "SHOP_PEOPLE"), (ID,))
    last = KeyOf(("SHOP.PEOPLE", "PEOPLE"), (ID,))
    keys = keys_of((earlier, "7"), (later, "8"), of=(earlier, later, last))
    for object_ in ("SHOP_PEOPLE", "SHOP.PEOPLE", "PEOPLE"):
        assert [keys.without(object_, record({"id": id_})) is not None for id_ in (7, 8, 9)] == [True, True, False]


def test_digests_of_before_tables_had_names_are_found():
    text = property_of("abc", [OF], "e1")
    said = json.loads(bytes.fromhex(text))
    said["of"][0].pop("name")
    _, (before,) = read_property("lake.changes", json.dumps(said).encode().hex())
    assert before.name == "shop_people"
    keys = keys_of((before, "7"), (OF, "8"))
    assert [keys.without("SHOP.PEOPLE", record({"id": id_})) is not None for id_ in (7, 8, 9)] == [True, True, False]


def test_a_digest_depends_on_secret_object_and_each_value():
    other = KeyOf(("SHOP_ORDERS",), (ID,))
    two = KeyOf(("SHOP_PEOPLE",), (ID, CODE))
    digests = [
        ErasedKeys(SECRET).digest(OF, ("7",)), ErasedKeys(SECRET[::-1]).digest(OF, ("7",)),
        ErasedKeys(SECRET).digest(other, ("7",)), ErasedKeys(SECRET).digest(OF, ("71",)),
        ErasedKeys(SECRET).digest(two, ("7", "1")), ErasedKeys(SECRET).digest(two, ("71", "")),
    ]  # fmt: skip
    assert len({*digests}) == len(digests)
    assert all(len(digest) == 64 and digest != "7" for digest in digests)


def test_the_property_says_what_the_job_wrote_and_another_text_is_refused():
    text = property_of("abc", [OF, KeyOf(("S_CODES",), (CODE,))], "e1")
    assert read_property("lake.changes", text) == ("abc", (OF, KeyOf(("S_CODES",), (CODE,))))
    for changed in ("", "zz", "7b7d", text[:-2], b'{"by": 1, "of": 7}'.hex()):
        with pytest.raises(UsageError, match=r"reconcile\.erased of the staging table lake\.changes is not"):
            read_property("lake.changes", changed)


def test_a_job_reads_the_register_once_for_each_state_of_it(monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    register = Register()
    monkeypatch.setenv(VARIABLE, SECRET.decode())
    for erasure in ("e1", "e1", "e2"):
        text = property_of(name_of(SECRET), [OF], erasure)

        def digests(erasure: str = erasure) -> list[str]:
            asked.append(erasure)
            return [erasure]

        assert register.keys("lake.changes", text, digests).digests == {erasure}
    assert asked == ["e1", "e2"]


def test_without_the_secret_or_with_another_nothing_is_appended(monkeypatch: pytest.MonkeyPatch):
    text = property_of(name_of(SECRET), [OF], "e1")
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(UsageError, match=r"erased keys of lake\.changes needs a key, and there is none"):
        Register().refuse_other_secret("lake.changes", text)
    monkeypatch.setenv(VARIABLE, "f" * 32)
    with pytest.raises(UsageError, match=r"this run has the key .*: it would find none of them") as refused:
        Register().refuse_other_secret("lake.changes", text)
    assert "f" * 32 not in str(refused.value)


def test_an_append_job_that_cannot_drop_records_is_refused(monkeypatch: pytest.MonkeyPatch):
    staging = Staging.__new__(Staging)
    staging.name, staging._register, staging._job = STAGING, None, "bigtable p/i/t"
    staging._properties = {}
    staging._refuse_erased()
    staging._properties = {"reconcile.erased": property_of(name_of(SECRET), [OF], "e1")}
    with pytest.raises(UsageError, match=r"this job \(bigtable p/i/t\) cannot drop later records"):
        staging._refuse_erased()
    staging._register = Register()
    monkeypatch.setenv(VARIABLE, SECRET.decode())
    staging._refuse_erased()


def left_out(register: Register | None, text: str) -> Staging:
    staging = Staging.__new__(Staging)
    staging.name, staging._register, staging._spark, staging._left_out_by = STAGING, register, None, None  # type: ignore[assignment]
    staging._properties = {"reconcile.erased": text} if text else {}
    return staging


def test_a_job_that_has_left_out_rows_appends_nothing_if_keys_were_erased_since():
    text = property_of(name_of(SECRET), [OF], "e1")
    for before, after, is_refused in (("", "", False), (text, text, False), ("", text, True), (text, "other", True)):
        staging = left_out(None if not before else Register(), "")
        staging._refuse_other_register()
        staging._left_out_by = before
        staging._properties = {"reconcile.erased": after}
        if is_refused:
            with pytest.raises(Fault, match=r"^Keys were erased from lake\.changes while this job read its rows"):
                staging._refuse_other_register()
        else:
            staging._refuse_other_register()


def test_what_was_left_out_is_not_looked_for_again_and_all_that_is_asked_is_known(monkeypatch: pytest.MonkeyPatch):
    asked: list[Any] = []
    register: Any = SimpleNamespace(left_out=lambda *of: asked.append(of) or ("some", 3), marked=lambda *of: "marked")
    staging = left_out(register, "")
    assert staging.leave_out_erased("rows", "P", "row") == ("rows", 0) and not asked  # type: ignore[arg-type,comparison-overlap]
    staging = left_out(register, "text")
    assert staging._without_erased("rows") == "marked"  # type: ignore[arg-type,comparison-overlap]
    assert staging.leave_out_erased("rows", "P", "row") == ("some", 3)  # type: ignore[arg-type,comparison-overlap]
    assert asked == [(None, "lake.changes", "`lake`.`changes__erased`", "text", "rows", "P", "row")]
    assert staging._without_erased("some") == "some"  # type: ignore[arg-type,comparison-overlap]


def test_without_a_register_an_append_is_as_it_was():
    staging = Staging.__new__(Staging)
    staging._properties, staging._register = {}, Register()
    rows: Any = object()
    assert staging._without_erased(rows) is rows


# --- the file of keys ------------------------------------------------------------------------------------------------


def keys_file(directory: Path, text: str, mode: int = 0o600) -> str:
    file = directory / "keys.csv"
    file.write_text(text)
    file.chmod(mode)
    return str(file)


def test_keys_are_read_each_once_in_the_order_of_the_columns(tmp_path: Path):
    file = read_keys_file(keys_file(tmp_path, '\ufeffcode,id\n"a,b",07\n\nx,7.0\nx,7\n'))
    assert keys_of_file(file, (ID, CODE)) == (("7", "a,b"), ("7", "x"))
    assert "a,b" not in repr(file)


def test_keys_of_numbers_may_be_negative_or_decimals(tmp_path: Path):
    file = read_keys_file(keys_file(tmp_path, "id\n-7\n 8 \n0.50\n-0\n"))
    assert keys_of_file(file, (ID,)) == (("-7",), ("8",), ("0.5",), ("0",))


def test_a_key_keeps_the_ends_of_lines_that_stand_in_it(tmp_path: Path):
    """One of them less would be the key of somebody else."""
    file = read_keys_file(keys_file(tmp_path, 'code\r\n"a\r\nb"\r\n"c\rd"\r\n"e\nf"\r\n'))
    assert keys_of_file(file, (CODE,)) == (("a\r\nb",), ("c\rd",), ("e\nf",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no header"),
        (",\n1,2\n", "has no header"),
        ("id,ID\n1,2\n", "names a column twice"),
        ("id\n", "has no key below its header"),
        ("id\nsecret-9,secret-9\n", "line 2 has 2 values, and the header 1 columns"),
        ('id\n""\n', "line 2 has an empty value"),
        ('id,no\n1,""\n', "line 2 has an empty value"),
        ('id\n"secret-9"x\n', "line 2 is no line of CSV"),
        ("id\n1\nsecret-9\n", "line 3 has no number in the column id"),
        ("id\n0x10\n", "line 2 has no number in the column id"),
        ("id\n1\n7.28052E+15\n", "line 3 has a number with an exponent in the column id: write all its digits"),
        ("id\n1.5e5\n", "line 2 has a number with an exponent in the column id: write all its digits"),
    ],
)
def test_what_is_wrong_with_the_file_is_said_without_a_value(tmp_path: Path, text: str, said: str):
    with pytest.raises(UsageError, match=said) as refused:
        keys_of_file(read_keys_file(keys_file(tmp_path, text)), (ID,))
    assert "secret" not in str(refused.value)


def test_a_file_that_others_may_read_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="chmod 600"):
        read_keys_file(keys_file(tmp_path, "id\n1\n", 0o644))


# --- the models ------------------------------------------------------------------------------------------------------


def reader(relation: str, *objects: str, materialized: str = "current_state") -> Reader:
    return Reader("lake.changes", "shop.reconcile_ledger", relation, materialized, objects)


def test_a_table_of_an_earlier_moment_is_of_the_model_only_if_it_reads_the_same_staging_table():
    def base(declaration: str | None) -> Base:
        return Base({"id": "bigint"}, declaration)

    of_model = base('{"staging": "a", "unique_key": "1"}')
    assert base('{"staging": "a", "unique_key": "2"}').may_be_of(of_model)
    assert not base('{"staging": "b", "unique_key": "1"}').may_be_of(of_model)
    assert all(base(unknown).may_be_of(of_model) for unknown in (None, "{}"))
    assert of_model.may_be_of(base(None))


def test_a_model_is_found_by_its_name_with_or_without_its_schema():
    readers = [reader("shop.people", "P"), reader("sales.people", "P"), reader("shop.orders", "O")]
    assert readers_called("people", readers) == readers[:2]
    assert readers_called("SHOP.people", readers) == readers[:1]
    assert readers_called("eople", readers) == []


def test_the_command_finds_the_one_model_of_a_name_or_says_what_to_add(monkeypatch: pytest.MonkeyPatch):
    readers = {"lake.changes": [reader("shop.people", "P"), reader("sales.people", "P")], "lake.more": []}
    monkeypatch.setattr(erase, "_staging_tables", lambda spark: [*map(TableName.parse, readers)])
    monkeypatch.setattr(erase, "Tables", lambda spark, table: SimpleNamespace(readers=lambda: readers[str(table)]))
    session: Any = None
    assert erase.reader_of(session, "shop.people", None) == (STAGING, readers["lake.changes"][0])
    with pytest.raises(UsageError, match=r"called people \(shop\.people of lake\.changes, sales\.people of lake\.ch"):
        erase.reader_of(session, "people", None)
    with pytest.raises(UsageError, match=r"No model orders is registered with any staging table of the session's"):
        erase.reader_of(session, "orders", None)
    with pytest.raises(UsageError, match=r"No model people is registered with lake\.more: correct --model"):
        erase.reader_of(session, "people", TableName(("lake", "more")))


def test_models_are_looked_for_beside_each_table_of_the_session_and_no_view_of_it():
    tables = {"lake": [("changes__readers", False), ("mine__readers", True), ("gone__readers", False)], "a`b": []}
    session: Any = SimpleNamespace(
        catalog=SimpleNamespace(
            listDatabases=lambda: [SimpleNamespace(name=name) for name in tables],
            tableExists=lambda name: name in ("`lake`.`changes`", "`lake`.`mine`"),
        ),
        sql=lambda sql: SimpleNamespace(
            collect=lambda: [
                SimpleNamespace(tableName=name, isTemporary=is_temporary)
                for schema, those in tables.items() for name, is_temporary in those
                if sql == f"SHOW TABLES IN `{schema.replace('`', '``')}` LIKE '*__readers'"
            ]
        ),
    )  # fmt: skip
    assert erase._staging_tables(session) == [STAGING]


@pytest.mark.parametrize("option", ["--model", "--keys", "--reason"])
def test_an_erasure_needs_a_model_keys_and_a_reason(option: str):
    given = {"--model": "people", "--keys": "k.csv", "--reason": "T-1"}
    words = [word for name, value in given.items() if name != option for word in (name, value)]
    console: Any = None
    with pytest.raises(UsageError, match=f"arguments are required: {option}; see"):
        erase.main(words, console)


def test_all_models_of_the_objects_lose_the_key_and_what_is_not_known_is_named():
    people, past = reader("shop.people", "P", "Q"), reader("sales.past", "P", materialized="history")
    own, orders = reader("shop.own"), reader("shop.orders", "O")
    found, not_reached = models_of(people, [orders, own, past, people])
    assert found == [people, past]
    assert [one.what for one in not_reached] == ["shop.own"]
    with pytest.raises(UsageError, match=r"reads the records of sales\.past, and those of Q too: give --mod"):
        models_of(past, [people, past])
    with pytest.raises(UsageError, match=r"shop\.own has no source macro"):
        models_of(own, [own])


def base(keys: list[str], **types: str) -> Base:
    return Base(types, json.dumps({"unique_key": digest_of_key(keys)}))


def test_the_columns_of_the_file_have_to_be_the_unique_key():
    of = base(["b", "A"], A="bigint", b="varchar(3)", c="date")
    assert [(c.name, c.fields, c.is_number) for c in key_columns("shop.people", of, ("b", "A"), "k")] == [
        ("b", ("b",), False), ("A", ("a",), True),
    ]  # fmt: skip
    for columns in (("A",), ("a", "b"), ("A", "b", "c"), ("x",)):
        assert not has_key(of, columns)
        with pytest.raises(UsageError, match=r"are not the unique_key of shop\.people"):
            key_columns("shop.people", of, columns, "k")
    with pytest.raises(UsageError, match=r"c of shop\.people is a date, and so far only keys of whole numbers"):
        key_columns("shop.people", base(["c"], c="date"), ("c",), "k")


@pytest.mark.parametrize("declaration", [None, "{}", "no JSON"])
def test_a_base_table_that_does_not_say_its_key_has_one_of_its_own_columns(declaration: str | None):
    of = Base({"id": "bigint", "no": "int"}, declaration)
    assert has_key(of, ("id",)) and has_key(of, ("no", "id"))
    assert not has_key(of, ("id", "x"))


@pytest.mark.parametrize(
    ("kind", "is_number"),
    [
        *((kind, True) for kind in ("tinyint", "smallint", "int", "bigint", "decimal(38,9)", "DECIMAL(9,0)")),
        *((kind, False) for kind in ("string", "varchar(3)", "STRING")), ("boolean", None), ("timestamp", None),
        ("double", None), ("interval day", None), ("char(3)", None),
    ],
)  # fmt: skip
def test_keys_of_whole_numbers_decimals_and_texts_can_be_erased_and_no_others(kind: str, is_number: bool | None):
    of = base(["k"], k=kind)
    if is_number is None:
        with pytest.raises(UsageError, match=r"k of shop\.people is a .*, and so far only keys of whole numbers"):
            key_columns("shop.people", of, ("k",), "f")
    else:
        assert [column.is_number for column in key_columns("shop.people", of, ("k",), "f")] == [is_number]


def test_the_digest_of_a_key_is_that_of_the_declaration():
    # `declaration_of` in macros/model/model_settings.sql: md5(tojson(unique_key | sort)), as Jinja sorts.
    import hashlib

    import jinja2

    for keys in (["id"], ["b", "A"], ["line", "order_id"]):
        text = jinja2.Environment().from_string("{{ keys | sort | join('|') }}").render(keys=keys).split("|")
        assert digest_of_key(keys) == hashlib.md5(json.dumps(text).encode()).hexdigest()


def test_a_renamed_key_is_found_under_its_former_names():
    columns = json.dumps([{"name": "id", "type": "bigint", "was": ["NR", "no"]}]).encode().hex()
    of = Base({"id": "bigint"}, json.dumps({"unique_key": digest_of_key(["id"])}), columns)
    (column,) = key_columns("shop.people", of, ("id",), "k")
    assert column.fields == ("id", "nr", "no")


def test_records_of_one_object_have_to_be_of_one_table():
    refuse_several_tables([("A_B_C", '"a"."b_c"'), ("O", '"a"."o"')])
    with pytest.raises(UsageError, match=r"The records of A_B_C in staging are of several tables \(a\.b_c, a_b\.c\)"):
        refuse_several_tables([("A_B_C", '"a_b"."c"'), ("A_B_C", '"a"."b_c"')])


# --- the reasons in a ledger -----------------------------------------------------------------------------------------


def is_of_person(text: str) -> bool:
    return key_of_values(json.loads(text, parse_int=str).items(), (ID,)) == {("7",)}


def reason(text: str | None, key: str | None, *batches: tuple[int, int], origin: str | None = "f") -> dict[str, Any]:
    return {
        "reason": text, "example_key": key, "example_origin": origin,
        "batches": [{"batch": batch, "records": records} for batch, records in batches],
    }  # fmt: skip


def test_reasons_lose_what_was_erased_and_keep_the_rest():
    before = [
        reason("age: 'x7' is no int", '{"id":7}', (3, 2), (4, 1)),  # of the person, others are left
        reason("size: 'O'Neil' is no int", '{"id": "7"}', (3, 1)),  # of the person alone
        reason("kind: 'k' is no int", '{"id":8}', (3, 2)),  # of another; one of two went
        reason("late: 'l' is no int", '{"id":7}', (9, 1)),  # of a batch from which nothing went: an old range
        reason(None, None, (3, 4), origin=None),
    ]
    left = [
        (3, "age: 'x8' is no int", "g"),
        (4, "age: 'x9' is no int", "h"),
        (3, "kind: 'k' is no int", "f"),
        (3, "rare", "f"),
    ]
    after = corrected_reasons(before, {3, 4}, left, is_of_person)
    assert after == [
        reason("age: 'x8' is no int", None, (3, 1), (4, 1), origin="g"),
        reason("kind: 'k' is no int", '{"id":8}', (3, 1)),
        reason("late: (erased)", None, (9, 1), origin=None),
        reason(None, None, (3, 1), origin=None),
    ]
    assert corrected_reasons(after, {3, 4}, left, is_of_person) == after, "once more changes nothing"
    assert "Neil" not in str(after) and "x7" not in str(after)


# --- old versions ----------------------------------------------------------------------------------------------------


def test_only_entries_of_earlier_versions_of_a_log_are_deleted():
    log = [
        "00000000000000000003.json", ".00000000000000000003.json.crc", "00000000000000000003.crc",
        "00000000000000000002.checkpoint.parquet", "00000000000000000001.00000000000000000003.compacted.json",
        "00000000000000000001.00000000000000000004.compacted.json",
    ]  # fmt: skip
    kept = [
        "00000000000000000004.json", "00000000000000000004.checkpoint.parquet", "_last_checkpoint",
        "00000000000000000005.json", "00000000000000000003.00000000000000000005.compacted.json", "_sidecars",
    ]  # fmt: skip
    assert [name for name in log + kept if is_of_earlier_version(name, 4)] == log


@pytest.mark.parametrize(
    ("clustering", "statement"),
    [
        ([], "REORG TABLE `lake`.`changes` APPLY (PURGE)"),
        (["id"], "UPDATE `lake`.`changes` SET `a``b` = `a``b`"),  # where REORG leaves files as they are
    ],
)
def test_rows_that_deletion_vectors_hide_leave_their_files(clustering: list[str], statement: str):
    detail = SimpleNamespace(collect=lambda: [SimpleNamespace(clusteringColumns=clustering)])
    session: Any = SimpleNamespace(
        sql=lambda sql: SimpleNamespace(select=lambda column: detail),
        table=lambda name: SimpleNamespace(columns=["a`b", "id"]),
    )
    assert purge_of_deleted_rows(session, STAGING) == statement


# --- what is said ----------------------------------------------------------------------------------------------------


def test_what_is_erased_and_what_is_not_is_said():
    result = Result(2, ("P",), 4, {"shop.people__base": 1}, 3, 1, [f"gs://b/{n}" for n in range(12)])
    result.tables = [STAGING]
    result.not_reached = [NotReached("shop.own", "has no source macro")]
    said = erase.sentences("lake.changes", result)
    assert said[:2] == [
        "lake.changes: 4 records of 2 keys erased; a note without values stands in the place of each.",
        "shop.people__base: 1 row erased",
    ]
    assert "gs://b/9 and 2 more" in " ".join(said)
    assert "Old versions of 1 table still have what was erased" in " ".join(said)
    assert "shop.own has no source macro." in said
    result = Result(2, ("P",), tables=[STAGING], versions_deleted=[STAGING])
    said = erase.sentences("lake.changes", result)
    assert said[:2] == [
        "lake.changes: nothing of 2 keys was there any more.", "Old versions of 1 table deleted.",
    ]  # fmt: skip


def test_all_that_may_still_hold_a_key_is_said():
    result = Result(1, ("P",), rows={"shop.people__base": 2}, ledgers={"shop.reconcile_ledger": 1})
    result.unreadable, result.without_object, result.source = 3, 1, "spanner"
    result.tables = [STAGING, TableName(("shop", "people__base"))]
    said = erase.sentences("lake.changes", result)
    assert said[:3] == [
        "lake.changes: 0 records of 1 key erased; a note without values stands in the place of each.",
        "shop.people__base: 2 rows erased", "shop.reconcile_ledger: examples erased in 1 row",
    ]  # fmt: skip
    assert said[3].startswith("3 records of these objects, in staging or in quarantine, stay, since their keys cannot")
    assert said[4].startswith("1 record in lake.changes without an object were not looked at")
    assert said[5].startswith("The change stream itself keeps its records")
    assert said[6].startswith("Old versions of 2 tables still have what was erased")
    assert said[7].startswith("Not known to this job, and not searched") and len(said) == 8
    result = Result(1, ("P",), 1, landing_files=[f"gs://b/{n}" for n in range(10)])
    (files,) = [sentence for sentence in erase.sentences("lake.changes", result) if "gs://" in sentence]
    assert files.startswith("The records came from 10 files") and "gs://b/9. Delete them" in files
    result = Result(1, ("P",), 1, source_tables=[f"copies.t{n}" for n in range(12)])
    (tables,) = [sentence for sentence in erase.sentences("lake.changes", result) if "copies." in sentence]
    assert tables.startswith("Rows of these keys came from 12 tables, which this job does not touch: copies.t0, ")
    assert "copies.t9 and 2 more. Delete the rows there" in tables


def erased(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, result: Result, *words: str) -> tuple[Any, list[Any]]:
    """Let the command come to a result; return what it says, and what the erasure was given."""
    given: list[Any] = []

    class Erasure:
        def __init__(self, *of: Any) -> None:
            given.extend(of[4:])

        def run(self, now: bool) -> Result:
            given.append(now)
            return result

    console: Any = SimpleNamespace(said=[])
    console.say, console.result = console.said.append, lambda values: setattr(console, "values", values)
    monkeypatch.setattr(erase.session, "start", lambda name: None)
    monkeypatch.setattr(erase, "reader_of", lambda spark, model, staging: (STAGING, reader("shop.people", "P")))
    monkeypatch.setattr(erase, "Erasure", Erasure)
    file = keys_file(tmp_path, "id\n7\n")
    try:
        erase.main(["--model", "people", "--keys", file, "--reason", "T-1", *words], console)
    except JobError as failure:
        console.failure = failure
    return console, given


def test_the_command_ends_with_one_line_of_json_and_the_code_of_what_it_did_not_reach(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    base = TableName(("shop", "people__base"))
    result = Result(2, ("P",), 4, {"shop.people__base": 1}, 3, 5, ["f"], [NotReached("shop.own", "is odd")])
    result.tables, result.versions_deleted, result.ledgers = [STAGING, base], [base], {"shop.reconcile_ledger": 6}
    console, given = erased(monkeypatch, tmp_path, result, "--now")
    assert console.values == {
        "staging": "lake.changes", "objects": ["P"], "keys": 2, "records": 4, "rows": {"shop.people__base": 1},
        "ledgers": {"shop.reconcile_ledger": 6}, "unreadable": 3, "without_object": 5, "landing_files": ["f"],
        "source_tables": [], "not_reached": [{"what": "shop.own", "why": "is odd"}],
        "old_versions_deleted": ["shop.people__base"], "old_versions_left": ["lake.changes"],
    }  # fmt: skip
    assert type(console.failure) is Undecided and str(console.failure).endswith("names: shop.own.")
    assert (given[0], given[2:]) == ("T-1", [None, False, True])
    result.not_reached = []
    console, given = erased(monkeypatch, tmp_path, result, "--with-unreadable", "--erasure-key-file", "k")
    assert not hasattr(console, "failure") and given[2:] == ["k", True, False]


def test_a_reason_is_short_and_printable():
    assert erase.reason(" TICKET-17 ") == "TICKET-17"
    assert erase.reason("x" * 200) == "x" * 200
    for text in (" ", "x" * 201, "a\nb"):
        with pytest.raises(Exception, match="name a ticket"):
            erase.reason(text)


def test_a_reason_keeps_its_count_where_only_another_part_of_its_record_was_erased():
    reason = {"reason": "Age: 'x' is no bigint", "example_key": '{"id":"7"}', "example_origin": "o"}
    before = [reason | {"batches": [{"batch": 1, "records": 2}, {"batch": 2, "records": 1}]}]
    left = [(1, "Age: 'x' is no bigint", None), (1, "Age: 'y' is no bigint", "o"), (2, "Age: 'z' is no bigint", "o")]
    (after,) = corrected_reasons(before, {1}, left, lambda key: '"7"' in key)
    assert after == before[0] | {"example_key": None, "reason": "Age: 'x' is no bigint", "example_origin": None}


def test_a_reason_goes_whose_records_are_in_no_quarantine_any_more():
    before = [
        {"reason": "Age: 'Ada' is no bigint", "example_key": '{"id":"8"}', "batches": [{"batch": 1, "records": 1}]}
    ]
    assert corrected_reasons(before, {1}, [], lambda key: False) == []


# --- planted bugs ----------------------------------------------------------------------------------------------------


def misses() -> set[str]:
    """Return which records of an erased key are not recognised, and which of others are."""
    keys = ErasedKeys(SECRET, (OF,))
    keys = ErasedKeys(SECRET, (OF,), frozenset({keys.digest(OF, ("7",))}))
    of_key = {
        "number": '{"id": 7}', "text": '{"id": "7"}', "capitals": '{"ID": 7}', "zeros": '{"id": 7.00}',
        "twice": '{"id": 7, "id": 8}', "twice, other order": '{"id": 8, "id": 7}',
    }  # fmt: skip
    found = {name for name, payload in of_key.items() if not keys.without("SHOP.PEOPLE", record(payload))}
    others = {"other": '{"id": 70}', "nested": '{"x": {"id": 7}, "id": 8}'}
    return found | {name for name, payload in others.items() if keys.without("SHOP.PEOPLE", record(payload))}


MODULE = sys.modules[DATASTREAM.__module__].__dict__


def last_of_each(content: bytes) -> Any:
    return json.loads(
        content, parse_int=str, parse_float=str, object_pairs_hook=lambda pairs: MODULE["_Object"](dict(pairs).items())
    )


PLANTED: dict[str, tuple[str, Any, set[str]]] = {
    "names as they are": ("spellings", lambda name: (name,), {"capitals"}),
    "numbers as they are": ("plain_number", lambda text: text, {"zeros"}),
    "the last of two members counts": ("_parsed", last_of_each, {"twice"}),
}  # fmt: skip


def test_records_of_an_erased_key_are_recognised():
    assert misses() == set()


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, bug: str):
    name, wrong, found = PLANTED[bug]
    monkeypatch.setitem(MODULE, name, wrong)
    assert misses() >= found
