"""The file of keys that are to be erased. No message about it shows a value."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reconcile_jobs.keyed_records import Key, KeyColumn
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.process.secret_files import read_secret_file

__all__ = ["KeysFile", "keys_of_file", "read_keys_file"]

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True)
class KeysFile:
    """The columns that the first line names, and the rows, each with the number of its line."""

    path: str
    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...] = field(repr=False)


def read_keys_file(path: str) -> KeysFile:
    """Return the rows of a CSV file of mode 600. Raises UsageError."""
    text = read_secret_file(Path(path), "--keys").removeprefix("\ufeff")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    found: list[tuple[int, tuple[str, ...]]] = []
    try:
        columns = tuple(next(reader, ()))
        found = [(reader.line_num, tuple(row)) for row in reader if row]
    except csv.Error:
        raise UsageError(f"--keys {path}: line {reader.line_num} is no line of CSV: correct it.") from None
    if not columns or not all(columns):
        raise UsageError(f"--keys {path} has no header: write the names of the key's columns into its first line.")
    if len({name.lower() for name in columns}) < len(columns):
        raise UsageError(f"--keys {path} names a column twice in its first line: remove one.")
    if not found:
        raise UsageError(f"--keys {path} has no key below its header: add one line for each key.")
    for line, row in found:
        if len(row) != len(columns):
            raise UsageError(
                f"--keys {path}: line {line} has {len(row)} values, and the header {len(columns)} columns: correct it."
            )
        if not all(row):
            raise UsageError(f"--keys {path}: line {line} has an empty value, and no key is empty: correct it.")
    return KeysFile(path, columns, tuple(found))


def keys_of_file(file: KeysFile, columns: Sequence[KeyColumn]) -> tuple[Key, ...]:
    """Return the keys in the order of the columns, each once. `columns`: those of the file. Raises UsageError."""
    places = [file.columns.index(column.name) for column in columns]
    keys: dict[Key, None] = {}
    for line, row in file.rows:
        key = []
        for column, place in zip(columns, places, strict=True):
            text = column.text(row[place])
            if text is None or (column.is_number and not _NUMBER.fullmatch(text)):
                raise UsageError(
                    f"--keys {file.path}: line {line} has no number in the column {column.name}, which the models "
                    "declare as one: correct it."
                )
            if column.is_number and "E" in row[place].upper():
                raise UsageError(
                    f"--keys {file.path}: line {line} has a number with an exponent in the column {column.name}: write "
                    "all its digits, since a program that shortens numbers may have left some out."
                )
            key.append(text)
        keys[tuple(key)] = None
    return tuple(keys)
