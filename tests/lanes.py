"""The lanes: environments of a Python, a Spark and a dbt each, in which a part of the tests runs.

python tests/lanes.py                          the lanes, and when each passed last
python tests/lanes.py lane-3.12-spark-4.0      make its environment and run it; docs/operations/versions.md has its row
                                               afterwards
python tests/lanes.py lanes                    all, one after the other
python tests/lanes.py --only render LANE       one step; the row says of the others whether they have passed on the
                                               same commit
python tests/lanes.py --in-turn                the lane whose turn it is, by the number of the commit: for CI. A
                                               lane that the machine cannot have is named, and is not red

A lane runs the render tests, the lifecycle of all models by dbt on tables of its format, and one append on a cluster
whose executors have nothing but the package's wheel. `make matrix PART=lanes` does the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "operations" / "versions.md"
ENVIRONMENTS = ROOT / "target" / "lanes"
# A lane has all that users may install, and what the tests need.
EXTRAS = ("spark", "dbt", "datastream", "spanner", "bigtable", "expectations", "test")
# What a lane chooses, or what comes with its choice; of everything else it has the version of requirements.lock.
CHOSEN = ("pyspark", "py4j", "dbt-core", "dbt-spark")


@dataclass(frozen=True)
class Lane:
    """A combination of versions; `why` it is one of the lanes."""

    python: str
    pyspark: str
    dbt_core: str
    dbt_spark: str
    why: str
    file_format: str = "delta"

    @property
    def name(self) -> str:
        spark = self.pyspark.rpartition(".")[0]
        return f"lane-{self.python}-spark-{spark}" + ("" if self.file_format == "delta" else f"-{self.file_format}")

    @property
    def environment(self) -> Path:
        """Where its environment is: two lanes of other formats share one."""
        return ENVIRONMENTS / f"{self.python}-{self.pyspark}-{self.dbt_core}-{self.dbt_spark}"

    @property
    def steps(self) -> dict[str, list[str]]:
        """What pytest is given, for each step."""
        of_tables = ["-m", "not matrix", "--file-format", self.file_format]
        return {
            "render": ["-n", "2", "tests/render"],
            "lifecycle": [*of_tables, "tests/lifecycle/test_lives.py"],
            "cluster": [*of_tables, "tests/cluster/test_wheel.py"],
        }


_EMR, _GOOGLE = "the Spark of EMR 8.0", "the Spark and Python of Google's Managed Spark 3.0"
LANES = {
    lane.name: lane
    for lane in (
        Lane("3.12", "4.0.1", "1.11.16", "1.11.0", _GOOGLE),
        Lane("3.13", "4.2.1", "1.11.16", "1.11.0", "the newest of all"),
        Lane("3.11", "4.0.2", "1.11.16", "1.10.3", f"{_EMR}, and the dbt-spark that dbt-databricks needs"),
        Lane("3.12", "4.0.1", "1.11.16", "1.11.0", _GOOGLE, "iceberg"),
        Lane("3.13", "4.1.1", "1.11.16", "1.11.0", "the main lane's Spark"),
        Lane("3.12", "4.1.1", "1.11.16", "1.11.0", "the main lane's Spark"),
    )
}
# lane, Python, Spark, tables, dbt-core, dbt-spark, Java, result, commit, date
_ROW = re.compile(
    r"^\| `(?P<lane>lane-[\w.-]+)` \|.* \| (?P<result>[^|]*) \| (?P<commit>[^|]*) \| (?P<date>\S+) \|$", re.M
)


class Failed(Exception):
    """A sentence: which step is red."""


class Missing(Failed):
    """A sentence: what a lane needs and this machine cannot have."""


def python_of(version: str) -> str:
    """Return an interpreter of this version, on PATH or one of pyenv's. Raises Missing."""
    of_pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for candidate in [f"python{version}", *map(str, sorted(of_pyenv.glob(f"{version}.*/bin/python")))]:
        asks = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        # A name on PATH may be a shim of pyenv's for a version that is not active.
        if shutil.which(candidate) and subprocess.run(asks, capture_output=True, text=True).stdout.strip() == version:
            return candidate
    raise Missing(f"Python {version} is not on PATH and none of pyenv's: install it")


def requirements(lane: Lane) -> tuple[list[str], list[str]]:
    """Return what a lane installs, and the versions that everything else is to have."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for extra in EXTRAS for one in extras[extra])]
    # The ranges stand beside the versions, so a lane outside of them cannot be made.
    wanted += [f"pyspark=={lane.pyspark}", f"dbt-core=={lane.dbt_core}", f"dbt-spark=={lane.dbt_spark}"]
    locked = re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?(==[^\s\\]+)", (ROOT / "requirements.lock").read_text(), re.M)
    return wanted, [name + version for name, version in locked if name not in CHOSEN]


def make(lane: Lane) -> Path:
    """Make the environment of a lane where it is not there, and return it. Raises Missing."""
    wanted, locked = requirements(lane)
    at, stamp = lane.environment, hashlib.sha256("\n".join([*wanted, *locked]).encode()).hexdigest()
    if (at / "made").exists() and (at / "made").read_text() == stamp:
        return at
    print(f"{lane.name}: making {at.relative_to(ROOT)}", flush=True)
    subprocess.run([python_of(lane.python), "-m", "venv", "--clear", str(at)], check=True)
    (at / "constraints").write_text("\n".join(locked) + "\n")
    pip = [str(at / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, "--constraint", str(at / "constraints"), *wanted]).returncode:
        raise Missing(f"{lane.name}: pip cannot install it: see above")
    (at / "made").write_text(stamp)
    return at


def environment(at: Path) -> dict[str, str]:
    """Return the variables of a process in a lane: its own Python and Spark, and no setting of the caller's."""
    kept = {name: value for name, value in os.environ.items() if name.split("_")[0] not in ("SPARK", "PYSPARK", "DBT")}
    return kept | {"PATH": f"{at / 'bin'}:{os.environ['PATH']}", "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}


_VERSIONS = """
import platform, pyspark
from importlib.metadata import version
print(platform.python_version(), pyspark.__version__, version("dbt-core"), version("dbt-spark"), pyspark.__path__[0])
"""


def versions(lane: Lane, at: Path) -> list[str]:
    """Return Python, Spark, the jars of the tables, dbt-core, dbt-spark and Java, as the lane itself tells them."""
    given = environment(at)
    asks: list[Path | str] = [at / "bin" / "python", "-c", _VERSIONS]
    told = subprocess.run(asks, env=given, stdout=subprocess.PIPE, text=True, check=True).stdout
    python, spark, core, adapter, home = told.split()
    conf = ROOT / "conf" / ("" if lane.file_format == "delta" else lane.file_format)
    asks = ["bash", "-c", f'. "{conf}/spark-env.sh" && echo "$SPARK_DIST_CLASSPATH"']
    jars = subprocess.run(asks, env=given | {"SPARK_HOME": home}, stdout=subprocess.PIPE, text=True).stdout.strip()
    if not jars:
        raise Missing(f"{lane.name}: conf/ has no jars for it: see above")
    first = Path(jars.split(":")[0]).stem
    java = subprocess.run(["java", "-version"], env=given, capture_output=True, text=True).stderr
    version_of_java = found[1] if (found := re.search(r'"([^"]+)"', java)) else "?"
    return [python, spark, first, core, adapter, version_of_java]


def run(lane: Lane, only: str | None, is_noted: bool = True) -> None:
    """Run the steps of a lane, and write down in its row those that passed, if that is noted. Raises Failed."""
    at = make(lane)
    told = versions(lane, at)
    print(f"{lane.name}: " + ", ".join(f"{w} {v}" for w, v in zip(_COLUMNS, told, strict=True)), flush=True)
    passed, started = Passed(at / f"{lane.name}.json", commit()), time.monotonic()
    for step, words in lane.steps.items():
        if only in (None, step):
            said = _pytest(lane, at, step, words)
            passed.add(step, said)
            print(f"{lane.name}: {step} {said}; {time.monotonic() - started:.0f} s", flush=True)
    steps = passed.steps()
    if steps and is_noted:
        note(lane, told, "; ".join(f"{step} {steps.get(step, 'not run')}" for step in lane.steps), passed.commit)


@dataclass(frozen=True)
class Passed:
    """The steps of a lane that have passed on a commit, which may be run one by one."""

    file: Path
    commit: str

    def steps(self) -> dict[str, str]:
        """Return what each step said; none of another commit counts."""
        known = json.loads(self.file.read_text()) if self.file.exists() else {}
        return known["steps"] if known.get("commit") == self.commit else {}

    def add(self, step: str, said: str) -> None:
        """Write down a step that passed."""
        self.file.write_text(json.dumps({"commit": self.commit, "steps": self.steps() | {step: said}}))


def commit() -> str:
    """Return the last commit that changed more than documents, and whether there are changes since."""
    code = ["--", ".", ":!docs", ":!*.md"]
    changed = _git("status", "--porcelain", "--untracked-files=no", *code)
    return _git("log", "-1", "--format=%h", *code) + (" and changes" if changed else "")


_COLUMNS = ("Python", "Spark", "tables", "dbt-core", "dbt-spark", "Java")


def _pytest(lane: Lane, at: Path, step: str, words: list[str]) -> str:
    """Return how many passed, as pytest says it last. Raises Failed."""
    command = [str(at / "bin" / "python"), "-m", "pytest", "--quiet", "-x", "--durations=3", *words]
    last = ""
    with subprocess.Popen(command, cwd=ROOT, env=environment(at), stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            last = line.strip(" =\n") or last
    if running.returncode:
        raise Failed(f"{lane.name}: {step} is red: {last}")
    return last.partition(" in ")[0]


def last_results() -> dict[str, dict[str, str]]:
    """Return what docs/operations/versions.md says of each lane."""
    return {row["lane"]: row.groupdict() for row in _ROW.finditer(RESULTS.read_text())}


def note(lane: Lane, told: list[str], result: str, commit: str) -> None:
    """Write down what passed in a lane: its row in docs/operations/versions.md."""
    text = RESULTS.read_text()
    rows = {row["lane"]: row[0] for row in _ROW.finditer(text)}
    cells = [f"`{lane.name}`", *told, result, commit, f"{datetime.now(UTC):%Y-%m-%d}"]
    rows[lane.name] = f"| {' | '.join(cells)} |"
    head, rule, rest = text.partition(_RULE)
    assert rule, f"{RESULTS} has no table of lanes"
    kept = "\n".join(line for line in rest.removeprefix("\n").split("\n") if not _ROW.match(line))
    RESULTS.write_text(head + rule + "\n" + "".join(f"{rows[name]}\n" for name in LANES if name in rows) + kept)


_RULE = "|" + " --- |" * 10


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    """Run lanes, or show all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lane", nargs="?", choices=["lanes", *LANES])
    steps = list(next(iter(LANES.values())).steps)
    parser.add_argument("--only", choices=["environment", *steps], help="make the environment, or run one step too")
    parser.add_argument("--in-turn", action="store_true", help="the lane whose turn it is; writes no row")
    asked = parser.parse_args()
    if asked.in_turn:
        asked.lane = list(LANES)[int(_git("rev-list", "--count", "HEAD")) % len(LANES)]
    if asked.lane is None:
        known = last_results()
        for name, lane in LANES.items():
            print(f"{name:28} {known.get(name, {}).get('date', 'never passed'):12} {lane.why}")
        return 0
    red = []
    for lane in LANES.values() if asked.lane == "lanes" else [LANES[asked.lane]]:
        try:
            run(lane, asked.only, is_noted=not asked.in_turn)
        except Failed as failed:
            # What CI's machine cannot have is said, and is no fault of the commit.
            if asked.in_turn and isinstance(failed, Missing):
                print(f"lanes: {lane.name} did not run. {failed}")
                continue
            print(f"lanes: {failed}", file=sys.stderr)
            red.append(lane.name)
    if asked.lane == "lanes":
        print(f"{len(LANES) - len(red)} lanes passed, {len(red)} failed" + "".join(f", {name}" for name in red))
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
