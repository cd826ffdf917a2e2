"""A directory of files as Datastream delivers them, and the job that appends them in the session of the tests."""

from __future__ import annotations

import gzip
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from avro_files import avro_file, record
from pyspark.sql import Row, SparkSession
from reconcile_jobs import datastream
from reconcile_jobs.datastream import Job, Totals
from reconcile_jobs.process import failpoints
from reconcile_jobs.process.caller import Caller, silence
from reconcile_jobs.staging import TableName

_numbers = itertools.count()


class Landing:
    """A directory of files, a staging table for them, and the command that appends one to the other."""

    def __init__(self, spark: SparkSession, directory: Path, name: str = "landing") -> None:
        self.spark = spark
        self.path = directory / name
        self.path.mkdir()
        self.checkpoint = directory / "checkpoint"
        self.table = f"ingest.t{next(_numbers)}"
        self.said: list[str] = []

    @property
    def job(self) -> str:
        """Who appends, as the table is told."""
        return f"datastream file:{self.path}"

    def put(self, name: str, content: bytes | str | list[Any]) -> Path:
        """Write a file: bytes or text as they are, a list as JSON lines; gzipped where the name says so."""
        if isinstance(content, list):
            content = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in content)
        if isinstance(content, str):
            content = content.encode()
            if name.endswith(".gz"):
                content = gzip.compress(content)
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return file

    def append(
        self, *, stop: threading.Event | None = None, progress: Callable[[str], None] = silence, **options: Any
    ) -> Totals:
        options = {"checkpoint": str(self.checkpoint), "path": str(self.path)} | options
        caller = Caller(stop or threading.Event(), self.said.append, progress)
        return datastream.run(self.spark, Job(staging=TableName.parse(self.table), **options), caller)

    def rows(self, where: str = "true") -> list[Row]:
        return self.spark.table(self.table).where(where).orderBy("batch", "origin", "record").collect()

    def properties(self) -> dict[str, str]:
        return {row.key: row.value for row in self.spark.sql(f"SHOW TBLPROPERTIES {self.table}").collect()}


def avro(*records: dict[str, Any], **types: Any) -> bytes:
    """Return an Avro file of records with an `object` and fields of these types."""
    return avro_file(record("e", **({"object": "string"} | types)), *records)


@contextmanager
def killed_at(place: str) -> Iterator[None]:
    """Let the job end where a kill would end it, in the process of the test: its query ends with it."""

    def reach(reached: str) -> None:
        if reached == place:
            raise RuntimeError(f"killed at {place}")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(failpoints, "reach", reach)
        yield
