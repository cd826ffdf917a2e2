"""generate.py: what it prints, writes and ends with; --check and --diff write nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import generate
import pytest
from cells import data_change, set_cell
from generated import change, observed, texts
from reconcile_jobs.generation import avro_files, dictionary, staged_tables
from reconcile_jobs.generation.avro_types import Header
from reconcile_jobs.generation.declarations import Declaration
from reconcile_jobs.generation.observations import Observations, Place
from reconcile_jobs.generation.plan import Plan
from reconcile_jobs.generation.streams import DATASTREAM, Stream
from reconcile_jobs.generation.tables import Refusal
from reconcile_jobs.generation.witnesses import Witness
from reconcile_jobs.process import session, written_files
from reconcile_jobs.process.console import Console
from reconcile_jobs.process.errors import UsageError
from spanner import data_change_record, mod

OPTIONS = {"--staging": "lake.shop_changes", "--into": "models/shop"}
RECORDS = [change(), change("lines", key=[]), change("customers", {"id": 1})]

Run = Callable[..., tuple[int, dict[str, Any], str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in a project, and return exit code, line of JSON, what comes before it, and sentences."""
    monkeypatch.chdir(tmp_path)
    Path("dbt_project.yml").write_text("name: shop\n")
    staged: dict[str, Any] = {"records": RECORDS}
    monkeypatch.setattr(session, "start", lambda name: None)

    def observe(spark: None, staging: Any, stream: Stream, since_batch: int | None) -> Observations:
        assert str(staging).endswith("lake.shop_changes")
        of_batches = [each if isinstance(each, tuple) else (each, 1) for each in staged["records"]]
        since = since_batch if any(isinstance(each, tuple) for each in staged["records"]) else None
        return observed([each for each in of_batches if since is None or each[1] >= since], add=stream.add)

    monkeypatch.setattr(staged_tables, "observe", observe)

    def of(*words: str, records: list[Any] = RECORDS, kind: str = "datastream") -> tuple[int, dict[str, Any], str, str]:
        staged["records"] = records
        console = Console("generate")
        given = [word for option, value in OPTIONS.items() if option not in words for word in (option, value)]
        code = console.exit_code(lambda: generate.main([kind, *given, *words], console))
        out, err = capsys.readouterr()
        *before, last = out.splitlines(keepends=True) or [""]
        return code, json.loads(last) if last else {}, "".join(before), err

    return of


def test_a_run_says_what_it_wrote_and_why_it_left_out_the_rest(run: Run) -> None:
    code, result, before, err = run()
    assert (code, before) == (0, "")
    assert result == {
        "written": 2,
        "unchanged": 0, "not_written": {"no key": 1}, "columns_added": 0, "models_with_new_columns": [], "misfits": 0,
        "status": "written",
    }  # fmt: skip
    assert err == (
        "generate: 2 models written, 0 unchanged, 1 not written: no key (1); see models/shop/_not_generated.md.\n"
    )
    code, result, _, err = run()
    assert (code, result["status"], result["unchanged"]) == (0, "unchanged", 2)
    assert err.startswith("generate: 0 models written, 2 unchanged, 1 not written")


def test_check_ends_with_1_where_models_no_longer_fit_and_names_them(run: Run) -> None:
    code, result, _, err = run("--check")
    assert (code, result["status"], texts(Path("models"))) == (1, "would change", {})
    for sentence in (
        "shop.orders has no model.",
        "shop.lines has no model: no key.",
        "declares the source lake.shop_changes.",
    ):
        assert sentence in err
    assert "2 models would be written" in err and err.endswith("run this without --check.\n")
    run()
    assert run("--check")[0] == 0
    before = texts(Path("models"))
    news = [*RECORDS, change(payload={"id": 1, "status": "x", "size": 2})]
    code, result, _, err = run("--check", records=news)
    assert (code, result["written"], result["columns_added"]) == (1, 1, 1) and "orders has no column size." in err
    wider = [*RECORDS, change(payload={"id": 2**63, "status": "x"})]
    code, result, _, err = run("--check", records=wider)
    assert (code, result["misfits"], result["status"]) == (1, 1, "unchanged")
    assert (
        "orders: id is declared bigint, and values came that it does not hold (whole number); declare decimal(20,0), "
        "and rebuild the model with --full-refresh." in err
    )
    code, _, _, err = run(records=wider)
    assert code == 0 and "declare decimal(20,0)" in err, "said, and nothing is widened"
    dated = [*RECORDS, change(payload={"id": 1, "status": "0000-00-00"})]
    yaml = Path("models/shop/orders.yml")
    text = yaml.read_text()
    for declared, misfits in (("date", 1), ("date\n        config: {meta: {zero_date: 'null'}}", 0)):
        yaml.write_text(text.replace("data_type: string", f"data_type: {declared}"))
        code, result, _, err = run("--check", records=dated)
        assert (code, result["misfits"]) == (misfits, misfits), err
        assert ("orders: status is declared date, and zero dates came, which go to quarantine; add `" in err) == misfits
    yaml.write_text(text)
    other = [*RECORDS, change("orders", key=["id", "status"], uuid="u2")]
    code, _, _, err = run("--check", records=other)
    assert code == 1 and "its unique_key is id, and the newest records of shop.orders name id, status" in err
    code, _, _, err = run("--check", records=[*RECORDS, change("new", key=None)])
    assert code == 1 and "shop.new has no model: no key." in err
    assert texts(Path("models")) == before


def test_diff_prints_what_would_change_and_writes_nothing(run: Run) -> None:
    code, result, before, err = run("--diff")
    assert (code, result["status"], texts(Path("models"))) == (0, "would change", {})
    assert err == (
        "generate: 2 models would be written, 0 unchanged, 1 not written: no key (1); see "
        "models/shop/_not_generated.md.\n"
    )
    assert "--- /dev/null\n+++ b/models/shop/orders.sql\n@@ -0,0 +1,2 @@\n+{{ config(" in before
    run()
    Path("models/shop/orders.yml").write_text(Path("models/shop/orders.yml").read_text()[:-1])
    code, _, before, _ = run("--diff", records=[change(payload={"id": 1, "status": "x", "a\u200bb": 2}), *RECORDS[1:]])
    assert re.findall(r"^[-+]{3} .*", before, re.M) == ["--- a/models/shop/orders.yml", "+++ b/models/shop/orders.yml"]
    assert '+      - name: "a\\u200bb"\n' in before and "\\ No newline at end of file\n" in before
    assert "size" not in Path("models/shop/orders.yml").read_text()
    assert run("--diff")[2] == ""
    code, _, _, err = run("--diff", "--check", records=[change(payload={"new": 1}, key=["new"]), *RECORDS[1:]])
    assert code == 1 and "orders has no column new." in err


def test_columns_adds_lines_to_models_that_are_there_and_says_which(run: Run) -> None:
    code, result, _, err = run("--columns")
    assert (code, result["status"], texts(Path("models"))) == (0, "unchanged", {}), "no model, no source, no list"
    assert err == "generate: 0 columns added to 0 models, 0 unchanged.\n"
    run()
    before = texts(Path("models"))
    news = [change(payload={"id": 1, "status": "x", "note": "y", "size": 2}), *RECORDS[1:], change("new")]
    code, result, _, err = run("--columns", "--check", records=news)
    assert (code, result["status"], result["columns_added"]) == (1, "would change", 2)
    assert "orders has no column note, size." in err and "2 columns would be added to 1 model, 1 unchanged." in err
    assert "new" not in result["models_with_new_columns"] and "shop.new" not in err
    assert "columns added: " not in err, "nothing was"
    code, _, shown, err = run("--columns", "--diff", records=news)
    assert code == 0 and shown.count("\n+      - name: ") == 2 and "--- a/models/shop/orders.yml" in shown
    assert texts(Path("models")) == before
    code, result, _, err = run("--columns", records=news)
    assert (code, result["status"], result["models_with_new_columns"]) == (0, "written", ["orders"])
    assert err == (
        "generate: orders: 2 columns added: note string, size string.\n"
        "generate: 2 columns added to 1 model, 1 unchanged.\n"
    )
    changed = {name for name, text in texts(Path("models")).items() if before.get(name) != text}
    assert changed == {"shop/orders.yml"}
    code, result, _, _ = run("--columns", "--check", records=news)
    assert (code, result["status"]) == (0, "unchanged")


def test_a_stream_of_spanner_has_the_same_options_and_sentences(run: Run) -> None:
    types = [
        {"name": "Id", "type": {"code": "INT64"}, "is_primary_key": True, "ordinal_position": 1},
        {"name": "At", "type": {"code": "TIMESTAMP"}, "is_primary_key": False, "ordinal_position": 2},
    ]
    first = data_change_record([mod({"Id": "1"})], table_name="Orders", column_types=types[:1])
    settings = data_change_record([mod({}, {"x": "1"})], table_name="Settings")
    code, result, _, err = run(kind="spanner", records=[first, settings])
    assert (code, result["written"], result["not_written"]) == (0, 1, {"no key": 1})
    assert "1 model written, 0 unchanged, 1 not written: no key (1); see models/shop/_not_generated.md." in err
    assert {*texts(Path("models/shop"))} == {"_not_generated.md", "_sources.yml", "orders.sql", "orders.yml"}
    assert run("--check", kind="spanner", records=[first, settings])[0] == 0
    newer = data_change_record([mod({"Id": "1"}, {"At": None})], table_name="Orders", column_types=types)
    code, _, shown, _ = run("--diff", "--columns", kind="spanner", records=[first, newer])
    assert code == 0 and "+        data_type: timestamp  # Spanner: TIMESTAMP\n" in shown
    code, result, _, err = run("--columns", kind="spanner", records=[first, newer])
    assert err.startswith("generate: orders: 1 column added: At timestamp.\n")
    assert result["models_with_new_columns"] == ["orders"]
    code, _, _, err = run("--url", "jdbc:postgresql://host/shop", kind="spanner")
    assert code == 2 and "--url" in err


def test_a_stream_of_bigtable_has_cells_and_rows(run: Run) -> None:
    def entries(*cells: Any) -> dict[str, Any]:
        return {**json.loads(data_change(b"k", cells)), "object": "events"}

    first = entries(set_cell("e", b"kind", 1, b"new"))
    code, result, _, err = run(kind="bigtable", records=[first])
    assert (code, result["written"], err) == (0, 2, "generate: 2 models written, 0 unchanged.\n")
    assert {*texts(Path("models/shop"))} == {
        "_sources.yml", "events.sql", "events.yml", "events_cells.sql", "events_cells.yml",
    }  # fmt: skip
    assert run("--check", kind="bigtable", records=[first])[0] == 0
    newer = entries(set_cell("e", b"total", 1, b"1.50"))
    code, _, _, err = run("--check", kind="bigtable", records=[first, newer])
    assert code == 1 and "events has no column total." in err
    code, result, _, err = run("--columns", kind="bigtable", records=[first, newer])
    assert code == 0 and err == (
        "generate: events: 1 column added: total binary.\ngenerate: 1 column added to 1 model, 1 unchanged.\n"
    )
    many = entries(*(set_cell("users", str(number).encode(), 1, b"x") for number in range(201)))
    code, result, _, err = run(kind="bigtable", records=[first, many])
    assert result["not_written"] == {"too many qualifiers": 1} and "see models/shop/_not_generated.md" in err
    code, _, _, err = run("--keys", "keys.yml", kind="bigtable")
    assert code == 2 and "--keys" in err


def test_what_is_not_written_any_more_goes_from_the_list(run: Run) -> None:
    run()
    assert Path("models/shop/_not_generated.md").exists()
    Path("keys.yml").write_text("shop.lines: [id]\n")
    _, result, _, _ = run("--keys", "keys.yml")
    assert result["written"] == 1 and not Path("models/shop/_not_generated.md").exists()
    assert run("--check")[0] == 0, "the model is there, and has its key"


def test_a_list_of_other_tables_than_those_without_a_model_fits_no_more(run: Run) -> None:
    run()
    for records in (RECORDS[:1], [*RECORDS, change("log", key=[])]):
        code, result, _, err = run("--check", records=records)
        assert (code, result["status"], result["written"]) == (1, "would change", 0)
        is_shorter = len(records) == 1
        assert ("_not_generated.md lists other tables than those without a model." in err) is is_shorter
        assert ("generate: shop.log has no model: no key.\n" in err) is not is_shorter
        assert "shop.lines has no model" not in err, "the list has it"


def test_a_model_written_by_hand_tells_what_the_records_do_not(run: Run) -> None:
    run()
    Path("models/shop/all_lines.sql").write_text(
        "{{ config(materialized='current_state', unique_key='_change_id') }}\n"
        "{{ reconcile.datastream_mysql(source('lake', 'shop_changes'), object='shop_lines') }}\n"
    )
    code, result, _, _ = run()
    assert (code, result["written"], result["not_written"]) == (0, 1, {}) and "all_lines" in str(texts(Path("models")))
    assert "data_tests" not in Path("models/shop/all_lines.yml").read_text()
    assert run("--check")[0] == 0


def test_options_decide_names_folders_materialization_and_tags(run: Run) -> None:
    run("--name", "{schema}/{schema}_{table}", "--materialized", "history", "--tag", "shop", "--select", "shop.o*")
    assert [*texts(Path("models/shop"))] == ["_sources.yml", "shop/shop_orders.sql", "shop/shop_orders.yml"]
    text = Path("models/shop/shop/shop_orders.sql").read_text()
    assert "config(materialized='history', unique_key='id', tags=['shop'])" in text
    assert "- reconcile.history_is_sound" in Path("models/shop/shop/shop_orders.yml").read_text()


@pytest.mark.parametrize("kind", ["datastream", "bigtable"])
def test_tables_that_are_excluded_and_records_of_batches_before_are_not_looked_at(run: Run, kind: str) -> None:
    records: list[Any] = [(change(table), batch) for batch, table in ((6, "a"), (7, "b"), (8, "c"))]
    if kind == "bigtable":
        entry = json.loads(data_change(b"k", [set_cell("e", b"kind", 1, b"new")]))
        records = [({**entry, "object": table}, batch) for batch, table in ((6, "a"), (7, "b"), (8, "c"))]
    code, result, _, _ = run("--since-batch", "7", "--exclude", "*c", "--exclude", "x", kind=kind, records=records)
    made = {Path(name).name for name in texts(Path("models")) if name.endswith(".sql")}
    assert (code, result["not_written"]) == (0, {})
    assert made == ({"b.sql"} if kind == "datastream" else {"b.sql", "b_cells.sql"})


def test_the_dictionary_is_a_better_witness_than_the_headers_of_files(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(None, "shop", "orders")
    told = Witness({"id": Declaration("smallint", witness="MySQL: smallint")}, key=("status",))
    header = Header(place, {"id": Declaration("int", witness="Avro: int"), "status": Declaration("date")})
    asked: list[Any] = []

    def dictionary_of(spark: None, source: Any, observations: Observations) -> dict[Place, Witness]:
        asked.append((source.url, source.properties))
        return {place: told}

    monkeypatch.setattr(dictionary, "dictionary_of", dictionary_of)
    monkeypatch.setattr(avro_files, "headers_below", lambda spark, path: asked.append(path) or [header])
    monkeypatch.setenv("RECONCILE_JDBC_USER", "ada")
    monkeypatch.delenv("RECONCILE_JDBC_PASSWORD", raising=False)
    url = "jdbc:mariadb://host/shop?odd=1"
    code, _, _, err = run("--url", url, "--path", "landing", records=[change()])
    assert code == 2 and "--url has the property odd, which is not among" in err and asked == []
    assert run("--url", url, "--allow-property", "odd", "--path", "landing", records=[change()])[0] == 0
    assert asked == [(url, {"user": "ada"}), "landing"]
    text = Path("models/shop/orders.yml").read_text()
    assert "data_type: smallint  # MySQL: smallint\n" in text and "- name: status\n        data_type: date\n" in text
    assert "unique_key='status'" in Path("models/shop/orders.sql").read_text()


def test_a_part_of_the_stream_leaves_the_list_as_it_is(run: Run) -> None:
    run()
    before = texts(Path("models"))
    Path("keys.yml").write_text("shop.gone: [id]\n")
    for words in (["--select", "shop.orders"], ["--since-batch", "7"], ["--since-batch", "7", "--keys", "keys.yml"]):
        assert run(*words, records=[change()])[1]["status"] == "unchanged" and texts(Path("models")) == before
    assert run("--keys", "keys.yml")[0] == 2


@pytest.mark.parametrize("where", ["config: {meta: {ignored_columns: [Status]}}", "meta: {ignored_columns: [status]}"])
def test_a_column_that_a_model_ignores_does_not_come_back(run: Run, where: str) -> None:
    run()
    file = Path("models/shop/orders.yml")
    text = file.read_text()
    without = text[: text.index("      - name: status")]
    file.write_text(without)
    assert run("--check")[0] == 1
    file.write_text(without + f"    {where}\n")
    assert run("--check")[0] == 0
    file.write_text(without)
    model = Path("models/shop/orders.sql")
    model.write_text(model.read_text().replace("unique_key", "meta={'ignored_columns': ['status']}, unique_key"))
    assert run("--check")[0] == 0


@pytest.mark.parametrize(
    "said", ["config: {meta: {was: STATUS}}", "config: {meta: {was: [state, status]}}", "meta: {was: status}"]
)
def test_the_former_name_of_a_column_is_no_new_column(run: Run, said: str) -> None:
    run()
    file = Path("models/shop/orders.yml")
    text = file.read_text()
    file.write_text(text.replace("      - name: status\n", "      - name: condition\n", 1))
    assert run("--check")[0] == 1
    renamed = f"      - name: condition\n        {said}\n"
    file.write_text(text.replace("      - name: status\n", renamed, 1))
    assert run("--check")[0] == 0


def test_files_whose_names_differ_in_case_are_one_file_on_some_disks(run: Run) -> None:
    Path("models/shop").mkdir(parents=True)
    Path("models/shop/Orders.YML").write_text("# of ours\n")
    run()
    assert {*texts(Path("models/shop"))} >= {"orders.sql", "orders_columns.yml", "Orders.YML"}
    assert run()[1]["status"] == "unchanged"
    for taken, free in (("new_columns", "new_columns2"), ("new_columns2", "new_columns3")):
        Path("models/shop/new.yml").write_text("# of ours\n")
        Path(f"models/shop/{taken}.yml").write_text("# of ours\n")
        run("--select", "shop.new", records=[change("new")])
        assert "- name: new\n" in Path(f"models/shop/{free}.yml").read_text()
        for name in ("new.sql", f"{free}.yml"):
            Path(f"models/shop/{name}").unlink()


def test_files_that_dbt_does_not_read_are_no_part_of_the_project(run: Run) -> None:
    """Copies that an editor keeps, for example, and what a shell does not list."""
    model = "{{ reconcile.datastream_mysql(source('lake', 'shop_changes'), object='shop_orders') }}"
    for name in (".orders.sql", ".old/a.sql", "orders.sql~", "orders.txt"):
        file = Path("models/shop") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(model)
    Path("models/shop/.odd.yml").write_text("models: [")
    assert run()[1]["written"] == 2 and Path("models/shop/orders.sql").read_text() != model


CALLS = {
    "the object by its place": "datastream_mysql(source('lake', 'shop_changes'), 'shop_orders')",
    "one of several objects": "datastream_mysql(source('lake', 'shop_changes'), object=['a', 'shop_orders'])",
    "the table by its place": "datastream_mysql(source('lake', 'shop_changes'), none, none, none, 'shop.orders')",
    "one of several tables": "datastream_mysql(source('lake', 'shop_changes'), table=['a.b', 'shop.orders'])",
    "the table with its database": "datastream_mysql(source('lake', 'shop_changes'), table='db.shop.orders')",
    "a relation by ref": "datastream_mysql(ref('shop_changes'), table='shop.orders')",
    "a source of another case": "datastream_mysql(source('ours', 'changes'), table='shop.orders')",
    "a source that no YAML declares": "datastream_mysql(source('x', 'Shop_Changes'), table='shop.orders')",
}
OTHERS = {
    "another object": "datastream_mysql(source('lake', 'shop_changes'), 'shop_order')",
    "another database": "datastream_oracle(source('lake', 'shop_changes'), 'shop_orders')",
    "a generation of this name": "datastream_mysql(source('lake', 'shop_changes'), 'x', 'shop_orders')",
    "another staging table": "datastream_mysql(source('lake', 'more_changes'), 'shop_orders')",
    "a staging table of another schema": "datastream_mysql(source('pond', 'shop_changes'), 'shop_orders')",
    "a macro of somebody": "of_ours(source('lake', 'shop_changes'), 'shop_orders')",
}


@pytest.mark.parametrize("case", [*CALLS, *OTHERS])
def test_a_model_of_a_table_is_known_by_what_it_calls(run: Run, case: str) -> None:
    Path("models/shop").mkdir(parents=True)
    Path("models/shop/ours.yml").write_text(
        "sources:\n- {name: ours, schema: LAKE, tables: [{name: changes, identifier: Shop_Changes}]}\n"
        "- {name: pond, tables: [{name: shop_changes}]}\n"
        "models:\n- {name: ours, columns: [{name: id}, {name: status}]}\n"
    )
    call = f"{{{{ reconcile.{ {**CALLS, **OTHERS}[case] } }}}}"
    Path("models/shop/ours.sql").write_text(f"{{{{ config(unique_key='id') }}}}\n{call}\n")
    code, result, _, _ = run(records=[change()])
    assert (code, result["written"], result["unchanged"]) == ((0, 0, 1) if case in CALLS else (0, 1, 0))


FITTING = {
    "a column that is rounded": ("config(unique_key='id')", "data_type: int, meta: {round: true}", ""),
    "a column that is rounded by a word": ("config(unique_key='id')", "data_type: int, meta: {round: 'True'}", ""),
    "a column without a type": ("config(unique_key='id')", "description: x", ""),
    "the key in another order and case": ("config(unique_key=['STATUS', 'id'])", "data_type: string", "id, status"),
    "the key in YAML": ("config()", "data_type: string", "id, status"),
    "each event as a row": ("config(unique_key='_change_id')", "data_type: string", ""),
    "the address of a row": ("config(unique_key=['_row_id'])", "data_type: string", ""),
    "no key": ("config(tags=['a'])", "data_type: string", "none"),
}


@pytest.mark.parametrize("case", FITTING)
def test_what_somebody_declared_on_purpose_is_no_misfit(run: Run, case: str) -> None:
    config, said, key = FITTING[case]
    Path("models/shop").mkdir(parents=True)
    in_yaml = "config: {unique_key: [Id, status]}, " if case == "the key in YAML" else ""
    Path("models/shop/orders.sql").write_text(
        f"{{{{ {config} }}}}\n{{{{ reconcile.datastream_mysql(source('lake', 'shop_changes'), 'shop_orders') }}}}\n"
    )
    Path("models/shop/orders.yml").write_text(
        f"models:\n- {{name: orders, {in_yaml}columns: [{{name: id, data_type: bigint}}, {{name: status}}, "
        f"{{name: total, {said}}}]}}\n"
    )
    record = change(payload={"id": 1, "status": "x", "total": 1.5}, key=["id", "status"] if key else ["id"])
    code, result, _, err = run(records=[record])
    assert (code, result["misfits"], result["unchanged"]) == (0, 0, 1), err


def test_a_key_in_yaml_that_is_not_that_of_the_newest_records_is_said(run: Run) -> None:
    run(records=[change()])
    model, yaml = Path("models/shop/orders.sql"), Path("models/shop/orders.yml")
    model.write_text(model.read_text().replace(", unique_key='id'", ""))
    yaml.write_text(yaml.read_text() + "    config: {unique_key: [id]}\n")
    assert run(records=[change()])[1]["misfits"] == 0
    code, result, _, err = run(records=[change(key=["status", "id"])])
    assert (code, result["misfits"]) == (0, 1)
    assert "orders: its unique_key is id, and the newest records of shop.orders name status, id; declare" in err


def test_yaml_that_is_there_before_its_model_gets_the_columns_that_it_lacks(run: Run) -> None:
    file = Path("models/shop/ours.yml")
    file.parent.mkdir(parents=True)
    file.write_text("models:\n- name: orders\n  columns:\n  - name: ID\n")
    code, result, _, err = run(records=[change()])
    assert (code, result["written"], result["columns_added"]) == (0, 1, 1)
    assert "orders: 1 column added: status string." in err
    assert file.read_text().endswith("  - name: ID\n  - name: status\n    data_type: string  # the values: text\n")
    assert not Path("models/shop/orders.yml").exists() and run(records=[change()])[1]["status"] == "unchanged"
    Path("models/shop/orders.sql").unlink()
    file.write_text("models:\n- {name: orders, columns: id}\n")
    code, result, _, err = run(records=[change()])
    assert (code, result["misfits"]) == (0, 1) and Path("models/shop/orders.sql").exists()
    assert "orders: no column can be added to models/shop/ours.yml, since `columns:` is no list." in err


def test_paths_of_models_are_those_of_the_project(run: Run) -> None:
    Path("dbt_project.yml").write_text("model-paths:\n  - transform\n")
    Path("transform/shop").mkdir(parents=True)
    Path("transform/orders.sql").write_text("select 1")
    _, result, _, _ = run("--into", "transform/shop")
    assert result["not_written"] == {"two tables of one name": 1, "no key": 1}
    code, _, _, err = run("--into", "dbt_project.yml")
    assert code == 2 and "--into dbt_project.yml is a file: name a folder" in err
    Path("dbt_project.yml").write_text("a: [")
    code, _, _, err = run()
    assert code == 2 and re.search(r"dbt_project.yml is no YAML \(line 2: .*\): correct it", err)


def test_yaml_is_read_from_files_of_either_ending(run: Run) -> None:
    """Of two files that describe one model dbt takes neither."""
    run()
    for file in ("orders", "_sources"):
        Path(f"models/shop/{file}.yml").rename(f"models/shop/{file}.yaml")
    before = texts(Path("models"))
    code, result, _, _ = run()
    assert (code, result["status"]) == (0, "unchanged") and texts(Path("models")) == before


BROKEN = {
    "no YAML": ("shop/a.yml", b"models: [\n", r"models/shop/a.yml is no YAML \(line 2: .*\): correct it, and run this"),
    "no UTF-8": ("shop/a.yml", b"\xff", r"a.yml cannot be read: it is not UTF-8. Nothing was written."),
    "a tab": ("b.yml", b"models:\n\t- name: x\n", r"models/b.yml is no YAML \(line 2"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_cannot_be_read_ends_the_run_before_anything_is_written(run: Run, case: str) -> None:
    name, content, said = BROKEN[case]
    file = Path("models") / name
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    code, result, _, err = run()
    assert (code, result) == (2, {}) and re.search(said, err)
    assert [*texts(Path("models"))] == [name]


def test_a_model_that_is_no_jinja_is_said_and_passed_over(run: Run) -> None:
    Path("models/shop").mkdir(parents=True)
    Path("models/shop/odd.sql").write_text("{{ reconcile.datastream_mysql( }}")
    code, result, _, err = run()
    assert code == 0 and "models/shop/odd.sql cannot be read as Jinja (line 1:" in err and result["written"] == 2


UNEDITABLE = {
    "an alias": ("x: &c [{name: id, data_type: bigint}]\nmodels:\n  - name: orders\n    columns: *c\n", "by an alias"),
    "an anchor": ("models:\n  - name: orders\n    columns: &c\n      - {name: id}\n", "have the anchor &c"),
    "an alias within": (
        "x: &c {name: id, data_type: bigint}\nmodels:\n  - name: orders\n    columns:\n      - *c\n", "is an alias",
    ),
    "a merge": (
        "x: &c {columns: [{name: id}]}\nmodels:\n  - name: orders\n    <<: *c\n",
        "from another place of the file, by `<<`",
    ),
    "a text": ("models:\n  - name: orders\n    columns: id\n", "`columns:` is no list"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNEDITABLE)
def test_yaml_that_cannot_be_added_to_is_left_alone_and_said(run: Run, case: str) -> None:
    run()
    text, said = UNEDITABLE[case]
    Path("models/shop/orders.yml").write_text(text)
    before = texts(Path("models"))
    code, result, _, err = run()
    assert code == 0 and result["misfits"] == 1 and texts(Path("models")) == before
    assert "cannot be added to models/shop/orders.yml, since" in err and said in err and "by hand" in err
    assert run("--check")[0] == 1


def test_yaml_is_written_before_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    monkeypatch.setattr(written_files, "_replace", lambda path, content: written.append(path.name))
    written_files.write({tmp_path / name: "x" for name in ("a.sql", "b.yml", "c.sql", "z.yml")})
    assert written == ["b.yml", "z.yml", "a.sql", "c.sql"]


def test_a_file_is_whole_at_every_moment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    link = Path("models/shop/customers.yml")
    link.rename("kept.yml")
    link.symlink_to(Path("kept.yml").resolve())
    Path("kept.yml").chmod(0o640)
    news = [change(), RECORDS[1], change("customers", {"id": 1, "size": 2})]
    before = texts(Path("models"))

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(written_files.os, "fsync", full)
        code, _, _, err = run(records=news)
        assert code == 4 and "cannot be written (No space left on device); what was written before stays" in err
    assert texts(Path("models")) == before, "nor is a temporary file left"
    assert run(records=news)[0] == 0
    assert (
        link.is_symlink()
        and "size" in Path("kept.yml").read_text()
        and Path("kept.yml").stat().st_mode & 0o777 == 0o640
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_a_matter_of_configuration(run: Run) -> None:
    Path("models").mkdir(mode=0o500)
    code, _, _, err = run()
    assert code == 2 and "cannot be written" in err


def test_a_run_that_ended_between_two_files_is_finished_by_the_next(run: Run) -> None:
    run()
    whole = texts(Path("models"))
    for name in ("orders.sql", "customers.yml", "_sources.yml"):
        (Path("models/shop") / name).unlink()
        run()
        assert texts(Path("models")) == whole


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--staging", "shop"], "--staging shop is not the name of a table"),
        (["--name", "orders"], "--name orders is no pattern of names"),
        (["--snapshot", "{table}"], "--snapshot {table} is no pattern of tables"),
        (["--snapshot", "lake.{table}", "--materialized", "history"], "a history has several versions of a row"),
        (["--keys", "none.yml"], "--keys none.yml cannot be read: No such file"),
        (["--materialized", "table"], "invalid choice: 'table'"),
        (["--since-batch", "x"], "invalid int value"),
    ],
)
def test_what_the_command_line_gets_wrong_is_a_sentence(run: Run, words: list[str], said: str) -> None:
    code, result, _, err = run(*words)
    assert (code, result, texts(Path()).keys()) == (2, {}, {"dbt_project.yml"}) and said in err


def test_a_staging_table_in_a_catalog_is_another_source(run: Run) -> None:
    """The name of a source has no dot; a source of an adapter with databases has the catalog there."""
    run()
    source = Path("models/shop/_sources.yml")
    assert source.read_text().count("  - name: lake\n    schema: lake\n") == 1
    words = ("--staging", "ice.lake.shop_changes", "--name", "ice_{table}")
    assert run(*words)[1]["written"] == 2
    [other] = [file for file in Path("models/shop").glob("_sources*.yml") if file != source]
    assert other.read_text().count("  - name: ice_lake\n    schema: ice.lake\n") == 1
    assert "source('ice_lake', 'shop_changes')" in Path("models/shop/ice_orders.sql").read_text()
    assert run(*words, "--check")[0] == 0
    other.write_text(other.read_text().replace("schema: ice.lake", "schema: lake\n    database: ice"))
    assert run(*words, "--check")[0] == 0


def test_a_staging_table_that_is_not_there_is_said() -> None:
    from types import SimpleNamespace

    from reconcile_jobs.generation.staged_tables import observe
    from reconcile_jobs.staging import TableName

    spark: Any = SimpleNamespace(catalog=SimpleNamespace(tableExists=lambda name: False))
    with pytest.raises(UsageError, match=r"lake.shop_changes does not exist; ingestion/append.py fills it."):
        observe(spark, TableName.parse("lake.shop_changes"), DATASTREAM)


def test_records_that_name_no_table_are_said(run: Run) -> None:
    _, _, _, err = run(records=[*RECORDS, {"object": "x"}])
    assert "1 record names no table, and no model takes them: see reconcile_unrouted." in err
    _, _, _, err = run(records=[*RECORDS, *[{"object": "x"}] * 1001])
    assert "generate: 1,001 records name no table, and no model takes them: see reconcile_unrouted.\n" in err


def test_the_sentence_at_the_end_counts_models_and_reasons() -> None:
    plan = Plan(written=["a"], unchanged=["b"] * 1000, columns_added=1200, models_with_new_columns=["a"] * 2000)
    assert plan.summary("m.md", will=True) == "1 model would be written, 1,000 unchanged"
    plan.refusals += [Refusal(label, reason, "") for label, reason in (("a", "x"), ("b", "y"), ("c", "y"))]
    assert plan.summary("m.md") == "1 model written, 1,000 unchanged, 3 not written: y (2), x (1); see m.md"
    assert plan.summary_of_columns() == "1,200 columns added to 2,000 models, 1,000 unchanged"
