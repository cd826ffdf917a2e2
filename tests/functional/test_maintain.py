"""A purge by the job on real tables: what is gone, what says so, and what models come to afterwards; no dbt."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import pytest
from datastream import Staged, event
from file_formats import failpoints_of_an_append, file_format
from functional.maintained_shop import CALL, COLUMNS, Dying, DyingFiles, Killed, Shop, again, in_a_week
from plain_dbt import CompilerError
from pyspark.sql import SparkSession
from reconcile_jobs.process import failpoints
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.retention import files
from reconcile_jobs.retention.compaction import Compaction, CompactionResult, Left
from reconcile_jobs.retention.files import TableFiles
from reconcile_jobs.retention.tables import Tables
from reconcile_jobs.staging import Staging, TableName, was_set_back
from rounds import note_rounds
from tables import commits, files_of, restore, versions


@pytest.fixture
def shop(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Shop]:
    yield Shop(spark, f"maintained{abs(hash(request.node.name)) % 10**8}")


@pytest.mark.parametrize("has_history", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_purge_goes_as_far_as_the_slowest_model_and_full_refreshes_are_as_before(
    spark: SparkSession, has_history: bool
) -> None:
    shop = Shop(spark, f"maintained_{'with' if has_history else 'without'}_history", has_history)
    models = [("shop", "things"), ("sales", "things"), *([("shop", "past")] if has_history else [])]
    shop.append(k1="one", k2="two", k3="three")
    for dry_run in (True, False):
        with pytest.raises(UsageError, match=r"No model is registered with .*: run `dbt run`"):
            shop.purge(dry_run=dry_run)
        shop.was_called = not dry_run
        assert spark.catalog.tableExists(f"{shop.staging.schema}.changes__readers") is not dry_run
    shop.run("shop", "things")
    if has_history:
        # The history of this project is registered by the run of another model, and was never run.
        result = shop.purge()
        assert (result.batch, [(one.why, one.batch) for one in result.kept_back]) == (0, [("never run", 0)])
        shop.run("shop", "past")
    shop.run("sales", "things")
    shop.append(k2=None, k3="drei")
    shop.append(k4="four")
    shop.run("shop")
    before = shop.staged()

    # A model of another project is behind.
    result = shop.purge(dry_run=True)
    assert shop.staged() == before
    assert (result.batch, result.records, result.models) == (1, 3, len(models)), result
    assert shop.purge() == result
    assert [(one.reader.relation, one.why) for one in result.kept_back] == [
        (f"{shop.projects['sales'].schema}.things", "behind at 1")
    ]
    whole = [1, 2, 3]
    assert shop.staged() == {"shop.things": [2, 3], "shop.unread": whole, "#cut": whole}
    assert shop.purged() == {"shop": 1, "sales": 1}

    # It catches up, and nothing keeps the purge back.
    shop.run("sales", "things")
    result = shop.purge()
    assert (result.batch, result.kept_back) == (3, [])
    assert shop.staged() == {"shop.unread": whole, "#cut": whole}
    assert shop.purged() == {"shop": 3, "sales": 3}

    # What comes now is applied; and rebuilds begin with the copies, without a word in the models.
    shop.append(k1="uno", k5="five")
    for project in shop.projects:
        shop.run(project)
    rows = {model: shop.rows(*model) for model in models}
    for project in shop.projects:
        shop.run(project, full_refresh=True)
    assert {model: shop.rows(*model) for model in models} == rows
    assert shop.live("shop") == shop.live("sales") == [(1, "uno"), (3, "drei"), (4, "four"), (5, "five")]
    for project, name in models:
        assert shop.warehouse.sql(shop.projects[project].test("ledger_balances", name)).collect() == []


@pytest.mark.soak
def test_a_base_table_that_was_restored_counts_as_what_it_was_set_back_to(shop: Shop) -> None:
    base = f"{shop.projects['shop'].schema}.things__base"
    shop.append(k1="one")
    shop.run("shop")
    first = versions(shop.spark, base)[-1]
    for name in ("two", "three"):
        shop.append(k1=name)
        shop.run("shop")
    shop.run("sales")
    restore(shop.spark, base, first)
    result = shop.purge()
    assert [(one.why, one.batch) for one in result.kept_back] == [("set back to 1", 1)]
    assert shop.staged()["shop.things"] == [2, 3]
    shop.run("shop")
    assert shop.live("shop") == [(1, "three")]


@pytest.mark.soak
def test_a_model_that_was_put_back_to_a_batch_keeps_the_purge_back_and_goes_on_from_there(shop: Shop) -> None:
    shop.append(k1="one", k2="two")
    shop.append(k1="uno")
    shop.append(k2=None, k3="three")
    for project in shop.projects:
        shop.run(project)
    rows = {name: shop.rows("shop", name) for name in ("things", "past")}
    variables = shop.projects["shop"].variables
    variables["restore"] = {"batch": 2}
    shop.run("shop")
    assert shop.live("shop") == [(1, "uno"), (2, "two")]
    variables.pop("restore")
    assert {(one.why, one.batch) for one in shop.purge().kept_back} == {("behind at 2", 2)}
    assert shop.staged()["shop.things"] == [3]
    shop.run("shop")
    assert {name: shop.rows("shop", name) for name in rows} == rows
    # The copy that the purge has made holds the rows of batch 2, and nothing earlier can be built.
    variables["restore"] = {"batch": 1}
    with pytest.raises(CompilerError, match=r"restore is batch 1, .* gives rows from batch 2 on"):
        shop.run("shop", "things")
    variables["restore"] = {"batch": 2}
    shop.run("shop")
    assert shop.live("shop") == [(1, "uno"), (2, "two")]
    variables.pop("restore")
    shop.run("shop")
    assert {name: shop.rows("shop", name) for name in rows} == rows
    for name in rows:
        assert shop.warehouse.sql(shop.projects["shop"].test("ledger_balances", name)).collect() == []


@pytest.mark.soak
@pytest.mark.parametrize("name", ["things", "past"])
def test_a_full_refresh_beside_a_purge_is_refused_and_the_next_one_is_right(shop: Shop, name: str) -> None:
    shop.append(k1="one", k2="two")
    for project in shop.projects:
        shop.run(project)
    rows = shop.rows("shop", name)
    # The purge comes just before the refresh reads its records.
    shop.warehouse.meets = ("cache table reconcile_changes", shop.purge)
    with pytest.raises(
        CompilerError, match=r"were purged from .* while this run read them; run the same command again"
    ):
        shop.run("shop", name, full_refresh=True)
    assert "shop.things" not in shop.staged()
    assert shop.rows("shop", name) == rows, "nothing was written"
    shop.run("shop", name, full_refresh=True)
    assert shop.rows("shop", name) == rows


@pytest.mark.soak
def test_a_copy_of_before_the_purge_is_refused(shop: Shop) -> None:
    """A copy that somebody made by hand, of which the ledger shows that it is too old, and the job's own."""
    schema = shop.projects["shop"].schema
    shop.append(k1="one")
    for project in shop.projects:
        shop.run(project)
    by_hand = f"create table {schema}.early using {file_format()} as select * from {schema}.things__base"
    shop.spark.sql(by_hand)
    shop.append(k1="two")
    for project in shop.projects:
        shop.run(project)
    shop.purge()
    config = f"materialized='current_state', unique_key='id', meta={{'base_snapshot': '{schema}.early'}}"
    model = f"{{{{ config({config}) }}}}\n{{{{ {CALL} }}}}"
    shop.projects["shop"].model("things", model, COLUMNS)
    with pytest.raises(CompilerError, match=r"ends with batch 1, and .* when the base table had batch 2; name a"):
        shop.run("shop", "things", full_refresh=True)
    shop.spark.sql(by_hand.replace("create table", "create or replace table"))
    shop.run("shop", "things", full_refresh=True)
    assert shop.live("shop") == [(1, "two")]


@pytest.mark.soak
def test_a_model_whose_row_somebody_deleted_is_refused_and_lacks_nothing_in_silence(shop: Shop) -> None:
    shop.append(k1="one")
    for project in shop.projects:
        shop.run(project)
    shop.append(k2="two")
    shop.run("shop")
    schema = shop.projects["sales"].schema
    shop.spark.sql(f"delete from {shop.staging.schema}.changes__readers where relation = '{schema}.things'")
    assert shop.purge().batch == 2
    shop.append(k3="three")
    shop.run("shop")
    with pytest.raises(
        CompilerError, match=r"things__base lacks batch 2, and the records of shop\.things up to batch 2"
    ):
        shop.run("sales")


@pytest.mark.soak
def test_a_stream_that_is_purged_until_it_is_empty_is_no_new_table(shop: Shop) -> None:
    shop.append(k1="one", k2="two")
    for project in shop.projects:
        shop.run(project)
    shop.spark.sql(f"delete from {shop.staging.sql} where object <> 'shop.things'")
    assert shop.purge().batch == 1
    assert shop.staged() == {}
    for project in shop.projects:
        shop.run(project)
    assert shop.live("shop") == [(1, "one"), (2, "two")]


@pytest.mark.soak
def test_quarantined_records_stay_or_go_when_somebody_says_so(shop: Shop) -> None:
    shop.append(k1="one")
    shop.append(k1="two")
    bad = event("postgresql", {"id": "word", "name": "x"}, "UPDATE", metadata={"lsn": "0/FF"})
    shop.batch += 1
    shop.warehouse.stage(f"{shop.staging.schema}.changes", [Staged(bad, "shop.things", shop.batch)])
    for project in shop.projects:
        shop.run(project)
    result = shop.purge()
    assert (result.batch, result.quarantined) == (2, 0)
    assert {one.why for one in result.kept_back} == {"1 quarantined record from batch 3 on"}
    result = shop.purge(with_quarantined=True)
    assert (result.batch, result.records, result.kept_back) == (3, 1, [])
    assert result.quarantined == len(shop.models["shop"]) + len(shop.models["sales"])
    assert shop.purge().kept_back == [], "what is gone keeps nothing back"


@pytest.mark.soak
def test_killed_at_each_statement_the_same_command_ends_the_purge(shop: Shop) -> None:
    """Before one, after the next: a unit test has both of each."""
    ended = False
    for number in range(1, 20):
        shop.append(k1=f"name {number}", **{f"k{number + 1}": "new"})
        for project in shop.projects:
            shop.run(project)
        try:
            shop.purge(Dying(shop.spark, shop.staging, number + 0.5 * (number % 2)))
            ended = True
        except Killed:
            shop.purge()
        assert "shop.things" not in shop.staged()
        assert shop.purged() == {"shop": shop.batch, "sales": shop.batch}
        if ended:
            break
    assert ended and number > 10, "this killed nothing"
    note_rounds("a purge, before and after each statement", number - 1)
    models = [(project, name) for project, names in shop.models.items() for name in names]
    rows = [shop.rows(*model) for model in models]
    for project in shop.projects:
        shop.run(project, full_refresh=True)
    assert [shop.rows(*model) for model in models] == rows


def test_after_a_compaction_all_goes_on_as_before(spark: SparkSession) -> None:
    shop = Shop(spark, "compacted", has_history=False)
    base, ledger = (f"{shop.projects['shop'].schema}.{name}" for name in ("things__base", "reconcile_ledger"))
    for number in range(3):
        shop.append(k1=f"name {number}", k2=None if number == 1 else "two", k3="three")
        shop.run("shop")
    shop.run("sales")
    rows, asked = shop.rows("shop", "things"), shop.statements_without_news("shop")

    result = shop.compact()
    compacted = {done.table: (done.before, done.after) for done in result.compacted}
    assert {str(shop.staging), base, ledger} <= compacted.keys(), result
    assert (result.failures, result.left, result.tidied) == ({}, [], result.tables)
    assert all(after < before for before, after in compacted.values())
    assert compacted[base][1] == 1
    # The next one has nothing to do, and writes nothing.
    written = {table: commits(spark, table) for table in compacted}
    assert shop.compact(deletes_versions=False).compacted == []
    assert {table: commits(spark, table) for table in compacted} == written

    # A run without news asks what it asked before, writes nothing, and takes no table for restored.
    assert shop.rows("shop", "things") == rows
    assert shop.statements_without_news("shop") == asked
    assert {table: commits(spark, table) for table in compacted} == written

    shop.append(k1="uno", k4="four")
    shop.run("shop")
    live = [(1, "uno"), (2, "two"), (3, "three"), (4, "four")]
    assert shop.live("shop") == live
    assert shop.warehouse.sql(shop.projects["shop"].test("ledger_balances", "things")).collect() == []
    rows = shop.rows("shop", "things")
    shop.run("shop", full_refresh=True)
    assert shop.rows("shop", "things") == rows


@pytest.mark.soak
def test_a_base_table_that_is_restored_to_before_a_compaction_is_a_replay_and_earlier_moments_stay(shop: Shop) -> None:
    schema = shop.projects["shop"].schema
    for number in range(4):
        shop.append(k1=f"name {number}", **{f"k{number + 2}": "new"})
        shop.run("shop")
        if number == 1:
            early = [versions(shop.spark, f"{schema}.{name}__base")[-1] for name in shop.models["shop"]]
    rows = [shop.rows("shop", name) for name in shop.models["shop"]]
    for name, version in zip(shop.models["shop"], early, strict=True):
        shop.compact()
        restore(shop.spark, f"{schema}.{name}__base", version)
        shop.compact()
    shop.run("shop")
    assert [shop.rows("shop", name) for name in shop.models["shop"]] == rows, "the replay"
    shop.projects["shop"].variables = {"as_of": {"batch": 2}}
    shop.run("shop", "things")
    found = shop.spark.table(f"{schema}_as_of.things").collect()
    assert sorted(map(tuple, found)) == [(1, "name 1"), (2, "new"), (3, "new")]
    for name in shop.models["shop"]:
        shop.projects["shop"].variables = {}
        assert shop.warehouse.sql(shop.projects["shop"].test("ledger_balances", name)).collect() == []


class Appended:
    """A staging table and appends to it, as a job makes them."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.spark, self.staging, self.epoch = spark, TableName((name, "changes")), 0
        self.query_id = "a query"

    def append(self) -> int | None:
        """Append one record, the next one; killed or refused, the same one comes again."""
        records = self.spark.sql(f"SELECT '{self.epoch}' AS record, 'shop.things' AS object, 'a file' AS origin")
        opened = Staging(self.spark, self.staging, "a job")
        appended = opened.append(records, "datastream", self.query_id, "file:/here", self.epoch, [str(self.epoch)])
        self.epoch += 1
        return appended.batch

    def records(self) -> list[tuple[int, str]]:
        return sorted(map(tuple, self.spark.table(self.staging.sql).select("batch", "record").collect()))

    def whole(self) -> list[tuple[int, str]]:
        return sorted((number + 1, str(number)) for number in range(self.epoch))

    def compact(self, of: TableFiles | None = None, deletes_versions: bool = True) -> CompactionResult:
        tables = Tables(self.spark, self.staging)
        of = of or TableFiles(self.spark, tables)
        return Compaction(tables, of, self.staging, lambda _: None, True, deletes_versions, worth=1).run()


@pytest.mark.soak
def test_an_append_that_was_killed_before_a_compaction_goes_on_exactly_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Appended(spark, "compacted_appends")
    table.append()
    for place in [name for name in failpoints_of_an_append() if "checkpoint" not in name]:
        table.append()

        def reach(reached: str, place: str = place) -> None:
            if reached == place:
                raise KeyboardInterrupt

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(failpoints, "reach", reach)
            table.append()
        assert len(table.compact().compacted) == 1
        table.append()
        assert table.records() == table.whole(), place
    # What was written and not published expires, if it is old; so do the snapshots of what was published.
    if file_format() == "iceberg":
        for statement in files.removal("iceberg", table.staging, {}, in_a_week())[:1]:
            spark.sql(statement)
        assert commits(spark, str(table.staging)) == 1
        table.append()
        assert table.records() == table.whole()


@pytest.mark.soak
def test_old_versions_go_and_nothing_else(spark: SparkSession) -> None:
    shop = Shop(spark, "tidied")
    for number in range(3):
        shop.append(k1=f"name {number}", k2="two")
        shop.run("shop")
    shop.compact(deletes_versions=False)
    bases = [f"{shop.projects['shop'].schema}.{name}__base" for name in shop.models["shop"]]
    for table in [*bases, str(shop.staging)]:
        needed, stored = len(spark.table(table).inputFiles()), data_files(spark, table)
        assert stored > needed
        shop.compact()
        assert data_files(spark, table) == stored, "they are not seven days old"
        if file_format() == "delta":
            own = "'delta.deletedFileRetentionDuration' = 'interval 0 hours'"
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({own})")
            assert shop.compact().failures == {}
        else:
            spark.sql(files.removal("iceberg", TableName.parse(table), {}, in_a_week())[0])
        assert data_files(spark, table) == needed
    rows = [shop.rows("shop", name) for name in shop.models["shop"]]
    shop.run("shop", full_refresh=True)
    assert [shop.rows("shop", name) for name in shop.models["shop"]] == rows
    shop.append(k1="uno", k5="five")
    shop.run("shop")
    assert shop.live("shop") == [(1, "uno"), (2, "two"), (5, "five")]


def data_files(spark: SparkSession, table: str) -> int:
    """Return how many data files lie in a table's directory."""
    return sum(file.suffix == ".parquet" for file in files_of(spark, table))


@pytest.mark.soak
def test_an_append_job_notices_a_restore_after_maintenance_too(spark: SparkSession) -> None:
    table = Appended(spark, "set_back")
    for _ in range(3):
        table.append()
    name = str(table.staging)
    early = versions(spark, name)[1 if file_format() == "iceberg" else -4]
    restore(spark, name, early)
    assert was_set_back(spark, table.staging)
    result = table.compact()
    why = "old versions stay, since the table was restored to before its last append; the next append says what to do"
    assert result.left == [Left(name, why)]
    assert was_set_back(spark, table.staging)


@pytest.mark.soak
def test_appends_merges_and_compactions_at_once(shop: Shop) -> None:
    """Whoever gives way says so; the same again succeeds, and nothing is lost or there twice."""
    ended, results, problems = [False], [], []
    table = Appended(shop.spark, f"{shop.staging.schema}_beside")
    table.append()
    shop.append(k1="one")
    shop.run("shop")

    def compacting() -> None:
        try:
            while not ended[0]:
                results.append(table.compact(deletes_versions=False))
                results.append(shop.compact(deletes_versions=False))
        except BaseException as problem:
            problems.append(problem)

    beside = Thread(target=compacting)
    beside.start()
    tried = {"appends": 0, "runs": 0}
    try:
        for number in range(6):
            tried["appends"] += again(table.append)
            shop.append(k1=f"name {number}", **{f"k{number + 2}": "new"})
            tried["runs"] += again(lambda: shop.run("shop"))
    finally:
        ended[0] = True
        beside.join()
    assert problems == []
    assert not any(result.failures for result in results), [result.failures for result in results]
    assert any(result.compacted for result in results)
    print(tried, [result.left for result in results if result.left])
    assert table.records() == table.whole()
    assert shop.live("shop") == [(1, "name 5"), *((number, "new") for number in range(2, 8))]
    rows = [shop.rows("shop", name) for name in shop.models["shop"]]
    for name in shop.models["shop"]:
        assert shop.warehouse.sql(shop.projects["shop"].test("ledger_balances", name)).collect() == []
    shop.run("shop", full_refresh=True)
    assert [shop.rows("shop", name) for name in shop.models["shop"]] == rows


@pytest.mark.soak
def test_killed_after_each_statement_the_same_command_ends_the_compaction(shop: Shop) -> None:
    for number in range(1, 30):
        shop.append(k1=f"name {number}", k2="two")
        shop.run("shop", "things")
        DyingFiles.place, DyingFiles.written = number, 0
        try:
            shop.compact(DyingFiles(shop.spark, Tables(shop.spark, shop.staging)))
            break
        except Killed:
            pass
    assert number > 3, "this killed nothing"
    note_rounds("a compaction, after each statement", number - 1)
    assert shop.compact().failures == {}
    rows = shop.rows("shop", "things")
    assert shop.warehouse.sql(shop.projects["shop"].test("ledger_balances", "things")).collect() == []
    shop.run("shop", "things", full_refresh=True)
    assert shop.rows("shop", "things") == rows
