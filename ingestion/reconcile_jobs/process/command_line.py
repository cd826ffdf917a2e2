"""What the jobs' command lines share: what is wrong with one is a sentence, and shows no value that may be a secret."""

from __future__ import annotations

import argparse
import re
from difflib import get_close_matches
from typing import Any, NoReturn

from reconcile_jobs.process.errors import UsageError

__all__ = ["Parser", "in_seconds", "interval", "seconds_of"]

_SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600}
_LONGEST = 100 * 366 * 86400  # seconds


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError: argparse writes to what spark-submit turns into its standard output."""

    def __init__(self, **given: Any) -> None:
        # Longer texts keep their lines.
        super().__init__(**{"formatter_class": argparse.RawDescriptionHelpFormatter} | given)
        self._words: list[str] = []
        for name in (None, "store"):
            self.register("action", name, _Once)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse here what this parser does not know: the parser of all commands does not know the options of one."""
        self._words = [str(word) for word in args or []]
        known, unknown = super().parse_known_args(args, namespace)
        if unknown and self._subparsers is None:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        """Refuse, and name unknown arguments without their values."""
        what, colon, unknown = message.partition("unrecognized arguments: ")
        if colon:
            names = [word.partition("=")[0] for word in unknown.split() if re.match(r"--[A-Za-z]|-[A-Za-z]\Z", word)]
            message = f"{what}{colon}{', '.join(names) or 'values without a name'}"
        # Of a misspelt option that is required, argparse says only that the right one is missing.
        if (colon or "arguments are required" in message) and (meant := self._meant()):
            message = f"{message}; {meant}"
        message = re.sub(r"(ambiguous option: [^\s=]+)=.* could match", r"\1 could match", message, flags=re.DOTALL)
        message = re.sub(r"ignored explicit argument .*", "it takes no value", message, flags=re.DOTALL)
        raise UsageError(f"{message}; see `{self.prog} --help`.")

    def _meant(self) -> str:
        """Return which options were probably meant by those that do not exist, or nothing."""
        actions = self._option_string_actions.items()
        options = [name for name, how in actions if name.startswith("--") and how.help != argparse.SUPPRESS]
        given = [word.partition("=")[0] for word in self._words if re.match(r"--[A-Za-z]", word)]
        unknown = [word for word in given if not any(name.startswith(word) for name in options)]
        close = {word: get_close_matches(word, options, n=1, cutoff=0.8) for word in unknown}
        return ", ".join(f"for {word} write {names[0]}" for word, names in close.items() if names)


class _Once(argparse._StoreAction):
    """An option with one value. argparse takes the last of several, and the others would be lost in silence.

    An empty value is what a shell makes of a variable that is not set. It is refused, unless it is the default.
    """

    is_given = False

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if self.is_given:
            raise argparse.ArgumentError(self, "it is given twice, and has one value; leave one out")
        if values == "" and self.default != "":
            raise argparse.ArgumentError(self, "it is empty; name a value, or leave the option out")
        self.is_given = True
        super().__call__(parser, namespace, values, option_string)


def interval(text: str) -> str:
    """Return a length of time, given as 30s, 5m or 1h, as Spark takes it: 30 seconds. For argparse's `type`."""
    found = re.fullmatch(r"([0-9]{1,12})\s*([smh])", text)
    if not found or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text[:40]} is not an interval; write 30s, 5m or 1h")
    unit = next(unit for unit in _SECONDS if unit[0] == found[2])
    if int(found[1]) * _SECONDS[unit] > _LONGEST:
        raise argparse.ArgumentTypeError(f"{text} is longer than 100 years; write 30s, 5m or 1h")
    return f"{found[1]} {unit}"


def in_seconds(every: str | float | None) -> float | None:
    """Return what `interval` or `seconds_of` gave as a number of seconds; None of none."""
    if not isinstance(every, str):
        return every
    number, unit = every.split()
    return int(number) * _SECONDS[unit]


def seconds_of(text: str) -> int:
    """Return the same as a number of seconds."""
    seconds = in_seconds(interval(text))
    assert seconds is not None
    return int(seconds)
