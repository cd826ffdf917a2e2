"""Appends of a job that has no checkpoint: each has one row that says how far it is, and the next one goes on from it.

The row has the object `#cut`. The rows of an append and its cut are one commit, so either both are there or neither.
A job reads the newest cut, and what it then appends has the next number. An append is known to the format by an id that
the job keeps with its table and by this number. So of two runs that have read the same cut one appends, and what a
killed run has left behind is found: the cut in the table is then another one than the cut of this run.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from reconcile_jobs.process.errors import Fault, UsageError
from reconcile_jobs.staging import Appended, Staging, cut_changed_by_hand, literal
from reconcile_jobs.table_formats import BESIDE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CUT", "Cuts", "Overtaken", "again_if_overtaken", "checked_object"]

_Result = TypeVar("_Result")

# An object that is no table: jobs refuse names that begin with #.
CUT = "#cut"

# The id of the job's appends, which it keeps with its table.
_APPENDS = "appends"


def checked_object(name: str) -> str:
    """Return the name of an object if a cut cannot be taken for it. Raises UsageError."""
    if not name or name.startswith("#"):
        raise UsageError(
            f"--object {name!r} is not a valid name of a table: give another name, which does not begin with #."
        )
    return name


class Overtaken(Fault):
    """Another append has taken the number of this one; read again, the same command brings what is left."""


def again_if_overtaken(run: Callable[[], _Result]) -> _Result:
    """Return what a run returns that reads the newest cut and appends; where it was overtaken, it runs once more.

    Then the append that came first, perhaps one that a killed run had left, is in the newest cut. A second Overtaken is
    raised: another job appends at this moment.
    """
    try:
        return run()
    except Overtaken:
        return run()


class Cuts:
    """The cuts in a staging table of this job."""

    def __init__(
        self, spark: SparkSession, staging: Staging, source: str, cut: str = CUT, beside: bool = False
    ) -> None:
        """Open them. `cut`: the object of their rows; `beside`: whether the job appends beside the table's own job."""
        self._spark, self._staging, self._source, self._cut, self._beside = spark, staging, source, cut, beside
        self._next = 0  # the number of the append that follows what was read

    def newest(self, object_: str) -> dict[str, Any] | None:
        """Return the newest cut of an object, None before its first append; what is appended next follows it."""
        from pyspark.sql import functions as f

        of_object = self._cuts().groupBy("body.object").agg(f.max_by("record", "body.number").alias("record"))
        try:
            cuts = [json.loads(row.record) for row in of_object.collect()]
            self._next = 1 + max((int(cut["number"]) for cut in cuts), default=0)
            return next((cut for cut in cuts if cut["object"] == object_), None)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise UsageError(cut_changed_by_hand(self._staging.name, self._cut, "of some batch")) from None

    def append(
        self, records: DataFrame, object_: str, origin: str, cut: Mapping[str, Any], staged_as: str | None = None,
        source: str | None = None,
    ) -> Appended:  # fmt: skip
        """Append records of an object, texts of the column `record`, together with their cut.

        `staged_as` and `source`: the object and the source under which the records are staged, if they are others.

        Raises Overtaken where another append came first, and other JobErrors.
        """
        from pyspark.sql import functions as f

        staging, number = self._staging, self._next
        epoch = number - 1  # so that formats which count from 0 count all appends
        identity = staging.kept(self._appends)
        if identity is None or staging.was_set_back() or staging.begun(identity) > epoch:
            # A table that was set back knows of fewer appends than the format: they go on under another name.
            identity = self._anew()
        staging.number_after_all_appends()
        cut_text = json.dumps({"number": number, "object": object_, **cut}, separators=(",", ":"), ensure_ascii=False)
        of_records = {"object": staged_as or object_, "source": source or self._source}
        of_cut = {"record": cut_text, "object": self._cut, "source": self._source}
        rows = records.select("record", *(f.lit(value).alias(name) for name, value in of_records.items()))
        rows = rows.unionByName(
            self._spark.range(1).select(*(f.lit(value).alias(name) for name, value in of_cut.items()))
        )
        rows = rows.withColumn("origin", f.lit(origin))
        appended = staging.append(rows, self._source, identity, "", epoch, [f"cut {number}"])
        cuts = self._cuts().where(f"body.number = {number}").collect()
        if not cuts:
            self._anew()
            raise Fault(
                f"{staging.name} was restored to an older version, and nothing was appended: run the same command "
                "again, which continues from this version."
            )
        if cuts[0].record != cut_text:
            raise Overtaken(
                f"Another job appended {cuts[0].body.object} first: a job that was killed earlier, or one that runs "
                "now. Nothing of this run was appended: run the same command again."
            )
        return appended

    def _anew(self) -> str:
        identity = (BESIDE if self._beside else "") + str(uuid.uuid4())
        self._staging.keep(self._appends, identity)
        return identity

    @property
    def _appends(self) -> str:
        return f"{_APPENDS}_beside" if self._beside else _APPENDS

    def _cuts(self) -> DataFrame:
        body = "from_json(record, 'number bigint, object string') as body"
        # A record of Datastream's may name any object.
        own = f"object = '{self._cut}' and source = {literal(self._source)}"
        return self._spark.table(self._staging.name.sql).where(own).selectExpr("record", body)
