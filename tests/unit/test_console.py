"""What a job writes to a terminal: names from outside paint nothing there, and a sentence stays one line."""

from __future__ import annotations

import io
import json

import pytest
from reconcile_jobs.process.console import Console, printable
from reconcile_jobs.process.errors import DataError

HOSTILE = "a\x1b[2J\x1b]0;title\x07b\nappend: done\r\x85\u202egpj.exe\u2066\udcff"


@pytest.fixture
def console() -> Console:
    made = Console("append")
    made.err, made._out, made.terminal = io.StringIO(), io.StringIO(), True
    return made


def test_what_a_terminal_would_obey_is_written_out(console: Console):
    told = "a\\x1b[2J\\x1b]0;title\\x07b\\nappend: done\\r\\x85\\u202egpj.exe\\u2066\\udcff"
    assert printable(HOSTILE) == told
    assert printable(text := "ein Übel, 一, 🦊 and \\x1b") == text
    console.say(HOSTILE)
    assert console.err.getvalue() == f"append: {told}\n"  # type: ignore[attr-defined]

    def fail() -> None:
        raise DataError(f"Cannot read {HOSTILE}.")

    assert console.exit_code(fail) == 1
    assert console.err.getvalue().splitlines()[-1] == f"append: Cannot read {told}."  # type: ignore[attr-defined]
    console.progress(HOSTILE)
    assert console.err.getvalue().endswith(f"\r{told}")  # type: ignore[attr-defined]


def test_the_result_is_one_line_of_json_whatever_it_holds(console: Console):
    console.result({"object": HOSTILE, "text": "Übel 🦊"})
    (line,) = console._out.getvalue().splitlines()  # type: ignore[attr-defined]
    assert line.isprintable() and "Übel 🦊" in line
    assert json.loads(line) == {"object": HOSTILE, "text": "Übel 🦊"}
