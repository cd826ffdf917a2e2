"""The data source as Spark calls it: offsets, shares and rows, over a socket; no session is needed for that."""

import json
import pickle
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from fake_spanner import FakeSpanner
from pyspark import cloudpickle
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.process.session import ship_by_value
from reconcile_jobs.spanner import data_source
from reconcile_jobs.spanner.data_source import CUT, READ, SpannerChangeStream, next_start
from reconcile_jobs.timestamps import as_text

SECOND = 10**9
T0 = FakeSpanner.START


def options(server: FakeSpanner, **more: Any) -> dict[str, str]:
    given = {
        "project": "p",
        "instance": "i",
        "database": "d",
        "stream": "everything",
        "start": as_text(T0),
        "emulatorHost": server.address,
    }
    return given | {name: str(value) for name, value in more.items()}


def stream_reader(server: FakeSpanner, **more: Any) -> Any:
    return SpannerChangeStream(options(server, **more)).streamReader(None)  # type: ignore[arg-type]


def rows_of(reader: Any, shares: Any) -> list[dict[str, str]]:
    batches = [batch for share in shares for batch in reader.read(share)]
    assert all(batch.schema.names == ["record", "object", "origin"] for batch in batches)
    return pa.Table.from_batches(batches).to_pylist() if batches else []


def test_offsets_go_from_window_to_window_and_never_into_the_future():
    with FakeSpanner() as server:
        server.now = T0 + 25 * SECOND
        reader = stream_reader(server, window="10s")
        at = reader.initialOffset()
        assert next_start(at) == T0
        windows = []
        while (following := reader.latestOffset()) != at:
            windows.append((next_start(at) - T0, next_start(following) - T0))
            reader.partitions(at, following)
            at = following
        assert windows == [
            (0, 10 * SECOND),
            (10 * SECOND, 20 * SECOND),
            (20 * SECOND, 25 * SECOND + 1),  # to Spanner's clock, and on from a nanosecond after it
        ]
        server.now += SECOND
        assert next_start(reader.latestOffset()) - T0 == 26 * SECOND + 1
        reader.stop()


def test_an_end_in_the_future_is_waited_for():
    with FakeSpanner() as server:
        server.now = T0 + SECOND
        reader = stream_reader(server, end=as_text(T0 + 10 * SECOND))
        assert next_start(reader.latestOffset()) == T0 + SECOND + 1
        server.now = T0 + 20 * SECOND
        assert next_start(reader.latestOffset()) == T0 + 10 * SECOND + 1
        reader.stop()


def test_after_a_restart_the_source_goes_on_where_the_checkpoint_is():
    with FakeSpanner() as server:
        reader = stream_reader(server, window="10s")
        there = {"next": as_text(T0 + 70 * SECOND)}
        assert reader.partitions(there, there) == []
        assert next_start(reader.latestOffset()) == T0 + 80 * SECOND
        assert server.queries == []
        reader.stop()


def test_an_end_is_the_last_timestamp_that_is_read():
    with FakeSpanner() as server:
        for second in (1, 2, 3):
            server.commit("P0", T0 + second * SECOND, str(second))
        reader = stream_reader(server, window="1h", end=as_text(T0 + 2 * SECOND))
        start, end = reader.initialOffset(), reader.latestOffset()
        assert next_start(end) == T0 + 2 * SECOND + 1
        rows = rows_of(reader, reader.partitions(start, end))
        assert [json.loads(row["record"])["mods"][0]["keys"]["k"] for row in rows] == ["1", "2"]
        assert reader.latestOffset() == end
        with pytest.raises(UsageError, match="later than the option end"):
            reader.partitions(end, start)
        reader.stop()


@pytest.mark.parametrize("readers", [1, 3, 64])
def test_a_window_is_shared_out_and_the_same_offsets_give_the_same_rows(readers: int):
    with FakeSpanner(partitions=7) as server:
        for i in range(50):
            server.commit(f"P{i % 7}", T0 + i, str(i), table_name=f"T{i % 2}")
        server.split("P3", ["A", "B"], T0 + SECOND)
        server.commit("B", T0 + 2 * SECOND, "child")
        reader = stream_reader(server, readers=readers)
        start, end = reader.initialOffset(), reader.latestOffset()
        shares = reader.partitions(start, end)
        assert len(shares) == min(7, readers)
        rows = rows_of(reader, shares)
        assert len(rows) == 51
        assert {row["object"] for row in rows} == {"T0", "T1", "T"}
        assert {row["origin"] for row in rows} == {
            f"everything/{token}" for token in [*(f"P{i}" for i in range(7)), "B"]
        }

        def sorted_rows(some: list[dict[str, str]]) -> list[str]:
            return sorted(json.dumps(row) for row in some)

        again = stream_reader(server, readers=2)
        assert sorted_rows(rows_of(again, again.partitions(start, end))) == sorted_rows(rows)
        reader.stop()
        again.stop()


def test_with_control_a_window_tells_its_cut_and_what_was_read():
    with FakeSpanner(partitions=3) as server:
        server.commit("P1", T0 + 5)
        server.split("P1", ["A", "B"], T0 + 6)
        reader = stream_reader(server, readers=2, control="true", window="60s")
        rows = rows_of(reader, reader.partitions(reader.initialOffset(), reader.latestOffset()))
        reader.stop()
        (cut,) = [json.loads(row["record"]) for row in rows if row["object"] == CUT]
        assert cut == {"start": as_text(T0), "cut_time": as_text(T0 + 60 * SECOND - 1)}
        reads = [json.loads(row["record"]) for row in rows if row["object"] == READ]
        assert sorted(leaf for read in reads for leaf in read["leaves"]) == ["A", "B", "P0", "P2"]
        assert sum(read["records"] for read in reads) == 1


def test_a_batch_is_one_window():
    with FakeSpanner() as server:
        for i in range(3):
            server.commit("P0", T0 + i, str(i))
        source = SpannerChangeStream(options(server, start=as_text(T0 + 1), end=as_text(T0 + 1)))
        reader = source.reader(None)  # type: ignore[arg-type]
        assert len(rows_of(reader, reader.partitions())) == 1
        with pytest.raises(UsageError, match="needs the option end"):
            SpannerChangeStream(options(server)).reader(None)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="is before the option start"):
            SpannerChangeStream(options(server, end=as_text(T0 - 1))).reader(None)  # type: ignore[arg-type]


def test_many_rows_come_in_several_batches(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(data_source, "_ROWS", 50)
    monkeypatch.setattr(data_source, "_CHARACTERS", 100_000)
    with FakeSpanner() as server:
        for i in range(120):
            server.commit("P0", T0 + i, str(i))
        server.commit("P0", T0 + 200, "large", "x" * 100_000)
        server.commit("P0", T0 + 201, "last")
        reader = stream_reader(server)
        (share,) = reader.partitions(reader.initialOffset(), reader.latestOffset())
        batches = list(reader.read(share))
        reader.stop()
        assert [batch.num_rows for batch in batches] == [50, 50, 21, 1]


EXECUTOR = """
import pickle, sys
assert not any("ingestion" in place for place in sys.path)
reader, share = pickle.load(sys.stdin.buffer)
print(sum(batch.num_rows for batch in reader.read(share)))
"""


def test_an_executor_without_this_package_can_read():
    # One process makes the source, a second plans, a third reads: what travels is what Spark sends.
    ship_by_value()
    with FakeSpanner() as server:
        server.commit("P0", T0)
        source = cloudpickle.dumps(SpannerChangeStream(options(server)))  # type: ignore[no-untyped-call]
        planner = (
            "import pickle, sys\nfrom pyspark import cloudpickle\n"
            "reader = pickle.load(sys.stdin.buffer).streamReader(None)\n"
            "(share,) = reader.partitions(reader.initialOffset(), reader.latestOffset())\n"
            "sys.stdout.buffer.write(cloudpickle.dumps((reader, share)))\nsys.stdout.flush()\nreader.stop()\n"
        )
        planned = subprocess.run([sys.executable, "-c", planner], input=source, capture_output=True, timeout=60)
        assert planned.returncode == 0, planned.stderr.decode()
        read = subprocess.run([sys.executable, "-c", EXECUTOR], input=planned.stdout, capture_output=True, timeout=60)
        assert (read.returncode, read.stdout) == (0, b"1\n"), read.stderr.decode()
        assert pickle.loads(source)
