"""Models generated from the playing capture build, and their rows are those that the source had."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cells import data_change, delete_from_column, delete_from_family, entries_of, set_cell, visible
from datastream import Staged
from generated import texts
from memory import Memory, MemoryProject
from pyspark.sql import SparkSession
from reconcile_jobs.generation.avro_types import Header, header_of
from reconcile_jobs.generation.bigtable_records import cell_tables
from reconcile_jobs.generation.datastream_records import source_of
from reconcile_jobs.generation.escaping import unrendered
from reconcile_jobs.generation.jinja_edits import columns_of_rows
from reconcile_jobs.generation.names import Pattern
from reconcile_jobs.generation.plan import Settings, plan_of
from reconcile_jobs.generation.project import Project
from reconcile_jobs.generation.rows_plan import plan_of_cells
from reconcile_jobs.generation.spanner_records import of_column_types
from reconcile_jobs.generation.staged_tables import observed
from reconcile_jobs.generation.streams import BIGTABLE, DATASTREAM, SPANNER
from reconcile_jobs.generation.tables import Answer, tables_of
from reconcile_jobs.generation.witnesses import of_headers
from reconcile_jobs.process.written_files import write
from shop import records
from spanner import cut, data_change_record, mod
from truth import CAPTURE, COLUMNS, DELIVERIES, KEYS, SOURCES, counted, object_of, table_of, true_rows


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


def headers(source: str) -> list[Header]:
    """Return what the Avro files of the capture say, as `headers_below` does for the files of a landing area."""
    files = sorted((CAPTURE / f"{source}_avro").rglob("*.avro"))
    return [header for file in files if (header := header_of(file.read_bytes())) is not None]


def load(project: MemoryProject, into: Path) -> list[str]:
    """Add the generated models to a project, as dbt would read them, and return their names."""
    entries = {}
    for file in into.rglob("*.yml"):
        for entry in yaml.safe_load(file.read_text(encoding="utf-8")).get("models", []):
            entries[unrendered(entry["name"])] = entry
    for name, entry in entries.items():
        columns = {unrendered(column.pop("name")): column for column in entry["columns"]}
        project.model(name, (into / f"{name}.sql").read_text(), columns, data_tests=entry["data_tests"])
    return sorted(entries)


# The capture's Avro files of Oracle are as of early 2021, when records did not name their keys.
NO_KEYS = [("oracle", "avro")]


FORMS = [
    *((source, "json") for source in SOURCES),
    *(pytest.param(source, "avro", marks=[] if source == "mysql" else pytest.mark.soak) for source in SOURCES),
]


@pytest.mark.parametrize(("source", "form"), FORMS)
def test_models_generated_from_the_capture_equal_the_truth(
    memory: Memory, tmp_path: Path, source: str, form: str
) -> None:
    schema, staging = f"generated_{source}_{form}", f"{source}_{form}"
    into = tmp_path / "models"
    delivered = [
        Staged(record, object_of(source, table), number)
        for table in COLUMNS
        for number in DELIVERIES
        for record in records(source, table, form, number)
    ]
    memory.stage(f"{schema}_lake.{staging}", delivered)
    seen = observed(memory.table(f"{schema}_lake.{staging}"), DATASTREAM)
    assert sum(of_table.records for of_table in seen.tables.values()) == len(delivered) and not seen.nameless
    of_files = [of_headers(headers(source) if form == "avro" else [])]
    labels = {table_of(source, table): KEYS[table] for table in COLUMNS}
    answers: dict[str, Answer] = {}
    if (source, form) in NO_KEYS:
        refused = tables_of(seen, of_files)[1]
        assert {(refusal.label, refusal.reason) for refusal in refused} == {(label, "no key") for label in labels}
        answers = {label: Answer(tuple(name.upper() for name in key)) for label, key in labels.items()}
    settings = Settings(("lake", staging), Pattern("{table}"))
    plan = plan_of(Project(into), *tables_of(seen, of_files, answers), settings)
    write(plan.files)
    assert (sorted(plan.written), plan.refusals) == (sorted(COLUMNS), [])

    project = memory.project(schema)
    project.source(f"{schema}_lake", staging)
    names = load(project, into)
    assert names == sorted(COLUMNS)
    project.run(*names)
    for table in COLUMNS:
        assert memory.rows(f"{schema}.{table}__quarantine") == []
        rows = memory.table(f"{schema}.{table}")
        shown = rows.selectExpr(*(_cast(name, rows.schema, source) for name in COLUMNS[table]))
        assert counted(shown) == true_rows(table)
        assert project.failing_tests(table) == set()
    before = texts(into)
    again = plan_of(Project(into), *tables_of(seen, of_files, answers), settings)
    assert (again.files, again.misfits, again.news) == ({}, [], []) and texts(into) == before


def _cast(name: str, schema: Any, source: str) -> str:
    """Return a column as its type at the source, of which a record may tell less."""
    types = {field.name.lower(): (field.name, field.dataType.simpleString()) for field in schema.fields}
    spelled, here = types[name]
    true = next(of_table[name] for of_table in COLUMNS.values() if name in of_table)
    if true == "binary" and here == "string":
        return f"{'unhex' if source == 'mysql' else 'unbase64'}(`{spelled}`) as `{name}`"
    return f"cast(`{spelled}` as {true}) as `{name}`"


# Of each column: its type in GoogleSQL, in PostgreSQL's dialect if it differs, and values as staged and as stored.
OF_SPANNER: dict[str, tuple[Any, Any, list[tuple[Any, str | None]]]] = {
    "Flag": ("BOOL", None, [(True, "true"), (False, "false")]),
    "Whole": ("INT64", None, [("9223372036854775807", "9223372036854775807"), ("-1", "-1")]),
    "Ratio": ("FLOAT64", None, [(0.1, "0.1"), (3, "3.0"), ("-Infinity", "-Infinity")]),
    "Real": ("FLOAT32", None, [(0.5, "0.5"), ("NaN", "NaN")]),
    "Amount": ("NUMERIC", ("NUMERIC", "PG_NUMERIC"), [("0.5", "0.5"), ("-12.25", "-12.25")]),
    "Text": ("STRING", None, [("", ""), ("NULL", "NULL"), ("\u00fc \"quoted\" \\\\", "\u00fc \"quoted\" \\\\")]),
    "Data": ("BYTES", None, [("AAH/", "0001FF"), ("", "")]),
    "Day": ("DATE", None, [("2026-02-03", "2026-02-03")]),
    "At": ("TIMESTAMP", None, [("2026-11-21T11:33:12.5Z", "2026-11-21 11:33:12.5")]),
    "Finest": (
        "TIMESTAMP", None, [("2026-11-21T11:33:12.123456789Z", "2026-11-21T11:33:12.123456789Z")],
    ),
    "Document": ("JSON", ("JSON", "PG_JSONB"), [('{"a":[1,null]}', '{"a":[1,null]}')]),
    "Wholes": (["INT64"], None, [([], "[]"), (["1", None], "[1, null]"), ("NULL", None)]),
    "Moments": (["TIMESTAMP"], None, [(["2026-11-21T11:33:12Z"], "[2026-11-21 11:33:12]")]),
    "size {#}": ("STRING", None, [("x", "x")]),
}  # fmt: skip


def _of_dialect(name: str, dialect: str) -> dict[str, Any]:
    plain, other, _ = OF_SPANNER[name]
    if dialect == "postgresql" and other:
        return {"code": other[0], "type_annotation": other[1]}
    return {"code": "ARRAY", "array_element_type": {"code": plain[0]}} if isinstance(plain, list) else {"code": plain}


def _history(dialect: str, table: str) -> tuple[list[Staged], Counter[tuple[str | None, ...]]]:
    """Return changes of eight rows at random, and the rows that they leave: each value as Spark prints it."""
    chance, names = random.Random(f"{dialect} {table}"), [*OF_SPANNER]
    types = [{"name": "Shop", "type": {"code": "STRING"}, "is_primary_key": True, "ordinal_position": 1}]
    types += [{"name": "Id", "type": {"code": "INT64"}, "is_primary_key": True, "ordinal_position": 2}]
    types += [
        {"name": name, "type": _of_dialect(name, dialect), "is_primary_key": False, "ordinal_position": place}
        for place, name in enumerate(names, 3)
    ]
    rows: dict[int, dict[str, str | None]] = {}
    staged = []
    for number in range(120):
        key = chance.randrange(8)
        kind = "INSERT" if key not in rows else chance.choice(["UPDATE", "UPDATE", "DELETE"])
        is_whole = kind == "INSERT" or chance.random() < 0.3
        carried = [] if kind == "DELETE" else names if is_whole else chance.sample(names, 3)
        drawn = {name: chance.choice([*OF_SPANNER[name][2], (None, None)]) for name in carried}
        if kind == "DELETE":
            del rows[key]
        else:
            rows[key] = rows.get(key, {}) | {name: stored for name, (_, stored) in drawn.items()}
        record = data_change_record(
            [mod({"Shop": "a", "Id": str(key)}, {name: value for name, (value, _) in drawn.items()})],
            kind,
            table_name=table,
            # As Spanner does it: a record names the types of the columns that it carries, and of the key.
            column_types=types if kind == "DELETE" else [of for of in types if of["name"] in ("Shop", "Id", *carried)],
            value_capture_type="NEW_ROW" if is_whole else "NEW_VALUES",
            commit_timestamp=f"2026-11-21T11:33:12.{number:09}Z",
            server_transaction_id=f"{table} {number}",
        )
        staged.append(Staged(record, table, 1 + number // 40)._replace(source="spanner"))
    return staged, Counter(("a", str(key), *(row[name] for name in names)) for key, row in rows.items())


@pytest.mark.parametrize("dialect", ["googlesql", "postgresql"])
def test_models_generated_from_a_stream_of_spanner_equal_the_truth(
    memory: Memory, tmp_path: Path, dialect: str
) -> None:
    schema, into = f"generated_spanner_{dialect}", tmp_path / "models"
    histories = {table: _history(dialect, table) for table in ("Orders", "sales.Lines")}
    delivered = [row for staged, _ in histories.values() for row in staged]
    delivered += [
        Staged(cut(f"2026-11-21T11:33:1{n + 2}Z", "2026-11-21T11:33:12Z"), "#cut", n)._replace(source="spanner")
        for n in (1, 2, 3)
    ]
    memory.stage(f"{schema}_lake.stream", delivered)
    seen = observed(memory.table(f"{schema}_lake.stream"), SPANNER)
    settings = Settings(("lake", "stream"), Pattern("{table}"), stream=SPANNER)
    plan = plan_of(Project(into), *tables_of(seen, [of_column_types(seen)]), settings)
    write(plan.files)
    assert (plan.written, plan.refusals, plan.misfits) == (["orders", "lines"], [], [])

    project = memory.project(schema)
    project.source(f"{schema}_lake", "stream")
    assert load(project, into) == ["lines", "orders"]
    project.run("lines", "orders")
    for name, table in (("orders", "Orders"), ("lines", "sales.Lines")):
        assert memory.rows(f"{schema}.{name}__quarantine") == []
        rows = memory.table(f"{schema}.{name}")
        assert [field.name for field in rows.schema] == ["Shop", "Id", *OF_SPANNER], "in the order of the table"
        numeric = "decimal(38,9)" if dialect == "googlesql" else "string"
        assert (dict(rows.dtypes)["Amount"], dict(rows.dtypes)["Finest"]) == (numeric, "string")
        assert Counter(map(tuple, rows.selectExpr(*map(_printed, rows.columns)).collect())) == histories[table][1]
        assert project.failing_tests(name) == set()
        assert len(project.failing("transactions_complete", name)) == 0
    again = plan_of(Project(into), *tables_of(seen, [of_column_types(seen)]), settings)
    assert (again.files, again.misfits, again.news) == ({}, [], [])


def _printed(name: str) -> str:
    forms = {"Data": "hex(`Data`)", "Amount": "regexp_replace(string(`Amount`), '0+$', '')"}
    return forms.get(name, f"string(`{name}`)")


def _cell_history() -> list[str]:
    """Return data changes of ten rows at random: text, counters and bytes are set and deleted, in any order."""
    chance, changes = random.Random("cells"), []
    values: dict[tuple[str, bytes], Callable[[], bytes]] = {
        ("e", b"kind"): lambda: chance.choice([b"new", "\u00e9 {#}".encode(), b""]),
        ("e", b"a 'b' {{ c }}"): lambda: b"x",
        ("e", b"\xff\x00"): lambda: bytes(chance.randrange(256) for _ in range(4)),
        ("stats", b"hits"): lambda: chance.randrange(-9, 9).to_bytes(8, signed=True),
        ("stats", b"kind"): lambda: b"y",
    }
    for number in range(200):
        family, qualifier = chance.choice([*values])
        entry = set_cell(family, qualifier, chance.randrange(4) * 1000, values[family, qualifier]())
        if chance.random() < 0.2:
            entry = chance.choice([delete_from_column(family, qualifier, 0, 2000), delete_from_family(family)])
        changes.append(data_change(b"row %d" % chance.randrange(10), [entry], number))
    # A table whose rows have each of these, so that each is a column.
    changes += [data_change(b"all", [set_cell(*place, 0, of()) for place, of in values.items()], 1000)]
    chance.shuffle(changes)
    return changes


def test_models_generated_from_a_stream_of_bigtable_equal_the_truth(memory: Memory, tmp_path: Path) -> None:
    changes, into = _cell_history(), tmp_path / "models"
    staged = [Staged(text, "events", 1 + place % 3, source="bigtable") for place, text in enumerate(changes)]
    memory.stage("generated_bigtable_lake.stream", [*staged, Staged("{}", "#cut", 3, source="bigtable")])
    seen = observed(memory.table("generated_bigtable_lake.stream"), BIGTABLE)
    settings = Settings(("lake", "stream"), Pattern("{table}"), stream=BIGTABLE)
    plan = plan_of_cells(Project(into), *cell_tables(seen), settings)
    write(plan.files)
    assert (plan.written, plan.refusals) == (["events_cells", "events"], [])
    again = plan_of_cells(Project(into), *cell_tables(seen), settings)
    assert (again.files, again.misfits, again.news) == ({}, [], [])

    project = memory.project("generated_bigtable")
    project.source("generated_bigtable_lake", "stream")
    view = (into / "events.sql").read_text()
    (into / "events.yml").unlink()
    load(project, into)
    project.run("events_cells")
    assert memory.rows("generated_bigtable.events_cells__quarantine") == []
    assert project.failing_tests("events_cells") == set()
    cells = visible([entry for text in changes for entry in entries_of(text)])
    project.model("events", view, {})
    rows = memory.sql(project.compile("events")).collect()
    columns = {
        (of["cell"].partition(":")[0], bytes.fromhex(of["qualifier_hex"]) if "qualifier_hex" in of
         else of["cell"].partition(":")[2].encode()): of["name"]
        for of in columns_of_rows(view) or []
    }  # fmt: skip
    assert [*columns.values()] == ["a__b_____c___", "e_kind", "x_ff00", "hits", "stats_kind"]
    expected: dict[bytes, dict[str, Any]] = {}
    for (row_key, family, qualifier, _), value in sorted(cells.items(), key=lambda item: item[0][3]):
        name = columns[family, qualifier]
        is_bytes = name in ("x_ff00", "hits")
        of_row = expected.setdefault(row_key, dict.fromkeys(columns.values()))
        of_row[name] = value if is_bytes or value is None else value.decode()
    found = {bytes(row["row_key"]): row.asDict() for row in rows}
    assert {row["undecoded"] for row in rows} == {None} and len(found) == len(rows) > 8
    for row in found.values():
        del row["row_key"], row["undecoded"]
    assert {key: {name: _plain(of) for name, of in row.items()} for key, row in found.items()} == expected


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def test_the_source_of_a_record_is_what_the_macros_say(memory: Memory) -> None:
    """One rule, in SQL for the models and in Python for what is generated."""
    macros = memory.project("generated_rules").macros
    fields = ", ".join(f"{name} string" for name in macros.identifying_fields())
    event = f"from_json(record, 'read_method string, source_metadata struct<{fields}>')"
    word = macros.source_of_event("event.read_method", "event.source_metadata")
    rows = [
        record
        for source in SOURCES
        for form in ("json", "avro")
        for table in COLUMNS
        for record in records(source, table, form, 3)[:40]
    ]
    memory.stage("generated_rules.staged", [Staged(record, "o", 1) for record in rows])
    parsed = f"select record, {event} as event from `generated_rules`.`staged`"
    told = memory.sql(f"select record, {word} as source from ({parsed})")
    events = {row: json.loads(row) for row in rows}
    found = {row: source_of(event["read_method"], event["source_metadata"]) for row, event in events.items()}
    assert {row.record: row.source for row in told.collect()} == found
    assert {*found.values()} == {*SOURCES}
