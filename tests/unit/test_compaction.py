"""What maintain.py compacts, with which statements, and to whom it gives way.

The statements go to a session that records them. What a compaction and the deletion of versions leave of an Iceberg
table's past is shown on a table in plain Python, and so is what an append job then knows.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import maintain
import pytest
from reconcile_jobs import table_formats
from reconcile_jobs.process.errors import Fault, UsageError
from reconcile_jobs.retention import compaction, files
from reconcile_jobs.retention.compaction import WORTH, Compacted, Compaction, CompactionResult, Left
from reconcile_jobs.retention.files import SMALL, TARGET, Files, TableFiles, compacted_tables
from reconcile_jobs.retention.plan import Reader
from reconcile_jobs.retention.tables import named
from reconcile_jobs.staging import TableName

STAGING = TableName(("lake", "changes"))
ICE = TableName(("ice", "lake", "o'clock"))


def reader(relation: str, ledger: str = "shop.reconcile_ledger", materialized: str = "current_state") -> Reader:
    return Reader("lake.changes", ledger, relation, materialized, ("orders",))


# --- which tables -----------------------------------------------------------------------------------------------------


def test_each_table_that_jobs_runs_and_tests_write_is_compacted_once():
    readers = [
        reader("shop.orders"),
        reader("shop.seen", materialized="current_view"),
        reader("ice.sales.past", "ice.sales.reconcile_ledger", "history"),
        reader("shop.lines"),
    ]
    assert [str(table) for table in compacted_tables(STAGING, readers)] == [
        "lake.changes",
        "lake.changes__readers",
        *(f"{model}__{part}" for model in ("shop.orders", "ice.sales.past", "shop.lines")
          for part in ("base", "quarantine", "row_deletes", "range_deletes")),
        *(f"{schema}.reconcile_{name}" for schema in ("shop", "ice.sales")
          for name in ("ledger", "columns_seen", "horizons", "parity", "parity_differences")),
    ]  # fmt: skip


# --- which are worth it -----------------------------------------------------------------------------------------------


def check_what_a_compaction_gains():
    assert Files(0).fewer == 0
    assert Files(218, ((218, 218),)).fewer == 217
    assert Files(200, ((1, 9),) * 200).fewer == 0, "files of two partitions stay two"
    assert Files(200, ((2, 9),) * 100).fewer == 100
    assert Files(12, ((10, 10 * (SMALL - 1)),)).fewer == 7, "they fill more than one file"
    assert Files(9, ((9, TARGET + 1),)).fewer == 7


def test_a_compaction_gains_files_of_one_partition():
    check_what_a_compaction_gains()
    # What it leaves is not worth another one.
    for number in range(1, 60):
        for size in (1, SMALL // 3, SMALL - 1):
            small = Files(number, ((number, number * size),))
            assert small.fewer < number
            assert number - small.fewer >= number * size / TARGET


# --- statements -------------------------------------------------------------------------------------------------------


class Recorded:
    """A session that keeps what it is given, with the configuration at that time. Asked for files, it has these."""

    def __init__(self, own_format: str, detail: dict[str, str] | None = None) -> None:
        catalogs = {
            "delta": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "iceberg": "org.apache.iceberg.spark.SparkSessionCatalog",
        }
        self.settings: dict[str, str] = {
            "spark.sql.catalog.spark_catalog": catalogs[own_format],
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.files.ignoreMissingFiles": "true",
            "spark.sql.files.ignoreCorruptFiles": "true",
        }
        self.said: list[str] = []
        self.settings_of: dict[str, dict[str, str]] = {}
        self.rows: dict[str, list[Any]] = {}
        self.columns = ["content", "partition"]
        self.detail = detail or {}
        self.views: set[str] = set()
        self.conf = SimpleNamespace(
            get=lambda key, default=None: self.settings.get(key, default),
            set=self.settings.__setitem__,
            unset=lambda key: self.settings.pop(key, None),
        )
        self.catalog = SimpleNamespace(
            tableExists=lambda name: True,
            refreshTable=lambda name: None,
            getTable=lambda name: SimpleNamespace(tableType="VIEW" if name in self.views else "MANAGED"),
        )

    def sql(self, sql: str) -> Any:
        self.said.append(sql)
        self.settings_of[sql] = dict(self.settings)
        if sql.startswith("DESCRIBE DETAIL"):
            rows = [SimpleNamespace(format="delta", properties=self.detail)]
        else:
            rows = next((rows for words, rows in self.rows.items() if words in sql), [])
        return SimpleNamespace(collect=lambda: rows, columns=self.columns, select=lambda *_: self.sql_of(rows))

    def sql_of(self, rows: list[Any]) -> Any:
        return SimpleNamespace(collect=lambda: rows)


def recorded(own_format: str, detail: dict[str, str] | None = None) -> tuple[Recorded, TableFiles]:
    session: Any = Recorded(own_format, detail)
    tables: Any = SimpleNamespace(has=lambda table: True)
    return session, TableFiles(session, tables)


REWRITE = (
    "CALL `{0}`.system.rewrite_data_files(table => '{1}', options => map('target-file-size-bytes', '536870912', "
    "'min-file-size-bytes', '134217728', 'min-input-files', '2'))"
)
OURS = ("spark_catalog", "`lake`.`changes`")
THEIRS = ("ice", "`ice`.`lake`.`o\\'clock`")


@pytest.fixture(autouse=True)
def properties(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The properties that each table of Iceberg has."""
    said: dict[str, str] = {}
    monkeypatch.setattr(table_formats.Iceberg, "properties", lambda *_: said)
    return said


def test_each_format_compacts_with_its_own_statements():
    session, of = recorded("delta")
    of.compact(STAGING)
    assert session.said == ["OPTIMIZE `lake`.`changes`"]
    of.compact(ICE)  # a catalog of the other format, in the same session
    assert session.said[1:] == [
        REWRITE.format(*THEIRS), "CALL `ice`.system.rewrite_manifests(table => '`ice`.`lake`.`o\\'clock`')"
    ]  # fmt: skip
    session, of = recorded("iceberg")
    of.compact(STAGING)
    assert session.said == [
        REWRITE.format(*OURS), "CALL `spark_catalog`.system.rewrite_manifests(table => '`lake`.`changes`')"
    ]  # fmt: skip


class Chained:
    """An object of the JVM that keeps how it is called, returns itself, and fails at its end if it is to."""

    def __init__(self, calls: list[tuple[str, *tuple[Any, ...]]], fails: Exception | None = None) -> None:
        self.calls, self.fails = calls, fails

    def __getattr__(self, name: str) -> Any:
        def called(*arguments: Any) -> Any:
            self.calls.append((name, *(one for one in arguments if isinstance(one, str))))
            if name == "execute" and self.fails:
                raise self.fails
            return self

        return called


def in_order(session: Recorded, monkeypatch: pytest.MonkeyPatch, fails: Exception | None = None) -> list[Any]:
    """Let a session have Iceberg's own library, and return what it is asked."""
    calls: list[Any] = []
    library = SimpleNamespace(
        SortOrder=Chained(calls),
        spark=SimpleNamespace(actions=SimpleNamespace(SparkActions=Chained(calls, fails))),
    )
    of: Any = session
    of._jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(iceberg=library)))
    of._jsparkSession = None

    def table(spark: Any, name: str) -> Any:
        calls.append((name, session.settings["spark.sql.files.ignoreMissingFiles"]))
        return SimpleNamespace(schema=lambda: None)

    monkeypatch.setattr(files, "iceberg_table", table)
    return calls


CLUSTERED = json.dumps(["id", "a`b"]).encode().hex()


def test_a_table_of_iceberg_that_is_clustered_is_compacted_in_order(
    properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    properties["reconcile.cluster_by"] = CLUSTERED
    session, of = recorded("delta")
    calls = in_order(session, monkeypatch)
    before = dict(session.settings)
    of.compact(ICE)
    assert calls == [
        ("`ice`.`lake`.`o'clock`", "false"), ("builderFor",), ("asc", "id"), ("asc", "a`b"), ("get",),
        ("rewriteDataFiles",), ("build",), ("sort",), ("option", "target-file-size-bytes", str(TARGET)),
        ("option", "min-file-size-bytes", str(SMALL)), ("option", "min-input-files", "2"), ("execute",),
    ]  # fmt: skip
    assert session.said == ["CALL `ice`.system.rewrite_manifests(table => '`ice`.`lake`.`o\\'clock`')"]
    assert session.settings == before
    # A table of Delta has its columns in its log, and its own statement clusters it.
    calls.clear()
    of.compact(STAGING)
    assert (calls, session.said[1:]) == ([], ["OPTIMIZE `lake`.`changes`"])
    # A rebuild without the option leaves the property empty.
    properties["reconcile.cluster_by"] = ""
    of.compact(ICE)
    assert (calls, session.said[2:3]) == ([], [REWRITE.format(*THEIRS)])


def test_a_compaction_in_order_gives_way_as_others_do(properties: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    properties["reconcile.cluster_by"] = CLUSTERED
    session, of = recorded("iceberg")
    in_order(session, monkeypatch, ConcurrentDeleteReadException())
    with pytest.raises(ConcurrentDeleteReadException):
        of.compact(STAGING)
    assert session.said == [], "the statement after it is for the next try"


@pytest.mark.parametrize(
    ("said", "columns"),
    [({}, []), ({"reconcile.cluster_by": ""}, []), ({"reconcile.cluster_by": "5b226964225d"}, ["id"])],
)
def test_a_base_table_says_by_which_columns_it_is_clustered(said: dict[str, str], columns: list[str]):
    assert files.clustered_by(said) == columns


def check_settings():
    for own_format in ("delta", "iceberg"):
        session, of = recorded(own_format)
        before = dict(session.settings)
        of.compact(STAGING)
        for said in session.said:
            then = session.settings_of[said]
            assert then["spark.sql.files.ignoreMissingFiles"] == "false", "rows of a lost file would go in silence"
            assert then["spark.sql.files.ignoreCorruptFiles"] == "false"
            assert then["spark.databricks.delta.optimize.minFileSize"] == str(SMALL)
            assert then["spark.databricks.delta.optimize.maxFileSize"] == str(TARGET)
        assert session.settings == before


def test_no_file_is_skipped_while_a_table_is_written_anew():
    check_settings()


NOW = datetime(2026, 11, 28, 3, 4, 5, 999_999, tzinfo=UTC)


def check_ages():
    # Delta ignores RETAIN, or deletes by the table's property all the same.
    assert files.removal("delta", STAGING, {}, NOW) == ["VACUUM `lake`.`changes`"]
    for own, day in ({}, 21), ({MAX_AGE: "3600000"}, 21), ({MAX_AGE: str(10 * 24 * 3600 * 1000)}, 18):
        older = f"older_than => TIMESTAMP '2026-11-{day} 03:04:05Z'"
        assert files.removal("iceberg", STAGING, own, NOW) == [
            f"CALL `spark_catalog`.system.expire_snapshots(table => '`lake`.`changes`', {older})",
            f"CALL `spark_catalog`.system.remove_orphan_files(table => '`lake`.`changes`', {older})",
        ]


MAX_AGE = "history.expire.max-snapshot-age-ms"


def test_versions_that_somebody_may_still_read_stay():
    check_ages()
    # In another time zone too.
    zone = timezone(timedelta(hours=5))
    assert files.removal("iceberg", ICE, {}, NOW.astimezone(zone)) == files.removal("iceberg", ICE, {}, NOW)


def test_old_versions_are_deleted_by_the_statements_of_the_format(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(table_formats.Iceberg, "properties", lambda *_: {})
    session, of = recorded("delta")
    of.remove_versions(STAGING)
    of.remove_versions(ICE)
    assert [said.partition("(")[0] for said in session.said if "DETAIL" not in said] == [
        "VACUUM `lake`.`changes`", "CALL `ice`.system.expire_snapshots", "CALL `ice`.system.remove_orphan_files"
    ]  # fmt: skip


def test_files_are_counted_by_the_metadata():
    session, of = recorded("delta")
    session.rows["FROM `ice`.`lake`.`o'clock`.`files` WHERE content = 0"] = [
        SimpleNamespace(files=30, small=12, bytes=40),
        SimpleNamespace(files=5, small=0, bytes=0),
    ]
    assert of.of(ICE) == Files(35, ((12, 40),))
    assert "concat(spec_id, to_json(partition)) AS place" in session.said[-1]
    session.columns = ["content"]
    of.of(ICE)
    assert "concat(spec_id, '') AS place" in session.said[-1]
    assert files._metadata(STAGING, "files") == "`spark_catalog`.`lake`.`changes`.`files`"


def test_a_view_is_no_table():
    session, of = recorded("delta")
    session.views.add("`lake`.`changes`")
    assert not of.exists(STAGING)
    assert of.exists(named("shop.orders__base"))


@pytest.mark.parametrize("append", ["reconcile.append", "reconcile.snapshot_append"])
def test_an_append_that_a_restore_took_back_keeps_the_versions(monkeypatch: pytest.MonkeyPatch, append: str):
    properties = {"reconcile.append": "log/9/x", append: "query/3/content"}
    session, of = recorded("iceberg")
    asked: list[tuple[str, int]] = []

    def was_set_back(self: Any, spark: Any, table: str, query_id: str, epoch: int) -> bool:
        asked.append((query_id, epoch))
        return query_id == "query"

    monkeypatch.setattr(table_formats.Iceberg, "properties", lambda *_: properties)
    monkeypatch.setattr(table_formats.Iceberg, "was_set_back", was_set_back)
    why = of.needed_versions(STAGING, is_staging=True)
    assert why is not None and why.startswith("the table was restored to before its last append")
    assert ("query", 3) in asked
    properties[append] = "log/9/x"
    assert of.needed_versions(STAGING, is_staging=True) is None
    session.rows["`refs`"] = [SimpleNamespace(name="audit"), SimpleNamespace(name="eod")]
    assert of.needed_versions(STAGING, is_staging=True) == "the table has tags or branches (audit, eod)"
    # A table that no job has appended to.
    properties.clear()
    session.rows.clear()
    assert of.needed_versions(STAGING, is_staging=True) is None


@pytest.mark.parametrize("is_set_back", [True, False])
def test_a_base_table_that_was_set_back_keeps_the_versions_that_show_it(
    monkeypatch: pytest.MonkeyPatch, is_set_back: bool
):
    session, of = recorded("iceberg")
    properties = {"reconcile.declared_in": "41 3"}
    monkeypatch.setattr(table_formats.Iceberg, "properties", lambda *_: properties)
    monkeypatch.setattr(
        table_formats.Iceberg, "was_set_back_before", lambda self, spark, table, noted: is_set_back and noted == "41 3"
    )
    base = TableName(("shop", "orders__base"))
    why = of.needed_versions(base, is_staging=False)
    assert (why or "").startswith("the table was set back to before its declaration") is is_set_back
    session.rows["`refs`"] = [SimpleNamespace(name="audit")]
    if not is_set_back:
        assert of.needed_versions(base, is_staging=False) == "the table has tags or branches (audit)"
    properties.clear()  # a history, a ledger: nothing is noted, and nobody asks
    assert of.needed_versions(base, is_staging=False) is None


# --- the job ----------------------------------------------------------------------------------------------------------


class ConcurrentDeleteReadException(Exception):
    """What Delta raises in the JVM."""


@dataclass
class Lake:
    """Tables by name, with the number of their small files; those in `meets` are written to meanwhile."""

    numbers: dict[str, int]
    meets: dict[str, Exception] = field(default_factory=dict)
    needed: str | None = None
    done: list[tuple[str, str]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    models: tuple[Reader, ...] = (reader("shop.orders"),)

    def readers(self) -> list[Reader]:
        return [*self.models]

    def exists(self, table: TableName) -> bool:
        return str(table) in self.numbers

    def of(self, table: TableName) -> Files:
        number = self.numbers[str(table)]
        return Files(number, ((number, number),))

    def compact(self, table: TableName) -> None:
        self.done.append(("compact", str(table)))
        if str(table) in self.meets:
            raise self.meets[str(table)]
        self.numbers[str(table)] = 1

    def remove_versions(self, table: TableName) -> None:
        self.done.append(("delete", str(table)))
        if f"{table} versions" in self.meets:
            raise self.meets[f"{table} versions"]

    def needed_versions(self, table: TableName, is_staging: bool) -> str | None:
        return self.needed if is_staging else None

    def run(self, dry_run: bool = False, **options: Any) -> CompactionResult:
        lake: Any = self
        return Compaction(lake, lake, STAGING, self.said.append, **options).run(dry_run)


def test_each_table_that_has_many_small_files_is_compacted_and_named():
    lake = Lake({"lake.changes": 3, "shop.orders__base": 218, "shop.reconcile_ledger": WORTH + 1})
    result = lake.run()
    assert lake.said == ["shop.orders__base: 218 files -> 1", "shop.reconcile_ledger: 11 files -> 1"]
    assert result == CompactionResult(
        3, [Compacted("shop.orders__base", 218, 1), Compacted("shop.reconcile_ledger", 11, 1)]
    )
    assert lake.done == [("compact", "shop.orders__base"), ("compact", "shop.reconcile_ledger")], "no version is gone"
    lake.done.clear()
    lake.run()
    assert lake.done == [], "there is nothing to be gained any more"


def test_a_dry_run_writes_nothing():
    lake = Lake({"lake.changes": 30})
    assert lake.run(dry_run=True, deletes_versions=True).compacted == [Compacted("lake.changes", 30, 1)]
    assert lake.said == ["lake.changes: 30 files, would become about 1"]
    assert lake.done == []


def check_it_gives_way():
    conflicts = [
        ConcurrentDeleteReadException("files were deleted"),
        RuntimeError("Cannot commit rewrite because of a ValidationException or CommitFailedException"),
    ]
    for conflict in conflicts:
        lake = Lake({"lake.changes": 30, "shop.orders__base": 40, "shop.reconcile_ledger": 50})
        lake.meets["shop.orders__base"] = conflict
        lake.meets["shop.reconcile_ledger versions"] = conflict
        result = lake.run(deletes_versions=True)
        why = "40 files stay, since other processes wrote at the same moment"
        assert result.left == [
            Left("shop.orders__base", why),
            Left("shop.reconcile_ledger", "old versions stay, since another process wrote to it at the same moment"),
        ]
        assert f"shop.orders__base: {why}" in lake.said
        assert lake.done.count(("compact", "shop.orders__base")) == 3, "it is tried so often"
        assert [of.table for of in result.compacted] == ["lake.changes", "shop.reconcile_ledger"]
        assert result.tidied == 2
        result.refuse_failures()  # the exit code is 0


def test_whoever_writes_to_a_table_goes_first():
    check_it_gives_way()


def test_it_is_tried_again_where_another_commit_came_in_between():
    lake = Lake({"shop.orders__base": 40})
    compact, waiting = lake.compact, [ConcurrentDeleteReadException(), ConcurrentDeleteReadException()]

    def meets(table: TableName) -> None:
        if waiting:
            raise waiting.pop()
        compact(table)

    lake.compact = meets  # type: ignore[method-assign]
    result = lake.run()
    assert (result.compacted, result.left) == ([Compacted("shop.orders__base", 40, 1)], [])


def test_a_table_of_which_only_the_last_statement_met_another_commit_is_compacted():
    lake = Lake({"shop.orders__base": 40})

    def compact(table: TableName) -> None:
        lake.numbers[str(table)] = 2
        raise ConcurrentDeleteReadException

    lake.compact = compact  # type: ignore[method-assign]
    assert lake.run().compacted == [Compacted("shop.orders__base", 40, 2)]


def test_one_table_that_cannot_be_compacted_does_not_stop_the_others():
    lake = Lake({"lake.changes": 30, "shop.orders__base": 40, "shop.reconcile_ledger": 50})
    lake.meets["lake.changes"] = UsageError("The table is of another format: name another.")
    lake.meets["shop.orders__base"] = OSError("disk")
    result = lake.run()
    assert [of.table for of in result.compacted] == ["shop.reconcile_ledger"]
    assert lake.said[0] == "lake.changes: The table is of another format: name another."
    with pytest.raises(
        UsageError,
        match=r"^2 of 3 tables could not be compacted, each for the reason that its line names: lake\.changes, "
        r"shop\.orders__base\.$",
    ):
        result.refuse_failures()
    del lake.meets["lake.changes"]
    with pytest.raises(Fault, match=r"1 of 3 tables could not be compacted"):
        lake.run().refuse_failures()


def check_needed_versions_stay():
    lake = Lake({"lake.changes": 3, "shop.orders__base": 40}, needed="the table has tags or branches (eod)")
    result = lake.run(deletes_versions=True)
    assert lake.done == [("compact", "shop.orders__base"), ("delete", "shop.orders__base")]
    assert result.left == [Left("lake.changes", "old versions stay, since the table has tags or branches (eod)")]
    lake.needed = None
    lake.run(deletes_versions=True, combines=False)
    assert lake.done[2:] == [("delete", "lake.changes"), ("delete", "shop.orders__base")]


def test_versions_that_an_append_needs_stay():
    check_needed_versions_stay()


# --- the past of an Iceberg staging table -----------------------------------------------------------------------------


@dataclass
class Snapshot:
    parent: int | None
    day: int
    batches: frozenset[int]


@dataclass
class Past:
    """A staging table of Iceberg: its snapshots, its tags, and the note of the append that was published last."""

    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    current: int | None = None
    published: int | None = None
    tags: set[int] = field(default_factory=set)
    day: int = 0
    ids: Iterator[int] = field(default_factory=lambda: iter(range(1, 10_000)))

    def commit(self, batches: frozenset[int]) -> int:
        new = next(self.ids)
        self.snapshots[new] = Snapshot(self.current, self.day, batches)
        self.current = new
        return new

    @property
    def batches(self) -> frozenset[int]:
        return self.snapshots[self.current].batches if self.current else frozenset()

    def append(self, batch: int) -> None:
        self.published = self.commit(self.batches | {batch})

    def ancestors(self) -> list[int]:
        found, at = [], self.current
        while at is not None and at in self.snapshots:
            found.append(at)
            at = self.snapshots[at].parent
        return found

    def was_set_back(self) -> bool:
        """As `Iceberg.was_set_back` in table_formats.py."""
        if self.published in self.snapshots:
            return self.published not in self.ancestors()
        return self.current is not None and self.current < self.published

    # What the compaction asks and does.

    def readers(self) -> list[Reader]:
        return []

    def exists(self, table: TableName) -> bool:
        return table == STAGING

    def of(self, table: TableName) -> Files:
        return Files(30, ((30, 30),))

    def compact(self, table: TableName) -> None:
        if self.current:
            self.commit(self.batches)

    def needed_versions(self, table: TableName, is_staging: bool) -> str | None:
        return "it is needed" if self.was_set_back() or self.tags else None

    def remove_versions(self, table: TableName) -> None:
        kept = {self.current, *self.tags}
        self.snapshots = {
            of: snapshot for of, snapshot in self.snapshots.items() if of in kept or snapshot.day > self.day - 7
        }


def live(seed: int) -> None:
    """Let a table be appended to, restored, tagged and maintained; an append job must know what happened to it."""
    chance, past, last, lost = random.Random(seed), Past(), 0, False
    for _ in range(40):
        past.day += chance.choice((0, 1, 5, 9))
        match chance.choice(("append", "append", "maintain", "maintain", "restore", "tag")):
            case "append":
                assert past.was_set_back() is lost, (
                    f"seed {seed}: the append job takes a restore for none, or invents one"
                )
                # It is refused until somebody has put the table in order, or has begun anew.
                last, lost = last + 1, False
                past.append(last)
            case "maintain":
                there: Any = past
                Compaction(there, there, STAGING, lambda _: None, deletes_versions=True).run()
            case "restore" if past.snapshots:
                older = [of for of in past.ancestors() if of != past.current]
                if older:
                    past.current = chance.choice(older)
                    lost = last not in past.batches
            case "tag" if past.current:
                past.tags = {past.current} if chance.random() < 0.3 else set()


def check_an_append_job_notices_a_restore():
    for seed in range(300):
        live(seed)


def test_an_append_job_still_knows_what_happened_to_its_table():
    check_an_append_job_notices_a_restore()


# --- planted bugs -----------------------------------------------------------------------------------------------------


def _of_all_partitions(self: Files) -> int:
    return max(0, sum(number for number, _ in self.small) - 1)


def _without_bytes(self: Files) -> int:
    return sum(number - 1 for number, _ in self.small)


def _without_an_age(table_format: str, table: TableName, properties: Any, now: datetime) -> list[str]:
    # Iceberg's own default is five days.
    return ["VACUUM `lake`.`changes`"] if table_format == "delta" else [f"CALL expire_snapshots({table.sql})"]


def _in_any_case(self: Compaction, table: TableName, result: CompactionResult) -> None:
    self._files.remove_versions(table)


def _but_tags(self: Past, table: TableName, is_staging: bool) -> str | None:
    return "it is needed" if self.was_set_back() else None


@pytest.mark.parametrize(
    ("check", "place", "name", "bug"),
    [
        (check_what_a_compaction_gains, Files, "fewer", property(_of_all_partitions)),
        (check_what_a_compaction_gains, Files, "fewer", property(_without_bytes)),
        (check_settings, files, "_SETTINGS", {}),
        (check_ages, files, "removal", _without_an_age),
        (check_ages, files, "AGE", timedelta(days=1)),
        (check_it_gives_way, compaction, "is_conflict", lambda problem: False),
        (check_needed_versions_stay, Compaction, "_remove_versions", _in_any_case),
        (check_an_append_job_notices_a_restore, Compaction, "_remove_versions", _in_any_case),
        (check_an_append_job_notices_a_restore, Past, "needed_versions", lambda self, table, is_staging: None),
        (check_an_append_job_notices_a_restore, Past, "needed_versions", _but_tags),
    ],
)
def test_bugs_are_noticed(monkeypatch: pytest.MonkeyPatch, check: Callable[[], None], place: Any, name: str, bug: Any):
    check()
    monkeypatch.setattr(place, name, bug)
    with pytest.raises((AssertionError, KeyError)):
        check()


# --- the command ------------------------------------------------------------------------------------------------------


def test_it_is_said_how_many_tables_were_compacted():
    result = CompactionResult(1200, [Compacted("a", 2, 1)] * 2)
    assert maintain.sentences_of_compaction(result, dry_run=False) == ["2 of 1,200 tables compacted."]
    assert maintain.sentences_of_compaction(result, dry_run=True) == ["2 of 1,200 tables would be compacted."]
    result = CompactionResult(3, tidied=3)
    assert maintain.sentences_of_compaction(result, dry_run=False) == ["Old versions of 3 tables deleted."]
    assert maintain.sentences_of_compaction(CompactionResult(3), dry_run=False) == []
