"""What the tests share: one Spark session for each worker, configured by conf/ as users' sessions are."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

os.environ["SPARK_CONF_DIR"] = str(Path(__file__).resolve().parents[1] / "conf")
os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
# The Makefile's profiles are the demo's; each project of a test has its own.
os.environ.pop("DBT_PROFILES_DIR", None)
# On two cores compiling thoroughly costs tests more than it gains. Spark's scripts read this variable.
os.environ["SPARK_SUBMIT_OPTS"] = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:+UseParallelGC"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the kills: at the end, they would keep one worker busy alone."""
    items.sort(key=lambda item: "kills" not in item.nodeid)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all tests of a worker; its lakehouse/ lies in a temporary directory."""
    # The JVM keeps the directory in which it was started.
    with contextlib.chdir(tmp_path_factory.mktemp("session")):
        session = SparkSession.builder.getOrCreate()
    yield session
    session.stop()
