"""Numbers of things in sentences."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["counted", "first_of"]


def counted(number: int, noun: str) -> str:
    """Return `1 record` or `2,000 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_of(names: Sequence[str], most: int) -> str:
    """Return all names, or the first ones and how many are left out: `a, b and 2,000 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")
