"""The Spark session of a job: refused without Delta or Iceberg, silent, the same whatever the cluster's defaults."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reconcile_jobs.process.errors import UsageError, explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "SKIP_NO_FILE",
    "configured_format",
    "list_in_few_tasks",
    "read_and_write_alike",
    "settings",
    "ship_by_value",
    "start",
]


def start(name: str, has_context: Callable[[], None] = lambda: None) -> SparkSession:
    """Start the session that spark-submit configured. Raises UsageError without Delta or Iceberg.

    Spark's own log falls silent: what a failure means, the job says itself. `has_context` is called in between.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    configured = SparkConf()
    # Under python rather than spark-submit, the configuration is not known before the session.
    if configured.contains("spark.submit.deployMode") and configured_format(configured.get) is None:
        raise UsageError(_NO_FORMAT)
    try:
        SparkContext.getOrCreate(SparkConf().setAppName(name))
        has_context()
        spark = SparkSession.builder.appName(name).getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        list_in_few_tasks(spark)
        read_and_write_alike(spark)
        if configured_format(spark.conf.get) is None:
            raise UsageError(_NO_FORMAT)
    except Exception as problem:
        raise explained(problem) from problem
    return spark


def read_and_write_alike(spark: SparkSession) -> None:
    """Let SQL, files and timestamps mean in this session what they mean by Spark's defaults, whatever a cluster's are.

    dbt's sessions are not the package's: macros/table_formats/check_session.sql refuses them with these settings.
    """
    for name, value in _ALIKE.items():
        spark.conf.set(name, value)
    for name in _OF_NO_JOB:
        spark.conf.unset(name)


def list_in_few_tasks(spark: SparkSession) -> None:
    """Let a task list many paths, unless the configuration says how many tasks there are to be.

    By default Spark lists each of up to 10,000 paths by a task of its own: four times for the files of an append.
    """
    name = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    if not spark.sparkContext.getConf().contains(name):
        spark.conf.set(name, str(max(32, 4 * spark.sparkContext.defaultParallelism)))


_NO_FORMAT = (
    "Spark is configured neither for Delta Lake nor for Iceberg: set SPARK_CONF_DIR to the package's conf "
    "directory, as in `export SPARK_CONF_DIR=dbt_packages/reconcile/conf`, or at conf/iceberg there."
)


def configured_format(setting: Callable[[str, str], str | None]) -> str | None:
    """Return the table format that a configuration gives to Spark's own catalog, delta or iceberg; None: neither."""
    catalog = (setting("spark.sql.catalog.spark_catalog", "") or "").lower()
    extensions = (setting("spark.sql.extensions", "") or "").lower()
    if "delta" in catalog and "delta" in extensions:
        return "delta"
    return "iceberg" if "iceberg" in catalog else None


def ship_by_value() -> None:
    """Let executors have this package's functions without having the package: what they run travels whole.

    What does not travel so: functions under functools.lru_cache.
    """
    from pyspark import cloudpickle

    package = sys.modules[__name__.partition(".")[0]]  # and all that is in it
    cloudpickle.register_pickle_by_value(package)  # type: ignore[no-untyped-call]


# A cluster's defaults may skip files that are gone or cannot be read; their rows would be missing in silence.
SKIP_NO_FILE = {"spark.sql.files.ignoreCorruptFiles": "false", "spark.sql.files.ignoreMissingFiles": "false"}

# With milliseconds, Delta's tables would lose what is behind them in silence, and with the calendar of before 1582 the
# days that it does not have.
_ALIKE = {
    **SKIP_NO_FILE,
    "spark.sql.caseSensitive": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
# With these, Iceberg writes rows that nobody reads. An append gives its own id, for the time that it takes.
_OF_NO_JOB = ("spark.wap.branch", "spark.wap.id")


@contextmanager
def settings(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    """Set configuration for a while, and put back what was there."""
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
