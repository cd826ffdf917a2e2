"""Names with a catalog: every statement has them where it has a name of two parts, and what cannot be is refused."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from plain_dbt import PACKAGE, CompilerError, PlainProject, Relation
from recorder import Recorder, normalized
from refusals import SENTENCE, Refusal, run, thing
from shapes import CATALOGS, ICEBERG_CATALOG, IN_ICE, IN_LAKE, ORACLE, SHAPES, Life, Shape
from snapshots import answer_columns
from test_golden_sql import COUNTED, DATA_TESTS
from test_monitoring_views import VIEWS

DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
LISTING = re.compile(r"show (?:schemas|tables|views) in [^ ]*|set `spark\.sql\.catalog\..*`")
DIGEST = re.compile(r"(?<![0-9a-f])(?:[0-9a-f]{12}|[0-9a-f]{32})(?![0-9a-f])")
WITHOUT_A_CATALOG = re.compile(r"(?<![`.])`?(?<!\.`)(?:demo|demo_as_of|raw)`?\.`")


def in_catalogs(shape: Shape) -> Shape:
    """Return the shape with its staging table in one catalog, and all that the package makes in another."""
    kept = {"base_snapshot": "ice.lake.orders_kept"} if "base_snapshot" in shape.meta else {}
    of_ice = {"ice": DELTA_CATALOG} if shape.file_format == "delta" else {}
    return replace(
        shape, staging="lake.raw.shop_changes", schema="ice.demo", catalogs=CATALOGS | of_ice,
        meta={**shape.meta, **kept},
    )  # fmt: skip


def without_catalogs(statements: list[str]) -> list[str]:
    """Return statements with names of two parts; those that list what dbt itself would have listed are left out."""
    for sql in statements:
        assert not WITHOUT_A_CATALOG.search(sql), sql
    kept = [DIGEST.sub("<digest>", sql) for sql in statements if not LISTING.fullmatch(sql)]
    for name, without in (
        ("`ice`.", ""),
        ("`lake`.`raw`.", "`lake`."),
        ("ice.demo", "demo"),
        ("ice.lake.", "lake."),
        ("lake.raw.", "lake."),
    ):
        kept = [sql.replace(name, without) for sql in kept]
    return kept


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if not shape.catalogs])
def test_every_statement_names_the_catalog_where_it_names_a_relation(name: str) -> None:
    """What dbt knows of a view without asking, it does not know of one in a catalog: a run with nothing to do asks."""
    shape = SHAPES[name]
    plain, moved = Life(shape), Life(in_catalogs(shape))
    for phase in shape.phases:
        expected, found = plain.statements(phase), without_catalogs(moved.statements(phase))
        if phase == "nothing new":
            found = [sql for sql in found if not re.fullmatch("show tblproperties [^ ]*", sql)]
            expected = [sql for sql in expected if not re.fullmatch("show tblproperties [^ ]*", sql)]
        assert found == [DIGEST.sub("<digest>", sql) for sql in expected]


@pytest.mark.parametrize("test", [*DATA_TESTS, "no_unrouted", "parity"])
def test_data_tests_name_the_catalog(test: str) -> None:
    shape = SHAPES[DATA_TESTS.get(test, ["mysql_composite_key"])[0]]
    texts = []
    for of in (shape, in_catalogs(shape)):
        life, said = Life(of), {}
        life.statements(shape.phases[0])
        if test == "parity":
            life.project.run("orders")
            life.warehouse.answers |= {
                " as compared,": dict.fromkeys(COUNTED, 1) | {"tolerated": "{}"}, "describe history": {"version": 7},
            }  # fmt: skip
            snapshot = Relation("ice.lake" if of.catalogs else "lake", "orders_source")
            life.warehouse.has(str(snapshot))
            for relation in (snapshot, life.project.relation("orders")):
                answer_columns(life, life.project.macros.qualified(relation))
            said = {"compare_to": snapshot, "key": shape.key}
        life.warehouse.statements.clear()
        asked = life.project.test(test, of.staging if test == "no_unrouted" else "orders", **said)
        texts.append([*life.warehouse.statements, asked.strip()])
    plain, moved = map(normalized, texts)
    assert without_catalogs(moved) == [DIGEST.sub("<digest>", sql) for sql in plain]
    assert any("`ice`.`demo`" in sql or "`lake`.`raw`" in sql for sql in moved)


def test_a_run_begins_and_ends_and_shows_what_it_did_with_the_catalog() -> None:
    """Views of monitoring, the ledger, the cut, the summary, and the YAML of the tables."""
    shape = SHAPES["mysql_composite_key"]
    sides = []
    for of in (shape, in_catalogs(shape)):
        life = Life(of)
        life.project.begin("build")
        life.statements("first run")
        life.statements("increment")
        life.project.macros.summary_of_run()
        life.warehouse.statements.extend(life.project.compile(view) for view in VIEWS)
        life.project.macros.tables_as_sources()
        sides.append([*life.warehouse.statements, *life.project.printed])
    plain, moved = map(normalized, sides)
    assert "name: reconcile_tables\n" in moved[-1] and "schema: '{{ target.schema }}'\n" in moved[-1]
    assert without_catalogs(moved) == [DIGEST.sub("<digest>", sql) for sql in plain]


def test_the_tables_of_another_catalog_are_a_source_of_its_own() -> None:
    life = Life(replace(thing(), catalogs=CATALOGS))
    life.project.node("orders")["schema"] = "ice.demo"
    for name in ("orders", "orders__base", "orders__quarantine"):
        life.warehouse.has(f"ice.demo.{name}")
    life.project.macros.tables_as_sources()
    assert "name: reconcile_tables_ice_demo\n" in life.project.printed[0]
    assert "schema: ice.demo\n" in life.project.printed[0]


# --- names ------------------------------------------------------------------------------------------------------------


def macros(database: str | None = None, **catalogs: str) -> Any:
    warehouse = Recorder(catalogs=catalogs)
    project = PlainProject(warehouse, "demo")
    if database:
        project.context["target"].database = database
    return project.macros


@pytest.mark.parametrize(
    ("relation", "sql", "name"),
    [
        (Relation("demo", "orders"), "`demo`.`orders`", "demo.orders"),
        (Relation("lake.raw", "orders"), "`lake`.`raw`.`orders`", "lake.raw.orders"),
        (Relation("raw", "orders", database="lake"), "`lake`.`raw`.`orders`", "lake.raw.orders"),
        (Relation("demo", "orders", database="demo"), "`demo`.`orders`", "demo.orders"),
        (Relation("my-lake.ra`w", "o.1"), "`my-lake`.`ra``w`.`o.1`", "my-lake.ra`w.o.1"),
    ],
)
def test_a_name_has_two_parts_or_three(relation: Relation, sql: str, name: str) -> None:
    assert macros().qualified(relation) == sql
    assert macros().ledger_name(relation) == name


NAMES = {
    "lake.a.raw": "The name 'lake.a.raw.orders' has 4 parts, and this package knows a schema in a catalog, but no "
    "schema in a schema; write it as catalog.schema.table.",
    "lake.": "The name 'lake..orders' has an empty part; write it as schema.table, or as catalog.schema.table.",
    ".raw": "The name '.raw.orders' has an empty part; write it as schema.table, or as catalog.schema.table.",
    "my lake.raw": "The name 'my lake.raw.orders' begins with the catalog 'my lake'; the name of a catalog has only "
    "ASCII letters, digits, _ and -.",
}  # fmt: skip


def name_of(schema: str, macro: str = "qualified") -> Refusal:
    act = functools.partial(getattr(macros(), macro), Relation(schema, "orders"))
    return Refusal(act, [NAMES[schema]], SENTENCE)


@pytest.mark.parametrize("schema", NAMES)
def test_a_name_of_another_form_is_refused(schema: str) -> None:
    for macro in ("qualified", "ledger_name", "qualified_schema"):
        name_of(schema, macro).check()


def test_a_name_that_somebody_writes_is_read() -> None:
    known = {"lake.orders": Relation("lake", "orders"), "ice.lake.orders": Relation("ice.lake", "orders")}
    assert {name: macros().relation_of_name(name) for name in known} == known
    of_databases = {name: macros("main").relation_of_name(name) for name in known}
    assert of_databases == known | {"ice.lake.orders": Relation("lake", "orders", database="ice")}
    says = "The name 'a.b.c.d' has 4 parts, and this package knows a schema in a catalog, but no schema in a schema"
    with pytest.raises(CompilerError, match=re.escape(says)):
        macros().relation_of_name("a.b.c.d")


def test_an_adapter_that_knows_databases_gives_the_catalog_itself() -> None:
    """Such an adapter finds its relations; where the platform has the catalogs, no setting names their class."""
    project = PlainProject(Recorder(), "demo")
    project.context["target"].database = "main"
    assert project.macros.ledger() == Relation("demo", "reconcile_ledger", "table", database="main")
    node = {"database": "main", "schema": "shop", "alias": "orders"}
    assert project.macros.relation_of(node) == Relation("shop", "orders", database="main")
    found: list[Relation] = []
    project.context["load_relation"] = lambda relation: found.append(relation) or relation
    asked = Relation("raw", "changes", database="lake")
    assert project.macros.existing_relation(asked) == asked and found == [asked]
    moved = project.macros.in_schema(asked, "raw_as_of")
    assert moved == Relation("raw_as_of", "changes", database="lake")
    assert project.macros.class_of_catalog("main") == ""
    project.macros.check_session({"main": "delta"})
    assert "set spark.sql.extensions" in project.warehouse.statements


def test_dbt_is_not_asked_for_a_relation_whose_schema_has_a_catalog() -> None:
    """It would note the table under the schema alone, where another catalog may have a table of this name."""
    life = Life(thing(**IN_LAKE))
    life.project.context["load_relation"] = lambda relation: pytest.fail(f"dbt is asked for {relation}")
    found = life.project.macros.existing_relation(Relation("lake.raw", "SHOP_changes"))
    assert found.type == "table"
    assert life.project.macros.existing_relation(Relation("lake.raw", "others")) is None
    assert life.project.macros.existing_relation(Relation("lake.nothing", "shop_changes")) is None
    asked = [sql for sql in life.warehouse.statements if "raw" in sql]
    assert asked == ["show tables in `lake`.`raw`"], "once for a schema, and no views of a catalog that has none"


def test_a_test_of_dbt_build_sees_what_dbt_has_just_made() -> None:
    life = Life(thing(**IN_LAKE))
    made = Relation("lake.raw", "made_by_dbt")
    macros = life.project.macros
    assert macros.existing_relation(made) is None
    life.warehouse.has(str(made))
    for which, resource, found in (("run", "model", None), ("build", "model", None), ("build", "test", made)):
        life.project.context["flags"] = SimpleNamespace(WHICH=which)
        life.project.context["model"] = SimpleNamespace(resource_type=resource)
        assert str(macros.existing_relation(made)) == str(found)


# --- what a project declares ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "custom", "meta", "expected"),
    [
        ("demo", None, {}, "demo"),
        ("demo", "marts", {}, "demo_marts"),
        ("demo", "marts", {"catalog": "ice"}, "ice.demo_marts"),
        ("lake.demo", None, {}, "lake.demo"),
        ("lake.demo", None, {"catalog": "ice"}, "ice.demo"),
    ],
)
def test_a_schema_has_the_catalog_that_the_model_declares(
    schema: str, custom: str | None, meta: Mapping[str, str], expected: str
) -> None:
    node = SimpleNamespace(config=SimpleNamespace(meta=meta))
    named = PlainProject(Recorder(), schema).macros
    assert named.default__generate_schema_name(custom, node) == expected
    assert named.schema_in_catalog(expected, None) == expected


def life_of(meta: Mapping[str, Any], of_source: Mapping[str, Any] | None = None, database: str | None = None) -> Life:
    life = Life(replace(thing(), meta=meta, catalogs=CATALOGS))
    life.project.graph["sources"]["source.shop.lake.shop_changes"] |= {
        "source_name": "lake", "config": {"meta": dict(of_source or {})},
    }  # fmt: skip
    if database:
        life.project.context["target"].database = database
    return life


IN_PROJECT = (
    "meta catalog is ice, and dbt names the table demo.orders; write `dispatch: [{macro_namespace: dbt, search_order: "
    "[reconcile, dbt]}]` into dbt_project.yml, or let your generate_schema_name call reconcile.schema_in_catalog"
)
CATALOGS_REFUSED = {
    "of a model, which dbt does not know": Refusal(run(lambda: life_of({"catalog": "ice"})), [IN_PROJECT]),
    "of a source": Refusal(
        run(lambda: life_of({}, {"catalog": "lake"})),
        ["source lake.shop_changes: meta catalog is lake, and dbt names the table lake.shop_changes; write "
         "`schema: lake.lake` in its YAML"],
    ),
    "of a model where there are databases": Refusal(
        run(lambda: life_of({"catalog": "ice"}, database="main")),
        ["meta catalog is ice, and dbt names the table demo.orders; write `database: ice` in its config"],
    ),
    "beside meta": Refusal(
        run(lambda: Life(thing(config={"catalog": "ice"}))),
        ["config catalog: it is outside of meta, where it has no effect; write `meta={'catalog': ...}`"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", CATALOGS_REFUSED)
def test_a_catalog_that_dbt_does_not_know_of_is_refused(which: str) -> None:
    CATALOGS_REFUSED[which].check()


def test_a_declared_catalog_that_dbt_knows_is_no_complaint() -> None:
    life = Life(replace(thing(**IN_ICE), meta={"catalog": "ice"}))
    life.project.graph["sources"]["source.shop.lake.shop_changes"]["meta"] = {"catalog": "lake"}
    life.project.run("orders")
    assert "ice.demo.orders__base" in life.warehouse.relations


NO_CATALOG = (
    "This Spark session has no catalog '{0}': set spark.sql.catalog.{0} and its options where the session gets its "
    "configuration, or correct the name of the catalog."
)
BUILDS = "in which this project builds tables, is of the class"
SESSIONS = {
    "no catalog of staging": (IN_LAKE, {"lake": None}, NO_CATALOG.format("lake")),
    "no catalog of models": (IN_ICE, {"ice": None}, NO_CATALOG.format("ice")),
    "a catalog of Delta": (
        IN_ICE, {"ice": DELTA_CATALOG},
        f"The file_format of the models is iceberg, and the catalog 'ice', {BUILDS} {DELTA_CATALOG}: name another "
        "catalog, or set the `file_format` of the models to that of the catalog.",
    ),
    "a catalog of Iceberg": (
        IN_ICE | {"file_format": "delta"}, {},
        f"The file_format of the models is delta, and the catalog 'ice', {BUILDS} {ICEBERG_CATALOG}: name another "
        "catalog, or set the `file_format` of the models to that of the catalog.",
    ),
    "a catalog without views": (
        IN_ICE, {"ice.type": "hadoop"},
        "The catalog 'ice' is a hadoop catalog, which holds no views, and every model of this package has views beside "
        "its tables: build the models in a catalog of the type hive, jdbc or rest; staging tables may stay in ice.",
    ),
    "no extension": (
        IN_ICE, {},
        "This project builds views in the catalog 'ice', and this Spark session has no extension for Iceberg's views: "
        "add org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions to spark.sql.extensions where the "
        "session gets its configuration.",
    ),
    "a catalog without views, by its class": (
        IN_ICE, {"ice.type": None, "ice.catalog-impl": "org.apache.iceberg.hadoop.HadoopCatalog"},
        "The catalog 'ice' is a hadoop catalog, which holds no views, and every model of this package has views beside "
        "its tables: build the models in a catalog of the type hive, jdbc or rest; staging tables may stay in ice.",
    ),
}  # fmt: skip


def session(which: str) -> Refusal:
    shape, changed, says = SESSIONS[which]

    def life() -> Life:
        living = Life(thing(**shape))
        for name, value in changed.items():
            living.warehouse.catalogs.pop(name, None)
            if value:
                living.warehouse.catalogs[name] = value
        if which == "no extension":
            living.warehouse.extensions = "io.delta.sql.DeltaSparkSessionExtension"
        return living

    return Refusal(run(life), [says], SENTENCE)


REFUSED = [*map(name_of, NAMES), *CATALOGS_REFUSED.values(), *map(session, SESSIONS)]


@pytest.mark.parametrize("which", SESSIONS)
def test_a_session_whose_catalogs_cannot_be_is_refused(which: str) -> None:
    session(which).check()


def test_the_session_s_own_catalog_may_be_named() -> None:
    life = Life(thing(schema="spark_catalog.demo", catalogs=CATALOGS))
    life.project.run("orders")
    assert "spark_catalog.demo.orders__base" in life.warehouse.relations


@pytest.mark.parametrize(
    ("schema", "expected"), [("kept", "ice.kept"), ("lake.kept", "lake.kept"), (None, "ice.demo_as_of")]
)
def test_an_earlier_moment_stays_in_the_catalog_unless_another_is_named(schema: str | None, expected: str) -> None:
    project = PlainProject(Recorder(), "ice.demo", variables={"as_of": {"batch": 2}, "as_of_schema": schema})
    assert project.macros.destination(Relation("ice.demo", "orders")) == Relation(expected, "orders")


@pytest.mark.parametrize(("target", "of_ledger"), [("ice.ours", "iceberg"), ("ours", "delta")])
def test_the_tables_of_the_package_have_the_format_of_their_catalog(target: str, of_ledger: str) -> None:
    """Whatever the models beside them have, and wherever those are: no model is in the catalog of the ledger here."""
    of_models = "delta" if of_ledger == "iceberg" else "iceberg"
    life = Life(replace(thing(), schema=target, file_format=of_models, catalogs=CATALOGS))
    life.warehouse.catalog = DELTA_CATALOG
    life.project.node("orders")["schema"] = "demo" if of_models == "delta" else "ice.demo"
    life.project.run("orders")
    made = [sql for sql in life.warehouse.statements if re.search(r"^create .*table .*\n?", sql.strip())]
    formats = {re.search(r"`(\w+)`(?= \(| using|\n)", sql)[1]: re.search(r"using (\w+)", sql)[1] for sql in made}  # type: ignore[index]
    assert formats == {
        "reconcile_ledger": of_ledger, "reconcile_columns_seen": of_ledger, "orders__base": of_models,
        "orders__quarantine": of_models,
    }  # fmt: skip
    (account,) = (sql for sql in life.warehouse.statements if "invocation_id" in sql and "current_timestamp" in sql)
    assert account.startswith("merge into" if of_ledger == "iceberg" else "insert into")


@pytest.mark.parametrize(("said", "expected"), [({}, "delta"), ({"file_format": None}, "delta"),
                                             ({"file_format": "iceberg"}, "iceberg")])  # fmt: skip
def test_a_model_that_says_no_format_is_of_delta(said: Mapping[str, Any], expected: str) -> None:
    assert macros().file_format(SimpleNamespace(config=said)) == expected


def test_models_of_two_formats_are_in_two_catalogs() -> None:
    life = Life(replace(thing(), catalogs=CATALOGS))
    life.warehouse.catalog = DELTA_CATALOG
    life.project.model("more", thing().sql, {"id": "bigint"}, config={"file_format": "iceberg"})
    life.project.node("more")["schema"] = "ice.demo"
    assert life.project.macros.file_formats() == {None: "delta", "ice": "iceberg"}
    life.project.run("orders")


def test_a_version_is_asked_in_the_format_of_its_table() -> None:
    project = PlainProject(Recorder(catalogs=CATALOGS), "demo")
    project.warehouse.answers = {"describe history": {"version": 7}, ".refs where": {"snapshot_id": 77}}
    versions = {
        file_format: project.macros.table_version(Relation("ice.kept", "things"), file_format)
        for file_format in ("iceberg", "delta")
    }
    assert versions == {"iceberg": 77, "delta": 7}
    assert project.macros.file_format_of_catalog("ice") == "iceberg"


def test_names_are_put_together_in_one_file() -> None:
    """`relation_names.sql` alone makes relations and takes their names apart."""
    built = re.compile(
        r"\.schema\s*~|api\.Relation\.create|identifier\((?:[a-z_]+\.)*schema\)|\.schema\s*==|\.schema\.s|"
        r"base_snapshot\.split|\.identifier\s*==|\.alias\s*=="
    )  # fmt: skip
    asked = re.compile(r"(?<![\w.])load_relation\(|adapter\.get_relation")
    for file in sorted((PACKAGE / "macros").rglob("*.sql")):
        text = re.sub(r"{#.*?#}", "", file.read_text(), flags=re.S)
        if file.name != "relation_names.sql":
            text = text.replace("metadata }}.schema", "").replace("relation.schema ~ '_as_of'", "")
            assert not built.search(text), f"{file.name}: {built.search(text)}"
        if file.name != "existing_relation.sql":
            assert not asked.search(text), f"{file.name} asks dbt for a relation that dbt-spark may not find"


def test_row_ids_have_their_table_in_the_catalog() -> None:
    life = Life(thing(ORACLE, row_ids=True, **IN_ICE))
    life.warehouse.keyless_deletes = 1
    life.project.run("orders")
    assert "ice.demo.orders__row_deletes" in life.warehouse.relations
