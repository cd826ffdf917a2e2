"""Identifiers are renamed where they are identifiers, once, and golden SQL is compared under the same map."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from renames import MAP, Renames, WrongMap, compared, pieces

MACRO = "macros/keyless/rows_that_wait.sql"
GIVEN: dict[str, Any] = {
    "macros": {"rows_that_wait": "pending_rows_of", "_place": "_numbers"},
    "sql": {"come": "incoming", "_change_undone": "_change_ended_by"},
    "phrases": [{"old": "then 'behind'", "new": "then 'after'"}],
    "scoped": [
        {"in": ["macros/keyless/"], "variables": {"said": "messages"}, "keys": {"said": "label"}},
        {"in": ["macros/keyless/rows_that_wait.sql:other"], "variables": {"there": "types"}},
        {"in": ["ingestion/a.py:run"], "python": {"told": "positions"}},
    ],
}


@pytest.fixture(scope="module")
def given() -> Renames:
    return Renames(GIVEN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{{ reconcile.rows_that_wait(node) }}", "{{ reconcile.pending_rows_of(node) }}"),
        ("{%- set said = range.said -%}", "{%- set messages = range.label -%}"),
        ("{%- do x({'said': said, 'a': 'what is said'}) -%}", "{%- do x({'label': messages, 'a': 'what is said'}) -%}"),
        ("select come.x, 'come' as a -- to come\n", "select incoming.x, 'come' as a -- to come\n"),
        ("{{ 'come.' ~ place ~ ' = x.come' }}", "{{ 'incoming.' ~ place ~ ' = x.incoming' }}"),
        ("{{ 'records that come. They come late' }}", "{{ 'records that come. They come late' }}"),
        ("select `come`, `a'b`, come", "select `come`, `a'b`, incoming"),
        ("{#- Those that come: `come`, {a, said}. -#}", "{#- Those that come: `incoming`, {a, label}. -#}"),
        ("when {{ x }} then 'behind'", "when {{ x }} then 'after'"),
        ("{%- set there = 1 -%}", "{%- set there = 1 -%}"),
        ("{% macro other() %}{%- set there = 1 -%}", "{% macro other() %}{%- set types = 1 -%}"),
        ("{#- `there` -#}\n{% macro other() %}", "{#- `types` -#}\n{% macro other() %}"),
    ],
)
def test_a_name_of_a_macro_is_renamed_where_it_is_a_name(given: Renames, old: str, new: str) -> None:
    assert given.applied(MACRO, old) == new
    assert given.applied(given.new_path(MACRO), new) == new, "to apply the map again changes nothing"


def test_a_comment_that_becomes_too_long_is_filled_anew(given: Renames) -> None:
    old = f"{{#- {'a ' * 40}{'b ' * 17}`said`\n    more. -#}}\nselect 1"
    new = given.applied(MACRO, old)
    assert new == f"{{#- {'a ' * 40}{'b ' * 16}b\n    `messages` more. -#}}\nselect 1" == given.applied(MACRO, new)


def test_a_file_gets_the_name_of_its_macro(given: Renames) -> None:
    assert given.new_path(MACRO) == "macros/keyless/pending_rows_of.sql"
    assert given.new_path("tests/unit/rows_that_wait.sql") == "tests/unit/rows_that_wait.sql"


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("ingestion/a.py", "def run():\n    told = 'told'\n", "def run():\n    positions = 'told'\n"),
        ("ingestion/a.py", "def go():\n    told = 1\n", "def go():\n    told = 1\n"),
        ("ingestion/a.py", 'def run():\n    f"it told {told}"\n', 'def run():\n    f"it told {positions}"\n'),
        ("ingestion/a.py", 'def run():\n    """Add to `told`."""\n', 'def run():\n    """Add to `positions`."""\n'),
        ("tests/a.py", "self._place = '_place'\n", "self._place = '_place'\n"),
        ("tests/a.py", "macros._place(1)\n", "macros._numbers(1)\n"),
        ("tests/a.py", "x = 'rows_that_wait.sql'\n", "x = 'pending_rows_of.sql'\n"),
        ("macros/a.yml", "  - name: rows_that_wait\n", "  - name: pending_rows_of\n"),
        (
            "docs/a.md",
            "`rows_that_wait`: rows that wait, as they come",
            "`pending_rows_of`: rows that wait, as they come",
        ),
    ],
)
def test_python_yaml_and_docs_follow(given: Renames, path: str, old: str, new: str) -> None:
    assert given.applied(path, old) == new == given.applied(path, new)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"macros": {"a": "b", "b": "c"}}, "new names that are old ones too: b"),
        ({"macros": {"a": "c", "b": "c"}}, "macros that would have one name: c"),
        ({"sql": {"a": "for"}}, "no identifiers: for"),
        ({"phrases": [{"old": "as a", "new": "as a b"}]}, "a phrase that is in what becomes of it: 'as a'"),
    ],
)
def test_a_map_that_cannot_be_applied_twice_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(WrongMap, match=says):
        Renames(wrong)


VIEW = "create view a\ntblproperties ('reconcile.definition' = '{}')\nas\n{}"
ONE, OTHER = "1" * 32, "2" * 32


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("select 1 as x", "select 1 as x", "same"),
        ("select 1 as come", "select 1 as incoming", "renamed"),
        ("select 1 as come", "select 1 as come", "differs"),
        ("select 'come' as x", "select 'incoming' as x", "differs"),
        ("select 1 as x", "select 2 as x", "differs"),
        (VIEW.format(ONE, "select come"), VIEW.format(OTHER, "select incoming"), "renamed"),
        (VIEW.format(ONE, "select come"), VIEW.format(ONE, "select incoming"), "a digest stays, and its view's text"),
        (
            VIEW.format(ONE, "select x"),
            VIEW.format(OTHER, "select x"),
            "a digest changes, and its view's text does not",
        ),
    ],
)
def test_golden_sql_may_differ_by_the_map_alone(given: Renames, old: str, new: str, verdict: str) -> None:
    (found,) = compared(given, {"tests/sql/a.sql": old}, {"tests/sql/a.sql": new}).values()
    assert found.startswith(verdict)


def test_a_view_whose_select_is_in_another_file_follows_that_file(given: Renames) -> None:
    there = {"tests/sql/a/change_records.sql": "select come"}, {"tests/sql/a/change_records.sql": "select incoming"}
    named = "{the SELECT of a/change_records.sql}"
    old = {"tests/sql/b.sql": VIEW.format(ONE, named), **there[0]}
    new = {"tests/sql/b.sql": VIEW.format(OTHER, named), **there[1]}
    assert set(compared(given, old, new).values()) == {"renamed"}


def test_files_that_are_on_one_side_alone_are_named(given: Renames) -> None:
    assert compared(given, {"a": ""}, {"b": ""}) == {"a": "only in the commit", "b": "only in the tree"}


def test_the_map_can_be_applied_twice_and_its_macros_are_renamed() -> None:
    renames = Renames(tomllib.loads(MAP.read_text()))
    macros = MAP.parent.parent / "macros"
    defined = {
        word
        for file in macros.glob("**/*.sql")
        for piece in pieces(file.read_text())
        if piece.kind == "code" and "macro " in piece.text
        for word in piece.text.replace("(", " ").split()[2:3]
    }
    assert defined > set(renames.macros.values())
    assert not defined & set(renames.macros)
