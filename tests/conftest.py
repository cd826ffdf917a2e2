"""What the tests share: one Spark session for each worker, configured as users' are, by conf/ or one of its kin."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import file_formats
import hypothesis
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# JDBC drivers, for snapshots of real databases.
os.environ["RECONCILE_PACKAGES"] = (Path(__file__).parent / "packages").read_text()
os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
# How long an example takes says more of what else the machine does than of the code.
hypothesis.settings.register_profile("house", deadline=None)
hypothesis.settings.load_profile("house")
# The Makefile's profiles are the demo's; each project of a test has its own.
os.environ.pop("DBT_PROFILES_DIR", None)
# On two cores compiling thoroughly costs a process of a minute more than it gains. Spark's scripts read this variable.
LONG_LIVED = "-XX:ReservedCodeCacheSize=512m -XX:+UseParallelGC"
os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:TieredStopAtLevel=1 {LONG_LIVED}"
# A server that stops while it is read from is what some tests are about: gRPC need not tell.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
# Starting Spark takes half as long with the classes that `make test` writes down: tests/java/bin/java.
os.environ.setdefault("TESTED_JAVA", f"{os.environ['JAVA_HOME']}/bin/java" if "JAVA_HOME" in os.environ else "java")
os.environ["JAVA_HOME"] = str(Path(__file__).parent / "java")


def pytest_addoption(parser: pytest.Parser) -> None:
    """A run has tables of one format."""
    parser.addoption("--file-format", choices=list(file_formats.CONFIGURATIONS), default="delta")
    parser.addoption("--accept-goldens", action="store_true", help="write tests/sql anew: `make golden`")
    parser.addoption("--minutes", type=float, metavar="N", help="begin no test after N minutes, and name what is left")


TIME_WAS_OVER = "no time was left"
BEGAN = time.monotonic()


def pytest_configure(config: pytest.Config) -> None:
    """Choose the format before a test module asks for it."""
    file_formats.choose(config.getoption("--file-format"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin no test, nor what its fixtures prepare, when time is over."""
    minutes = item.config.getoption("--minutes")
    if minutes is not None and time.monotonic() > BEGAN + 60 * minutes:
        pytest.skip(TIME_WAS_OVER)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name the files of which tests did not run since time was over."""
    skipped = terminalreporter.stats.get("skipped", [])
    left = Counter(report.nodeid.split("::")[0] for report in skipped if TIME_WAS_OVER in str(report.longrepr))
    if left:
        told = ", ".join(f"{path} ({count})" for path, count in left.items())
        minutes = config.getoption("--minutes")
        terminalreporter.write_line(f"{minutes:g} minutes were over: {left.total()} tests did not run: {told}")


@pytest.fixture(scope="session")
def file_format() -> str:
    """The format of the run's tables."""
    return file_formats.file_format()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the kills: at the end, they would keep one worker busy alone."""
    items.sort(key=lambda item: "kills" not in item.nodeid)


@pytest.fixture(scope="session")
def accept_goldens(request: pytest.FixtureRequest) -> bool:
    """Whether what is rendered now becomes the golden SQL."""
    return bool(request.config.getoption("--accept-goldens"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all tests of a worker; its lakehouse/ lies in a temporary directory.

    RECONCILE_SESSION: a directory in its place, which stays, so that a test can go on where it was stopped.
    """
    # Tests without Spark do not wait for its import.
    from process import mortal_files
    from pyspark.sql import SparkSession

    # The JVM keeps the directory in which it was started.
    kept = os.environ.get("RECONCILE_SESSION")
    directory = Path(kept).absolute() if kept else tmp_path_factory.mktemp("session")
    directory.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(directory), pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", LONG_LIVED)
        # As in the session of a job, and fewer: else each VACUUM has thousands of tasks.
        few = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "4"}
        session = SparkSession.builder.config(map=mortal_files.SETTINGS | few).getOrCreate()
    yield session
    session.stop()
