"""Values that are looked for in every file of a directory, decoded: Parquet, Avro, gzip, JSON, and raw bytes."""

from __future__ import annotations

import gzip
import io
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq

__all__ = ["files_with", "files_with_numbers"]


def files_with(canaries: Iterable[str], *directories: Path) -> dict[str, set[str]]:
    """Return for each canary the files that have it, none of which is left out by the name's beginning."""
    found: dict[str, set[str]] = {canary: set() for canary in canaries}
    number = 0
    for file in files_below(*directories):
        number += 1
        text = "\n".join(texts_of(file))
        for canary, files in found.items():
            if canary in text:
                files.add(str(file))
    assert number, "no file was searched"
    return found


def files_with_numbers(numbers: Iterable[int], *directories: Path) -> dict[int, set[str]]:
    """Return for each whole number the files that have it, as text or as eight bytes."""
    forms = {number: (str(number), struct.pack("<q", number).decode("latin-1")) for number in numbers}
    found = files_with([form for each in forms.values() for form in each], *directories)
    return {number: set().union(*(found[form] for form in each)) for number, each in forms.items()}


def files_below(*directories: Path) -> Iterator[Path]:
    """Yield all files."""
    for directory in directories:
        yield from sorted(file for file in directory.rglob("*") if file.is_file())


def texts_of(file: Path) -> Iterator[str]:
    """Yield what a file holds: its bytes, and what they say where they are encoded."""
    content = file.read_bytes()
    yield content.decode("latin-1")
    if content[:4] == b"PAR1":
        yield from _parquet(content)
    if content[:4] == b"Obj\x01":
        for record in fastavro.reader(io.BytesIO(content)):
            yield from _values(record)
    if content[:2] == b"\x1f\x8b":
        yield gzip.decompress(content).decode("latin-1")


def _parquet(content: bytes) -> Iterator[str]:
    file = pq.ParquetFile(io.BytesIO(content))
    yield str(file.schema_arrow.metadata)
    for group in range(file.metadata.num_row_groups):
        for column in range(file.metadata.num_columns):
            chunk = file.metadata.row_group(group).column(column)
            if chunk.statistics is not None and chunk.statistics.has_min_max:
                yield from _values([chunk.statistics.min_raw, chunk.statistics.max_raw, chunk.statistics.min])
    # Rows, of those also that a deletion vector hides; and dictionaries, which may have more than the rows.
    for column in file.read().columns:
        yield from _values(column.to_pylist())
    strings = [
        field.name for field in file.schema_arrow if str(field.type) in ("string", "large_string", "binary")
    ]  # fmt: skip
    for column in pq.read_table(io.BytesIO(content), columns=strings, read_dictionary=strings).columns:
        for chunk in column.chunks:
            if hasattr(chunk, "dictionary"):
                yield from _values(chunk.dictionary.to_pylist())


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _values(name)
            yield from _values(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _values(each)
    elif isinstance(value, bytes):
        yield value.decode("latin-1")
    elif value is not None:
        yield str(value)
