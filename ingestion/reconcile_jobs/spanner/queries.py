"""Queries of Spanner over its bare gRPC methods: retried with a limit, cancelled when they hang, closed at once.

The client library's own `execute_sql` retries UNAVAILABLE without pause or limit, holds rows back until a resume token
arrives and cannot be cancelled; its `Database.close()` may block, and its metrics exporter delays the end of a process.
Here are only its message types, its credentials and its channels.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import grpc
from google.cloud.spanner_v1 import types
from google.protobuf.struct_pb2 import Struct, Value

from reconcile_jobs.google_service import Call, GoogleService, Retries, code_of, details_of, without_credentials
from reconcile_jobs.process.clock import Clock
from reconcile_jobs.process.errors import Fault, JobError, UsageError
from reconcile_jobs.spanner.stream_decoder import Rows, TornResult

__all__ = ["Client", "DatabaseName", "Retries", "explain", "text_value"]

_Result = TypeVar("_Result")

_SERVICE = "/google.spanner.v1.Spanner"


@dataclass(frozen=True)
class DatabaseName:
    """A database, and the emulator's address where that is meant. No credentials: those are the environment's."""

    project: str
    instance: str
    database: str
    emulator: str | None = None

    @classmethod
    def from_environment(cls, project: str, instance: str, database: str, emulator: str | None = None) -> DatabaseName:
        """Return the name as this process's environment means it. Raises UsageError for what cannot be a name."""
        for option, text in (("project", project), ("instance", instance), ("database", database)):
            if not re.fullmatch(r"[\w.:-]+", text):
                raise UsageError(
                    f"{option} {text!r} is not a valid name for Spanner: use only letters, digits, _ and -."
                )
        return cls(project, instance, database, emulator or os.environ.get("SPANNER_EMULATOR_HOST") or None)

    @property
    def path(self) -> str:
        """The name as Spanner's methods take it."""
        return f"projects/{self.project}/instances/{self.instance}/databases/{self.database}"

    def __str__(self) -> str:
        return self.path


class Client(GoogleService):
    """One database's connections in this process."""

    name: ClassVar[str] = "Spanner"
    host: ClassVar[str] = "spanner.googleapis.com"
    scopes: ClassVar[tuple[str, ...]] = ("https://www.googleapis.com/auth/spanner.data",)
    emulator_variable: ClassVar[str] = "SPANNER_EMULATOR_HOST"

    def __init__(
        self,
        database: DatabaseName,
        session: str | None = None,
        retries: Retries | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Connect on first use, in `session` where another process has made one."""
        super().__init__(database.emulator, retries, clock)
        self.database = database
        self._session = session

    @property
    def session(self) -> str:
        """The multiplexed session, which any number of calls and processes may share."""
        if self._session is None:
            request = types.CreateSessionRequest(database=self.database.path, session=types.Session(multiplexed=True))
            self._session = self.unary("CreateSession", types.CreateSessionRequest.pb(request), types.Session).name
        return self._session

    def unary(self, method: str, request: Any, response: Any, in_transaction: bool = False) -> Any:
        """Return the answer, a protobuf message of type `response`; gives `request` the session. Raises JobError."""

        def once() -> Any:
            if _names_session(request):
                request.session = self.session  # the one that it was made with may have ended
            return self.call(f"{_SERVICE}/{method}", request, response, self._metadata(request))

        return self.retried(once, in_transaction)

    def retried(self, attempt: Callable[[], _Result], in_transaction: bool = False) -> _Result:
        """Return what `attempt` returns, tried again after each failure that may pass. Raises JobError."""
        failures = 0
        while True:
            try:
                return attempt()
            except (grpc.RpcError, TornResult) as problem:
                failures = self.failed(problem, failures, in_transaction)

    def failed(self, problem: grpc.RpcError | TornResult, failures: int, in_transaction: bool = False) -> int:
        """Wait before another attempt and return the number of failures. Raises JobError where there is none.

        `in_transaction`: what was asked for belongs to a transaction, which ends with its session.
        """
        if isinstance(problem, TornResult):
            return self.count_failure(failures, "a result that ends within a row")
        if problem.code() == grpc.StatusCode.NOT_FOUND and "Session not found" in (problem.details() or ""):
            if in_transaction:
                raise Fault(
                    f"Spanner ended the session, and with it the transaction in which rows of {self.database} were "
                    "read: run the same command again."
                ) from None
            self._session = None  # it lives for four weeks
            return self.count_failure(failures, "its session ended")
        return super().failed(problem, failures)

    def explain(self, problem: grpc.RpcError) -> JobError:
        """Return the error for a failure that a retry does not cure: one sentence, what is wrong and what to do."""
        return explain(problem, self.database)

    def open(self, method: str, request: Any, patience: float) -> Call:
        """Start a streaming call. It is cancelled after a wait of `patience` seconds for one message."""
        return self.stream(f"{_SERVICE}/{method}", request, types.PartialResultSet, self._metadata(request), patience)

    def rows(self, sql: str, parameters: Mapping[str, str] | None = None) -> list[list[Any]]:
        """Return all rows of a small strong query, lists of protobuf Values; parameters are texts. Raises JobError."""
        return self.rows_and_timestamp(sql, parameters)[0]

    def rows_and_timestamp(self, sql: str, parameters: Mapping[str, str] | None = None) -> tuple[list[list[Any]], int]:
        """Return the rows of a small strong query, and the nanoseconds since 1970 at which it read."""

        def once() -> tuple[list[list[Any]], int]:
            request = types.ExecuteSqlRequest(
                session=self.session,
                sql=sql,
                params=Struct(fields={name: text_value(text) for name, text in (parameters or {}).items()}),
                param_types={name: types.Type(code=types.TypeCode.STRING) for name in parameters or {}},
                transaction=types.TransactionSelector(
                    single_use=types.TransactionOptions(
                        read_only=types.TransactionOptions.ReadOnly(strong=True, return_read_timestamp=True)
                    )
                ),
            )
            rows, found, read = Rows(), list[list[Any]](), 0
            call = self.open("ExecuteStreamingSql", types.ExecuteSqlRequest.pb(request), patience=60)
            try:
                for message in call.messages():
                    if message.HasField("metadata"):
                        moment = message.metadata.transaction.read_timestamp
                        read = moment.seconds * 10**9 + moment.nanos
                    found += rows.add(message)
                rows.end()
            finally:
                call.close()
            return found, read

        return self.retried(once)

    def now(self) -> int:
        """Return Spanner's own time, in nanoseconds since 1970: when a strong read reads."""
        return self.rows_and_timestamp("SELECT 1")[1]

    def _metadata(self, request: Any) -> list[tuple[str, str]]:
        database = self.database.path
        routed = f"session={request.session}" if _names_session(request) else database
        return [
            ("google-cloud-resource-prefix", database),
            ("x-goog-request-params", routed if routed != database else f"database={database}"),
        ]


def text_value(text: str | None) -> Value:
    """Return a parameter's value, NULL for None. Spanner takes INT64 and TIMESTAMP values as text too."""
    return Value(null_value=0) if text is None else Value(string_value=text)


def _names_session(request: Any) -> bool:
    # In CreateSession, `session` is the session to create, and not yet a name.
    return isinstance(getattr(request, "session", None), str)


def explain(problem: grpc.RpcError, database: DatabaseName) -> JobError:
    """Return the error for a failure that a retry does not cure: one sentence, what is wrong and what to do."""
    code, details = problem.code(), details_of(problem)
    if without_credentials(problem):
        # Nothing of the details: what libraries say of credentials is not for a log.
        return UsageError(
            "Spanner does not accept the application default credentials: renew them, and run the same command again."
        )
    if code == grpc.StatusCode.PERMISSION_DENIED:
        return UsageError(
            f"Permission denied on {database} ({details}): the job's account needs the role Cloud Spanner Database "
            "Reader there (spanner.databases.select, .partitionRead and spanner.sessions.create)."
        )
    for pattern, sentence in _KNOWN:
        if re.search(pattern, details, re.IGNORECASE):
            return UsageError(sentence.format(database=database, details=details))
    if code == grpc.StatusCode.NOT_FOUND:
        return UsageError(f"Spanner does not find something that the job needs in {database}: {details}.")
    return Fault(f"Spanner refused a query of {database} ({code_of(problem)}): {details}.")


_KNOWN = [
    (
        r"(?:table-valued function not found|function .*read_json_\w+.* (?:does not exist|not found))",
        "The change stream does not exist in {database}: name one of that database with --stream ({details}).",
    ),
    (
        r"start_timestamp|change stream.*retention|retention period",
        "Spanner does not have the changes from --start on ({details}): give a start within the change stream's "
        "retention period, not before its creation and not in the future. For older changes, append to a new "
        "staging table with --backfill.",
    ),
    (
        r"version.*(?:garbage collected|expired)|read timestamp.*(?:too old|past|earliest)|stale|version_retention",
        "Spanner no longer has the rows as they were at --start ({details}): give a later --start, or set a longer "
        "version_retention_period for the database.",
    ),
    (
        r"database not found|instance not found",
        "There is no database {database} ({details}): check --project, --instance and --database.",
    ),
]
