"""Calls of Bigtable over the bare gRPC methods of google.bigtable.v2, with the client library's messages.

The library has no reader of change streams: the methods are there for Apache Beam's connector.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

import grpc
from google.cloud.bigtable_v2 import types

from reconcile_jobs.google_service import Call, GoogleService, Retries, code_of, details_of, without_credentials
from reconcile_jobs.process.clock import Clock
from reconcile_jobs.process.errors import Fault, JobError, UsageError

__all__ = ["Client", "SourceTable"]

_SERVICE = "/google.bigtable.v2.Bigtable"


@dataclass(frozen=True)
class SourceTable:
    """A table, the app profile to read it with, and the address of a local server where that is meant.

    No credentials: those are the environment's.
    """

    project: str
    instance: str
    table: str
    app_profile: str
    emulator: str | None = None

    @classmethod
    def from_environment(cls, project: str, instance: str, table: str, app_profile: str) -> SourceTable:
        """Return the table, with the emulator that the environment may name. Raises UsageError for what is no name."""
        for option, text in (
            ("project", project),
            ("instance", instance),
            ("table", table),
            ("app-profile", app_profile),
        ):
            if not re.fullmatch(r"[\w.:-]+", text):
                raise UsageError(
                    f"--{option} {text!r} is not a valid name for Bigtable: use only letters, digits, _ . and -."
                )
        return cls(project, instance, table, app_profile, os.environ.get("BIGTABLE_EMULATOR_HOST") or None)

    @property
    def path(self) -> str:
        """The table's name as Bigtable's methods take it."""
        return f"projects/{self.project}/instances/{self.instance}/tables/{self.table}"

    def __str__(self) -> str:
        return self.path


class Client(GoogleService):
    """This process's connections to the service of one table."""

    name: ClassVar[str] = "Bigtable"
    host: ClassVar[str] = "bigtable.googleapis.com"
    scopes: ClassVar[tuple[str, ...]] = ("https://www.googleapis.com/auth/bigtable.data",)
    emulator_variable: ClassVar[str] = "BIGTABLE_EMULATOR_HOST"

    def __init__(self, source: SourceTable, retries: Retries | None = None, clock: Clock | None = None) -> None:
        """Connect on first use."""
        super().__init__(source.emulator, retries, clock)
        self.source = source

    def open(self, method: str, request: Any, response: Any, patience: float) -> Call:
        """Start a streaming call. It is cancelled after a wait of `patience` seconds for one message.

        `request`, a protobuf message, gets the names of the table and of the app profile.
        """
        source = self.source
        request.table_name, request.app_profile_id = source.path, source.app_profile
        routed = f"table_name={quote(source.path, safe='')}&app_profile_id={quote(source.app_profile, safe='')}"
        metadata = [("google-cloud-resource-prefix", source.path), ("x-goog-request-params", routed)]
        return self.stream(f"{_SERVICE}/{method}", request, response, metadata, patience)

    def rows(self, method: str, request: Any, response: Any) -> list[Any]:
        """Return all messages of a short stream. Raises JobError."""

        def once() -> list[Any]:
            call = self.open(method, request, response, patience=60)
            try:
                return list(call.messages())
            finally:
                call.close()

        return self.retried(once)

    def partitions(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the first key and the end of each partition that the change stream has now. Raises JobError."""
        request = types.GenerateInitialChangeStreamPartitionsRequest.pb()()
        response = types.GenerateInitialChangeStreamPartitionsResponse
        for message in self.rows("GenerateInitialChangeStreamPartitions", request, response):
            rows = message.partition.row_range
            yield rows.start_key_closed, rows.end_key_open

    def sample_row_keys(self) -> list[bytes]:
        """Return keys that divide the table into parts of about one size, in order, without the ends."""
        keys = {
            message.row_key
            for message in self.rows("SampleRowKeys", types.SampleRowKeysRequest.pb()(), types.SampleRowKeysResponse)
        }
        return sorted(keys - {b""})

    def explain(self, problem: grpc.RpcError) -> JobError:
        """Return the error for a failure that a retry does not cure: one sentence, what is wrong and what to do."""
        code, details, source = problem.code(), details_of(problem), self.source
        if without_credentials(problem):
            # Nothing of the details: what libraries say of credentials is not for a log.
            return UsageError(
                "Bigtable does not accept the application default credentials: renew them, and run the same command "
                "again."
            )
        if code == grpc.StatusCode.PERMISSION_DENIED:
            return UsageError(
                f"Permission denied on {source} ({details}): grant the job's account the right to read the table, for "
                "example with the role Bigtable Reader, and for append.py also its change stream, for example with the "
                "role Bigtable Administrator."
            )
        for pattern, sentence in _KNOWN:
            if re.search(pattern, details, re.IGNORECASE):
                return UsageError(sentence.format(source=source, profile=source.app_profile, details=details))
        if code == grpc.StatusCode.NOT_FOUND:
            return UsageError(
                f"Bigtable does not find {source}, or the app profile {source.app_profile} ({details}): check "
                "--project, --instance, --table and --app-profile."
            )
        if code == grpc.StatusCode.OUT_OF_RANGE:
            return UsageError(_TOO_OLD.format(source=source, details=details))
        return Fault(f"Bigtable refused a call on {source} ({code_of(problem)}): {details}.")


_TOO_OLD = (
    "The change stream of {source} no longer has the changes that come next ({details}): they are older than the "
    "retention period. Append to a new staging table with --backfill."
)

# No document gives the service's own words: these are looked for, in this order, before its codes are.
_KNOWN = [
    (
        r"single.?cluster|(?:app|application).?profile.*rout|rout.*(?:app|application).?profile|multi.?cluster",
        "The app profile {profile} cannot read a change stream ({details}): name one with single-cluster routing with "
        "--app-profile.",
    ),
    (
        r"change.?stream(?:s|ing)?\b.*(?:not|n't|isn't)\s+(?:been\s+)?(?:enabled|configured|set)|"
        r"(?:not enabled|disabled).*change.?stream|change.?stream.*disabled|does not have.*change.?stream",
        "The table {source} has no change stream ({details}): enable it, with a retention period, and run the same "
        "command again.",
    ),
    (
        r"start.?time.*future|future.*start.?time|greater than (?:the )?current time",
        "--start is in the future for Bigtable ({details}): give an earlier time, or correct the clock of this "
        "machine.",
    ),
    (
        r"start.?time.*(?:retention|creat|too (?:old|early)|before|earl)|(?:retention|creat).*start.?time",
        "The change stream of {source} does not go back to --start ({details}): give a start within the retention "
        "period and not before the change stream was enabled.",
    ),
    (r"retention|too old|expired|no longer available|garbage.?collected", _TOO_OLD),
]
