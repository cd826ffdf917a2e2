"""What the package refuses: what somebody does, and every sentence that it says of that at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from plain_dbt import PACKAGE, CompilerError
from shapes import MYSQL, Life, Shape

THINGS = {"id": "bigint", "name": "string"}
MODEL, PARITY, SENTENCE = "Model orders", "Test parity", ""


@dataclass(frozen=True)
class Refusal:
    """`act` is refused; `by` says it as a list, or in a sentence of its own."""

    act: Callable[[], object]
    says: Sequence[str]
    by: str = MODEL

    def check(self) -> None:
        """Demand these sentences, these alone and in this order."""
        assert (self.by, list(self.says)) == complaints(self.act)


def thing(source: str = MYSQL, columns: Mapping[str, Any] = THINGS, key: Any = "id", **said: Any) -> Shape:
    """Return a model of few columns."""
    return Shape(source, columns, key, **said)


def run(life: Callable[[], Life], *names: str, **flags: Any) -> Callable[[], None]:
    """Return what runs a model; of what is refused nothing may have been written."""

    def act() -> None:
        living = life()
        living.warehouse.statements.clear()
        try:
            living.project.run(*(names or ["orders"]), **flags)
        except CompilerError:
            assert not list(_written(living.warehouse.statements))
            raise

    return act


def complaints(act: Callable[[], object]) -> tuple[str, list[str]]:
    """Return who refuses, and what it says."""
    with pytest.raises(CompilerError) as raised:
        act()
    by, *said = str(raised.value).split("\n  - ")
    return (by.removesuffix(":"), said) if said else (SENTENCE, [by])


def _written(statements: Sequence[str]) -> Iterator[str]:
    """Return the statements that write, but what stands before every run, and caches, which are the session's.

    Before every run the package's own tables are made, and the models are registered as readers of staging.
    """
    made = r"create (?:or replace table|table if not exists) (`\w+`\.)?`demo`\.`reconcile_"
    before = rf"create schema if not exists |{made}"
    readers = r"insert into (`\w+`\.)?`\w+`\.`\w+__readers`"
    caches = "cache |drop view if exists reconcile_"
    for sql in statements:
        if not re.match(rf"{before}|{readers}|{caches}|select|show|describe history|set|reset", sql.strip()):
            yield sql


# --- the sentences that the macros can say ---------------------------------------------------------------------------


class Site(NamedTuple):
    """A place in a macro that has something to say, and the form of what it says."""

    place: str
    form: re.Pattern[str]


_SAYS = re.compile(r"(?:(?:complaints|wrong)\.append\(|raise_\w+\(|(?<=else )(?=\[[\"']))\s*\[?\s*")
_LITERAL = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'")


def sites() -> list[Site]:
    """Return every place in the macros that refuses or complains in words of its own."""
    return [Site(f"{file.relative_to(PACKAGE)}:{line}", form) for file in _files() for line, form in _in(file)]


def _files() -> list[Path]:
    return sorted((PACKAGE / "macros").glob("**/*.sql"))


def _in(file: Path) -> Iterator[tuple[int, re.Pattern[str]]]:
    text = re.sub(r"{#.*?#}", lambda comment: re.sub(r"[^\n]", " ", comment[0]), file.read_text(), flags=re.S)
    for found in _SAYS.finditer(text):
        form = _form(text[found.end() :])
        if form.strip(".*"):
            yield text.count("\n", 0, found.start()) + 1, re.compile(form, re.S)


def _form(expression: str) -> str:
    """Return the form of a text by the literals of an expression that stand outside of all brackets.

    What is in brackets may be said or not. A complaint of a part of something has the name of that before it.
    """
    form, depth, at = ".*", 0, 0
    while depth >= 0:
        literal = _LITERAL.match(expression, at)
        if literal and not depth:
            form += re.escape((literal[1] or literal[2] or "").replace("\\n", "\n"))
        elif not depth and expression[at] not in " ~\n)]" and not form.endswith(".*"):
            form += ".*"
        depth += 0 if literal else (expression[at] in "([{") - (expression[at] in ")]}")
        at = literal.end() if literal else at + 1
    return form
