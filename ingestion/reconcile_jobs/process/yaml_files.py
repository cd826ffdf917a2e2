"""Small files of YAML that people write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reconcile_jobs.process.errors import UsageError

__all__ = ["read_yaml"]


def read_yaml(file: str, option: str) -> Any:
    """Return what a file says. `option`: the option that names the file, for messages. Raises UsageError."""
    # Only where there is such a file: a job without one needs no YAML.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(Path(file).read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        why = "it is not UTF-8"
    except RecursionError:
        why = "its lists lie one in another too many times"
    # A day that does not exist, or a number of more than 4,300 digits, is a ValueError.
    except (OSError, YAMLError, ValueError) as problem:
        said = (getattr(problem, name, None) for name in ("strerror", "problem", "reason"))
        why = next(filter(None, said), None) or str(problem)
    raise UsageError(f"{option} {file} cannot be read: {why}.")
