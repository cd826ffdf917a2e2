"""Nothing that a model does not declare goes unseen: columns that come, go, change form or case, keys, schemas."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import yaml
from datastream import Staged, event
from memory import Memory, MemoryProject
from plain_dbt import CompilerError
from pyspark.sql import SparkSession

COLUMNS = {"id": "bigint", "name": "string", "amount": "decimal(12,2)", "doc": "variant"}
WHOLE = {"id": 1, "name": "a", "amount": 1.5, "doc": {"x": 1}}
Replaced = Mapping[str, Mapping[str, str]]
_schemas = itertools.count()


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


def records(batches: Sequence[Iterable[Mapping[str, Any]]], **said: Any) -> list[Staged]:
    return [
        Staged(event("postgresql", payload, metadata={"lsn": f"0/{100 + number:X}"}, **said), "shop.things", batch)
        for batch, payloads in enumerate(batches, 1)
        for number, payload in enumerate(payloads, 10 * batch)
    ]


class Stream:
    """A model, and what its runs say when batches come one by one, or all at once."""

    def __init__(
        self,
        memory: Memory,
        staged: Iterable[Staged],
        replaced: Replaced | None = None,
        source: str = "postgresql",
        **config: Any,
    ) -> None:
        self.memory, self.schema, self.staged = memory, f"drift_{next(_schemas)}", list(staged)
        self.project: MemoryProject = memory.project(self.schema, replaced)
        self.project.source(f"{self.schema}_lake", "changes")
        said = {"materialized": "current_state", "unique_key": "id", **config}
        self.project.model(
            "things",
            f"{{{{ config({', '.join(f'{name}={value!r}' for name, value in said.items())}) }}}}\n"
            f"{{{{ reconcile.datastream_{source}(source('lake', 'changes'), object='shop.things') }}}}",
            COLUMNS,
        )

    def deliver(self, upto: int) -> None:
        rows = [row for row in self.staged if row.batch <= upto]
        table = f"{self.schema}_lake.changes"
        if self.memory.has(table):
            self.memory.delete(table, "true")
        # At the same times again: another time would be another batch.
        self.memory.stage(table, rows, at="timestamp_seconds(1767225600 + batch)")

    def run(self, upto: int, *, full_refresh: bool = False) -> str:
        self.deliver(upto)
        return str(self.project.run("things", full_refresh=full_refresh)["things"])

    def in_turn(self) -> list[str]:
        return [self.run(batch) for batch in sorted({row.batch for row in self.staged})]

    def seen(self) -> set[Any]:
        return set(self.memory.rows(f"{self.schema}.reconcile_columns_seen"))

    def drift(self) -> dict[str, tuple[Any, ...]]:
        """Return what the view shows, by name: finding, first batch, records."""
        self.project.run("reconcile_drift")
        rows = self.memory.rows(f"{self.schema}.reconcile_drift")
        return {row.name: (row.finding, row.since_batch, row.records) for row in rows}

    def failing(self) -> set[str]:
        return {row["name"] for row in self.project.failing("no_drift", "things")}


def test_a_stream_as_declared_has_no_drift(memory: Memory) -> None:
    stream = Stream(memory, records([[WHOLE], [WHOLE, {**WHOLE, "id": 2, "name": None}], [WHOLE]]))
    assert [said.partition("applied")[2] for said in stream.in_turn()] == ["", "", ""]
    assert (stream.drift(), stream.failing()) == ({}, set())
    assert {row.batch for row in stream.seen() if row.form != "null"} == {1}, "what was seen is not written again"


CHANGING = [
    [WHOLE],
    [{**WHOLE, "more": 7}, {**WHOLE, "id": 2, "more": 8}, {**WHOLE, "id": 3}],  # one comes
    [{"id": 4, "amount": 2, "doc": None, "more": 9}],  # one goes
    [{**WHOLE, "amount": "2.5", "doc": "text"}],  # and comes back; another is text now
    [{"id": 5, "Name": "b", "AMOUNT": 3, "doc": [1]}],  # of others the case changes
    [{"id": 6, "name": "c", "amount": 4}],  # and the last one goes
]


def test_columns_that_come_and_go_and_change_are_each_named(memory: Memory) -> None:
    stream = Stream(memory, records(CHANGING))
    said = [said.partition("applied; ")[2] for said in stream.in_turn()]
    assert said == [
        "",
        "columns that are not declared: more",
        "columns that are not declared: more; columns that are no longer in every record: name",
        "",
        "",
        "columns that are no longer in every record: doc",
    ]
    expected = {
        "more": ("new", 2, 3), "amount": ("changed form", 5, 1), "name": ("changed form", 5, 1),
        "doc": ("missing", 6, 1),
    }  # fmt: skip
    assert stream.drift() == expected
    assert stream.failing() == set(expected)


def test_a_rebuild_and_a_replay_write_the_same_rows(memory: Memory) -> None:
    stream = Stream(memory, records(CHANGING))
    stream.in_turn()
    in_turn = stream.seen()
    stream.run(6, full_refresh=True)
    assert stream.seen() == in_turn
    memory.restore(f"{stream.schema}.things__base", 3)
    assert stream.run(6).startswith("REPLAY")
    assert stream.seen() == in_turn


def test_ignored_columns_are_shown_as_ignored_and_fail_no_test(memory: Memory) -> None:
    meta = {"ignored_columns": ["MORE", "doc", "amount", "name"]}
    stream = Stream(memory, records(CHANGING), meta=meta)
    assert all("declared" not in said and "longer" not in said for said in stream.in_turn())
    assert {finding for finding, *_ in stream.drift().values()} == {"ignored"}
    assert stream.failing() == set()


def test_the_line_to_paste_declares_the_column(memory: Memory) -> None:
    more = {"n": 1, "d": 1.5, "t": "x", "b": True, "o": {"x": 1}, 'say "so"': 1, "m": [1], "w": 1}
    stream = Stream(memory, records([[{**WHOLE, **more}, {**WHOLE, **more, "id": 2, "m": "x", "w": "x"}]]))
    stream.run(1)
    stream.project.run("reconcile_drift")
    types = {"n": "bigint", "d": "string", "t": "string", "b": "boolean", "w": "string", 'say \\"so\\"': "bigint"}
    lines = {row.name: row.yaml for row in memory.rows(f"{stream.schema}.reconcile_drift")}
    assert lines == {
        **{
            name.replace("\\", ""): f'- {{name: "{name}", data_type: {type_}, config: {{meta: {{added: true}}}}}}'
            for name, type_ in types.items()
        },
        "o": '- {name: "o", data_type: string, config: {meta: {encoding: json, added: true}}}',
        "m": '- {name: "m", data_type: string, config: {meta: {encoding: json, added: true}}}',
    }
    assert all(yaml.safe_load(line)[0]["config"]["meta"]["added"] for line in lines.values())


def test_a_column_that_no_record_ever_had_ends_the_run(memory: Memory) -> None:
    staged = records([[{"id": 1, "nmae": "a", "amount": 1, "doc": None}]])
    stream = Stream(memory, staged)
    with pytest.raises(CompilerError, match=r"no record has the declared column name; .* that are not declared: nmae;"):
        stream.run(1)
    assert not memory.has(f"{stream.schema}.things__base")
    assert "1 of 1 applied" in Stream(memory, staged, meta={"ignored_columns": ["name"]}).run(1)


def test_deletes_need_no_columns_but_the_key(memory: Memory) -> None:
    staged = [*records([[WHOLE]]), Staged(event("postgresql", {"id": 1}, "DELETE"), "shop.things", 2)]
    stream = Stream(memory, staged)
    stream.in_turn()
    assert (stream.drift(), stream.failing()) == ({}, set())


def of_key(key: list[str] | None, batch: int, **said: Any) -> Staged:
    return Staged(
        event("postgresql", {**WHOLE, "id": batch}, metadata={"primary_keys": key}, **said), "shop.things", batch
    )


@pytest.mark.parametrize(
    ("keys", "unique_key", "wrong"),
    [
        ([["ID"]], "id", set()),
        ([["name", "id"]], ["id", "name"], set()),
        ([["id", "name"]], "id", {'["id","name"]'}),
        ([["id"]], ["id", "name"], {'["id"]'}),
        ([["id"], ["id", "name"]], "id", {'["id","name"]'}),
        ([["id", "name"], ["id"]], "id", set()),
        ([["id"], ["id", "name"], ["id"], ["id"]], "id", set()),
        ([["id"], ["id"], ["id", "name"], ["id"]], ["id", "name"], {'["id"]'}),
        ([[], None], "id", set()),
    ],
)
def test_another_key_than_that_of_the_source_is_named(
    memory: Memory, keys: list[list[str] | None], unique_key: Any, wrong: set[str]
) -> None:
    stream = Stream(memory, [of_key(key, batch) for batch, key in enumerate(keys, 1)], unique_key=unique_key)
    said = stream.in_turn()
    found = {row["key_of_the_source"] for row in stream.project.failing("key_is_the_sources", "things")}
    assert found == wrong
    assert ("the key of the source is" in said[-1]) == bool(wrong)


def test_the_key_of_sql_server_is_its_replication_index(memory: Memory) -> None:
    for index, unique_key, wrong in ([["Id"], "id", 0], [["id", "name"], "id", 1], [["id"], ["id", "name"], 1]):
        record = event("sqlserver", {**WHOLE, "id": 1}, metadata={"replication_index": index, "primary_keys": None})
        stream = Stream(memory, [Staged(record, "shop.things", 1)], source="sqlserver", unique_key=unique_key)
        assert ("the key of the source is" in stream.run(1)) == bool(wrong)
        assert len(stream.project.failing("key_is_the_sources", "things")) == wrong


def test_keys_that_come_back_are_noted_alike_in_one_run_and_in_many(memory: Memory) -> None:
    """In a batch are the records of several keys; the notes say of each batch what differs from the batch before."""
    keys = [["a"], ["b"], ["a", "b"], ["a"], ["a"], ["b"], ["b"], ["a"]]
    staged = [of_key([key], batch) for batch, named in enumerate(keys, 1) for key in named]
    notes = []
    for runs in ([8], [1, 2, 3, 4, 5, 6, 7, 8], [2, 3, 5, 8]):
        stream = Stream(memory, staged, unique_key="id")
        for batch in runs:
            stream.run(batch)
        notes.append({(row.batch, *json.loads(row.name)) for row in stream.seen() if row.kind == "key"})
    assert notes[0] == {(1, "a"), (2, "b"), (3, "a"), (3, "b"), (4, "a"), (6, "b"), (8, "a")}
    assert notes[1:] == notes[:1] * 2


def test_a_schema_that_follows_another_is_noted_and_fails_no_test(memory: Memory) -> None:
    stream = Stream(memory, [of_key(["id"], batch, schema_key=f"{batch // 2:040x}") for batch in (1, 2, 3)])
    stream.in_turn()
    assert stream.drift() == {f"{1:040x}": ("changed schema", 2, 1)}
    assert stream.failing() == set()
    # One that is taken up again is shown with its newest return.
    back = Stream(memory, [of_key(["id"], batch, schema_key=f"{batch % 2:040x}") for batch in (1, 2, 3)])
    back.in_turn()
    assert back.drift() == {f"{0:040x}": ("changed schema", 2, 1), f"{1:040x}": ("changed schema", 3, 2)}


def named(memory: Memory, runs_after: Sequence[int], replaced: Replaced | None = None) -> tuple[Any, ...]:
    """Return all that is named of a stream that changes and of its key, when a run has followed some of its batches."""
    staged = [
        *records(CHANGING),
        *(
            Staged(event("postgresql", WHOLE, metadata={"primary_keys": ["id", "name"]}), "shop.things", batch)
            for batch in (2, 6)
        ),
        Staged(event("postgresql", {"id": 1}, "DELETE"), "shop.things", 4),
    ]
    stream = Stream(memory, staged, replaced)
    said = [stream.run(batch).partition("applied")[2] for batch in runs_after]
    found = {row["key_of_the_source"] for row in stream.project.failing("key_is_the_sources", "things")}
    return said, stream.drift(), stream.failing(), found, {tuple(row)[1:] for row in stream.seen()}


FORGOTTEN = "what was noted before is forgotten"
AT_ONCE, IN_TWO_RUNS = [6], [3, 6]


@pytest.fixture(scope="module")
def without_bugs(memory: Memory) -> dict[int, tuple[Any, ...]]:
    return {len(runs): named(memory, runs) for runs in (AT_ONCE, IN_TWO_RUNS)}


SEEN, FIELDS = "macros/drift/columns_seen.sql", "macros/values/fields_of_payload.sql"
KEY = "macros/generic_tests/key_is_the_sources.sql"
BUGS: dict[str, Replaced] = {
    "what is not declared is not noted": {SEEN: {" or kind = 'column' and not is_declared": ""}},
    "what comes back is not noted": {SEEN: {" or is_back or": " or"}},
    "a key is noted once": {SEEN: {" and is_switch": " and batch = first_batch"}},
    FORGOTTEN: {SEEN: {" and batch < {{ range.first }}": " and false"}},
    "a delete counts as a row": {SEEN: {"count_if(_change_type <> 'delete'": "count(*) + count_if(false"}},
    "fields are taken by their place": {SEEN: {"i + 1, 2)": "i + 3, 2)"}},
    "case is not looked at": {SEEN: {"        name as spelled": "        lower(name) as spelled"}},
    "columns in other places are taken for the declared ones": {FIELDS: {"1) = '='": "1) = '?'"}},
    "numbers and texts are alike": {FIELDS: {"then 'text'": "then 'number'"}},
    "only some other keys are told": {KEY: {"<> array_sort(": "< array_sort("}},
    "a missing column is no finding": {"macros/drift/drift.sql": {"when cardinality(missing) > 0 then 'missing' ": ""}},
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(memory: Memory, without_bugs: dict[int, tuple[Any, ...]], bug: str) -> None:
    runs = IN_TWO_RUNS if bug == FORGOTTEN else AT_ONCE
    assert named(memory, runs, BUGS[bug]) != without_bugs[len(runs)]
