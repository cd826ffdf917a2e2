"""Every text that a planted bug replaces stands once in its file: in the tests that plant, this shows minutes later."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLANTING = sorted(path for path in (ROOT / "tests" / "fold").glob("test_*.py") if "BUGS" in path.read_text())


def imported(path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(path.parent))
    spec = importlib.util.spec_from_file_location(f"planted_in_{path.stem}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def replaced(bugs: Any) -> Iterator[tuple[str, str]]:
    """Return file and text of all that some bugs replace."""
    for bug in bugs.values() if isinstance(bugs, Mapping) else bugs:
        if isinstance(bug, Mapping):  # {file: {text: planted}}
            yield from ((file, found) for file, changes in bug.items() for found in changes)
            continue
        file, changes = (bug.file, getattr(bug, "changes", None) or [bug.found]) if hasattr(bug, "file") else bug[:2]
        yield from ((file, found) for found in ([changes] if isinstance(changes, str) else changes))


@pytest.mark.parametrize("path", PLANTING, ids=lambda path: path.stem)
def test_a_planted_bug_fits_its_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = imported(path, monkeypatch)
    texts = [text for name, bugs in vars(module).items() if name.endswith("BUGS") and bugs for text in replaced(bugs)]
    assert texts, f"{path.name} has no bugs that this test knows"
    assert [text for text in texts if (ROOT / text[0]).read_text().count(text[1]) != 1] == []
