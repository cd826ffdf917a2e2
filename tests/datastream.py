"""Datastream's events as its documentation shapes them, staged as the ingestion stages them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from file_formats import file_format
from pyspark.sql import DataFrame, SparkSession

READ_METHODS = {  # of a source's changes and of its backfill rows
    "oracle": ("oracle-cdc-logminer", "oracle-backfill"),
    "mysql": ("mysql-cdc-binlog", "mysql-backfill-fulldump"),
    "postgresql": ("postgres-cdc-wal", "postgresql-backfill"),
    "sqlserver": ("sqlserver-cdc", "sqlserver-backfill"),
}

_METADATA = {
    "oracle": {"log_file": "", "scn": 15869128507100, "row_id": "AAAPwRAALAAM329A20", "database": "DB1",
               "schema": "SHOP", "tx_id": "17663", "rs_id": "0x0073cb.0000194d.0020", "ssn": 0},
    "mysql": {"log_file": "mysql-bin.999990", "log_position": 156500, "primary_keys": ["id"], "database": "shop"},
    "postgresql": {"schema": "shop", "tx_id": "17646", "lsn": "0/2326350", "primary_keys": ["id"]},
    "sqlserver": {"database": 7, "schema": ["shop"], "lsn": "00000000:00023849:00a8", "tx_id": "18145",
                  "physical_location": [1, 4546, 8], "replication_index": ["id"]},
}  # fmt: skip

_numbers = itertools.count()


def in_base64(columns: Mapping[str, str]) -> dict[str, Any]:
    """Return columns as a model declares them whose records have bytes in base64."""
    declared = {"data_type": "binary", "config": {"meta": {"encoding": "base64"}}}
    return {name: declared if type_ == "binary" else type_ for name, type_ in columns.items()}


def event(
    source: str,
    payload: Mapping[str, Any] | str | None,
    change_type: str = "INSERT",
    *,
    metadata: Mapping[str, Any] | None = None,
    without: Iterable[str] = (),
    **envelope: Any,
) -> str:
    """Return one event as a line of JSON.

    A `payload` of text is JSON as it stands, for digits that Python would not keep. `metadata` and `envelope` replace
    fields of their parts; `without` names fields of either that are left out.
    """
    fields = {
        "stream_name": f"projects/p/locations/l/streams/{source}-shop",
        "read_method": READ_METHODS[source][0],
        "object": "shop.things",
        "uuid": f"00000000-0000-0000-0000-{next(_numbers):012}",
        "read_timestamp": "2026-11-21T11:34:06.415Z",
        "source_timestamp": "2026-11-21T11:33:12Z",
        "source_metadata": {
            name: value
            for name, value in {
                **_METADATA[source],
                "is_deleted": change_type in ("DELETE", "UPDATE-DELETE"),
                "change_type": change_type,
                **(metadata or {}),
            }.items()
            if name not in without
        },
        **envelope,
    }
    text = json.dumps({name: value for name, value in fields.items() if name not in without}, ensure_ascii=False)
    if "payload" in without:
        return text
    return (
        f'{text[:-1]}, "payload": {payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)}}}'
    )


class Staged(NamedTuple):
    """One row of a staging table."""

    record: str
    object: str
    batch: int
    origin: str = "a file"
    source: str = "datastream"


# Through Arrow no Python process is needed beside Spark.
_STAGED = pa.schema([(name, pa.int64() if name == "batch" else pa.string()) for name in Staged._fields])


def frame_of(spark: SparkSession, rows: Iterable[Staged]) -> DataFrame:
    """Return rows as a frame."""
    return spark.createDataFrame(pa.Table.from_pylist([row._asdict() for row in rows], _STAGED))


def stage(spark: SparkSession, table: str, rows: Iterable[Staged]) -> None:
    """Append rows to a staging table, which is created if need be."""
    (
        frame_of(spark, rows)
        .selectExpr("record", "source", "object", "origin", "batch", "current_timestamp() as appended_at")
        .coalesce(1)
        .write.format(file_format())
        .mode("append")
        .partitionBy("object")
        .saveAsTable(table)
    )
