"""Names that cannot be are refused by name: of columns, of which Spark replaces parts, and of relations."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from plain_dbt import CompilerError, PlainProject, Relation
from recorder import Recorder
from refusals import SENTENCE, THINGS, Refusal, run, thing
from shapes import Life

RAISE = "{{ exceptions.raise_compiler_error('evaluated') }}"
DROP = "'; drop table lake.canary; --"
VARIABLE = "'${', which Spark replaces by a variable before it reads the SQL"
COLUMNS = {"${env:HOME}": VARIABLE, "a${b}": VARIABLE, "a\nb": "a line break", "${a}\n": "a line break"}
OWN = ["_change_type", "_CHANGE_x", "_deleted", "_Deleted", "_change_"]
WORKING = ["select", "order", "1st", "_", "x" * 240]
RELATIONS = [
    "a`b", 'a"b', "a'b", "a b", "a.b", "a;b", "a,b", "a%b", "%s", "a$b", "${env:HOME}", "a\\b", "a--b", "/*",
    "*/", "ä", "李雷", "{{ a }}", "a\n", RAISE, DROP, "x" * 241,
]  # fmt: skip


def column(name: str, says: str, by: str) -> Refusal:
    return Refusal(run(lambda: Life(thing(columns={**THINGS, name: "string"}))), [says], by)


def relation(alias: str) -> Refusal:
    shown = alias.replace("\n", "�")
    says = (
        f"Spark's catalog does not accept the name '{shown}': a name has at most 240 ASCII letters, digits and _; "
        "give the model an alias"
    )
    return Refusal(run(lambda: Life(thing(config={"alias": alias}))), [says])


OF_COLUMNS = {
    # The first that is named is the column's value.
    **{
        name: column(name, f"The name 'value {name}' contains {what}; rename it.", SENTENCE)
        for name, what in COLUMNS.items()
    },
    **{
        name: column(
            name,
            f"column {name}: the package reserves _deleted and names that begin with _change_; rename the column",
            "Model orders",
        )
        for name in OWN
    },
}
OF_RELATIONS = {alias: relation(alias) for alias in RELATIONS}
REFUSED = [*OF_COLUMNS.values(), *OF_RELATIONS.values()]


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_columns_that_cannot_be_are_refused_by_name(name: str) -> None:
    OF_COLUMNS[name].check()


@pytest.mark.parametrize("alias", OF_RELATIONS)
def test_relations_that_the_catalog_does_not_take_are_refused_by_name(alias: str) -> None:
    OF_RELATIONS[alias].check()


@pytest.mark.parametrize("alias", WORKING)
def test_relations_that_the_catalog_takes_are_made(alias: str) -> None:
    life = Life(thing(config={"alias": alias}))
    life.project.run("orders")
    made = {name.removeprefix("demo.") for name in life.warehouse.relations if alias in name}
    assert made >= {alias, f"{alias}__base", f"{alias}__changes", f"{alias}__quarantine"}


@pytest.mark.parametrize("name", ["_chang", "deleted", "change_type", "$", "a$b", "$ {a}"])
def test_names_that_are_like_them_are_taken(name: str) -> None:
    Life(thing(columns={**THINGS, name: "string"})).project.run("orders")


# Iceberg's specification names them as metadata columns and as columns of row lineage.
@pytest.mark.parametrize(
    "name",
    [
        "_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number", "_FILE",
        "_Row_Id",
    ],
)  # fmt: skip
def test_names_that_iceberg_reserves_in_any_case_are_stored_under_another(name: str) -> None:
    macros = Life(thing()).project.macros
    assert macros.stored_column(f"`{name}`", "iceberg") == f"`_change{name}`"
    assert macros.stored_column(f"`{name}`", "delta") == f"`{name}`"
    assert macros.stored_column("`file`", "iceberg") == "`file`"


def test_models_of_one_name_in_two_schemas_share_nothing() -> None:
    """What a run caches lies in the session, which has no schemas."""
    macros = Life(thing()).project.macros
    one, other = (macros.model_relations(Relation(schema, "orders")) for schema in ("one", "other"))
    assert one.keys() == other.keys()
    assert {str(one[name]) for name in one} & {str(other[name]) for name in other} == set()


def test_tables_whose_names_differ_in_case_alone_are_two() -> None:
    macros = PlainProject(Recorder(), "demo").macros
    names = ["Orders", "orders", "ORDERS", "orders"]
    for database in (None, "erp"):
        sql = macros.is_of_tables("metadata", [[database, "shop", name] for name in names])
        assert [sql.count(f"'{name}'") for name in names] == [1, 1, 1, 1]


@pytest.mark.parametrize("character", " ,;{}()\n\t=")
def test_a_base_table_of_delta_keeps_names_that_parquet_has_not(character: str) -> None:
    macros = PlainProject(Recorder(), "demo").macros
    for name, mapped in ((f"a{character}b", True), ("a_b", False)):
        form = {"file_format": "delta", "columns": [{"name": name, "type": macros.column_type("string")}]}
        assert ("delta.columnMapping.mode" in macros.base_format_properties(form)) is mapped


@pytest.mark.parametrize(("type_", "needs"), [
    ("timestamp_ntz", True), ("array<timestamp_ntz>", True), ("map<string,timestamp_ntz>", True), ("timestamp", False),
])  # fmt: skip
def test_a_base_table_of_delta_says_that_it_has_moments_without_a_zone_at_any_depth(type_: str, needs: bool) -> None:
    macros = PlainProject(Recorder(), "demo").macros
    form = {"file_format": "delta", "columns": [{"name": "a", "type": macros.column_type(type_)}]}
    assert ("delta.feature.timestampNtz" in macros.base_format_properties(form)) is needs


def test_a_merge_marks_rows_and_does_not_write_their_files_again() -> None:
    macros = PlainProject(Recorder(), "demo").macros
    of_delta, of_iceberg = (
        macros.base_format_properties({"file_format": name, "columns": []}) for name in ("delta", "iceberg")
    )
    assert of_delta["delta.enableDeletionVectors"] == "true"
    assert {of_iceberg[f"write.{kind}.mode"] for kind in ("merge", "update", "delete")} == {"merge-on-read"}
    # Version 2 has files of deletes, which each read joins; a weaker level lets two runs insert one key twice.
    assert (of_iceberg["format-version"], of_iceberg["write.merge.isolation-level"]) == ("3", "serializable")
    # The first 16 characters of a sequence are no more than its generation and the beginning of its place.
    assert of_iceberg["write.metadata.metrics.column._change_sequence"] == "full"


def test_the_label_of_an_earlier_moment_wins_over_what_a_model_sets_and_that_over_the_format() -> None:
    macros = PlainProject(Recorder(), "demo").macros
    own = {"format-version": "2", "reconcile.as_of": "now", "owner": "shop"}
    said = macros.properties_of("iceberg", {"label": "batch 2"}, own)
    assert (said["format-version"], said["reconcile.as_of"], said["owner"]) == ("2", "batch 2", "shop")
    assert macros.properties_of("delta", None, own) == own


def test_a_history_on_delta_has_no_change_data_feed_since_the_feed_has_a_column_of_its_name() -> None:
    macros = PlainProject(Recorder(), "demo").macros
    for materialized, said in (("history", "false"), ("current_state", None)):
        form = {"file_format": "delta", "columns": [], "materialized": materialized}
        assert macros.base_format_properties(form).get("delta.enableChangeDataFeed") == said


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("OR-ders", "orders"), ("ordexs", "orders"), ("xrders", "orders"), ("ordersx", "orders"), ("oorders", "orders"),
        ("orers", "orders"), ("rders", "orders"), ("order", "orders"), ("odrers", "orders"), ("ordesr", "orders"),
        ("oxdexs", None), ("oder", None), ("orderxy", None), ("roredrs", None), ("redors", None),
        # Of short names nearly all are one letter apart.
        ("IDS", "ids"), ("idz", None), ("id", None), ("idss", "ids"), ("shops", "shop_s"),
    ],
)  # fmt: skip
def test_a_name_that_one_letter_or_a_sign_makes_is_meant(written: str, meant: str | None) -> None:
    macros = PlainProject(Recorder(), "demo").macros
    assert macros.nearest_name(written, ["ids", "orders", "Orders", "shop_s"]) == meant


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("lake.orders", True), ("ice.lake.orders", True), ("my-ice.lake.orders", True), ("orders", False),
        (".orders", False), ("lake.", False), ("a.ice.lake.orders", False), ("i ce.lake.orders", False),
    ],
)  # fmt: skip
def test_a_text_is_the_name_of_a_relation_with_a_schema_alone_or_after_a_catalog(name: str, is_one: bool) -> None:
    assert PlainProject(Recorder(), "demo").macros.is_name_of_relation(name) is is_one


def test_what_is_printed_of_values_and_names_paints_nothing_on_a_terminal() -> None:
    project = Life(thing()).project
    assert project.macros.printable("Übel 一 \x1b[2J\x07\n\x85\u202e.") == "Übel 一 �[2J����."
    project.context["flags"] = SimpleNamespace(WHICH="test")
    project.context["run_query"] = lambda sql: [("shop.orders", "total: '\x1b[31m'", 1, 2, 2, "\u202e7", 1)]
    project.macros.log_reasons("no_quarantine", "select 1")
    assert project.logged == ["no_quarantine of shop.orders: 1 time, batch 2: total: '�[31m' (for example the key �7)"]
    project.context["model"] = SimpleNamespace(name="orders")
    with pytest.raises(CompilerError, match=re.escape("Model orders:\n  - no �[mJ")):
        project.macros.raise_complaints(["no \x1b[mJ"])
