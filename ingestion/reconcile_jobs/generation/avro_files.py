"""The headers of the Avro files below a path: of each schema of an object the newest file is read, and no other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from reconcile_jobs.datastream_files import names, reader
from reconcile_jobs.datastream_records import object_of_path
from reconcile_jobs.generation.avro_types import Header, header_of
from reconcile_jobs.generation.declarations import Declaration
from reconcile_jobs.generation.observations import Place
from reconcile_jobs.landing_area import landing_area
from reconcile_jobs.process.session import SKIP_NO_FILE, settings, ship_by_value

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["Listed", "headers_below", "newest_of_each_schema"]

# Datastream begins a file's name with the key of the schema, 40 hex digits.
_OF_SCHEMA = re.compile(r"/([0-9a-f]{40})_[^/]*$")


class Listed(NamedTuple):
    """A file as Spark lists it; `written`: when, in any order that rises."""

    path: str
    written: object


def newest_of_each_schema(files: Iterable[Listed]) -> list[str]:
    """Return the newest file of each object and schema key; each file whose name has no such key."""
    newest: dict[tuple[str | None, str], Listed] = {}
    for file in files:
        key = _OF_SCHEMA.search(file.path)
        group = (object_of_path(file.path), key[1]) if key else (None, file.path)
        before = newest.get(group)
        if before is None or (str(file.written), file.path) > (str(before.written), before.path):
            newest[group] = file
    return sorted(file.path for file in newest.values())


def headers_below(spark: SparkSession, path: str) -> list[Header]:
    """Return what the headers of the Avro files below a path say, [] where there are none. Raises UsageError."""
    pattern, _ = landing_area(spark, path)
    with settings(spark, SKIP_NO_FILE):
        files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").option("pathGlobFilter", "*.avro")
        listed = files.load(pattern).select("path", "modificationTime").collect()
        paths = newest_of_each_schema(Listed(row.path, row.modificationTime) for row in listed)
        if not paths:
            return []
        ship_by_value()
        contents = reader(spark, paths).format("binaryFile").load(names(paths)).select("content")
        rows = contents.mapInArrow(_headers, "header string").collect()
    return [from_text(row["header"]) for row in rows]


def _headers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        found = [header_of(content.as_py()) for content in batch.column("content")]
        texts = [as_text(header) for header in found if header is not None]
        yield pa.RecordBatch.from_pydict({"header": pa.array(texts, pa.string())})


def as_text(header: Header) -> str:
    """Return a header for `from_text`, in another process."""
    columns = {name: [of.data_type, of.encoding, of.witness] for name, of in header.columns.items()}
    return json.dumps([header.place, columns])


def from_text(text: str) -> Header:
    """Return what `as_text` wrote."""
    place, columns = json.loads(text)
    return Header(Place(*place), {name: Declaration(*of) for name, of in columns.items()})
