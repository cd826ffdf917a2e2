"""The demo's models fold by the keys by which parity compares them: a shorter one would fold several rows into one."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
import yaml
from plain_dbt import PACKAGE

DEMO = PACKAGE / "models" / "demo"


def compared() -> dict[str, Any]:
    """Return the key of the parity test of each model."""
    keys = {}
    for file in DEMO.rglob("*.yml"):
        for model in yaml.safe_load(file.read_text()).get("models", []):
            for test in model["data_tests"]:
                if isinstance(test, dict) and "reconcile.parity" in test:
                    keys[model["name"]] = test["reconcile.parity"]["arguments"]["key"]
    return keys


KEYS = compared()


@pytest.mark.parametrize("file", sorted(DEMO.rglob("*.sql")), ids=lambda file: file.stem)
def test_a_model_is_folded_by_the_key_by_which_it_is_compared(file: Any) -> None:
    said = re.search(r"unique_key=(\[[^]]*\]|'[^']*')", file.read_text())
    assert said and ast.literal_eval(said[1]) == KEYS[file.stem]
