"""What settles ties says nothing of how a model happens to be written."""

from __future__ import annotations

import itertools

import pytest
from plain_dbt import PlainProject
from recorder import Recorder

COLUMNS = {"id": "bigint", "Name": "string", "ratio": "double", "tags": "array<string>", "days": "map<string,date>"}


@pytest.mark.parametrize("carried", [None, "carried"])
def test_ties_are_settled_alike_in_whatever_order_columns_are_declared(carried: str | None) -> None:
    """Else a column that is moved in the YAML makes another record of every record that comes again."""
    macros = PlainProject(Recorder(), "demo").macros
    columns = [{"name": name, "type": macros.column_type(type)} for name, type in COLUMNS.items()]
    orders = itertools.permutations(columns)
    said = {macros.tie_sections("change_type", list(order), "value ", carried) for order in orders}
    (text,) = said
    assert all(f"`value {name}`" in text for name in COLUMNS)
