"""snapshot.py bigtable: every cell of a table once, whatever fails meanwhile, and one to one with a model of cells."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import plain_spark
import pytest
import snapshot
from bigtable_workload import Workload
from cells import COLUMNS, KEY
from datastream import Staged
from fake_bigtable import Cell, FakeBigtable, Fault, delete_column, delete_row, set_cell
from file_formats import file_format
from memory import Memory
from plain_dbt import Relation
from pyspark.sql import SparkSession
from reconcile_jobs.bigtable import rows
from reconcile_jobs.bigtable.calls import Client, SourceTable
from reconcile_jobs.bigtable.job import Job, run
from reconcile_jobs.google_service import Retries
from reconcile_jobs.process import errors
from reconcile_jobs.process.console import Console
from reconcile_jobs.snapshots import snapshot_bigtable
from reconcile_jobs.snapshots.snapshot_bigtable import load_bigtable
from reconcile_jobs.staging import TableName
from reconcile_jobs.timestamps import nanoseconds

INTO = TableName.parse("lake.t_source")
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[FakeBigtable]:
    with FakeBigtable() as running:
        yield running


@pytest.fixture
def plain() -> Any:
    return plain_spark.Session()


def source_of(server: FakeBigtable) -> SourceTable:
    return SourceTable("p", "i", "t", "single", server.address)


def load(plain: Any, server: FakeBigtable, **how: bool) -> snapshot_bigtable.Loaded:
    return load_bigtable(plain, source_of(server), INTO, **how)


def fill(server: FakeBigtable, count: int = 60, value: int = 9) -> None:
    """Write rows of several families, qualifiers that are no text, and versions, of which some are deleted again."""
    chance = random.Random(1)
    for number in range(count):
        key = b"r%03d" % number
        for _ in range(6):
            qualifier = chance.choice([b"", b"q", b"\xff\x00"])
            written = bytes(chance.randrange(256) for _ in range(chance.randrange(value)))
            server.commit(key, set_cell(chance.choice("fg"), qualifier, chance.randrange(4) * 1000, written))
        if number % 10 == 0:
            server.commit(key, delete_row())
        if number % 7 == 0:
            server.commit(key, delete_column("f", b"q", 0, 2000))
    server.samples = [b"r%03d" % number for number in range(0, count, 4)]


def cells_in(plain: Any) -> Counter[Any]:
    """Return the cells of the snapshot as the server has them, each as often as it is there."""
    return Counter(
        ((row.row_key, row.family, row.qualifier, (row.cell_time - BEGINNING) // timedelta(microseconds=1)), row.value)
        for row in plain.table(INTO.sql).collect()
    )


def cells_of(server: FakeBigtable) -> Counter[tuple[Cell, bytes]]:
    return Counter(server.cells().items())


def ranges_read(server: FakeBigtable) -> int:
    asked = [request for method, request in server.requests if method == "ReadRows" and request.rows.row_ranges]
    return len({(one.rows.row_ranges[0].start_key_closed, one.rows.row_ranges[0].end_key_open) for one in asked})


# What a snapshot holds


@pytest.mark.parametrize("value_chunk", [2, 10**9])
def test_every_cell_comes_once_with_all_its_versions(plain: Any, server: FakeBigtable, value_chunk: int) -> None:
    fill(server)
    server.value_chunk = value_chunk
    before = server.now() * 1000
    loaded = load(plain, server)
    assert cells_in(plain) == cells_of(server)
    assert loaded.rows == len(server.cells()) > 150
    versions = Counter(cell[:3] for cell in server.cells())
    assert max(versions.values()) > 1, "no cell has versions: this shows less than it says"
    assert ranges_read(server) == 8, "four ranges for each of two cores"
    assert before <= nanoseconds(loaded.taken_at) <= server.now() * 1000
    said = plain.tables["lake.t_source"].properties
    assert said.pop("reconcile.snapshot.id") and said.pop("comment")
    assert said == {
        "reconcile.snapshot": "bigtable",
        "reconcile.snapshot.instance": "projects/p/instances/i",
        "reconcile.snapshot.table": "t",
        "reconcile.snapshot.app_profile": "single",
        "reconcile.snapshot.taken_at": loaded.taken_at,
    }


def test_a_table_without_samples_is_read_in_one_range(plain: Any, server: FakeBigtable) -> None:
    fill(server, 5)
    server.samples = []
    load(plain, server)
    assert cells_in(plain) == cells_of(server)
    assert ranges_read(server) == 1


def test_each_load_replaces_all_cells(plain: Any, server: FakeBigtable) -> None:
    fill(server)
    load(plain, server)
    first = plain.tables["lake.t_source"].properties["reconcile.snapshot.id"]
    server.commit(b"r001", delete_row())
    server.commit(b"r002", set_cell("f", b"new", 5000, b"v"))
    load(plain, server)
    assert cells_in(plain) == cells_of(server)
    assert plain.tables["lake.t_source"].properties["reconcile.snapshot.id"] != first


def test_what_is_written_meanwhile_may_be_there_or_not_and_all_else_is_there_once(
    plain: Any, server: FakeBigtable
) -> None:
    fill(server, 200)
    before, start = server.cells(), len(server.log)
    workload = Workload(server, seed=3, count=300, pause=0.001)
    workload.keys = [b"r%03d" % number for number in range(0, 200, 3)]
    workload.start()
    load(plain, server)
    workload.join()
    written = {commit.row for commit in server.log[start:]}
    found = cells_in(plain)
    assert max(found.values()) == 1
    untouched = {cell: value for cell, value in before.items() if cell[0] not in written}
    assert {cell: value for cell, value in found if cell[0] not in written} == untouched
    assert len(untouched) > 300 and written


# Of a row only its own size is in memory


def test_a_large_row_is_handed_on_in_batches_of_bounded_size(plain: Any, server: FakeBigtable) -> None:
    server.commit(b"a", set_cell("f", b"q", 1000, b"small"))
    server.commit(b"k", *(set_cell("f", b"q%d" % number, 1000, b"x" * 1_500_000) for number in range(8)))
    server.commit(b"z", set_cell("f", b"q", 1000, b"small"))
    server.value_chunk = 400_000
    load(plain, server)
    assert cells_in(plain) == cells_of(server)
    with Client(source_of(server)) as client:
        whole = [row for part in rows.parts_of(client, 1) for row in rows.read_rows(client, part)]
        batches = list(snapshot_bigtable._batches_of(iter(whole)))
    assert [batch.num_rows for batch in batches] == [4, 3, 3]
    assert max(batch.nbytes for batch in batches) < 4_000_000 + 1_500_000


def test_many_small_cells_are_handed_on_in_batches_and_rows_are_not_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_bigtable, "_BATCH_CELLS", 10)
    given: list[int] = []

    def told() -> Iterator[rows.Row]:
        for number in range(100):
            given.append(number)
            yield rows.Row(b"%03d" % number, [rows.Cell("f", b"q", 0, b"v")] * 3)

    batches = snapshot_bigtable._batches_of(told())
    assert next(batches).num_rows == 10
    assert len(given) == 4, "the rows of a batch are read, and no others"
    assert 10 + sum(batch.num_rows for batch in batches) == 300


# What fails


def test_a_read_that_breaks_goes_on_behind_the_last_row(plain: Any, server: FakeBigtable) -> None:
    fill(server)
    server.samples, server.value_chunk = [], 3
    unavailable = grpc.StatusCode.UNAVAILABLE
    server.faults += [Fault("ReadRows", 40, unavailable), Fault("ReadRows", 20, unavailable, within=True)]
    server.faults += [Fault("ReadRows", 5, "end", within=True), Fault("SampleRowKeys", 0, unavailable)]
    load(plain, server)
    assert not server.faults
    assert cells_in(plain) == cells_of(server)
    continued = [
        request.rows.row_ranges[0].start_key_open
        for method, request in server.requests
        if method == "ReadRows" and request.rows.row_ranges and request.rows.row_ranges[0].start_key_open
    ]
    assert len(continued) == 3 and continued == sorted(continued)


@pytest.mark.parametrize(
    ("code", "kind", "sentence"),
    [
        (grpc.StatusCode.PERMISSION_DENIED, errors.UsageError, r"^Permission denied .* with the role Bigtable Reader"),
        (grpc.StatusCode.DATA_LOSS, errors.Fault, r"^Bigtable refused a call on .* \(DATA_LOSS\): no\.$"),
    ],
)
def test_a_reading_that_fails_leaves_the_snapshot_of_before(
    plain: Any, server: FakeBigtable, code: grpc.StatusCode, kind: type[errors.JobError], sentence: str
) -> None:
    fill(server)
    load(plain, server)
    before, table = cells_in(plain), plain.tables["lake.t_source"]
    server.commit(b"r001", delete_row())
    server.samples = []
    server.faults.append(Fault("ReadRows", 30, code, "no", within=True))
    with pytest.raises(kind, match=sentence):
        load(plain, server)
    assert not server.faults, "the reading was under way"
    assert plain.tables["lake.t_source"] is table and cells_in(plain) == before
    load(plain, server)
    assert cells_in(plain) == cells_of(server) != before


def test_a_first_reading_that_fails_leaves_no_table(plain: Any, server: FakeBigtable) -> None:
    fill(server)
    server.samples = []
    server.faults.append(Fault("ReadRows", 30, grpc.StatusCode.PERMISSION_DENIED, "no"))
    with pytest.raises(errors.UsageError, match=r"^Permission denied"):
        load(plain, server)
    assert not server.faults and plain.tables == {}


def test_a_server_that_stays_away_is_a_fault(plain: Any, server: FakeBigtable, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(server)
    load(plain, server)
    before = cells_in(plain)
    server.fault_rate = 1.0
    monkeypatch.setattr(Retries, "pause", lambda self, failures: 0.0)
    with pytest.raises(errors.Fault, match=r"^Bigtable failed 11 times in a row .* run the same command again"):
        load(plain, server)
    assert cells_in(plain) == before


def test_a_table_without_rows_is_refused_unless_that_is_right(plain: Any, server: FakeBigtable) -> None:
    server.commit(b"a", set_cell("f", b"q", 1000, b"v"))
    load(plain, server)
    server.commit(b"a", delete_row())
    with pytest.raises(errors.DataError, match=r"^projects/p/instances/i/tables/t has no rows: .* give --allow-empty"):
        load(plain, server)
    assert sum(cells_in(plain).values()) == 1
    assert load(plain, server, allow_empty=True).rows == 0
    assert cells_in(plain) == Counter()


def test_another_table_is_not_replaced(plain: Any, server: FakeBigtable) -> None:
    server.commit(b"a", set_cell("f", b"q", 1000, b"v"))
    plain.sql("CREATE TABLE lake.t_source TBLPROPERTIES ('a' = 'b')")
    table = plain.tables["lake.t_source"]
    with pytest.raises(errors.UsageError, match=r"^lake.t_source already exists and was not created by snapshot.py"):
        load(plain, server)
    assert plain.tables["lake.t_source"] is table


# The command

WORDS = {"--project": "p", "--instance": "i", "--table": "t", "--into": "lake.t_source"}


def command(plain: Any, server: FakeBigtable, monkeypatch: pytest.MonkeyPatch, *more: str, **given: str) -> int:
    """Run the command over the plain session, and return its exit code."""
    monkeypatch.setenv("BIGTABLE_EMULATOR_HOST", server.address)
    monkeypatch.setattr(snapshot.session, "start", lambda name: plain)
    words = WORDS | {f"--{name}": value for name, value in given.items()}
    console = Console("snapshot")
    asked = ["bigtable", *(word for pair in words.items() for word in pair), *more]
    return console.exit_code(lambda: snapshot.main(asked, console))


def test_the_command_says_what_it_did_in_one_line(
    plain: Any, server: FakeBigtable, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(server)
    assert command(plain, server, monkeypatch) == 0
    told = capsys.readouterr()
    assert told.err == "snapshot: t of Bigtable is being read into lake.t_source\n"
    (line,) = told.out.splitlines()
    result = json.loads(line)
    assert list(result) == ["rows", "into", "taken_at", "seconds"]
    assert (result["rows"], result["into"]) == (len(server.cells()), "lake.t_source")
    assert result["taken_at"] == plain.tables["lake.t_source"].properties["reconcile.snapshot.taken_at"]
    assert cells_in(plain) == cells_of(server)
    assert {request.app_profile_id for _, request in server.requests} == {"default"}
    server.requests.clear()
    assert command(plain, server, monkeypatch, **{"app-profile": "single"}) == 0
    assert {request.app_profile_id for _, request in server.requests} == {"single"}


@pytest.mark.parametrize(
    ("more", "given", "code", "sentence"),
    [
        ([], {"table": "no/thing"}, 2, "--table 'no/thing' is not a valid name for Bigtable: use only letters"),
        ([], {"table": "nothing"}, 2, "Bigtable does not find projects/p/instances/i/tables/nothing, or the app"),
        ([], {"app-profile": "nobody"}, 2, "or the app profile nobody (App profile not found: nobody): check"),
        ([], {"into": "t_source"}, 2, "--into"),
        (["--masks", "masks.yml"], {}, 2, "--masks is not for Bigtable: its cells cannot be masked yet."),
        (["--mask-key-file", "key"], {}, 2, "--masks is not for Bigtable: its cells cannot be masked yet."),
        (["--at", "2026-05-01T09:00:00Z"], {}, 2, "--at"),
        ([], {}, 1, "projects/p/instances/i/tables/t has no rows: if the table is empty, give --allow-empty."),
    ],
)
def test_what_cannot_be_is_one_sentence_and_writes_nothing(
    plain: Any, server: FakeBigtable, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    more: list[str], given: dict[str, str], code: int, sentence: str,
) -> None:  # fmt: skip
    assert command(plain, server, monkeypatch, *more, **given) == code
    told = capsys.readouterr()
    assert sentence in told.err.splitlines()[-1] and told.out == ""
    assert plain.tables == {}


def test_an_empty_table_is_taken_where_that_was_said(
    plain: Any, server: FakeBigtable, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(plain, server, monkeypatch, "--allow-empty") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 0


@pytest.mark.parametrize("missing", WORDS)
def test_what_is_missing_is_named(missing: str, capsys: pytest.CaptureFixture[str]) -> None:
    console = Console("snapshot")
    words = [word for name, value in WORDS.items() if name != missing for word in (name, value)]
    assert console.exit_code(lambda: snapshot.main(["bigtable", *words], console)) == 2
    assert re.search(rf"{missing}\b", capsys.readouterr().err)


def test_credentials_that_are_not_accepted_are_in_no_message(
    plain: Any, server: FakeBigtable, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.faults.append(Fault("ReadRows", 0, grpc.StatusCode.UNAUTHENTICATED, "canary-77"))
    fill(server, 3)
    assert command(plain, server, monkeypatch) == 2
    told = capsys.readouterr()
    assert "does not accept the application default credentials" in told.err
    assert "canary-77" not in told.err + told.out


# One to one with a model of cells


def query_of_the_page(schema: str, lake: str, taken_at: str) -> str:
    """Return the query that docs/sources/bigtable.md has, over this schema and these sources."""
    page = (Path(__file__).parents[2] / "docs" / "sources" / "bigtable.md").read_text()
    (query,) = re.findall(r"```sql\n(with differences as .*?)```", page, re.S)
    query = re.sub(r"timestamp '[^']*'", f"timestamp '{taken_at}'", query)
    query = re.sub(r"\bshop\.(\w+)", rf"`{schema}`.`\1`", query.replace("'lake.", f"'{lake}."))
    return re.sub(r"(?<!')\blake\.(\w+)", rf"`{lake}`.`\1`", query)


@pytest.mark.soak
@pytest.mark.skipif(file_format() == "iceberg", reason="the model's tables are in memory")
def test_a_snapshot_equals_the_model_of_its_cells(
    spark: SparkSession, plain: Any, server: FakeBigtable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream is staged by the plain session; snapshot and parity are Spark's."""
    plain_spark.stage_in_plain_python(monkeypatch)
    monkeypatch.setenv("BIGTABLE_EMULATOR_HOST", server.address)
    schema, lake, into = "cells_of_bigtable", "cells_lake", TableName.parse("cells_lake.events_source")
    fill(server, 40)
    far = 2**63 - 1  # a cell's time may be what is left of 64 bits, newest first
    server.commit(b"far", *(set_cell("f", b"q", micros, b"v") for micros in (0, 1, 253402300800000000, 2**62, far)))
    staged: set[int] = set()
    job = Job("p", "i", "t", "single", TableName.parse("lake.changes"), backfill=True, heartbeat=0.02)

    def append_and_run(at: str = "current_timestamp()") -> None:
        run(plain, job)
        rows = [row for row in plain.table("lake.changes").collect() if row.batch not in staged]
        staged.update(row.batch for row in rows)
        told = [Staged(row.record, row.object, row.batch, row.origin, row.source) for row in rows]
        memory.stage(f"{lake}.events_changes", told, at)
        project.run("events_cells")

    def take() -> snapshot_bigtable.Loaded:
        loaded = load_bigtable(spark, source_of(server), into)
        said = {row.key: row.value for row in memory.spark.sql(f"show tblproperties {into.sql}").collect()}
        memory.keep(str(into), memory.spark.table(into.sql), said)
        return loaded

    def differing() -> set[tuple[bytes, str]]:
        found = project.failing("parity", "events_cells", compare_to=Relation(lake, "events_source"), key=KEY)
        return {(bytes(row.row_key), row.difference) for row in found}

    with Memory(spark) as memory:
        project = memory.project(schema)
        project.source(lake, "events_changes")
        config = f"materialized='current_state', unique_key={KEY}"
        stream = "{{ reconcile.bigtable_change_stream(source('lake', 'events_changes'), object='t') }}"
        project.model("events_cells", f"{{{{ config({config}) }}}}\n{stream}", COLUMNS)
        append_and_run(at="current_timestamp() - interval 1 hour")
        assert memory.table(f"{schema}.events_cells").count() == len(server.cells()) > 100
        assert take().rows == len(server.cells())
        assert differing() == set()

        # What is written after the snapshot differs, and the page's query tells it from what is wrong.
        taken_at = take().taken_at
        server.commit(b"r001", set_cell("f", b"new", 1000, b"v"))
        server.commit(b"r002", delete_row())
        server.collect_garbage(b"r003")
        server.commit(b"r003", set_cell("g", b"", 77, b"v"))
        append_and_run()
        memory.delete(str(into), "row_key = cast('r004' as binary)")
        found = differing()
        assert {key for key, _ in found} == {b"r001", b"r002", b"r003", b"r004"}
        assert (b"r001", "unexpected") in found and (b"r002", "missing") in found
        decided = memory.sql(query_of_the_page(schema, lake, taken_at)).collect()
        assert len(decided) == memory.table(f"{schema}.reconcile_parity_differences").count()
        in_flight = {bytes.fromhex(json.loads(row.key)["row_key"]): row.is_in_flight for row in decided}
        assert in_flight == {b"r001": True, b"r002": True, b"r003": True, b"r004": False}
        take()
        assert differing() == set()
