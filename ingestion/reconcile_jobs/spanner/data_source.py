"""The Spark data source `spanner_change_stream`: a change stream in windows, streaming or as a batch.

    spark.dataSource.register(SpannerChangeStream)
    spark.readStream.format("spanner_change_stream").options(
        project="p", instance="i", database="d", stream="everything", start="2026-05-01T09:00:00Z"
    ).load()

Rows are `record` (a data change record whole, as JSON), `object` (its table) and `origin` (stream/partition token).
Options: `start`, the first commit timestamp (a streaming query asks for it again until its first batch is done, so it
is no moving target: it must be given); `end`, the last one (a batch needs it); `window`, at most so long a time in one
micro-batch (60s); `heartbeat` (10s); `readers`, at most so many Spark tasks (64); `partitionCheck`, fail or warn: what
becomes of a partition of which nobody says how it ended; `emulatorHost`, where SPANNER_EMULATOR_HOST is not set in the
processes of Spark; `control`, true for the two rows that `append.py` needs:
object `#cut`, the window's `start` and `cut_time`, and for each task `#read`, its `leaves` and its number of `records`.

A partition that ends without a child is asked again; that a child was named by none of its parents no task
can see: `append.py` compares the leaves of all tasks with Spanner's partitions at the window's end, and any query can
with `control`.

The offset of a streaming query is one timestamp, where the next window begins. A window [t0, t1] never ends in the
future, and the next begins a nanosecond after t1, so each batch is a consistent cut: every commit up to t1, across
partitions and tables. The same offsets give the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from reconcile_jobs.long_records import LONGEST
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.spanner.queries import Client, DatabaseName
from reconcile_jobs.spanner.stream_decoder import DataChange, compact_json
from reconcile_jobs.spanner.windows import ChangeStream, Leaf, find_change_stream, list_partitions, read_partitions
from reconcile_jobs.staging import RAW_ROWS, raw_rows
from reconcile_jobs.timestamps import as_text, nanoseconds

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CUT", "READ", "Options", "SpannerChangeStream", "next_start", "seconds", "window_length"]

# Objects that are no tables: a table's name has no #.
CUT = "#cut"
READ = "#read"

# Of rows that Python hands to Spark at a time: their number, and the characters of their records.
_ROWS = 5000
_CHARACTERS = 8_000_000

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """Return the seconds of 500ms, 60s, 5m or 1h. Raises ValueError."""
    for unit, length in _UNITS.items():
        number = text.strip().removesuffix(unit)
        if number != text.strip() and number.strip().isdigit() and int(number) > 0:
            return int(number) * length
    raise ValueError(f"{text} is not an interval; write 30s, 5m or 1h")


def window_length(text: str) -> int:
    """Return the nanoseconds of a window's longest time, given as for `seconds`. Raises ValueError."""
    return round(1000 * seconds(text)) * 10**6


@dataclass(frozen=True)
class Options:
    """What a query of the source asks for; moments in nanoseconds since 1970, `window` in nanoseconds too."""

    database: DatabaseName
    stream: str
    start: int
    end: int | None
    window: int
    heartbeat: int  # milliseconds
    readers: int
    lenient: bool
    control: bool
    longest: int  # bytes of a record

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Options:
        """Read the options of a query. Raises UsageError."""
        missing = [name for name in ("project", "instance", "database", "stream", "start") if not options.get(name)]
        if missing:
            raise UsageError(f"spanner_change_stream needs the option {', '.join(missing)}.")
        check = options.get("partitionCheck", "fail")
        if check not in ("fail", "warn"):
            raise UsageError(f"The option partitionCheck is {check}; it must be fail or warn.")
        try:
            heartbeat = round(1000 * seconds(options.get("heartbeat", "10s")))
            parsed = cls(
                DatabaseName.from_environment(
                    options["project"], options["instance"], options["database"], options.get("emulatorHost")
                ),
                options["stream"],
                nanoseconds(options["start"]),
                nanoseconds(options["end"]) if options.get("end") else None,
                window_length(options.get("window", "60s")),
                heartbeat,
                int(options.get("readers", "64")),
                check == "warn",
                options.get("control", "false").lower() == "true",
                int(options.get("longestRecord", str(LONGEST))),
            )
        except ValueError as problem:
            raise UsageError(f"An option of spanner_change_stream is wrong: {problem}.") from None
        if not 1000 <= heartbeat <= 300_000:
            raise UsageError("The option heartbeat is out of range: Spanner takes 1s to 300s.")
        if parsed.readers < 1:
            raise UsageError("The option readers must be a number from 1 on.")
        return parsed


class SpannerChangeStream(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        """Return what `format` takes."""
        return "spanner_change_stream"

    def schema(self) -> str:
        """Return the columns."""
        return RAW_ROWS

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """Return what reads window after window."""
        return _StreamReader(Options.parse(self.options))

    def reader(self, schema: Any) -> DataSourceReader:
        """Return what reads one window. Raises UsageError without `end`."""
        options = Options.parse(self.options)
        if options.end is None:
            raise UsageError("spanner_change_stream needs the option end, except in a streaming query.")
        if options.end < options.start:
            raise UsageError("The option end is before the option start.")
        return _BatchReader(options, options.end)


class _Share(InputPartition):
    """What one Spark task reads of a window."""

    def __init__(
        self,
        stream: ChangeStream,
        session: str,
        tokens: list[tuple[str, str]],
        end: int,
        alive_at_end: frozenset[str],
        first: list[tuple[str, str, str]],
        lenient: bool,
        control: bool,
        longest: int,
    ) -> None:
        self.stream, self.session, self.tokens, self.end = stream, session, tokens, end
        self.alive_at_end, self.first = alive_at_end, first
        self.lenient, self.control, self.longest = lenient, control, longest


class _Planner:
    """The driver's side: one connection, and what a window consists of."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._client: Client | None = None
        self._stream: ChangeStream | None = None

    def client(self) -> Client:
        if self._client is None:
            self._client = Client(self.options.database)
        return self._client

    def stream(self) -> ChangeStream:
        if self._stream is None:
            self._stream = find_change_stream(self.client(), self.options.stream, self.options.heartbeat)
        return self._stream

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def shares(self, start: int, end: int) -> list[_Share]:
        """Return the tasks of the window from `start` to `end`, both included."""
        options, client, stream = self.options, self.client(), self.stream()
        listing = list_partitions(client, stream, start, end)
        alive_at_end = frozenset(list_partitions(client, stream, end, end).tokens)
        tokens = sorted(listing.tokens.items())
        count = min(len(tokens), options.readers)
        # Records are not expected of the initial query; were there any, they would count.
        first = [_row(stream.name, "", record) for record in listing.records]
        if options.control:
            cut = compact_json({"start": as_text(start), "cut_time": as_text(end)})
            first.insert(0, (cut, CUT, stream.name))
        return [
            _Share(
                stream,
                client.session,
                tokens[number::count],
                end,
                alive_at_end,
                first if number == 0 else [],
                options.lenient,
                options.control,
                options.longest,
            )
            for number in range(count)
        ]


def _row(stream: str, token: str, record: DataChange) -> tuple[str, str, str]:
    return record.json, record.table, f"{stream}/{token}"


def _read(share: Any) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task."""
    rows, size, count = list(share.first), 0, 0
    leaves: list[str] = []
    with Client(share.stream.database, share.session) as client:
        for found in read_partitions(client, share.stream, share.tokens, share.end, share.alive_at_end, share.lenient):
            if isinstance(found, Leaf):
                leaves.append(found.token)
                continue
            token, record = found
            rows.append(_row(share.stream.name, token, record))
            size += len(record.json)
            count += 1
            if len(rows) >= _ROWS or size >= _CHARACTERS:
                yield raw_rows(*zip(*rows, strict=True), longest=share.longest)
                rows, size = [], 0
    if share.control:
        records = count + sum(row[1] != CUT for row in share.first)
        rows.append((compact_json({"leaves": leaves, "records": records}), READ, share.stream.name))
    if rows:
        yield raw_rows(*zip(*rows, strict=True), longest=share.longest)


def next_start(offset: Mapping[str, str]) -> int:
    """Return where the window after an offset begins, in nanoseconds since 1970."""
    return nanoseconds(offset["next"])


def _offset(start: int) -> dict[str, str]:
    return {"next": as_text(start)}


class _StreamReader(DataSourceStreamReader):
    def __init__(self, options: Options) -> None:
        self._options = options
        self._planner = _Planner(options)
        self._at: int | None = None  # where the next window begins, after the last planned one; None: none planned yet

    def initialOffset(self) -> dict[str, str]:
        return _offset(self._options.start)

    def latestOffset(self) -> dict[str, str]:
        # Spark does not say where the query is: it is where the last window that it planned ended.
        at = self._options.start if self._at is None else self._at
        end = self._options.end
        if end is not None and at > end:
            return _offset(at)
        # t1 comes from Spanner's clock: what is committed later has a later timestamp.
        latest = self._planner.client().now()
        until = min(latest, at + self._options.window - 1, latest if end is None else end)
        return _offset(max(at, until + 1))

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        first, after = next_start(start), next_start(end)
        if after < first:
            raise UsageError(
                f"The checkpoint is already at {start['next']}, later than the option end: give a later end."
            )
        self._at = after
        # After a restart Spark asks for the empty range after the last batch.
        return [] if first == after else self._planner.shares(first, after - 1)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(partition)

    def stop(self) -> None:
        self._planner.close()

    def __getstate__(self) -> dict[str, Any]:
        # Executors get the reader without the driver's connection.
        return {"_options": self._options, "_planner": _Planner(self._options), "_at": None}


class _BatchReader(DataSourceReader):
    def __init__(self, options: Options, end: int) -> None:
        self._options, self._end = options, end

    def partitions(self) -> Sequence[InputPartition]:
        planner = _Planner(self._options)
        try:
            return planner.shares(self._options.start, self._end)
        finally:
            planner.close()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(partition)
