"""Checkpoints of Structured Streaming: what they say, and what is wrong with them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from reconcile_jobs.hadoop_files import hadoop_path, read_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["checkpoint_damage", "checkpoint_id", "forget_checkpoint", "last_commit"]


def checkpoint_id(spark: SparkSession, location: str) -> str | None:
    """Return the query id in a checkpoint, or None where there is none (any more)."""
    if not _exists(spark, location, "metadata"):
        return None
    identity: str | None = json.loads(read_text(spark, hadoop_path(spark, location, "metadata"))).get("id")
    return identity


def last_commit(spark: SparkSession, location: str) -> int | None:
    """Return the number of the last micro-batch that a checkpoint has as done, None before the first."""
    return max(map(_number_of, _numbers(spark, location, "commits")), default=None)


def checkpoint_damage(spark: SparkSession, location: str) -> str | None:
    """Return what is wrong with the files that Spark goes on from, None if nothing is or there is no checkpoint."""
    numbers = {part: _numbers(spark, location, part) for part in ("offsets", "commits", "sources/0")}
    if not _exists(spark, location, "metadata"):
        return "metadata is missing" if any(numbers.values()) else None
    begun, done = (max(map(_number_of, numbers[part]), default=-1) for part in ("offsets", "commits"))
    if not done <= begun <= done + 1:
        return f"offsets end at {begun}, and commits at {done}"
    # Where a micro-batch comes again, Spark asks for the one before as well.
    needed = [f"offsets/{number}" for number in range(max(0, done), begun + 1)]
    needed += [f"{part}/{max(numbers[part], key=_number_of)}" for part in ("commits", "sources/0") if numbers[part]]
    for name in ["metadata", *needed]:
        try:
            lines = read_text(spark, hadoop_path(spark, location, name)).split("\n")
            entries = [json.loads(line) for line in lines if line not in ("v1", "")]
        except Exception:
            return f"{name} cannot be read"
        if len(entries) < (2 if name.startswith("offsets") else 1):
            return f"{name} is cut off"
        if not all(isinstance(entry, dict) for entry in entries):
            return f"{name} cannot be read"
        if name == "metadata" and "id" not in entries[0]:
            return "metadata has no id"
        files = entries[1].get("logOffset", -1) if name.startswith("offsets") else -1
        if type(files) is not int or files < -1:
            return f"{name} cannot be read"
        if files > max(map(_number_of, numbers["sources/0"]), default=-1):
            return f"sources/0/{files} is missing"
    return None


def _numbers(spark: SparkSession, location: str, part: str) -> list[str]:
    """Return the names of the numbered files in a part of a checkpoint."""
    at = hadoop_path(spark, location, part)
    if not _exists(spark, location, part):
        return []
    files = at.getFileSystem(spark._jsc.hadoopConfiguration())
    names = [str(status.getPath().getName()) for status in files.listStatus(at)]
    return [name for name in names if re.fullmatch(r"\d+(\.compact)?", name)]


def _exists(spark: SparkSession, *parts: str) -> bool:
    at = hadoop_path(spark, *parts)
    return bool(at.getFileSystem(spark._jsc.hadoopConfiguration()).exists(at))


def _number_of(name: str) -> int:
    return int(name.removesuffix(".compact"))


def forget_checkpoint(spark: SparkSession, location: str) -> None:
    """Delete what Spark keeps in a checkpoint that has no finished micro-batch."""
    for part in ("metadata", "offsets", "sources", "state"):
        path = hadoop_path(spark, location, part)
        path.getFileSystem(spark._jsc.hadoopConfiguration()).delete(path, True)
