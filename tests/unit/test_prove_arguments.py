"""prove.py's command line: refused before Spark starts, and without what may be secret."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import prove
import pytest
from proven_models import proof, proven
from reconcile_jobs.process import session
from reconcile_jobs.process.errors import DataError, Fault, JobError, Undecided, UsageError
from reconcile_jobs.proofs.replay import Replayed, worst_of
from reconcile_jobs.proofs.verdicts import Difference, Proven

URL = ["--url", "jdbc:postgresql://host/shop"]
ASKED = [*URL, "--models", "orders"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "--url and --models are needed, or --replay"),
        (URL, "--url and --models are needed"),
        ([*ASKED, "--password", "hidden"], "User and password are not given on the command line"),
        (["--url", "jdbc:postgresql://u:hidden@host/shop", "--models", "a"], "--url holds a password"),
        (["--url", "jdbc:h2:mem:x", "--models", "a"], "--url is not of a supported database"),
        (["--url", "jdbc:cloudspanner://hidden", "--models", "a"], "Spanner has no JDBC URL here"),
        ([*ASKED, "--table", "orders"], "--table orders is not a model and its table"),
        ([*ASKED, "--table", "a=b.c", "--table", "a=b.d"], "--table names a twice"),
        ([*ASKED, "--allowance", "soon"], "soon is not a duration; write it as '10 minutes'"),
        ([*ASKED, "--max-rows", "0"], "0 is not a number of rows"),
        ([*ASKED, "--statement-timeout", "1d"], "1d is not an interval"),
        ([*ASKED, "--certificate", "proof.json"], "does not end in .html"),
        (["--url", f"{URL[1]}?loggerFile=hidden", "--models", "a"], "the property loggerFile"),
        ([*ASKED, "--replay", "proof.json"], "--replay goes without --url"),
        (["--replay", "nowhere.json"], "--replay nowhere.json cannot be read: No such file or directory"),
        ([*ASKED, "--secret=hidden"], "unrecognized arguments: --secret; see `prove.py --help`"),
    ],
)
def test_what_cannot_be_asked_for_is_a_sentence(words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session, "start", _started)
    monkeypatch.delenv("RECONCILE_JDBC_USER", raising=False)
    with pytest.raises(UsageError) as refused:
        prove.main(words, SimpleNamespace(err=None))  # type: ignore[arg-type]
    assert sentence in str(refused.value) and "hidden" not in str(refused.value)


def _started(name: str) -> Any:
    raise AssertionError("Spark was started")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("<html>", "it is not JSON"),
        ("[]", "is not the JSON of a certificate"),
        (json.dumps({"models": [], "format": 1}), "is not the JSON of a certificate"),
        (json.dumps({"position": {}, "format": 1}), "is not the JSON of a certificate"),
        (json.dumps({"models": [], "position": {}, "format": 2}), "has the format 2, and this version reads 1"),
    ],
)
def test_what_is_no_certificate_is_not_replayed(
    content: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(session, "start", _started)
    (tmp_path / "proof.json").write_text(content)
    with pytest.raises(UsageError, match=sentence):
        prove.main(["--replay", str(tmp_path / "proof.json")], SimpleNamespace(err=None))  # type: ignore[arg-type]


def test_a_certificate_says_how_to_run_the_command_again_without_properties_of_the_connection():
    words = [
        "--url", "jdbc:postgresql://host/shop?sslkey=hidden", "--select", "tag:shop", "orders", "--table",
        'orders=shop."Or ders"', "--properties", "hidden", "--certificate", "proof.html", "--values",
    ]  # fmt: skip
    assert prove._again(prove._parser().parse_args(words)) == [
        "prove.py", "--url", "jdbc:postgresql://host/shop", "--models", "tag:shop", "orders", "--table",
        'orders=shop."Or ders"', "--values", "--certificate", "proof.html",
    ]  # fmt: skip


def test_urls_lose_their_properties():
    assert prove.without_properties("jdbc:sqlserver://host:1433;databaseName=shop;trustStore=x") == (
        "jdbc:sqlserver://host:1433"
    )
    assert prove.without_properties("jdbc:oracle:thin:@//host/shop") == "jdbc:oracle:thin:@//host/shop"


def test_numbers_of_rows_and_lengths_of_time_are_read():
    def parse(words: list[str]) -> Any:
        return prove._parser().parse_args(words)

    given = parse([*ASKED, "--max-rows", "1", "--statement-timeout", "90s", "--allowance", "1 day"])
    assert (given.max_rows, given.statement_timeout, given.allowance) == (1, 90, "1 day")
    given = parse(ASKED)
    assert (given.max_rows, given.statement_timeout, given.allowance) == (100_000, 1800, None)
    for allowance in ("10 seconds", "2 minutes", "3 hours"):
        assert parse([*ASKED, "--allowance", allowance]).allowance == allowance
    for words in (["--allowance", "1 week"], ["--allowance", "-1 day"], ["--max-rows", "-1"]):
        with pytest.raises(UsageError, match=r"is not a|expected one argument"):
            parse([*ASKED, *words])


def test_dbt_is_told_where_the_project_is():
    words = ["--project-dir", "p", "--target", "t", "--profiles-dir", "q"]
    told = prove._options_of_dbt(prove._parser().parse_args(words))
    assert told == ["--project-dir", "p", "--profiles-dir", "q", "--target", "t"]
    assert prove._options_of_dbt(prove._parser().parse_args([])) == []


class Console:
    def __init__(self) -> None:
        self.err, self.lines, self.said, self.values = None, list[str](), list[str](), dict[str, Any]()
        self.write, self.say, self.result = self.lines.append, self.said.append, self.values.update


EQUAL = proven()
DIFFERENT = proven("lines", [Difference("1", "confirmed", "missing", None, [])])
NOT_PROVEN = proven("past")
NOT_PROVEN.reasons.append("it is odd")
IN_FLIGHT = proven("late")
IN_FLIGHT.counts["in_flight"] = 2


@pytest.mark.parametrize(
    ("results", "failure", "end"),
    [
        ([EQUAL], None, "1 model, position pg_snapshot 18642:18650: at 2026-11-24 10:02:11 UTC, EQUAL"),
        ([EQUAL, IN_FLIGHT], Fault, "2 models, .* UTC, in flight: late"),
        ([EQUAL, IN_FLIGHT, NOT_PROVEN], Undecided, "3 models, .* UTC, not proven: past"),
        ([DIFFERENT, EQUAL, IN_FLIGHT, NOT_PROVEN, DIFFERENT], DataError, "5 models, .* different: lines, lines"),
    ],
)  # fmt: skip
def test_the_worst_state_of_a_model_is_that_of_the_proof_and_decides_the_exit_code(
    results: list[Proven], failure: type[JobError] | None, end: str
):
    console, found = Console(), proof(results, {"own": "has no parity"})
    if failure is None:
        prove._end(found, None, console, 0.0)  # type: ignore[arg-type]
        assert console.lines == [f"{end}\n"]
    else:
        with pytest.raises(failure, match=rf"^{end}\.$") as ended:
            prove._end(found, Path("p.html"), console, 0.0)  # type: ignore[arg-type]
        assert type(ended.value) is failure and console.lines[0].startswith("p.html: ")
        assert console.lines[0].endswith(("NOT EQUAL\n", "NOT PROVEN\n", "IN FLIGHT\n"))
    assert console.said == ["own is not compared: has no parity"]
    states = ("equal", "in flight", "not proven", "different")
    assert console.values["models"] == {state: sum(one.state == state for one in results) for state in states}
    assert (console.values["state"], console.values["position"]) == (found.state, "pg_snapshot 18642:18650:")
    assert (console.values["bytes"], console.values["certificate"]) == (
        70_000 * len(results), "p.html" if failure else None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("states", "worst", "failure"),
    [
        (["same", "same"], "same", None),
        (["same", "not recomputed"], "not recomputed", Undecided),
        (["not recomputed", "different", "same"], "different", DataError),
    ],
)
def test_a_proof_again_ends_with_the_code_of_its_worst_model(
    states: list[str], worst: str, failure: type[JobError] | None, monkeypatch: pytest.MonkeyPatch
):
    again = [Replayed(f"m{place}", state, "why" if place else "") for place, state in enumerate(states)]
    monkeypatch.setattr(prove, "replayed", lambda start, project, path: again)
    console: Any = Console()
    try:
        prove.main(["--replay", "proof.json"], console)
        ended = None
    except JobError as problem:
        ended = type(problem)
    assert ended is failure
    assert console.lines == [f"m{place}   {state}{': why' if place else ''}\n" for place, state in enumerate(states)]
    assert console.values["state"] == worst == worst_of(states)
    named = ("same", "different", "not recomputed")
    assert console.values["models"] == {state: states.count(state) for state in named}
