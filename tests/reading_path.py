"""The files through which a reader follows the first run of a model: `python tests/reading_path.py` prints them.

The package runs the model in plain Jinja over a warehouse that only records. The reader starts in the model's file,
reads each macro once, where the run first calls it, and then returns to the macro that called it. The path ends when
the model's row is in the ledger.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from plain_dbt import PACKAGE, Macros

# pytest has this directory on its path, a script has not.
sys.path.append(str(Path(__file__).parent / "render"))

from shapes import SHAPES, Life

MODEL = "models/orders.sql"
_COMMENT = re.compile(r"{#.*?#}", re.S)
_DEFINITION = re.compile(r"{%-?\s*(macro|materialization|test)\s+(\w+)")
# The last macro that a model's run calls for its row of the ledger.
_LAST = "get_ledger_statements"


class Steps(NamedTuple):
    """How a reader goes through files; `back`: how many of the steps enter a file that the reader left before."""

    files: int
    steps: int
    back: int


def steps_of(path: Sequence[str]) -> Steps:
    """Return the steps of a path of files: a file that follows itself is no step."""
    left: set[str] = set()
    steps = back = 0
    for before, file in itertools.pairwise(path):
        if file != before:
            left.add(before)
            steps += 1
            back += file in left
    return Steps(len(set(path)), steps, back)


class _Reader:
    """Stands in for the macros of a project, and notes the files of those that a reader reads."""

    def __init__(self, macros: Macros, files: dict[str, str]) -> None:
        self._macros, self._files = macros, files
        self._read: set[str] = set()
        self._open = [MODEL]  # the files of the macros that are being read, the innermost last
        self._skips = False  # what a macro calls that was read before
        self._ended = False
        self.path = [MODEL]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        macro = getattr(self._macros, name)

        def call(*given: Any, **named: Any) -> Any:
            if self._skips or self._ended:
                return macro(*given, **named)
            is_new = name not in self._read
            if is_new:
                self._read.add(name)
                self._open.append(self._files[name])
                self.path.append(self._open[-1])
            self._skips = not is_new
            try:
                return macro(*given, **named)
            finally:
                self._skips = False
                self._ended = self._ended or name == _LAST
                if is_new:
                    self._open.pop()
                    if not self._ended:
                        self.path.append(self._open[-1])

        return call


def reading_path(package: Path = PACKAGE) -> list[str]:
    """Return the files of the first run of a `current_state` that reads MySQL's records.

    Raises AssertionError if a package of another commit asks what the recorder does not answer.
    """
    project = Life(SHAPES["mysql_composite_key"], package=package).project
    # The start of the run is the same for all models, and no part of the way of one.
    project.begin("run", ["orders"])
    reader = _Reader(project.macros, _files_of_macros(package))
    project.context["reconcile"] = project.macros = reader  # type: ignore[assignment]
    project.materialize(project.node("orders"))
    return reader.path


def _files_of_macros(package: Path) -> dict[str, str]:
    files = {}
    for file in sorted((package / "macros").rglob("*.sql")):
        for kind, name in _DEFINITION.findall(_COMMENT.sub("", file.read_text())):
            files[name if kind == "macro" else f"{kind}_{name}"] = str(file.relative_to(package))
    return files


def main() -> None:
    """Print the path, a line for each step, and its figures."""
    path = reading_path()
    print(path[0])
    for number, (before, file) in enumerate(itertools.pairwise(path), 1):
        if file != before:
            print(f"{'back to ' if file in path[:number] else ''}{file}")
    print("files {}, steps {}, of these back into a file that was left {}".format(*steps_of(path)))


if __name__ == "__main__":
    main()
