"""Which run has written a table last: a killed one is replayed, and refused if its batch is another one by now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from plain_dbt import INVOCATION, CompilerError
from recorder import Recorder
from refusals import Refusal
from shapes import MYSQL, ORACLE, STAGING, Life, Shape

OTHER = "11111111-1111-1111-1111-111111111111"
# When all batches of the recorder's staging table were appended.
APPENDED = 1_767_225_600_000_000
MODEL = "da2f7fd25744"
REBUILD = "rebuild the model with `dbt run --full-refresh --select orders`"
KILLED = (
    "a run of this model ended before it could write what it had applied, and the staging table was restored or created"
)
RESTORED = "the table was restored, and the staging table was restored or created"
OF_OTHER_BATCH = (
    f"demo.orders__base has rows of another batch 4 than {STAGING}: {KILLED} again since; {REBUILD}, when the staging "
    "table has all records again"
)
WAS_SET = (
    "demo.orders__base has rows of a run that ended before it could write what it had applied, and another run has "
    f"applied its batches since: the table was set to a version of that run; restore its newest version, or {REBUILD}"
)


def note(batch: int = 4, at: int | str = APPENDED, invocation: str = OTHER, model: str = MODEL) -> str:
    return f"reconcile {model} {batch} {at} {invocation}"


def commit(number: int, said: str | None, operation: str = "MERGE", **parameters: str) -> tuple[Any, ...]:
    return (number, operation, parameters, said)


def increment(*commits: tuple[Any, ...], rows: int = 0, accounted: str | None = None) -> Any:
    """Return the statements of a range 4 to 5, after 1 to 3. `rows`: the ledger's rows of the other invocation."""
    life = Life(Shape(MYSQL))
    life.statements("first run")
    life.warehouse.commits = list(commits)
    life.warehouse.answers["and invocation_id = '"] = {"rows": rows}
    if accounted:
        life.warehouse.properties["demo.orders__base"]["reconcile.accounted"] = accounted
    return life.statements("increment")


def place(statements: list[str], beginning: str) -> int:
    return next(number for number, sql in enumerate(statements) if sql.strip().startswith(beginning))


def test_the_commits_of_a_range_note_it_and_those_of_the_ledger_do_not() -> None:
    for sent, last, write in (
        (Life(Shape(MYSQL)).statements("first run"), 3, "create or replace table `demo`.`orders__base`"),
        (increment(commit(7, note(3, invocation=INVOCATION))), 5, "merge into `demo`.`orders__base`"),
    ):
        noted = f"= `{note(last, invocation=INVOCATION)}`"
        begin = place(sent, "set `spark.databricks.delta.commitInfo.userMetadata` ")
        end = place(sent, "reset `spark.databricks.delta.commitInfo.userMetadata`")
        assert sent[begin].endswith(noted)
        assert begin < place(sent, write) < end < place(sent, "insert into `demo`.`reconcile_ledger`")


def test_threads_that_share_a_session_keep_the_notes_of_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread begins while this one sends its note, and has not ended when this one has."""
    query, other = Recorder.query, note(7, model="ffffffffffff")

    def meanwhile(warehouse: Recorder, sql: str) -> Any:
        if "userMetadata` = " in sql:
            life.project.graph["reconcile_notes"]["delta"]["ffffffffffff"] = other
        return query(warehouse, sql)

    monkeypatch.setattr(Recorder, "query", meanwhile)
    life = Life(Shape(MYSQL))
    sent = [sql.split("= ")[-1] for sql in life.statements("first run") if "userMetadata" in sql]
    own = note(3, invocation=INVOCATION)
    assert sent == [f"`{own}`", f"`{own}, {other}`", f"`{other}`"]


def test_a_run_of_an_earlier_moment_notes_nothing() -> None:
    sent = Life(Shape(MYSQL, as_of={"batch": 2}, phases=("first run",))).statements("first run")
    assert not [sql for sql in sent if "userMetadata" in sql]


def test_the_commit_of_the_ledgers_last_row_is_asked_for_and_nothing_else() -> None:
    sent = increment(commit(7, note(3, invocation=INVOCATION)))
    assert [sql for sql in sent if sql.startswith("describe history")] == [
        "describe history `demo`.`orders__base` limit 1"
    ]
    assert not [sql for sql in sent if "and invocation_id = '" in sql or "reconcile.accounted" in sql]


@pytest.mark.parametrize(
    "commits",
    [
        [commit(7, None)],  # of an earlier version of the package
        [commit(7, "somebody's own words")],
        [commit(7, note(4, at=1, model="of another one"))],
        [commit(7, None, "RESTORE", timestamp="2026-11-21"), commit(6, note(4, at=1))],
        [commit(7, None, "RESTORE", version="3"), commit(6, note(4, at=1)), commit(3, None)],
        [commit(7, note(4, at=1), "SET TBLPROPERTIES")],  # the run died before it wrote a row
    ],
    ids=["no note", "other words", "another model", "restored to a time", "restored to before", "properties alone"],
)
def test_a_table_whose_last_commit_has_no_note_is_believed(commits: list[tuple[Any, ...]]) -> None:
    assert not [sql for sql in increment(*commits) if "reconcile.accounted" in sql]


@pytest.mark.parametrize("top", [[], [commit(9, None, "OPTIMIZE"), commit(8, None, "SET TBLPROPERTIES")]])
def test_a_run_that_was_killed_is_written_again_and_accounted_for(top: list[tuple[Any, ...]]) -> None:
    sent = increment(*top, commit(7, note()))
    accounted = place(sent, "alter table `demo`.`orders__base` set tblproperties (\n    'reconcile.accounted'")
    assert OTHER in sent[accounted]
    assert accounted < place(sent, "insert into `demo`.`reconcile_ledger`")


@pytest.mark.parametrize("how", ["the ledger", "the table"])
def test_a_run_of_which_there_is_an_account_is_not_written_again(how: str) -> None:
    sent = increment(commit(7, note(at=1)), rows=how == "the ledger", accounted=OTHER if how == "the table" else None)
    assert not [sql for sql in sent if "'reconcile.accounted' =" in sql]


def goes_on_after(*commits: tuple[Any, ...]) -> Callable[[], object]:
    """Return what runs a range after these commits, of runs that the ledger does not have."""
    return lambda: increment(*commits)


REFUSED = [
    # The ledger has its row, from before staging was restored and the batch was another one.
    Refusal(
        lambda: increment(
            commit(9, None, "RESTORE", version="7"),
            commit(8, note(3, invocation=INVOCATION)),
            commit(7, note(2, at=1)),
            rows=1,
        ),
        [OF_OTHER_BATCH.replace("batch 4", "batch 2").replace(KILLED, RESTORED)],
    ),
    *(
        Refusal(goes_on_after(*commits), [OF_OTHER_BATCH])
        for commits in (
            [commit(7, note(at=APPENDED - 1))],
            [commit(9, None, "OPTIMIZE"), commit(7, note(at="None"))],
            [commit(7, f"{note(model='of another one')}, {note(at=1)}")],
            # A full refresh that died, or another model, has a commit above it.
            [commit(8, note(invocation="of a refresh"), "SET TBLPROPERTIES"), commit(7, note(at=1))],
            [commit(8, note(model="of another one"), "ADD COLUMNS"), commit(7, note(at=1), "WRITE")],
            [commit(9, None, "RESTORE", version="7"), commit(8, note()), commit(7, note(at=APPENDED - 1))],
        )
    ),
    Refusal(
        goes_on_after(
            commit(9, None, "RESTORE", version="7"), commit(8, note(3, invocation=INVOCATION)), commit(7, note(3))
        ),
        [WAS_SET],
    ),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_table_with_rows_of_a_killed_run_that_is_not_written_again_is_refused(number: int) -> None:
    """Its batch is another one by now, or the table was set to it and another run has applied its batches."""
    REFUSED[number].check()


def test_two_runs_at_once_leave_a_commit_without_an_account_and_are_not_refused() -> None:
    assert increment(commit(7, note(3)))


ICEBERG = Shape(MYSQL, file_format="iceberg")
OF_LEDGER = (3, 0, note(3, invocation=INVOCATION), True)


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ([OF_LEDGER], None),
        ([(2, 3, None, True), OF_LEDGER], None),
        ([(2, 3, note(at=1, model="of another one"), True), OF_LEDGER], None),
        ([(4, 3, note(at=1), True), OF_LEDGER], "another batch"),
        ([(4, 3, f"{note(model='of another one')}, {note(at=1)}", True), OF_LEDGER], "another batch"),
        ([(1, 0, note(3), True), (3, 1, OF_LEDGER[2], False), (1, 0, note(3), True)], "was set to"),
        ([(1, 0, note(3), True)], None),
        ([(1, 0, note(3), True), (9, 0, OF_LEDGER[2], False)], None),
        ([], None),
    ],
    ids=["accounted", "its child", "another model", "another batch", "two models", "back", "at once", "gone", "none"],
)  # fmt: skip
def test_snapshots_of_iceberg_are_followed_from_the_present_one(history: list[Any], said: str | None) -> None:
    """`history`: {snapshot, parent, note, whether the present one follows from it}, as they became current."""
    life = Life(ICEBERG)
    sent = life.statements("first run")
    assert any(sql.startswith("set `spark.sql.iceberg.snapshot-property.reconcile` = `reconcile ") for sql in sent)
    life.warehouse.properties["demo.orders__base"]["current-snapshot-id"] = str(history[0][0] if history else 9)
    life.warehouse.commits = history
    life.warehouse.answers["and invocation_id = '"] = {"rows": 0}
    if said is None:
        assert life.statements("increment")
        return
    with pytest.raises(CompilerError, match=said):
        life.statements("increment")


def test_the_table_of_deletes_without_a_key_is_asked_too() -> None:
    life = Life(Shape(ORACLE, row_ids=True))
    life.warehouse.keyless_deletes = 1
    life.statements("first run")
    life.warehouse.commits = [commit(7, note(at=1))]
    life.warehouse.answers["and invocation_id = '"] = {"rows": 1}
    asked = [sql for sql in life.statements("increment") if sql.startswith("describe history")]
    assert [sql.split("`")[3] for sql in asked] == ["orders__base", "orders__row_deletes"]
