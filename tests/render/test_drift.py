"""What differs from the declaration: the key of a source, as a set of names, and the columns of its records."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from by_sqlite import answer
from plain_dbt import PlainProject
from recorder import Recorder
from refusals import thing
from shapes import Life


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


def seen(
    name: str, batch: int, form: str, records: int = 1, spelled: str | None = "amount", **said: Any
) -> dict[str, Any]:
    """Return what the records of a batch showed of a column; one of its names in capitals is not declared."""
    return {
        "relation": "demo.orders", "batch": batch, "kind": "column", "name": name.lower(), "form": form,
        "spelled": None if form == "missing" else spelled, "is_declared": name.islower(), "records": records, **said,
    }  # fmt: skip


def drift(*rows: dict[str, Any], **meta: Any) -> list[tuple[Any, ...]]:
    """Return the findings, each with its name, the batch since which it is so, the last one, and its records."""
    life = Life(thing(meta=meta))
    sql = str(life.project.macros.drift_of([life.project.node("orders")]))
    # Spark lets a column be named beside the one that it is made of.
    (lacking,) = re.findall(r"^ *(coalesce.*) as lacking,$", sql, re.M)
    sql = sql.replace("lacking.batch", f"field({lacking}, 'batch')")
    structs = ("entry", "missing", "batches")
    found = answer(f"select finding, name, since_batch, last_batch, records from ({sql})",
                   {"demo.reconcile_columns_seen": rows}, structs)  # fmt: skip
    return sorted(found)


def test_a_column_has_changed_its_form_since_the_first_batch_of_the_newest_form() -> None:
    """And not since the column was first seen, nor since a form that has come and gone."""
    text, number = [seen("amount", batch, "text", 10) for batch in (1, 2)], [seen("amount", 7, "whole number", 3)]
    assert drift(*text) == []
    assert drift(*text, *number) == [("changed form", "amount", 7, 7, 3)]
    assert drift(*text, *number, seen("amount", 8, "whole number", 4)) == [("changed form", "amount", 7, 8, 7)]
    assert drift(*text, *number, seen("amount", 9, "json", 1)) == [("changed form", "amount", 9, 9, 1)]
    assert drift(*text, seen("amount", 5, "text", 2, "Amount")) == [("changed form", "amount", 5, 5, 2)]


def test_whole_numbers_among_other_numbers_and_values_of_null_are_no_other_form() -> None:
    assert drift(seen("amount", 1, "number"), seen("amount", 2, "whole number"), seen("amount", 3, "null")) == []


def test_a_column_is_new_since_its_first_batch_with_all_its_records_whatever_their_form() -> None:
    rows = [seen("AMOUNT", 3, "text", 2), seen("AMOUNT", 5, "whole number", 4), seen("AMOUNT", 6, "null", 1)]
    assert drift(*rows) == [("new", "amount", 3, 6, 7)]
    assert drift(*rows, ignored_columns=["Amount"]) == [("ignored", "amount", 3, 6, 7)]


def test_a_column_is_missing_since_the_first_batch_without_it_after_the_last_one_in_which_all_records_had_it() -> None:
    lacks = [seen("amount", batch, "missing", batch) for batch in (2, 5, 6)]
    assert drift(seen("amount", 1, "text"), *lacks) == [("missing", "amount", 2, 6, 13)]
    assert drift(*lacks, seen("amount", 3, "text")) == [("missing", "amount", 5, 6, 11)]
    assert drift(*lacks, seen("amount", 6, "text")) == [("missing", "amount", 2, 6, 13)], "some of batch 6 lack it"
    assert drift(*lacks, seen("amount", 7, "text")) == []
    # It is missing before it has another form.
    assert drift(seen("amount", 1, "text"), seen("amount", 2, "json"), lacks[1]) == [("missing", "amount", 5, 5, 5)]


def test_of_keys_and_schemas_each_is_a_finding_that_followed_another_or_came_back() -> None:
    def key(batch: int, name: str, kind: str = "key") -> dict[str, Any]:
        return seen(name, batch, "any", kind=kind)

    assert drift(key(1, "a"), key(1, "s", "schema")) == []
    assert drift(key(1, "a"), key(4, "b")) == [("changed key", "b", 4, 4, 1)]
    assert drift(key(1, "a"), key(4, "b"), ignored_columns=["b"]) == [("changed key", "b", 4, 4, 1)], "no column"
    assert drift(key(1, "a"), key(4, "b"), key(6, "a")) == [
        ("changed key", "a", 6, 6, 2),
        ("changed key", "b", 4, 4, 1),
    ]
    assert drift(key(1, "r", "schema"), key(2, "s", "schema")) == [("changed schema", "s", 2, 2, 1)]
