"""Columns that go, become wider and are renamed in the middle of a stream: the rows are those of a rebuild.

No record is read again, so records from before a change that arrive after it, and copies of what was merged, must have
the places in the order that they had: the account of each range says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from histories import COLUMNS, KEY, Record, fold, generate
from lakes import stored
from laws import Lakehouse, LawBroken, StagedHistories, demand, some
from memory import Memory, MemoryProject
from mortal_memory import MortalMemory
from plain_dbt import CompilerError
from pyspark.sql import SparkSession
from version_laws import Histories

BEFORE = {
    **{name: type for name, type in COLUMNS.items() if name != "note"},
    "remark": "string", "size": "int", "price": "decimal(9,2)", "gone": "int",
}  # fmt: skip
NAMED = {name: type for name, type in BEFORE.items() if name != "remark"} | {
    "note": {"data_type": "string", "config": {"meta": {"was": "remark"}}}
}
AFTER = {name: type for name, type in NAMED.items() if name != "gone"} | {"size": "bigint", "price": "decimal(14,4)"}
# From which batch on the YAML has which columns: one change after the other, or all of them at once.
STEPS = {"one by one": {1: BEFORE, 2: NAMED, 3: AFTER}, "at once": {1: BEFORE, 2: AFTER}}
SHOWN = [*KEY, "amount", "note", "other", "size", "price"]


def declare(lakehouse: Lakehouse, columns: Mapping[str, Any]) -> None:
    """Let the YAML of the models have these columns from now on."""
    project = lakehouse.project
    assert isinstance(project, MemoryProject)
    for source in lakehouse.sources:
        project.node(source)["columns"] = {
            name: {"name": name, "description": "", **({"data_type": of} if isinstance(of, str) else of)}
            for name, of in columns.items()
        }


class Extra(NamedTuple):
    """What a record has beside the columns of every history."""

    size: int
    price: Decimal


def told(records: list[Record], steps: Mapping[int, Mapping[str, Any]]) -> tuple[list[Record], dict[Any, Extra]]:
    """Return the records as a source would tell them whose columns change, and what they have more, by identity.

    What lies in the first half of the log has the former columns, whenever it arrives; and so has what arrives before
    the YAML is changed, since a run would else have read it without the new name, or quarantined it.
    """
    wide_from = min(batch for batch, columns in steps.items() if columns["size"] == "bigint")
    named_from = min(batch for batch, columns in steps.items() if "note" in columns)
    orders = sorted({record.order for record in records})
    half = orders[len(orders) // 2]
    first: dict[Any, int] = {}
    for record in records:
        first[record.identity] = min(record.batches[0], first.get(record.identity, 99))
    extras: dict[Any, Extra] = {}
    changed = []
    for record in records:
        said = json.loads(record.text)
        payload, identity = said.get("payload"), record.identity
        if not isinstance(payload, dict):
            changed.append(record)
            continue
        number, of_values = _number(identity), _number((record.key, record.values))
        early = record.order < half
        wide = not early and first[identity] >= wide_from
        size = of_values % 90 + (5_000_000_000 if wide else 0)
        extra = Extra(size, Decimal(of_values % 997) / (10_000 if wide else 100))
        extras[identity] = extra
        if early or first[identity] < named_from:
            payload["remark"] = payload.pop("note", None)
        elif number % 3 == 0:
            payload["remark"] = "stale"
        payload |= {"size": extra.size, "price": str(extra.price)}
        if early or first[identity] < wide_from:
            payload["gone"] = number % 7
        elif number % 2:
            payload["gone"] = "no number"
        changed.append(replace(record, text=json.dumps(said, ensure_ascii=False)))
    return changed, extras


def _number(of: Any) -> int:
    return int(hashlib.md5(repr(of).encode()).hexdigest(), 16)


def repeating(records: list[Record]) -> list[Record]:
    """Return changes of rows of their own, of MySQL, that differ from one another in the column that goes alone."""
    found = next(r for r in records if not r.bad and r.kind == "insert" and r.order[0] == 1 and None not in r.values)
    changes = []
    for row in range(3):
        for position in range(500_000, 500_003):
            said = json.loads(found.text)
            said["uuid"], said["payload"]["history"] = f"repeating-{row}-{position}", 9000 + row
            said["source_metadata"]["log_position"] = position
            changes.append(
                replace(
                    found, text=json.dumps(said), uuid=said["uuid"], key=(9000 + row, *found.key[1:]),
                    order=(*found.order[:-1], position), batches=(1, 1),
                )
            )  # fmt: skip
    return changes


def check_versions(lakehouse: Lakehouse, source: str) -> None:
    """A history shows no version that equals the version that ends where it begins."""
    rows = lakehouse.lake.table(f"{lakehouse.schema}.{source}").collect()
    told = {(row.history, row.id, row.part, row._change_sequence): row.asDict() for row in rows}
    shown = sorted(told.items(), key=lambda version: version[0])
    names = [name for name in shown[0][1] if not name.startswith("_change") and not name.startswith(("valid", "is_"))]
    for (key, before), (_, after) in pairwise(shown):
        same = [before[name] for name in names] == [after[name] for name in names]
        if same and before["valid_to"] == after["valid_from"]:
            raise LawBroken(f"{source}: a version of {key} repeats the one before it")


def delivery(memory: Memory, schema: str, histories: Mapping[str, int], steps: Mapping[int, Mapping[str, Any]]) -> Any:
    """Return histories in staging, and what their records have more."""
    records: dict[str, list[Record]] = {}
    extras: dict[Any, Extra] = {}
    for source, number in histories.items():
        histories_of_source = generate(source, number, seed=5)
        more_of_source = repeating(histories_of_source) if source == "mysql" else []
        records[source], more = told(histories_of_source + more_of_source, steps)
        extras |= more
    return StagedHistories(memory, schema, records, delivery=0, again=True), extras


def rows(lakehouse: Lakehouse, source: str) -> dict[Any, Any]:
    """Return what the base table and the view hold of keys without ties, without the hash at the end of sequences."""
    tied = lakehouse.ties(source)  # a rebuild may choose another payload
    found: dict[Any, Any] = {}
    for row in stored(lakehouse.lake, f"{lakehouse.schema}.{source}__base").collect():
        said = row.asDict()
        said["note"] = said.pop("remark", said.get("note"))
        said.pop("gone", None)
        said["_change_sequence"] = said["_change_sequence"].rpartition("/")[0]
        key = tuple(row[name] for name in KEY)
        if key not in tied:
            found["base", key, said["_change_sequence"]] = said
    view = lakehouse.lake.table(f"{lakehouse.schema}.{source}")
    shown = set(SHOWN) <= set(view.columns) and not {"remark", "gone"} & set(view.columns)
    demand(shown, f"{source}: the view has {view.columns}")
    for row in view.collect():
        said = row.asDict()
        if "_change_sequence" in said:
            said["_change_sequence"] = said["_change_sequence"].rpartition("/")[0]
        key = tuple(row[name] for name in KEY)
        if key not in tied:
            found["view", key, said.get("_change_sequence")] = said
    return found


def check_rows(lakehouse: Lakehouse, source: str, extras: Mapping[Any, Extra]) -> None:
    """Law 1, of the view of a `current_state`: its rows are the live ones of the fold of the delivered records."""
    seen = {
        tuple(row[name] for name in KEY): tuple(row[name] for name in SHOWN[len(KEY) :])
        for row in lakehouse.lake.table(f"{lakehouse.schema}.{source}").collect()
    }
    expected = fold(record for _, record in lakehouse.staged.upto(source, lakehouse.batch))
    live = {key: rivals for key, rivals in expected.items() if rivals[0].live}
    demand(seen.keys() == live.keys(), f"{source}: keys {some(seen.keys() ^ live.keys())}")
    wrong = {}
    for key, rivals in live.items():
        allowed = {(*folded.values, *extras[folded.writers[0].identity]) for folded in rivals}
        if seen[key] not in allowed:
            wrong[key] = (seen[key], allowed)
    demand(not wrong, f"{source}: {len(wrong)} rows are not as folded: {some(wrong.items())}")


def live_through(lakehouse: Lakehouse, steps: Mapping[int, Mapping[str, Any]], extras: Mapping[Any, Extra]) -> None:
    """Run the models batch by batch with the columns of each, and demand the rows of a rebuild at the end."""
    last = lakehouse.staged.last + 1
    for batch in range(1, last + 1):
        if batch in steps:
            declare(lakehouse, steps[batch])
        lakehouse.run(batch)
        for source in lakehouse.sources if lakehouse.materialized == "history" else ():
            check_versions(lakehouse, source)
    lakehouse.check_quarantine()
    lakehouse.check_ledger()
    for source in lakehouse.sources:
        kinds = [line.kind for line in lakehouse.accounts[source]]
        demand(kinds == ["rebuild"] + ["apply"] * (last - 1), f"{source}: {kinds}")
        if lakehouse.materialized == "current_state":
            check_rows(lakehouse, source, extras)
    before = {source: rows(lakehouse, source) for source in lakehouse.sources}
    lakehouse.run(last, full_refresh=True)
    for source in lakehouse.sources:
        after = rows(lakehouse, source)
        demand(len(after) > 20, f"{source}: nearly all keys have ties")
        different = [(before[source].get(at), after.get(at)) for at in before[source].keys() | after.keys()
                     if before[source].get(at) != after.get(at)]  # fmt: skip
        demand(not different, f"{source}: {len(different)} rows are not those of a rebuild: {some(different)}")


CASES = [
    pytest.param(Lakehouse, {"mysql": 40}, "one by one", id="40-one by one"),
    pytest.param(Histories, {"mysql": 40}, "at once", id="history-40-at once"),
    pytest.param(Lakehouse, {"postgresql": 60, "sqlserver": 60}, "at once", id="2x60-at once", marks=pytest.mark.soak),
    pytest.param(Histories, {"sqlserver": 60}, "one by one", id="history-60-one by one", marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("models", "histories", "steps"), CASES)
def test_changed_columns_have_the_rows_of_a_rebuild(
    spark: SparkSession, models: type[Lakehouse], histories: dict[str, int], steps: str
) -> None:
    with Memory(spark) as memory:
        staged, extras = delivery(memory, "changed_records", histories, STEPS[steps])
        live_through(models("changed", staged), STEPS[steps], extras)


@pytest.mark.matrix
@pytest.mark.parametrize("models", [Lakehouse, Histories])
def test_a_run_that_changes_columns_dies_before_each_statement_and_the_next_one_makes_it_good(
    spark: SparkSession, models: type[Lakehouse]
) -> None:
    with MortalMemory(spark) as memory:
        steps = STEPS["at once"]
        staged, extras = delivery(memory, "changed_records", {"mysql": 12}, steps)
        lakehouse = models("changed", staged)
        declare(lakehouse, steps[1])
        lakehouse.run(1)

        def command() -> None:
            declare(lakehouse, steps[2])
            lakehouse.deliver(2)
            lakehouse.project.run(*lakehouse.sources)

        def check() -> None:
            if lakehouse.materialized == "history":
                check_versions(lakehouse, "mysql")
            else:
                check_rows(lakehouse, "mysql", extras)
            lakehouse.check_quarantine()
            assert isinstance(lakehouse.project, MemoryProject)
            assert lakehouse.project.failing("ledger_balances", "mysql") == []

        rounds = memory.die_before_each(f"changed columns, {models.materialized}", command, check)
        assert rounds >= 4, memory.written


class Bug(NamedTuple):
    """A bug: which text of which file becomes which, of which models, and what is seen of it."""

    name: str
    file: str
    changes: dict[str, str]
    models: type[Lakehouse]
    shows: str


READ = "macros/model/changed_columns.sql"
BUGS = [
    Bug("a removed column is hashed no more", READ,
        {"{%- do read.append(dict(reconcile.column_of_built(column), removed=true, ":
         "{%- do [].append(dict(removed=true, "},
        Lakehouse, "counts"),
    Bug("a wider column is hashed as what it is", READ,
        {"{%- do now.update({'hashed': {'name': former.name, 'type': former.type}}) -%}\n  {%- endif -%}\n  {%- for":
         "{%- endif -%}\n  {%- for"},
        Lakehouse, "counts"),
    Bug("a renamed column is hashed at the place of its new name", READ,
        {"'stored': former.name, 'hashed': {'name': former.name,":
         "'stored': former.name, 'hashed': {'name': column.name,"},
        Lakehouse, "counts"),
    Bug("a value that a removed column cannot hold is quarantined", "macros/values/typed_payload.sql",
        {"{% if column.removed %}false{% else %}": "{% if false %}false{% else %}",
         "{%- for column in columns %}{% if column.removed %}": "{%- for column in columns %}{% if false %}"},
        Lakehouse, "quarantined"),
    Bug("a former name is not read", "macros/values/typed_payload.sql",
        {"[column.name] + column.was": "[column.name]"}, Lakehouse, "not as folded|counts|identit"),
    Bug("the former name wins", "macros/values/typed_payload.sql",
        {"[column.name] + column.was": "column.was + [column.name]"}, Lakehouse, "not as folded|counts|identit"),
    Bug("versions that differ in a removed column stay", "macros/materializations/get_column_statements.sql",
        {"{%- if changes.removed and form.materialized == 'history' -%}": "{%- if false -%}"},
        Histories, "repeats the one before it"),
]  # fmt: skip


@pytest.fixture(scope="module")
def planted(spark: SparkSession) -> Iterator[tuple[StagedHistories, dict[Any, Extra]]]:
    with Memory(spark) as memory:
        yield delivery(memory, "planted_changes", {"mysql": 40}, STEPS["at once"])


@pytest.mark.planted
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_laws_find(planted: tuple[StagedHistories, dict[Any, Extra]], bug: Bug) -> None:
    staged, extras = planted
    schema = "planted_" + "".join(character if character.isalnum() else "_" for character in bug.name)
    lakehouse = bug.models(schema, staged, replaced={bug.file: bug.changes})
    with pytest.raises((LawBroken, CompilerError), match=bug.shows):
        live_through(lakehouse, STEPS["at once"], extras)
