"""The key of a source is compared with that of a model as a set of names."""

from __future__ import annotations

import json

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
