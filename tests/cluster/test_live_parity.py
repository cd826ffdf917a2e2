"""A source under load: at ten snapshots, and by ten proofs, nothing is confirmed, and in the end every row matches."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cluster.test_shared_metastore import Lakehouse, said_by
from postgres import Postgres
from projects import PACKAGE

TESTS = PACKAGE / "tests"


@contextmanager
def with_log(root: Path) -> Iterator[Lakehouse]:
    """A lakehouse whose PostgreSQL also is a source with a log."""
    postgres = Postgres("wal_level=logical", "track_commit_timestamp=on")
    try:
        made = Lakehouse(postgres, root)
        said_by(made.make())
        yield made
    finally:
        postgres.stop()


@pytest.fixture
def lakehouse(tmp_path: Path) -> Iterator[Lakehouse]:
    with with_log(tmp_path) as made:
        yield made


SNAPSHOTS, PROOFS = 5, 10


def said_of(lakehouse: Lakehouse, script: str, **environment: str) -> list[dict[str, Any]]:
    """Run a script beside this file, and return what it says."""
    postgres = lakehouse.postgres
    started = lakehouse.start(
        sys.executable,
        str(TESTS / "cluster" / script),
        str(lakehouse.root),
        PYTHONPATH=f"{TESTS}:{PACKAGE / 'ingestion'}",
        LIVE_USER=postgres.user,
        LIVE_DATABASE=postgres.database,
        LIVE_PASSWORD=postgres.password,
        LIVE_PORT=str(postgres.port),
        LIVE_PROGRAMS=str(postgres.programs),
        **environment,
    )
    said, _ = started.communicate(timeout=1800)
    print(said)
    assert started.returncode == 0, said[-3000:]
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


# Ten of them in one part took half an hour.
@pytest.mark.matrix
@pytest.mark.parametrize("five", ["first-five", "second-five"])
def test_nothing_is_confirmed_while_changes_are_on_their_way_and_then_every_row_matches(
    lakehouse: Lakehouse, five: str
) -> None:
    lines = said_of(lakehouse, "live_parity.py", LIVE_SNAPSHOTS=str(SNAPSHOTS))
    at_once = [line for line in lines if "snapshot" in line]
    assert [line["snapshot"] for line in at_once] == list(range(SNAPSHOTS))
    for line in at_once:
        assert line["undelivered"] >= 0.01
        assert is_open(line["position"])
        assert line["confirmed"] == line["unprovable"] == 0
        assert line["matched"] + line["in_flight"] == line["compared"]
    # The undelivered changes are seen: comparing both sides as they are would show differences.
    assert min(line["naive"] for line in at_once) > 0
    (took,) = (line for line in lines if "changes" in line)
    assert took["seconds"] >= 60
    again = [line for line in lines if "again" in line]
    assert [(line["verdict"], line["matched"]) for line in again] == [("match", line["compared"]) for line in again]
    assert max(line["rechecks"] for line in again) > 0
    all_rows = [line for line in lines if "all_rows" in line]
    assert len(again) == len(all_rows) == SNAPSHOTS + 1
    assert [(line["verdict"], line["matched"]) for line in all_rows] == [
        ("match", line["compared"]) for line in all_rows
    ]
    assert min(line["compared"] for line in all_rows) > 1000


@pytest.mark.matrix
def test_ten_proofs_confirm_nothing_while_changes_are_on_their_way_and_then_all_is_equal(lakehouse: Lakehouse) -> None:
    lines = said_of(lakehouse, "live_proofs.py", LIVE_PROOFS=str(PROOFS))
    proofs = [line for line in lines if "proof" in line]
    assert [line["proof"] for line in proofs] == list(range(PROOFS))
    for line in proofs:
        assert line["confirmed"] == line["unprovable"] == 0
        assert line["matched"] + line["in_flight"] == line["compared"] > 1000
        # Not for want of changes: each time the checksums differ by what is still to be delivered.
        assert (line["state"], line["reasons"]) == ("in flight", [])
        assert line["ended"].startswith("Fault: ") and line["title"] == "Proof: in flight"
        assert line["digests"]["source"] != line["digests"]["model"]
        assert is_open(line["position"])
        assert line["in_flight"] > 0 and 0 < line["rows_read"] < line["compared"]
        # The rows are those of the position, and not those of the base table.
        assert line["folds"]
    assert len({line["position"] for line in proofs}) == PROOFS
    (took,) = (line for line in lines if "changes" in line)
    assert took["seconds"] >= 60
    (quiet,) = (line for line in lines if "quiet" in line)
    assert (quiet["ended"], quiet["state"], quiet["title"]) == ("ok", "equal", "Proof: equal")
    assert quiet["recorded"] == ["match"]
    assert quiet["matched"] == quiet["compared"] > 1000 and quiet["digests"]["source"] == quiet["digests"]["model"]
    (replay,) = (line for line in lines if "replay" in line)
    assert replay["replay"] == "ok" and replay["lines"] == ["orders   same"]


def is_open(snapshot: str) -> Any:
    """Return whether a snapshot leaves out a transaction that was going on."""
    return snapshot.split(":")[2]
