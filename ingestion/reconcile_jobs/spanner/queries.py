"""Queries of Spanner over its bare gRPC methods: retried with a limit, cancelled when they hang, closed at once.

The client library's own `execute_sql` retries UNAVAILABLE without pause or limit, holds rows back until a resume token
arrives and cannot be cancelled; its `Database.close()` may block, and its metrics exporter delays the end of a process.
Here are only its message types, its credentials and its channels.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
from google.cloud.spanner_v1 import types
from google.protobuf.struct_pb2 import Struct, Value

from reconcile_jobs.errors import Fault, JobError, UsageError
from reconcile_jobs.spanner.stream_decoder import Rows, TornResult

__all__ = ["Client", "DatabaseName", "Retries", "explain", "text_value"]

_Result = TypeVar("_Result")

# Spanner's servers let one connection carry a hundred calls at a time; one more would wait for another's end.
STREAMS_PER_CHANNEL = 100

_RETRIED = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
}
# What google-auth's failures begin with, under a code that may pass; what follows is the library's own text.
_NO_TOKEN = "Getting metadata from plugin failed"
# What a broken connection looks like under a code that may mean anything.
_BROKEN = re.compile(r"RST_STREAM|unexpected EOS|HTTP/2 error|Stream removed|Connection closed|GOAWAY", re.IGNORECASE)

_SCOPES = ("https://www.googleapis.com/auth/spanner.data",)
_HOST = "spanner.googleapis.com"


@dataclass(frozen=True)
class DatabaseName:
    """A database, and the emulator's address where that is meant. No credentials: those are the environment's."""

    project: str
    instance: str
    database: str
    emulator: str | None = None

    @classmethod
    def here(cls, project: str, instance: str, database: str, emulator: str | None = None) -> DatabaseName:
        """Return the name as this process's environment means it. Raises UsageError for what cannot be a name."""
        for option, text in (("project", project), ("instance", instance), ("database", database)):
            if not re.fullmatch(r"[\w.:-]+", text):
                raise UsageError(f"{option} {text!r} is no name of Spanner's: letters, digits, _ and - make one.")
        return cls(project, instance, database, emulator or os.environ.get("SPANNER_EMULATOR_HOST") or None)

    @property
    def path(self) -> str:
        """The name as Spanner's methods take it."""
        return f"projects/{self.project}/instances/{self.instance}/databases/{self.database}"

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class Retries:
    """How often in a row a query may fail without having brought anything new, and the seconds between the attempts.

    Each pause is a random part, at least half, of `first * factor ** (failures - 1)`, at most `longest`.
    """

    limit: int = 10
    first: float = 0.1
    factor: float = 2.0
    longest: float = 15.0

    def pause(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row."""
        return min(self.longest, self.first * self.factor ** (failures - 1)) * random.uniform(0.5, 1)


class _Call:
    """A call that streams messages, and the last moment at which the next one may come."""

    def __init__(self, call: Any, channel: _Channel, patience: float) -> None:
        self.call, self.channel, self.patience = call, channel, patience
        self.deadline: float | None = None

    def messages(self) -> Iterator[Any]:
        """Yield the messages. Raises grpc.RpcError, also after the watch has cancelled the call."""
        following = self.call.__next__
        try:
            while True:
                self.deadline = time.monotonic() + self.patience
                try:
                    message = following()
                except StopIteration:
                    return
                self.deadline = None  # what the caller does with it may take any time
                yield message
        finally:
            self.deadline = None

    def close(self) -> None:
        """Cancel the call if it is still going on."""
        self.call.cancel()
        self.channel.calls.discard(self)


class _Channel:
    def __init__(self, channel: grpc.Channel) -> None:
        self.grpc = channel
        self.calls: set[_Call] = set()


class Client:
    """One database's connections in this process: as many as its open streams need. Use it in a `with` statement."""

    def __init__(self, database: DatabaseName, session: str | None = None, retries: Retries | None = None) -> None:
        """Connect on first use, in `session` where another process has made one."""
        self.database = database
        self.retries = retries or Retries()
        self._session = session
        self._channels: list[_Channel] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._watch: threading.Thread | None = None
        self._credentials: Any = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancel what is open and disconnect; takes milliseconds."""
        self._closed.set()
        with self._lock:
            for channel in self._channels:
                for call in list(channel.calls):
                    call.call.cancel()
                channel.grpc.close()
            self._channels.clear()

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
            call = self._free_channel().grpc.unary_unary(
                f"/google.spanner.v1.Spanner/{method}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=response.pb().FromString,
            )
            return call(request, timeout=60, metadata=self._metadata(request))

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
        if not _may_pass(problem):
            raise explain(problem, self.database) from None
        why = "it sent nothing" if _hung(problem) else f"{_code(problem)}: {_details(problem)}"
        return self.count_failure(failures, why)

    def count_failure(self, failures: int, why: str) -> int:
        """Wait before another attempt and return the number of failures. Raises Fault where they are too many."""
        failures += 1
        if failures > self.retries.limit:
            raise Fault(
                f"Spanner failed {failures} times in a row ({why}): run the same command again when it answers."
            ) from None
        self.pause(failures)
        return failures

    def pause(self, failures: int) -> None:
        """Wait as long as after so many failures. Raises Fault when the client is closed meanwhile."""
        if self._closed.wait(self.retries.pause(failures)):
            raise Fault("Stopped while Spanner did not answer: run the same command again.") from None

    def open(self, method: str, request: Any, patience: float) -> _Call:
        """Start a streaming call, which is cancelled when a message is awaited for `patience` seconds."""
        channel = self._free_channel()
        call = channel.grpc.unary_stream(
            f"/google.spanner.v1.Spanner/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=types.PartialResultSet.pb().FromString,
        )(request, metadata=self._metadata(request))
        opened = _Call(call, channel, patience)
        channel.calls.add(opened)
        self._start_watch()
        return opened

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

    def _free_channel(self) -> _Channel:
        with self._lock:
            if self._closed.is_set():
                raise Fault("Stopped: the connection to Spanner is closed.")
            for channel in self._channels:
                if len(channel.calls) < STREAMS_PER_CHANNEL:
                    return channel
            self._channels.append(_Channel(self._connect()))
            return self._channels[-1]

    def _connect(self) -> grpc.Channel:
        options = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.keepalive_time_ms", 120_000),
            # Channels to one address would otherwise share one connection, and its limit.
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.primary_user_agent", "dbt-reconcile"),
        ]
        if self.database.emulator:
            return grpc.insecure_channel(self.database.emulator, options=options)
        from google.api_core import grpc_helpers

        try:
            if self._credentials is None:
                import google.auth

                self._credentials, _ = google.auth.default(scopes=_SCOPES)
            return grpc_helpers.create_channel(
                f"{_HOST}:443", credentials=self._credentials, default_host=_HOST, options=options
            )
        except Exception as problem:
            # Only the kind of the problem: what libraries say of credentials is not for a log.
            raise UsageError(
                f"No credentials for Spanner were found ({type(problem).__name__}): the job uses Google's application "
                "default credentials; set them up, or SPANNER_EMULATOR_HOST for the emulator."
            ) from None

    def _start_watch(self) -> None:
        if self._watch is None:
            self._watch = threading.Thread(target=self._cancel_what_hangs, name="spanner watch", daemon=True)
            self._watch.start()

    def _cancel_what_hangs(self) -> None:
        while not self._closed.wait(0.1):
            now = time.monotonic()
            with self._lock:
                calls = [call for channel in self._channels for call in list(channel.calls)]
            for call in calls:
                if call.deadline is not None and call.deadline < now:
                    call.call.cancel()


def text_value(text: str | None) -> Value:
    """Return a text, or NULL, as a parameter; INT64 and TIMESTAMP are texts too."""
    return Value(null_value=0) if text is None else Value(string_value=text)


def _names_session(request: Any) -> bool:
    # The one that is created with CreateSession is no name yet.
    return isinstance(getattr(request, "session", None), str)


def _code(problem: grpc.RpcError) -> str:
    return str(problem.code().name)


def _details(problem: grpc.RpcError) -> str:
    line = (problem.details() or "").strip().partition("\n")[0].rstrip(".: ")
    # A session's name is nobody's business.
    line = re.sub(r"/sessions/\S+", "/sessions/...", line)
    return line if len(line) <= 300 else line[:300] + "..."


def _hung(problem: grpc.RpcError) -> bool:
    # Nobody but the watch cancels a call that somebody still reads.
    return bool(problem.code() == grpc.StatusCode.CANCELLED)


def _without_credentials(problem: grpc.RpcError) -> bool:
    return problem.code() == grpc.StatusCode.UNAUTHENTICATED or _NO_TOKEN in (problem.details() or "")


def _may_pass(problem: grpc.RpcError) -> bool:
    if _without_credentials(problem):
        return False
    if problem.code() in _RETRIED or _hung(problem):
        return True
    lost = problem.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)
    return lost and bool(_BROKEN.search(problem.details() or ""))


def explain(problem: grpc.RpcError, database: DatabaseName) -> JobError:
    """Return a failure that no attempt cures as one sentence: what is wrong, and what to do."""
    code, details = problem.code(), _details(problem)
    if _without_credentials(problem):
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
        return UsageError(f"Spanner does not find what was asked of {database}: {details}.")
    return Fault(f"Spanner refuses a query of {database} ({_code(problem)}): {details}.")


_KNOWN = [
    (
        r"(?:table-valued function not found|function .*read_json_\w+.* (?:does not exist|not found))",
        "The change stream does not exist in {database}: name one of that database with --stream ({details}).",
    ),
    (
        r"start_timestamp|change stream.*retention|retention period",
        "Spanner no longer has, or not yet, what --start asks for ({details}): a start lies within the change stream's "
        "retention period, not before its creation and not in the future. What fell out of it can only come "
        "by a new --backfill, into a new staging table.",
    ),
    (
        r"version.*(?:garbage collected|expired)|read timestamp.*(?:too old|past|earliest)|stale|version_retention",
        "Spanner no longer has the rows as they were at --start ({details}): give a later --start, or a longer "
        "version_retention_period to the database.",
    ),
    (r"database not found|instance not found", "There is no database {database}: {details}."),
]
