"""An append dies at each place where it writes anything, and the same command follows: no record is lost or doubled.

The places are counted as they are reached, in Spark's JVM (see `mortal_files.py`) or in the plain session: what writes
once more has one more round, of itself. `test_kills.py` shows that a process dies so.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import plain_spark
import pytest
from datastream import event
from fake_bigtable import FakeBigtable, set_cell
from fake_spanner import FakeSpanner
from file_formats import file_format
from process.landings import Landing, avro
from process.mortal_files import Mortal
from pyspark.sql import SparkSession
from reconcile_jobs import append_table, snapshot_differences, snapshot_job, staging
from reconcile_jobs.bigtable import job as bigtable
from reconcile_jobs.process import failpoints
from reconcile_jobs.snapshots import snapshot_table
from reconcile_jobs.snapshots.snapshot_files import load_table
from reconcile_jobs.spanner import job as spanner
from reconcile_jobs.staging import RAW_ROWS, Staging, TableName
from reconcile_jobs.timestamps import as_text
from rounds import note_rounds

pytestmark = pytest.mark.matrix
_numbers = itertools.count()
# The number of the place to begin with, to repeat a round that failed.
FROM = "RECONCILE_DEATHS_FROM"


@pytest.fixture(autouse=True)
def _nobody_else_makes_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """An append that finds a table half made waits for the other job that may be making it."""
    monkeypatch.setattr(staging, "_PATIENCE", 0)


class Append:
    """A source that something is delivered to, and the command that appends it to a staging table of its own."""

    def __init__(self, spark: Any, root: Path, server: Any = None) -> None:
        self.spark, self.server, self.number = spark, server, next(_numbers)
        self.staging = TableName(("mortal", f"staging_{self.number}"))
        self.root = root / str(self.number)
        self.root.mkdir()
        self.deliveries = 0
        self.prepare()

    def prepare(self) -> None:
        """Make what there is before the command."""

    def deliver(self) -> None:
        """Let there be something more to append."""
        raise NotImplementedError

    def append(self) -> Any:
        """Run the command."""
        raise NotImplementedError

    def expected(self) -> Counter[Any]:
        """Return what staging is to hold of all deliveries, each as often as it is to be there."""
        raise NotImplementedError

    def told(self, record: dict[str, Any]) -> Any:
        """Return of a record in staging what `expected` has of it; None: it is none of those."""
        raise NotImplementedError

    def check(self) -> None:
        rows = self.spark.table(self.staging.sql).collect()
        told = [self.told(json.loads(row.record)) for row in rows]
        assert Counter(one for one in told if one is not None) == self.expected()
        batches = {row.batch for row in rows}
        assert sorted(batches) == list(range(1, len(batches) + 1)), "no number is left out"


class Datastream(Append):
    """Files of both kinds."""

    def prepare(self) -> None:
        self.landing = Landing(self.spark, self.root)
        self.landing.table = str(self.staging)

    def deliver(self) -> None:
        number = self.deliveries = self.deliveries + 1
        self.landing.put(
            f"{number}.jsonl.gz", [{"object": "A", "n": 10 * number}, {"object": "B", "n": 10 * number + 1}]
        )
        self.landing.put(f"{number}.avro", avro({"object": "C", "n": 10 * number + 2}, n="long"))

    def append(self) -> Any:
        return self.landing.append(checkpoint=f"mortal:{self.root}/checkpoint")

    def expected(self) -> Counter[Any]:
        return Counter(10 * number + k for number in range(1, self.deliveries + 1) for k in range(3))

    def told(self, record: dict[str, Any]) -> Any:
        return int(record["n"])


class AppendTable(Append):
    """A table to which Datastream appends."""

    def prepare(self) -> None:
        self.table = TableName(("mortal", f"appended_{self.number}"))
        said = "uuid string, source_timestamp bigint, change_sequence_number string, change_type string"
        self.spark.sql(
            f"create table {self.table.sql} (id bigint, datastream_metadata struct<{said}, sort_keys array<string>>) "
            f"using {file_format()}"
        )

    def deliver(self) -> None:
        self.deliveries += 1
        number = self.deliveries
        self.spark.sql(
            f"insert into {self.table.sql} select id, named_struct('uuid', string(id), 'source_timestamp', id, "
            f"'change_sequence_number', hex(id), 'change_type', 'INSERT', 'sort_keys', array()) "
            f"from values ({10 * number}L), ({10 * number + 1}L) as t(id)"
        )

    def append(self) -> Any:
        job = append_table.Job(tables=(self.table,), staging=self.staging, object="things")
        return append_table.run(self.spark, job)

    def expected(self) -> Counter[Any]:
        return Counter(str(10 * number + k) for number in range(1, self.deliveries + 1) for k in range(2))

    def told(self, record: dict[str, Any]) -> Any:
        return record["datastream_metadata"]["uuid"] if "datastream_metadata" in record else None


class SnapshotTable(Append):
    """A snapshot of a table, whose rows are taken whole: each has a row more, and one with a new name."""

    def prepare(self) -> None:
        self.view, self.copy = (TableName(("mortal", f"{name}_{self.number}")) for name in ("rows", "copy"))

    def deliver(self) -> None:
        self.deliveries += 1
        rows = ", ".join(f"({k}L, '{self.deliveries if k == 0 else k}')" for k in range(self.deliveries + 1))
        self.spark.sql(
            f"create or replace table {self.view.sql} using {file_format()} as "
            f"select * from values {rows} as t(id, name)"
        )

    def append(self) -> Any:
        at = f"2026-05-01T{self.deliveries // 60:02}:{self.deliveries % 60:02}:00.000000000Z"
        return load_table(self.spark, self.view, self.copy, at)

    def check(self) -> None:
        taken, there = (sorted(map(tuple, self.spark.table(of.sql).collect())) for of in (self.copy, self.view))
        assert taken == there


class SnapshotDifferences(SnapshotTable):
    """Such a snapshot, staged as its differences from the one before."""

    def deliver(self) -> None:
        super().deliver()
        super().append()

    def append(self) -> Any:
        job = snapshot_differences.Job(table=self.copy, staging=self.staging, key=("id",), object="things")
        return snapshot_differences.run(self.spark, job)

    def check(self) -> None:
        Append.check(self)

    def expected(self) -> Counter[Any]:
        inserted = [("insert", str(k), str(k) if k else "1") for k in range(self.deliveries + 1)]
        return Counter([*inserted, *(("update", "0", str(k)) for k in range(2, self.deliveries + 1))])

    def told(self, record: dict[str, Any]) -> Any:
        return (record["change"], record["row"]["id"], record["row"]["name"]) if "change" in record else None


class SnapshotBesideLog(Append):
    """A snapshot that is staged beside a log."""

    def prepare(self) -> None:
        self.copy = TableName(("mortal", f"copy_{self.number}"))
        log = Staging(self.spark, self.staging, "datastream files")
        record = event("postgresql", {"id": 0, "name": "0"}, metadata={"lsn": "0/1", "tx_id": "1"})
        rows = self.spark.createDataFrame([(record, "shop_things", "a file")], RAW_ROWS)
        log.append(rows, "datastream", "log", "place", 0, ["1"])

    def deliver(self) -> None:
        self.deliveries += 1
        at = f"2026-05-01T{self.deliveries // 60:02}:{self.deliveries % 60:02}:00.000000000Z"
        said = {"": "jdbc", "position_kind": "pg_snapshot", "table": "shop.things", "taken_at": at}
        said["position"] = f"{self.deliveries + 8}:{self.deliveries + 8}:"
        named = {f"reconcile.snapshot.{name}".rstrip("."): value for name, value in said.items()}
        snapshot_table.prepare(self.spark, self.copy)
        frame = self.spark.createDataFrame([(self.deliveries, "a"), (-1, "b")], "id bigint, name string")
        snapshot_table.writer(frame, self.copy, "a copy", named).createOrReplace()

    def append(self) -> Any:
        return snapshot_job.run(self.spark, snapshot_job.Job(table=self.copy, staging=self.staging))

    def expected(self) -> Counter[Any]:
        rows = [(str(k), "a") for k in range(1, self.deliveries + 1)]
        return Counter([*rows, *[("-1", "b")] * self.deliveries])

    def told(self, record: dict[str, Any]) -> Any:
        return tuple(record["row"].values()) if "row" in record else None


class Spanner(Append):
    """A change stream of Spanner, in windows: each delivery has two."""

    def prepare(self) -> None:
        self.start = self.server.now

    def deliver(self) -> None:
        self.deliveries += 1
        for partition in ("P0", "P1"):
            self.server.now += 15 * 10**9
            self.server.commit(partition, self.server.now, f"{partition} {self.number} {self.deliveries}")
        self.server.now += 10**9

    def append(self) -> Any:
        checkpoint = str(self.root / "checkpoint")
        if isinstance(self.spark, SparkSession):
            checkpoint = f"mortal:{checkpoint}"
        job = spanner.Job(
            "p", "i", "d", "everything", self.staging, checkpoint=checkpoint, start=as_text(self.start), window="20s"
        )
        return spanner.run(self.spark, job)

    def expected(self) -> Counter[Any]:
        return Counter(f"P{p} {self.number} {n}" for n in range(1, self.deliveries + 1) for p in range(2))

    def told(self, record: dict[str, Any]) -> Any:
        return record["mods"][0]["keys"]["k"] if "mods" in record else None


class Bigtable(Append):
    """A change stream of Bigtable."""

    backfill = False

    def prepare(self) -> None:
        self.start = self.server.now()

    def deliver(self) -> None:
        self.deliveries += 1
        for key in ("a", "z"):
            self.server.commit(f"{key} {self.number} {self.deliveries}".encode(), set_cell("f", b"q", 1000, b"v"))

    def append(self) -> Any:
        job = bigtable.Job(
            "p", "i", "t", "single", self.staging, start=as_text(self.start * 1000), heartbeat=0.02, round_seconds=5.0,
            backfill=self.backfill,
        )  # fmt: skip
        return bigtable.run(self.spark, job)

    def expected(self) -> Counter[Any]:
        return Counter(f"{key} {self.number} {n}" for n in range(1, self.deliveries + 1) for key in "az")

    def told(self, record: dict[str, Any]) -> Any:
        if "row_key" not in record:
            return None
        key = base64.b64decode(record["row_key"]).decode()
        if record["type"] == "backfill":  # of the whole table, and so of other rounds
            return f"{key}, backfilled" if key.split()[1] == str(self.number) else None
        return key


class BigtableWithBackfill(Bigtable):
    """A change stream of Bigtable, with the cells that were there before it."""

    backfill = True

    def prepare(self) -> None:
        self.server.commit(f"before {self.number} 0".encode(), set_cell("f", b"q", 1000, b"v"))
        super().prepare()

    def expected(self) -> Counter[Any]:
        there = [f"{key} {self.number}" for key in ("before", "a", "z")]
        backfilled = Counter(f"{key} {int(not key.startswith('before'))}, backfilled" for key in there)
        return super().expected() + backfilled


def die_at_each_place(mortal: Mortal | PlainMortal, name: str, place: Callable[[], Append]) -> None:
    """Let an append die at its first place, at its second and so on, each time followed by one that lives."""
    for number in itertools.count(int(os.environ.get(FROM, 0))):
        append = place()
        append.deliver()
        try:
            if not mortal.dies(number, append.append):
                append.check()
                break
            append.append()
            append.check()
        except Exception as problem:
            problem.add_note(f"{FROM}={number} begins with this round, in which it died after {mortal.places[-1:]}")
            raise
    note_rounds(f"{append.__doc__} {name}", number, mortal.places)
    assert number >= 4, "this killed next to nothing"


@pytest.fixture(scope="module")
def mortal(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mortal:
    mortal = Mortal(spark)
    spark.sql(f"create schema mortal location 'mortal:{tmp_path_factory.mktemp('mortal')}'")
    return mortal


ON_SPARK = (Datastream, AppendTable, SnapshotTable, SnapshotDifferences, SnapshotBesideLog)


@pytest.mark.parametrize("kind", ON_SPARK)
def test_a_first_append_dies_wherever_it_writes(mortal: Mortal, tmp_path: Path, kind: type[Append]) -> None:
    die_at_each_place(mortal, "First append.", lambda: kind(mortal.spark, tmp_path))


@pytest.mark.parametrize("kind", ON_SPARK)
def test_a_later_append_dies_wherever_it_writes(mortal: Mortal, tmp_path: Path, kind: type[Append]) -> None:
    append = kind(mortal.spark, tmp_path)
    append.deliver()
    append.append()
    die_at_each_place(mortal, "Later append.", lambda: append)


class PlainMortal:
    """The same for the plain session: what a statement, a commit or a checkpoint writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lives, self.dead = 0, False
        self.places: list[str] = []
        monkeypatch.setattr(failpoints, "reach", self.reach)
        for owner, name, what in (
            (plain_spark.Session, "sql", lambda given: " ".join(given[1].split()[:2])),
            (plain_spark._Writer, "saveAsTable", lambda given: "append"),
            (plain_spark._Files, "delete", lambda given: f"delete {given[1].getName()}"),
            (Path, "write_text", lambda given: f"write {given[0].parent.name}/{given[0].name}"),
            (Path, "mkdir", lambda given: f"directory {given[0].name}"),
        ):
            monkeypatch.setattr(owner, name, self._mortal(getattr(owner, name), what))

    def _mortal(self, act: Any, what: Callable[[Any], str]) -> Any:
        def mortal(*given: Any, **named: Any) -> Any:
            place = what(given)
            if place == "DESCRIBE DETAIL":
                return act(*given, **named)
            self.reach(place)
            return act(*given, **named)

        return mortal

    def reach(self, place: str) -> None:
        if not self.lives:
            return
        if len(self.places) >= self.lives - 1:
            self.dead = True
            raise RuntimeError(f"killed before: {place}")
        self.places.append(place)

    def dies(self, lives: int, act: Callable[[], Any]) -> bool:
        self.lives, self.dead, self.places = lives + 1, False, []
        try:
            act()
        except Exception:
            if not self.dead:
                raise
        finally:
            self.lives = 0
        return self.dead


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[type[Append], Any]]:
    """Return the servers of the two readers."""
    with FakeSpanner(partitions=2) as spanner, FakeBigtable(value_chunk=16, entries_per_message=2) as bigtable:
        spanner.now = FakeSpanner.START + 60 * 10**9
        monkeypatch.setenv("SPANNER_EMULATOR_HOST", spanner.address)
        monkeypatch.setenv("BIGTABLE_EMULATOR_HOST", bigtable.address)
        yield {Spanner: spanner, Bigtable: bigtable, BigtableWithBackfill: bigtable}


@pytest.mark.skipif(file_format() == "iceberg", reason="these tables are in memory")
@pytest.mark.parametrize("kind", [Spanner, Bigtable, BigtableWithBackfill])
def test_the_readers_of_change_streams_die_wherever_they_write(
    served: dict[type[Append], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Append]
) -> None:
    plain_spark.stage_in_plain_python(monkeypatch)
    session = plain_spark.Session()
    mortal = PlainMortal(monkeypatch)
    die_at_each_place(mortal, "First append.", lambda: kind(session, tmp_path, served[kind]))
    append = kind(session, tmp_path, served[kind])
    append.deliver()
    append.append()
    die_at_each_place(mortal, "Later append.", lambda: append)
