"""A clock that a test moves: whoever waits by it waits for nothing. `wait_until` is for other processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from reconcile_jobs.process.clock import Clock


class MovedClock(Clock):
    """The machine's clock, ahead of it by what was waited for; `meanwhile` is what happens during a wait."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.waits: list[float] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def now(self) -> int:
        """See Clock."""
        return super().now() + round(self.ahead * 10**9)

    def seconds(self) -> float:
        """See Clock."""
        return super().seconds() + self.ahead

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """See Clock."""
        self.waits.append(seconds)
        self.meanwhile()
        self.advance(seconds)
        return event.is_set()

    def advance(self, seconds: float) -> None:
        """Let so many seconds pass at once."""
        self.ahead += seconds


def wait_until(condition: Callable[[], object], seconds: float = 300, poll: float = 0.3) -> None:
    """Wait by the real clock until a condition holds, asked every `poll` seconds, and fail after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(poll)
