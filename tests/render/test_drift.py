"""The key of a source is compared with that of a model as a set of names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from plain_dbt import PlainProject
from recorder import Recorder


@pytest.mark.parametrize(
    ("of_source", "of_model", "is_other"),
    [
        (["region", "id"], ["id", "region"], False),
        (["id", "region"], ["region", "id"], False),
        (["ID", "Region"], ["region", "id"], False),
        (["id"], ["region", "id"], True),
        (["id", "country"], ["id", "region"], True),
        ([], ["id"], False),
        (["id"], ["_row_id"], False),
    ],
)
def test_a_key_is_another_if_it_has_other_names(of_source: list[str], of_model: list[str], is_other: bool) -> None:
    macros = PlainProject(Recorder(), "demo").macros
    assert macros.is_other_key(json.dumps(of_source), of_model) is is_other


@pytest.mark.parametrize(
    ("meta", "columns", "ignored"),
    [
        ({"ignored_columns": ["More", 7]}, {}, ["more", "7"]),
        ({"ignored_columns": ["more"]}, {"Secret": {"mask": "drop"}, "name": {"mask": "sha256"}}, ["more", "secret"]),
        ({}, {"Secret": {"mask": "drop"}, "name": {}}, ["secret"]),
        ({"ignored_columns": None}, {}, []),
        (None, {}, []),
    ],
)
def test_drift_is_ignored_of_the_columns_that_are_named_and_of_those_that_are_left_out_of_every_record(
    meta: Any, columns: dict[str, Any], ignored: list[str]
) -> None:
    macros = PlainProject(Recorder(), "demo").macros
    declared = {name: {"name": name, "meta": said} for name, said in columns.items()}
    assert macros.ignored_columns({"config": {"meta": meta}, "columns": declared}) == ignored
