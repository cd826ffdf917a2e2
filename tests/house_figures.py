"""Figures of the house, by commit: `python tests/house_figures.py 8ccff4e HEAD` prints them side by side.

Each is counted by a rule of one line, so that the same rule counts both sides; none of them is a target by itself.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from macro_layers import calls, circles
from reading_path import reading_path, steps_of

ROOT = Path(__file__).resolve().parents[1]
_COMMENT = re.compile(r"{#.*?#}", re.S)


def _templates(root: Path) -> dict[str, str]:
    return {
        str(file.relative_to(root / "macros")): file.read_text() for file in sorted((root / "macros").rglob("*.sql"))
    }


def _lines(root: Path) -> list[str]:
    return [line for text in _templates(root).values() for line in text.splitlines()]


def _macros(root: Path) -> list[tuple[str, str, str]]:
    """Return each macro: its name, its arguments, and its text up to the next one."""
    found = []
    for text in _templates(root).values():
        parts = re.split(r"{%-?\s*macro\s+(\w+)\((.*?)\)\s*-?%}", _COMMENT.sub("", text))
        found += list(zip(parts[1::3], parts[2::3], parts[3::3], strict=True))
    return found


def _that_take(argument: str, root: Path) -> list[tuple[set[str], bool]]:
    """Return, of each macro that takes a dict of this name: which keys it reads, and whether it hands the dict on."""
    found = []
    for _, arguments, text in _macros(root):
        keys = set(re.findall(rf"\b{argument}\.(\w+)", text))
        handed_on = re.search(rf"[(,]\s*{argument}\s*[,)]", text) is not None
        if argument in re.findall(r"\w+", arguments):
            found.append((keys, handed_on))
    # Where no macro reads a key, the argument of this name is a text.
    return found if any(keys for keys, _ in found) else []


def _used_a_little(argument: str, root: Path) -> int:
    """Count macros that take a dict of this name, do not hand it on, and read two of its keys at most."""
    return sum(not handed_on and len(keys) <= 2 for keys, handed_on in _that_take(argument, root))


def _python(root: Path) -> dict[str, int]:
    return {
        str(file): len(file.read_text().splitlines()) for file in (root / "ingestion").rglob("*.py") if file.is_file()
    }


def _steps(root: Path) -> str:
    try:
        files, steps, back = steps_of(reading_path(root))
    except AssertionError:
        return "the recorder does not answer its questions"
    return f"{files}, {steps}, {back}"


FIGURES: dict[str, Callable[[Path], float | str]] = {
    "macros": lambda root: len(_macros(root)),
    "folders of macros": lambda root: len({Path(file).parts[0] for file in _templates(root)}),
    "folders of macros in a circle": lambda root: sum(map(len, circles(calls(root / "macros")))),
    "macros that take all settings": lambda root: len(_that_take("settings", root)),
    "of these, macros that use two keys at most and hand none on": lambda root: _used_a_little("settings", root),
    "macros that take the form of a model, eight keys of the settings": lambda root: len(_that_take("form", root)),
    "of these, macros that use two keys of it at most and hand none on": lambda root: _used_a_little("form", root),
    "template lines over 120 characters, %": lambda root: round(
        100 * sum(len(line) > 120 for line in _lines(root)) / len(_lines(root)), 1
    ),
    "the longest template line": lambda root: max(map(len, _lines(root))),
    "concatenations (~) in a line of templates": lambda root: round(
        sum(line.count(" ~ ") for line in _lines(root)) / len(_lines(root)), 2
    ),
    "the first run of a model: files, steps from one file to another, steps back into a file that was left": _steps,
    "bytes of README.md": lambda root: (root / "README.md").stat().st_size,
    "Python modules of the jobs": lambda root: len(_python(root)),
    "their lines: median, largest": lambda root: (
        f"{statistics.median(_python(root).values()):.0f}, {max(_python(root).values())}"
    ),
}


def tree_of(commit: str, into: Path) -> Path:
    """Return a directory with the files of a commit."""
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as files:
        files.extractall(into / commit, filter="data")
    return into / commit


def main(commits: list[str]) -> None:
    """Print a table of the figures, a column for each commit."""
    with tempfile.TemporaryDirectory() as directory:
        trees = [tree_of(commit, Path(directory)) for commit in commits]
        print("| |", " | ".join(commits), "|")
        print("| --- |", " | ".join("---" for _ in commits), "|")
        for name, count in FIGURES.items():
            print(f"| {name} |", " | ".join(str(count(tree)) for tree in trees), "|")


if __name__ == "__main__":
    main(sys.argv[1:] or ["HEAD"])
