"""New columns in a call of `bigtable_rows` that somebody wrote: they are inserted, and every byte that was there stays.

As with YAML, the text that results is read again: it must be the old template with the new columns at the end of the
list, or nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import TemplateSyntaxError

from reconcile_jobs.generation.escaping import jinja_literal
from reconcile_jobs.generation.project import argument, calls_of, constant, parsed
from reconcile_jobs.generation.yaml_edits import NotEditable

__all__ = ["columns_of_rows", "rows_item", "with_rows"]

_CALL = re.compile(r"\breconcile\s*\.\s*bigtable_rows\s*\(")


def rows_item(column: Mapping[str, str]) -> str:
    """Return a column of `bigtable_rows` as Jinja has it."""
    return f"{{{', '.join(f'{jinja_literal(name)}: {jinja_literal(value)}' for name, value in column.items())}}}"


def columns_of_rows(text: str) -> list[dict[str, Any]] | None:
    """Return the columns in the one call of a template, None if they are not written out, or there is no such call."""
    try:
        listed = _list_of(parsed(text))
    except TemplateSyntaxError:
        return None
    columns = constant(listed) if listed else None
    is_right = isinstance(columns, list) and all(isinstance(column, dict) for column in columns)
    return columns if is_right else None


def with_rows(text: str, columns: Sequence[Mapping[str, str]]) -> str:
    """Return the text with further columns at the end of the list of its call. Raises NotEditable."""
    starts = [found.end() for found in _CALL.finditer(text)]
    if columns_of_rows(text) is None or len(starts) != 1:
        raise NotEditable("its columns are not one list that is written out in one call of bigtable_rows")
    last, closing = _places(text, starts[0])
    edited = _inserted(text, last, closing, [rows_item(column) for column in columns])
    if not _is_old_and(text, edited, [dict(column) for column in columns]):
        raise NotEditable("the text around its columns is too unusual")
    return edited


def _list_of(template: nodes.Template) -> nodes.List | None:
    calls = [call for name, call in calls_of(template) if name == "bigtable_rows"]
    listed = argument(calls[0], ("relation", "columns"), "columns") if len(calls) == 1 else None
    return listed if isinstance(listed, nodes.List) else None


def _places(text: str, at: int) -> tuple[int, int]:
    """Return where the list's last item begins (-1: there is none), and its closing bracket."""
    depth, inside, last, fresh = 1, 0, -1, False
    while at < len(text):
        mark = text[at]
        if inside and depth == inside and fresh and not mark.isspace() and mark not in ",]":
            last, fresh = at, False
        if mark in "'\"":
            at = _after_literal(text, at)
            continue
        if mark in "([{":
            depth += 1
            if mark == "[" and depth == 2 and not inside:
                inside, fresh = 2, True
        elif mark in ")]}":
            if inside and depth == inside and mark == "]":
                return last, at
            depth -= 1
        elif mark == "," and depth == inside:
            fresh = True
        at += 1
    raise NotEditable("the text around its columns is too unusual")


def _after_literal(text: str, at: int) -> int:
    quote, at = text[at], at + 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return at + 1


def _inserted(text: str, last: int, closing: int, items: Sequence[str]) -> str:
    before = text[:closing].rstrip()
    has_comma = before.endswith(",")
    newline = "\r\n" if "\r\n" in text else "\n"
    indent = text[text.rfind("\n", 0, last) + 1 : last]
    # Each item has a line of its own where the last one has.
    between = " " if last < 0 or indent.strip() else f"{newline}{indent}"
    if last < 0:
        return before + f",{between}".join(items) + text[closing:]
    if has_comma:
        return before + "".join(f"{between}{item}," for item in items) + text[len(before) :]
    return before + "".join(f",{between}{item}" for item in items) + text[len(before) :]


def _is_old_and(text: str, edited: str, columns: list[dict[str, str]]) -> bool:
    try:
        before, after = parsed(text), parsed(edited)
    except TemplateSyntaxError:
        return False
    old, new = _list_of(before), _list_of(after)
    if old is None or new is None:
        return False
    number = len(old.items)
    added = [constant(item) for item in new.items[number:]]
    new.items = new.items[:number]
    return added == columns and before == after
