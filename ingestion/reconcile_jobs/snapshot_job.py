"""The job of `append.py snapshot`: a snapshot is staged beside the log of its staging table, or as differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile_jobs import log_snapshots, snapshot_differences
from reconcile_jobs.snapshot_differences import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconcile_jobs.process.caller import Caller

__all__ = ["Job", "run"]


def run(
    spark: SparkSession, job: Job, caller: Caller | None = None
) -> snapshot_differences.Totals | log_snapshots.Totals:
    """Append one snapshot, and return its counts. Raises JobError."""
    if log_snapshots.is_beside_log(spark, job):
        return log_snapshots.run(spark, job, caller)
    return snapshot_differences.run(spark, job, caller)
