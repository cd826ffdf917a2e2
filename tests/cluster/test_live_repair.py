"""A source under load, of whose changes one in twenty is lost: snapshots repair the models while writing goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster.test_live_parity import is_open, said_of, with_log
from cluster.test_shared_metastore import Lakehouse

REPAIRS = 3


@pytest.fixture
def lakehouse(tmp_path: Path) -> Iterator[Lakehouse]:
    with with_log(tmp_path) as made:
        yield made


@pytest.mark.matrix
def test_rows_whose_changes_were_lost_are_right_again_and_none_is_ever_set_back(lakehouse: Lakehouse) -> None:
    lines = said_of(lakehouse, "live_repair.py", LIVE_REPAIRS=str(REPAIRS))
    repairs = [line for line in lines if "repair" in line]
    assert [line["repair"] for line in repairs] == list(range(REPAIRS))
    # Not for want of open transactions, nor of what was lost.
    assert all(is_open(line["position"]) for line in repairs)
    assert repairs[-1]["repaired"] > 0
    (end,) = (line for line in lines if "before" in line)
    assert end["lost"] > 50 and end["before"] > 0
    assert (end["after"], end["set_back"]) == (0, [])
    assert end["runs"] == 3 * REPAIRS + 2
    (rebuilt,) = (line for line in lines if "rebuilt" in line)
    assert rebuilt["rebuilt"] == 0
