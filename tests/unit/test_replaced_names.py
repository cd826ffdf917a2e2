"""A test that replaces a name of the product names one that is there: such names are texts, which no type checker sees.

The slow tests replace most of them, so a name that was changed would be noticed an hour later.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
_UNKNOWN = object()


def _imported(tree: ast.AST) -> dict[str, Any]:
    """Return what the import statements of a file bind, where it can be imported."""
    bound: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                module = import_module(name.name)
                bound[name.asname or name.name.partition(".")[0]] = (
                    module if name.asname else sys.modules[name.name.partition(".")[0]]
                )
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = import_module(str(node.module))
            for name in node.names:
                bound[name.asname or name.name] = getattr(module, name.name, None) or import_module(
                    f"{node.module}.{name.name}"
                )
    return bound


def _value(expression: ast.expr, bound: dict[str, Any]) -> Any:
    match expression:
        case ast.Name(name):
            return bound.get(name, _UNKNOWN)
        case ast.Attribute(value, name):
            owner = _value(value, bound)
            return owner if owner is _UNKNOWN else getattr(owner, name, _UNKNOWN)
    return _UNKNOWN


def _replaced(source: str) -> Iterator[tuple[int, Any, str]]:
    """Return the line, the owner and the name of each `setattr(owner, "name", ...)` whose owner was imported."""
    tree = ast.parse(source)
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "setattr"
        and len(node.args) == 3
    ]
    bound = _imported(tree) if calls else {}
    for call in calls:
        owner, name = _value(call.args[0], bound), call.args[1]
        if owner is not _UNKNOWN and isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield call.lineno, owner, name.value


def _missing(source: str) -> list[tuple[int, str]]:
    return [(line, name) for line, owner, name in _replaced(source) if not hasattr(owner, name)]


FILES = sorted(path for path in TESTS.rglob("test_*.py") if ".setattr(" in path.read_text())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_test_replaces_only_names_that_are_there(path: Path) -> None:
    assert _missing(path.read_text()) == []


def test_a_name_that_is_not_there_is_noticed() -> None:
    source = "import os.path\ndef test(patch):\n    patch.setattr(os.path, {!r}, 1)\n"
    assert _missing(source.format("join")) == []
    assert _missing(source.format("_join_of_old")) == [(3, "_join_of_old")]


def test_most_owners_are_known() -> None:
    assert sum(len(list(_replaced(path.read_text()))) for path in FILES) > 30
