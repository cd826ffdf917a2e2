"""Files that are whole at every moment: what was there, or what is written; and their differences as a text."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from reconcile_jobs.process.errors import Fault, UsageError

__all__ = ["difference", "write"]


def write(files: Mapping[Path, str | None]) -> None:
    """Write each file as a whole, in UTF-8, and remove those of None. Raises UsageError and Fault.

    YAML comes before models: a model without YAML would end dbt's run, YAML without its model is only warned of.
    """
    for path in sorted(files, key=lambda path: (path.suffix == ".sql", path)):
        text = files[path]
        try:
            if text is None:
                path.unlink(missing_ok=True)
            else:
                _replace(path, text.encode("utf-8"))
        except PermissionError as problem:
            raise UsageError(
                f"{path} cannot be written ({problem.strerror}): give the job's user the right to."
            ) from None
        except (IsADirectoryError, NotADirectoryError, FileExistsError) as problem:
            raise UsageError(
                f"{path} cannot be written ({problem.strerror}): a directory is where the file would be, or a file "
                "where its directory would be; name another path."
            ) from None
        except (ValueError, RuntimeError) as problem:  # a NUL or half a character in a name, a link to itself
            raise UsageError(f"{str(path)!r} cannot be written ({problem}): name another path.") from None
        except OSError as problem:
            raise Fault(
                f"{path} cannot be written ({problem.strerror}); what was written before stays, and the same command "
                "goes on from there."
            ) from None


def _replace(path: Path, content: bytes) -> None:
    path = path.resolve()  # a link goes on being one
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_bytes(content)  # so does /dev/null, or a named pipe
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        mode = path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask()
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def difference(files: Mapping[Path, str | None], shown: Mapping[Path, str]) -> Iterator[str]:
    """Yield the lines of a unified difference between what is there and what would be."""
    for path in sorted(files):
        before = path.read_bytes().decode("utf-8", "replace") if path.exists() else None
        after = files[path]
        names = (
            f"a/{shown[path]}" if before is not None else "/dev/null",
            f"b/{shown[path]}" if after else "/dev/null",
        )
        for line in difflib.unified_diff(_lines(before), _lines(after), *names):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str | None) -> list[str]:
    # At line feeds alone: a name may have other characters that Python takes for the end of a line.
    return [line for line in (text or "").replace("\n", "\n\0").split("\0") if line]
