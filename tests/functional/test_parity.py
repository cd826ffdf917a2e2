"""What `reconcile.parity` says of a row, at a position and without one, and what it writes down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from datastream import READ_METHODS, Staged, event
from file_formats import file_format
from projects import Project
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit, to_timestamp

NOW = datetime.now(UTC)
COLUMNS = {"id": "bigint", "name": "string", "amount": "decimal(12,2)"}


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Things:
    """A model of one table, its staging table, and snapshots of the source as the job would have taken them."""

    def __init__(self, spark: SparkSession, root: Path, name: str, source: str = "postgresql", **config: Any) -> None:
        self.spark, self.source, self.schema, self.lake = spark, source, f"parity_{name}", f"parity_{name}_lake"
        self.project = Project(root / "project", self.schema)
        self.project.source(self.lake, "changes", "things_source")
        self.config = {"materialized": "current_state", "unique_key": "id", **config}
        spark.sql(f"create schema if not exists {self.lake}")
        self.batches = 0
        self.declare()

    def declare(self, columns: Mapping[str, str] = COLUMNS, /, **parity: Any) -> None:
        """Write the model with its test, of these arguments."""
        arguments = {"compare_to": "source('lake', 'things_source')", "key": "id", "store_values": True, **parity}
        config = ", ".join(f"{name}={value!r}" for name, value in self.config.items())
        self.project.model(
            "things",
            f"{{{{ config({config}) }}}}\n"
            f"{{{{ reconcile.datastream_{self.source}(source('lake', 'changes'), 'shop.things') }}}}",
            columns,
            data_tests=[{"reconcile.parity": {"name": "parity_of_things", "arguments": arguments}}],
        )

    def change(
        self,
        row: Mapping[str, Any],
        kind: str = "INSERT",
        at: datetime = NOW - timedelta(hours=5),
        backfill: bool = False,
        **metadata: Any,
    ) -> str:
        """Return a record of a row."""
        more = {"read_method": READ_METHODS[self.source][1], "read_timestamp": text(at)} if backfill else {}
        return event(self.source, row, kind, metadata=metadata, source_timestamp=text(at), **more)

    def append(self, *records: str, at: datetime = NOW - timedelta(hours=4)) -> None:
        """Append a batch, which came at that time."""
        self.batches += 1
        rows = [Staged(record, "shop.things", self.batches) for record in records]
        staged = self.spark.createDataFrame(
            rows, "record string, object string, batch bigint, origin string, source string"
        )
        staged = staged.select(
            "record", "source", "object", "origin", "batch", to_timestamp(lit(text(at))).alias("appended_at")
        )
        writer = staged.coalesce(1).write.format(file_format()).mode("append").partitionBy("object")
        writer.saveAsTable(f"{self.lake}.changes")

    def snapshot(
        self,
        *rows: tuple[Any, ...],
        columns: Mapping[str, str] = COLUMNS,
        kind: str = "",
        position: str = "",
        taken_at: datetime | None = None,
    ) -> None:
        """Let the source have these rows at that position; without one, at none that is known."""
        properties = {"reconcile.snapshot": "csv"}
        if kind:
            properties = {
                "reconcile.snapshot": "spanner" if kind == "read_timestamp" else "jdbc",
                "reconcile.snapshot.position_kind": kind,
                "reconcile.snapshot.position": position,
                "reconcile.snapshot.taken_at": text(taken_at) if taken_at else "",
            }
        frame = self.spark.createDataFrame(list(rows), ", ".join(f"`{name}` string" for name in columns))
        typed = frame.selectExpr(*(f"cast(`{name}` as {kind}) as `{name}`" for name, kind in columns.items()))
        writer = typed.writeTo(f"{self.lake}.things_source").using(file_format())
        for name, value in properties.items():
            writer = writer.tableProperty(name, value)
        writer.createOrReplace()

    def run(self) -> None:
        self.project.dbt("run", "--select", "things")

    def test(self, passes: bool | None = None) -> dict[str, Any]:
        """Run the test; return the verdict of each row that did not match, and what was written down of the run."""
        outcome = self.project.dbt("test", "--select", "things", succeed=False)
        (result,) = (result for result in outcome.result if result.node.name == "parity_of_things")
        assert result.status in ("pass", "fail"), result.message
        if passes is not None:
            assert outcome.success == passes
        run = self.runs()[-1]
        assert outcome.success == (run["verdict"] == "match")
        return run

    def runs(self) -> list[dict[str, Any]]:
        rows = self.spark.table(f"{self.schema}.reconcile_parity").orderBy("recorded_at").collect()
        return [row.asDict() for row in rows]

    def rows(self) -> dict[str, tuple[str, str | None, Any]]:
        """Return {id: (verdict, difference, {column: (model, source)} or the reason)} of the last run."""
        last = self.runs()[-1]["run_id"]
        found = self.spark.table(f"{self.schema}.reconcile_parity_differences").where(f"run_id = '{last}'").collect()
        return {
            json.loads(row.key)["id"] if row.key else None: (
                row.verdict,
                row.difference,
                {c.column: (c.model, c.source) for c in row.columns} if row.columns else None,
            )
            for row in found
        }


@pytest.fixture
def things(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Things:
    return Things(spark, tmp_path, request.node.name.removeprefix("test_").partition("[")[0][:40])


def test_without_a_position_both_sides_are_compared_as_they_are(things: Things) -> None:
    rows = [(1, "one", "1.00"), (2, "two", "2.00"), (3, "three", "3.00"), (4, None, None)]
    things.append(*(things.change(dict(zip(COLUMNS, row, strict=True)), lsn=f"0/{row[0]}") for row in rows))
    things.run()
    things.snapshot(*rows)
    run = things.test(passes=True)
    assert (run["compared"], run["matched"], run["position"]) == (4, 4, None)
    assert run["model_digest"] == run["source_digest"] != "0"
    things.snapshot((1, "one", "1.00"), (2, "two ", "2.01"), (4, "", None), (5, "five", "5.00"))
    run = things.test(passes=False)
    assert things.rows() == {
        "2": ("confirmed", "different", {"name": ("two", "two "), "amount": ("2.00", "2.01")}),
        "3": ("confirmed", "unexpected", None),
        "4": ("confirmed", "different", {"name": (None, "")}),
        "5": ("confirmed", "missing", None),
    }
    assert [run[n] for n in ("matched", "confirmed", "missing", "unexpected", "different")] == [1, 4, 1, 1, 2]
    assert run["model_digest"] != run["source_digest"]


# --- at a position ----------------------------------------------------------------------------------------------------

TAKEN = NOW - timedelta(hours=3)


@pytest.mark.soak
def test_what_a_snapshot_of_postgresql_does_not_see_is_left_out_and_what_is_merged_later_does_no_harm(
    things: Things,
) -> None:
    """Transaction 12 was open; 14 came later. Neither counts, wherever its records are."""
    early, late = TAKEN - timedelta(minutes=9), TAKEN + timedelta(minutes=9)
    things.append(
        *(
            things.change({"id": i, "name": "a", "amount": "1"}, tx_id="10", lsn=f"0/{i}", at=early)
            for i in range(1, 7)
        ),
        things.change({"id": 1, "name": "open", "amount": "1"}, "UPDATE", tx_id="12", lsn="0/20", at=late),
        at=TAKEN - timedelta(minutes=1),
    )
    things.run()
    things.append(
        things.change({"id": 2, "name": "seen", "amount": "1"}, "UPDATE", tx_id="13", lsn="0/30", at=early),
        things.change({"id": 3, "name": "later", "amount": "1"}, "UPDATE", tx_id="14", lsn="0/40", at=late),
        things.change({"id": 4, "name": "a", "amount": "1"}, "DELETE", tx_id="14", lsn="0/41", at=late),
        things.change({"id": 9, "name": "new", "amount": "1"}, tx_id="14", lsn="0/42", at=late),
        at=late,
    )
    rows = [(1, "a", "1"), (2, "seen", "1"), (3, "a", "1"), (4, "a", "1"), (5, "a", "1"), (6, "a", "1")]
    things.snapshot(*rows, kind="pg_snapshot", position="12:14:12", taken_at=TAKEN)
    for merged in (False, True):
        if merged:
            things.run()
        run = things.test()
        assert things.rows() == {}, merged
        assert (run["compared"], run["matched"], run["is_delivered"]) == (6, 6, True)
        assert (run["position_kind"], run["position"]) == ("pg_snapshot", "12:14:12")
    # And a row that differs is found, a quiet one in the base table as well as one that was folded.
    wrong = [(1, "b", "1"), (2, "seen", "1"), (3, "later", "1"), (4, "a", "1"), (5, "b", "1"), (7, "a", "1")]
    things.snapshot(*wrong, kind="pg_snapshot", position="12:14:12", taken_at=TAKEN)
    things.test(passes=False)
    assert things.rows() == {
        "1": ("confirmed", "different", {"name": ("a", "b")}),
        "3": ("confirmed", "different", {"name": ("a", "later")}),
        "5": ("confirmed", "different", {"name": ("a", "b")}),
        "6": ("confirmed", "unexpected", None),
        "7": ("confirmed", "missing", None),
    }


# What each source's changes before the position, at it and behind it have; `position` is what the job reads there.
EXACTLY = {
    "mysql": ("binlog", "mysql-bin.1000000:500", [{"log_file": "mysql-bin.999999", "log_position": 900},
                                                  {"log_file": "mysql-bin.1000000", "log_position": 500},
                                                  {"log_file": "mysql-bin.1000000", "log_position": 1000}]),
}  # fmt: skip
IN_AN_INTERVAL = {
    "oracle": ("scn", "1000", [{"scn": 90}, {"scn": 900}, {"scn": 10000}]),
    "sqlserver": (
        *("lsn", "0x0000000A000000200003"),
        [{"lsn": "00000009:000000ff:0001"}, {"lsn": "0000000a:00000100:0001"}, {"lsn": "0000000a:00000100:0002"}],
    ),
}


@pytest.mark.parametrize(
    "source", ["oracle", *(pytest.param(source, marks=pytest.mark.matrix) for source in ("mysql", "sqlserver"))]
)
@pytest.mark.matrix
def test_a_row_that_changed_when_it_is_uncertain_matches_any_of_its_versions(
    spark: SparkSession, tmp_path: Path, source: str
) -> None:
    things = Things(spark, tmp_path, f"uncertain_{source}", source)
    kind, position, (before, there, behind) = (EXACTLY | IN_AN_INTERVAL)[source]
    hour = timedelta(hours=1)
    long_ago, then, later = TAKEN - 2 * hour, TAKEN - hour / 6, TAKEN + 2 * hour

    def change(id: int, name: str | None, place: dict[str, Any], at: datetime, how: str = "UPDATE") -> str:
        return things.change({"id": id, "name": name, "amount": 1}, how, at=at, **place)

    things.append(*(change(id, "old", before, long_ago, "INSERT") for id in range(1, 10)))
    things.append(
        *(change(id, "new", there, then) for id in (2, 3, 4)),
        change(5, None, there, then, "DELETE"),
        change(6, None, there, then, "DELETE"),
        change(21, "new", there, then, "INSERT"),
        change(22, "new", there, then, "INSERT"),
        *(change(id, "newest", behind, later) for id in (1, 2, 7)),
        change(23, "newest", behind, later, "INSERT"),
        things.change({"id": 24, "name": "read later", "amount": 1}, at=later, backfill=True),
        at=NOW - hour / 2,
    )
    things.run()
    there_then = {
        1: "old", 2: "old", 3: "new", 4: "neither", 5: "old", 7: "other", 8: "other", 9: "old", 21: "new", 24: "late",
    }  # fmt: skip
    things.snapshot(*((id, name, "1") for id, name in there_then.items()), kind=kind, position=position, taken_at=TAKEN)
    things.declare(recheck=2)
    run = things.test(passes=False)
    found = {id: verdict for id, (verdict, *_) in things.rows().items()}
    assert found == {"4": "in_flight", "7": "confirmed", "8": "confirmed", "24": "in_flight"}
    assert run["verdict"] == "confirmed" and run["matched"] == 7
    assert (run["uncertain_from"], run["uncertain_to"]) != (None, None)
    # What is confirmed is compared again with all other rows; of what is in flight alone only that.
    things.snapshot(
        *((id, name, "1") for id, name in (there_then | {7: "old", 8: "old"}).items()),
        kind=kind, position=position, taken_at=TAKEN,
    )  # fmt: skip
    run = things.test(passes=False)
    assert (run["verdict"], run["compared"], run["rechecks"]) == ("in_flight", 11, 0)
    assert {id: verdict for id, (verdict, *_) in things.rows().items()} == {"4": "in_flight", "24": "in_flight"}
    run = things.test(passes=False)
    assert (run["verdict"], run["compared"], run["rechecks"]) == ("in_flight", 2, 1)
    # At a later position both are quiet; a row that was not in flight is not looked at.
    rows = [(4, "new", "1"), (24, "read later", "1"), (999, "not in scope", "1")]
    last = dict(before, **behind)
    things.snapshot(*rows, kind=kind, position=position_of(kind, last), taken_at=NOW - hour / 5)
    things.declare(recheck=2, uncertainty="1 second")
    run = things.test(passes=True)
    assert (run["compared"], run["matched"], run["rechecks"]) == (2, 2, 2)
    # Then all rows are compared again.
    run = things.test(passes=False)
    assert (run["rechecks"], run["missing"]) == (0, 1)


def position_of(kind: str, place: Mapping[str, Any]) -> str:
    """Return a position behind a change's, as the job would read it."""
    if kind == "scn":
        return str(place["scn"] + 1)
    if kind == "binlog":
        return f"{place['log_file']}:{place['log_position'] + 1}"
    return "0x" + "".join(field[-8:] for field in place["lsn"].split(":")).upper()


@pytest.mark.soak
def test_nothing_is_confirmed_before_everything_up_to_the_position_was_delivered(things: Things) -> None:
    row = {"id": 1, "name": "a", "amount": "1"}
    things.append(things.change(row, tx_id="10"), things.change({**row, "id": 2}, tx_id="10"))
    things.run()
    # Less than the allowance has passed.
    rows = [(1, "b", "1"), (2, "a", "1"), (3, "a", "1")]
    things.snapshot(*rows, kind="pg_snapshot", position="20:20:", taken_at=datetime.now(UTC) - timedelta(minutes=5))
    run = things.test(passes=False)
    assert things.rows() == {"1": ("in_flight", "different", {"name": ("a", "b")}), "3": ("in_flight", "missing", None)}
    assert not run["is_delivered"] and "the allowance of 10 minutes" in run["not_delivered_because"]
    # It has, but records of before the position still come.
    things.declare(allowance="3 minutes")
    things.append(
        things.change({**row, "id": 3}, tx_id="15", lsn="0/9", at=NOW - timedelta(minutes=50)), at=datetime.now(UTC)
    )
    run = things.test(passes=False)
    assert things.rows() == {"1": ("in_flight", "different", {"name": ("a", "b")})}
    assert "1 records of before the position came" in run["not_delivered_because"]
    # What came within the allowance is of later.
    things.declare(allowance="1 second")
    things.append(
        things.change({**row, "id": 3}, "UPDATE", tx_id="30", lsn="0/99", at=datetime.now(UTC)), at=datetime.now(UTC)
    )
    run = things.test(passes=False)
    assert run["is_delivered"] and things.rows() == {"1": ("confirmed", "different", {"name": ("a", "b")})}


@pytest.mark.matrix
def test_what_is_in_quarantine_makes_its_row_unprovable_and_one_without_a_key_all_that_differ(things: Things) -> None:
    rows = [{"id": id, "name": "a", "amount": "1"} for id in range(1, 5)]
    things.append(*(things.change(row, tx_id="10", lsn=f"0/{row['id']}") for row in rows))
    things.append(things.change({"id": 1, "name": "b", "amount": "1.001"}, "UPDATE", tx_id="11", lsn="0/70"))
    things.append(things.change({"id": 2, "name": "a", "amount": "1.001"}, "UPDATE", tx_id="11", lsn="0/80"))
    things.run()
    source = [(1, "b", "1"), (2, "a", "1"), (3, "b", "1"), (4, "a", "1")]
    things.snapshot(*source, kind="pg_snapshot", position="20:20:", taken_at=TAKEN)
    things.test(passes=False)
    assert things.rows() == {
        "1": ("unprovable", "different", {"name": ("a", "b")}),
        "3": ("confirmed", "different", {"name": ("a", "b")}),
    }
    things.append(things.change({"name": "c"}, "UPDATE", tx_id="12", lsn="0/90"))
    things.test(passes=False)
    assert {id: verdict for id, (verdict, *_) in things.rows().items()} == {"1": "unprovable", "3": "unprovable"}


@pytest.mark.matrix
def test_both_sides_empty_and_columns_of_two_types_prove_nothing(things: Things) -> None:
    things.append(
        things.change({"id": 1, "name": "a", "amount": "1"}), things.change({"id": 1}, "DELETE", lsn="0/2326351")
    )
    things.run()
    things.snapshot()
    assert things.test(passes=False)["unprovable"] == 1
    things.declare(allow_empty=True)
    things.test(passes=True)
    things.snapshot((1, "a", "1.5"), columns={**COLUMNS, "amount": "double"})
    things.test(passes=False)
    (reason,) = (
        things.spark.table(f"{things.schema}.reconcile_parity_differences")
        .select("reason")
        .distinct()
        .where("reason like 'column%'")
        .collect()
    )
    assert "column amount is decimal(12,2) in" in reason[0] and "cannot be compared without loss" in reason[0]


@pytest.mark.matrix
def test_tolerances_are_declared_by_column_and_counted(things: Things) -> None:
    columns = {**COLUMNS, "at": "timestamp", "code": "string", "ratio": "double", "zero": "double"}
    values = {"name": "a", "amount": "1.00", "at": "2026-01-01T00:00:00.5Z", "code": "Ab", "ratio": 0.1, "zero": 0}
    things.declare(columns)
    things.append(*(things.change({"id": id, **values}, lsn=f"0/{id}") for id in range(1, 8)))
    things.run()
    same = ("a", "1.00", "2026-01-01 00:00:00.5Z", "Ab", "0.1", "0")
    other = [
        (1, *same),
        (2, "a ", *same[1:]),
        (3, *same[:1], "1.04", *same[2:]),
        (4, *same[:2], "2026-01-01 00:00:00.9Z", *same[3:]),
        (5, *same[:3], "aB", *same[4:]),
        (6, *same[:4], "0.1000000001", "0"),
        (7, *same[:5], "-0.0"),
    ]
    things.snapshot(*other, columns=columns)
    things.test(passes=False)
    assert sorted(things.rows()) == ["2", "3", "4", "5", "6", "7"]
    tolerances = {
        "name": "trim",
        "amount": {"round": 1},
        "at": ["to_second"],
        "code": "case",
        "ratio": {"round": 3},
        "zero": "sign_of_zero",
    }
    things.declare(columns, tolerances=tolerances)
    run = things.test(passes=True)
    assert run["tolerated"] == dict.fromkeys(tolerances, 1)


@pytest.mark.matrix
def test_values_are_stored_only_if_that_is_said(things: Things) -> None:
    things.append(things.change({"id": 1, "name": "a secret", "amount": "1"}))
    things.run()
    things.snapshot((1, "another", "1"))
    things.declare(store_values=False)
    things.test(passes=False)
    assert things.rows() == {"1": ("confirmed", "different", {"name": (None, None)})}
