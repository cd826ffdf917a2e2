"""What people do to generated files survives: further runs add what is new in the stream, and change nothing else."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from generated import change, generated, planned, texts
from reconcile_jobs.generation.declarations import Declaration
from reconcile_jobs.generation.tables import Column
from reconcile_jobs.generation.yaml_edits import Document
from reconcile_jobs.generation.yaml_text import column_in_braces, column_lines
from ruamel.yaml import YAML

ORDERS = {"id": 1, "status": "new", "total": "1.50", "note": None}
SECOND = [change(payload=ORDERS), change("customers", {"id": 7, "name": "Ada"})]
# The same tables, of which one has a new column.
NEWS = [*SECOND, change(payload=ORDERS | {"size: {#}": 3})]


def edited(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {text!r}"
        text = text.replace(old, new)
    return text


def in_yaml(*pairs: tuple[str, str]) -> Callable[[Path], None]:
    """Return an edit of the YAML of orders."""

    def edit(into: Path) -> None:
        file = into / "orders.yml"
        file.write_bytes(edited(file.read_text(), *pairs).encode())

    return edit


def as_whole(text: str) -> Callable[[Path], None]:
    """Return an edit that writes the YAML of orders anew."""
    return lambda into: (into / "orders.yml").write_bytes(text.encode()) and None


def moved(into: Path) -> None:
    (into / "finance").mkdir()
    for name in ("orders.sql", "orders.yml"):
        (into / name).rename(into / "finance" / name)


def renamed(into: Path) -> None:
    (into / "orders.sql").rename(into / "all_orders.sql")
    in_yaml(("name: orders", "name: all_orders"))(into)


def in_one_file(into: Path) -> None:
    orders, customers = ((into / name).read_text() for name in ("orders.yml", "customers.yml"))
    (into / "schema.yml").write_text(orders + "\n" + customers.partition("models:\n")[2])
    for name in ("orders.yml", "customers.yml"):
        (into / name).unlink()


def written_otherwise(into: Path) -> None:
    (into / "orders.sql").write_text(
        "-- ours\n{{ config(materialized='history',\n          unique_key=['id']) }}\n\n"
        "{{ reconcile.datastream_mysql(\n    table=['old.orders', {'schema': 'shop', 'table': 'orders'}],\n"
        "    relation=source(\"lake\", 'shop_changes'), generations=['2026-11-21 00:00:00+00']) }}\n"
    )


def in_crlf(into: Path) -> None:
    file = into / "orders.yml"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))


def source_moved(into: Path) -> None:
    text = (into / "_sources.yml").read_text()
    (into / "_sources.yml").rename(into.parent / "staging.yml")
    (into.parent / "staging.yml").write_text(text.replace("- name: lake\n", "- name: lake  # ours\n", 1))


LONG = "x" * 40 + " " + "long words of somebody " * 20
STATUS = "      - name: status\n        data_type: string  # the values: text\n"
NOTE = "      - name: note\n        data_type: string  # the values: only NULL\n"
ID = "      - name: id\n        data_type: bigint  # the values: whole number\n"

EDITS: dict[str, Callable[[Path], None]] = {
    "columns reordered": in_yaml((ID, ""), (NOTE, NOTE + ID)),
    "a test of a column": in_yaml(
        (STATUS, STATUS + "        data_tests: [not_null, {accepted_values: {values: [a]}}]\n")
    ),
    "a test of the model": in_yaml(("    columns:\n", "      - reconcile.no_drift\n    columns:\n")),
    "tests taken away": in_yaml(("      - reconcile.key_is_the_sources\n", "")),
    "a description": in_yaml((STATUS, STATUS + f"        description: {LONG}\n")),
    "a description in a block": in_yaml((NOTE, NOTE + "        description: |\n          one\n\n          two\n\n\n")),
    "a folded description at the end": in_yaml((NOTE, NOTE + "        description: >+\n          one\n\n\n")),
    "comments everywhere": in_yaml(
        (ID, "      # the key\n" + ID + "      # of the model\n\n"), (NOTE, NOTE + "      # - name: old\n# the end\n")
    ),
    "another type": in_yaml((NOTE, NOTE.replace("string", "varchar(3)"))),
    "quotes and blanks": in_yaml((STATUS, "      -   name:   \"status\"\n          data_type:    'string'\n")),
    "a column of one's own": in_yaml((NOTE, NOTE + "      - name: extra\n        data_type: date\n")),
    "blank lines between columns": in_yaml((STATUS, "\n" + STATUS + "\n"), (NOTE, "\n" + NOTE)),
    "lists without indentation": as_whole(
        "models:\n- name: orders\n  columns:\n  - name: id\n    data_type: bigint\n"
        "  - {name: status, data_type: string}\n  - data_type: string\n    name: total\n"
        "  -\n    name: note\n    data_type: string\n  tags: [a]\n"
    ),
    "in brackets": as_whole(
        "version: 2\nmodels:\n  - name: orders\n    columns: [{name: id, data_type: bigint}, {name: status, data_type: "
        "string},\n      {name: total, data_type: string}, {name: note, data_type: string},  # ours\n    ]\n"
    ),
    "all in braces": as_whole("models: [{name: orders, columns: [{name: id, data_type: bigint}]}]"),
    "without columns": as_whole("models:\n  - name: orders\n    config:\n      tags: [a]   # of ours\n\n  - name: b\n"),
    "with columns of nothing": as_whole("models:\n  - name: orders\n    columns: []  # none\n    docs: {show: true}\n"),
    **{
        f"with columns that are {nothing or 'not said'}": as_whole(
            f"models:\n  - name: orders\n    columns: {nothing}\n    docs: {{show: true}}\n"
        )
        for nothing in ("", "~", "null", "Null", "NULL")
    },
    "an anchor and an alias": as_whole(
        "x: &text {data_type: string}\nmodels:\n  - name: orders\n    columns:\n      - {name: id, data_type: bigint}\n"
        "      - <<: *text\n        name: status\n      - name: note\n        <<: *text\n    meta: *text\n"
    ),
    "CR LF and a byte order mark": in_crlf,
    "no line end": lambda into: (into / "orders.yml").write_text((into / "orders.yml").read_text()[:-1]) and None,
    "a folder": moved,
    "another name": renamed,
    "one file for all": in_one_file,
    "the model written otherwise": written_otherwise,
    "the source in another file": source_moved,
}


@pytest.fixture
def into(tmp_path: Path) -> Path:
    (tmp_path / "dbt_project.yml").write_text('name: shop\nmodel-paths: ["models"]\n')
    folder = tmp_path / "models" / "shop"
    generated(folder, SECOND)
    return folder


def test_a_second_run_changes_no_byte(into: Path) -> None:
    before = texts(into)
    assert {*before} == {"_sources.yml", "orders.sql", "orders.yml", "customers.sql", "customers.yml"}
    plan = generated(into, SECOND[::-1])
    assert (plan.files, plan.written, plan.news, plan.misfits) == ({}, [], [], [])
    assert texts(into) == before


@pytest.mark.parametrize("edit", EDITS)
def test_what_people_do_survives(into: Path, edit: str) -> None:
    """A run with nothing new writes nothing; one with a new column adds its lines, and takes no byte away."""
    EDITS[edit](into)
    top = into.parent
    before = texts(top)
    has_other_columns = edit in ("all in braces", "without columns", "an anchor and an alias")
    if not has_other_columns and not edit.startswith("with columns"):
        assert planned(into, SECOND).files == {}, "nothing is new"
    plan = generated(into, NEWS)
    after = texts(top)
    assert {*after} == {*before}, "no file comes or goes"
    changed = [name for name in after if after[name] != before[name]]
    (name,) = changed
    assert plan.misfits == [] and name.endswith(".yml")
    old, new = before[name], after[name]
    assert _is_within(old, new) or _is_replaced_empty(old, new), "every byte that was there is there, in this order"
    assert (b"\r\n" in old) == (b"\r\n" in new) and re.sub(rb"\r\n", b"", new).count(b"\r") == 0
    if b"\r\n" in old:
        assert new.replace(b"\r\n", b"").count(b"\n") == 0
    entries = {entry["name"]: entry for entry in _read(new)["models"]}
    had = {entry["name"]: entry for entry in _read(old)["models"]}
    (model,) = (model for model in entries if entries[model] != had[model])
    columns, of_before = entries[model].pop("columns"), had[model].pop("columns", None) or []
    assert entries == had, "of the rest of the file nothing changed"
    assert columns[: len(of_before)] == of_before
    added = {column["name"]: column for column in columns[len(of_before) :]}
    assert added.pop("{{ 'size: \\x7b\\x23\\x7d' }}") == {
        "name": "{{ 'size: \\x7b\\x23\\x7d' }}", "data_type": "bigint", "config": {"meta": {"added": True}}
    }  # fmt: skip
    assert generated(into, NEWS).files == {}, "a further run changes nothing"
    assert texts(top) == after


# Where the lines of a new column stand: NEW, with the indentation of its dash, after a blank line where it says BLANK.
PLACED = {
    "behind one column alone": "models:\n  - name: orders\n    columns:\n      - name: id\n      NEW\n  - name: b\n",
    "behind a comment on the last column": (
        "models:\n- name: orders\n  columns:\n  - name: id\n  # of id\n    # of id\n  NEW\n # of the model\n# of all\n"
    ),
    "behind a comment in the last line": "models:\n- name: orders\n  columns:\n  - name: id\n  # of id\n  NEW",
    "after a blank line where each column has one": (
        "models:\n- name: orders\n  columns:\n  - name: id\n\n  - name: a\n\n  - name: b\nBLANK\n  NEW\n"
    ),
    "without a blank line where not each has one": (
        "models:\n- name: orders\n  columns:\n  - name: id\n\n  - name: a\n  - name: b\n  NEW\n"
    ),
    "before the blank lines behind a text": (
        "models:\n- name: orders\n  columns:\n  - name: id\n    description: |\n      one\n  NEW\n\n\n- name: b\n"
    ),
    "behind blank lines that belong to the text": (
        "models:\n- name: orders\n  columns:\n  - name: id\n    description: |+\n      one\n\n\n  NEW\n- name: b\n"
    ),
    "behind an item that begins below its dash": (
        "models:\n- name: orders\n  columns:\n  -\n    name: id\n  NEW\n- name: b\n"
    ),
    "below a list of nothing": (
        "models:\n- name: orders\n  columns:\n    # of columns\n    NEW\n  # of docs\n  docs: {show: true}\n"
    ),
    "at the end of a model without columns": (
        "models:\n- name: orders\n  config:\n    tags: [a]\n  # of ours\n  columns:\n    NEW\n- name: b\n"
    ),
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("case", PLACED)
def test_the_lines_of_a_new_column_stand_behind_those_that_are_there(case: str, newline: str) -> None:
    lines = "- name: size\n{0}  data_type: bigint  # Avro: long"
    after = re.sub("^( *)NEW", lambda found: found[1] + lines.format(found[1]), PLACED[case], flags=re.MULTILINE)
    after = after.replace("BLANK", "")
    before = re.sub(r"(\nBLANK)?\n *NEW", "", PLACED[case])
    if case.startswith("at the end"):
        before = before.replace("\n  columns:", "")
    document = Document(before.replace("\n", newline))
    assert document.with_columns("orders", [SIZE]) == after.replace("\n", newline)


SIZE = Column("size", Declaration("bigint", witness="Avro: long"))
IN_BRACES = {
    "[{name: id}]  # ours": "[{name: id}, NEW]  # ours",
    "[{name: id},\n    {name: b},\n  ]": "[{name: id},\n    {name: b}, NEW\n  ]",
    "[]  # ours": "  # ours\n    - name: size\n      data_type: bigint  # Avro: long",
}


@pytest.mark.parametrize("written", IN_BRACES)
def test_in_brackets_a_new_column_is_the_last(written: str) -> None:
    new = "{name: size, data_type: bigint}"
    text = f"models:\n- name: orders\n  columns: {written}\n"
    expected = f"models:\n- name: orders\n  columns: {IN_BRACES[written].replace('NEW', new)}\n"
    assert Document(text).with_columns("orders", [SIZE]) == expected.replace("columns:   #", "columns:  #")
    whole = "models: [{name: orders, docs: {show: true}COLUMNS}]\n"
    for empty, filled in (("", f", columns: [{new}]"), (", columns: []", f", columns: [{new}]")):
        found = Document(whole.replace("COLUMNS", empty)).with_columns("orders", [SIZE])
        assert found == whole.replace("COLUMNS", filled)


def test_a_new_column_in_braces_has_all_that_its_lines_would_say() -> None:
    declaration = Declaration("decimal(9,2)", "json", zero_dates_are_null=True)
    column = Column("size", declaration, "with, comma", added=True)
    read = yaml.safe_load(f"[{column_in_braces(column)}, {{name: last}}]")
    assert read == [
        {
            "name": "size", "data_type": "decimal(9,2)", "description": "with, comma",
            "config": {"meta": {"encoding": "json", "zero_date": "null", "added": True}},
        },
        {"name": "last"},
    ]  # fmt: skip
    assert yaml.safe_load("\n".join(column_lines(column))) == read[0]


def test_what_models_and_sources_say_is_read_wherever_dbt_takes_it() -> None:
    """A schema that is called as its catalog: dbt on Spark says both of every table."""
    document = Document(
        "sources:\n"
        "- {name: a, tables: [{name: t}]}\n"
        "- {name: b, schema: lake, database: lake, tables: [{name: t, identifier: u}]}\n"
        "- {name: c, schema: lake, database: ice, tables: [{name: t}]}\n"
        "models:\n"
        "- name: orders\n  config: {unique_key: [id, line], meta: {ignored_columns: [x]}}\n"
        "  columns: [{name: a, meta: {was: b}}, {name: c, config: {meta: {was: [d, e]}}}, {name: f}]\n"
        "- {name: lines, config: {unique_key: id}, meta: {ignored_columns: [y]}}\n- {name: others}\n"
    )
    assert [*document.sources()] == [
        ("a", "t", "a", "t"), ("b", "t", "lake", "u"), ("c", "t", "ice.lake", "t"),
    ]  # fmt: skip
    assert [column.former_names for column in document.columns("orders")] == [["b"], ["d", "e"], []]
    models = ("orders", "lines", "others", "gone")
    assert [document.unique_key(model) for model in models] == [["id", "line"], ["id"], None, None]
    assert [document.ignored(model) for model in models] == [["x"], ["y"], [], []]


def _is_within(old: bytes, new: bytes) -> bool:
    """Whether one text is another with one insertion."""
    prefix = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    return len(new) > len(old) and new.endswith(old[prefix:])


def _is_replaced_empty(old: bytes, new: bytes) -> bool:
    # `columns: []  # none` becomes `columns:  # none` and lines.
    empty = (b" []", b" ~", b" null", b" Null", b" NULL")
    return any(b"columns:" + none in old and _is_within(old.replace(none, b"", 1), new) for none in empty)


def _read(text: bytes) -> dict[str, object]:
    return yaml.safe_load(text.decode("utf-8-sig"))  # type: ignore[no-any-return]


def test_what_ruamel_itself_would_write_differs(into: Path) -> None:
    """Why the lines are inserted as text: with nothing to add, its round trip would rewrite files of these edits."""
    changed = []
    for edit, apply in EDITS.items():
        if edit not in ("a folder", "another name", "one file for all", "the source in another file"):
            file = into / "orders.yml"
            start = file.read_bytes()
            apply(into)
            text = file.read_bytes().decode()
            round_trip, out = YAML(), io.StringIO()
            round_trip.preserve_quotes = True
            round_trip.indent(mapping=2, sequence=4, offset=2)
            round_trip.dump(round_trip.load(text), out)
            changed += [edit] if out.getvalue() != text else []
            file.write_bytes(start)
    assert {"a description", "quotes and blanks", "lists without indentation"} <= {*changed}
