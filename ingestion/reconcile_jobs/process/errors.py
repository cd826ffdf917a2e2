"""Failures as one sentence and an exit code, and Spark's failures translated into them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "DataError",
    "Fault",
    "JobError",
    "Undecided",
    "UsageError",
    "causes",
    "explained",
    "in_sentences",
    "one_line",
]


class JobError(Exception):
    """A job ends with `exit_code`; the message is one sentence: what is wrong, where, and what to do."""

    exit_code = 4


class DataError(JobError):
    """The data forbid it; exit code 1."""

    exit_code = 1


class UsageError(JobError):
    """What was asked for, or the configuration, makes it impossible; exit code 2."""

    exit_code = 2


class Undecided(JobError):
    """Nothing can decide it, now or any more; exit code 3."""

    exit_code = 3


class Fault(JobError):
    """Something failed that the same command, given again, may not meet; exit code 4."""


def causes(problem: BaseException) -> Iterator[tuple[str, str]]:
    """Yield class name and message of a failure and of what caused it, in Python or the JVM, outermost first."""
    python: BaseException | None = problem
    java: Any = None
    for _ in range(30):  # a chain of causes may be a ring
        if python is not None:
            java = getattr(python, "java_exception", None) or getattr(python, "_origin", None)
            if java is None:
                yield type(python).__name__, str(python)
                python = python.__cause__
                continue
            python = None
        if java is None:
            return
        yield java.getClass().getName(), java.getMessage() or ""
        java = java.getCause()


def explained(problem: BaseException) -> JobError:
    """Return a failure as the one sentence that a user needs. A JobError is returned as it is."""
    if isinstance(problem, JobError):
        return problem
    chain = list(causes(problem))
    story = "\n".join(f"{kind}: {message}" for kind, message in chain)
    if found := re.search(r"reconcile_jobs\.process\.errors\.(DataError|UsageError|Fault): ([^\n]+)", story):
        # It came from another process, an executor's or the driver's second Python, as a text.
        return {"DataError": DataError, "UsageError": UsageError, "Fault": Fault}[found[1]](found[2].strip())
    if found := re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", story):
        return _without_module(found[1], in_this_process=any(kind == "ModuleNotFoundError" for kind, _ in chain))
    for pattern, kind, sentence in _KNOWN:
        if found := re.search(pattern, story):
            return kind(sentence.format(*(one_line(group) for group in found.groups())))
    kind_name, message = chain[-1]
    if "AnalysisException" in chain[0][0] or "ParseException" in chain[0][0]:
        return UsageError(f"Spark refuses: {one_line(chain[0][1])}")
    if chain[0][0] == kind_name and "." not in kind_name:
        return Fault(f"The job failed with {kind_name}: {one_line(message)}; RECONCILE_TRACEBACK=1 shows where.")
    return Fault(
        f"Spark failed with {kind_name.rpartition('.')[2]}: {one_line(message)}; "
        "what was committed stays, and the same command continues after it."
    )


@contextmanager
def in_sentences() -> Iterator[None]:
    """Raise whatever is raised within as a JobError."""
    try:
        yield
    except JobError:
        raise
    except Exception as problem:
        raise explained(problem) from problem


# Tried in this order against every line of the chain of causes.
_KNOWN: list[tuple[str, type[JobError], str]] = [
    (
        r"(?i)a text of the column (.*?) is not UTF-8",
        DataError,
        "A text of the column {} is not UTF-8, and staging would store another text: correct it at the source, or "
        "leave the column out. Nothing was appended.",
    ),
    (
        r"JAVA_GATEWAY_EXITED",
        Fault,
        "Spark's Java did not start, and the lines above say why (another process may hold the metastore, or there is "
        "no Java 17): when that is mended, run the same command again.",
    ),
    (
        r"XSDB6|Another instance of Derby",
        Fault,
        "Another process uses the metastore, and Derby allows only one at a time: wait until the other job, dbt or "
        "notebook in this directory has ended, and run the same command again.",
    ),
    (
        r"Version information not found in metastore",
        UsageError,
        "The metastore does not exist yet: run `spark-submit` with the package's ingestion/metastore.py once.",
    ),
    (
        r"(?s)MetaStore.*?PSQLException: ([^\n]+)",  # a source may be a PostgreSQL too
        Fault,
        "The metastore's database refused the connection ({0}): check that it runs, and that RECONCILE_METASTORE_URL, "
        "_USER and _PASSWORD in the environment are right, and run the same command again.",
    ),
    (
        r"(?:ClassNotFoundException|Cannot find catalog plugin class).*(delta|iceberg)",
        UsageError,
        "Spark does not find the classes of {0}: set SPARK_CONF_DIR to the package's conf directory, or to "
        "conf/iceberg in it.",
    ),
    (
        r"(?:CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY|another query with same id|concurrent.*streaming quer)",
        Fault,
        "Another process is appending with the same checkpoint: wait for it or stop it, and run the same command "
        "again.",
    ),
    (
        r"EXPECT_TABLE_NOT_VIEW[^`]*(`.*`) is a view",
        UsageError,
        "{0} is a view, and records are appended to tables: name another with --staging, or put the table back that "
        "was there.",
    ),
    (
        r"No FileSystem for scheme[: ]*\"?([\w.+-]+)",
        UsageError,
        "Spark has no connector for paths that begin with {0}: put its jar on the class path, as conf/packages does.",
    ),
    (
        r"Invalid column type: unknown",  # so Iceberg calls it there
        UsageError,
        "Hive's metastore does not accept an Iceberg table with a variant: declare string, which holds the same "
        "JSON as text.",
    ),
    (
        r"(?:INVALID_SCHEMA_OR_RELATION_NAME\] ?|Invalid Hive object for )(`.*?`|[^\n]+)",
        UsageError,
        "The metastore does not accept {0} as the name of a table or schema: use only ASCII letters, digits and _.",
    ),
    (
        r"(?:AccessControlException|AccessDeniedException|AccessDenied|Permission denied)[: ]*([^\n]*)",
        UsageError,
        "Access was denied ({0}): give the job's user the right to read the path and to write the warehouse.",
    ),
    (
        r"((?:MetadataChanged|ConcurrentTransaction|ConcurrentAppend|ProtocolChanged|ConcurrentWrite"
        r"|DuplicateWAPCommit|CherrypickAncestorCommit|CommitFailed)Exception)",
        Fault,
        "Another process changed the staging table at the same moment ({0}), and nothing of this batch was appended: "
        "run the same command again.",
    ),
    (
        r"(Another job has appended under the batch number \d+)",
        Fault,
        "{0} at the same moment, and nothing of this batch was appended: run the same command again, which says what "
        "to do. One job at a time writes a staging table.",
    ),
    (
        r"No space left on device",
        Fault,
        "The disk is full; what was committed stays: free some space, and run the same command again.",
    ),
]


def _without_module(name: str, in_this_process: bool) -> UsageError:
    # As it is installed, which these are not called, and the extra that brings it.
    package, extra = _INSTALLED.get(name.partition(".")[0], (name, None))
    if extra == "spanner" and "bigtable" in name:
        package, extra = "google-cloud-bigtable", "bigtable"
    it = f"dbt-reconcile[{extra}]" if extra else "this package's requirements"
    if in_this_process:
        # The package first: no registry has dbt-reconcile, and who installed by the quickstart has no wheel.
        return UsageError(
            f"The job's own Python, {sys.executable}, does not have the package {package}: run `pip install {package}` "
            f"there (the wheel brings it with {it}), or set PYSPARK_PYTHON to a Python that has it."
        )
    return UsageError(
        f"Spark's Python processes do not have the package {package}: set PYSPARK_PYTHON to a Python with {it}, on the "
        "driver and on every executor."
    )


_INSTALLED = {
    "google": ("google-cloud-spanner", "spanner"),
    "grpc": ("google-cloud-spanner", "spanner"),
    "fastavro": ("fastavro", "datastream"),
    "great_expectations": ("great-expectations", "expectations"),
    "jinja2": ("jinja2", "dbt"),
    "yaml": ("pyyaml", "dbt"),
    "ruamel": ("ruamel.yaml", "dbt"),
}


def one_line(text: str, longest: int = 300) -> str:
    """Return the first line of one of Spark's messages, without its SQLSTATE, its end cut off where it is long."""
    # Spark's messages go on with hints and plans after the first line, and end with a SQLSTATE that says nothing here.
    line = re.sub(r"\s*SQLSTATE: \w+", "", text.strip().partition("\n")[0]).strip().rstrip(".")
    return line if len(line) <= longest else line[:longest] + "..."
