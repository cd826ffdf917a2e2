"""`conf/spark-env.sh` fetches jars, whoever starts at the same time; Java and Ivy are a script here."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

CONF = Path(__file__).resolve().parents[2] / "conf"
JAR = "a-library-1.0.jar"

# Begins with half a jar, and ends it when as many have begun as shall meet. Ivy does not share its cache.
IVY = """#!/usr/bin/env bash
while [ $# -gt 0 ]; do
  case $1 in
    -cache) cache=$2 ;;
    -dependency) name=$3-$4.jar ;;
    -retrieve) jar=${2/"[artifact]-[revision].[ext]"/$name} ;;
  esac
  shift
done
mkdir -p "${cache%/*}" && mkdir "$cache" || exit 1
[ "$MEET" -gt 0 ] || exit 1
printf half > "$jar"
touch "$BEGUN/$$"
for ((tries = 0; tries < 1000; tries++)); do
  if [ "$(ls "$BEGUN" | wc -l)" -ge "$MEET" ]; then break; fi
  sleep 0.01
done
printf ' and half' >> "$jar"
"""


class Configuration:
    """A configuration of one jar, and processes that begin with it."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.jars, self.begun = directory, directory / "jars", directory / "begun"
        (directory / "spark-env.sh").write_bytes((CONF / "spark-env.sh").read_bytes())
        (directory / "packages").write_text("a.group:a-library:1.0\n")
        java = directory / "java" / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(IVY)
        java.chmod(0o755)
        self.begun.mkdir()

    def start(self, processes: int, meet: int, packages: str = "") -> list[str]:
        """Start so many at once, of which so many shall fetch at the same time; return what each said."""
        environment = os.environ | {
            "SPARK_HOME": str(self.directory), "JAVA_HOME": str(self.directory / "java"),
            "RECONCILE_JARS": str(self.jars), "RECONCILE_PACKAGES": packages, "BEGUN": str(self.begun),
            "MEET": str(meet),
        }  # fmt: skip
        started = [
            subprocess.Popen(
                ["bash", str(self.directory / "spark-env.sh")], env=environment, stderr=subprocess.PIPE, text=True
            )
            for _ in range(processes)
        ]
        said = [process.communicate(timeout=60)[1] for process in started]
        assert [process.returncode for process in started] == [0] * processes
        return said


@pytest.fixture
def configuration(tmp_path: Path) -> Configuration:
    return Configuration(tmp_path)


FAILED = "could not be fetched"


def test_processes_that_start_at_once_all_have_the_jar(configuration: Configuration):
    said = configuration.start(3, meet=3)
    assert [one for one in said if FAILED in one] == []
    assert all("fetching a.group:a-library:1.0" in one for one in said), "they met"
    assert [path.name for path in configuration.jars.iterdir()] == [JAR]
    assert (configuration.jars / JAR).read_text() == "half and half"


def test_a_jar_that_is_there_is_not_fetched_again(configuration: Configuration):
    configuration.start(1, meet=1)
    assert configuration.start(1, meet=0) == [""]


def test_a_jar_that_cannot_be_fetched_is_told_and_leaves_nothing(configuration: Configuration):
    (said,) = configuration.start(1, meet=0)
    assert f"a.group:a-library:1.0 {FAILED}; put the jar there by hand and run again" in said
    assert list(configuration.jars.iterdir()) == []


def test_packages_of_the_environment_are_fetched_too_however_many(configuration: Configuration):
    configuration.start(1, meet=1, packages="b.group:another:2.0 c.group:third:3.0\nd.group:fourth:4.0")
    assert sorted(path.name for path in configuration.jars.iterdir()) == [
        JAR, "another-2.0.jar", "fourth-4.0.jar", "third-3.0.jar",
    ]  # fmt: skip
    script = f'. "{configuration.directory}/spark-env.sh"; echo "$SPARK_DIST_CLASSPATH"'
    environment = os.environ | {"RECONCILE_JARS": str(configuration.jars), "RECONCILE_PACKAGES": "b.group:another:2.0"}
    environment.pop("SPARK_DIST_CLASSPATH", None)
    said = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True).stdout
    assert said == f"{configuration.jars}/{JAR}:{configuration.jars}/another-2.0.jar\n"


TABLE = """# Spark  format  Maven coordinates
4.0  delta    a.group:of-40:1.0
4.1  delta    a.group:of-41:1.0
4.1  delta    a.group:beside-41:2.0
4.1  iceberg  a.group:ice-41:3.0
"""


class Sparks:
    """A configuration that names formats, and a Spark of some version."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration, self.home = configuration, configuration.directory / "spark"
        (configuration.directory / "coordinates").write_text(TABLE)
        (self.home / "jars").mkdir(parents=True)

    def chosen(self, version: str | None, *words: str) -> tuple[int, str, str]:
        """Return the exit code, the jars that are chosen, and what is said, with this Spark and these packages."""
        for jar in (self.home / "jars").iterdir():
            jar.unlink()
        for name in ("spark-core_2.13-{}.jar", "spark-core-java_2.13-9.9.9.jar", "spark-sql_2.13-{}.jar"):
            if version:
                (self.home / "jars" / name.format(version)).touch()
        (self.configuration.directory / "packages").write_text("".join(f"{word}\n" for word in words))
        script = f'. "{self.configuration.directory}/spark-env.sh"; echo "$SPARK_DIST_CLASSPATH"'
        environment = os.environ | {
            "SPARK_HOME": str(self.home), "RECONCILE_JARS": str(self.configuration.jars), "RECONCILE_PACKAGES": "",
            "JAVA_HOME": str(self.configuration.directory / "java"),
            "MEET": "1", "BEGUN": str(self.configuration.begun),
        }  # fmt: skip
        environment.pop("SPARK_DIST_CLASSPATH", None)
        ended = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True)
        jars = [Path(jar).name for jar in ended.stdout.strip().split(":") if jar]
        return ended.returncode, ",".join(jars), ended.stderr.strip()


@pytest.fixture
def sparks(configuration: Configuration) -> Sparks:
    return Sparks(configuration)


def test_the_jars_of_a_format_are_those_of_the_spark_that_runs(sparks: Sparks):
    assert sparks.chosen("4.0.2", "delta")[:2] == (0, "of-40-1.0.jar")
    assert sparks.chosen("4.1.1", "delta")[:2] == (0, "of-41-1.0.jar,beside-41-2.0.jar")
    assert sparks.chosen("4.1.0", "iceberg", "a.group:own:5")[:2] == (0, "ice-41-3.0.jar,own-5.jar")
    assert sparks.chosen("4.0.2-amzn-0", "delta")[1] == "of-40-1.0.jar", "a distribution of somebody else"
    assert sparks.chosen("4.1.1", "delta", "iceberg")[1].count("41") == 3, "both formats in one session"


def test_a_spark_without_jars_of_the_format_is_refused_with_those_that_have_some(sparks: Sparks):
    table = f"{sparks.configuration.directory}/coordinates"
    assert sparks.chosen("4.3.0", "delta") == (
        2, "", f"dbt-reconcile: {table} has no jars of delta for Spark 4.3, but for 4.0, 4.1: run one of these, or add "
        "lines for this one",
    )  # fmt: skip
    assert "no jars of iceberg for Spark 4.0, but for 4.1: run" in sparks.chosen("4.0.2", "iceberg")[2]
    assert sparks.chosen(None, "delta") == (
        2, "", f"dbt-reconcile: {sparks.home}/jars has no spark-core, so the version of Spark is not known: set "
        "SPARK_HOME to a Spark",
    )  # fmt: skip
    assert sparks.chosen(None, "a.group:own:5")[:2] == (0, "own-5.jar"), "coordinates need no version"


def test_the_table_of_coordinates_names_each_format_and_jars_of_the_spark_beside_them():
    rows = [line.split() for line in (CONF / "coordinates").read_text().splitlines() if not line.startswith("#")]
    assert {(spark, form) for spark, form, _ in rows} == {
        ("4.0", "delta"), ("4.1", "delta"), ("4.2", "delta"), ("4.0", "iceberg"), ("4.1", "iceberg"),
    }  # fmt: skip
    for spark, form, coordinates in rows:
        _, artifact, version = coordinates.split(":")
        assert form in artifact or artifact == "delta-storage"
        # Delta 4.0 was of Spark 4.0 alone, and does not have its version in its name.
        assert f"_{spark}_" in artifact if artifact.count("_") == 2 else artifact == "delta-storage" or version < "4.1"
    in_use = {word for file in CONF.glob("**/packages") for word in file.read_text().split() if ":" not in word}
    assert in_use == {"delta", "iceberg"}


@pytest.mark.parametrize("terminal", ["stdout", "stderr"])
def test_progress_is_for_a_terminal_that_shows_the_messages(configuration: Configuration, terminal: str):
    """The line of JSON may go into a file; the messages decide."""
    configuration.start(1, meet=1)
    master, slave = os.openpty()
    told = configuration.directory / "told"
    script = f'. "{configuration.directory}/spark-env.sh"; echo "${{RECONCILE_TERMINAL-none}}" > "{told}"'
    environment = os.environ | {"RECONCILE_JARS": str(configuration.jars), "RECONCILE_TERMINAL": "from before"}
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, terminal: slave}
    subprocess.run(["bash", "-c", script], env=environment, check=True, timeout=60, **streams)  # type: ignore[call-overload]
    os.close(slave)
    os.close(master)
    assert told.read_text() == ("1\n" if terminal == "stderr" else "none\n")


def _hears_ctrl_c() -> None:
    """Tests that run in the background are deaf to it, and a shell cannot undo that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_what_is_said_of_ctrl_c_still_passes(configuration: Configuration):
    """A terminal sends it to all processes of the job, the one that its messages pass through among them."""
    configuration.start(1, meet=1)
    # Of a child that has just begun Ctrl-C may be lost; what waits for one in the background hears it itself.
    waits = "sleep 60 >/dev/null 2>&1 & wait"
    script = f'trap "echo stopped >&2; exit 4" INT; . "{configuration.directory}/spark-env.sh"; echo begun >&2; {waits}'
    words = ["bash", "-c", script]
    environment = os.environ | {"RECONCILE_JARS": str(configuration.jars), "RECONCILE_PACKAGES": ""}
    job = subprocess.Popen(
        words, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=_hears_ctrl_c
    )
    assert job.stderr is not None
    assert job.stderr.readline() == "begun\n"
    os.killpg(job.pid, signal.SIGINT)
    assert (job.stderr.read(), job.wait(60)) == ("stopped\n", 4)
