"""Which batches a run reads when its range has a snapshot beside the log."""

from __future__ import annotations

import re

import pytest
from shapes import SHAPES, Life


@pytest.mark.parametrize(("begun", "first"), [(2, 2), (4, 4), (5, 4)], ids=["applied before", "the first", "later"])
def test_a_range_with_a_snapshot_is_read_whole_also_batches_of_long_before_the_snapshot(begun: int, first: int) -> None:
    """The range is 4 to 5; from batch `begun` on there may be changes that the snapshot does not contain."""
    life = Life(SHAPES["postgresql_beside_a_snapshot"])
    life.warehouse.answers["select min(batch) from"] = {"first": begun}
    life.statements("first run")
    asked = "\n".join(life.statements("increment"))
    assert re.search(rf"^ +where _change_batch between {first} and 5$", asked, re.M)


def test_records_without_notes_of_their_columns_are_read_again_too() -> None:
    """A SELECT of the user's may drop the columns that only monitoring needs; then there is nothing to except."""
    life = Life(SHAPES["postgresql_beside_a_snapshot"])
    form = life.project.macros.form_of_node(life.project.node("orders"))
    range_ = {"first": 4, "last": 5, "repair": {"first": 2, "oldest": {"place": 1}}}
    fields = ["_change_snapshot"]
    sql = life.project.macros.checked_records_beside_snapshot("select 1", fields, form, range_, [])
    assert sql.startswith("select * except (_change_is_placed_anew)\nfrom (\n")
