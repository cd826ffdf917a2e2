"""Files in any of Hadoop's file systems, as Spark's driver reaches them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["hadoop_path", "read_text"]


def hadoop_path(spark: SparkSession, *parts: str) -> Any:
    """Return a path of any of Hadoop's file systems."""
    return spark._jvm.org.apache.hadoop.fs.Path(*parts)  # type: ignore[union-attr]


def read_text(spark: SparkSession, path: Any) -> str:
    """Return the text of a small file, given as a Hadoop Path, in any of Hadoop's file systems."""
    stream = path.getFileSystem(spark._jsc.hadoopConfiguration()).open(path)
    try:
        content: bytes = bytes(spark._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))  # type: ignore[union-attr]
        return content.decode()
    finally:
        stream.close()
