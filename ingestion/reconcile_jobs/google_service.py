"""Calls of a Google service over its bare gRPC methods: retried with a limit, cancelled when they hang, closed at once.

The client libraries' own calls retry without pause or limit, have streams that cannot be cancelled, and clients that
take minutes to close. The module of each service describes these faults. This module uses only the libraries' message
types, credentials and channels.
"""

from __future__ import annotations

import random
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import grpc
from grpc.experimental import ChannelOptions

from reconcile_jobs.process.clock import Clock
from reconcile_jobs.process.errors import Fault, JobError, UsageError

__all__ = ["STREAMS_PER_CHANNEL", "Call", "GoogleService", "Retries", "code_of", "details_of", "without_credentials"]

_Result = TypeVar("_Result")

# Google's servers let one connection carry a hundred calls at a time; one more would wait for another's end.
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


@dataclass(frozen=True)
class Retries:
    """How often in a row a call may fail without having brought anything new, and the seconds between the attempts.

    Each pause is a random part, at least half, of `first * factor ** (failures - 1)`, at most `longest`.
    """

    limit: int = 10
    first: float = 0.1
    factor: float = 2.0
    longest: float = 15.0

    def pause(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row."""
        return min(self.longest, self.first * self.factor ** (failures - 1)) * random.uniform(0.5, 1)


class Call:
    """A call that streams messages, and the last moment at which the next one may come."""

    def __init__(self, call: Any, channel: _Channel, patience: float, clock: Clock) -> None:
        self.call, self.channel, self.patience, self.clock = call, channel, patience, clock
        self.deadline: float | None = None

    def messages(self) -> Iterator[Any]:
        """Yield the messages. Raises grpc.RpcError, also after the watch has cancelled the call."""
        following = self.call.__next__
        try:
            while True:
                self.deadline = self.clock.seconds() + self.patience
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
        self.calls: set[Call] = set()


class GoogleService(ABC):
    """This process's connections to a service: as many as its open streams need. Use it in a `with` statement."""

    name: ClassVar[str]  # as people call it
    host: ClassVar[str]
    scopes: ClassVar[tuple[str, ...]]
    emulator_variable: ClassVar[str]  # of the environment

    def __init__(self, emulator: str | None, retries: Retries | None = None, clock: Clock | None = None) -> None:
        """Connect on first use, to the emulator at this address if there is one."""
        self.retries = retries or Retries()
        self.clock = clock or Clock()
        self._emulator = emulator
        self._channels: list[_Channel] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._watch: threading.Thread | None = None
        self._credentials: Any = None

    @abstractmethod
    def explain(self, problem: grpc.RpcError) -> JobError:
        """Return the error for a failure that a retry does not cure: one sentence, what is wrong and what to do."""

    def __enter__(self) -> Self:
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

    def retried(self, attempt: Callable[[], _Result]) -> _Result:
        """Return what `attempt` returns, tried again after each failure that may pass. Raises JobError."""
        failures = 0
        while True:
            try:
                return attempt()
            except grpc.RpcError as problem:
                failures = self.failed(problem, failures)

    def failed(self, problem: grpc.RpcError, failures: int) -> int:
        """Wait before another attempt and return the number of failures. Raises JobError where there is none."""
        if not _may_pass(problem):
            raise self.explain(problem) from None
        why = "it sent nothing" if _hung(problem) else f"{code_of(problem)}: {details_of(problem)}"
        return self.count_failure(failures, why)

    def count_failure(self, failures: int, why: str) -> int:
        """Wait before another attempt and return the number of failures. Raises Fault where they are too many."""
        failures += 1
        if failures > self.retries.limit:
            raise Fault(
                f"{self.name} failed {failures} times in a row ({why}): run the same command again when it answers."
            ) from None
        self.pause(failures)
        return failures

    def pause(self, failures: int) -> None:
        """Wait as long as after so many failures. Raises Fault when the client is closed meanwhile."""
        if self.clock.wait(self._closed, self.retries.pause(failures)):
            raise Fault(f"Stopped while {self.name} did not answer: run the same command again.") from None

    def call(
        self, method: str, request: Any, response: Any, metadata: Sequence[tuple[str, str]], timeout: float = 60
    ) -> Any:
        """Return the answer of a method that streams nothing, waited for at most `timeout` seconds.

        `request` is a message of protobuf, `response` the class of proto-plus for the answer; the answer itself is a
        message of protobuf. Raises grpc.RpcError.
        """
        call = self._free_channel().grpc.unary_unary(
            method,
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.pb().FromString,
        )
        return call(request, timeout=timeout, metadata=metadata)

    def stream(
        self, method: str, request: Any, response: Any, metadata: Sequence[tuple[str, str]], patience: float
    ) -> Call:
        """Start a streaming call. It is cancelled after a wait of `patience` seconds for one message."""
        channel = self._free_channel()
        call = channel.grpc.unary_stream(
            method,
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.pb().FromString,
        )(request, metadata=metadata)
        opened = Call(call, channel, patience, self.clock)
        channel.calls.add(opened)
        self._start_watch()
        return opened

    def _free_channel(self) -> _Channel:
        with self._lock:
            if self._closed.is_set():
                raise Fault(f"Stopped: the connection to {self.name} is closed.")
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
            # The thread that asks for a message of a stream also receives it: a quarter less CPU time for each message.
            (ChannelOptions.SingleThreadedUnaryStream, 1),
        ]
        if self._emulator:
            return grpc.insecure_channel(self._emulator, options=options)
        from google.api_core import grpc_helpers

        try:
            if self._credentials is None:
                import google.auth

                self._credentials, _ = google.auth.default(scopes=self.scopes)
            return grpc_helpers.create_channel(
                f"{self.host}:443", credentials=self._credentials, default_host=self.host, options=options
            )
        except Exception as problem:
            # Only the kind of the problem: what libraries say of credentials is not for a log.
            raise UsageError(
                f"No credentials for {self.name} were found ({type(problem).__name__}): the job uses Google's "
                f"application default credentials; set them up, or {self.emulator_variable} for the emulator."
            ) from None

    def _start_watch(self) -> None:
        if self._watch is None:
            self._watch = threading.Thread(target=self._cancel_what_hangs, name=f"{self.name} watch", daemon=True)
            self._watch.start()

    def _cancel_what_hangs(self) -> None:
        while not self._closed.wait(0.1):
            now = self.clock.seconds()
            with self._lock:
                calls = [call for channel in self._channels for call in list(channel.calls)]
            for call in calls:
                if call.deadline is not None and call.deadline < now:
                    call.call.cancel()


def code_of(problem: grpc.RpcError) -> str:
    """Return the name of a failure's code."""
    return str(problem.code().name)


def details_of(problem: grpc.RpcError) -> str:
    """Return the first line of the service's message about a failure."""
    line = (problem.details() or "").strip().partition("\n")[0].rstrip(".: ")
    # A session's name is nobody's business.
    line = re.sub(r"/sessions/\S+", "/sessions/...", line)
    return line if len(line) <= 300 else line[:300] + "..."


def _hung(problem: grpc.RpcError) -> bool:
    # Nobody but the watch cancels a call that somebody still reads.
    return bool(problem.code() == grpc.StatusCode.CANCELLED)


def without_credentials(problem: grpc.RpcError) -> bool:
    """Whether a call failed for want of credentials that are accepted."""
    return problem.code() == grpc.StatusCode.UNAUTHENTICATED or _NO_TOKEN in (problem.details() or "")


def _may_pass(problem: grpc.RpcError) -> bool:
    if without_credentials(problem):
        return False
    if problem.code() in _RETRIED or _hung(problem):
        return True
    lost = problem.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)
    return lost and bool(_BROKEN.search(problem.details() or ""))
