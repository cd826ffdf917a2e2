"""Who asked for a run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from reconcile_jobs.process.clock import Clock
from reconcile_jobs.process.errors import Fault

__all__ = ["Caller", "silence"]


def silence(text: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Caller:
    """Who asked for a run, hears of it, may set `stop` to end it, and has the clock by which it waits.

    `comes_back`: whether the same is asked again, so that a run may end before everything was appended.
    """

    stop: threading.Event = field(default_factory=threading.Event)
    say: Callable[[str], None] = silence  # a sentence
    progress: Callable[[str], None] = silence  # how far it is; replaces the last such line
    clock: Clock = field(default_factory=Clock)
    comes_back: bool = False

    def refuse_early_end(self) -> None:
        """Raise Fault where a run that is to stop leaves something undone that nobody comes back for."""
        if not self.comes_back:
            raise Fault("Stopped before everything was appended: run the same command again.")
