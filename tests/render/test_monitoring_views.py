"""The views that every project gets are made again only when what they read changes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from plain_dbt import PACKAGE, PlainProject, Relation
from recorder import Recorder
from refusals import THINGS, thing
from shapes import MYSQL, ORACLE, SHAPES, SNAPSHOTS, SPANNER, STAGING, Life, Shape

VIEWS = [
    "reconcile_drift", "reconcile_lag", "reconcile_quarantine", "reconcile_status", "reconcile_unrouted",
    "reconcile_models",
]  # fmt: skip
ANEW, NOTHING = dict.fromkeys(VIEWS, "MADE ANEW"), dict.fromkeys(VIEWS, "nothing new")


@pytest.fixture
def shop() -> Life:
    """A project whose one model reads one object."""
    return Life(thing())


def test_a_view_that_is_missing_is_made_and_what_is_there_stays(shop: Life) -> None:
    assert shop.project.run(*VIEWS) == ANEW
    assert shop.project.run(*VIEWS) == NOTHING
    del shop.warehouse.relations["demo.reconcile_lag"]
    shop.warehouse.statements.clear()
    assert shop.project.run(*VIEWS) == {**NOTHING, "reconcile_lag": "MADE ANEW"}
    (made,) = (sql for sql in shop.warehouse.statements if " view " in sql)
    # Of two runs that find it missing both make it.
    assert made.startswith("create view if not exists `demo`.`reconcile_lag`")


def test_a_view_of_dbts_own_is_replaced(shop: Life) -> None:
    for view in VIEWS:
        shop.warehouse.has(f"demo.{view}", "view")
    assert shop.project.run(*VIEWS) == ANEW
    made = [sql for sql in shop.warehouse.statements if " view " in sql]
    assert [sql.split("\n")[0] for sql in made] == [f"create or replace view `demo`.`{view}`" for view in VIEWS]
    assert shop.project.run(*VIEWS) == NOTHING


def test_it_is_left_alone_until_what_it_reads_changes(shop: Life) -> None:
    shop.project.run(*VIEWS)
    shop.project.model("parts", thing(object="shop.parts").sql, THINGS)
    shop.warehouse.statements.clear()
    assert shop.project.run(*VIEWS) == {
        **ANEW,
        **dict.fromkeys(("reconcile_lag", "reconcile_quarantine"), "nothing new"),
    }
    (made,) = (sql for sql in shop.warehouse.statements if " view `demo`.`reconcile_unrouted`" in sql)
    assert "(object not like '#%' or source = 'datastream') and not (object in ('shop.orders', 'shop.parts'))" in made
    assert shop.project.run(*VIEWS) == NOTHING


def test_an_object_that_one_model_takes_whole_has_no_table_that_no_model_reads(shop: Life) -> None:
    """Whichever model comes first."""
    for first, second in (("a_whole", "b_table"), ("b_table", "a_whole")):
        shop.project.graph["nodes"].clear()
        for name in (first, second):
            shape = thing(table="shop.parts") if name == "b_table" else thing(object="shop_parts")
            shop.project.model(name, shape.sql, THINGS)
        read = shop.project.macros.staging_read()["lake.shop_changes"]
        with_tables = {name: said["tables"] for name, said in read["objects"].items()}
        assert with_tables == {"shop_parts": [], "shop.parts": [[None, "shop", "parts"]]}


@pytest.mark.parametrize(
    ("shape", "declared"),
    [
        (thing(), "string, config: {meta: {encoding: json, added: true}}"),
        (thing(file_format="iceberg"), "string, config: {meta: {encoding: json, added: true}}"),
        (thing(SNAPSHOTS), "variant, config: {meta: {added: true}}"),
        (thing(SNAPSHOTS, file_format="iceberg"), "string, config: {meta: {added: true}}"),
    ],
)
def test_json_is_proposed_as_a_type_that_the_models_own_tables_hold(shape: Shape, declared: str) -> None:
    """Of Datastream, which alone takes `encoding`, as generate.py does."""
    drift = " ".join(Life(shape).project.compile("reconcile_drift").split())
    assert f", '{declared}') as models (relation, object, ignored, json_type)" in drift


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        ("reconcile_models", "('demo.orders', 'lake.shop_changes', 'current_state', true)"),
        ("reconcile_quarantine", "relation in ('demo.orders')"),
        ("reconcile_status", "as read (relation, takes, tables)"),
    ],
)
def test_a_new_model_is_in_the_view_when_its_first_run_ends(shop: Life, view: str, shown: str) -> None:
    """The view is made before it, and reads no table that is not there."""
    shop.project.run(*VIEWS)
    (made,) = (sql for sql in shop.warehouse.statements if " view " in sql and f"`{view}`" in sql.split("\n")[0])
    assert shown not in made
    shop.warehouse.statements.clear()
    shop.project.run("orders")
    shop.project.end()
    (replaced,) = (sql for sql in shop.warehouse.statements if f"replace view `demo`.`{view}`" in sql)
    assert shown in replaced
    assert shop.project.run(view) == {view: "nothing new"}


def test_the_example_of_a_reason_has_its_key_however_the_model_spells_the_key(shop: Life) -> None:
    """Names of columns have no case, and the record's are made small before they are compared."""
    example = shop.project.macros._key_of_record(["ID", "Line No"])
    assert "lower(name) in ('id', 'line no')" in example


def test_the_status_has_no_with_so_that_spark_knows_it_again_within_the_models(shop: Life) -> None:
    """Spark numbers what a WITH names through the whole statement, and `report.py` would read the status twice."""
    shop.project.run("orders")
    assert "with " not in shop.project.compile("reconcile_status").lower().replace("starts with ", "")


def test_of_a_model_that_was_rebuilt_the_status_has_what_its_last_account_applied(shop: Life) -> None:
    """A staging table that was made anew begins at batch 1, and the account of before had greater numbers."""
    shop.project.run("orders")
    status = shop.project.macros.status_of([shop.project.node("orders")], [])
    behind = " ".join(status[status.index("'not_applied'") :].split())
    newest = "max_by(last_batch, struct(coalesce(entry, 0) as entry, recorded_at)) as last_batch"
    assert f"left join ( select relation, {newest} from `demo`.`reconcile_ledger`" in behind
    assert "on staged.batch > read.last_batch and staged.object = read.takes" in behind


def test_a_staging_table_that_was_set_back_is_in_the_status_by_the_rule_that_refuses_the_next_run(shop: Life) -> None:
    """Of a model that has an account: a view has applied nothing."""
    shop.project.run("orders")
    status = " ".join(shop.project.macros.status_of([shop.project.node("orders")], []).split())
    gone = status[status.index("'set_back' as kind") : status.index("'not_applied' as kind")]
    assert (
        "select batch, unix_micros(max(appended_at)) as appended_at from `lake`.`shop_changes` group by batch" in gone
    )
    assert "where relation = 'lake.shop_changes' and kind = 'purge'" in gone
    view = Life(thing(materialized="current_view"))
    view.project.run("orders")
    assert "'set_back'" not in view.project.macros.status_of([view.project.node("orders")], [])


def test_a_staging_table_whose_last_batches_were_purged_has_its_last_append_from_the_ledger(shop: Life) -> None:
    shop.project.run("orders")
    status = " ".join(shop.project.macros.status_of([shop.project.node("orders")], []).split())
    known = "from `demo`.`reconcile_ledger` where last_appended_at is not null and relation in ('demo.orders')"
    assert f"union all select last_batch, last_appended_at, cast(null as bigint) {known}" in status
    assert "min(staged_batch) as first_batch, max_by(batch, struct(appended_at, batch)) as last_batch" in status
    assert "reconcile_ledger" not in shop.project.macros.status_of([], []), "nothing has an account"


def test_a_ledger_without_the_times_of_appends_says_all_the_same_that_staging_was_set_back(shop: Life) -> None:
    """One that an earlier version wrote. The next run compares the numbers then, and so does the view."""
    shop.project.run("orders")
    status = " ".join(shop.project.macros.status_of([shop.project.node("orders")], []).split())
    newest = "(select max(batch) from `lake`.`shop_changes`)"
    assert f"account.ledger_batch > greatest( if(account.last_appended_at is null, {newest}, null), (" in status


def test_the_days_of_a_model_are_days_in_utc_whoever_reads_the_view(shop: Life) -> None:
    """A view keeps the time zone of the session that made it, and current_timezone() is that of the reader."""
    shop.project.run("orders")
    sql = shop.project.compile("reconcile_models")
    assert sql.count("date_from_unix_date(cast(unix_micros(recorded_at) div 86400000000 as int))") == 2
    assert not [name for name in ("to_date(", "current_timezone", "to_utc_timestamp") if name in sql]


def test_a_verdict_that_this_version_does_not_know_is_for_somebody_to_look_at(shop: Life) -> None:
    shop.project.run("orders")
    shop.warehouse.has("demo.reconcile_parity")
    status = shop.project.macros.status_of([shop.project.node("orders")], [])
    known = "when 'match' then null when 'confirmed' then 'wrong' when 'in_flight' then 'wait'"
    assert f"case verdict {known} else 'look' end as state" in status


def test_a_model_that_stores_no_row_or_reads_no_staging_table_has_a_row_all_the_same() -> None:
    view = Life(thing(materialized="current_view"))
    view.project.run("orders")
    known = "('demo.orders', 'lake.shop_changes', 'current_view', true)"
    assert known in view.project.compile("reconcile_models"), "the ledger has no row of it, so it has no size"
    own = Life(SHAPES["own_select"])
    own.project.run("orders")
    assert "('demo.orders', cast(null as string), 'current_state', true)" in own.project.compile("reconcile_models")


def test_no_view_reads_the_tables_of_a_model_whose_first_run_failed(shop: Life) -> None:
    """Else a view could not be made, and the run would end with an error of Spark's. It is said to be not built."""
    shop.project.run("orders", *VIEWS)
    (status,) = (sql for sql in shop.warehouse.statements if "view if not exists `demo`.`reconcile_status`" in sql)
    assert "values\n        ('demo.orders', 'orders')" in status
    del shop.warehouse.relations["demo.orders__quarantine"]
    shop.warehouse.statements.clear()
    shop.project.end()
    assert not [sql for sql in shop.warehouse.statements if " view " in sql], "the views of before say what is"


def test_a_model_that_is_declared_and_not_built_is_in_the_state_until_it_has_an_account(shop: Life) -> None:
    """Whoever kills a run leaves views of before: so they ask the ledger what was built since then."""
    shop.project.run("orders")
    shop.project.model("parts", thing(object="shop.parts", config={"alias": "the_parts"}).sql, THINGS)
    built = [shop.project.node("orders")]
    status = " ".join(shop.project.macros.status_of(built, shop.project.macros.reconciled_nodes()).split())
    said = status[status.index("'never_built' as kind") :]
    assert "from values ('demo.the_parts', 'parts') as declared (relation, model)" in said
    assert "left anti join `demo`.`reconcile_ledger` as account on account.relation = declared.relation" in said
    assert "never_built" not in shop.project.macros.status_of(built, built)
    models = " ".join(shop.project.compile("reconcile_models").split())
    assert "('demo.orders', 'lake.shop_changes', 'current_state', true), " in models
    assert "('demo.the_parts', 'lake.shop_changes', 'current_state', false) as models" in models
    assert "the_parts__base" not in models


@pytest.mark.parametrize(
    ("which", "empty", "variables", "is_made"),
    [
        ("run", False, {}, True), ("build", False, {}, True), ("test", False, {}, False), ("run", True, {}, False),
        ("run", False, {"as_of": {"batch": 2}}, False),
    ],
)  # fmt: skip
def test_the_end_of_every_run_that_may_have_built_a_model_makes_the_views_and_no_other_does(
    shop: Life, which: str, empty: bool, variables: dict[str, object], is_made: bool
) -> None:
    shop.project.run(*VIEWS)
    shop.project.run("orders")
    shop.warehouse.statements.clear()
    shop.project.context["flags"] = SimpleNamespace(WHICH=which, EMPTY=empty, FULL_REFRESH=False)
    shop.project.variables |= variables
    shop.project.end()
    made = [sql for sql in shop.warehouse.statements if "replace view `demo`.`reconcile_status`" in sql]
    assert bool(made) is is_made
    assert bool(shop.warehouse.statements) is is_made


def test_what_no_model_reads_is_named_of_the_newest_batches_although_a_model_was_rebuilt_from_the_first_one(
    shop: Life,
) -> None:
    new, other = {"staging": STAGING, "last": 5, "ledger_batch": 0}, {"staging": "lake.others", "last": 9}
    shop.project.graph["reconcile_ranges"] = {
        "1": new | {"model": "rebuilt", "first": 1, "delivered": 100},
        "2": new | {"model": "orders", "first": 4, "delivered": 3},
        "3": new | {"model": "quiet", "first": 5, "delivered": 0, "ledger_batch": 4},
        "4": new | {"model": "misnamed", "first": 1, "delivered": 0},
        "5": other | {"model": "elsewhere", "first": 9, "delivered": 1, "ledger_batch": 8},
    }  # fmt: skip
    shop.warehouse.answers[" as unread"] = [{"unread": "shop.parts: 2 records"}]
    shop.project.begin("run")
    assert shop.project.macros.summary_of_run() == [
        f"No model reads these objects of {STAGING} (batch 4 and later): shop.parts: 2 records. See "
        "reconcile_unrouted.",
        f"No new records for misnamed (none so far); quiet (since batch 4); the last batch of {STAGING} is 5.",
    ]


@pytest.mark.parametrize(("which", "is_said"), [("test", True), ("build", True), ("compile", False)])
def test_a_data_test_says_why_it_fails_with_five_reasons_and_the_number_of_the_others(
    shop: Life, which: str, is_said: bool
) -> None:
    shop.project.run("orders")
    for number in (5, 6, 9):
        shop.warehouse.reasons = tuple(
            ("demo.orders", f"reason {n}", 2, 1, 3, None, number) for n in range(5)
        )  # fmt: skip
        shop.project.logged.clear()
        shop.project.test("no_quarantine", "orders", which=which)
        more = [f"no_quarantine: and {number - 5} more reasons"] if number > 5 else []
        said = [f"no_quarantine of demo.orders: 2 times, batches 1 to 3: reason {n}" for n in range(5)]
        assert shop.project.logged == ([*said, *more] if is_said else [])


def test_a_run_of_a_model_alone_makes_no_view(shop: Life) -> None:
    shop.project.run("orders")
    shop.project.end()
    assert not [sql for sql in shop.warehouse.statements if "reconcile_quarantine" in sql]


def test_without_a_staging_table_the_views_are_empty(shop: Life) -> None:
    shop.warehouse.relations.clear()
    assert shop.project.run(*VIEWS) == ANEW
    assert all(
        "where false" in shop.project.compile(view)
        for view in VIEWS
        if view not in {"reconcile_drift", "reconcile_models"}
    )


def test_at_an_earlier_moment_no_view_is_made() -> None:
    """They are of the present, and would be made in the schema of then."""
    project = PlainProject(Recorder(), "demo", variables={"as_of": {"batch": 3}})
    monitoring = [file.stem for file in (PACKAGE / "models" / "monitoring").glob("*.sql")]
    assert sorted(monitoring) == sorted(VIEWS)
    assert {project.node(view)["config"]["materialized"] for view in monitoring} == {"ephemeral"}


def test_without_a_model_the_views_are_empty() -> None:
    project = PlainProject(Recorder(), "demo")
    assert all("where false" in project.compile(view) for view in VIEWS)


@pytest.mark.parametrize(("source", "waits"), [(ORACLE, True), (SPANNER, True), (MYSQL, False)])
def test_what_waits_in_models_that_have_such_is_in_the_status(source: str, waits: bool) -> None:
    shop = Life(thing(source))
    shop.project.run("orders")
    assert ("'pending' as kind" in shop.project.macros.status_of([shop.project.node("orders")], [])) == waits


def test_a_test_of_a_staging_table_asks_the_models_that_read_it_and_no_others(shop: Life) -> None:
    shop.project.source("lake", "other_changes")
    shop.project.model("parts", thing().sql.replace("shop_changes", "other_changes"), THINGS)
    for name in ("orders__quarantine", "parts__quarantine", "shop_changes", "other_changes"):
        shop.warehouse.has(f"{'demo' if 'quarantine' in name else 'lake'}.{name}")
    for staging, model in (("shop_changes", "orders"), ("other_changes", "parts")):
        nodes = shop.project.macros.nodes_to_test(Relation("lake", staging))
        assert [node["name"] for node in nodes] == [model]


@pytest.mark.parametrize(("count", "ends"), [(1, "n1"), (5, "n5"), (6, "n5 and 1 more"), (9, "n5 and 4 more")])
def test_a_line_about_a_run_has_five_names_and_counts_the_others(shop: Life, count: int, ends: str) -> None:
    said = shop.project.macros._first_five([f"n{number + 1}" for number in range(count)])
    assert said.split("; ")[-1] == ends and said.count(";") == min(count, 5) - 1


def test_what_is_ignored_among_the_unrouted_does_not_take_records_without_an_object_with_it(shop: Life) -> None:
    sql = shop.project.test("no_unrouted", STAGING, ignore=["shop.others"])
    assert "where object is null or object not in ('shop.others')" in sql


@pytest.mark.parametrize(
    ("key", "unique_key", "is_another"),
    [
        ('["id"]', ["id"], False), ('["ID"]', ["id"], False), ('["id"]', ["ID"], False),
        ('["Shop", "id"]', ["ID", "shop"], False), ('["id"]', ["ID", "shop"], True), ('["shop"]', ["id"], True),
        ("[]", ["id"], False), ('["id"]', ["_row_id"], False),
    ],
)  # fmt: skip
def test_the_key_of_the_source_is_compared_in_any_case_and_order(
    shop: Life, key: str, unique_key: list[str], is_another: bool
) -> None:
    assert shop.project.macros.is_other_key(key, unique_key) is is_another
