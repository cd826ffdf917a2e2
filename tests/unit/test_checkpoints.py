"""What a checkpoint of Structured Streaming says, by its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plain_spark import Session
from reconcile_jobs.checkpoints import checkpoint_damage, checkpoint_id, forget_checkpoint, last_commit


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint after ten micro-batches: Spark has combined the lists of files of all ten in the last of them."""
    (tmp_path / "metadata").write_text(json.dumps({"id": "query"}))
    for part in ("offsets", "commits", "sources/0"):
        (tmp_path / part).mkdir(parents=True)
    for number in range(10):
        (tmp_path / "offsets" / str(number)).write_text(f'v1\n{{"batchId": {number}}}\n{{"logOffset": {number}}}')
        (tmp_path / "commits" / str(number)).write_text("v1\n{}")
        name = f"{number}.compact" if number == 9 else str(number)
        (tmp_path / "sources" / "0" / name).write_text('v1\n{"path": "a.json"}')
    return tmp_path


def test_lists_of_files_that_spark_has_combined_are_no_damage(checkpoint: Path) -> None:
    spark: Any = Session()
    assert checkpoint_damage(spark, str(checkpoint)) is None
    assert last_commit(spark, str(checkpoint)) == 9


def test_a_list_of_files_that_is_gone_is_named(checkpoint: Path) -> None:
    spark: Any = Session()
    (checkpoint / "sources" / "0" / "9.compact").unlink()
    assert checkpoint_damage(spark, str(checkpoint)) == "sources/0/9 is missing"


def test_of_a_checkpoint_that_is_forgotten_nothing_is_left_that_spark_would_go_on_with(checkpoint: Path) -> None:
    """Its micro-batches would come with the offsets of the query before, and read what that one was to read."""
    spark: Any = Session()
    assert checkpoint_id(spark, str(checkpoint)) == "query"
    (checkpoint / "state" / "0").mkdir(parents=True)
    forget_checkpoint(spark, str(checkpoint))
    assert [path.name for path in checkpoint.iterdir()] == ["commits"]
    assert checkpoint_id(spark, str(checkpoint)) is None
