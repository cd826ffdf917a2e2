"""Secrets: files that only their owner may read, and keys of digests from such a file or from the environment."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from reconcile_jobs.process.errors import UsageError

__all__ = ["read_key", "read_secret_file"]

# A key that somebody can try out would make every digest the value itself.
_SHORTEST_KEY = 32


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
        # Not `read_text`, which makes a line feed of each carriage return: a key or a password may have one.
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"{option} {path} cannot be read: {getattr(problem, 'strerror', None) or problem}.") from None


def read_key(file: str | None, option: str, variable: str, whose: str) -> bytes:
    """Return the key of keyed digests, from a file of mode 600 or from a variable of the environment.

    `option`: the one that names the file. `whose`: what needs the key, as a sentence begins with it. Raises UsageError,
    which does not show the key.
    """
    given = os.environ.get(variable)
    if file is not None and given:
        raise UsageError(f"There are two keys, in {variable} and in {option}: remove one of them.")
    key = read_secret_file(Path(file), option).strip() if file is not None else (given or "").strip()
    where = f"of {option} {file}" if file is not None else f"in {variable}"
    if not key and file is None:
        raise UsageError(
            f"{whose} needs a key, and there is none: set {variable}, or name a file of mode 600 with {option}. "
            "`openssl rand -hex 32` writes a key."
        )
    if len(key) < _SHORTEST_KEY:
        raise UsageError(
            f"The key {where} has {len(key)} characters, and needs {_SHORTEST_KEY} or more, so that nobody can try "
            "keys out: `openssl rand -hex 32` writes one."
        )
    return key.encode("utf-8", "surrogateescape")
