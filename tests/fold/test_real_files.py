"""Files that Datastream wrote give the rows of their truth, every column at its recommended type.

The files are other people's and not of this repository. RECONCILE_REAL_FILES names the directory that has them, and
their truth; where it is not set, these tests say that they did not run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from datastream import Staged
from generated import generated, observed, planned
from memory import Memory
from pyspark.sql import DataFrame, SparkSession
from reconcile_jobs.avro_json import json_records
from reconcile_jobs.generation.avro_types import header_of
from reconcile_jobs.generation.escaping import unrendered
from reconcile_jobs.generation.tables import Answer, label_of

DIRECTORY = os.environ.get("RECONCILE_REAL_FILES")
TRUTH = {
    path.name.removesuffix(".schema.json"): json.loads(path.read_text())
    for path in sorted(Path(DIRECTORY).glob("truth/*.schema.json") if DIRECTORY else [])
}
# In `make test`: of each source, changes and backfills of one table. In `make soak`: each type, tables without a key.
QUICK = {"HR_LOCATIONS", "public_source_table", "user1_numbers", "l1_AllDatatypeColumns2", "S1L1_Movie"}
IN_SOAK = {
    "test_people", "test_DateData", "ea-main_alltypes", "l1_DatatypeColumnsWithSizes", "e2e-it_Books",
    "DataStreamToSpannerEventsIT--l1_Users",
}  # fmt: skip
# What its records do not tell: the key of the preview of 2020.
KEYS = {"HR_LOCATIONS": ["LOCATION_ID"]}
NAMES = [
    *(pytest.param(name, "current_view", id=name) for name in TRUTH if name in QUICK),
    *(pytest.param(name, "current_view", id=name, marks=pytest.mark.soak) for name in TRUTH if name in IN_SOAK),
    *(pytest.param(name, "current_state", id=f"{name}, applied", marks=pytest.mark.matrix) for name in TRUTH),
]


def test_the_directory_of_real_files_is_named() -> None:
    if not DIRECTORY:
        pytest.skip("RECONCILE_REAL_FILES names no directory: the real files of Datastream were not read")
    assert len(TRUTH) == 44 and set(TRUTH) >= QUICK | IN_SOAK


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


@pytest.mark.parametrize(("name", "materialized"), NAMES)
def test_the_files_of_a_table_give_its_rows_in_any_order_and_twice(
    memory: Memory, name: str, materialized: str
) -> None:
    said, schema = TRUTH[name], f"real_{materialized}_" + "".join(c if c.isalnum() else "_" for c in name).lower()
    records = [record for file in said["files"] for record in json_records((Path(DIRECTORY or "") / file).read_bytes())]
    key = KEYS.get(name, said["key"]) or "_change_id"
    half = len(records) // 2
    staged = [Staged(text, "forwards", 1) for text in records]
    staged += [Staged(text, "backwards", 1 + (at >= half)) for at, text in enumerate(records[::-1] + records)]
    memory.stage(f"{schema}.changes", staged)
    project = memory.project(schema)
    project.source(schema, "changes")
    columns = {column.pop("name"): column for column in ({**column["declaration"]} for column in said["columns"])}
    for model in ("forwards", "backwards"):
        project.model(
            model,
            f"{{{{ config(materialized={materialized!r}, unique_key={key!r}) }}}}\n"
            f"{{{{ reconcile.datastream_{said['source']}(source('lake', 'changes'), object='{model}') }}}}",
            columns,
        )
    for batches in (1, 2):
        memory.view(f"{schema}_upto.changes", f"select * from `{schema}`.`changes` where batch <= {batches}")
        project.source(f"{schema}_upto", "changes")
        project.run("forwards", "backwards")
    for model in ("forwards", "backwards"):
        assert memory.rows(f"{schema}.{model}__quarantine") == []
        assert _shown(memory.table(f"{schema}.{model}"), said["columns"]) == _true(name)


# Of these a header does not tell all: that a text is hex, that a moment is a date, how small a number stays. The models
# hold the text, the moment and the number, and the rows are the same.
TOLD_BY_A_DICTIONARY = {"binary", "date", "timestamp_ntz", "tinyint", "smallint"}
GENERATED = [
    *(pytest.param(name, id=name) for name in TRUTH if name in QUICK),
    *(pytest.param(name, id=name, marks=pytest.mark.matrix) for name in TRUTH if name not in QUICK),
]


@pytest.mark.parametrize("name", GENERATED)
def test_generated_models_have_the_rows_of_the_files(memory: Memory, tmp_path: Path, name: str) -> None:
    """With the headers of the files; with a file of keys for tables whose records name none."""
    said, schema = TRUTH[name], "generated_" + "".join(c if c.isalnum() else "_" for c in name).lower()
    contents = [(Path(DIRECTORY or "") / file).read_bytes() for file in said["files"]]
    records = [record for content in contents for record in json_records(content)]
    headers = [header for content in contents if (header := header_of(content)) is not None]
    seen = observed(records)
    (place,) = seen.tables
    answers = {}
    if name in KEYS or not said["key"]:
        (refusal,) = planned(tmp_path, seen, headers=headers).refusals
        assert refusal.reason == "no key"
        answers[label_of(place)] = Answer(tuple(KEYS.get(name, ["_change_id"])))
    plan = generated(tmp_path, seen, headers=headers, answers=answers)
    (model,) = plan.written
    assert plan.refusals == plan.misfits == []
    assert planned(tmp_path, seen, headers=headers, answers=answers).files == {}

    (entry,) = yaml.safe_load((tmp_path / f"{model}.yml").read_text(encoding="utf-8"))["models"]
    columns = {unrendered(column.pop("name")): column for column in entry["columns"]}
    memory.stage(f"{schema}_lake.shop_changes", [Staged(text, json.loads(text)["object"], 1) for text in records])
    project = memory.project(schema)
    project.source(f"{schema}_lake", "shop_changes")
    project.model(model, (tmp_path / f"{model}.sql").read_text(), columns)
    project.run(model)
    assert memory.rows(f"{schema}.{model}__quarantine") == []
    types = {column["name"]: column["declaration"]["data_type"] for column in said["columns"]}
    other = {column for column, data_type in types.items() if columns[column]["data_type"] != data_type}
    assert {types[column] for column in other} <= TOLD_BY_A_DICTIONARY
    shown = [_as(column, of, other) for column, of in types.items()]
    assert _shown(memory.table(f"{schema}.{model}").selectExpr(*shown), said["columns"]) == _true(name)


def _as(column: str, data_type: str, other: set[str]) -> str:
    """Return a column as its type at the source."""
    if column not in other:
        return f"`{column}`"
    return f"{f'unhex(`{column}`)' if data_type == 'binary' else f'cast(`{column}` as {data_type})'} as `{column}`"


def _true(name: str) -> list[str]:
    lines = (Path(DIRECTORY or "") / "truth" / f"{name}.jsonl").read_text().splitlines()
    return sorted(json.dumps(json.loads(line), sort_keys=True) for line in lines)


def _shown(rows: DataFrame, columns: list[dict[str, Any]]) -> list[str]:
    """Return the rows in the canonical form of the truth."""
    types = {column["name"]: column["declaration"]["data_type"] for column in columns}
    shown = [f"{_FORMS.get(type_, '`%s`') % name} as `{name}`" for name, type_ in types.items()]
    told = rows.selectExpr(*shown).collect()
    return sorted(json.dumps({name: _value(row[name], types[name]) for name in types}, sort_keys=True) for row in told)


_FORMS = {
    "binary": "lower(hex(`%s`))",
    "date": "cast(`%s` as string)",
    "timestamp": "date_format(`%s`, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'\")",
    "timestamp_ntz": "date_format(`%s`, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\")",
    "float": "cast(`%s` as string)",
}


def _value(value: Any, data_type: str) -> Any:
    if value is None:
        return None
    return format(value, "f") if data_type.startswith("decimal") else float(value) if data_type == "float" else value
