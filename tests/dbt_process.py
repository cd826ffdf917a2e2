"""dbt in a process of its own, as users run it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SECONDS = 600


def dbt(root: Path, environment: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    """Start dbt in the project at `root`; its outputs are one pipe."""
    return subprocess.Popen(
        [sys.executable, "-m", "dbt.cli.main", "--quiet", "--no-use-colors", *arguments, "--profiles-dir", "."],
        cwd=root,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def outcome(started: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for it, and return its exit code and what it said."""
    try:
        said, _ = started.communicate(timeout=SECONDS)
    finally:
        started.kill()
    return started.returncode, said
