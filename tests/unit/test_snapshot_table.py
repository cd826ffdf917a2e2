"""The table that a snapshot becomes: its properties, by the names and types of its columns."""

from __future__ import annotations

from typing import Any

import pytest
from reconcile_jobs.snapshots import snapshot_table
from reconcile_jobs.staging import TableName
from reconcile_jobs.table_formats import Delta, Iceberg

FORMATS = {"delta": Delta, "iceberg": Iceberg}


class Session:
    """A session whose table, if it has one, has these properties."""

    def __init__(self, **before: str) -> None:
        self.before, self.catalog = before, self

    def tableExists(self, table: str) -> bool:
        return bool(self.before)

    def sql(self, statement: str) -> Session:
        assert statement == "SHOW TBLPROPERTIES `lake`.`orders`"
        return self

    def collect(self) -> list[dict[str, str]]:
        return [{"key": key, "value": value} for key, value in self.before.items()]


class Frame:
    """Rows of these columns, which note what is asked of their writer."""

    def __init__(self, **types: str) -> None:
        self.columns, self.dtypes, self.sparkSession = list(types), list(types.items()), Session()
        self.properties: dict[str, str] = {}

    def writeTo(self, table: str) -> Frame:
        assert table == "`lake`.`orders`"
        return self

    def using(self, name: str) -> Frame:
        return self

    def tableProperty(self, key: str, value: str) -> Frame:
        self.properties[key] = value
        return self


def properties(monkeypatch: pytest.MonkeyPatch, file_format: str, **types: str) -> dict[str, str]:
    monkeypatch.setattr(snapshot_table, "format_of", lambda spark, catalog: FORMATS[file_format]())
    rows: Any = Frame(**types)
    snapshot_table.writer(rows, TableName.parse("lake.orders"), "a comment", {"reconcile.snapshot": "csv"})
    found: dict[str, str] = rows.properties
    assert found.pop("reconcile.snapshot.id")
    assert (found.pop("comment"), found.pop("reconcile.snapshot")) == ("a comment", "csv")
    return found


@pytest.mark.parametrize("character", " ,;{}()\n\t=")
def test_delta_keeps_names_that_parquet_has_not(monkeypatch: pytest.MonkeyPatch, character: str) -> None:
    assert properties(monkeypatch, "delta", **{f"a{character}b": "string"}) == {"delta.columnMapping.mode": "name"}
    assert properties(monkeypatch, "iceberg", **{f"a{character}b": "string"}) == {}


def test_other_names_need_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert properties(monkeypatch, "delta", **{"a-b.c`d": "string", "ü": "int"}) == {}


def test_delta_is_told_of_moments_without_a_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("timestamp_ntz", "array<timestamp_ntz>"):
        assert properties(monkeypatch, "delta", a=kind) == {"delta.feature.timestampNtz": "supported"}
    assert properties(monkeypatch, "delta", a="timestamp") == {}


def test_what_a_load_does_not_say_any_more_is_set_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of Iceberg that is replaced keeps its properties: a position of before would be that of the new rows."""
    monkeypatch.setattr(snapshot_table, "format_of", lambda spark, catalog: Iceberg())
    rows: Any = Frame(a="string")
    kept = {"position": "9:9:", "path": "x"}
    named = {f"reconcile.snapshot.{name}": value for name, value in kept.items()}
    rows.sparkSession = Session(**named, **{"reconcile.snapshot": "jdbc", "of": "y"})
    snapshot_table.writer(
        rows, TableName.parse("lake.orders"), "", {"reconcile.snapshot": "csv", "reconcile.snapshot.path": "z"}
    )
    assert rows.properties["reconcile.snapshot.position"] == ""
    assert rows.properties["reconcile.snapshot.path"] == "z"
    assert "of" not in rows.properties
