"""Several sources in one model: each row is decided by the records of its own source, whatever the others' positions.

Two databases have a table each, with the same keys, and logs with the very same positions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from datastream import READ_METHODS, Staged, event
from memory import Memory, MemoryProject
from pyspark.sql import SparkSession

SHARDS = ["shop_1", "shop_2"]
BATCHES = 2
THINGS = {"shard": "string", "id": "bigint", "name": "string"}
# Of MySQL the schema is the database; of SQL Server any database is a source.
TABLES: dict[str, Any] = {
    "mysql": ["shop_1.things", ["shop_2.old_things", "shop_2.things"]], "sqlserver": [["dbo.old_things", "dbo.things"]],
}  # fmt: skip
# The clock of the second is ten days ahead, as are the times of its log.
EPOCHS = {shard: datetime(2026, 11, 1 + 10 * number, tzinfo=UTC) for number, shard in enumerate(SHARDS)}


class Told(NamedTuple):
    """A record of a row; `place` is that of a change in the log of its database, of a backfill row the reading."""

    shard: str
    id: int
    name: str | None
    place: tuple[int, int]
    is_renamed: bool


def log_of(shard: str, draw: random.Random) -> Iterator[Told]:
    """Yield what a database does; keys from 1 to 30 are those of both, and ten more are its own."""
    own = 100 * (1 + SHARDS.index(shard))
    ids, rows = [*range(1, 31), *range(own, own + 10)], set[int]()
    for id_ in draw.sample(ids, 12):
        rows.add(id_)
        yield Told(shard, id_, f"{shard} {id_} as read", (0, 1), False)
    for place in range(1, 161):
        id_ = draw.choice(ids)
        is_deleted = id_ in rows and draw.random() < 0.4
        (rows.discard if is_deleted else rows.add)(id_)
        name = None if is_deleted else f"{shard} {id_} at {place}"
        yield Told(shard, id_, name, (1, place), shard == "shop_2" and place > 80)


def record(source: str, told: Told) -> Staged:
    is_change, place = told.place
    table = "old_things" if told.shard == "shop_2" and not told.is_renamed else "things"
    where: dict[str, Any] = {"database": told.shard, "table": table}
    if source == "mysql":
        where |= {"log_file": "mysql-bin.000007", "log_position": place}
    else:
        where |= {"schema": "dbo", "lsn": f"{place:08x}:00000001:0001"}
    at = (EPOCHS[told.shard] + timedelta(minutes=3 * place)).isoformat()
    text = event(
        source, {"id": told.id, "name": told.name}, "DELETE" if told.name is None else "UPDATE",
        metadata=where, source_timestamp=at, read_timestamp=at, read_method=READ_METHODS[source][1 - is_change],
        uuid=f"{told.shard} {told.place} {told.id}",
    )  # fmt: skip
    return Staged(text, f"{told.shard if source == 'mysql' else 'dbo'}_{table}", 0)


def deliveries(source: str, seed: int) -> list[tuple[Told, Staged]]:
    """Return the records of both in any order and split, some of them twice."""
    draw = random.Random(seed)
    told = [each for shard in SHARDS for each in log_of(shard, draw)]
    told += draw.sample(told, 60)
    draw.shuffle(told)
    return [(each, record(source, each)._replace(batch=draw.randint(1, BATCHES))) for each in told]


def truth(told: list[Told]) -> dict[tuple[str, int], str]:
    """Return the rows: of each key of each source the newest record, by the log of that source alone."""
    newest: dict[tuple[str, int], Told] = {}
    for each in sorted(told, key=lambda each: each.place):
        newest[each.shard, each.id] = each
    return {key: each.name for key, each in newest.items() if each.name is not None}


class Shards:
    """Models of the two databases, on staging that grows batch by batch."""

    def __init__(self, memory: Memory, source: str, seed: int = 5) -> None:
        self.memory, self.source, self.delivered = memory, source, deliveries(source, seed)
        self.schema = source
        memory.stage(f"{self.schema}_staging.delivered", [staged for _, staged in self.delivered])
        self.plant(None)

    def plant(self, replaced: Mapping[str, Mapping[str, str]] | None) -> None:
        """Go on with macros in which these bugs are planted."""
        self.project: MemoryProject = self.memory.project(self.schema, replaced)
        self.project.source(f"{self.schema}_staging", "changes")

    def model(self, name: str, key: list[str], materialized: str = "current_state", more: str = "") -> None:
        columns = {column: type_ for column, type_ in THINGS.items() if column in key or column != "shard"}
        self.project.model(
            name,
            f"{{{{ config(materialized={materialized!r}, unique_key={key}) }}}}\n{{{{ reconcile.datastream_"
            f"{self.source}(source('lake', 'changes'), table={TABLES[self.source] if more else self.flat}{more}) }}}}",
            columns,
        )

    @property
    def flat(self) -> list[str]:
        return ["dbo.things"] if self.source == "sqlserver" else ["shop_1.things", "shop_2.old_things", "shop_2.things"]

    def shards(self, name: str, materialized: str = "current_state") -> None:
        self.model(name, ["shard", "id"], materialized, ", source_columns={'shard': 'database'}")

    def arrive(self, upto: int) -> None:
        staging = f"{self.schema}_staging"
        self.memory.view(f"{staging}.changes", f"select * from `{staging}`.`delivered` where batch <= {upto}")

    def rows(self, name: str, where: str = "true") -> dict[tuple[str, int], str]:
        rows = self.memory.table(f"{self.schema}.{name}").where(where).collect()
        assert len({(row.shard, row.id) for row in rows}) == len(rows)
        return {(row.shard, row.id): row.name for row in rows}

    def truth(self, upto: int = BATCHES) -> dict[tuple[str, int], str]:
        return truth([told for told, staged in self.delivered if staged.batch <= upto])

    def failing(self, *tests: str, model: str = "things") -> list[str]:
        return [test for test in tests if self.project.failing(test, model)]


@pytest.fixture
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


SOUND = ["ledger_balances", "no_drift", "key_is_the_sources", "log_is_one"]
PLANTED = {
    # The positions of all sources are of one log.
    "log_is_one": {
        "macros/generic_tests/log_is_one.sql": {
            "over (partition by {{ of_source }}generation order": "over (partition by generation order"
        }
    },
    # The shard is a part of the key, which the records do not name.
    "key_is_the_sources": {
        "macros/model/source_columns.sql": {"keys | reject('in', source_columns) | list": "keys"},
    },
}


@pytest.mark.parametrize("source", ["mysql", pytest.param("sqlserver", marks=pytest.mark.soak)])
def test_every_row_is_that_of_its_own_source(memory: Memory, source: str) -> None:
    shop = Shards(memory, source)
    shop.shards("things")
    for batch in range(1, BATCHES + 1):
        shop.arrive(batch)
        shop.project.run("things")
        assert shop.rows("things") == shop.truth(batch)
    assert shop.failing(*SOUND) == []
    for test, bug in PLANTED.items():
        shop.plant(bug)
        shop.shards("things")
        assert shop.failing(test) == [test]
    shop.plant(None)
    shop.shards("things")
    # The keys that both have now, and no key of one alone.
    shared = {id_ for shard, id_ in shop.truth() if shard == "shop_1"} & {
        id_ for shard, id_ in shop.truth() if shard == "shop_2"
    }
    found = shop.project.failing("keys_are_disjoint", "things")
    assert shared and {row.id for row in found} == shared
    assert {tuple(row.found_in) for row in found} == {('{"shard":"shop_1"}', '{"shard":"shop_2"}')}
    stored = sorted(map(str, memory.rows(f"{shop.schema}.things__base")))
    # A value of two places, and a row of no source, are nobody's choice.
    bad = [
        record(source, Told("shop_1", 1, "both", (1, 999), False)),
        record(source, Told("shop_1", 2, "nowhere", (1, 999), False)),
    ]
    bad[0] = bad[0]._replace(record=bad[0].record.replace('"id": 1', '"Shard": "shop_9", "id": 1'))
    bad[1] = bad[1]._replace(record=bad[1].record.replace('"database": "shop_1", ', ""))
    memory.stage(f"{shop.schema}_staging.delivered", [staged._replace(batch=BATCHES + 1) for staged in bad])
    shop.arrive(BATCHES + 1)
    shop.project.run("things", full_refresh=True)
    assert sorted(map(str, memory.rows(f"{shop.schema}.things__base"))) == stored
    reasons = sorted(row._change_error for row in memory.rows(f"{shop.schema}.things__quarantine"))
    of_payload = "shard: the payload has a field of this name, and source_columns fills the column from the metadata; "
    of_payload += "give the source column another name"
    # Of MySQL a record without a database is of no table that the model names.
    assert reasons == (["key shard is missing or NULL"] if source == "sqlserver" else []) + [of_payload]


def test_histories_and_views_have_the_rows_too_and_a_key_without_the_shard_is_found(memory: Memory) -> None:
    shop = Shards(memory, "mysql", seed=6)
    shop.shards("versions", "history")
    shop.shards("fresh", "current_view")
    shop.model("by_chance", ["id"])
    for batch in (1, BATCHES):
        shop.arrive(batch)
        shop.project.run("versions", "by_chance")
    shop.project.run("fresh")
    assert shop.rows("versions", "is_current") == shop.rows("fresh") == shop.truth()
    assert shop.failing("history_is_sound", "log_is_one", "ledger_balances", model="versions") == []
    # As names of one table: which row is shown is chance, and the test names every such key.
    delivered = {shard: {told.id for told, _ in shop.delivered if told.shard == shard} for shard in SHARDS}
    several = delivered["shop_1"] & delivered["shop_2"]
    renamed = {
        id_ for id_ in delivered["shop_2"]
        if len({told.is_renamed for told, _ in shop.delivered if (told.shard, told.id) == ("shop_2", id_)}) == 2
    }  # fmt: skip
    found = {row.id for row in shop.project.failing("keys_are_disjoint", "by_chance")}
    assert found == several | renamed


def test_planted_bugs_are_found(memory: Memory) -> None:
    shop = Shards(memory, "mysql", seed=7)
    shop.arrive(BATCHES)
    # Of every record the same shard.
    shop.plant(
        {"macros/change_records/source_tables.sql": {"nullif({{ reconcile._schema_of(metadata) }}, '')": "'shop_1'"}}
    )
    shop.shards("things", "current_view")
    shop.project.run("things")
    assert shop.rows("things") != shop.truth()
