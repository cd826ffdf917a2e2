"""A console that keeps what a job tells it, in place of the job's own."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Outputs:
    """What was written, said and given as the result."""

    err: io.StringIO = field(default_factory=io.StringIO)
    lines: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)

    def write(self, text: str) -> None:
        self.lines += text.splitlines()

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    def result(self, values: dict[str, Any]) -> None:
        self.results.append(json.loads(json.dumps(values)))
