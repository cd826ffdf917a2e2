"""The time as a job has it, and how it waits; a test has a clock of its own, and waits for nothing."""

from __future__ import annotations

import threading
import time

__all__ = ["Clock"]


class Clock:
    """The machine's clock."""

    def now(self) -> int:
        """Return the time of day, in nanoseconds since 1970."""
        return time.time_ns()

    def seconds(self) -> float:
        """Return seconds that only grow, since no particular moment: what passed is a difference of two."""
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait so many seconds, or until the event is set before, and return whether it is set."""
        return event.wait(seconds)
