"""Models of Bigtable's change streams: cells and views of rows, by the families and qualifiers that came."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from cells import b64, data_change, delete_from_column, delete_from_family, set_cell
from generated import STAGING, observed, texts
from reconcile_jobs.generation.bigtable_records import MOST, add_data_change, cell_tables
from reconcile_jobs.generation.escaping import unrendered
from reconcile_jobs.generation.jinja_edits import columns_of_rows, with_rows
from reconcile_jobs.generation.names import Pattern
from reconcile_jobs.generation.observations import Observations
from reconcile_jobs.generation.plan import Plan, Settings
from reconcile_jobs.generation.project import Project
from reconcile_jobs.generation.rows_plan import plan_of_cells
from reconcile_jobs.generation.streams import BIGTABLE
from reconcile_jobs.generation.yaml_edits import NotEditable
from reconcile_jobs.process.written_files import write

RAISE = "{{ exceptions.raise_compiler_error('evaluated') }}"
ODD = ["a'b\"c`d", RAISE, "{% raw %}", "李雷 Ö", "</script>", "- x: y # z", "null", "a:b", "a\\", "[,]", ")"]
KIND, TOTAL = set_cell("e", b"kind", 1, b"new"), set_cell("e", b"total", 1, b"1.50")
HITS = set_cell("stats", b"hits", 1, (7).to_bytes(8))
DIGEST = set_cell("e", b"\xff\x00", 1, b"\x00\xff")


def seen(*entries: Any, table: str = "events") -> Observations:
    found = Observations()
    for entry in entries:
        add_data_change(found, data_change(b"k", entry if isinstance(entry, list) else [entry]), table, 1)
    return found


def planned(into: Path, found: Observations, name: str = "{table}", **settings: Any) -> Plan:
    return plan_of_cells(
        Project(into), *cell_tables(found), Settings(STAGING, Pattern(name), stream=BIGTABLE, **settings)
    )


def generated(into: Path, found: Observations, **options: Any) -> Plan:
    plan = planned(into, found, **options)
    write(plan.files)
    return plan


def columns(into: Path, view: str = "events") -> list[dict[str, Any]]:
    found = columns_of_rows((into / f"{view}.sql").read_text(encoding="utf-8"))
    assert found is not None
    return found


def test_cells_and_rows_are_as_if_written_by_hand(tmp_path: Path) -> None:
    found = seen([KIND, TOTAL], [HITS, DIGEST], delete_from_column("e", b"gone"), delete_from_family("f"))
    plan = generated(tmp_path, found, tags=("shop",))
    assert (plan.written, plan.refusals, plan.misfits) == (["events_cells", "events"], [], [])
    files = {name: text.decode() for name, text in texts(tmp_path).items()}
    assert {*files} == {"_sources.yml", "events.sql", "events.yml", "events_cells.sql", "events_cells.yml"}
    assert files["events_cells.sql"] == (
        "{{ config(materialized='current_state', unique_key=['row_key', 'family', 'qualifier', 'cell_time'], "
        "tags=['shop']) }}\n{{ reconcile.bigtable_change_stream(source('lake', 'shop_changes'), object='events') }}\n"
    )
    (cells,) = yaml.safe_load(files["events_cells.yml"])["models"]
    assert {column["name"]: column["data_type"] for column in cells["columns"]} == {
        "row_key": "binary", "family": "string", "qualifier": "binary", "cell_time": "timestamp", "value": "binary",
    }  # fmt: skip
    assert [*cells["data_tests"][0]] == ["reconcile.one_payload_per_sequence"] and len(cells["data_tests"]) == 1
    assert files["events.sql"] == (
        "{{ config(materialized='view', tags=['shop']) }}\n"
        "{{ reconcile.bigtable_rows(ref('events_cells'), [\n"
        "     {'name': 'kind', 'cell': 'e:kind', 'data_type': 'string', 'encoding': 'text'},\n"
        "     {'name': 'total', 'cell': 'e:total', 'data_type': 'string', 'encoding': 'text'},\n"
        "     {'name': 'x_ff00', 'cell': 'e:', 'qualifier_hex': 'ff00', 'data_type': 'binary', 'encoding': 'raw'},\n"
        "     {'name': 'hits', 'cell': 'stats:hits', 'data_type': 'binary', 'encoding': 'raw'}]) }}\n"
    )
    assert files["events.yml"].partition("\n")[2] == (
        "models:\n  - name: events\n    columns:\n      - name: row_key\n        data_type: binary\n"
        "      - name: kind\n        data_type: string  # the values: text\n"
        "      - name: total\n        data_type: string  # the values: text\n"
        "      - name: x_ff00\n        data_type: binary  # the values: bytes\n"
        "      - name: hits\n"
        "        data_type: binary  # the values: 8 bytes each, as whole numbers in big_endian have them\n"
        "      - name: undecoded\n        data_type: array<string>\n"
    )
    again = planned(tmp_path, found, tags=("shop",))
    assert (again.files, again.unchanged, again.misfits) == ({}, ["events_cells", "events"], [])


FORMS = {
    "text": ([b"a", "ü\t\n".encode()], "string", "text", "text"),
    "nothing": ([b""], "string", "text", "text"),
    "bytes": ([b"a", b"\xff"], "binary", "raw", "bytes"),
    "a small counter, which is UTF-8": ([(7).to_bytes(8)], "binary", "raw", "8 bytes each"),
    "a counter that looks like text": ([b"12345678", (-1).to_bytes(8, signed=True)], "binary", "raw", "8 bytes each"),
    "text of eight": ([b"12345678"], "string", "text", "text"),
    "a NUL": ([b"a\0"], "binary", "raw", "bytes"),
    "a counter and more": ([(7).to_bytes(8), b"\0"], "binary", "raw", "bytes"),
}  # fmt: skip


@pytest.mark.parametrize("case", FORMS)
def test_what_the_bytes_are_is_told_by_all_values_in_any_order(case: str) -> None:
    values, data_type, encoding, witness = FORMS[case]
    entries = [set_cell("f", b"q", number, value) for number, value in enumerate(values)]
    for order in (entries, entries[::-1]):
        whole = seen(order)
        parts = Observations.from_rows([row for entry in order for row in seen(entry).rows()])
        for found in (whole, parts):
            ((table,), refusals) = cell_tables(found)
            (cell,) = table.cells
            assert refusals == []
            assert (cell.declaration.data_type, cell.declaration.encoding) == (data_type, encoding)
            assert cell.declaration.witness.startswith(f"the values: {witness}")
            assert cell.fits(encoding, data_type)


def test_what_cannot_be_read_shows_nothing(tmp_path: Path) -> None:
    broken: Sequence[Any] = (
        {"set_cell": {"family": "f", "qualifier": "no base64!", "value": ""}}, {"set_cell": [1]}, "set_cell", None,
        {"set_cell": {"family": "", "qualifier": b64(b"q"), "value": ""}},
        {"set_cell": {"family": "f", "qualifier": b64(b"q"), "value": 7}}, {"add_to_cell": {"family": "f"}}, {},
    )  # fmt: skip
    found = seen(*broken)
    for record, name in (("{", "events"), ("[]", "events"), (data_change(b"k", "x"), "events"), ("{}", "#cut")):
        add_data_change(found, record, name, 1)
    add_data_change(found, data_change(b"k", [KIND]), None, 1)
    assert found.nameless == 1
    ((table,), refusals) = cell_tables(found)
    assert (table.cells, refusals) == ((), [])
    assert generated(tmp_path, found).written == ["events_cells"], "a view without columns is none"
    assert generated(tmp_path, seen(KIND)).written == ["events"]


def test_names_of_columns_are_those_of_qualifiers_where_these_are_names(tmp_path: Path) -> None:
    entries = [
        *(set_cell("f", text.encode(), 1, b"x") for text in ("Status", "row_key", "Undecoded", "a b", "A_B", "", "9")),
        set_cell("g", b"status", 1, b"x"), set_cell("g", b"x", 1, b"x"),
    ]  # fmt: skip
    generated(tmp_path, seen(entries))
    assert {column["cell"]: column["name"] for column in columns(tmp_path)} == {
        "f:": "f", "f:Status": "f_Status", "g:status": "g_status", "f:row_key": "f_row_key", "g:x": "x",
        "f:Undecoded": "f_Undecoded", "f:a b": "f_a_b_2", "f:A_B": "f_A_B", "f:9": "t_9",
    }  # fmt: skip


def test_a_name_that_several_columns_would_have_is_numbered_and_a_long_one_is_cut(tmp_path: Path) -> None:
    texts_ = ("a.b", "a,b", "a;b", "l" * 90, "m" * 91)
    generated(tmp_path, seen([set_cell("f", text.encode(), 1, b"x") for text in texts_]))
    names = {column["cell"].removeprefix("f:"): column["name"] for column in columns(tmp_path)}
    assert [names[text] for text in ("a,b", "a.b", "a;b", "l" * 90)] == ["f_a_b", "f_a_b_2", "f_a_b_3", "l" * 90]
    assert names["m" * 91].startswith("m" * 90 + "_") and len(names["m" * 91]) == 99


def test_qualifiers_of_any_bytes_and_tables_of_any_name_are_those_of_the_records(tmp_path: Path) -> None:
    entries = [set_cell("f", text.encode(), 1, text.encode()) for text in ODD]
    entries += [set_cell("f", bytes, 1, b"") for bytes in (b"\n", b"a\0", b"\xff", b"\xed\xa0\x80")]
    found = seen(entries)
    for name in ODD:
        found.merge(seen(entries, table=name))
    plan = generated(tmp_path, found)
    assert {refusal.reason for refusal in plan.refusals} <= {"two tables of one name"}
    said = {column.get("qualifier_hex") or column["cell"][2:].encode().hex() for column in columns(tmp_path)}
    assert said == {text.encode().hex() for text in ODD} | {"0a", "6100", "ff", "eda080"}
    models = Project(tmp_path).models
    called = {call.objects[0] for model in models.values() for call in model.calls}
    assert len(called) + len(plan.refusals) == len(ODD) + 1 and called >= {RAISE, "</script>", "李雷 Ö"}
    (entry,) = yaml.safe_load((tmp_path / "events.yml").read_text(encoding="utf-8"))["models"]
    assert [unrendered(column["name"]) for column in entry["columns"]][1:-1] == [
        column["name"] for column in columns(tmp_path)
    ]
    assert planned(tmp_path, found).files == {}


def test_a_family_whose_qualifiers_are_data_has_no_columns(tmp_path: Path) -> None:
    users = [set_cell("users", str(number).encode(), 1, b"x") for number in range(3 * MOST)]
    parts = [seen(users[start::4]) for start in range(4)]
    rows = [row for part in [*parts, seen(KIND, set_cell("o:dd", b"q", 1, b""))] for row in part.rows()]
    random.Random(1).shuffle(rows)
    found = Observations.from_rows(rows)
    plan = generated(tmp_path, found)
    assert [column["name"] for column in columns(tmp_path)] == ["kind"]
    assert [(refusal.label, refusal.reason) for refusal in plan.refusals] == [
        ("events: o:dd", "no family"), ("events: users", "too many qualifiers"),
    ]  # fmt: skip
    assert (
        "| events: users | too many qualifiers | The family has more than 200"
        in (tmp_path / "_not_generated.md").read_text()
    )
    assert planned(tmp_path, found).files == {}
    assert len(cell_tables(seen(*users[:MOST]))[0][0].cells) == MOST


# What people make of the view; each is the text of a call's list, with what the new column becomes there.
NEW = "{'name': 'hits', 'cell': 'stats:hits', 'data_type': 'binary', 'encoding': 'raw'}"
EDITED = {
    "as it was": (
        "[\n     {'name': 'kind', 'cell': 'e:kind', 'data_type': 'string', 'encoding': 'text'}]",
        f"[\n     {{'name': 'kind', 'cell': 'e:kind', 'data_type': 'string', 'encoding': 'text'}},\n     {NEW}]",
    ),
    "another name and type": (
        '[{"cell": "e:kind", "name": "art", "data_type": "varchar(9)", "encoding": "text", "round": false}]',
        '[{"cell": "e:kind", "name": "art", "data_type": "varchar(9)", "encoding": "text", "round": false}, '
        + NEW + "]",
    ),
    "a comma at the end": (
        "[\n  {'name': 'kind', 'cell': 'e:kind', 'data_type': 'string', 'encoding': 'text'},\n]",
        f"[\n  {{'name': 'kind', 'cell': 'e:kind', 'data_type': 'string', 'encoding': 'text'}},\n  {NEW},\n]",
    ),
    "by hex, and a bracket in a name": (
        "[{'name': 'k\\'],[', 'cell': 'e:', 'qualifier_hex': '6B696E64', 'data_type': 'string', 'encoding': 'text'} ]",
        "[{'name': 'k\\'],[', 'cell': 'e:', 'qualifier_hex': '6B696E64', 'data_type': 'string', 'encoding': 'text'}, "
        + NEW + " ]",
    ),
    "a tab": (
        "[\n\t{'name': 'kind', 'cell': 'e:kind', 'data_type': 'string', 'encoding': 'text'}\n]",
        f"[\n\t{{'name': 'kind', 'cell': 'e:kind', 'data_type': 'string', 'encoding': 'text'}},\n\t{NEW}\n]",
    ),
    "without a column": (
        "[]", "[{'name': 'kind', 'cell': 'e:kind', 'data_type': 'string', 'encoding': 'text'}, " + NEW + "]",
    ),
    "by name": (
        "columns=[{'name': 'kind', 'cell': 'e:kind', 'data_type': 'string', 'encoding': 'text'}]",
        "columns=[{'name': 'kind', 'cell': 'e:kind', 'data_type': 'string', 'encoding': 'text'}, " + NEW + "]",
    ),
}  # fmt: skip
AROUND = (
    "-- ours: é\n{{- config(materialized='view') -}}\n{% set x = ['a', ']'] %}\n"
    "{{ reconcile.bigtable_rows(ref('c'), LIST) }}\n\n"
)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("case", EDITED)
def test_what_people_do_to_a_view_stays_and_new_cells_are_added(tmp_path: Path, case: str, newline: str) -> None:
    before, after = (AROUND.replace("LIST", text).replace("\n", newline) for text in EDITED[case])
    generated(tmp_path, seen(KIND))
    for name in ("events.sql", "events.yml"):
        (tmp_path / name).unlink()
    cells = (tmp_path / "events_cells.sql").read_text().replace("object='events'", 'object="events"  ')
    (tmp_path / "events_cells.sql").rename(tmp_path / "c.sql")
    (tmp_path / "c.sql").write_text(cells)
    (tmp_path / "events_cells.yml").write_text((tmp_path / "events_cells.yml").read_text().replace("events_cells", "c"))
    (tmp_path / "sub").mkdir()
    view = tmp_path / "sub" / "rows_of_ours.sql"
    view.write_bytes(before.encode())
    kept = texts(tmp_path)
    has_none = case == "without a column"
    assert (planned(tmp_path, seen(KIND)).files == {}) is not has_none
    plan = generated(tmp_path, seen(KIND, HITS))
    said = "2 columns added: kind string, hits binary" if has_none else "1 column added: hits binary"
    assert plan.added == [f"rows_of_ours: {said}"] and plan.misfits == []
    assert view.read_bytes().decode() == after
    assert {name for name, text in texts(tmp_path).items() if kept.get(name) != text} == {"sub/rows_of_ours.sql"}
    assert planned(tmp_path, seen(KIND, HITS)).files == {}


def test_a_new_column_stands_in_the_sql_and_in_the_yaml_of_the_view(tmp_path: Path) -> None:
    generated(tmp_path, seen(KIND))
    yml = (tmp_path / "events.yml").read_text()
    plan = generated(tmp_path, seen(KIND, TOTAL, HITS))
    assert plan.added == ["events: 2 columns added: total string, hits binary"]
    assert plan.models_with_new_columns == ["events"]
    assert (tmp_path / "events.yml").read_text().startswith(yml)
    assert [column["name"] for column in columns(tmp_path)] == ["kind", "total", "hits"]


def test_yaml_of_a_view_gets_the_columns_that_it_lacks_and_may_be_there_before_it(tmp_path: Path) -> None:
    generated(tmp_path, seen(KIND))
    (tmp_path / "events.sql").unlink()
    (tmp_path / "events.yml").rename(tmp_path / "ours.yml")
    assert generated(tmp_path, seen(KIND)).written == ["events"] and not (tmp_path / "events.yml").exists()
    text = (tmp_path / "ours.yml").read_text() + "      - name: Total\n"
    (tmp_path / "ours.yml").write_text(text)
    plan = generated(tmp_path, seen(KIND, TOTAL))
    assert plan.added == ["events: 1 column added: total string"] and plan.news == ["events has no column total"]
    assert (tmp_path / "ours.yml").read_text() == text and len(columns(tmp_path)) == 2
    generated(tmp_path, seen(KIND, TOTAL, HITS))
    assert (tmp_path / "ours.yml").read_text().removeprefix(text).startswith("      - name: hits\n")
    (tmp_path / "ours.yml").write_text("models:\n- {name: events, columns: &c [{name: kind}]}\n")
    plan = generated(tmp_path, seen(KIND, TOTAL, HITS, DIGEST))
    assert plan.written == ["events"] and len(plan.misfits) == 1 and len(columns(tmp_path)) == 4
    assert plan.misfits[0].startswith("events: no column can be added to ") and "the anchor &c" in plan.misfits[0]


def test_a_view_beside_whose_call_another_stands_in_a_comment_is_left_alone_and_said(tmp_path: Path) -> None:
    generated(tmp_path, seen(KIND))
    file = tmp_path / "events.sql"
    file.write_text("{# reconcile.bigtable_rows(ref('x'), []) #}\n" + file.read_text())
    before = texts(tmp_path)
    plan = generated(tmp_path, seen(KIND, TOTAL, HITS))
    assert (plan.written, plan.unchanged) == ([], ["events_cells", "events"]) and texts(tmp_path) == before
    (said,) = plan.misfits
    assert said.startswith("events: total, hits cannot be added to ") and said.endswith("add the columns by hand.")


def test_columns_alone_writes_no_model_and_the_order_of_batches_makes_no_difference(tmp_path: Path) -> None:
    assert planned(tmp_path, seen(KIND), only_columns=True).files == {}
    generated(tmp_path, seen(KIND))
    made = []
    for value in (b"1.50", b"\xff", (7).to_bytes(8)):
        found = seen(KIND, set_cell("e", b"total", 1, value))
        found.merge(seen(KIND, table="another"))
        plan = planned(tmp_path, found, only_columns=True)
        assert plan.added == ["events: 1 column added: total binary"]
        made.append(plan.files)
    assert made[0] == made[1] == made[2] and {path.name for path in made[0]} == {"events.sql", "events.yml"}


@pytest.mark.parametrize("ignored", ["Total", "e:total"])
def test_a_column_that_a_view_ignores_does_not_come_back(tmp_path: Path, ignored: str) -> None:
    generated(tmp_path, seen(KIND))
    yml = (tmp_path / "events.yml").read_text()
    (tmp_path / "events.yml").write_text(f"{yml}    meta: {{ignored_columns: ['{ignored}']}}\n")
    assert planned(tmp_path, seen(KIND, TOTAL)).files == {}
    (tmp_path / "events.yml").write_text(yml)
    assert planned(tmp_path, seen(KIND, TOTAL)).columns_added == 1
    file = tmp_path / "events.sql"
    file.write_text(file.read_text().replace("'view'", f"'view', meta={{'ignored_columns': ['{ignored}']}}"))
    assert planned(tmp_path, seen(KIND, TOTAL)).files == {}
    assert planned(tmp_path, seen(KIND, TOTAL, HITS)).columns_added == 1


@pytest.mark.parametrize("whole_number", ["bigint", "long"])
def test_cells_that_do_not_fit_what_somebody_declared_are_said(tmp_path: Path, whole_number: str) -> None:
    generated(tmp_path, seen(KIND, HITS))
    file = tmp_path / "events.sql"
    whole = f"'data_type': '{whole_number}', 'encoding': 'big_endian'"
    file.write_text(file.read_text().replace("'data_type': 'binary', 'encoding': 'raw'", whole))
    assert planned(tmp_path, seen(KIND, HITS)).misfits == []
    found = seen(KIND, HITS, set_cell("e", b"kind", 1, b"\xff"), set_cell("stats", b"hits", 1, b"7"))
    assert planned(tmp_path, found).misfits == [
        "events: kind is declared string with the encoding text, and cells of e:kind came that are none; declare "
        "binary with the encoding raw.",
        f"events: hits is declared {whole_number} with the encoding big_endian, and cells of stats:hits came that are "
        "none; declare binary with the encoding raw.",
    ]


UNEDITABLE = {
    "not written out": "{{ reconcile.bigtable_rows(ref('events_cells'), my_columns()) }}",
    "two calls": "{{ reconcile.bigtable_rows(ref('events_cells'), []) }} {{ reconcile.bigtable_rows(ref('b'), []) }}",
    "a list of anything": "{{ reconcile.bigtable_rows(ref('events_cells'), ['kind']) }}",
    "a variable within": "{{ reconcile.bigtable_rows(ref('events_cells'), [{'name': x}]) }}",
}


@pytest.mark.parametrize("case", UNEDITABLE)
def test_a_view_that_cannot_be_added_to_is_left_alone_and_said(tmp_path: Path, case: str) -> None:
    generated(tmp_path, seen(KIND))
    (tmp_path / "events.sql").write_text(UNEDITABLE[case])
    before = texts(tmp_path)
    plan = generated(tmp_path, seen(KIND, HITS))
    assert plan.misfits == [
        "events: the columns of bigtable_rows are not written out in one list, so that no column can be added; add the "
        "cells that are new by hand."
    ]
    assert texts(tmp_path) == before
    with pytest.raises(NotEditable):
        with_rows(UNEDITABLE[case], [{"name": "x"}])


def test_a_call_in_a_comment_is_told_from_the_call() -> None:
    call = "{{ reconcile.bigtable_rows(ref('c'), [{'name': 'a'}]) }}"
    with pytest.raises(NotEditable):
        with_rows(f"{{# reconcile.bigtable_rows(ref('x'), [])  #}}\n{call}", [{"name": "x"}])
    assert with_rows(f"-- rows of cells\n{call}", [{"name": "x"}]).endswith("[{'name': 'a'}, {'name': 'x'}]) }}")


def test_a_view_that_stands_elsewhere_is_left_alone_and_no_other_is_written(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: shop\n")
    into = tmp_path / "models" / "events"
    generated(into, seen(KIND))
    (tmp_path / "models" / "marts").mkdir()
    for name in ("events.sql", "events.yml"):
        (into / name).rename(tmp_path / "models" / "marts" / name)
    assert planned(into, seen(KIND, HITS)).files == {}


def test_a_history_of_cells_has_no_view(tmp_path: Path) -> None:
    assert generated(tmp_path, seen(KIND), materialized="history").written == ["events_cells"]
    assert planned(tmp_path, seen(KIND)).files == {}, "nor has one that somebody wrote"


def test_names_that_others_have_are_refused(tmp_path: Path) -> None:
    (tmp_path / "Events.sql").write_text("select 1")
    plan = generated(tmp_path, seen(KIND))
    assert [(refusal.label, refusal.reason) for refusal in plan.refusals] == [("events", "two tables of one name")]
    assert plan.written == ["events_cells"]
    assert planned(tmp_path, seen(KIND), name="raw_{table}").written == ["raw_events"]
    two = seen(KIND, table="a.b")
    two.merge(seen(KIND, table="a_b"))
    plan = planned(tmp_path, two)
    assert [refusal.label for refusal in plan.refusals] == ["`a.b`", "a_b"] and plan.written == []
    two = seen(KIND, table="other")
    two.merge(seen(KIND, table="other_cells"))
    plan = planned(tmp_path, two)
    assert plan.written == ["other_cells", "other_cells_cells", "other"], "a view is not called as cells are"
    assert [refusal.label for refusal in plan.refusals] == ["other_cells"]
    assert observed([], add=add_data_change).tables == {}


def test_a_part_of_the_tables_leaves_the_list_as_it_is(tmp_path: Path) -> None:
    found = seen(KIND)
    found.merge(seen(KIND, table="other"))
    assert [table.table.name for table in cell_tables(found, ["o*"])[0]] == ["other"]
    assert [table.table.name for table in cell_tables(found, (), ["o*"])[0]] == ["events"]
    assert generated(tmp_path, found, is_whole=False).written == ["events_cells", "other_cells", "events", "other"]
