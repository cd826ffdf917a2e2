"""As much of a Spark session as the readers' jobs use, in plain Python: tables in memory, micro-batches, no JVM.

What a job decides (where it begins, what it appends, refuses, reads again) is the same over this session and over a
real one, at a thousandth of the cost. Fixtures that have both prove the promises on this one in `make test`, and on
Spark in `make matrix`; what only Spark and a table format can break is tested on them in `make test` too.

Tables are of a format that works as Delta Lake does: its log knows the last `txnVersion` of each `txnAppId`, and goes
on knowing it where the table, rows and properties, is set back to an older version. SQLite reads the conditions.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import sqlite3
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row
from reconcile_jobs import table_formats
from reconcile_jobs.staging import Staging
from sqlite_functions import teach

_PAIR = re.compile(r"'((?:[^'\\]|\\.)*)' = '((?:[^'\\]|\\.)*)'")
_NAME = re.compile(r"`?(\w+)`?\.`?(\w+)`?")

Rows = list[dict[str, Any]]


def _select(rows: Rows, what: str, where: str = "true") -> Rows:
    """Return what an SQL expression makes of rows."""
    columns = list(rows[0]) if rows else ["record", "source", "object", "origin", "batch", "appended_at"]
    with sqlite3.connect(":memory:") as base:
        teach(base)
        base.execute(f"CREATE TABLE t ({', '.join(columns)})")
        marks = ", ".join("?" * len(columns))
        base.executemany(f"INSERT INTO t VALUES ({marks})", [tuple(row.values()) for row in rows])
        found = base.execute(f"SELECT {what} FROM t WHERE {where}")
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found]


class Frame:
    """A data frame: rows that are read when they are asked for, and read once where it is persisted."""

    def __init__(
        self, session: Session, read: Callable[[], Rows], columns: tuple[str, ...] = (), dtypes: tuple[Any, ...] = ()
    ) -> None:
        self.sparkSession, self._read, self._columns, self.dtypes = session, read, columns, [*dtypes]
        self.is_cached = False
        self._kept: Rows | None = None

    def all(self) -> Rows:
        """Return the rows."""
        if not self.is_cached:
            return self._read()
        if self._kept is None:
            self._kept = self._read()
        return self._kept

    def persist(self, level: Any = None) -> Frame:
        self.is_cached = True
        return self

    def unpersist(self, blocking: bool = False) -> Frame:
        self.is_cached, self._kept = False, None
        return self

    @property
    def columns(self) -> list[str]:
        return list(self._columns or (self.all() or [{}])[0])

    def where(self, condition: str) -> Frame:
        return Frame(self.sparkSession, lambda: _select(self.all(), "*", condition), self._columns)

    def select(self, *columns: str) -> Frame:
        return Frame(self.sparkSession, lambda: [{name: row[name] for name in columns} for row in self.all()], columns)

    def selectExpr(self, *expressions: str) -> Frame:
        return Frame(self.sparkSession, lambda: _select(self.all(), ", ".join(expressions)))

    def unionByName(self, other: Frame) -> Frame:
        return Frame(self.sparkSession, lambda: [*self.all(), *other.all()], self._columns)

    def orderBy(self, *columns: str, ascending: bool = True) -> Frame:
        def ordered() -> Rows:
            def key(row: dict[str, Any]) -> list[tuple[bool, Any]]:
                return [(row[name] is not None, row[name]) for name in columns]

            return sorted(self.all(), key=key, reverse=not ascending)

        return Frame(self.sparkSession, ordered, self._columns)

    def limit(self, count: int) -> Frame:
        return Frame(self.sparkSession, lambda: self.all()[:count], self._columns)

    def groupBy(self, name: str) -> _Groups:
        return _Groups(self, name)

    def isEmpty(self) -> bool:
        return not self.all()

    def count(self) -> int:
        return len(self.all())

    def collect(self) -> list[Row]:
        return [Row(**row) for row in self.all()]

    def mapInArrow(self, function: Callable[[Iterator[Any]], Iterator[Any]], schema: str) -> Frame:
        """As tasks, one for each row, all at the same time; each brings its rows whole, or none."""

        def task(number: int) -> Rows:
            batch = pa.RecordBatch.from_pydict({"id": [number]})
            return [row for made in function(iter([batch])) for row in made.to_pylist()]

        def read() -> Rows:
            numbers = [row["id"] for row in self.all()]
            with ThreadPoolExecutor(max(1, len(numbers))) as tasks:
                return list(itertools.chain.from_iterable(tasks.map(task, numbers)))

        types = [tuple(column.split()) for column in schema.split(", ")]
        return Frame(self.sparkSession, read, tuple(name for name, _ in types), tuple(types))

    def writeTo(self, name: str) -> _TableWriter:
        return _TableWriter(self, name)

    @property
    def write(self) -> _Writer:
        return _Writer(self)


class _Groups:
    def __init__(self, frame: Frame, name: str) -> None:
        self._frame, self._name = frame, name

    def agg(self, what: Mapping[str, str]) -> Frame:
        ((column, function),) = what.items()
        assert function == "collect_list"

        def read() -> Rows:
            groups: dict[Any, list[Any]] = {}
            for row in self._frame.all():
                groups.setdefault(row[self._name], []).append(row[column])
            return [{self._name: key, "list": values} for key, values in groups.items()]

        return Frame(self._frame.sparkSession, read)


class _Writer:
    def __init__(self, frame: Frame) -> None:
        self._frame, self._options = frame, dict[str, Any]()

    def format(self, name: str) -> _Writer:
        assert name == "delta"
        return self

    def mode(self, name: str) -> _Writer:
        assert name == "append"
        return self

    def option(self, name: str, value: Any) -> _Writer:
        self._options[name] = value
        return self

    def saveAsTable(self, name: str) -> None:
        """Append in one commit, unless this or a later version of the application was appended before."""
        table = self._frame.sparkSession.tables[_plain(name)]
        rows = [dict(row) for row in self._frame.all()]
        with table.committing:
            application, version = self._options["txnAppId"], self._options["txnVersion"]
            if table.transactions.get(application, -1) < version:
                table.transactions[application] = version
                table.add([*table.rows, *rows])


class _TableWriter:
    """What makes a table anew, in one commit, with the rows of a frame: of all of them, or of none."""

    def __init__(self, frame: Frame, name: str) -> None:
        self._frame, self._name, self._properties = frame, name, dict[str, str]()

    def using(self, name: str) -> _TableWriter:
        assert name == "delta"
        return self

    def tableProperty(self, key: str, value: str) -> _TableWriter:
        self._properties[key] = value
        return self

    def createOrReplace(self) -> None:
        rows = [dict(row) for row in self._frame.all()]
        table = self._frame.sparkSession.tables[_plain(self._name)] = _Table(self._properties)
        table.add(rows)


class _Table:
    def __init__(self, properties: dict[str, str]) -> None:
        self.properties = properties
        self.versions: list[tuple[Rows, dict[str, str]]] = []
        self.add([])
        self.transactions: dict[str, int] = {}
        self.committing = threading.Lock()

    @property
    def rows(self) -> Rows:
        return self.versions[-1][0]

    def add(self, rows: Rows) -> None:
        self.versions.append((rows, dict(self.properties)))


def _plain(name: str) -> str:
    return name.replace("`", "").lower()


class _Path:
    """A path of Hadoop's, of local files."""

    def __init__(self, *parts: str) -> None:
        self.place = Path(*(part.removeprefix("file:") for part in parts))

    def getFileSystem(self, configuration: Any) -> _Files:
        return _Files()

    def getName(self) -> str:
        return self.place.name


class _Files:
    def exists(self, path: _Path) -> bool:
        return path.place.exists()

    def makeQualified(self, path: _Path) -> Any:
        return SimpleNamespace(toString=lambda: f"file:{path.place.absolute()}")

    def open(self, path: _Path) -> Any:
        content = path.place.read_bytes()
        return SimpleNamespace(content=content, close=lambda: None)

    def getFileStatus(self, path: _Path) -> Any:
        return SimpleNamespace(isFile=path.place.is_file)

    def listStatus(self, path: _Path) -> list[Any]:
        files = [path.place] if path.place.is_file() else path.place.iterdir()
        return [SimpleNamespace(getPath=lambda file=file: _Path(str(file))) for file in files]

    def delete(self, path: _Path, recursive: bool) -> None:
        if path.place.is_dir():
            assert recursive or not any(path.place.iterdir())
            shutil.rmtree(path.place)
        elif path.place.exists():
            path.place.unlink()


class Session:
    """The session."""

    def __init__(self) -> None:
        settings = {"spark.sql.catalog.spark_catalog": "delta", "spark.sql.extensions": "delta"}
        self.conf = SimpleNamespace(
            get=lambda key, default=None: settings.get(key, default),
            set=settings.__setitem__,
            unset=lambda key: settings.pop(key, None),
        )
        self.tables: dict[str, _Table] = {}
        self.sparkContext = SimpleNamespace(defaultParallelism=2)
        self.catalog = SimpleNamespace(
            tableExists=lambda name: _plain(name) in self.tables, databaseExists=lambda name: True
        )
        fs = SimpleNamespace(Path=_Path)
        bytes_of = SimpleNamespace(IOUtils=SimpleNamespace(toByteArray=lambda stream: stream.content))
        apache = SimpleNamespace(hadoop=SimpleNamespace(fs=fs), commons=SimpleNamespace(io=bytes_of))
        self._jvm = SimpleNamespace(org=SimpleNamespace(apache=apache))
        self._jsc = SimpleNamespace(hadoopConfiguration=lambda: None)
        self.intervals: list[float] = []  # that queries have waited between two batches
        self._sources: dict[str, Any] = {}
        self.dataSource = SimpleNamespace(register=lambda source: self._sources.__setitem__(source.name(), source))

    def table(self, name: str) -> Any:
        table = self.tables[_plain(name)]
        frame = Frame(self, lambda: table.rows)
        types = "record string, source string, object string, origin string, batch bigint, appended_at timestamp"
        fields = [
            SimpleNamespace(name=name, dataType=SimpleNamespace(simpleString=lambda kind=kind: kind))
            for name, kind in (column.split() for column in types.split(", "))
        ]
        frame.schema = SimpleNamespace(fields=fields)  # type: ignore[attr-defined]
        return frame

    def sql(self, text: str) -> Any:
        """Run one of the statements that staging and snapshots consist of."""
        if text.startswith("CREATE SCHEMA"):
            return Frame(self, list)
        found = _NAME.search(text)
        assert found, text
        name = _plain(found[0])
        verb = " ".join(text.split()[:2]).upper()
        if verb == "CREATE TABLE":
            properties = _unescaped(text.partition("TBLPROPERTIES")[2])
            self.tables.setdefault(name, _Table(properties))
        elif verb == "ALTER TABLE":
            self.tables[name].properties |= _unescaped(text.partition("SET TBLPROPERTIES")[2])
        elif verb == "DESCRIBE DETAIL":
            detail = {"format": "delta", "properties": dict(self.tables[name].properties)}
            return Frame(self, lambda: [detail])
        elif verb == "SHOW TBLPROPERTIES":
            properties = dict(self.tables[name].properties)
            return Frame(self, lambda: [{"key": key, "value": value} for key, value in properties.items()])
        elif verb == "DELETE FROM":
            self.tables[name].add([])
        elif verb == "RESTORE TABLE":
            table = self.tables[name]
            rows, table.properties = table.versions[int(text.split()[-1])]
            table.add(rows)
        elif verb == "ROLLBACK TABLE":  # as Iceberg does it: properties stay as they are
            table = self.tables[name]
            table.add(table.versions[int(text.split()[-1])][0])
        elif verb == "DROP TABLE":
            self.tables.pop(name, None)
        else:
            raise AssertionError(f"no statement of staging or of a snapshot: {text}")
        return Frame(self, list)

    def range(self, start: int, end: int, step: int, partitions: int) -> Frame:
        return Frame(self, lambda: [{"id": number} for number in range(start, end, step)], ("id",))

    @property
    def readStream(self) -> _Stream:
        return _Stream(self, self._sources)


def _unescaped(pairs: str) -> dict[str, str]:
    def plain(text: str) -> str:
        return re.sub(r"\\(.)", r"\1", text)

    return {plain(key): plain(value) for key, value in _PAIR.findall(pairs)}


class _Stream:
    """What `readStream` and `writeStream` are told."""

    def __init__(self, session: Session, sources: Mapping[str, Any]) -> None:
        self.session, self.sources = session, sources
        self.given: dict[str, str] = {}
        self.source: Any = None
        self.batch: Any = None
        self.interval = 0.0

    def format(self, name: str) -> _Stream:
        self.source = self.sources[name]
        return self

    def option(self, name: str, value: Any) -> _Stream:
        self.given[name] = str(value).lower() if isinstance(value, bool) else str(value)
        return self

    def options(self, **options: Any) -> _Stream:
        for name, value in options.items():
            self.option(name, value)
        return self

    def load(self) -> _Stream:
        return self

    @property
    def writeStream(self) -> _Stream:
        return self

    def foreachBatch(self, batch: Any) -> _Stream:
        self.batch = batch
        return self

    def trigger(self, processingTime: str) -> _Stream:
        number, unit = processingTime.split()
        self.interval = int(number) * {"seconds": 1, "minutes": 60, "hours": 3600}[unit]
        return self

    def start(self) -> _Query:
        return _Query(self)


class _Query:
    """A query: micro-batches, each planned in the checkpoint before it is read and noted there after it is appended."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream
        self._checkpoint = Path(stream.given["checkpointLocation"].removeprefix("file:"))
        for part in ("offsets", "commits"):
            (self._checkpoint / part).mkdir(parents=True, exist_ok=True)
        metadata = self._checkpoint / "metadata"
        if not metadata.exists():
            metadata.write_text(json.dumps({"id": str(uuid.uuid4())}))
        self.id = json.loads(metadata.read_text())["id"]
        self._jsq = self
        self._progress: Any = None
        self._problem: Exception | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def awaitTermination(self, timeout: float) -> bool:
        self._thread.join(min(timeout, 0.01))
        if self._problem is not None:
            # What Spark says of a failure is its whole story as a text.
            raise StreamingQueryException("".join(traceback.format_exception(self._problem))) from None
        return not self._thread.is_alive()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(30)

    def lastProgress(self) -> Any:
        return self._progress

    def _run(self) -> None:
        try:
            reader = self._stream.source(self._stream.given).streamReader(None)
            try:
                self._follow(reader)
            finally:
                reader.stop()
        except Exception as problem:
            self._problem = problem

    def _follow(self, reader: Any) -> None:
        offsets, commits = (self._checkpoint / part for part in ("offsets", "commits"))
        done = max((int(file.name) for file in commits.iterdir()), default=-1)
        at = self._planned(done) if done >= 0 else reader.initialOffset()
        if done >= 0:
            reader.partitions(at, at)  # as Spark does after a restart
        while not self._stopped.is_set():
            epoch = done + 1
            if (offsets / str(epoch)).exists():
                end = self._planned(epoch)
            else:
                end = reader.latestOffset()
                if end == at:
                    self._stopped.wait(0.01)
                    continue
                (offsets / str(epoch)).write_text(f"v1\n{{}}\n{json.dumps(end)}")
            # Planned once: what is read again is read by the same plan.
            shares = reader.partitions(at, end)
            columns = ("record", "object", "origin")
            frame = Frame(self._stream.session, lambda shares=shares: _rows_of(reader, shares), columns)
            self._stream.batch(frame, epoch)
            (commits / str(epoch)).write_text("v1\n{}")
            done, at = epoch, end
            self._progress = SimpleNamespace(
                batchId=lambda epoch=epoch: epoch,
                json=lambda end=end: json.dumps({"sources": [{"endOffset": end}]}),
            )
            # An interval between batches, however long, takes a moment.
            self._stream.session.intervals.append(self._stream.interval)
            if self._stopped.wait(0.1 if self._stream.interval else 0.0):
                return

    def _planned(self, epoch: int) -> Any:
        return json.loads((self._checkpoint / "offsets" / str(epoch)).read_text().splitlines()[2])


def _rows_of(reader: Any, shares: Any) -> Rows:
    return [row for share in shares for made in reader.read(share) for row in made.to_pylist()]


def stage_in_plain_python(monkeypatch: Any) -> None:
    """Let staging make its rows without Spark's functions, whose objects live in a JVM."""
    rows = Staging._rows

    def staged(self: Staging, records: Any, source: str, batch: int) -> Any:
        if not isinstance(records, Frame):
            return rows(self, records, source, batch)
        now = datetime.now(UTC)

        def read() -> Rows:
            return [
                {"record": row["record"], "source": source, "object": row["object"], "origin": row["origin"]}
                | {"batch": batch, "appended_at": now}
                for row in records.all()
            ]

        return Frame(records.sparkSession, read)

    monkeypatch.setattr(Staging, "_rows", staged)
    monkeypatch.setattr(table_formats, "_if_number_is_free", lambda rows, table, batch: rows)
    transactions = lambda spark, table: dict(spark.tables[_plain(table)].transactions)  # noqa: E731
    monkeypatch.setattr(table_formats, "_transactions", transactions)
