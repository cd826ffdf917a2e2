"""What the jobs' command lines share: what is wrong with one is a sentence, and shows no value that may be a secret."""

from __future__ import annotations

import argparse
from typing import NoReturn

from reconcile_jobs.errors import UsageError

__all__ = ["Parser"]


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError: argparse writes to what spark-submit turns into its standard output."""

    def error(self, message: str) -> NoReturn:
        """Refuse, and name unknown arguments without their values."""
        what, colon, unknown = message.partition("unrecognized arguments: ")
        if colon:
            names = [word.partition("=")[0] for word in unknown.split() if word.startswith("-")]
            message = f"{what}{colon}{', '.join(names) or 'values without a name'}"
        raise UsageError(f"{message}; see `{self.prog} --help`.")
