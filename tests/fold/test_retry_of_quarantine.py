"""A corrected declaration is applied to what is in quarantine: rows, quarantine and ledger are those of a rebuild.

Histories get more columns, with values of ten kinds that the first declaration cannot read, on top of their defects
that no declaration can read. Seven kinds are read by a declaration that only reads more, and three by another one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from histories import COLUMNS, Record, generate
from laws import Lakehouse, LawBroken, StagedHistories, _account, check_same, demand, without_batches
from memory import Memory, MemoryProject
from mortal_memory import MortalMemory
from plain_dbt import CompilerError, Rows
from pyspark.sql import SparkSession
from version_laws import Histories


def _with(data_type: str, **meta: Any) -> Any:
    return {"data_type": data_type, "config": {"meta": meta}}


class Kind(NamedTuple):
    """Why a record is quarantined: what its column is declared as before and after, and what it has."""

    before: Any
    after: Any
    text: str
    reads_more: bool  # and nothing otherwise


KINDS = {
    "label": Kind("varchar(3)", "varchar(40)", "abcdef", True),
    "code": Kind("varchar(3)", "string", "abcd", True),
    "price": Kind("decimal(12,2)", _with("decimal(12,2)", round=True), "1.005", True),
    "whole": Kind("bigint", _with("bigint", round=True), "12.5", True),
    "seen": Kind("timestamp", _with("timestamp", round=True), "2026-11-21T11:33:12.123456789Z", True),
    "day": Kind("date", _with("date", round=True), "2024-02-29T23:59:59", True),
    "until": Kind("timestamp", _with("timestamp", infinity_is_null=True), "infinity", True),
    "small": Kind("int", "bigint", "3000000000", False),
    "fine": Kind("decimal(12,2)", "decimal(20,4)", "1.2345", False),
    "data": Kind("binary", _with("binary", encoding="hex"), "00FF", False),
}
FITS = {
    "label": "abc", "code": "a", "price": "1.01", "whole": "12", "seen": "2026-11-21T11:33:12.123456Z",
    "day": "2024-02-29", "until": "2026-11-21T11:33:12Z", "small": "7", "fine": "1.23",
}  # fmt: skip
STRICT, WIDE, MORE, ALL = STAGES = ("strict", "wider", "reads more", "reads all")
WIDER = ("label", "code", "small", "fine")  # what a base table goes on with in any run


def columns(stage: str) -> dict[str, Any]:
    """Return what the YAML says at a stage."""
    corrected = {
        STRICT: (),
        WIDE: WIDER,
        MORE: tuple(n for n, kind in KINDS.items() if kind.reads_more),
        ALL: tuple(KINDS),
    }[stage]
    return {**COLUMNS, **{name: kind.after if name in corrected else kind.before for name, kind in KINDS.items()}}


def misfits(source: str, records: list[Record], share: float) -> dict[str, str]:
    """Return which records get a value that does not fit, by uuid; copies of a record get the same."""
    found = {}
    kinds = [name for name in KINDS if (source, name) != ("mysql", "data")]  # MySQL's bytes are known to be hex
    for record in records:
        chance = random.Random(repr(record.identity))
        if not record.bad and chance.random() < share:
            found[record.uuid] = chance.choice(kinds)
    return found


def _told(record: Record, kinds: Mapping[str, str]) -> Record:
    """Return a record with values of the further columns, which follow from its identity."""
    said = json.loads(record.text)
    if record.columns is not None or not isinstance(said.get("payload"), dict) or "note" not in said["payload"]:
        return record
    chance = random.Random(repr(record.identity) + "values")
    # Without an encoding no value of `data` fits. The field is there, as the column would be taken for a misspelt one.
    row = {"data": None, **{name: chance.choice([None, text]) for name, text in FITS.items()}}
    if record.uuid in kinds:
        row[kinds[record.uuid]] = KINDS[kinds[record.uuid]].text
    said["payload"].update(row)
    return replace(record, text=json.dumps(said, ensure_ascii=False))


def _later(record: Record, batch: int) -> Record:
    """Return a record that comes not before this batch if it is bad."""
    return replace(record, batches=(max(batch, record.batches[0]), record.batches[1])) if record.bad else record


class Stream(StagedHistories):
    """Histories that the declaration of a stage reads more or fewer records of."""

    def __init__(self, memory: Memory, schema: str, histories: Mapping[str, int], from_batch: int = 1) -> None:
        """Stage them; no record of a batch before `from_batch` is bad."""
        records = {source: generate(source, number, seed=5) for source, number in histories.items()}
        if from_batch > 1:
            records = {source: [_later(each, from_batch) for each in told] for source, told in records.items()}
        self.kinds: dict[str, str] = {}
        for source, told in records.items():
            early = {each.identity for each in told if each.batches[0] < from_batch}
            uuids = {each.uuid for each in told if each.identity not in early and '"note"' in each.text}
            self.kinds |= {uuid: kind for uuid, kind in misfits(source, told, share=0.45).items() if uuid in uuids}
        records = {source: [_told(record, self.kinds) for record in told] for source, told in records.items()}
        super().__init__(memory, schema, records, delivery=0, again=True)
        self._first = self.records

    def read_as(self, stage: str) -> None:
        """Let the records be bad that the declaration of this stage cannot read."""
        unread = {
            STRICT: set(KINDS), WIDE: set(KINDS) - set(WIDER),
            MORE: {name for name, kind in KINDS.items() if not kind.reads_more}, ALL: set(),
        }[stage]  # fmt: skip
        self.records = {
            source: [(batch, replace(r, bad=r.bad or self.kinds.get(r.uuid) in unread)) for batch, r in told]
            for source, told in self._first.items()
        }


class Corrected(Lakehouse):
    """Models of which the declaration is corrected, once or twice."""

    staged: Stream
    later_batches = frozenset({"oracle"})

    def declare(self, stage: str) -> None:
        self.staged.read_as(stage)
        self._sequences.clear()
        assert isinstance(self.project, MemoryProject)
        for source in self.sources:
            self.project.node(source)["columns"] = {
                name: {"name": name, "description": "", **({"data_type": of} if isinstance(of, str) else of)}
                for name, of in columns(stage).items()
            }

    def retry(self, upto: int, asks: bool = True) -> None:
        self.project.variables["retry_quarantine"] = asks
        try:
            self.run(upto)
        finally:
            self.project.variables["retry_quarantine"] = False

    def check_balance(self) -> None:
        """Law 3, by the test that users have."""
        for source in self.sources:
            found = self.project.failing("ledger_balances", source)
            demand(not found, f"{source}: the ledger does not balance: {found}")

    def check_account(self, strictly: int) -> None:
        """The last range is counted as a replay of its records in plain Python.

        `strictly`: the last batch that was applied before the declaration was corrected.
        """
        stage = self.staged.records
        for source in self.sources:
            sequences, base = self.sequences(source), {}
            self.staged.read_as(STRICT)
            base = _account(self.staged.upto(source, strictly), sequences, base)["base"]
            self.staged.records = stage
            line = self.accounts[source][-1]
            told = self.staged.upto(source, line.last_batch, line.first_batch)
            expected = _account(told, sequences, {} if line.kind == "rebuild" else base)
            expected.pop("base")
            seen = {name: line[name] for name in expected}
            demand(seen == expected, f"{source}: {line.kind} counts {seen}, should be {expected}")


class CorrectedHistories(Corrected, Histories):
    """The same of models that keep every version; their views have more columns than the laws expect."""

    def check_state(self) -> None:
        pass

    def check_account(self, strictly: int) -> None:
        pass


def kept(lakehouse: Lakehouse) -> dict[str, dict[Any, Any]]:
    return {source: lakehouse.base(source) for source in lakehouse.sources}


def same(lakehouse: Lakehouse, one: Mapping[str, Any], other: Mapping[str, Any], whole: bool = False) -> None:
    """Law 5; `whole`: the base tables were made from all records, so that batches are the same too."""
    for source in lakehouse.sources:
        ours, theirs = one[source], other[source]
        if source in lakehouse.later_batches and not whole:
            ours, theirs = without_batches(ours), without_batches(theirs)
        check_same(ours, theirs, source)


def correct(lakehouse: Corrected, strictly: int, upto: int) -> None:
    """Build strictly up to a batch, then go on with a declaration that only reads more, and by the laws."""
    lakehouse.declare(STRICT)
    lakehouse.run(1)
    lakehouse.run(strictly)
    lakehouse.check_quarantine()
    lakehouse.declare(MORE)
    lakehouse.retry(upto)
    lakehouse.check_state()
    lakehouse.check_quarantine()
    lakehouse.check_account(strictly)
    lakehouse.check_balance()


# models, histories of each source, and whether the other kinds are read then, too
CASES = [
    pytest.param((Corrected, {"oracle": 75, "postgresql": 75}, False), id="2x75"),
    pytest.param((Corrected, {"oracle": 65, "mysql": 65}, True), id="2x65-all", marks=pytest.mark.soak),
    pytest.param((CorrectedHistories, {"mysql": 120}, True), id="history-120-all", marks=pytest.mark.soak),
]


@pytest.mark.parametrize("case", CASES)
def test_what_fits_now_is_applied_as_a_rebuild_applies_it(
    spark: SparkSession, case: tuple[type[Corrected], dict[str, int], bool]
) -> None:
    models, histories, reads_all = case
    with Memory(spark) as memory:
        stream = Stream(memory, "retry_records", histories)
        lakehouse = models("retry", stream)
        stream.read_as(STRICT)
        quarantined = [r for source in histories for _, r in stream.upto(source, 4) if r.bad]
        kinds = {*KINDS, None} - ({"data"} if [*histories] == ["mysql"] else set())
        assert len(quarantined) >= 1000 and {stream.kinds.get(r.uuid) for r in quarantined} == kinds
        correct(lakehouse, 4, 4)
        for source in histories:
            lines = [(line.kind, line.first_batch, line.last_batch) for line in lakehouse.accounts[source]]
            assert lines == [("rebuild", 1, 1), ("apply", 2, 4), ("replay", 1, 4)], source
        before = kept(lakehouse)
        lakehouse.retry(4)  # once more: nothing changes
        same(lakehouse, before, kept(lakehouse), whole=True)
        lakehouse.check_quarantine()
        lakehouse.check_balance()
        rebuilt = models("retry_rebuilt", stream)
        rebuilt.declare(MORE)
        rebuilt.run(4)
        same(lakehouse, before, kept(rebuilt))
        if not reads_all:
            return
        lakehouse.declare(ALL)
        lakehouse.retry(4)
        lakehouse.check_state()
        lakehouse.check_quarantine()
        lakehouse.check_balance()
        assert {lakehouse.accounts[source][-1].kind for source in histories} == {"rebuild"}
        before = kept(lakehouse)
        rebuilt.declare(ALL)
        rebuilt.run(4, full_refresh=True)
        same(lakehouse, before, kept(rebuilt), whole=True)


@pytest.mark.matrix
@pytest.mark.parametrize("models", [Corrected, CorrectedHistories])
@pytest.mark.parametrize("stage", [MORE, ALL])
def test_a_retry_dies_before_each_statement_and_the_next_one_makes_it_good(
    spark: SparkSession, models: type[Corrected], stage: str
) -> None:
    with MortalMemory(spark) as memory:
        stream = Stream(memory, "retry_records", {"postgresql": 12})
        lakehouse = models("retry", stream)
        lakehouse.declare(STRICT)
        lakehouse.run(1)
        lakehouse.run(3)

        def command() -> None:
            lakehouse.declare(stage)
            lakehouse.retry(4)

        def check() -> None:
            lakehouse.check_state()
            lakehouse.check_quarantine()
            lakehouse.check_balance()

        assert memory.die_before_each(f"retry, {models.materialized}, {stage}", command, check) >= 4, memory.written


def untied(lakehouse: Lakehouse, source: str) -> dict[Any, Any]:
    """Return the rows without ties, and without the hash that settles them, which has the types of before."""
    rows, tied = lakehouse.base(source), lakehouse.ties(source)
    shown = {key: row for key, row in rows.items() if key not in tied}
    assert len(shown) > 20
    return {key: {**row, "_change_sequence": row["_change_sequence"].rpartition("/")[0]} for key, row in shown.items()}


@pytest.mark.parametrize("now", [True, False], ids=["now", "later"])
def test_a_wider_type_reads_all_records_now_or_is_a_replay_later(spark: SparkSession, now: bool) -> None:
    """The rows are those of a rebuild, whether the retry takes the wider types or an earlier run has."""
    with Memory(spark) as memory:
        stream = Stream(memory, f"wider_{now}_records", {"mysql": 40})
        lakehouse = Corrected(f"wider_{now}", stream)
        lakehouse.declare(STRICT)
        lakehouse.run(3)
        lakehouse.check_quarantine()
        lakehouse.declare(WIDE)
        if not now:
            lakehouse.run(3)
        lakehouse.retry(4)
        lakehouse.check_state()
        lakehouse.check_quarantine()
        lakehouse.check_balance()
        assert lakehouse.accounts["mysql"][-1].kind == ("rebuild" if now else "replay")
        before, without_ties = lakehouse.base("mysql"), untied(lakehouse, "mysql")
        lakehouse.retry(4)  # once more: nothing changes
        assert lakehouse.accounts["mysql"][-1].kind == "replay"
        check_same(before, lakehouse.base("mysql"), "mysql")
        lakehouse.run(4, full_refresh=True)
        check_same(without_ties, untied(lakehouse, "mysql"), "mysql")
        if now:
            check_same(before, lakehouse.base("mysql"), "mysql")


class KilledError(Exception):
    """The run ends here."""


def mortal(lakehouse: Corrected, lives: int | None, retry: Callable[[], None]) -> bool:
    """Run, and let the run end before it writes for the n-th time; return whether it did."""
    project, count = lakehouse.project, 0
    assert isinstance(project, MemoryProject)
    writes = ("alter", "merge", "insert", "create or replace")

    def query(sql: str) -> Rows:
        nonlocal count
        if sql.strip().startswith(writes) and "temporary" not in sql[:40]:
            count += 1
            if lives is not None and count > lives:
                raise KilledError(sql)
        return project.memory.query(sql)

    project.context["run_query"] = query
    try:
        retry()
    except KilledError:
        return True
    finally:
        project.context["run_query"] = project.memory.query
    return False


@pytest.mark.soak
def test_a_retry_that_dies_anywhere_is_ended_by_the_next_run(spark: SparkSession) -> None:
    with Memory(spark) as memory:
        stream = Stream(memory, "killed_records", {"oracle": 30}, from_batch=2)
        for lives in range(20):
            lakehouse = Corrected(f"killed_{lives}", stream)
            lakehouse.declare(STRICT)
            lakehouse.run(1)
            lakehouse.run(2)
            lakehouse.declare(MORE)
            died = mortal(lakehouse, lives, lambda one=lakehouse: one.retry(3))  # type: ignore[misc]
            try:
                lakehouse.run(3)
            except CompilerError as refused:  # the base table still has the earlier declaration
                demand("built with other columns" in str(refused), str(refused))
                lakehouse.retry(3)
            lakehouse.check_state()
            lakehouse.check_quarantine()
            lakehouse.check_balance()
            if not died:
                break
        assert lives > 6 and not died


class Bug(NamedTuple):
    """A bug: which text of which file becomes which, and what is seen of it."""

    name: str
    file: str
    changes: dict[str, str]
    shows: str


RETRY = "macros/materializations/retry_of_quarantine.sql"
BUGS = [
    Bug("in the order of arrival", "macros/materializations/current_state/merge_newest.sql",
        {"newest._change_sequence > base._change_sequence{% endif %}":
         "(newest._change_sequence > base._change_sequence or newest._change_batch < " "{{ range.last }}){% endif %}",
         "where (_change_base_sequence is null or _change_sequence > _change_base_sequence)": "where true"},
        "are not as folded|counts"),
    Bug("what was applied stays in quarantine", "macros/materializations/get_apply_statements.sql",
        {"{%- if counts.quarantined or range.kind == 'replay' -%}": "{%- if not range.retry -%}"},
        "quarantined"),
    Bug("the records are counted beside their first ranges", "macros/ledger/get_ledger_statements.sql",
        {"{{ snapshot or range.first }} as first_batch":
         "{{ snapshot or [range.first, (range.ledger_batch or 0) + 1] | max }} as first_batch"},
        "counts"),
    Bug("the last batch alone is read again", RETRY,
        {"'select min(if(_change_batch > '": "'select max(if(_change_batch > '"},
        "keys|folded|quarantined"),
    Bug("a base table is said to go on with whatever is declared", RETRY,
        {"{%- elif changed and not goes_on -%}": "{%- elif false -%}"},
        "rows differ|are not as folded|counts"),
]  # fmt: skip


@pytest.fixture(scope="module")
def staged(spark: SparkSession) -> Iterator[tuple[Stream, Memory]]:
    with Memory(spark) as memory:
        yield Stream(memory, "planted_records", {"postgresql": 60}, from_batch=2), memory


@pytest.mark.planted
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_laws_find(staged: tuple[Stream, Memory], bug: Bug) -> None:
    stream, _ = staged
    schema = "planted_" + "".join(character if character.isalnum() else "_" for character in bug.name)
    lakehouse = Corrected(schema, stream, replaced={bug.file: bug.changes})
    with pytest.raises(LawBroken, match=bug.shows):
        correct(lakehouse, 3, 3)
        lakehouse.declare(ALL)
        lakehouse.retry(4)
        lakehouse.check_state()
        before = kept(lakehouse)
        rebuilt = Corrected(f"{schema}_rebuilt", stream)
        rebuilt.declare(ALL)
        rebuilt.run(4)
        same(lakehouse, before, kept(rebuilt))
