"""The course of a proof: one model that fails leaves the others, rows in flight are waited for, and a proof again."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from proven_models import proof, proven
from reconcile_jobs.process.clock import Clock
from reconcile_jobs.process.errors import DataError, Fault, JobError, UsageError
from reconcile_jobs.proofs import proving, replay
from reconcile_jobs.proofs.certificate import document_of
from reconcile_jobs.proofs.comparison import Bucket
from reconcile_jobs.proofs.project_side import DbtProject, as_yaml
from reconcile_jobs.proofs.proving import Asked, Requests
from reconcile_jobs.proofs.replay import replayed
from reconcile_jobs.proofs.verdicts import Difference, Proven


class Project:
    """Answers by the model's name; what is an error is raised for all that were asked with it."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers, self.asked = answers, list[tuple[str, list[str]]]()

    def ask(self, question: str, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        names = [request["unique_id"].split(".")[-1] for request in requests]
        self.asked.append((question, names))
        for name in names:
            if isinstance(self.answers[name], JobError):
                raise self.answers[name]
        return [self.answers[name] for name in names]

    def models(self, selected: Sequence[str]) -> list[str]:
        return [f"model.shop.{name}" for name in selected]


class Stopped(Clock):
    """A clock that stands still but for what is waited for."""

    def __init__(self, now: str) -> None:
        self.time = proving.asked_moment("now", now)
        self.waited: list[float] = []

    def now(self) -> int:
        return self.time

    def wait(self, event: Event, seconds: float) -> bool:
        self.waited.append(seconds)
        self.time += int(seconds * 1e9)
        return event.is_set()


def of(results: list[Proven], **asked: Any) -> Requests:
    made = proof(results).requests
    return Requests(made.kind, made.cut, Asked(["x"], **asked))


def test_a_model_that_fails_leaves_the_others():
    results = [proven("a"), proven("b"), proven("c")]
    answers = {
        "a": {"complaints": [], "sql": "select a"},
        "b": DataError("b is broken."),
        "c": {"complaints": ["c has no position"]},
    }
    project = Project(answers)
    proving._ask_rows(project, of(results), results)
    assert project.asked == [("rows", ["a", "b", "c"]), ("rows", ["a"]), ("rows", ["b"]), ("rows", ["c"])]
    assert [result.reasons for result in results] == [[], ["b is broken."], ["c has no position"]]
    assert results[0].sides["sql"] == "select a"


def test_a_request_has_what_the_test_of_parity_declares():
    result = proven("a")
    request = of([result], values=True).of(result, more=1)
    assert request["allowance"] == "10 minutes" and of([result], allowance="1 hour").of(result)["allowance"] == "1 hour"
    assert request["position"] == {
        "kind": "pg_snapshot", "value": "18642:18650:", "taken_at": "2026-11-24 10:02:11.5+00",
    }  # fmt: skip
    assert (request["uncertainty"], request["key"], request["columns"]) == ("1 hour", ["a"], ["a"])
    assert (request["compared_to"], request["source_rows"]) == ("PostgreSQL s.a", result.plan.view("rows"))
    assert (request["store_values"], request["more"], request["tolerances"]) == (True, 1, {"a": [{"round": 2}]})
    json.dumps(request)


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Notes for which models verdicts were given, and leaves nothing in flight."""
    given: list[list[str]] = []

    def give(spark: Any, project: Any, requests: Any, results: Sequence[Proven], clock: Any) -> None:
        given.append([result.plan.name for result in results])
        for result in results:
            result.counts = {"confirmed": 1, "in_flight": 0}

    monkeypatch.setattr(proving, "_give_verdicts", give)
    return given


def in_flight(name: str, is_complete: bool = False) -> Proven:
    result = proven(name, delivered={"is_complete": is_complete, "reason": None})
    result.counts["in_flight"] = 2
    return result


def test_rows_in_flight_are_decided_when_the_allowance_has_passed(verdicts: list[list[str]]):
    late, close, decided = in_flight("late"), in_flight("close", is_complete=True), proven("decided")
    clock, said = Stopped("2026-11-24 10:05:11.5+00"), list[str]()
    project = Project({"late": {"complaints": [], "delivered": {"is_complete": True, "reason": None}}})
    results = [late, close, decided]
    proving._wait(None, project, of(results), results, said.append, clock, Event())  # type: ignore[arg-type]
    # Ten minutes after the position, and a second for the tables' own clock.
    assert clock.waited == [421.0] and "waiting until 10:12:11 UTC" in said[0] and said[0].startswith("2 rows differ")
    assert project.asked == [("rows", ["late"])] and verdicts == [["late"]]
    assert late.sides["delivered"]["is_complete"] is True, "what the ledger says now counts"
    assert late.state == "different" and close.state == "in flight" and late.sides["versions"] == {
        "model": 7, "source": None,
    }  # fmt: skip


def slow(name: str, allowance: str) -> Proven:
    result = in_flight(name)
    result.plan.model["allowance"] = allowance  # type: ignore[index]
    return result


def test_the_longest_allowance_is_waited_for_and_all_rows_in_flight_are_told(verdicts: list[list[str]]):
    results = [slow("a", "1 hour"), slow("b", "90 minutes"), slow("c", "10 seconds")]
    answer = {"complaints": [], "delivered": {"is_complete": True, "reason": None}}
    project = Project({"a": answer, "b": DataError("b is broken."), "c": answer})
    clock, said = Stopped("2026-11-24 10:02:11.5+00"), list[str]()
    proving._wait(None, project, of(results), results, said.append, clock, Event())  # type: ignore[arg-type]
    assert clock.waited == [90 * 60 + 1] and said[0].startswith("6 rows differ")
    assert verdicts == [["a", "c"]] and results[1].reasons == ["b is broken."]


def test_an_allowance_that_has_passed_is_waited_for_no_more_than_a_second(verdicts: list[list[str]]):
    late, clock = in_flight("late"), Stopped("2026-11-25 10:00:00+00")
    project = Project({"late": {"complaints": [], "delivered": {"is_complete": True, "reason": None}}})
    proving._wait(None, project, of([late]), [late], print, clock, Event())  # type: ignore[arg-type]
    assert clock.waited == [1.0] and verdicts == [["late"]]


def test_rows_in_flight_of_a_source_that_was_read_at_a_timestamp_are_not_waited_for(verdicts: list[list[str]]):
    """What was committed up to a timestamp of Spanner is in staging, or never comes."""
    late, clock = in_flight("late"), Stopped("2026-11-24 10:05:11+00")
    requests = Requests("read_timestamp", of([late]).cut, Asked(["x"]))
    proving._wait(None, Project({}), requests, [late], print, clock, Event())  # type: ignore[arg-type]
    assert clock.waited == [] and verdicts == []


def test_nothing_is_waited_for_where_nothing_may_still_come(verdicts: list[list[str]]):
    clock = Stopped("2026-11-24 10:05:11+00")
    results = [in_flight("close", is_complete=True), proven("decided")]
    proving._wait(None, Project({}), of(results), results, print, clock, Event())  # type: ignore[arg-type]
    assert clock.waited == [] and verdicts == []


def test_a_wait_that_is_stopped_says_so(verdicts: list[list[str]]):
    stop = Event()
    stop.set()
    late = in_flight("late")
    with pytest.raises(Fault, match="run the same command again"):
        proving._wait(None, Project({}), of([late]), [late], lambda text: None, Stopped("2026-11-24 10:05:11+00"), stop)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["plain", "caf\u00e9", "\U0001f600", "a\u2028b\x85c\ufeffd", "'\"\\ {{ x }}: #", "\x7f\x00"]
)
def test_dbt_reads_names_as_they_are(name: str):
    assert yaml.safe_load(as_yaml({"requests": [{"key": [name]}]})) == {"requests": [{"key": [name]}]}


def dbt_that_ends(monkeypatch: pytest.MonkeyPatch, done: Any, *events: tuple[str, str]) -> tuple[DbtProject, list[Any]]:
    """Return a project whose dbt ends so, after these events, and the words that dbt is given."""
    given: list[Any] = []

    def invoked(words: list[str], stop: Event, cancel: Any, heard: Any) -> Any:
        given.append(words)
        for name, text in events:
            heard(SimpleNamespace(info=SimpleNamespace(name=name), data=SimpleNamespace(msg=text, exc=text)))
        return done

    monkeypatch.setattr("reconcile_jobs.proofs.project_side.invoke", invoked)
    return DbtProject(["--target", "t"], io.StringIO()), given


def end(success: bool, result: Any = None, exception: Any = None) -> Any:
    return SimpleNamespace(success=success, result=result, exception=exception)


def test_dbt_says_which_models_are_selected(monkeypatch: pytest.MonkeyPatch):
    found = ['{"unique_id": "model.b"}', '{"unique_id": "model.a"}']
    project, given = dbt_that_ends(monkeypatch, end(True, found))
    assert project.models(["tag:shop", "more"]) == ["model.a", "model.b"]
    (words,) = given
    assert words[:3] == ["--quiet", "--no-use-colors", "list"] and words[-2:] == ["--target", "t"]
    assert words[words.index("--output-keys") + 1] == "unique_id" and words[-5:-2] == ["--select", "tag:shop", "more"]
    for done, said in (
        (end(True, []), "^No model is selected by x y; see `dbt list"),
        (end(False, None, "No such project."), r"^dbt refuses: No such project\.$"),
        (end(True, None, "odd"), r"^dbt refuses: odd\.$"),
        (end(False, found, "half"), r"^dbt refuses: half\.$"),
    ):
        project, _ = dbt_that_ends(monkeypatch, done)
        with pytest.raises(UsageError, match=said):
            project.models(["x", "y"])


def test_the_last_answer_of_the_macros_is_theirs_and_what_they_refuse_is_a_sentence(monkeypatch: pytest.MonkeyPatch):
    answers = [("JinjaLogDebug", "other"), ("JinjaLogDebug", 'reconcile_proof [{"a": 1}]'),
               ("JinjaLogDebug", 'reconcile_proof [{"a": 2}]'), ("Other", "reconcile_proof []")]  # fmt: skip
    project, _ = dbt_that_ends(monkeypatch, end(True), *answers)
    assert project.ask("rows", [{}]) == [{"a": 2}]
    for name in ("RunningOperationUncaughtError", "MainEncounteredError"):
        project, _ = dbt_that_ends(monkeypatch, end(False), (name, "The warehouse is away."), answers[0])
        with pytest.raises(DataError, match=r"^dbt refuses: The warehouse is away\.$"):
            project.ask("rows", [{}])
    refused = ("RunningOperationCaughtError", "Column x\n  is gone.\n\n> in macro answer_proof\n> called by macro y")
    for done, events, kind, said in (
        (end(False), [refused, answers[1]], DataError, r"^dbt refuses: Column x is gone\.$"),
        (end(True), answers[:1], DataError, r"^dbt refuses: the operation reconcile\.answer_proof failed\.$"),
        (end(False, None, "No profile."), [], UsageError, r"^dbt refuses: No profile\.$"),
    ):
        project, _ = dbt_that_ends(monkeypatch, done, *events)
        with pytest.raises(kind, match=said):
            project.ask("rows", [{}])
    project.stop.set()
    with pytest.raises(Fault, match="Stopped before the proof was complete"):
        project.ask("rows", [{}])


def test_what_is_written_down_of_a_proof_is_what_was_asked_of_the_macros():
    requests: list[Mapping[str, Any]] = []
    project: Any = SimpleNamespace(ask=lambda question, asked: requests.extend([{"question": question}, *asked]))
    lines = proven("lines", [Difference("1", "confirmed", "missing", None, [])])
    lines.reasons.append("it is odd")
    nothing = proven("none")
    nothing.sides = {}
    proving.record(project, proof([nothing]))
    assert requests == []
    proving.record(project, proof([proven("orders"), nothing, lines]))
    assert requests[0] == {"question": "records"} and len(requests) == 3
    wanted = ("unique_id", "verdict", "has_differences", "reasons", "seconds", "delivered")
    assert [tuple(request[name] for name in wanted) for request in requests[1:]] == [
        ("model.shop.orders", "match", False, [], 1.25, {"is_complete": True, "reason": None}),
        ("model.shop.lines", "confirmed", True, ["it is odd"], 1.25, {"is_complete": True, "reason": None}),
    ]
    counts = [{name: request["counts"][name] for name in ("compared", "unprovable")} for request in requests[1:]]
    assert counts == [{"compared": 12, "unprovable": 0}, {"compared": 14, "unprovable": 1}]


def asked_to_prove(models: list[dict[str, Any]], **asked: Any) -> None:
    """Begin a proof of models, of which nothing is read."""
    project: Any = Project({model["name"]: model for model in models})
    given = Asked([model["name"] for model in models], **asked)
    proving.prove(None, project, SimpleNamespace(database=None), given, print)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("objects", "complaints", "tables", "sentence"),
    [
        (["s.a"], ["it has no key", "it is a view"], {}, "No selected model can be compared: a: it has no key; it is"),
        (["s.a"], [], {"b": "s.b", "a": "s.a", "c": "s.c"}, "--table names b, c, which is no model that is compared"),
        ([], [], {}, "a reads no object, so its table is not known: name it, as in --table a=SCHEMA.TABLE"),
        (["s.a", "s.b"], [], {}, "a reads s.a, s.b, so its table is not known"),
    ],
)
def test_what_cannot_be_proven_is_refused_before_the_source_is_asked(
    objects: list[str], complaints: list[str], tables: dict[str, str], sentence: str
):
    model = {"name": "a", "objects": objects, "complaints": complaints}
    with pytest.raises(UsageError) as refused:
        asked_to_prove([model], tables=tables)
    assert str(refused.value).startswith(sentence)


def test_a_table_that_is_named_for_a_model_with_complaints_is_refused():
    models = [{"name": name, "objects": [f"s.{name}"], "complaints": why} for name, why in (("a", []), ("b", ["odd"]))]
    with pytest.raises(UsageError, match="--table names b, which is no model that is compared"):
        asked_to_prove(models, tables={"b": "s.b"})


def test_values_of_a_row_that_differs_are_kept_where_they_were_asked_for():
    row = SimpleNamespace(
        key="7", verdict="confirmed", difference="different", reason=None,
        columns=[SimpleNamespace(column="total", model="1", source=None)],
    )  # fmt: skip
    assert proving._difference(row, False).columns == [{"column": "total"}]
    assert proving._difference(row, True).columns == [{"column": "total", "model": "1", "source": None}]
    row.columns = None
    assert proving._difference(row, True) == Difference("7", "confirmed", "different", None, [])


def test_a_session_keeps_nothing_of_a_proof():
    dropped: list[str] = []
    spark: Any = SimpleNamespace(catalog=SimpleNamespace(dropGlobalTempView=dropped.append))
    plans = [proven("a").plan, proven("b").plan]
    proving.forget(spark, plans)
    assert dropped == [plan.view(kind) for plan in plans for kind in ("rows", "forms", "keys")]


# --- a proof again ----------------------------------------------------------------------------------------------------


class Side:
    """What the sums are now."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket

    def buckets(self, digits: int, within: Sequence[str]) -> dict[str, Bucket]:
        return {"000": self.bucket}


def again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, now: Bucket) -> tuple[str, str, Project]:
    monkeypatch.setattr(replay, "model_side", lambda spark, sql, fields, length: Side(now))
    monkeypatch.setattr(replay.session, "settings", lambda spark, values: contextlib.nullcontext())
    (tmp_path / "proof.json").write_text(json.dumps(document_of(proof([proven()]), "jdbc:x", ["prove.py"])))
    project = Project({"orders": answer})
    (result,) = replayed(lambda: None, project, tmp_path / "proof.json")  # type: ignore[arg-type,return-value]
    return result.state, result.reason, project


RECORDED = Bucket(12, 3, 2**70)
SAME: dict[str, Any] = {"complaints": [], "sql": "", "columns": [{"name": "orders", "type": "bigint"}]}


def test_the_same_sums_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    state, reason, project = again(tmp_path, monkeypatch, SAME, RECORDED)
    assert (state, reason, project.asked) == ("same", "", [("rows", ["orders"])])


def test_types_that_differ_in_case_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    said = {**SAME, "columns": [{"name": "orders", "type": "BIGINT"}]}
    assert again(tmp_path, monkeypatch, said, RECORDED)[0] == "same"


@pytest.mark.parametrize("lacks", ["staged", "versions", "sql"])
def test_a_model_whose_proof_did_not_come_to_its_rows_is_not_asked_for(
    lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(replay.session, "settings", lambda spark, values: contextlib.nullcontext())
    document = document_of(proof([proven()]), "jdbc:x", ["prove.py"])
    document["models"][0][lacks] = {"model": "", "source": "select 1"} if lacks == "sql" else None
    (tmp_path / "proof.json").write_text(json.dumps(document))
    project = Project({})
    (result,) = replayed(lambda: None, project, tmp_path / "proof.json")  # type: ignore[arg-type,return-value]
    assert result.line == "orders   not recomputed: the proof did not come to its rows" and project.asked == []


def test_a_proof_of_a_model_without_versions_says_itself_what_is_gone():
    gone = DataError("Cannot find snapshot with ID 7.")
    assert replay._reason(gone, None) == "Cannot find snapshot with ID 7."
    assert replay._reason(gone, 0).startswith("the base table's version 0 is not there any more")


@pytest.mark.parametrize("now", [Bucket(11, 3, 2**70), Bucket(12, 4, 2**70), Bucket(12, 3, 2**70 + 1), Bucket()])
def test_one_other_sum_is_different(now: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    state, reason, _ = again(tmp_path, monkeypatch, SAME, now)
    shown = f"{now.rows} rows with the sums {now.first}:{now.second}"
    assert (state, reason) == ("different", f"{shown}, recorded were 12 with 3:{2**70}")


GONE = (
    "the base table's version 7 is not there any more; VACUUM (Delta) or expire_snapshots (Iceberg) has deleted it, or "
    "files of it"
)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (DataError("The version is gone."), "The version is gone."),
        *(
            (DataError(f"dbt refuses: {said}."), GONE)
            for said in (
                "[DELTA_VERSION_NOT_FOUND] Cannot time travel Delta table to version 7. Available versions: [8, 9]",
                "Cannot time travel beyond delta.deletedFileRetentionDuration (0 HOURS) set on the table",
                "Spark failed with FileNotFoundException: File file:/x.parquet does not exist",
                "Spark failed with SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading",
                "Spark failed with IllegalArgumentException: Cannot find snapshot with ID 7",
                "Cannot find matching snapshot ID or reference name for version 7",
            )
        ),
        ({"complaints": ["the column x is gone"]}, "the column x is gone"),
        (
            {**SAME, "columns": [{"name": "orders", "type": "string"}]},
            "the column orders is string now, and was bigint",
        ),
    ],
)
def test_what_cannot_be_recomputed_says_why(answer: Any, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert again(tmp_path, monkeypatch, answer, RECORDED)[:2] == ("not recomputed", why)
