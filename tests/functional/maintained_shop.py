"""A staging table with models of two projects, and a job that dies, for the tests of `maintain.py`; no dbt."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from datastream import Staged, event
from file_formats import file_format
from plain_dbt import PlainProject, Rows
from process.spark_warehouse import SparkWarehouse
from pyspark.sql import SparkSession
from reconcile_jobs.process.errors import Fault, UsageError, explained
from reconcile_jobs.retention.compaction import Compaction, CompactionResult
from reconcile_jobs.retention.files import AGE, TableFiles
from reconcile_jobs.retention.purge import Purge, Result
from reconcile_jobs.retention.tables import Tables
from reconcile_jobs.staging import TableName

CALL = "reconcile.datastream_postgresql(source('lake', 'changes'), object='shop.things')"
COLUMNS = {"id": "bigint", "name": "string"}


class Later:
    """A clock of a time at which all that a test stages is old."""

    def now(self) -> int:
        return 4_000_000_000_000_000_000

    def wait(self, *_: Any) -> bool:
        return False


class Watched(SparkWarehouse):
    """Lets something happen before the first statement that begins with a text."""

    meets: tuple[str, Callable[[], object]] | None = None
    asked: list[str]

    def query(self, sql: str) -> Rows:
        self.asked.append(sql)
        if self.meets and sql.strip().startswith(self.meets[0]):
            (_, then), self.meets = self.meets, None
            then()
        return super().query(sql)


class Shop:
    """A staging table, and two projects of it: `shop` with a model and perhaps its history, `sales` with a model."""

    def __init__(self, spark: SparkSession, name: str, has_history: bool = True) -> None:
        self.spark, self.batch, self.place = spark, 0, 0
        self.was_called = False  # whether the job has made the table in which models register
        self.staging = TableName((f"{name}_lake", "changes"))
        self.warehouse = Watched(spark)
        self.warehouse.asked = []
        self.projects = {part: self._project(f"{name}_{part}") for part in ("shop", "sales")}
        self.models: dict[str, list[str]] = {part: [] for part in self.projects}
        self._model("shop", "things", "current_state")
        if has_history:
            self._model("shop", "past", "history")
        self._model("sales", "things", "current_state")

    def _project(self, schema: str) -> PlainProject:
        project = PlainProject(self.warehouse, schema, file_format=file_format())
        project.source(self.staging.schema, "changes")
        return project

    def _model(self, project: str, name: str, materialized: str) -> None:
        config = f"{{{{ config(materialized='{materialized}', unique_key='id') }}}}"
        self.projects[project].model(name, f"{config}\n{{{{ {CALL} }}}}", COLUMNS)
        self.models[project].append(name)

    def append(self, **names: str | None) -> None:
        """Stage a batch: a name for the key behind the first letter; none deletes. And a record that no model reads."""
        self.batch += 1
        staged = []
        for key, name in names.items():
            self.place += 1
            text = event(
                "postgresql", {"id": int(key[1:]), "name": name}, "UPDATE" if name else "DELETE",
                metadata={"lsn": f"0/{self.place:X}"},
            )  # fmt: skip
            staged.append(Staged(text, "shop.things", self.batch))
        staged += [Staged("{}", "shop.unread", self.batch), Staged("{}", "#cut", self.batch, source="spanner")]
        self.warehouse.stage(f"{self.staging.schema}.changes", staged)

    def run(self, project: str, *names: str, full_refresh: bool = False) -> None:
        if not self.was_called:
            Tables(self.spark, self.staging).make_readers()
            self.was_called = True
        self.projects[project].context["invocation_id"] = str(uuid.uuid4())
        self.projects[project].run(*(names or self.models[project]), full_refresh=full_refresh)

    def rows(self, project: str, name: str) -> list[tuple[Any, ...]]:
        """Return all that a base table holds."""
        base = self.spark.table(f"{self.projects[project].schema}.{name}__base")
        return sorted(map(tuple, base.select(*sorted(base.columns)).collect()), key=str)

    def live(self, project: str) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, self.spark.table(f"{self.projects[project].schema}.things").collect()))

    def staged(self) -> dict[str, list[int]]:
        """Return the batches that staging has of each object."""
        found: dict[str, list[int]] = {}
        for row in self.spark.table(self.staging.sql).select("object", "batch").distinct().orderBy("batch").collect():
            found.setdefault(row.object, []).append(row.batch)
        return found

    def purged(self) -> dict[str, int]:
        """Return what each ledger says of a purge of the models' object."""
        found = {}
        for name, project in self.projects.items():
            rows = self.spark.table(f"{project.schema}.reconcile_ledger").where("kind = 'purge'")
            found[name] = rows.where(f"relation = '{self.staging}' and object = 'shop.things'").selectExpr(
                "max(last_batch)"
            ).collect()[0][0]  # fmt: skip
        return found

    def purge(
        self,
        tables: Tables | None = None,
        dry_run: bool = False,
        with_quarantined: bool = False,
        clock: Any = None,
        keep: timedelta = timedelta(days=30),
    ) -> Result:
        said: list[str] = []
        tables = tables or Tables(self.spark, self.staging)
        return Purge(tables, self.staging, keep, said.append, clock or Later(), with_quarantined).run(dry_run)

    def statements_without_news(self, project: str) -> list[str]:
        """Return the statements of a run that finds nothing new, without what differs between any two runs."""
        self.warehouse.asked.clear()
        self.run(project)
        return [re.sub("[0-9a-f-]{36}|[0-9]{10,}", "", sql) for sql in self.warehouse.asked]

    def compact(self, of: TableFiles | None = None, deletes_versions: bool = True, worth: int = 1) -> CompactionResult:
        """Compact whatever gains so many files."""
        said: list[str] = []
        tables = Tables(self.spark, self.staging)
        of = of or TableFiles(self.spark, tables)
        return Compaction(tables, of, self.staging, said.append, True, deletes_versions, worth).run()


class Dying(Tables):
    """Tables of a job that is killed before or after one of its statements that write."""

    def __init__(self, spark: SparkSession, staging: TableName, place: float) -> None:
        super().__init__(spark, staging)
        self.place, self.written = place, 0

    def dies(self, act: Callable[[], Any]) -> Any:
        self.written += 1
        if self.written == self.place:
            raise Killed
        done = act()
        if self.written + 0.5 == self.place:
            raise Killed
        return done

    def _execute(self, sql: str) -> None:
        self.dies(lambda: super(Dying, self)._execute(sql))

    def keep(self, texts: dict[str, str]) -> None:
        self.dies(lambda: super(Dying, self).keep(texts))

    def delete(self, objects: Any, batch: int) -> bool:
        return bool(self.dies(lambda: super(Dying, self).delete(objects, batch)))


class Killed(BaseException):
    """The job was killed."""


class DyingFiles(TableFiles):
    """Files of a job that is killed after one of its statements."""

    place, written = 0, 0

    def _execute(self, statements: Any) -> None:
        for statement in statements:
            super()._execute([statement])
            type(self).written += 1
            if type(self).written == type(self).place:
                raise Killed


def in_a_week() -> datetime:
    """Return a moment at which all versions of before are old enough to be deleted."""
    return datetime.now(UTC) + AGE + timedelta(seconds=5)


def again(act: Callable[[], object]) -> int:
    """Do what may meet another commit until it succeeds, and return how often it was tried."""
    for number in range(1, 20):
        try:
            act()
            return number
        except Exception as problem:
            told = explained(problem)
            assert isinstance(told, Fault) and not isinstance(told, UsageError), told
    raise AssertionError("it never succeeds")
