"""The canonical form of values: which kind two columns share, and how rows of fields are written and read.

docs/canonical_form.md is the specification. A dialect renders the same form as SQL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from reconcile_jobs.jdbc.database import Column

__all__ = [
    "GROUP",
    "KINDS",
    "NULL",
    "NULL_ELEMENT",
    "VALUE",
    "Field",
    "Kind",
    "Unprovable",
    "agreed",
    "field_of",
    "field_texts",
    "inexact",
    "parts_of_type",
]

Kind = Literal[
    "number",
    "boolean",
    "float",
    "date",
    "timestamp",
    "timestamp_ntz",
    "text",
    "text_digest",
    "bytes",
    "bytes_digest",
    "array",
    "map",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

# What begins a field. Neither character can stand in the text of a value, so a row is the fields without separators.
NULL, VALUE = "~", "="
# An element of an array or a map that is NULL. Any other begins with its length, so elements need no separators.
NULL_ELEMENT = "n"

# The number of fields that are hashed together; a row of more fields is the hashes of its groups. A VARCHAR2 of Oracle
# has 4,000 characters. With digests a field has at most 65; only texts and bytes of a key, which are never digests, may
# be longer.
GROUP = 50

_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")

# The names of a type that a model may declare beside Spark's own: see macros/values/column_type.sql. Characters of a
# limited number are a text.
_ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
    "char": "string",
    "character": "string",
    "varchar": "string",
}


class Unprovable(Exception):
    """Two columns cannot be compared by checksums; the text says why."""


@dataclass(frozen=True)
class Field:
    """A column as one database has it.

    `expression` has {} in place of the column's quoted name and gives the text that a snapshot reads, or the bytes.
    `elements`: of an array its elements, of a map its keys and its values, as a field each.
    """

    name: str
    kind: Kind
    source_type: str = ""
    expression: str = "{}"
    elements: tuple[Field, ...] = ()

    @property
    def whole_kind(self) -> str:
        """The kind with those of its elements, as a certificate has it: array<number>, map<text,number>."""
        return f"{self.kind}<{','.join(e.whole_kind for e in self.elements)}>" if self.elements else self.kind


def field_of(name: str, whole_kind: str, type_: str) -> Field:
    """Return a model's column, given its kind and its type as a certificate has them."""
    kind, kinds = parts_of_type(whole_kind)
    _, types = parts_of_type(type_)
    elements = tuple(field_of(name, of, type_) for of, type_ in zip(kinds, types if kinds else [], strict=True))
    return Field(name, cast(Kind, kind), type_, elements=elements)


_NESTED = re.compile(r"(array|map)\s*<(.*)>", re.DOTALL | re.IGNORECASE)


def parts_of_type(text: str) -> tuple[str, list[str]]:
    """Return array and the type of its elements, map and those of its keys and values, or any other type and none.

    Kinds are written alike.
    """
    found = _NESTED.fullmatch(text.strip())
    if not found:
        return text.strip(), []
    parts, depth = [""], 0
    for character in found[2]:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return found[1].lower(), [part.strip() for part in parts]


def inexact(dialect: str) -> str:
    """Return what stands for a value that has no canonical form: no two databases agree on it."""
    return f"!{dialect}"


def agreed(source: Column, model_type: str, digests: bool = False) -> tuple[Field, Field]:
    """Return a column of the source and the model's column of this type as fields of one kind.

    With `digests`, texts and bytes are hashed by themselves. Raises Unprovable.
    """
    declared = model_type.strip().lower()
    nested, types = parts_of_type(declared)
    if source.elements and len(source.elements) == len(types):
        return _nested(source, declared, cast(Kind, nested), types)
    kind = _kind(source, re.sub(r"\s*\(.*\)$", "", declared), digests)
    return (
        Field(source.name, kind, source.source_type, source.expression or "{}"),
        Field(source.name, kind, declared),
    )


def _nested(source: Column, declared: str, kind: Kind, types: Sequence[str]) -> tuple[Field, Field]:
    """Return two arrays or maps whose elements agree. Raises Unprovable."""
    try:
        pairs = [agreed(element, type_) for element, type_ in zip(source.elements, types, strict=True)]
    except Unprovable:
        raise Unprovable(
            f"the column {source.name} is {source.source_type} at the source and {declared} in the model, whose "
            "elements have no canonical form in common"
        ) from None
    theirs, ours = zip(*pairs, strict=True)
    return (
        Field(source.name, kind, source.source_type, elements=theirs),
        Field(source.name, kind, declared, elements=ours),
    )


def _kind(source: Column, declared: str, digests: bool) -> Kind:
    """Return the kind that a source column and a declared type (lower case, without parentheses) share.

    Raises Unprovable.
    """
    shown = f"the column {source.name} is {source.source_type} at the source"
    if source.expression is None:
        raise Unprovable(f"{shown}, which cannot be read")
    given = re.sub(r"\(.*\)$", "", source.spark_type)
    wanted = _ALIASES.get(declared, declared)
    is_number = source.is_number or given in (*_WHOLE_NUMBERS, "decimal")
    if wanted in (*_WHOLE_NUMBERS, "decimal") and (is_number or given == "boolean"):
        return "number"
    if wanted == "boolean" and (given == "boolean" or is_number):
        return "boolean"
    if wanted in ("float", "double"):
        if wanted != given:
            raise Unprovable(f"{shown} and {declared} in the model, which may round it")
        return "float"
    if wanted in ("date", "timestamp", "timestamp_ntz") and wanted == given:
        return wanted  # type: ignore[return-value]
    if wanted == "string" and given == "string" and not is_number:
        if source.form == "json":
            raise Unprovable(f"{shown}: JSON has no canonical form")
        if source.form is not None:
            raise Unprovable(f"{shown}: a text of it has no canonical form")
        return "text_digest" if digests else "text"
    if wanted == "binary" and given == "binary":
        return "bytes_digest" if digests else "bytes"
    raise Unprovable(f"{shown} and {declared} in the model, which have no canonical form in common")


_FIELD = re.compile(r"~|=([^~=]*)")


def field_texts(row: str, kinds: Sequence[Kind]) -> list[str | None]:
    """Return the values of a row's canonical form, None for NULL; of the kind text, the text itself."""
    found = list(_FIELD.finditer(row))
    if "".join(match[0] for match in found) != row or len(found) != len(kinds):
        raise ValueError(f"{row[:200]!r} is not the canonical form of {len(kinds)} fields.")
    return [
        bytes.fromhex(match[1]).decode() if kind == "text" and match[1] is not None else match[1]
        for match, kind in zip(found, kinds, strict=True)
    ]
