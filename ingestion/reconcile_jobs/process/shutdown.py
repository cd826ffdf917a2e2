"""A job that was asked to stop finishes what it says and ends with its own exit code."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Shutdown"]

# Seconds that the JVM waits for the job to stop before it goes on with its end.
_PATIENCE = 60

# Hooks of higher priority run earlier; Spark's own, which would stop the session under the job's feet, has 40.
_BEFORE_SPARK = 100


class Shutdown:
    """Sets `stop` when SIGTERM or SIGINT reaches this process or, after `watch`, its JVM.

    It listens from its construction on.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._spark: SparkSession | None = None
        self._jvm_ends = False
        self._may_end = threading.Event()
        self.listen()

    def listen(self) -> None:
        """Hear of signals; again once there is a Spark context, which has put a handler of its own in this place."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked)

    def _asked(self, *_: object) -> None:
        self.stop.set()
        # Under spark-submit the JVM goes too, and py4j would log each call that it does not answer any more.
        logging.disable()

    def watch(self, spark: SparkSession) -> None:
        """Under spark-submit signals reach the JVM too: from here on its end waits for `end`."""
        self._spark = spark
        if "PYSPARK_GATEWAY_PORT" not in os.environ:
            return
        from pyspark.java_gateway import ensure_callback_server_started

        ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        jvm: Any = spark._jvm
        jvm.org.apache.hadoop.util.ShutdownHookManager.get().addShutdownHook(
            _Hook(self), _BEFORE_SPARK, _PATIENCE, jvm.java.util.concurrent.TimeUnit.SECONDS
        )

    def jvm_ends(self) -> None:
        """Called by the JVM: ask the job to stop, and wait until it has."""
        self._jvm_ends = True
        self.stop.set()
        self._may_end.wait(_PATIENCE)

    def end(self, code: int) -> NoReturn:
        """End the process with this exit code, which a JVM that ends by a signal would replace by its own."""
        if self._jvm_ends and self._spark is not None:
            jvm: Any = self._spark._jvm
            jvm.java.lang.System.out.flush()
            jvm.java.lang.Runtime.getRuntime().halt(code)
        self._may_end.set()
        sys.exit(code)


class _Hook:
    # What the JVM sees of a Shutdown.
    class Java:
        implements = ["java.lang.Runnable"]  # noqa: RUF012

    def __init__(self, shutdown: Shutdown) -> None:
        self._shutdown = shutdown

    def run(self) -> None:
        self._shutdown.jvm_ends()

    # The JVM keeps its hooks in a set.
    def hashCode(self) -> int:
        return 1

    def equals(self, other: object) -> bool:
        return other is self
