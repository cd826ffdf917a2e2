"""The wheel: what an empty environment has of it, how soon it answers, and that executors need nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest
from avro_files import avro_file, record
from cluster.spark_cluster import SECONDS, Cluster
from projects import PACKAGE

pytestmark = pytest.mark.soak

COMMANDS = ["append", "erase", "generate", "maintain", "metastore", "parity", "report", "run_dbt", "snapshot", "status"]
# Seconds. An answer takes a tenth of it; what imports Spark or a client of Google's takes longer than this.
SOON = 2.0
# An executor's Python writes down that it has run, and what it was asked for.
NOTED = """
import os, sys
with open({file!r}, "a") as noted:
    noted.write(" ".join(sys.orig_argv) + chr(10))
"""


class Installed:
    """An environment that has the wheel and some of its extras, and nothing else."""

    def __init__(self, root: Path, *extras: str) -> None:
        self.root, self.noted = root, root / "noted"
        wheels, built = root / "wheels", root / "built"
        # setuptools writes beside what it builds, and takes what an earlier build has left there.
        shutil.copytree(PACKAGE / "ingestion", built / "ingestion", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(PACKAGE / name, built)
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(built)], check=True)
        (self.wheel,) = wheels.iterdir()
        subprocess.run([sys.executable, "-m", "venv", str(root / "venv")], check=True)
        self.python = root / "venv" / "bin" / "python"
        wanted = f"{self.wheel}[{','.join(extras)}]" if extras else str(self.wheel)
        subprocess.run([*pip, "--python", str(self.python), "install", wanted], check=True)
        (self.packages,) = (root / "venv" / "lib").glob("python*/site-packages")
        (self.packages / "sitecustomize.py").write_text(NOTED.format(file=str(self.noted)))

    def names(self) -> set[str]:
        """Return what is installed."""
        asks = "from importlib.metadata import distributions as d; print(*{one.name.lower() for one in d()})"
        return {*subprocess.run([self.python, "-c", asks], capture_output=True, text=True, check=True).stdout.split()}

    def says(self, *words: str) -> tuple[int, str, float]:
        """Run the package's command; return exit code, output and seconds."""
        started = time.monotonic()
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SPARK"))}
        command = [str(self.python.with_name("dbt-reconcile")), *words]
        environment["PATH"] = "/usr/bin:/bin"
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=self.root)
        return ended.returncode, ended.stdout + ended.stderr, time.monotonic() - started


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="module")
def with_avro(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("with_avro"), "datastream")


def test_an_empty_environment_gets_neither_spark_nor_dbt_nor_great_expectations(bare: Installed) -> None:
    of_pandas = {"numpy", "python-dateutil", "six", "tzdata"}
    assert bare.names() - {"pip", "setuptools"} - of_pandas == {"dbt-reconcile", "pyarrow", "pandas"}


@pytest.mark.parametrize("words", [["append", source] for source in ("datastream", "spanner", "bigtable")] + [
    [], *([command] for command in COMMANDS), ["generate", "datastream"], ["snapshot", "jdbc"],
], ids=" ".join)  # fmt: skip
def test_help_is_there_at_once(bare: Installed, words: list[str]) -> None:
    # The first start of a Python writes its byte code.
    attempts = [bare.says(*words, "--help") for _ in range(2)]
    code, said, seconds = min(attempts, key=lambda attempt: attempt[2])
    assert (code, said.startswith("usage: ")) == (0, True), said
    assert seconds < SOON, f"{seconds:.2f} s"
    if not words:
        assert [command for command in COMMANDS if f"  {command} " not in said] == []


def test_what_is_missing_is_one_sentence(bare: Installed) -> None:
    code, said, _ = bare.says("append", "datastream", "--path", "x", "--staging", "lake.changes")
    assert code == 2
    assert said == (
        "dbt-reconcile: spark-submit is not on PATH: put the bin directory of a Spark there, or install "
        "dbt-reconcile[spark].\n"
    )
    code, said, _ = bare.says("appned", "datastream")
    assert (code, said.startswith("dbt-reconcile: a command is missing: one of append, ")) == (2, True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), shared=False) as started:
        yield started


RECORDS = [{"object": "SHOP.A", "n": number} for number in range(40)]


def test_a_cluster_appends_with_the_wheel_and_its_extra_alone(cluster: Cluster, with_avro: Installed) -> None:
    assert not with_avro.names() & {"pyspark", "dbt-core", "dbt-spark", "great-expectations", "jinja2"}
    landing = cluster.root / "landing"
    landing.mkdir()
    (landing / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in RECORDS))
    (landing / "b.avro").write_bytes(avro_file(record("e", object="string", n="long"), *RECORDS[:25]))
    # The job's code comes from the environment, not from this repository.
    program = with_avro.packages / "reconcile_commands" / "append.py"
    words = ["datastream", "--path", str(landing), "--staging", "lake.changes"]
    with_python = ["--conf", f"spark.pyspark.python={with_avro.python}"]
    assert cluster.submit("append", with_python, program, *words).wait(SECONDS) == 0, said(cluster)
    result = json.loads(next(line for line in said(cluster).splitlines() if line.startswith("{")))
    assert (result["records"], result["files"], result["unreadable"]) == (65, 2, 0)
    asked = with_avro.noted.read_text().splitlines()
    assert any("pyspark.daemon" in line for line in asked), "the executors' Python is that of the environment"
    assert any("append.py" in line for line in asked), "and so is the driver's"
    files = (cluster.root / "lakehouse").rglob("*.parquet")
    staged = [row for file in files if "changes" in file.parts for row in pyarrow.parquet.read_table(file).to_pylist()]
    # The column `object` is in the files of one version of Delta, and in the names of directories of another.
    told = [json.dumps(json.loads(row["record"])) for row in staged]
    assert sorted(told) == sorted(map(json.dumps, [*RECORDS, *RECORDS[:25]]))


def said(cluster: Cluster) -> str:
    """What the append wrote."""
    (log,) = cluster.logs.glob("*_append")
    return log.read_text()
