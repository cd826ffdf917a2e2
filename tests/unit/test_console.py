"""What a job writes to a terminal: names from outside paint nothing there, and a sentence stays one line."""

from __future__ import annotations

import io
import json
import sys

import pytest
from reconcile_jobs.process.console import Console, printable
from reconcile_jobs.process.errors import DataError, Fault, Undecided, UsageError

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


def test_what_is_going_on_is_replaced_by_what_comes_next_and_is_gone_before_anything_else_is_said(console: Console):
    console.progress("10 files")
    console.progress("9")
    console.say("done")
    console.say("again")
    console.progress("x")
    console.write("a line\n")
    console.progress("y")
    console.result({})
    shown = "\r10 files\r9       \r \rappend: done\nappend: again\n\rx\r \r\ry\r \r"
    assert console.err.getvalue() == shown  # type: ignore[attr-defined]
    assert console._out.getvalue() == "a line\n{}\n"  # type: ignore[attr-defined]


def test_a_file_of_a_jobs_messages_has_no_progress(console: Console):
    console.terminal = False
    console.progress("10 files")
    console.say("done")
    assert console.err.getvalue() == "append: done\n"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("problem", "code"),
    [(DataError("a"), 1), (UsageError("b"), 2), (Undecided("c"), 3), (Fault("d"), 4), (ValueError("e"), 4), (None, 0)],
)
def test_a_job_ends_with_the_exit_code_of_what_it_failed_of(
    console: Console, monkeypatch: pytest.MonkeyPatch, problem: Exception | None, code: int
):
    monkeypatch.setattr(sys, "stderr", sys.stderr)  # which a job replaces
    monkeypatch.delenv("RECONCILE_TRACEBACK", raising=False)

    def job() -> None:
        if problem is not None:
            raise problem

    assert console.exit_code(job) == code
    assert console.err.getvalue().count("append: ") == (problem is not None)  # type: ignore[attr-defined]
    if problem is not None:
        monkeypatch.setenv("RECONCILE_TRACEBACK", "1")
        with pytest.raises(type(problem)):
            console.exit_code(job)
