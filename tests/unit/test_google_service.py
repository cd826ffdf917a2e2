"""Which failed calls are tried again, how long after, and what else a call's failure means: without a server."""

from __future__ import annotations

import statistics
from typing import Any

import grpc
import pytest
from grpc import StatusCode as Code
from reconcile_jobs.google_service import _NO_TOKEN, Retries, _may_pass, without_credentials
from reconcile_jobs.process.errors import Fault, JobError, UsageError
from reconcile_jobs.spanner.queries import Client, DatabaseName


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
    retries = Retries(limit=10, first=0.1, factor=2, longest=15)
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


def test_the_emulator_is_the_environments_unless_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPANNER_EMULATOR_HOST", raising=False)
    assert DatabaseName.from_environment("p", "i", "d").emulator is None
    assert DatabaseName.from_environment("p", "i", "d", "localhost:2").emulator == "localhost:2"
    monkeypatch.setenv("SPANNER_EMULATOR_HOST", "localhost:1")
    assert DatabaseName.from_environment("p", "i", "d").emulator == "localhost:1"
    assert DatabaseName.from_environment("p", "i", "d", "localhost:2").emulator == "localhost:2"
    monkeypatch.setenv("SPANNER_EMULATOR_HOST", "")
    assert DatabaseName.from_environment("p", "i", "d").emulator is None
