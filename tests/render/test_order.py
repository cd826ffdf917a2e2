"""What settles ties says nothing of how a model happens to be written."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from plain_dbt import PlainProject
from recorder import Recorder

COLUMNS = {"id": "bigint", "Name": "string", "ratio": "double", "tags": "array<string>", "days": "map<string,date>"}


def columns_of(names: tuple[str, ...]) -> list[dict[str, Any]]:
    macros = PlainProject(Recorder(), "demo").macros
    return [{"name": name, "type": macros.column_type(COLUMNS[name])} for name in names]


@pytest.mark.parametrize("carried", [None, "carried"])
def test_ties_are_settled_alike_in_whatever_order_columns_are_declared(carried: str | None) -> None:
    """Else a column that is moved in the YAML makes another record of every record that comes again."""
    macros = PlainProject(Recorder(), "demo").macros
    orders = [columns_of(names) for names in itertools.permutations(COLUMNS)]
    said = {macros.tie_sections("change_type", columns, "value ", carried) for columns in orders}
    (text,) = said
    assert all(f"`value {name}`" in text for name in COLUMNS)
