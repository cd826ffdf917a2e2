"""The Spark session of a job: refused where Delta is missing, silent, and the same whatever the cluster's defaults."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reconcile_jobs.errors import UsageError, explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["settings", "ship_by_value", "start"]


def start(name: str) -> SparkSession:
    """Start the session that spark-submit configured. Raises UsageError where that is no Delta session.

    Spark's own log falls silent: what a failure means, the job says itself.
    """
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    configured = SparkConf()
    # Under python rather than spark-submit, the configuration is not known before the session.
    if configured.contains("spark.submit.deployMode") and not _is_delta(configured.get):
        raise UsageError(_NO_DELTA)
    try:
        spark = SparkSession.builder.appName(name).getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        if not _is_delta(spark.conf.get):
            raise UsageError(_NO_DELTA)
    except Exception as problem:
        raise explained(problem) from problem
    return spark


def _is_delta(setting: Callable[[str, str], str | None]) -> bool:
    names = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog")
    return all("delta" in (setting(name, "") or "").lower() for name in names)


_NO_DELTA = (
    "Spark is not configured for Delta Lake: let SPARK_CONF_DIR point at the package's conf directory, "
    "as in `export SPARK_CONF_DIR=dbt_packages/reconcile/conf`."
)


def ship_by_value() -> None:
    """Let executors have this package's functions without having the package: what they run travels whole.

    What does not travel so: functions under functools.lru_cache.
    """
    from pyspark import cloudpickle

    for name, module in list(sys.modules.items()):
        if name == __package__ or name.startswith(f"{__package__}."):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


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
