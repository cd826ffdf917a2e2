"""Which failed calls are tried again, how long after, and what else a call's failure means: without a server."""

from __future__ import annotations

import statistics
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc import StatusCode as Code
from reconcile_jobs.bigtable.calls import Client as OfBigtable
from reconcile_jobs.bigtable.calls import SourceTable
from reconcile_jobs.google_service import _NO_TOKEN, Call, Retries, _may_pass, without_credentials
from reconcile_jobs.process.errors import Fault, JobError, UsageError
from reconcile_jobs.spanner.queries import Client, DatabaseName, explain


class Failed(grpc.RpcError):
    def __init__(self, code: Code, details: str | None = "") -> None:
        self._code, self._details = code, details

    def code(self) -> Code:
        return self._code

    def details(self) -> str | None:
        return self._details


MAY_PASS = [
    *(
        Failed(code, "whatever")
        for code in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.ABORTED, Code.RESOURCE_EXHAUSTED)
    ),
    Failed(Code.CANCELLED),  # by the watch
    Failed(Code.INTERNAL, "Received RST_STREAM with error code 2"),
    Failed(Code.INTERNAL, "Received unexpected EOS on DATA frame from server"),
    Failed(Code.UNKNOWN, "Stream removed"),
    Failed(Code.UNKNOWN, "Connection closed with unknown cause"),
    Failed(Code.INTERNAL, "http/2 error code: CANCEL"),
    Failed(Code.INTERNAL, "the peer has sent goaway"),
]
NEVER_PASS = [
    *(
        Failed(code, "no")
        for code in (Code.NOT_FOUND, Code.INVALID_ARGUMENT, Code.PERMISSION_DENIED, Code.OUT_OF_RANGE)
    ),
    Failed(Code.UNAUTHENTICATED, "Received RST_STREAM"),
    Failed(Code.INTERNAL, "a bug"),
    Failed(Code.INTERNAL, None),
    Failed(Code.UNKNOWN, "who knows"),
    Failed(Code.FAILED_PRECONDITION, "Received RST_STREAM"),
    Failed(Code.UNAVAILABLE, f"{_NO_TOKEN}: none"),
]


@pytest.mark.parametrize("problem", MAY_PASS, ids=lambda problem: f"{problem.code().name} {problem.details()}")
def test_what_a_lost_connection_or_a_busy_service_says_may_pass(problem: Failed) -> None:
    assert _may_pass(problem)


@pytest.mark.parametrize("problem", NEVER_PASS, ids=lambda problem: f"{problem.code().name} {problem.details()}")
def test_what_another_attempt_does_not_cure_is_not_attempted(problem: Failed) -> None:
    assert not _may_pass(problem)


def test_for_want_of_credentials() -> None:
    assert without_credentials(Failed(Code.UNAUTHENTICATED, "anything"))
    assert without_credentials(Failed(Code.UNAVAILABLE, f"x {_NO_TOKEN} y"))
    assert not without_credentials(Failed(Code.PERMISSION_DENIED, None))


def test_pauses_grow_by_a_factor_up_to_the_longest_and_are_random() -> None:
    """A service that does not answer is given up after ten pauses, which take less than a minute together."""
    retries = Retries()
    assert retries.limit == 10
    for failures, whole in ((1, 0.1), (2, 0.2), (4, 0.8), (8, 12.8), (9, 15), (50, 15)):
        pauses = [retries.pause(failures) for _ in range(200)]
        assert whole / 2 <= min(pauses) < whole * 0.6 and whole * 0.9 < max(pauses) <= whole
        assert statistics.pstdev(pauses) > 0


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Any:
    client = Client(DatabaseName("p", "i", "d", "localhost:1"), retries=Retries(limit=3, first=0, longest=0))
    client._session = "projects/p/sessions/s"
    return client


def test_a_session_that_ended_is_made_anew_but_not_within_a_transaction(client: Any) -> None:
    ended = Failed(Code.NOT_FOUND, "Session not found: projects/p/sessions/s")
    assert client.failed(ended, 0) == 1
    assert client._session is None
    with pytest.raises(Fault, match="ended the session, and with it the transaction"):
        client.failed(ended, 0, in_transaction=True)


@pytest.mark.parametrize(
    ("problem", "kind", "says"),
    [
        (Failed(Code.NOT_FOUND, "Table not found: Orders"), UsageError, "does not find something that the job needs"),
        (Failed(Code.INTERNAL, "Session not found"), Fault, r"refused a query .* \(INTERNAL\)"),
        (Failed(Code.NOT_FOUND, "Database not found: d"), UsageError, "There is no database"),
    ],
)
def test_what_else_is_not_found_ends_the_job_and_the_session_stays(
    client: Any, problem: Failed, kind: type[JobError], says: str
) -> None:
    with pytest.raises(kind, match=says):
        client.failed(problem, 0)
    assert client._session == "projects/p/sessions/s"


def test_a_connection_carries_a_hundred_streams_and_the_next_one_has_a_connection_of_its_own(client: Any) -> None:
    """One more would wait on Google's side until another stream ends, which may be never."""
    ended: list[Any] = []
    client._connect = lambda: SimpleNamespace(close=lambda: ended.append("a connection"))
    calls = [Call(SimpleNamespace(cancel=lambda: ended.append("a stream")), None, 1, None) for _ in range(100)]  # type: ignore[arg-type]
    first = client._free_channel()
    first.calls.update(calls[:99])
    assert client._free_channel() is first
    first.calls.add(calls[99])
    second = client._free_channel()
    assert second is not first and client._free_channel() is second
    client.close()
    assert ended == ["a stream"] * 100 + ["a connection"] * 2
    with pytest.raises(Fault, match=r"^Stopped: the connection to Spanner is closed\.$"):
        client._free_channel()


IN_SPANNER = {
    "Table-valued function not found: READ_x": "change stream does not exist",
    "function spanner.read_json_x(text) does not exist": "change stream does not exist",
    "Function read_json_x was not found": "change stream does not exist",
    "start_timestamp is too far in the past": "the changes from --start on",
    "The change stream s has a retention of 1d": "the changes from --start on",
    "It is older than the retention period": "the changes from --start on",
    "The version has been garbage collected": "rows as they were at --start",
    "This version is expired": "rows as they were at --start",
    "The read timestamp is too old": "rows as they were at --start",
    "The read timestamp lies past the limit": "rows as they were at --start",
    "The earliest read timestamp, that is the earliest": "rows as they were at --start",
    "It exceeded the maximum timestamp staleness": "rows as they were at --start",
    "See version_retention_period": "rows as they were at --start",
    "Database not found: d": "There is no database projects/p",
    "Instance not found: i": "There is no database projects/p",
}
OF_BIGTABLE = {
    "It requires single-cluster routing": "cannot read a change stream",
    "The app profile a is routed to any cluster": "cannot read a change stream",
    "The routing policy of the application profile does not fit": "cannot read a change stream",
    "multi_cluster_routing_use_any": "cannot read a change stream",
    "Change streams are not enabled for the table": "has no change stream",
    "The change stream isn't configured": "has no change stream",
    "Not enabled for the table: its change stream": "has no change stream",
    "The change stream is disabled": "has no change stream",
    "This table does not have a change stream": "has no change stream",
    "start_time is in the future": "--start is in the future",
    "A future start time": "--start is in the future",
    "It is greater than the current time": "--start is in the future",
    "The start time is before that": "does not go back to --start",
    "The retention period does not reach the start time": "does not go back to --start",
    "It is beyond the retention": "no longer has the changes that come next",
    "The token is too old": "no longer has the changes that come next",
    "The token has expired": "no longer has the changes that come next",
    "It is no longer available": "no longer has the changes that come next",
    "It was garbage-collected": "no longer has the changes that come next",
}


@pytest.mark.parametrize(("details", "says"), IN_SPANNER.items())
def test_what_spanner_refuses_is_said_with_what_to_do(details: str, says: str) -> None:
    told = explain(Failed(Code.FAILED_PRECONDITION, details), DatabaseName("p", "i", "d"))
    assert type(told) is UsageError and says in str(told)


@pytest.mark.parametrize(("details", "says"), OF_BIGTABLE.items())
def test_what_bigtable_refuses_is_said_with_what_to_do(details: str, says: str) -> None:
    told = OfBigtable(SourceTable("p", "i", "t", "a")).explain(Failed(Code.FAILED_PRECONDITION, details))
    assert type(told) is UsageError and says in str(told)


def test_the_emulator_is_the_environments_unless_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPANNER_EMULATOR_HOST", raising=False)
    assert DatabaseName.from_environment("p", "i", "d").emulator is None
    assert DatabaseName.from_environment("p", "i", "d", "localhost:2").emulator == "localhost:2"
    monkeypatch.setenv("SPANNER_EMULATOR_HOST", "localhost:1")
    assert DatabaseName.from_environment("p", "i", "d").emulator == "localhost:1"
    assert DatabaseName.from_environment("p", "i", "d", "localhost:2").emulator == "localhost:2"
    monkeypatch.setenv("SPANNER_EMULATOR_HOST", "")
    assert DatabaseName.from_environment("p", "i", "d").emulator is None
