"""Where a job speaks: messages and progress on standard error, one line of JSON on standard output."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from reconcile_jobs.process.errors import explained

__all__ = ["Console", "jvm", "printable"]


def jvm() -> Any:
    """Return the JVM that spark-submit started; it is there before any session, and asking it costs milliseconds."""
    from pyspark.java_gateway import launch_gateway

    return launch_gateway().jvm  # type: ignore[no-untyped-call]


def printable(text: str) -> str:
    """Return a text in which what a terminal would obey, or turn around, is written out as an escape.

    Names of files and objects come from outside, and may hold a line feed or what paints the screen.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _JvmStream(io.TextIOBase):
    # spark-submit merges Python's standard error into its own standard output; only the JVM has the real one.
    def __init__(self, name: str) -> None:
        self._name = name

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        getattr(jvm().java.lang.System, self._name).print(text)
        return len(text)


class Console:
    """A job's two outputs. Progress is shown on a terminal only."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._shown = 0
        submitted = "PYSPARK_GATEWAY_PORT" in os.environ
        self.err: TextIO = _JvmStream("err") if submitted else sys.stderr  # type: ignore[assignment]
        self._out: TextIO = _JvmStream("out") if submitted else sys.stdout  # type: ignore[assignment]
        # conf/spark-env.sh looks at the terminal, which spark-submit hides from Python.
        self.terminal = bool(os.environ.get("RECONCILE_TERMINAL")) if submitted else sys.stderr.isatty()

    def exit_code(self, job: Callable[[], None]) -> int:
        """Run a job and return its exit code; what it fails with is one sentence on standard error."""
        sys.stderr = self.err
        try:
            job()
        except Exception as problem:
            if os.environ.get("RECONCILE_TRACEBACK"):
                raise
            failure = explained(problem)
            self.say(str(failure))
            return failure.exit_code
        return 0

    def say(self, sentence: str) -> None:
        """Write a sentence to standard error."""
        self.progress("")
        self.err.write(f"{self._name}: {printable(sentence)}\n")
        self.err.flush()

    def progress(self, text: str) -> None:
        """Show what is going on, in place of what was shown before."""
        if not self.terminal or not (text or self._shown):
            return
        text = printable(text)
        self.err.write(f"\r{text:<{self._shown}}" + ("" if text else "\r"))
        self.err.flush()
        self._shown = len(text)

    def write(self, text: str) -> None:
        """Write lines to standard output, before the line that a job ends with."""
        self.progress("")
        self._out.write(text)
        self._out.flush()

    def result(self, values: dict[str, Any]) -> None:
        """Write the one line of JSON that a job ends with."""
        self.progress("")
        line = json.dumps(values, ensure_ascii=False)
        self._out.write("".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line) + "\n")
        self._out.flush()
