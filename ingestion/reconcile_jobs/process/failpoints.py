"""Places where a test kills the job, as a power cut would; without RECONCILE_FAILPOINT they do nothing."""

from __future__ import annotations

import os
import signal

__all__ = ["NAMES", "reach"]

# In the order in which an append reaches them; before_publish only in an Iceberg table.
NAMES = ("before_data_commit", "before_publish", "after_data_commit", "before_checkpoint", "after_checkpoint")


def reach(name: str) -> None:
    """Kill the job with SIGKILL if RECONCILE_FAILPOINT names this place; Spark's JVM, the parent, first."""
    if os.environ.get("RECONCILE_FAILPOINT") != name:
        return
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit: without this the JVM would still tidy up
        os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
