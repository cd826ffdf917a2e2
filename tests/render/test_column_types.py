"""A type that a model declares is read as Spark reads it, aliases too."""

from __future__ import annotations

import pytest
from plain_dbt import PlainProject
from recorder import Recorder

TYPES = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float", "dec": "decimal(10,0)",
    "numeric": "decimal(10,0)", "numeric(5)": "decimal(5,0)", "DECIMAL( 38 , 10 )": "decimal(38,10)",
    "timestamp_ltz": "timestamp", "Double": "double", "float": "float", "character(3)": "varchar(3)",
    "array<real>": "array<float>", "map<string, long>": "map<string,bigint>",
}  # fmt: skip


@pytest.mark.parametrize("declared", TYPES)
def test_a_type_is_known_by_each_of_its_names(declared: str) -> None:
    macros = PlainProject(Recorder(), "demo").macros
    assert macros.column_type(declared)["label"] == TYPES[declared]
