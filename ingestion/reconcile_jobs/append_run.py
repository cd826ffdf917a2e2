"""What the append jobs do alike: watch a query, guard each batch, count what is appended, show how far they are."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from reconcile_jobs.process import failpoints
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.session import settings, ship_by_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = ["AppendRun"]

# Seconds between two looks at a query.
_POLL = 0.2

# Spark would refuse a checkpoint for ever in which a run was killed while it wrote the plan of the first micro-batch.
# Whose checkpoint it is, staging asks itself.
_BEGUN = {"spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false"}


class _Counts(Protocol):  # what the totals of each job have
    records: int
    first_batch: int | None
    last_batch: int | None


_Totals = TypeVar("_Totals", bound=_Counts)


class AppendRun(ABC, Generic[_Totals]):
    """One run of a job: its session, what its caller gave it, and the totals so far."""

    def __init__(self, spark: SparkSession, caller: Caller | None, totals: _Totals) -> None:
        caller = caller or Caller()
        self.spark, self.totals = spark, totals
        self.stop, self.say, self.progress, self.clock = caller.stop, caller.say, caller.progress, caller.clock
        self.refuse_early_end, self.comes_back = caller.refuse_early_end, caller.comes_back
        self.started = self.clock.seconds()
        self.batches = 0  # of all queries of the run
        self.failure: Exception | None = None
        ship_by_value()

    @abstractmethod
    def show(self) -> None:
        """Tell the caller how far the run is."""

    def so_far(self, what: str) -> str:
        """Return what was read, as `3 windows`, with the records and how many came in a second."""
        records, passed = self.totals.records, self.clock.seconds() - self.started
        return f"{what}, {records:,} records, {records / passed:,.0f}/s"

    def count(self, batch: int | None) -> None:
        """Note the number of an append; None: it had nothing to append."""
        self.totals.first_batch = self.totals.first_batch or batch
        self.totals.last_batch = batch or self.totals.last_batch

    def follow(
        self,
        writer: DataStreamWriter,
        checkpoint: str,
        append: Callable[[DataFrame, int], None],
        ends: Callable[[StreamingQuery], bool],
    ) -> StreamingQuery:
        """Append batch after batch until the query ends by itself, or `ends` says that it is to end.

        `query_id` is set before the first batch. Raises what failed inside a batch, and not Spark's wrapper of it.
        """
        known = threading.Event()

        def guarded(batch: DataFrame, epoch: int) -> None:
            try:
                if self.batches:
                    failpoints.reach("after_checkpoint")  # of the batch before
                known.wait()
                append(batch, epoch)
                failpoints.reach("before_checkpoint")
            except Exception as problem:
                self.failure = problem
                raise
            self.batches += 1

        # The query asks for the setting once its own thread runs.
        with settings(self.spark, _BEGUN):
            query = writer.foreachBatch(guarded).option("checkpointLocation", checkpoint).start()
            self.query_id = str(query.id)
            known.set()
            try:
                while not query.awaitTermination(_POLL):  # type: ignore[arg-type]
                    self.show()
                    if ends(query):
                        break
            except Exception as problem:
                raise self.failure or problem from None
            finally:
                query.stop()
        failpoints.reach("after_checkpoint")
        return query
