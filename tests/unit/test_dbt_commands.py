"""A dbt command in a job: what Spark refuses is one sentence, and a job that is asked to stop ends its command."""

from contextlib import nullcontext
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
import run_dbt
from dbt.adapters.spark import session
from dbt_common.exceptions import DbtRuntimeError
from reconcile_jobs.process import dbt_commands
from reconcile_jobs.process.dbt_commands import invoke, sentence_of
from reconcile_jobs.process.errors import DataError, Fault, UsageError

CONFLICT = (
    "[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict detected. A concurrent MERGE added data.\nat io.delta"
)


def java(*chain: tuple[str, str]) -> Exception:
    """Return a failure as py4j has it: classes and messages, the outermost first."""
    beneath: Any = None
    for kind, message in reversed(chain):

        def of(kind: str = kind, message: str = message, cause: Any = beneath) -> Any:
            return SimpleNamespace(
                getClass=lambda: SimpleNamespace(getName=lambda: kind),
                getMessage=lambda: message,
                getCause=lambda: cause,
            )

        beneath = of()
    problem = RuntimeError("An error occurred while calling o1.sql.\n" + "\tat org.apache.spark\n" * 300)
    problem.java_exception = beneath  # type: ignore[attr-defined]
    return problem


@pytest.mark.parametrize(
    ("chain", "sentence"),
    [
        (
            [("io.delta.exceptions.ConcurrentAppendException", CONFLICT)],
            "Another run changed the same table at the same moment (ConcurrentAppendException), and this statement "
            "wrote nothing: let the other run end, and run the same command again.",
        ),
        (
            [("org.apache.iceberg.exceptions.ValidationException", "Found conflicting files that can contain x")],
            "Another run changed the same table at the same moment (conflicting files), and this statement wrote "
            "nothing: let the other run end, and run the same command again.",
        ),
        (
            [
                ("org.apache.spark.SparkException", "Job aborted."),
                ("java.io.IOException", "No space left on device"),
            ],
            "The disk is full; what was committed stays: free some space, and run the same command again.",
        ),
        (
            [("org.apache.spark.SparkException", "Job 7 cancelled as part of cancellation of all jobs")],
            "The job was asked to stop, and this statement wrote nothing: run the same command again.",
        ),
        (
            [
                ("org.apache.spark.SparkException", "Job aborted due to stage failure"),
                ("org.apache.spark.SparkRuntimeException", "[USER_RAISED_EXCEPTION] Batch 7 is gone. SQLSTATE: P0001"),
            ],
            "Batch 7 is gone",
        ),
        (
            [("org.apache.spark.SparkException", "Job aborted."), ("java.lang.Odd", "It broke.\nat java")],
            "Spark failed with Odd: It broke; what was committed stays, and the same command continues after it.",
        ),
    ],
)
def test_what_a_statement_failed_of_is_one_sentence(chain: list[tuple[str, str]], sentence: str) -> None:
    assert sentence_of(java(*chain)) == sentence


def test_a_table_that_two_runs_make_at_once_is_one_sentence() -> None:
    said = "[DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION] Cannot create table ('`shop`.`orders`')."
    told = sentence_of(java(("org.apache.spark.sql.delta.DeltaAnalysisException", said)))
    assert told is not None and told.startswith("Another run made the same table at the same moment, or files of an")


def test_of_wrong_sql_sparks_own_text_stays_since_it_says_where() -> None:
    problem = DbtRuntimeError("[UNRESOLVED_COLUMN] ...")
    problem.__cause__ = java(("org.apache.spark.sql.AnalysisException", "[UNRESOLVED_COLUMN] ...; line 3 pos 7"))
    assert sentence_of(problem) is None


class Runner:
    """In the place of dbt's: it issues statements until one of them may not begin."""

    def __init__(self, callbacks: list[Any]) -> None:
        self._callbacks = callbacks

    def invoke(self, words: list[str]) -> Any:
        statements = 0
        try:
            while statements < 1000:
                for callback in self._callbacks:
                    callback(SimpleNamespace(info=SimpleNamespace(name="SQLQuery")))
                statements += 1
                session.Connection().cursor()
                if "cancel" in words:
                    asked.set()
                    stopped.wait(20)
                    break
        except Exception as problem:
            return SimpleNamespace(success=False, exception=problem, result=statements)
        return SimpleNamespace(success=True, exception=None, result=statements)


asked, stopped = Event(), Event()


@pytest.fixture(autouse=True)
def runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbt.cli.main.dbtRunner", Runner)
    asked.clear()
    stopped.clear()


def test_a_statement_that_runs_is_cancelled_and_none_begins_after_it() -> None:
    assert invoke(["cancel"], asked, stopped.set).success and stopped.is_set()
    done = invoke(["run"], asked)
    assert (done.success, done.result) == (False, 0)


def test_dbts_session_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = session.Cursor
    assert invoke(["run"], Event()).result == 1000
    assert session.Cursor is before


@pytest.mark.parametrize(("method", "given"), [("execute", ["merge"]), ("fetchall", []), ("fetchone", [])])
def test_a_failure_of_a_statement_is_raised_as_dbts_own_with_the_sentence(
    monkeypatch: pytest.MonkeyPatch, method: str, given: list[str]
) -> None:
    """Of a statement that Spark runs when its rows are fetched, too."""

    def failing(*_: Any) -> None:
        raise java(("io.delta.exceptions.ConcurrentAppendException", CONFLICT))

    monkeypatch.setattr(session.Cursor, method, failing)
    with dbt_commands._spark_in_sentences(), pytest.raises(DbtRuntimeError, match="Another run changed the same"):
        getattr(session.Connection().cursor(), method)(*given)


class Console:
    def progress(self, text: str) -> None:
        pass


@pytest.mark.parametrize(
    ("result", "is_stopped", "error", "says"),
    [
        ({"success": True, "exception": None}, False, None, ""),
        ({"success": True, "exception": None}, True, None, ""),
        ({"success": False, "exception": None}, False, DataError, "Models or tests failed"),
        ({"success": False, "exception": None}, True, Fault, "run the same command again"),
        ({"success": False, "exception": "No such option: --selct"}, False, UsageError, "dbt refuses: No such option"),
    ],
)
def test_a_command_ends_with_the_exit_code_that_says_whether_to_run_it_again(
    monkeypatch: pytest.MonkeyPatch, result: dict[str, Any], is_stopped: bool, error: type[Exception] | None, says: str
) -> None:
    asked: list[list[str]] = []

    def invoked(words: list[str], *_: Any) -> Any:
        asked.append(words)
        return SimpleNamespace(**result)

    context = SimpleNamespace(cancelAllJobs=None)
    monkeypatch.setattr(run_dbt, "invoke", invoked)
    monkeypatch.setattr(run_dbt.session, "start", lambda name, listen: SimpleNamespace(sparkContext=context))
    stop = Event()
    if is_stopped:
        stop.set()
    shutdown: Any = SimpleNamespace(stop=stop, listen=None, watch=lambda spark: None)
    console: Any = Console()
    with pytest.raises(error, match=says) if error else nullcontext():
        run_dbt.main(["--", "build", "--select", "tag:shop"], console, shutdown)
    assert asked == [["build", "--select", "tag:shop"]]


def test_what_does_not_follow_two_dashes_is_refused_with_the_command_to_write() -> None:
    nothing: Any = None
    with pytest.raises(UsageError, match=r"follows --, as in `run_dbt.py -- run`"):
        run_dbt.main(["run"], nothing, nothing)
