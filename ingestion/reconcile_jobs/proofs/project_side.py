"""A dbt project, asked by its own macros: which models there are, their rows at a position, and verdicts of rows."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, TextIO

from reconcile_jobs.process.dbt_commands import invoke
from reconcile_jobs.process.errors import DataError, Fault, UsageError

__all__ = ["DbtProject", "as_yaml"]

# What macros/parity/proof.sql puts before an answer.
_ANSWER = "reconcile_proof "
_ERRORS = ("RunningOperationCaughtError", "RunningOperationUncaughtError", "MainEncounteredError")


def as_yaml(value: Any) -> str:
    """Return JSON that YAML reads alike, as dbt does, to which a surrogate pair is two characters.

    All others outside of ASCII are escaped, since YAML folds some line breaks and refuses what it cannot print.
    """
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c < "\x7f" or ord(c) > 0xFFFF else f"\\u{ord(c):04x}" for c in text)


@dataclass
class DbtProject:
    """`options`: those of dbt, as --project-dir. `out`: where dbt speaks, which is not the job's standard output."""

    options: Sequence[str]
    out: TextIO
    stop: Event = field(default_factory=Event)

    def models(self, selected: Sequence[str]) -> list[str]:
        """Return the unique ids of the models that a selection of dbt names. Raises UsageError."""
        words = ["list", "--resource-type", "model", "--output", "json", "--output-keys", "unique_id", "--select"]
        done, _ = self._run([*words, *selected])
        if not done.success or not isinstance(done.result, list):
            raise UsageError(f"dbt refuses: {done.exception}".rstrip(".") + ".")
        found = [str(json.loads(line)["unique_id"]) for line in done.result]
        if not found:
            raise UsageError(f"No model is selected by {' '.join(selected)}; see `dbt list --resource-type model`.")
        return sorted(found)

    def ask(self, question: str, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the answers of the macro `answer_proof`, one for each request. Raises JobErrors."""
        given = as_yaml({"question": question, "requests": list(requests)})
        done, events = self._run(["run-operation", "reconcile.answer_proof", "--args", given])
        answers = [str(event.data.msg) for event in events if event.info.name == "JinjaLogDebug"]
        found = [text.removeprefix(_ANSWER) for text in answers if text.startswith(_ANSWER)]
        if done.success and found:
            return list(json.loads(found[-1]))
        if self.stop.is_set():
            raise Fault("Stopped before the proof was complete: run the same command again.")
        if done.exception is not None:
            raise UsageError(f"dbt refuses: {done.exception}".rstrip(".") + ".")
        said = [str(event.data.exc) for event in events if event.info.name in _ERRORS]
        # What a macro refuses comes with the stack of macros below it.
        text = said[0].partition("\n\n> in macro")[0].strip() if said else "the operation reconcile.answer_proof failed"
        raise DataError(f"dbt refuses: {' '.join(text.split())}".rstrip(".") + ".")

    def _run(self, words: Sequence[str]) -> tuple[Any, list[Any]]:
        events: list[Any] = []

        def heard(event: Any) -> None:
            if event.info.name in ("JinjaLogDebug", *_ERRORS):
                events.append(event)

        with contextlib.redirect_stdout(self.out):
            done = invoke(["--quiet", "--no-use-colors", *words, *self.options], self.stop, None, heard)
        return done, events
