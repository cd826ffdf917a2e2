"""What the package sends by dbt-databricks, and the list of statements; nothing of it ran on Databricks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from plain_dbt import PACKAGE, CompilerError, PlainProject, Relation
from recorder import Recorder, normalized
from refusals import SENTENCE, Refusal, run, thing
from shapes import IN_ICE, MYSQL, ORACLE, SHAPES, Life, Shape
from snapshots import SNAPSHOT, answer_columns
from test_catalogs import DIGEST
from test_golden_sql import COUNTED, DATA_TESTS, GOLDEN

PAGE = (PACKAGE / "docs" / "internals" / "databricks_statements.md").read_text()
OVERRIDES = (PACKAGE / "docs" / "operations" / "databricks.md").read_text()
# There no snapshot is compared by buckets.
LARGE = "postgresql_beside_a_large_snapshot"
OF_DELTA = [n for n, shape in SHAPES.items() if shape.file_format == "delta" and not shape.catalogs and n != LARGE]
TABLE = r"`[^`]+`(?:\.`[^`]+`){1,2}"
# The package asks for the `first` of copies of one record alone.
BY_CHANCE = re.compile(r"\b(?:current_\w+|now|rand\w*|uuid|shuffle|monotonically_increasing_id|any_value)\(")
BASE = "create or replace table `main`.`demo`.`orders__base`"
VIEW = r"reconcile_[a-z]+_[0-9a-f]{12}"


def on_databricks(shape: Shape) -> Shape:
    """Return the shape in the catalog `main`, by dbt-databricks."""
    return replace(shape, database="main")


# --- the list ---------------------------------------------------------------------------------------------------------


def listed(heading: str) -> dict[str, list[str]]:
    """Return the rows of the table below a heading of the list, by the statement in the first cell."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in section.splitlines() if "|" in line]
    return {cells[0].strip("`"): cells[1:] for cells in rows[2:]}


SENT, RARELY, INSTEAD = map(listed, ("Sent by every project", "Sent seldom", "Sent instead"))


def kind(statement: str) -> str:
    """Return the kind of a statement: the longest pattern of the list that it meets."""
    plain = re.sub(TABLE, "<table>", re.sub(VIEW, "<view>", " ".join(statement.split()))).replace("`", "")
    met = [pattern for pattern in [*SENT, *RARELY, *INSTEAD] if is_of(pattern, plain)]
    assert met, f"docs/internals/databricks_statements.md does not list: {plain[:200]}"
    return max(met, key=len)


def is_of(pattern: str, plain: str) -> bool:
    return bool(re.fullmatch(re.escape(pattern).replace("…", ".*"), plain))


def in_golden_files() -> Iterator[str]:
    for file in sorted(GOLDEN.rglob("*.sql")):
        yield from (sql for sql in file.read_text().strip().split(";\n\n") if not re.match("-- [A-Z]|-- nothing", sql))


def test_the_list_has_every_kind_of_statement_in_the_golden_files_and_no_other() -> None:
    assert {kind(sql) for sql in in_golden_files()} == SENT.keys()


def test_the_list_has_the_statements_that_no_golden_file_has() -> None:
    """Tables of an earlier version, and schemas that have a catalog, which dbt-spark does not find."""
    in_a_catalog = Life(thing(**IN_ICE))
    in_a_catalog.project.run("orders")
    earlier = Life(thing())
    earlier.warehouse.column_types["`reconcile_ledger` where false"] = {"relation": "string"}
    earlier.project.begin("run", ["orders"])
    kinds = {kind(sql) for life in (in_a_catalog, earlier) for sql in life.warehouse.statements}
    assert kinds - SENT.keys() == RARELY.keys()


def test_a_statement_that_is_not_listed_is_noticed() -> None:
    with pytest.raises(AssertionError, match="does not list: vacuum <table>"):
        kind("vacuum `demo`.`orders__base`")
    with pytest.raises(AssertionError, match="does not list: insert overwrite <table>"):
        kind("insert overwrite `main`.`demo`.`orders__base`\nselect 1")


def test_the_list_names_for_each_other_form_a_macro_that_is_dispatched() -> None:
    answers = {cells[0] for cells in (SENT | RARELY).values()}
    assert answers == {"as it is", "not sent", "other form"}
    code = "\n".join(file.read_text() for file in (PACKAGE / "macros").rglob("*.sql"))
    for pattern, cells in (SENT | RARELY).items():
        named = re.findall(r"`(\w+)`", cells[1]) if cells[0] != "as it is" else []
        assert bool(named) == (cells[0] != "as it is"), f"{pattern}: which macro is it?"
        for macro in named:
            assert f"adapter.dispatch('{macro}', 'reconcile')" in code, f"{pattern}: {macro} is not dispatched"
            assert f"macro databricks__{macro}(" in code


def test_each_row_of_the_list_says_where_it_was_read() -> None:
    for pattern, cells in (SENT | INSTEAD).items():
        assert re.search(r"\]\(https://[^)]+\)", cells[-1]), pattern


# --- the statements on Databricks -------------------------------------------------------------------------------------


def accepted(statement: str) -> None:
    """Demand that a statement is one that the list says Databricks takes."""
    found = kind(statement)
    assert found in INSTEAD or (SENT | RARELY)[found][0] == "as it is", (
        f"Databricks does not take it: {statement[:200]}"
    )


def without_spark(statements: list[str]) -> list[str]:
    """Return statements of the form for Spark in that for Databricks, as far as the list lets them differ."""
    cached = re.compile(
        r"cache (?:lazy )?table (\S+) as\nselect \*\nfrom \(\n(.*)\n\)\nwhere '[^']*' is not null", re.S
    )
    temporary = [cached.sub(r"create or replace temporary view \1 as\n\2", sql) for sql in statements]
    return [
        DIGEST.sub("<digest>", sql)
        for sql in temporary
        if not re.match("set .|reset |uncache |describe history `demo`.`orders__", sql)
    ]


def without_databricks(statements: list[str]) -> list[str]:
    """Return statements of the form for Databricks without their catalog, and without the level of isolation."""
    for sql in statements:
        assert not re.search(r"(?<!`main`\.)`(?:demo|demo_as_of|lake)`\.|'(?:demo|lake)\.", sql), sql
    plain = [sql.replace("`main`.", "").replace("main.", "") for sql in statements]
    level = r"\n    'delta\.isolationLevel' = 'Serializable'"
    plain = [re.sub(rf"\ntblproperties \({level}\n\)|{level},", "", sql) for sql in plain]
    return [DIGEST.sub("<digest>", sql) for sql in plain]


@pytest.mark.parametrize("name", OF_DELTA)
def test_a_model_sends_what_it_sends_to_spark_but_for_the_forms_of_the_list(name: str) -> None:
    """What dbt-spark knows of a view without asking, dbt-databricks does not know: a run with nothing to do asks."""
    spark, databricks = Life(SHAPES[name]), Life(on_databricks(SHAPES[name]))
    for phase in SHAPES[name].phases:
        expected, found = spark.statements(phase), databricks.statements(phase)
        for sql in found[:-1]:
            accepted(sql)
        expected, found = without_spark(expected), without_databricks(found)
        if phase == "nothing new":
            expected, found = ([sql for sql in of if not sql.startswith("show")] for of in (expected, found))
        assert found == expected


def test_a_large_snapshot_is_folded_whole() -> None:
    life, small = Life(on_databricks(SHAPES[LARGE])), Life(on_databricks(SHAPES["postgresql_beside_a_snapshot"]))
    for phase in SHAPES[LARGE].phases:
        texts = [[sql.replace("100000", "1875") for sql in one.statements(phase)] for one in (life, small)]
        assert texts[0] == texts[1]


@pytest.mark.parametrize("name", OF_DELTA)
def test_no_view_is_read_after_a_table_below_it_was_written(name: str) -> None:
    """A cached relation keeps its rows; the temporary view in its place would have others."""
    life = Life(on_databricks(SHAPES[name]))
    for phase in SHAPES[name].phases:
        stale(life.statements(phase)[:-1])


def stale(statements: list[str]) -> None:
    """Demand of a run that no temporary view is read once a table that it reads has been written."""
    reads: dict[str, set[str]] = {}
    written: dict[str, set[str]] = {}  # since the view was made
    for sql in statements:
        views = set(re.findall(VIEW, sql))
        if "create or replace temporary view" in sql:
            assert not (call := BY_CHANCE.search(sql)), f"{call} gives other rows each time: {sql[:200]}"
        if made := re.match(rf"create or replace temporary view ({VIEW}) as\n", sql):
            below = [reads[view] for view in views - {made[1]}]
            reads[made[1]] = set(re.findall(TABLE, sql)).union(*below)
            views -= {made[1]}
            written[made[1]] = set()
        if not sql.startswith("drop view"):
            late = {table for view in views for table in reads[view] & written[view]}
            assert not late, f"{', '.join(late)} was written before: {sql[:200]}"
        if target := re.match(rf"(?:insert into|merge into|create table|create or replace table) ({TABLE})", sql):
            for tables in written.values():
                tables.add(target[1])


def test_a_view_that_is_read_too_late_is_noticed() -> None:
    view, base = "reconcile_fold_0123456789ab", "`main`.`demo`.`orders__base`"
    made = f"create or replace temporary view {view} as\nselect * from {base}"
    merge = f"merge into {base} using {view}"
    stale([made, merge])
    with pytest.raises(AssertionError, match="was written before: select"):
        stale([made, merge, f"select count(*) from {view}"])
    with pytest.raises(AssertionError, match="gives other rows each time"):
        stale([f"{made} where at < current_timestamp()"])


@pytest.mark.parametrize("test", DATA_TESTS)
def test_a_data_test_asks_what_databricks_takes(test: str) -> None:
    life = Life(on_databricks(SHAPES[next(name for name in DATA_TESTS[test] if name in OF_DELTA)]))
    life.statements(life.shape.phases[0])
    life.warehouse.statements.clear()
    asked = life.project.test(test, "orders").strip()
    for sql in [*life.warehouse.statements, asked]:
        accepted(sql)
    assert "`main`." in asked or "reconcile_findings" in asked


def test_parity_asks_what_databricks_takes() -> None:
    life = Life(on_databricks(SHAPES["mysql_composite_key"]))
    life.project.run("orders")
    life.warehouse.answers |= {
        " as compared,": dict.fromkeys(COUNTED, 1) | {"tolerated": "{}"}, "describe history": {"version": 7},
    }  # fmt: skip
    snapshot = replace(SNAPSHOT, database="main")
    life.warehouse.has(str(snapshot), reconcile__snapshot="1")
    for relation in (snapshot, life.project.relation("orders")):
        answer_columns(life, life.project.macros.qualified(relation))
    life.warehouse.statements.clear()
    asked = life.project.test("parity", "orders", compare_to=snapshot, key=life.shape.key)
    sent = [*normalized(life.warehouse.statements), asked.strip()]
    for sql in sent:
        accepted(sql)
    assert any(sql.startswith("describe history `main`.") for sql in sent)
    assert any("version as of 7" in sql for sql in sent)


@pytest.mark.parametrize("which", ["run", "build"])
def test_a_run_begins_and_ends_with_what_databricks_takes(which: str) -> None:
    life = Life(on_databricks(SHAPES["mysql_composite_key"]))
    life.project.begin(which)
    begun = list(life.warehouse.statements)
    life.statements("increment")
    life.warehouse.statements.clear()
    life.project.macros.summary_of_run()
    for sql in [*begun, *life.warehouse.statements]:
        accepted(sql)
    assert "set" in begun and "set spark.sql.extensions" not in begun
    assert "create schema if not exists `main`.`demo`" in begun
    (ledger,) = (sql for sql in begun if "create or replace table `main`.`demo`.`reconcile_ledger`" in sql)
    assert "partitioned by (relation)\ntblproperties (\n    'delta.isolationLevel' = 'Serializable'\n)" in ledger


# --- macro by macro ---------------------------------------------------------------------------------------------------


def macros(database: str | None = "main", own: str = "") -> PlainProject:
    return PlainProject(Recorder(), "demo", database=database, own_macros=own)


def test_a_catalog_may_have_the_name_of_its_schema() -> None:
    same = Relation("shop", "orders", database="shop")
    assert macros().macros.qualified(same) == "`shop`.`shop`.`orders`"
    assert macros(None).macros.qualified(same) == "`shop`.`orders`"
    assert macros().macros.relation_of({"database": "shop", "schema": "shop", "alias": "orders"}) == same


def test_a_name_of_two_parts_is_in_the_catalog_of_the_target() -> None:
    named = macros().macros.relation_of_name
    assert named("lake.orders") == Relation("lake", "orders", database="main")
    assert named("old.lake.orders") == Relation("lake", "orders", database="old")
    assert macros(None).macros.relation_of_name("lake.orders") == Relation("lake", "orders")
    with pytest.raises(CompilerError, match=r"The name 'a.b.c.d' has 4 parts"):
        named("a.b.c.d")


def test_a_base_table_lies_where_its_model_says() -> None:
    life = Life(on_databricks(SHAPES["mysql_documented"]))
    life.project.context["location_clause"] = lambda: pytest.fail("dbt-databricks' macro has another signature")
    (base,) = (sql for sql in life.statements("first run") if sql.startswith(BASE))
    assert "\n    location '/lake/orders'\n" in base
    asked = Life(on_databricks(thing(config={"location_root": "/it's"})))
    asked.project.run("orders")
    assert any("location '/it\\'s/orders'" in sql for sql in asked.warehouse.statements)


def of_iceberg() -> Life:
    return Life(on_databricks(thing(file_format="iceberg")))


def with_setting(name: str, value: str) -> Life:
    life = Life(on_databricks(thing()))
    life.warehouse.settings[name] = value
    return life


ONLY_DELTA = (
    "The file_format of the models is iceberg, and on Databricks this package builds only tables of Delta: remove the "
    "file_format, or set `+file_format: delta` in dbt_project.yml."
)
SETTINGS = {"LEGACY_TIME_PARSER_POLICY": "LEGACY", "spark.sql.caseSensitive": "true"}


def setting(name: str) -> Refusal:
    says = (
        f"This Spark session has {name} set to {SETTINGS[name]}, which changes the meaning of this package's SQL: "
        "remove the setting where the session gets its configuration, and run again."
    )
    return Refusal(run(lambda: with_setting(name, SETTINGS[name])), [says], SENTENCE)


REFUSED = [Refusal(run(of_iceberg), [ONLY_DELTA], SENTENCE), *map(setting, SETTINGS)]


@pytest.mark.parametrize("refusal", REFUSED)
def test_a_session_of_databricks_that_cannot_be_is_refused(refusal: Refusal) -> None:
    refusal.check()


def test_a_setting_that_changes_nothing_is_taken() -> None:
    with_setting("LEGACY_TIME_PARSER_POLICY", "EXCEPTION").project.run("orders")
    with_setting("ANSI_MODE", "true").project.run("orders")


# --- what a project overrides -----------------------------------------------------------------------------------------

OWN = """{%- macro NAME__cached(name, query, lazy=false) -%}
  {{ return('create temporary table ' ~ name ~ ' as ' ~ query) }}
{%- endmacro -%}
"""
OWNED = """{%- macro default__format_properties(file_format) -%}
  {{ return(dict(reconcile.default__format_properties(file_format), owner='shop')) }}
{%- endmacro -%}
"""


@pytest.mark.parametrize(
    ("adapter", "prefix", "is_taken"),
    [
        ("spark", "spark", True), ("spark", "default", True), ("spark", "databricks", False),
        ("databricks", "databricks", True), ("databricks", "spark", True), ("databricks", "default", True),
    ],
)  # fmt: skip
def test_a_projects_own_form_of_a_macro_is_taken_before_the_packages(adapter: str, prefix: str, is_taken: bool) -> None:
    """dbt looks through all forms of the project, and then through those of the package."""
    database = "main" if adapter == "databricks" else None
    own = macros(database, OWN.replace("NAME", prefix)).macros.cached("rows", "select 1")
    assert (own == "create temporary table rows as select 1") is is_taken
    assert macros(database).macros.cached("rows", "select 1") != own or not is_taken


def test_the_nearest_form_of_a_project_is_taken() -> None:
    both = OWN.replace("NAME", "default").replace("temporary", "another") + OWN.replace("NAME", "spark")
    assert macros(None, both).macros.cached("rows", "select 1") == "create temporary table rows as select 1"


def test_a_model_is_built_by_the_projects_own_form() -> None:
    life = Life(thing(MYSQL), own_macros=OWN.replace("NAME", "spark"))
    life.project.run("orders")
    made = [sql for sql in life.warehouse.statements if sql.startswith("create temporary table reconcile_")]
    assert made and not any(sql.startswith("cache") for sql in life.warehouse.statements)


def test_an_own_form_calls_the_packages() -> None:
    life = Life(thing(ORACLE), own_macros=OWNED)
    life.project.run("orders")
    made = [sql for sql in life.warehouse.statements if sql.startswith("create or replace table")]
    assert made and all("'owner' = 'shop'" in sql for sql in made)


def test_a_macro_without_any_form_is_an_error() -> None:
    with pytest.raises(CompilerError, match="No macro named 'nothing' found"):
        macros().context["adapter"].dispatch("nothing", "reconcile")


def test_the_docs_name_every_macro_that_a_project_may_override() -> None:
    code = "\n".join(file.read_text() for file in (PACKAGE / "macros").rglob("*.sql"))
    dispatched = set(re.findall(r"adapter\.dispatch\('(\w+)', 'reconcile'\)", code))
    section = OVERRIDES.split("## Override a macro\n")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)\(", section, re.M)) == dispatched
    for name in dispatched:
        assert f"macro default__{name}(" in code and f"macro databricks__{name}(" in code
