"""The account of the rounds in which something is killed and the same command follows, for whoever counts them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from file_formats import file_format

TARGET = Path(__file__).resolve().parents[1] / "target"


def note_rounds(name: str, rounds: int, places: Iterable[str] = ()) -> None:
    """Add a line to target/rounds-<format>.txt, with the places at which it was killed below it."""
    TARGET.mkdir(exist_ok=True)
    with (TARGET / f"rounds-{file_format()}.txt").open("a") as account:
        account.write("\n  ".join([f"{rounds:4} {name}", *places]) + "\n")
