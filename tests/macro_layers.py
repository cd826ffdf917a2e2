"""Which folder of macros calls which: `python tests/macro_layers.py` prints what stands in the way of layers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

MACROS = Path(__file__).parent.parent / "macros"

# From the ground to the top: the macros of a folder call those of their own folder and of the folders before it.
# fmt: off
LAYERS = (
    "sql", "values", "table_formats", "model", "change_records", "keyless", "sources", "drift", "ledger",
    "materializations", "parity", "generic_tests", "run",
)
# fmt: on

_COMMENT = re.compile(r"{#.*?#}", re.S)
_DEFINITION_OR_CALL = re.compile(
    r"{%-?\s*(?P<kind>macro|materialization|test)\s+(?P<defined>\w+)|\breconcile\.(?P<called>\w+)\s*\("
)
_COMPUTED = re.compile(r"\breconcile\s*\[(?=['\"\w])[^\]]*\]\s*\(")


class Call(NamedTuple):
    """A call in a file: the macro, materialization or test that calls, the macro that is called, and their folders."""

    file: str
    caller: str
    callee: str
    folder: str
    folder_of_callee: str

    def __str__(self) -> str:
        return f"{self.file}: {self.caller} calls {self.callee}"


class UnclearCall(LookupError):
    """A call of a macro that no file defines, or by a name that is computed."""


def calls(root: Path = MACROS) -> list[Call]:
    """Return every call of a macro of the package by another. Raises UnclearCall for what cannot be told."""
    texts = {file.relative_to(root): _COMMENT.sub("", file.read_text()) for file in sorted(root.glob("**/*.sql"))}
    folders: dict[str, str] = {}
    for file, text in texts.items():
        if computed := _COMPUTED.search(text):
            raise UnclearCall(f"{file}: {computed[0]} computes the name of a macro; write the name out")
        for found in _DEFINITION_OR_CALL.finditer(text):
            if found["kind"] == "macro":
                folders[found["defined"]] = file.parts[0]
    return [call for file, text in texts.items() for call in _calls_in(file, text, folders)]


def _calls_in(file: Path, text: str, folders: Mapping[str, str]) -> Iterator[Call]:
    caller = ""
    for found in _DEFINITION_OR_CALL.finditer(text):
        if found["defined"]:
            caller = found["defined"]
        elif found["called"] not in folders:
            raise UnclearCall(f"{file}: {caller} calls {found['called']}, which no file defines")
        else:
            yield Call(str(file), caller, found["called"], file.parts[0], folders[found["called"]])


def upwards(found: Sequence[Call], layers: Sequence[str] = LAYERS) -> list[Call]:
    """Return the calls of a macro whose folder lies above the caller's."""
    return [call for call in found if layers.index(call.folder_of_callee) > layers.index(call.folder)]


def circles(found: Sequence[Call]) -> list[tuple[str, ...]]:
    """Return the folders that reach each other by calls, one group for each circle."""
    reached: dict[str, set[str]] = {}
    for call in found:
        reached.setdefault(call.folder, {call.folder}).add(call.folder_of_callee)
        reached.setdefault(call.folder_of_callee, {call.folder_of_callee})
    for over in reached:
        for folder in reached:
            if over in reached[folder]:
                reached[folder] |= reached[over]
    alike = {tuple(sorted(other for other in reached[one] if one in reached[other])) for one in reached}
    return sorted(folders for folders in alike if len(folders) > 1)


def main() -> None:
    """Print the order, how many calls there are, and those that go up."""
    found = calls()
    between = [call for call in found if call.folder != call.folder_of_callee]
    up = upwards(found)
    print(f"order: {' < '.join(LAYERS)}")
    print(f"{len(found)} calls, {len(between)} between folders, {len(up)} upwards")
    print(f"folders in circles: {sum(map(len, circles(found)))} of {len(LAYERS)}")
    for (folder, callee), times in sorted(Counter((call.folder, call.folder_of_callee) for call in up).items()):
        print(f"  {folder} -> {callee}: {times}")


if __name__ == "__main__":
    main()
