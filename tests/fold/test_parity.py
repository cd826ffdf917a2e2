"""What `reconcile.parity` says of a row, at a position and without one, and what it writes down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from datastream import READ_METHODS, Staged, event
from memory import Memory
from plain_dbt import Relation
from pyspark.sql import SparkSession
from spanner import backfill_record, cut, data_change_record, mod

NOW = datetime.now(UTC)
COLUMNS = {"id": "bigint", "name": "string", "amount": "decimal(12,2)"}
HOUR = timedelta(hours=1)


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Things:
    """A model of one table, its staging table, and snapshots of the source as the job would have taken them."""

    def __init__(
        self, memory: Memory, name: str, source: str = "postgresql", columns: Mapping[str, str] = COLUMNS
    ) -> None:
        self.memory, self.source, self.schema, self.lake = memory, source, f"parity_{name}", f"parity_{name}_lake"
        self.columns, self.batches = columns, 0
        self.project = memory.project(self.schema)
        self.project.source(self.lake, "changes")
        self.project.model(
            "things",
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            f"{{{{ reconcile.datastream_{source}(source('lake', 'changes'), 'shop.things') }}}}",
            columns,
        )

    def change(
        self,
        row: Mapping[str, Any],
        kind: str = "INSERT",
        at: datetime = NOW - 5 * HOUR,
        backfill: bool = False,
        **metadata: Any,
    ) -> str:
        """Return a record of a row; what is not said of it is NULL."""
        said = {name.lower() for name in row}
        row = {**row, **{name: None for name in self.columns if name.lower() not in said}}
        more = {"read_method": READ_METHODS[self.source][1], "read_timestamp": text(at)} if backfill else {}
        return event(self.source, row, kind, metadata=metadata, source_timestamp=text(at), **more)

    def append(self, *records: str, at: datetime = NOW - 4 * HOUR) -> None:
        """Append a batch, which came at that time."""
        self.batches += 1
        rows = [Staged(record, "shop.things", self.batches) for record in records]
        self.memory.stage(f"{self.lake}.changes", rows, at=f"timestamp'{text(at)}'")

    def snapshot(
        self, *rows: tuple[Any, ...], kind: str = "", position: str = "", taken_at: datetime | None = None,
        **types: str,
    ) -> None:  # fmt: skip
        """Let the source have these rows at that position, without one at none that is known; `types`: others."""
        properties = {
            "reconcile.snapshot": ("spanner" if kind == "read_timestamp" else "jdbc") if kind else "csv",
            "reconcile.snapshot.position_kind": kind,
            "reconcile.snapshot.position": position,
            "reconcile.snapshot.taken_at": text(taken_at) if taken_at else "",
        }
        columns = {**self.columns, **types}
        frame = self.memory.spark.createDataFrame(list(rows), ", ".join(f"`{name}` string" for name in columns))
        casts = {"variant": "parse_json(`{0}`) as `{0}`"}
        typed = frame.selectExpr(
            *(casts.get(t, f"cast(`{{0}}` as {t}) as `{{0}}`").format(n) for n, t in columns.items())
        )
        self.memory.keep(f"{self.lake}.things_source", typed, properties)

    def run(self) -> None:
        self.project.run("things")

    def test(self, passes: bool | None = None, **arguments: Any) -> dict[str, Any]:
        """Run the test; return what was written down of the run."""
        snapshot = Relation(self.lake, "things_source")
        said = {"compare_to": snapshot, "key": "id", "store_values": True, **arguments}
        failing = self.project.failing("parity", "things", **said)
        run = self.runs()[-1]
        assert (failing == []) == (run["verdict"] == "match")
        assert passes in (None, failing == [])
        return run

    def runs(self) -> list[dict[str, Any]]:
        rows = self.memory.table(f"{self.schema}.reconcile_parity").orderBy("recorded_at").collect()
        return [row.asDict() for row in rows]

    def rows(self) -> dict[str, tuple[str, str | None, Any]]:
        """Return {id: (verdict, difference, {column: (model, source)})} of the last run."""
        return {
            json.loads(row.key)["id"]: (
                row.verdict,
                row.difference,
                {c.column: (c.model, c.source) for c in row.columns} if row.columns else None,
            )
            for row in self.differences()
        }

    def verdicts(self) -> dict[str, str]:
        return {id: verdict for id, (verdict, *_) in self.rows().items()}

    def differences(self) -> list[Any]:
        last = self.runs()[-1]["run_id"]
        return self.memory.table(f"{self.schema}.reconcile_parity_differences").where(f"run_id = '{last}'").collect()


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


# --- as both sides are -----------------------------------------------------------------------------------------------

PLAIN = [(1, "one", "1.00"), (2, "two", "2.00"), (3, "three", "3.00"), (4, None, None)]


@pytest.fixture(scope="module")
def plain(memory: Memory) -> Things:
    things = Things(memory, "plain")
    things.append(*(things.change(dict(zip(COLUMNS, row, strict=True)), lsn=f"0/{row[0]}") for row in PLAIN))
    things.run()
    return things


def test_without_a_position_both_sides_are_compared_as_they_are(plain: Things) -> None:
    plain.snapshot(*PLAIN)
    run = plain.test(passes=True)
    assert (run["compared"], run["matched"], run["position"]) == (4, 4, None)
    assert run["model_digest"] == run["source_digest"] != "0"
    plain.snapshot((1, "one", "1.00"), (2, "two ", "2.01"), (4, "", None), (5, "five", "5.00"))
    plain.memory.noted = []
    run = plain.test(passes=False)
    # Whoever sees the run sees its rows.
    written = [sql.split("`")[3] for _, sql in plain.memory.noted if sql.startswith("insert into")]
    assert written == ["reconcile_parity_differences", "reconcile_parity"]
    plain.memory.noted = None
    assert plain.rows() == {
        "2": ("confirmed", "different", {"name": ("two", "two "), "amount": ("2.00", "2.01")}),
        "3": ("confirmed", "unexpected", None),
        "4": ("confirmed", "different", {"name": (None, "")}),
        "5": ("confirmed", "missing", None),
    }
    assert [run[n] for n in ("matched", "confirmed", "missing", "unexpected", "different")] == [1, 4, 1, 1, 2]
    said = "1 of 5 rows match, 4 confirmed; rows that differ, by column: 2 in name, 1 in amount"
    assert plain.project.logged[-1].strip().endswith(said)
    assert run["model_digest"] != run["source_digest"]


def test_a_key_of_null_is_a_key_on_both_sides(plain: Things) -> None:
    plain.snapshot(*PLAIN)
    assert plain.test(passes=True, key="name")["matched"] == 4
    plain.snapshot(*PLAIN[:3], (5, None, None))
    run = plain.test(passes=False, key=["name", "amount"])
    assert (run["different"], run["missing"], run["unexpected"]) == (1, 0, 0)


def test_values_are_stored_only_if_that_is_said(plain: Things) -> None:
    plain.snapshot((1, "a secret", "1.00"), *PLAIN[1:])
    plain.test(passes=False, store_values=False)
    assert plain.rows() == {"1": ("confirmed", "different", {"name": (None, None)})}


def test_the_state_of_a_model_has_the_worst_verdict_of_the_last_comparison_with_each_relation(memory: Memory) -> None:
    things = Things(memory, "state")
    things.append(things.change({"id": 1, "name": "a", "amount": "1"}))
    things.run()
    source, old = f"{things.lake}.things_source", f"{things.lake}.things_old"

    def state() -> tuple[dict[str, Any], Any]:
        things.project.run("reconcile_status", "reconcile_models")
        said = [row for row in memory.rows(f"{things.schema}.reconcile_status") if row.kind == "parity"]
        (model,) = memory.rows(f"{things.schema}.reconcile_models")
        return {row.detail: (row.records, row.state) for row in said}, model

    things.snapshot((1, "a", "1"))
    things.test(passes=True)
    things.snapshot((1, "b", "1"), (2, "b", "2"))
    things.test(passes=False)
    said, model = state()
    assert said == {f"confirmed, against {source}": (2, "wrong")}
    assert (model.state, model.parity_verdict) == ("wrong", "confirmed")
    # What matches now matched not at first; with another relation it was compared last of all.
    memory.keep(old, memory.table(source), {"reconcile.snapshot": "csv"})
    things.snapshot((1, "a", "1"))
    things.test(passes=True)
    said, model = state()
    assert said == {f"match, against {source}": (0, None)}
    assert (model.state, model.parity_verdict) == ("right", "match")
    things.test(passes=False, compare_to=Relation(things.lake, "things_old"))
    said, model = state()
    assert said == {f"match, against {source}": (0, None), f"confirmed, against {old}": (2, "wrong")}
    assert (model.state, model.parity_verdict) == ("wrong", "confirmed")
    assert model.compared_at == things.runs()[-1]["recorded_at"]


def test_columns_of_two_types_prove_nothing(plain: Things) -> None:
    plain.snapshot(*PLAIN, amount="double")
    assert plain.test(passes=False)["unprovable"] == 1
    (row,) = plain.differences()
    assert row.key is None
    assert row.reason == (
        f"column amount is decimal(12,2) in {plain.schema}.things and double in {plain.lake}.things_source, which "
        "cannot be compared without loss; give both the same type"
    )


def test_both_sides_empty_prove_nothing_unless_that_is_how_it_is(memory: Memory) -> None:
    things = Things(memory, "empty")
    things.append(things.change({"id": 1, "name": "a"}), things.change({"id": 1}, "DELETE", lsn="0/2326351"))
    things.run()
    things.snapshot()
    assert things.test(passes=False)["unprovable"] == 1
    assert "both sides are empty" in things.differences()[0].reason
    things.test(passes=True, allow_empty=True)


def test_tolerances_are_declared_by_column_and_counted(memory: Memory) -> None:
    columns = {**COLUMNS, "at": "timestamp", "Code": "string", "ratio": "double", "zero": "double"}
    values = {"name": "a", "amount": "1.00", "at": "2026-01-01T00:00:00.5Z", "code": "Ab", "ratio": 0.1, "zero": 0}
    things = Things(memory, "tolerances", columns=columns)
    things.append(*(things.change({"id": id, **values}, lsn=f"0/{id}") for id in range(1, 14)))
    things.run()
    same = ("a", "1.00", "2026-01-01 00:00:00.5Z", "Ab", "0.1", "0")
    # What a tolerance lets pass, and what is beyond it.
    things.snapshot(
        (1, *same),
        (2, "a ", *same[1:]),
        (3, *same[:1], "1.04", *same[2:]),
        (4, *same[:2], "2026-01-01 00:00:00.9Z", *same[3:]),
        (5, *same[:3], "aB", *same[4:]),
        (6, *same[:4], "0.1000000001", "0"),
        (7, *same[:5], "-0.0"),
        (8, "A", *same[1:]),
        (9, *same[:1], "1.05", *same[2:]),
        (10, *same[:2], "2026-01-01 00:00:01.0Z", *same[3:]),
        (11, *same[:3], "Ab ", *same[4:]),
        (12, *same[:4], "0.101", "0"),
        (13, *same[:5], "1e-300"),
    )
    things.test(passes=False)
    assert sorted(things.rows(), key=int) == [str(id) for id in range(2, 14)]
    tolerances = {
        "name": "trim",
        "amount": {"round": 1},
        "at": ["to_second"],
        "Code": "case",
        "ratio": {"round": 3},
        "zero": "sign_of_zero",
    }
    run = things.test(passes=False, tolerances=tolerances)
    assert sorted(things.rows(), key=int) == [str(id) for id in range(8, 14)]
    assert run["tolerated"] == dict.fromkeys(tolerances, 1)


# --- at a position ----------------------------------------------------------------------------------------------------

TAKEN = NOW - 3 * HOUR


def test_what_a_snapshot_of_postgresql_does_not_see_is_left_out_and_what_is_merged_later_does_no_harm(
    memory: Memory,
) -> None:
    """Transaction 12 was open; 14 came later. Neither counts, wherever its records are."""
    things = Things(memory, "snapshot", columns={**COLUMNS, "doc": "variant"})
    doc, same = {"b": [1.5, None], "a": "é"}, '{"a": "é", "b": [1.50, null]}'
    early, late = TAKEN - timedelta(minutes=9), TAKEN + timedelta(minutes=9)
    things.append(
        *(
            things.change({"id": i, "name": "a", "amount": "1", "doc": doc}, tx_id="10", lsn=f"0/{i}", at=early)
            for i in range(1, 7)
        ),
        things.change({"id": 1, "name": "open", "amount": "1", "doc": [1]}, "UPDATE", tx_id="12", lsn="0/20", at=late),
        # By the clock of the appending job, which may be an hour behind the source's.
        at=TAKEN - timedelta(minutes=50),
    )
    things.run()
    things.append(
        things.change({"id": 2, "name": "seen", "amount": "1", "doc": doc}, "UPDATE", tx_id="13", lsn="0/30", at=early),
        things.change({"id": 3, "name": "later", "amount": "1", "doc": doc}, "UPDATE", tx_id="14", lsn="0/40", at=late),
        things.change({"id": 4, "name": "a", "amount": "1", "doc": doc}, "DELETE", tx_id="14", lsn="0/41", at=late),
        things.change({"id": 9, "name": "new", "amount": "1", "doc": doc}, tx_id="14", lsn="0/42", at=late),
        at=late,
    )
    rows = [
        (1, "a", "1", same),
        (2, "seen", "1", same),
        (3, "a", "1", same),
        (4, "a", "1", same),
        (5, "a", "1", same),
        (6, "a", "1", same),
    ]
    things.snapshot(*rows, kind="pg_snapshot", position="12:14:12", taken_at=TAKEN)
    run = things.test(passes=True)
    assert (run["compared"], run["matched"], run["is_delivered"]) == (6, 6, True)
    assert (run["position_kind"], run["position"]) == ("pg_snapshot", "12:14:12")
    things.run()
    # And a row that differs is found, a quiet one in the base table as well as one that was folded.
    wrong = [
        (1, "b", "1", same),
        (2, "seen", "1", '{"b": [1.5], "a": "é"}'),
        (3, "later", "1", same),
        (4, "a", "1", same),
        (5, "b", "1", same),
        (7, "a", "1", same),
    ]
    things.snapshot(*wrong, kind="pg_snapshot", position="12:14:12", taken_at=TAKEN)
    run = things.test(passes=False)
    assert (run["compared"], run["matched"], run["is_delivered"]) == (7, 1, True)
    assert things.rows() == {
        "1": ("confirmed", "different", {"name": ("a", "b")}),
        "2": ("confirmed", "different", {"doc": ('{"a":"é","b":[1.5,null]}', '{"a":"é","b":[1.5]}')}),
        "3": ("confirmed", "different", {"name": ("a", "later")}),
        "5": ("confirmed", "different", {"name": ("a", "b")}),
        "6": ("confirmed", "unexpected", None),
        "7": ("confirmed", "missing", None),
    }


# What each source's changes before the position, at it and after it have; `position` is what the job reads there.
POSITIONS = {
    "oracle": ("scn", "1000", [{"scn": 90}, {"scn": 900}, {"scn": 10000}]),
    "mysql": ("binlog", "mysql-bin.1000000:500", [{"log_file": "mysql-bin.999999", "log_position": 900},
                                                  {"log_file": "mysql-bin.1000000", "log_position": 500},
                                                  {"log_file": "mysql-bin.1000000", "log_position": 1000}]),
    "sqlserver": (
        *("lsn", "0x0000000A000000200003"),
        [{"lsn": "00000009:000000ff:0001"}, {"lsn": "0000000a:00000100:0001"}, {"lsn": "0000000a:00000100:0002"}],
    ),
}  # fmt: skip


# What the source has there; of these 4, 7, 8 and 24 are none of the model's versions.
THERE = {
    1: "old", 2: "old", 3: "new", 4: "neither", 5: "old", 7: "other", 8: "other", 9: "old", 21: "new", 24: "late",
}  # fmt: skip


class Uncertain:
    """Rows of which some changed when it is uncertain which side of the position that is on, compared once."""

    def __init__(self, memory: Memory, source: str) -> None:
        self.things = things = Things(memory, f"uncertain_{source}", source, {**COLUMNS, "sel ect": "string"})
        self.kind, self.position, (before, there, behind) = POSITIONS[source]
        self.last = before | behind
        long_ago, then, later = TAKEN - 2 * HOUR, TAKEN - HOUR / 6, TAKEN + 2 * HOUR

        def change(id: int, name: str | None, place: Mapping[str, Any], at: datetime, how: str = "UPDATE") -> str:
            return things.change({"id": id, "name": name, "amount": 1}, how, at=at, **place)

        things.append(*(change(id, "old", before, long_ago, "INSERT") for id in range(1, 10)))
        things.append(
            *(change(id, "new", there, then) for id in (2, 3, 4)),
            *(change(id, None, there, then, "DELETE") for id in (5, 6)),
            *(change(id, "new", there, then, "INSERT") for id in (21, 22)),
            *(change(id, "newest", behind, later) for id in (1, 2, 7)),
            change(23, "newest", behind, later, "INSERT"),
            things.change({"id": 24, "name": "read later", "amount": 1}, at=later, backfill=True),
            at=NOW - HOUR / 2,
        )
        things.run()
        self.snapshot(THERE)
        self.first = things.test(passes=False, recheck=2)
        self.found = things.verdicts()

    def snapshot(self, there: Mapping[int, str], position: str = "", taken_at: datetime = TAKEN) -> None:
        self.things.snapshot(
            *((id, name, "1", None) for id, name in there.items()),
            kind=self.kind, position=position or self.position, taken_at=taken_at,
        )  # fmt: skip

    def behind_all(self) -> str:
        """Return a position later than that of every change, as the job would read it."""
        if self.kind == "scn":
            return str(self.last["scn"] + 1)
        if self.kind == "binlog":
            return f"{self.last['log_file']}:{self.last['log_position'] + 1}"
        return "0x" + "".join(field[-8:] for field in self.last["lsn"].split(":")).upper()


@pytest.fixture(scope="module")
def uncertain(memory: Memory) -> Callable[[str], Uncertain]:
    made: dict[str, Uncertain] = {}
    return lambda source: made.get(source) or made.setdefault(source, Uncertain(memory, source))


@pytest.mark.parametrize("source", POSITIONS)
def test_a_row_that_changed_when_it_is_uncertain_matches_any_of_its_versions(
    uncertain: Callable[[str], Uncertain], source: str
) -> None:
    run, found = uncertain(source).first, uncertain(source).found
    assert found == {"4": "in_flight", "7": "confirmed", "8": "confirmed", "24": "in_flight"}
    assert run["verdict"] == "confirmed" and run["matched"] == 7
    assert (run["position_kind"], run["position"]) == POSITIONS[source][:2]
    assert (run["uncertain_from"], run["uncertain_to"]) != (None, None)


@pytest.mark.parametrize(
    "source", [source if source == "oracle" else pytest.param(source, marks=pytest.mark.soak) for source in POSITIONS]
)
def test_rows_in_flight_are_compared_again_as_often_as_declared_and_then_all_rows(
    uncertain: Callable[[str], Uncertain], source: str
) -> None:
    rows = uncertain(source)
    things = rows.things
    # What is confirmed is compared again with all other rows; of what is in flight alone only that.
    rows.snapshot(THERE | {7: "old", 8: "old"})
    run = things.test(passes=False, recheck=2)
    assert (run["verdict"], run["compared"], run["rechecks"]) == ("in_flight", 11, 0)
    assert things.verdicts() == {"4": "in_flight", "24": "in_flight"}
    run = things.test(passes=False, recheck=2)
    assert (run["verdict"], run["compared"], run["rechecks"]) == ("in_flight", 2, 1)
    # As often as declared, and then all rows.
    run = things.test(passes=False, recheck=1)
    assert (run["verdict"], run["compared"], run["rechecks"]) == ("in_flight", 11, 0)
    # At a later position both are quiet; a row that was not in flight is not looked at.
    rows.snapshot({4: "new", 24: "read later", 999: "not in scope"}, rows.behind_all(), NOW - HOUR / 5)
    run = things.test(passes=True, recheck=2, uncertainty="1 second")
    assert (run["compared"], run["matched"], run["rechecks"]) == (2, 2, 1)
    # Nothing is in flight any more: all rows are compared.
    run = things.test(passes=False, recheck=2, uncertainty="1 second")
    assert (run["rechecks"], run["missing"]) == (0, 1)


def test_nothing_is_confirmed_before_everything_up_to_the_position_was_delivered(memory: Memory) -> None:
    things = Things(memory, "delivered")
    row = {"id": 1, "name": "a", "amount": "1"}
    things.append(things.change(row, tx_id="10"), things.change({**row, "id": 2}, tx_id="10"))
    things.run()
    # Less than the allowance has passed.
    now = datetime.now(UTC)
    rows = [(1, "b", "1"), (2, "a", "1"), (3, "a", "1")]
    things.snapshot(*rows, kind="pg_snapshot", position="20:20:", taken_at=now - timedelta(minutes=15))
    run = things.test(passes=False, allowance="1 hour")
    assert things.rows() == {"1": ("in_flight", "different", {"name": ("a", "b")}), "3": ("in_flight", "missing", None)}
    assert not run["is_delivered"] and "the allowance of 1 hour has passed" in run["not_delivered_because"]
    # It has, but records of before the position still come.
    things.append(
        things.change({**row, "id": 3}, tx_id="15", lsn="0/9", at=NOW - timedelta(minutes=50)),
        # Nobody knows when that was.
        event("postgresql", {**row, "id": 2}, "UPDATE", metadata={"tx_id": "15"}, without=["source_timestamp"]),
        at=now,
    )
    run = things.test(passes=False)
    assert things.rows() == {"1": ("in_flight", "different", {"name": ("a", "b")})}
    assert "2 records from before the position arrived" in run["not_delivered_because"]
    # What came within the allowance is of later.
    things.append(
        things.change({**row, "id": 3}, "UPDATE", tx_id="30", lsn="0/99", at=datetime.now(UTC)),
        at=datetime.now(UTC) + HOUR,
    )
    run = things.test(passes=False, allowance="0 seconds")
    assert run["is_delivered"] and things.rows() == {"1": ("confirmed", "different", {"name": ("a", "b")})}


def test_rows_in_flight_that_are_gone_on_both_sides_match(memory: Memory) -> None:
    things = Things(memory, "gone")
    things.append(things.change({"id": 1, "name": "a", "amount": "1"}, tx_id="10"))
    things.run()
    there = {"kind": "pg_snapshot", "position": "20:20:", "taken_at": datetime.now(UTC) - timedelta(minutes=15)}
    things.snapshot((1, "a", "1"), (2, "b", "2"), **there)
    assert things.test(passes=False, allowance="1 hour", recheck=1)["verdict"] == "in_flight"
    assert things.verdicts() == {"2": "in_flight"}
    things.snapshot((1, "a", "1"), **there)
    run = things.test(passes=True, allowance="1 hour", recheck=1)
    assert (run["compared"], run["rechecks"]) == (0, 1)


def test_an_insert_takes_no_part_whose_undoing_is_not_merged_yet(memory: Memory) -> None:
    things = Things(memory, "undone", "oracle")
    row, failed = {"id": 1, "name": "a", "amount": "1"}, {"tx_id": "t", "row_id": "b"}
    things.append(things.change(row, scn=10, row_id="a"))
    things.append(things.change({**row, "name": "failed"}, scn=20, **failed))
    things.run()
    things.append(things.change({}, "DELETE", scn=21, **failed))
    things.snapshot((1, "a", "1"), kind="scn", position="1000", taken_at=TAKEN)
    for _ in range(2):
        run = things.test(passes=True)
        assert (run["compared"], run["matched"]) == (1, 1)
        things.run()


def run_of_spanner(
    memory: Memory, name: str, staged: list[tuple[str, str]], columns: Mapping[str, str], position: str, there: str
) -> Any:
    """Build a model of one batch of records and their objects; compare it with a snapshot, the rows of `there`."""
    lake = f"{name}_lake"
    memory.stage(f"{lake}.changes", [Staged(record, object_, 1, source="spanner") for record, object_ in staged])
    project = memory.project(name)
    project.source(lake, "changes")
    call = "reconcile.spanner_change_stream(source('lake', 'changes'), object='Things')"
    config = "config(materialized='current_state', unique_key='id')"
    project.model("things", f"{{{{ {config} }}}}\n{{{{ {call} }}}}", columns)
    project.run("things")
    properties = {
        "reconcile.snapshot": "spanner",
        "reconcile.snapshot.position_kind": "read_timestamp",
        "reconcile.snapshot.position": position,
    }
    memory.keep(f"{lake}.things_source", memory.spark.sql(there), properties)
    project.failing("parity", "things", compare_to=Relation(lake, "things_source"), key="id")
    (run,) = memory.rows(f"{name}.reconcile_parity")
    return run


@pytest.mark.parametrize(("later", "verdict"), [(-1, "confirmed"), (0, "confirmed"), (1, "in_flight")])
def test_of_spanner_all_is_delivered_up_to_the_last_nanosecond_of_a_cut(
    memory: Memory, later: int, verdict: str
) -> None:
    """A row that staging does not have is missing; at a later position it may still come."""
    second = f"{NOW - HOUR:%Y-%m-%dT%H:%M:%S}"
    record = data_change_record([mod({"id": "1"}, {"name": "a"})], commit_timestamp=f"{second}.000000001Z")
    staged = [(record, "Things"), (cut(f"{second}.123456789Z", f"{second}Z"), "#cut")]
    there = "select 1L as id, 'a' as name union all select 2L, 'b'"
    columns, position = {"id": "bigint", "name": "string"}, f"{second}.{123456789 + later}Z"
    run = run_of_spanner(memory, f"cut_{later + 1}", staged, columns, position, there)
    assert (run.verdict, run.matched, run.compared) == (verdict, 1, 2)
    assert run.is_delivered == (later <= 0)


def test_of_spanner_a_backfill_row_that_was_read_after_the_position_is_a_version_of_its_row(memory: Memory) -> None:
    """2 had another name at the position; of 3 and 4 an update told the name alone; 6 came later."""
    before, position, read_at = (text(NOW - hours * HOUR) for hours in (3, 2, 1))
    rows = [
        ({"id": str(id_)}, {"name": name, "size": str(id_)})
        for id_, name in ((1, "a"), (2, "b"), (3, "c"), (5, "e"), (6, "f"))
    ]
    names = [mod({"id": id_}, {"name": name}) for id_, name in (("3", "c"), ("4", "d"))]
    staged = [
        (data_change_record([mod({"id": "5"}, {"name": "e", "size": "5"})], commit_timestamp=before), "Things"),
        (data_change_record(names, "UPDATE", commit_timestamp=before), "Things"),
        (backfill_record(rows, read_at), "Things"),
        (cut(read_at, before), "#cut"),
    ]
    there = (
        "select id, name, id as size from values (1L, 'a'), (2L, 'was'), (3L, 'c'), (4L, 'd'), (5L, 'e') as t(id, name)"
    )
    columns = {"id": "bigint", "name": "string", "size": "bigint"}
    run = run_of_spanner(memory, "backfill_of_spanner", staged, columns, position, there)
    assert (run.compared, run.matched, run.confirmed, run.is_delivered) == (5, 3, 0, True)
    differences = memory.rows("backfill_of_spanner.reconcile_parity_differences")
    assert {row.key: (row.verdict, row.difference) for row in differences} == {
        '{"id":"2"}': ("in_flight", "missing"),
        '{"id":"4"}': ("unprovable", "missing"),
    }


def test_what_is_in_quarantine_makes_its_row_unprovable_and_one_without_a_key_all_that_differ(memory: Memory) -> None:
    things = Things(memory, "quarantine")
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
    assert things.verdicts() == {"1": "unprovable", "3": "unprovable"}
