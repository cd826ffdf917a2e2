"""A dbt command in this process, in the job's Spark session.

What Spark refuses is one sentence there, and a job that is asked to stop ends its dbt command. dbt-spark itself prints
what it gets: of a conflict of two writers 300 lines of Java.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from reconcile_jobs.process.errors import UsageError, causes, one_line

__all__ = ["invoke"]


class _Stopped(Exception):
    """The job is to stop: raised between two statements of a model."""


def invoke(
    words: list[str],
    stop: Event,
    cancel: Callable[[], None] | None = None,
    heard: Callable[[Any], None] = lambda event: None,
) -> Any:
    """Run one dbt command, and return what dbt's own runner returns of it. Raises UsageError without dbt.

    When `stop` is set, no further statement begins. `cancel` ends the statements that run; without it, they go on to
    their end. `heard` is told of each of dbt's events.
    """
    try:
        from dbt.cli.main import dbtRunner
    except ModuleNotFoundError:
        raise UsageError(
            "This Python has no dbt: install dbt-reconcile[dbt], or set PYSPARK_PYTHON to a Python that has it."
        ) from None

    def between_statements(event: Any) -> None:
        if stop.is_set() and event.info.name == "SQLQuery":
            raise _Stopped("The job was asked to stop.")

    with _spark_in_sentences(), _cancelled_by(stop, cancel):
        return dbtRunner(callbacks=[between_statements, heard]).invoke(list(words))


@contextmanager
def _cancelled_by(stop: Event, cancel: Callable[[], None] | None) -> Iterator[None]:
    ended = Event()

    def watch() -> None:
        # Again and again: a statement may begin its next Spark job in between.
        while not ended.wait(0.5):
            if stop.is_set() and cancel:
                cancel()

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _spark_in_sentences() -> Iterator[None]:
    """Let dbt-spark's session raise what Spark refuses as one sentence."""
    try:
        from dbt.adapters.spark import session
    except ModuleNotFoundError:  # another adapter's dbt
        yield
        return
    from dbt_common.exceptions import DbtRuntimeError

    class Cursor(session.Cursor):
        pass

    for name in ("execute", "fetchall", "fetchone"):
        setattr(Cursor, name, _in_sentences(getattr(session.Cursor, name), DbtRuntimeError))
    original = session.Cursor
    session.Cursor = Cursor  # type: ignore[misc]
    try:
        with _silent_loggers():
            yield
    finally:
        session.Cursor = original  # type: ignore[misc]


@contextmanager
def _silent_loggers() -> Iterator[None]:
    # PySpark writes each failure as a line of JSON with its stack trace; dbt says the failure itself.
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    kept = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, kept, strict=True):
            logger.disabled = disabled


def _in_sentences(call: Callable[..., Any], error: type[Exception]) -> Callable[..., Any]:
    @functools.wraps(call)
    def called(*given: Any) -> Any:
        try:
            return call(*given)
        except Exception as problem:
            sentence = sentence_of(problem)
            if sentence is None:
                raise
            raise error(sentence) from None

    return called


def sentence_of(problem: BaseException) -> str | None:
    """Return what a statement failed of, as one sentence; None if Spark's own text is short and says where."""
    chain = list(causes(problem))
    if problem.__cause__ is not None:  # dbt-spark wraps an AnalysisException, and keeps its text
        chain += causes(problem.__cause__)
    story = "\n".join(f"{kind}: {message}" for kind, message in chain)
    for pattern, sentence in _KNOWN:
        if found := re.search(pattern, story):
            return sentence.format(*(one_line(group) for group in found.groups()))
    if any(kind.rpartition(".")[2] in ("AnalysisException", "ParseException") for kind, _ in chain):
        return None
    kind, message = chain[-1]
    if found := re.search(r"\[USER_RAISED_EXCEPTION\] (.*)", story):  # the package's own sentence
        return one_line(found[1])
    return (
        f"Spark failed with {kind.rpartition('.')[2]}: {one_line(message)}; what was committed stays, and the same "
        "command continues after it."
    )


# Tried in this order against the whole chain of causes, one to a line.
_KNOWN = [
    (
        r"((?:MetadataChanged|ConcurrentTransaction|ConcurrentAppend|ConcurrentDelete\w+|ProtocolChanged|ConcurrentWrite"
        r"|CommitFailed)Exception|conflicting files)",
        "Another run changed the same table at the same moment ({0}), and this statement wrote nothing: let the other "
        "run end, and run the same command again.",
    ),
    (
        r"DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION[^']*'?([^'\s]*)",
        "Another run made the same table at the same moment, or files of an earlier table lie at its place ({0}): run "
        "the same command again; if it says this again, move these files away.",
    ),
    (
        r"(TABLE_OR_VIEW_ALREADY_EXISTS|AlreadyExistsException)",
        "Another run made the same table at the same moment ({0}): run the same command again.",
    ),
    (
        r"No space left on device",
        "The disk is full; what was committed stays: free some space, and run the same command again.",
    ),
    (
        r"(?:cancelled as part of cancellation of all jobs|SPARK_JOB_CANCELLED)",
        "The job was asked to stop, and this statement wrote nothing: run the same command again.",
    ),
]  # fmt: skip
