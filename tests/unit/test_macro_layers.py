"""The folders of macros are layers: a macro calls macros of its own folder and of the folders below it."""

from pathlib import Path

import pytest
from macro_layers import LAYERS, MACROS, UnclearCall, calls, circles, upwards

# Calls that go up, as `file: caller calls callee`. A call that goes up no more must leave this list.
EXCEPTIONS: set[str] = set()


def test_every_folder_of_macros_has_its_place_in_the_order():
    assert sorted(LAYERS) == sorted(folder.name for folder in MACROS.iterdir() if folder.is_dir())
    assert not list(MACROS.glob("*.sql")), "a macro stands in a folder"


def test_no_macro_calls_a_folder_above_its_own():
    up = set(map(str, upwards(calls())))
    assert not up - EXCEPTIONS, "move the macro that is called down, or give the caller what it needs as an argument"
    assert not EXCEPTIONS - up, "these calls go up no more: take them out of EXCEPTIONS"


def written(root: Path, **files: str) -> Path:
    for name, text in files.items():
        folder, _, file = name.partition("__")
        (root / folder).mkdir(exist_ok=True)
        (root / folder / f"{file}.sql").write_text(text)
    return root


def test_calls_are_found_in_macros_materializations_and_tests(tmp_path: Path):
    root = written(
        tmp_path,
        low__one="{%- macro one() -%}1{%- endmacro -%}\n{% macro two(a) %}{{ reconcile.one() }}{% endmacro %}",
        top__all="{#- reconcile.gone() -#}{%- materialization all, default -%}{%- do reconcile.two(\n  1) -%}"
        "{%- endmaterialization -%}{% test any(model) %}'see reconcile.nothing', {{ reconcile.one() }}{% endtest %}",
    )
    found = calls(root)
    assert [str(call) for call in found] == [
        "low/one.sql: two calls one", "top/all.sql: all calls two", "top/all.sql: any calls one"
    ]  # fmt: skip
    assert upwards(found, ["low", "top"]) == []
    assert [call.caller for call in upwards(found, ["top", "low"])] == ["all", "any"]
    assert circles(found) == []


def test_folders_in_a_circle_are_found(tmp_path: Path):
    root = written(
        tmp_path,
        a__a="{% macro a() %}{{ reconcile.b() }}{% endmacro %}",
        b__b="{% macro b() %}{{ reconcile.c() }}{% endmacro %}",
        c__c="{% macro c() %}{{ reconcile.a() }}{% endmacro %}",
        d__d="{% macro d() %}{{ reconcile.a() }}{% endmacro %}",
    )
    assert circles(calls(root)) == [("a", "b", "c")]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("reconcile.nothing(1)", "low/one.sql: one calls nothing, which no file defines"),
        ("reconcile[kind ~ '_of'](1)", r"low/one.sql: reconcile\[kind ~ '_of'\]\( computes the name of a macro"),
    ],
)
def test_a_call_that_leads_nowhere_is_named(tmp_path: Path, body: str, says: str):
    with pytest.raises(UnclearCall, match=says):
        calls(written(tmp_path, low__one=f"{{% macro one() %}}{{{{ {body} }}}}{{% endmacro %}}"))
