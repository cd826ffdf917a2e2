"""`conf/spark-env.sh` fetches a jar from a registry, by the Ivy that Spark ships."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyspark
import pytest

CONF = Path(__file__).resolve().parents[2] / "conf"
JAR = "com.h2database:h2:2.3.232"


def fetch(directory: Path) -> subprocess.Popen[str]:
    """Start fetching `JAR` into a directory of jars."""
    return subprocess.Popen(
        ["bash", str(directory / "spark-env.sh")],
        env=os.environ
        | {"SPARK_HOME": str(Path(pyspark.__file__).parent), "RECONCILE_JARS": str(directory / "jars")}
        | {"RECONCILE_PACKAGES": ""},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    """A configuration of one small jar."""
    (tmp_path / "spark-env.sh").write_bytes((CONF / "spark-env.sh").read_bytes())
    (tmp_path / "packages").write_text(JAR + "\n")
    return tmp_path


pytestmark = pytest.mark.soak
FAILED = "could not be fetched"


def test_processes_that_start_at_once_all_have_the_jar(configuration: Path):
    said = [process.communicate()[1] for process in [fetch(configuration) for _ in range(3)]]
    if all(FAILED in one for one in said) and FAILED in fetch(configuration).communicate()[1]:
        pytest.skip("no registry of jars is reached from here")
    assert [one for one in said if FAILED in one] == []
    assert [path.name for path in (configuration / "jars").iterdir()] == ["h2-2.3.232.jar"]
