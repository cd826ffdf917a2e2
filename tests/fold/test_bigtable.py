"""A Bigtable change stream's data changes through the SQL that users get: cells, order, quarantine, rows, watermarks.

What is read lies in one staging table, each test's records under row keys of their own, and goes through one run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from cells import (
    COLUMNS,
    KEY,
    OBJECT,
    Cells,
    account,
    b64,
    data_change,
    delete_from_column,
    delete_from_family,
    entries_of,
    invented,
    set_cell,
    visible,
)
from datastream import Staged, event
from long_notes import long_record
from memory import Memory, MemoryProject
from plain_dbt import CompilerError, Relation
from pyspark.sql import SparkSession
from spanner import cut, data_change_record, mod

MORE = {"change_type": "string", "source_cluster_id": "string", "commit_timestamp": "string", "tiebreaker": "bigint"}
GOOD = set_cell("f", b"q", 1000, b"v")
STREAM = f"{{{{ reconcile.bigtable_change_stream(source('lake', 'changes'), object='{OBJECT}'%s) }}}}"


def model_of(
    project: MemoryProject, name: str, materialized: str = "current_state", said: str = "", **more: str
) -> None:
    """Add a model of cells; `more`: columns beside the usual ones."""
    config = f"{{{{ config(materialized='{materialized}', unique_key={KEY}) }}}}"
    tests = [] if materialized == "current_view" else ["reconcile.ledger_balances"]
    project.model(name, f"{config}\n{STREAM % said}", {**COLUMNS, **more}, data_tests=tests)


# --- what can be read -------------------------------------------------------------------------------------------------

BYTES = bytes(range(256))
CHANGES = [
    data_change(BYTES, [
        set_cell("f", b"", 0, b""),
        set_cell("f", BYTES, 1, BYTES),
        set_cell("cf-2._", "ü".encode(), 253402300799999999, b"\x00"),
        delete_from_column("f", b"x\xff", 1000, 2000),
        delete_from_column("f", b"", 0, 0),
        delete_from_family("g"),
    ], 123456789, -3),
    data_change(b"k", [GOOD], 1, type="backfill", source_cluster_id=""),
    data_change(b"k", [delete_from_column("f", b"q", 0, 1000)], 2, type="garbage_collection", source_cluster_id=""),
]  # fmt: skip


# --- what cannot ------------------------------------------------------------------------------------------------------

COLUMN, UNKNOWN = delete_from_column("f", b"q"), {"add_to_cell": {"family": "f", "input": {"int_value": "1"}}}


def without(entry: dict[str, Any], name: str, **fields: Any) -> dict[str, Any]:
    ((kind, said),) = entry.items()
    return {kind: {**{field: value for field, value in said.items() if field != name}, **fields}}


# (the reason's words, the record); each alone is quarantined whole
MALFORMED: list[tuple[str, str]] = [
    ("the record does not have the form of a data change", data_change(b"k", [GOOD])[:-9]),
    ("the record does not have the form of a data change", "7"),
    ("too long for staging", long_record(data_change(b"k", [GOOD]))),
    ("does not have the form", data_change(b"k", {"set_cell": {}})),
    ("the data change holds no entries", data_change(b"k", [])),
    ("the data change holds no entries", data_change(b"k", [], without=["entries"])),
    ("type is missing", data_change(b"k", [GOOD], without=["type"])),
    ("type '7' is unknown", data_change(b"k", [GOOD], type="7")),
    ("type 'CONTINUATION' is unknown", data_change(b"k", [GOOD, COLUMN], type="CONTINUATION")),
    ("row_key is missing or is not base64", data_change(b"k", [GOOD], without=["row_key"])),
    ("row_key is missing or is not base64", data_change(b"k", [GOOD], row_key="a row!")),
    ("row_key is missing or is not base64", data_change(b"k", [GOOD], row_key=1234)),
    ("commit_timestamp, which orders changes,", data_change(b"k", [GOOD], without=["commit_timestamp"])),
    ("commit_timestamp, which orders changes,", data_change(b"k", [GOOD], commit_timestamp="2026-02-30T00:00:00Z")),
    ("commit_timestamp, which orders changes,", data_change(b"k", [GOOD], commit_timestamp="2262-04-12T00:00:00Z")),
    ("tiebreaker, which orders changes,", data_change(b"k", [GOOD], without=["tiebreaker"])),
    ("tiebreaker, which orders changes,", data_change(b"k", [GOOD], tiebreaker=2**63)),
    ("tiebreaker, which orders changes,", data_change(b"k", [GOOD], tiebreaker=1.5)),
    ("entry 2 of the change is of the kind 'add_to_cell', which", data_change(b"k", [GOOD, UNKNOWN, COLUMN])),
    ("entry 1 of the change is of the kind 'delete_from_row'", data_change(b"k", [{"delete_from_row": {}}])),
    ("entry 1 of the change is not an object with one member", data_change(b"k", ["set_cell"])),
    ("entry 1 of the change is not an object with one member", data_change(b"k", [None])),
    ("entry 2 of the change is not an object with one member", data_change(b"k", [GOOD, {}])),
    ("entry 1 of the change is not an object with one member", data_change(b"k", [{**GOOD, **COLUMN}])),
    ("entry 1 of the change is a set_cell that is not an object", data_change(b"k", [{"set_cell": [1]}])),
    ("entry 1 of the change has no family", data_change(b"k", [without(GOOD, "family")])),
    ("entry 1 of the change has no family", data_change(b"k", [without(GOOD, "family", family="")])),
    ("entry 1 of the change has no family", data_change(b"k", [{"delete_from_family": {}}])),
    ("has no qualifier in base64", data_change(b"k", [without(GOOD, "qualifier")])),
    ("has no qualifier in base64", data_change(b"k", [without(GOOD, "qualifier", qualifier="no base64!")])),
    ("has no qualifier in base64", data_change(b"k", [without(COLUMN, "qualifier")])),
    ("has no timestamp_micros", data_change(b"k", [without(GOOD, "timestamp_micros")])),
    ("has no timestamp_micros", data_change(b"k", [set_cell("f", b"q", -1, b"")])),
    ("has no timestamp_micros", data_change(b"k", [set_cell("f", b"q", 2**63, b"")])),
    ("has no value in base64", data_change(b"k", [without(GOOD, "value")])),
    ("has no value in base64", data_change(b"k", [without(GOOD, "value", value=1234)])),
    ("has no value in base64", data_change(b"k", [without(GOOD, "value", value=True)])),
    ("has no start_timestamp_micros and", data_change(b"k", [without(COLUMN, "start_timestamp_micros")])),
    ("has no start_timestamp_micros and", data_change(b"k", [without(COLUMN, "end_timestamp_micros")])),
    ("entry 1 of the change has no qualifier in base64, has no timestamp_micros, has no value in base64; entry 2 of",
     data_change(b"k", [{"set_cell": {"family": "f"}}, {}])),
]  # fmt: skip


def entries_in(text: str) -> int:
    try:
        said = json.loads(text).get("entries")
    except (ValueError, AttributeError):
        return 1
    return max(len(said), 1) if isinstance(said, list) else 1


# --- garbage collection -----------------------------------------------------------------------------------------------

_BY_COLLECTION = {"type": "garbage_collection", "source_cluster_id": ""}
COLLECTED = [
    data_change(b"gc", [set_cell("f", b"q", n, b"v") for n in (1000, 2000, 3000)], 1),
    data_change(b"gc", [delete_from_column("f", b"q", 0, 2000), delete_from_family("g")], 2, **_BY_COLLECTION),
    data_change(b"gc", [delete_from_column("f", b"q", 2000, 3000)], 3),
]
COLLECTED_BADLY = [
    data_change(b"gc", [], 4, **_BY_COLLECTION),
    data_change(b"gc", "none", 4, **_BY_COLLECTION),
    data_change(b"gc", [UNKNOWN], 5, **_BY_COLLECTION),
]

# --- rows -------------------------------------------------------------------------------------------------------------

DECLARED = [
    {"name": "word", "cell": "f:word", "data_type": "string", "encoding": "text"},
    {"name": "amount", "cell": "f:amount", "data_type": "decimal(10,2)", "encoding": "text"},
    {"name": "at", "cell": "f:at", "data_type": "timestamp", "encoding": "text", "round": True},
    {"name": "long", "cell": "f:long", "data_type": "bigint", "encoding": "big_endian"},
    {"name": "short", "cell": "f:short", "data_type": "smallint", "encoding": "big_endian"},
    {"name": "whole", "cell": "f:whole", "data_type": "int", "encoding": "big_endian"},
    {"name": "tiny", "cell": "f:tiny", "data_type": "tinyint", "encoding": "big_endian"},
    {"name": "bytes", "cell": "f:b:c", "data_type": "binary", "encoding": "raw"},
    {"name": "nameless", "cell": "f:", "data_type": "string", "encoding": "text"},
    {"name": "Übung `x`", "cell": "f:ü'", "data_type": "int", "encoding": "text"},
    {"name": "no_text", "cell": "f:", "qualifier_hex": "ff00", "data_type": "binary", "encoding": "raw"},
]
NAMES = [str(column["name"]) for column in DECLARED]


VALUES: dict[bytes, dict[bytes, bytes]] = {
    b"all": {
        b"word": "ü😀".encode(), b"amount": b"-1.10", b"at": b"2026-11-22T10:00:00.123456789Z",
        b"long": (-2).to_bytes(8, "big", signed=True), b"short": b"\x7f\xff", b"whole": b"\xff" * 4, b"tiny": b"\x7f",
        b"b:c": b"\xff\x00", b"": b"",
        "ü'".encode(): b"7", b"\xff\x00": b"",
    },
    b"ends": {
        b"long": b"\x80" + b"\x00" * 7, b"whole": b"\x80\x00\x00\x01", b"short": b"\x80\x00", b"tiny": b"\x8f",
        b"amount": b"0",
    },
    b"wrong": {
        b"word": b"\xff", b"amount": b"1.123", b"at": b"2026-02-30", b"long": b"\x01", b"short": b"\x00" * 8,
        "ü'".encode(): b"",
    },
    b"other": {b"unheard of": b"x"},
}  # fmt: skip
ROWS = [
    data_change(row_key, [set_cell("f", qualifier, 1000, value) for qualifier, value in said.items()], 1)
    for row_key, said in VALUES.items()
]
ROWS += [
    data_change(b"times", [set_cell("f", b"word", t, str(t).encode()) for t in (3000, 1000, 4000, 2000)], 1),
    data_change(b"times", [delete_from_column("f", b"word", 4000, 0)], 2),
    data_change(b"bad again", [set_cell("f", b"amount", 1000, b"1"), set_cell("f", b"amount", 2000, b"one")], 1),
    data_change(b"gone", [set_cell("f", b"word", 1000, b"x")], 1),
    data_change(b"gone", [delete_from_family("f")], 2),
    data_change(b"other family", [set_cell("g", b"word", 1000, b"x")], 1),
]

# --- all of them in one run -------------------------------------------------------------------------------------------

WELL = [data_change(b"good", [set_cell("f", b"q", n, b"v")], n) for n in range(3)]
GOOD_CHANGES = [*CHANGES, *WELL, *COLLECTED, *ROWS]
BAD_CHANGES = [*(text for _, text in MALFORMED), *COLLECTED_BADLY]


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


@pytest.fixture(scope="module")
def project(memory: Memory) -> MemoryProject:
    project = memory.project("bigtable")
    project.source("bigtable_staging", "changes")
    memory.stage(
        "bigtable_staging.changes",
        [Staged(change, OBJECT, 1, "bigtable/00-ff", "bigtable") for change in [*GOOD_CHANGES, *BAD_CHANGES]],
    )
    model_of(project, "cells", **MORE)
    project.model("rows", f"{{{{ reconcile.bigtable_rows(ref('cells'), {DECLARED}) }}}}", {})
    project.run("cells")
    return project


def test_every_entry_is_a_change_record(memory: Memory, project: MemoryProject) -> None:
    keys = f"row_key in (X'{BYTES.hex()}', X'{b'k'.hex()}')"
    changes = memory.table("bigtable.cells__changes").where(f"_change_error is null and ({keys} or _range.{keys})")
    rows = changes.selectExpr(
        "*", "unix_micros(cell_time) as us", "_range.*", "unix_micros(_range.start_time) as starts",
        "unix_micros(_range.end_time) as ends", "date_format(_change_time, 'ss.SSSSSS') as at",
    ).drop("_range", "_change_macro").toDF(
        *COLUMNS, *MORE, "kind", "sequence", "id", "time", "tx", "batch", "carried", "error", "record", "origin", "us",
        "range_key", "range_family", "range_qualifier", "start_time", "end_time", "starts", "ends", "at",
    ).orderBy("sequence").collect()  # fmt: skip
    commit = "2026-11-22T10:00:00.123456789Z"
    user, cells = ("user", "c1", commit, -3), [row for row in rows if row.kind == "insert"]
    assert [(r.row_key, r.family, r.qualifier, r.us, r.value) for r in cells] == [
        (b"k", "f", b"q", 1000, b"v"),
        (BYTES, "f", b"", 0, b""),
        (BYTES, "f", BYTES, 1, BYTES),
        (BYTES, "cf-2._", "ü".encode(), 253402300799999999, b"\x00"),
    ]
    ranges = [r for r in rows if r.kind == "delete"]
    assert [(r.range_key, r.range_family, r.range_qualifier, r.starts, r.ends) for r in ranges] == [
        (b"k", "f", b"q", 0, 1000),
        (BYTES, "f", b"x\xff", 1000, 2000),
        (BYTES, "f", b"", 0, None),
        (BYTES, "g", None, 0, None),
    ]
    assert {(r.row_key, r.family, r.qualifier, r.us, r.value) for r in ranges} == {(None,) * 5}
    said = [(r.change_type, r.source_cluster_id, r.commit_timestamp, r.tiebreaker) for r in rows]
    assert said == [
        ("backfill", "", "2026-11-22T10:00:00.000000001Z", 0),
        ("garbage_collection", "", "2026-11-22T10:00:00.000000002Z", 0),
        *[user] * 6,
    ]
    assert {r.at for r in rows[2:]} == {"00.123456"}
    assert len({r.sequence for r in rows}) == len(rows)
    assert {(r.batch, r.carried, r.tx, r.origin) for r in rows} == {(1, None, None, "bigtable/00-ff")}
    assert len({r.id for r in rows}) == len(rows)


def test_what_cannot_be_read_is_quarantined_and_the_others_arrive(memory: Memory, project: MemoryProject) -> None:
    quarantine = memory.rows("bigtable.cells__quarantine")
    assert Counter(row.record for row in quarantine) == Counter({text: entries_in(text) for text in BAD_CHANGES})
    reasons = {row.record: row._change_error for row in quarantine}
    wrong = [(reasons[text], words) for words, text in MALFORMED if words not in reasons[text]]
    assert not wrong
    assert {row.origin for row in quarantine} == {"bigtable/00-ff"}
    assert memory.table("bigtable.cells").where("row_key = 'good'").count() == len(WELL)
    good = [entry for text in GOOD_CHANGES for entry in entries_of(text)]
    assert len(memory.rows("bigtable.cells__range_deletes")) == len({e.identity for e in good if e.range})
    counts = account([], good)
    counts["delivered"] += len(quarantine)
    counts["quarantined"] += len(quarantine)
    line = _ledger(memory)["cells"]
    assert {name: line[name] for name in counts} == counts
    assert project.failing_tests("cells") == set()


@pytest.mark.soak
def test_what_garbage_collection_deletes_is_kept_or_not(memory: Memory, project: MemoryProject) -> None:
    """A state applies and a history keeps, unless told otherwise. What cannot be read is quarantined all the same."""
    keep, apply = (f", garbage_collection='{said}'" for said in ("keep", "apply"))
    models = {
        "kept_state": ("current_state", keep), "versions": ("history", ""), "applied_versions": ("history", apply),
        "live": ("current_view", ""), "kept_live": ("current_view", keep),
    }  # fmt: skip
    for name, (materialized, said) in models.items():
        model_of(project, name, materialized, said)
    project.run(*models)

    def times(name: str, where: str = "true") -> list[int]:
        rows = memory.table(f"bigtable.{name}").where(where).where("row_key = 'gc'")
        return sorted(row.us for row in rows.selectExpr("unix_micros(cell_time) as us").collect())

    assert times("cells") == times("live") == times("applied_versions", "is_current") == [3000]
    assert times("kept_state") == times("kept_live") == times("versions", "is_current") == [1000, 3000]
    assert times("versions") == times("applied_versions") == [1000, 2000, 3000]
    ledger = _ledger(memory)
    collected = [entry for text in GOOD_CHANGES for entry in entries_of(text) if entry.type == "garbage_collection"]
    quarantined = sum(map(entries_in, BAD_CHANGES))
    # One that names a kind that is unknown is left out with the others.
    left_out = len(collected) + entries_in(COLLECTED_BADLY[-1])
    applied, kept = (ledger["cells"], ledger["applied_versions"]), (ledger["kept_state"], ledger["versions"])
    for line in applied:
        assert (line.delivered, line.quarantined) == (applied[0].delivered, quarantined)
    for line in kept:
        assert (line.delivered, line.quarantined) == (
            applied[0].delivered - left_out, quarantined - entries_in(COLLECTED_BADLY[-1]),
        )  # fmt: skip
    for name in ("kept_state", "versions", "applied_versions"):
        assert project.failing_tests(name) == set()


def _ledger(memory: Memory) -> dict[str, Any]:
    return {row.relation.split(".")[1]: row for row in memory.rows("bigtable.reconcile_ledger")}


def test_rows_have_the_newest_visible_cell_of_each_column(memory: Memory, project: MemoryProject) -> None:
    view = memory.sql(project.compile("rows"))
    assert view.columns == ["row_key", *NAMES, "undecoded"]
    mine = [*VALUES, b"times", b"bad again", b"gone", b"other family"]
    rows = {
        bytes(row.row_key): ({n: row[n] for n in NAMES if row[n] is not None}, row.undecoded)
        for row in view.withColumn("at", view["at"].cast("string")).collect()
        if bytes(row.row_key) in mine
    }
    assert rows == {
        b"all": (
            {
                "word": "ü😀", "amount": Decimal("-1.10"), "at": "2026-11-22 10:00:00.123456", "long": -2,
                "short": 32767, "whole": -1, "tiny": 127, "bytes": b"\xff\x00", "nameless": "", "Übung `x`": 7,
                "no_text": b"",
            },
            None,
        ),
        b"ends": (
            {"long": -(2**63), "whole": -(2**31) + 1, "short": -(2**15), "tiny": -113, "amount": Decimal("0.00")}, None,
        ),
        b"wrong": ({}, ["word", "amount", "at", "long", "short", "Übung `x`"]),
        b"other": ({}, None),
        b"times": ({"word": "3000"}, None),
        b"bad again": ({}, ["amount"]),
        b"other family": ({}, None),
    }  # fmt: skip


# --- what else follows from the change records ------------------------------------------------------------------------


@pytest.mark.soak
def test_earlier_moments_parity_and_a_select_of_ones_own(memory: Memory) -> None:
    cells = Cells(memory, "cells_moments", invented(60, seed=5, split=2))
    cells.run(2)
    cells.check()
    then, now = visible(cells.upto(1)), visible(cells.upto(2))
    assert then != now
    project = cells.project
    assert isinstance(project, MemoryProject)

    project.variables["as_of"] = {"batch": 1}
    project.run("cells")
    project.variables.clear()
    cells.schema = "cells_moments_as_of"
    assert cells.live() == then

    cells.schema = "cells_moments"
    own = f"{{{{ config(materialized='current_state', unique_key={KEY}, meta={{'range_deletes': true}}) }}}}\n"
    project.model("own", f"{own}select * from `cells_moments`.`cells__changes`", COLUMNS)
    project.run("own")
    cells.check_live("own")

    told = memory.spark.createDataFrame(
        [(*cell, value) for cell, value in now.items()],
        "row_key binary, family string, qualifier binary, us bigint, value binary",
    )
    truth = told.selectExpr("row_key", "family", "qualifier", "timestamp_micros(us) as cell_time", "value")
    memory.keep("cells_moments_staging.truth", truth)

    def differing(as_of: dict[str, int] | str) -> int:
        compare_to = Relation("cells_moments_staging", "truth")
        return len(project.failing("parity", "cells", compare_to=compare_to, key=KEY, as_of=as_of))

    assert differing("now") == 0
    with pytest.raises(
        CompilerError,
        match=("cannot apply such deletes up to a position; build the model at the position with the variable"),
    ):
        differing({"batch": 1})
    memory.delete("cells_moments_staging.truth", "cell_time = timestamp_micros(1000)")
    assert differing("now") == len([cell for cell in now if cell[3] == 1000]) > 0


# --- watermarks -------------------------------------------------------------------------------------------------------


def cut_of(low_watermark: str | None, end: str = "", **partitions: str | None) -> str:
    """Return the cut of one task's partitions, which are named by the hex of their first key and end at the next."""
    starts = sorted(partitions)
    ends = [*starts[1:], end]
    said = [
        {
            "start_key": b64(bytes.fromhex(start[1:])), "end_key": b64(bytes.fromhex(end[1:])), "tokens": [],
            "low_watermark": partitions[start],
        }
        for start, end in zip(starts, ends, strict=True)
    ]  # fmt: skip
    return json.dumps({"low_watermark": low_watermark, "estimated": True, "partitions": said})


def test_the_ledger_has_the_watermark_and_the_lag_shows_what_stands(memory: Memory) -> None:
    schema = "bigtable_lag"
    project = memory.project(schema)
    project.source(f"{schema}_staging", "changes", "others", "spanner")
    model_of(project, "cells")
    for name, source in [("things", "others"), ("quiet", "others")]:
        project.model(
            name,
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            f"{{{{ reconcile.datastream_mysql(source('lake', '{source}'), object='{name}') }}}}",
            {"id": "bigint"},
        )
    project.model(
        "spanner_things",
        "{{ config(materialized='current_state', unique_key='Id') }}\n"
        "{{ reconcile.spanner_change_stream(source('lake', 'spanner'), object='Things') }}",
        {"Id": "string"},
    )

    def append(table: str, batch: int, minute: int, *records: tuple[str, str, str]) -> None:
        """Append records, (source, object, record), as if at a minute of a certain hour."""
        rows = [(r, s, o, "x", batch, datetime(2026, 11, 22, 10, minute, tzinfo=UTC)) for s, o, r in records]
        columns = "record string, source string, object string, origin string, batch bigint, appended_at timestamp"
        frame, name = memory.spark.createDataFrame(rows, columns), f"{schema}_staging.{table}"
        memory.keep(name, memory.table(name).union(frame) if memory.has(name) else frame)

    def at(minute: int, digits: str = "") -> str:
        return f"2026-11-22T10:{minute:02}:00{digits}Z"

    def bigtable(batch: int, minute: int, low: str | None, **partitions: str | None) -> None:
        change = data_change(b"k", [set_cell("f", b"q", batch, b"v")], batch)
        append("changes", batch, minute, ("bigtable", OBJECT, change), ("bigtable", "#cut", cut_of(low, **partitions)))

    bigtable(1, 1, None, _=None, _80=None)
    append("others", 1, 1, ("datastream", "things", event("mysql", {"id": 1}, source_timestamp=at(0, ".5"))))
    append("others", 2, 2, ("datastream", "things", event("mysql", {"id": 1}, source_timestamp=at(2))),
           ("datastream", "quiet", event("mysql", {"id": 1}, source_timestamp=at(1))))  # fmt: skip
    append("others", 3, 3, ("datastream", "things", event("mysql", {"id": 1}, source_timestamp=at(1))))
    for batch in (1, 2):
        mods = data_change_record([mod({"Id": str(batch)})], commit_timestamp=at(batch))
        append("spanner", batch, batch, ("spanner", "Things", mods), ("spanner", "#cut", cut(at(batch, ".1"), at(0))))
    project.run("cells", "reconcile_lag", "reconcile_unrouted")
    bigtable(2, 2, at(1, ".123456789"), _=at(2), _80=at(1, ".123456789"))
    bigtable(3, 7, at(1, ".123456789"), _=at(7), _80=at(1, ".123456789"))
    project.run("cells")
    # Of two tasks, each of which knows its own partitions.
    bigtable(4, 12, at(1, ".123456789"), _80=at(1, ".123456789"))
    append("changes", 4, 12, ("bigtable", "#cut", cut_of(at(11), "_80", _=at(11), _40=at(12))))
    project.run("cells")
    ledger = memory.table(f"{schema}.reconcile_ledger").where("object = 'events'").orderBy("last_batch").collect()
    stands = datetime(2026, 11, 22, 10, 1, 0, 123456, tzinfo=UTC)
    assert [(row.last_batch, _utc(row.watermark), row.cut_time) for row in ledger] == [
        (1, None, None), (3, stands, None), (4, stands, None),
    ]  # fmt: skip
    lag = memory.rows(f"{schema}.reconcile_lag")
    hour = datetime(2026, 11, 22, 10, tzinfo=UTC)

    def minutes(time: datetime | None) -> float | None:
        return None if time is None else round((_utc(time) - hour).total_seconds() / 60, 3)  # type: ignore[operator]

    seen = {
        (row.staging.split(".")[1], row.object, row.row_range): (
            row.source, minutes(row.up_to), row.is_estimate, minutes(row.unchanged_since), row.is_stalled, row.batch,
        )
        for row in lag
    }  # fmt: skip
    assert seen == {
        ("changes", None, None): ("bigtable", 1.002, True, 2.0, True, 4),
        ("changes", None, "-40"): ("bigtable", 11.0, True, 12.0, False, 4),
        ("changes", None, "40-80"): ("bigtable", 12.0, True, 12.0, False, 4),
        ("changes", None, "80-"): ("bigtable", 1.002, True, 2.0, True, 4),
        ("spanner", None, None): ("spanner", 2.002, False, 2.0, None, 2),
        ("others", "things", None): ("datastream", 1.0, False, None, None, 3),
        ("others", "quiet", None): ("datastream", 1.0, False, None, None, 2),
    }
    assert len(lag) == len(seen)
    assert all(abs(row.lag_seconds - (datetime.now(UTC) - _utc(row.up_to)).total_seconds()) < 600 for row in lag)  # type: ignore[operator]
    assert memory.rows(f"{schema}.reconcile_unrouted") == []
    # The stream comes to where one of its partitions stood a minute before.
    append("changes", 5, 13, ("bigtable", "#cut", cut_of(at(11), _=at(11), _40=at(12), _80=at(13))))
    since = {
        row.row_range: (minutes(row.up_to), minutes(row.unchanged_since))
        for row in memory.rows(f"{schema}.reconcile_lag") if row.source == "bigtable"
    }  # fmt: skip
    assert since == {None: (11.0, 13.0), "-40": (11.0, 12.0), "40-80": (12.0, 12.0), "80-": (13.0, 13.0)}


def _utc(time: datetime | None) -> datetime | None:
    return None if time is None else time.astimezone(UTC)
