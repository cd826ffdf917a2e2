"""Numbers of things in sentences."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, noun: str) -> str:
    """Return `1 record` or `2,000 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
