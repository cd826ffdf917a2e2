"""Files with secrets, which only their owner may read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from reconcile_jobs.process.errors import UsageError

__all__ = ["read_secret_file"]


def read_secret_file(path: Path, option: str) -> str:
    """Return the text of a file that only the job's user, or root, may read and change.

    `option`: the option that names the file, for messages. Raises UsageError, which shows nothing of the text.
    """
    try:
        status = path.stat()
        mode = stat.S_IMODE(status.st_mode)
        if status.st_uid not in (os.geteuid(), 0):
            raise UsageError(f"{path} belongs to another user, who may change it: change its owner to the job's user.")
        if mode & 0o077:
            raise UsageError(f"Other users may read {path}, which has mode {mode:o}: run chmod 600 on it.")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"{option} {path} cannot be read: {getattr(problem, 'strerror', None) or problem}.") from None
