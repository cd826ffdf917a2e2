"""Who asked for a run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from reconcile_jobs.clock import Clock

__all__ = ["Caller", "silence"]


def silence(text: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Caller:
    """Who asked for a run, hears of it, may set `stop` to end it, and has the clock by which it waits."""

    stop: threading.Event = field(default_factory=threading.Event)
    say: Callable[[str], None] = silence  # a sentence
    progress: Callable[[str], None] = silence  # how far it is, in place of what it told before
    clock: Clock = field(default_factory=Clock)
