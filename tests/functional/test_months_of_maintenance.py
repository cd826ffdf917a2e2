"""Four months in the life of a staging table: appends, runs of models, and maintenance each night; no dbt.

Tombstones go once they are older than any record is late, so nothing is quarantined for that.
Appends are those of the job, but for `appended_at`, which has the test's clock. The versions of tables that are deleted
are older than nothing here, and not than seven days.
"""

from __future__ import annotations

import pickle
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from datastream import event
from file_formats import file_format
from functional.maintained_shop import Dying, DyingFiles, Killed, Shop, again, in_a_week
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from reconcile_jobs.process.session import settings
from reconcile_jobs.retention import files
from reconcile_jobs.retention.compaction import WORTH, CompactionResult
from reconcile_jobs.retention.files import TableFiles
from reconcile_jobs.retention.tables import Tables
from reconcile_jobs.retention.tombstones import Tombstones
from reconcile_jobs.staging import Staging, TableName

DAY = 86_400_000_000_000  # nanoseconds
KEYS, CHANGES = 60, 12  # of the table, and of each batch
ORDERS = 1000  # one more key comes with each batch, and is deleted ten batches later for good

# For tables of a few rows: no generated code, and few tasks, of which a VACUUM otherwise has thousands.
SMALL = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}


class Day:
    """The clock of the test, in days of 2026."""

    def __init__(self) -> None:
        self.day = 0.0

    def now(self) -> int:
        return 1_767_225_600_000_000_000 + int(self.day * DAY)

    def wait(self, *_: Any) -> bool:
        return False


class Dated(Staging):
    """A staging table whose appends have the test's time."""

    clock: Day

    def _rows(self, records: DataFrame, source: str, batch: int) -> DataFrame:
        at = f.timestamp_micros(f.lit(self.clock.now() // 1000))
        return super()._rows(records, source, batch).withColumn("appended_at", at)


@dataclass
class Feed:
    """The changes of a table, and how they are delivered: some late, some by weeks, some twice, in any order.

    What was delivered is folded in plain Python: {key: {place: name}}; a deleted row has no name.
    """

    seed: int
    place: int = 0
    live: set[int] = field(default_factory=set)
    under_way: list[tuple[int, int, int, str | None, str]] = field(default_factory=list)
    delivered: dict[int, dict[int, str | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def batch(self, number: int, now: int) -> list[str]:
        """Return the records of a batch. `now`: nanoseconds since 1970."""
        moment = f"{datetime.fromtimestamp(now // 10**9, UTC):%Y-%m-%dT%H:%M:%SZ}"
        comes, goes = ORDERS + number, ORDERS + number - 10
        for key in [
            *(self.chance.randrange(KEYS) for _ in range(CHANGES)),
            comes,
            *([goes] if goes in self.live else []),
        ]:
            self.place += 1
            is_delete = key == goes or (key < ORDERS and key in self.live and self.chance.random() < 0.2)
            (self.live.discard if is_delete else self.live.add)(key)
            luck = self.chance.random()
            late = 0 if luck < 0.8 else self.chance.randint(1, 20) if luck < 0.99 else self.chance.randint(60, 200)
            for _ in range(2 if self.chance.random() < 0.05 else 1):
                name = None if is_delete else f"name {self.place}"
                self.under_way.append((number + late, key, self.place, name, moment))
                late += self.chance.randint(1, 8)
        due = [change for change in self.under_way if change[0] <= number]
        self.under_way = [change for change in self.under_way if change[0] > number]
        self.chance.shuffle(due)
        for _, key, place, name, _ in due:
            self.delivered.setdefault(key, {})[place] = name
        return [
            event("postgresql", {"id": key, "name": name}, "UPDATE" if name else "DELETE", uuid=f"of {place}",
                  metadata={"lsn": f"0/{place:X}"}, source_timestamp=at)
            for _, key, place, name, at in due
        ]  # fmt: skip

    def rows(self) -> list[tuple[int, str]]:
        newest = {key: changes[max(changes)] for key, changes in self.delivered.items()}
        return sorted((key, name) for key, name in newest.items() if name is not None)

    def versions(self) -> list[tuple[int, str, bool]]:
        """Return (key, name, whether it is current) of each version."""
        return sorted(
            (key, name, place == max(changes))
            for key, changes in self.delivered.items()
            for place, name in changes.items()
            if name is not None
        )


class Months(Shop):
    """The shop, its clock, its appends and its nights."""

    def __init__(self, spark: SparkSession, name: str, keep: timedelta, tombstones: timedelta, worth: int) -> None:
        super().__init__(spark, name)
        self.clock, self.feed, self.keep, self.worth, self.kills = Day(), Feed(0), keep, worth, 0
        self.age, self.tombstones_gone = tombstones, 0
        self.places = {"purge": 0.5, "compaction": 0}
        self.seconds: list[float] = []  # of the runs of `things` since the last night

    def deliver(self) -> None:
        """Append a batch as the job does; where another commit comes first, the same command once more."""
        records = self.feed.batch(self.batch, self.clock.now())
        records += ['{"object": "shop.unread"}']
        if self.batch % 97 == 50:
            records.append(event("postgresql", {"id": "word", "name": "x"}, "UPDATE", metadata={"lsn": "0/FF"}))
        rows = [{"record": record, "origin": f"file {self.batch}"} for record in records]
        staged = self.spark.createDataFrame(pa.Table.from_pylist(rows))

        def append() -> None:
            staging = Dated(self.spark, self.staging, "a job")
            staging.clock = self.clock
            staging.append(staged, "datastream", "a query", "file:/here", self.batch, [str(self.batch)])

        again(append)
        self.batch += 1

    def merge(self) -> None:
        begun = time.perf_counter()
        again(lambda: self.run("shop", "things"))
        self.seconds.append(time.perf_counter() - begun)

    def night(self, number: int) -> None:
        """Purge and compact as `maintain.py` does; every other night the job dies, at each place in turn."""
        with_quarantined = number % 10 == 0
        if number % 4 == 1:
            try:
                dying = Dying(self.spark, self.staging, self.places["purge"])
                self.purge(dying, False, with_quarantined, self.clock, self.keep)
                # Its last statement is behind us, or nothing was to be purged.
                self.places["purge"] = 0.5 if dying.written > 3 else self.places["purge"]
            except Killed:
                self.kills += 1
                self.places["purge"] += 0.5
        self.purge(None, False, with_quarantined, self.clock, self.keep)
        if number % 4 == 3:
            self.places["compaction"] += 1
            DyingFiles.place, DyingFiles.written = self.places["compaction"], 0
            try:
                self.tidy(DyingFiles(self.spark, Tables(self.spark, self.staging)))
                self.places["compaction"] = 0
            except Killed:
                self.kills += 1
        if number % 3 == 0:
            self.delete_tombstones()
        result = self.tidy(Versions(self.spark, Tables(self.spark, self.staging)))
        assert result.failures == {}, result.failures

    def delete_tombstones(self) -> None:
        """Delete tombstones as `maintain.py --tombstones` does, with an age that is longer than any record is late."""
        tables = Tables(self.spark, self.staging)
        clock: Any = self.clock
        result = Tombstones(self.spark, tables, self.age, lambda text: None, clock).run()
        self.tombstones_gone += sum(result.deleted.values())
        for reason in result.kept.values():
            assert "a history" in reason or "quarantine" in reason, result.kept

    def tidy(self, of: TableFiles, deletes_versions: bool = True) -> CompactionResult:
        return self.compact(of, deletes_versions, self.worth)

    @contextmanager
    def maintained_meanwhile(self) -> Iterator[None]:
        """Compact again and again, beside whatever is done meanwhile."""
        over, problems = Event(), []

        def maintain() -> None:
            try:
                while not over.is_set():
                    self.tidy(TableFiles(self.spark, Tables(self.spark, self.staging)), deletes_versions=False)
            except BaseException as problem:
                problems.append(problem)

        thread = Thread(target=maintain)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        assert problems == []

    def check(self) -> None:
        """Compare every table with the truth."""
        for project, names in self.models.items():
            again(lambda project=project, names=names: self.run(project, *names))
        rows = self.feed.rows()
        for project in self.models:
            assert self.live(project) == rows, project
        past = self.spark.table(f"{self.projects['shop'].schema}.past").select("id", "name", "is_current").collect()
        assert sorted(map(tuple, past)) == self.feed.versions()
        for project, names in self.models.items():
            for name in names:
                assert self.warehouse.sql(self.projects[project].test("ledger_balances", name)).collect() == []
                # No record is later than the tombstones are old.
                held = self.spark.table(f"{self.projects[project].schema}.{name}__quarantine")
                assert held.where("_change_error like '%too late'").collect() == []

    def refresh(self) -> None:
        """Rebuild every model; what staging no longer has comes from the copies."""
        for project, names in self.models.items():
            for name in names:
                before = self.rows(project, name)
                self.run(project, name, full_refresh=True)
                # A copy of the base table may have tombstones that are gone from it since.
                came_back = set(self.rows(project, name)) - set(before)
                assert set(before) <= set(self.rows(project, name)), (project, name)
                columns = sorted(self.spark.table(f"{self.projects[project].schema}.{name}__base").columns)
                deleted = next((place for place, of in enumerate(columns) if of.endswith("_deleted")), None)
                assert all(deleted is not None and row[deleted] for row in came_back), (project, name)

    def sizes(self) -> dict[str, int]:
        base = TableName.parse(f"{self.projects['shop'].schema}.things__base")
        of = TableFiles(self.spark, Tables(self.spark, self.staging))
        return {
            "staging_records": self.spark.table(self.staging.sql).where("object = 'shop.things'").count(),
            "staging_files": of.of(self.staging).number,
            "base_files": of.of(base).number,
        }


@dataclass
class Past:
    """What a test that is stopped has to know when it goes on, beside the tables. See `spark` in tests/conftest.py."""

    file: str  # its path
    days: int = 0
    plot: list[dict[str, int]] = field(default_factory=list)
    of_shop: dict[str, Any] = field(default_factory=dict)

    NAMES: ClassVar[list[str]] = ["batch", "clock", "feed", "kills", "places", "seconds", "tombstones_gone"]

    @classmethod
    def of_before(cls, file: str) -> Past | None:
        return pickle.loads(Path(file).read_bytes()) if Path(file).exists() else None

    def give_to(self, shop: Months) -> None:
        vars(shop).update(self.of_shop)

    def take_from(self, shop: Months) -> None:
        """Take note before a step; a step that was stopped is done once more, as each command may be."""
        self.of_shop = {name: getattr(shop, name) for name in self.NAMES}
        new = Path(f"{self.file}.new")
        new.write_bytes(pickle.dumps(self))
        new.rename(self.file)


class Versions(TableFiles):
    """Deletes all versions but the newest, as on a day that is seven days later."""

    def remove_versions(self, table: TableName) -> None:
        if file_format() == "delta":
            own = "'delta.deletedFileRetentionDuration' = 'interval 0 hours'"
            of = self._spark.sql(f"SHOW TBLPROPERTIES {table.sql}").collect()
            if ("delta.deletedFileRetentionDuration", "interval 0 hours") not in map(tuple, of):
                self._execute([f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({own})"])
            super().remove_versions(table)
        else:
            self._execute(files.removal("iceberg", table, {}, in_a_week())[:1])


@pytest.mark.parametrize(
    ("batches", "days", "keep", "tombstones", "worth"),
    [
        pytest.param(25, 6, 2, 7, 2, marks=pytest.mark.soak, id="a-week"),
        pytest.param(500, 120, 30, 60, WORTH, marks=pytest.mark.matrix, id="four-months"),
    ],
)
def test_tables_equal_the_truth_through_nights_of_maintenance(
    spark: SparkSession, batches: int, days: int, keep: int, tombstones: int, worth: int
) -> None:
    with settings(spark, SMALL):
        plot = _lived(spark, batches, days, keep, tombstones, worth)
    Path("target").mkdir(exist_ok=True)
    lines = [",".join(plot[0]), *(",".join(map(str, row.values())) for row in plot)]
    Path(f"target/months-{file_format()}-{days}.csv").write_text("\n".join(lines) + "\n")
    if days > 60:
        for size in ("staging_records", "staging_files", "base_files"):
            early, late = (max(row[size] for row in plot if first <= row["day"] <= first + 20) for first in (40, 100))
            assert late <= 1.2 * early, f"{size} was {early} from day 40 on, and is {late} from day 100 on"


def _lived(
    spark: SparkSession, batches: int, days: int, keep: int, tombstones: int, worth: int
) -> list[dict[str, int]]:
    """Let the days pass; return the sizes at the end of each, and the time of a merge."""
    shop = Months(spark, f"months_of_{days}_days", timedelta(days=keep), timedelta(days=tombstones), worth)
    # Beside the tables, so that neither is there without the other.
    warehouse = Path(urlsplit(spark.conf.get("spark.sql.warehouse.dir")).path)
    file = str(warehouse.parent / f"past-of-{days}-days")
    past = Past.of_before(file) or Past(file)
    past.give_to(shop)
    moments = {days * number // 10 for number in range(1, 11)}
    with settings(shop.warehouse.spark, SMALL):
        for day in range(past.days + 1, days + 1):
            maintenance = nullcontext() if day % 10 != 5 else shop.maintained_meanwhile()
            with maintenance:
                for number in range(max(shop.batch, batches * (day - 1) // days), batches * day // days):
                    shop.clock.day = days * number / batches
                    past.take_from(shop)
                    shop.deliver()
                    shop.merge()
                    if number % 3 == 0:
                        again(lambda: shop.run("shop", "past"))
                if day % 3 == 0:
                    again(lambda: shop.run("sales", "things"))
            shop.clock.day = float(day)
            past.take_from(shop)
            shop.night(day)
            past.plot.append({"day": day, **shop.sizes(), "milliseconds": round(1000 * median(shop.seconds))})
            shop.seconds.clear()
            if day in moments:
                shop.check()
                if day in (days // 2, days):
                    shop.refresh()
            past.days = day
            past.take_from(shop)
            print(past.plot[-1], flush=True)
        shop.check()
    assert shop.kills > days // 6
    assert shop.tombstones_gone or days < 60
    return past.plot
