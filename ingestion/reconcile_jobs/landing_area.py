"""Where Datastream's files land: the path that a job names, the files of a micro-batch, and what lies hidden there."""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from reconcile_jobs.hadoop_files import hadoop_path, read_text
from reconcile_jobs.process.errors import UsageError, explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "HiddenFiles",
    "broken_links",
    "encoding_of_names",
    "escaped",
    "files_of_batch",
    "is_hidden",
    "landing_area",
    "lies_open_below",
    "local_tops",
]


def landing_area(spark: SparkSession, path: str) -> tuple[str, str]:
    """Return the path as a pattern for Spark, and as its full name. Raises UsageError where nothing is there."""
    try:
        at = hadoop_path(spark, path)
        files = at.getFileSystem(spark._jsc.hadoopConfiguration())
        full = str(files.makeQualified(at).toString())
        if files.exists(at):
            return escaped(full), full
        if files.globStatus(at):
            return full, full
    except Exception as problem:
        raise explained(problem) from problem
    raise UsageError(f"There is nothing at {path}: name a directory, a file or a pattern that exists with --path.")


def lies_open_below(path: str, directory: str) -> bool:
    """Return whether a path lies in a directory, and none of the names in between hides it from Spark."""
    path, directory = (re.sub(r"^(\w+):/+", r"\1:/", one).rstrip("/") + "/" for one in (path, directory))
    return path.startswith(directory) and not any(map(is_hidden, path.removeprefix(directory).split("/")))


def escaped(path: str) -> str:
    """Return a path as the pattern that only this path meets."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def files_of_batch(spark: SparkSession, checkpoint: str, epoch: int) -> list[str]:
    """Return the files of a micro-batch, as the checkpoint has them.

    The micro-batch itself leaves out files that have vanished, and does not say which it holds.
    """
    last = _log_offset(spark, checkpoint, epoch)
    first = (_log_offset(spark, checkpoint, epoch - 1) if epoch else -1) + 1
    wanted = range(first, last + 1)
    found: dict[str, None] = {}
    for number in wanted:
        at = hadoop_path(spark, checkpoint, f"sources/0/{number}")
        files = at.getFileSystem(spark._jsc.hadoopConfiguration())
        if not files.exists(at):
            at = hadoop_path(spark, checkpoint, f"sources/0/{number}.compact")
        for line in read_text(spark, at).split("\n")[1:]:
            if not line:
                continue
            entry = json.loads(line)
            if entry["batchId"] == number:
                parts = urlsplit(entry["path"])
                location = f"{parts.scheme}://{parts.netloc}" if parts.netloc else f"{parts.scheme}:"
                found[location + unquote(parts.path)] = None
    return list(found)


def _log_offset(spark: SparkSession, checkpoint: str, epoch: int) -> int:
    offsets = read_text(spark, hadoop_path(spark, checkpoint, f"offsets/{epoch}"))
    return int(json.loads(offsets.split("\n")[2])["logOffset"])


# --- what Spark leaves out without a word ---


# As Spark has it in HadoopFSUtils.shouldFilterOutPathName and PartitioningAwareFileIndex.isDataPath.
_HIDDEN = re.compile(r"\.|_(?!.*=)|.*\._COPYING_\Z", re.DOTALL)
_LISTED = re.compile("_metadata|_common_metadata")


def is_hidden(name: str) -> bool:
    """Return whether Spark reads no file of this name; a few of such names it lists all the same."""
    return _HIDDEN.match(name) is not None


def hidden(spark: SparkSession, pattern: str) -> list[str]:
    """Return the files and directories below a pattern that Spark does not list, but not what lies below them."""
    jvm: Any = spark._jvm
    gateway: Any = spark._sc._gateway
    # As `hadoop fs -find` does it: in Java, since Python would take a millisecond for each file.
    find = jvm.org.apache.hadoop.fs.shell.find.Find()
    find.setConf(spark._jsc.hadoopConfiguration())
    found, stderr = jvm.java.io.ByteArrayOutputStream(), jvm.java.io.ByteArrayOutputStream()
    for name, stream in (("out", found), ("err", stderr)):
        find.getClass().getField(name).set(find, jvm.java.io.PrintStream(stream, True, "UTF-8"))
    words = [pattern, "-name", "{.*,_*,*._COPYING_}", "-print0"]
    given = gateway.new_array(jvm.java.lang.String, len(words))
    for number, word in enumerate(words):
        given[number] = word
    find.run(given)
    tops: list[str] = []
    for path in sorted(filter(None, found.toString("UTF-8").split("\0")), key=lambda path: path.split("/")):
        name = path.rsplit("/", 1)[-1]
        is_below = path.count("/") > pattern.count("/")  # what the pattern itself names is listed
        if is_below and is_hidden(name) and not _LISTED.match(name) and not (tops and path.startswith(f"{tops[-1]}/")):
            tops.append(path)
    return tops


class HiddenFiles:
    """A search for what lies hidden below a pattern, beside a run, which a large landing area does not keep waiting."""

    # A run that comes again and again does not begin another one beside it.
    _latest: threading.Thread | None = None

    def __init__(self, spark: SparkSession, pattern: str) -> None:
        self._found: list[str] | None = None
        if HiddenFiles._latest is not None and HiddenFiles._latest.is_alive():
            self._search = HiddenFiles._latest
            return
        self._search = HiddenFiles._latest = threading.Thread(target=self._look, args=(spark, pattern), daemon=True)
        self._search.start()

    def _look(self, spark: SparkSession, pattern: str) -> None:
        # What keeps it from listing keeps the run from listing, which then says so.
        with contextlib.suppress(Exception):
            self._found = hidden(spark, pattern)

    def found(self, seconds: float) -> list[str] | None:
        """Return what was found, None if that is not known after so many seconds."""
        self._search.join(seconds)
        return self._found


# --- what only local directories have ---


def local_tops(spark: SparkSession, pattern: str) -> list[str]:
    """Return the local files and directories that a pattern names, none where it names others."""
    at = hadoop_path(spark, pattern)
    found = at.getFileSystem(spark._jsc.hadoopConfiguration()).globStatus(at) or []
    tops = [str(status.getPath().toString()) for status in found]
    return [top.removeprefix("file:") for top in tops if top.startswith("file:")]


def encoding_of_names(spark: SparkSession) -> str:
    """Return the encoding in which Java reads the names of local files."""
    return str(spark._jvm.java.lang.System.getProperty("sun.jnu.encoding"))  # type: ignore[union-attr]


def broken_links(tops: Iterable[str], encoding: str) -> list[str]:
    """Return the local links that lead nowhere, which Spark leaves out without a word.

    Raises UsageError for a name that Java does not see, which Spark would leave out as well, and for a link to a
    directory above itself, below which Spark would list without end.
    """
    # Each directory with the real names of those that it was reached through, itself the last.
    pending: list[tuple[str, tuple[str, ...]]]
    pending = [(top, (os.path.realpath(top),)) for top in tops if Path(top).is_dir()]
    broken = []
    reached: Counter[str] = Counter()
    while pending:
        directory, above = pending.pop()
        for entry in _entries(directory):
            _check_name(entry, encoding)
            if is_hidden(entry.name):
                continue
            if entry.is_symlink() and not Path(entry.path).exists():
                broken.append(entry.path)
            elif entry.is_dir():
                # Without the links above, this is a name below a name.
                real = os.path.realpath(entry.path) if entry.is_symlink() else f"{above[-1].rstrip('/')}/{entry.name}"
                reached[real] += 1
                if reached[real] > _MOST_WAYS:
                    raise UsageError(
                        f"{entry.path} is one of more than {_MOST_WAYS:,} ways to the directory {real}, by links, so "
                        "listing them all may never end: remove links, or name the files by a pattern in --path."
                    )
                if entry.is_symlink() and any(f"{one}/".startswith(f"{real.rstrip('/')}/") for one in above):
                    raise UsageError(
                        f"{entry.path} is a link to {real}, a directory above it, so listing it would never end: "
                        "remove the link, or name the other files by a pattern in --path."
                    )
                pending.append((entry.path, (*above, real)))
    return sorted(broken)


# Each link to a directory doubles what is listed below it, if another one leads there too.
_MOST_WAYS = 1000


def _entries(directory: str) -> list[os.DirEntry[str]]:
    # What may not be listed here Spark may not list either, which then says so.
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []


def _check_name(entry: os.DirEntry[str], encoding: str) -> None:
    if encoding.upper() == "UTF-8":
        return
    try:
        entry.name.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        raise UsageError(
            f"Java reads file names as {encoding} here, and cannot see {entry.path}: "
            "set the environment variable LC_ALL to C.UTF-8, or to a language's UTF-8, and run this again."
        ) from None
