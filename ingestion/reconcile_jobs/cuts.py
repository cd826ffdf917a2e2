"""Appends of a job that has no checkpoint: each has one row that says how far it is, and the next one goes on from it.

The row has the object `#cut`. The rows of an append and its cut are one commit, so either both are there or neither.
Cuts are numbered, and an append is known to the format by an id that the job keeps with its table and by the number of
its cut. A job that was killed before its commit leaves the cut of the append before, and reads the same again; a job
that was killed after it leaves its own cut.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reconcile_jobs.process.errors import Fault
from reconcile_jobs.staging import Appended, Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CUT", "Cuts"]

# An object that is no table: jobs refuse names that begin with #.
CUT = "#cut"

# The id of the job's appends, which it keeps with its table.
_APPENDS = "appends"


class Cuts:
    """The cuts in a staging table of this job."""

    def __init__(self, spark: SparkSession, staging: Staging, source: str) -> None:
        self._spark, self._staging, self._source = spark, staging, source

    def newest(self, object_: str) -> dict[str, Any] | None:
        """Return the newest cut of an object, None before its first append."""
        return next((cut for cut in self._all() if cut["object"] == object_), None)

    def append(self, records: DataFrame, object_: str, origin: str, cut: Mapping[str, Any]) -> Appended:
        """Append records of an object, texts of the column `record`, together with their cut. Raises JobError."""
        from pyspark.sql import functions as f

        staging = self._staging
        identity = staging.kept(_APPENDS)
        if identity is None or staging.was_set_back():
            # A table that was set back knows of fewer appends than the format: they go on under another name.
            identity = self._anew()
            staging.number_behind_all_appends()
        number = 1 + self._number()
        said = json.dumps({"number": number, "object": object_, **cut}, separators=(",", ":"), ensure_ascii=False)
        rows = records.select("record", f.lit(object_).alias("object"))
        rows = rows.unionByName(self._spark.range(1).select(f.lit(said).alias("record"), f.lit(CUT).alias("object")))
        rows = rows.withColumn("origin", f.lit(origin))
        appended = staging.append(rows, self._source, identity, "", number, [f"cut {number}"])
        if self._number() < number:
            self._anew()
            raise Fault(
                f"{staging.name} was set back to an older version, and nothing was appended: run the same command "
                "again, and it goes on from there."
            )
        return appended

    def _anew(self) -> str:
        identity = str(uuid.uuid4())
        self._staging.keep(_APPENDS, identity)
        return identity

    def _number(self) -> int:
        return next((int(cut["number"]) for cut in self._all()), 0)

    def _all(self) -> list[dict[str, Any]]:
        """Return all cuts, the newest first."""
        rows = self._spark.table(self._staging.name.sql).where(f"object = '{CUT}'").select("record").collect()
        return sorted((json.loads(row.record) for row in rows), key=lambda cut: -cut["number"])
