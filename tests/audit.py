"""Whether an advisory speaks of what `make setup` installs: the wheels of requirements.lock, and the jars.

python tests/audit.py --pip-audit PROGRAM [--advisories URL]

Standard output has what there is: since when this version is here, and what it came with, the oldest first. Standard
error has the advisories, one in a line. Exit codes: 0 none speaks of it, 1 some do, 3 the service cannot be asked.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
SECONDS = 30


class Unknown(Exception):
    """The service of advisories cannot be asked."""


class Package(NamedTuple):
    """A version of something: a wheel by its name, a jar by group and artifact, and what it came with."""

    name: str
    version: str
    since: str
    came_with: str

    @property
    def ecosystem(self) -> str:
        return "Maven" if ":" in self.name else "PyPI"


# --- what there is ----------------------------------------------------------------------------------------------------


def wheels(lock: Path = LOCK) -> Iterator[Package]:
    """Return what a lock has; it came with what pip-compile names under `via`."""
    dates = _dates(lock)
    for block in re.split(r"\n(?=\S)", lock.read_text()):
        pinned = re.match(r"([\w.-]+)(?:\[[^]]*\])?==([^\s\\;]+)", block)
        if pinned:
            via = re.findall(r"^ +#(?: via)? +(?!via)([\w.-]+)", block, re.M)
            yield Package(pinned[1], pinned[2], dates[block.splitlines()[0]], ", ".join(via))


def jars(directories: Iterable[Path], lists: Iterable[Path]) -> Iterator[Package]:
    """Return the jars that lists name, those that lie in directories, and what these say that they hold of others."""
    named: dict[str, Package] = {}
    for file in lists:
        dates = _dates(file)
        for line in file.read_text().splitlines():
            # In conf/coordinates Spark and format stand before them. A format, in conf/packages, is no jar.
            coordinates = line.split(" ")[-1]
            if line.startswith("#") or ":" not in coordinates:
                continue
            group, artifact, version = coordinates.split(":")
            found = Package(f"{group}:{artifact}", version, dates[line], str(file.relative_to(ROOT)))
            named.setdefault(f"{artifact}-{version}.jar", found)
    yield from named.values()
    pyspark = next(wheel for wheel in wheels() if wheel.name == "pyspark")
    for jar in sorted(jar for directory in directories for jar in directory.glob("*.jar")):
        own = named.get(jar.name)
        if own or jar.parent.parent.name == "pyspark":
            for name, version in _held(jar):
                if not own or (name, version) != (own.name, own.version):
                    yield Package(name, version, (own or pyspark).since, jar.name)


def _held(jar: Path) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(jar) as archive:
        for entry in archive.namelist():
            if entry.startswith("META-INF/maven/") and entry.endswith("/pom.properties"):
                said = dict(re.findall(r"^(\w+)=(\S+)\s*$", archive.read(entry).decode(), re.M))
                if {"groupId", "artifactId", "version"} <= said.keys():
                    yield f"{said['groupId']}:{said['artifactId']}", said["version"]


def _dates(file: Path) -> dict[str, str]:
    """Return since when each line of a file is there; of a file that git does not know, its own date."""
    own = datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat()
    words = ["git", "blame", "--line-porcelain", "--", str(file)]
    blamed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    found = re.findall(r"^committer-time (\d+)$.*?^\t(.*?)$", blamed.stdout, re.M | re.S)
    dates = {line: datetime.fromtimestamp(int(time), UTC).date().isoformat() for time, line in found}
    return {line: dates.get(line, own) for line in file.read_text().splitlines()}


# --- what is said of it -----------------------------------------------------------------------------------------------


def advisories_of_jars(packages: list[Package], service: str) -> list[str]:
    """Ask for all jars at once, and return a sentence for each advisory."""
    queries = [{"package": {"name": p.name, "ecosystem": p.ecosystem}, "version": p.version} for p in packages]
    body = json.dumps({"queries": queries}).encode()
    request = Request(f"{service}batch", body, {"Content-Type": "application/json"})
    try:
        with urlopen(request, timeout=SECONDS) as answer:
            results = json.load(answer)["results"]
    except (URLError, OSError, ValueError, KeyError, TypeError) as cause:
        raise Unknown(f"{service} does not answer: {getattr(cause, 'reason', cause)}") from cause
    if len(results) != len(packages):
        raise Unknown(f"{service} was asked of {len(packages)} jars, and answered of {len(results)}")
    return [
        f"{package.name} {package.version}, of {package.came_with}: {found['id']}"
        for package, result in zip(packages, results, strict=True)
        for found in result.get("vulns", [])
    ]


def advisories_of_wheels(pip_audit: str, service: str, lock: Path = LOCK) -> list[str]:
    """Have pip-audit ask for a lock, and return a sentence for each advisory."""
    words = [pip_audit, "--requirement", str(lock), "--require-hashes", "--disable-pip", "--format", "json"]
    words += ["--desc", "off", "--progress-spinner", "off", "--vulnerability-service", "osv", "--osv-url", service]
    audit = subprocess.run(words, capture_output=True, text=True)
    try:
        dependencies: list[dict[str, Any]] = json.loads(audit.stdout)["dependencies"]
    except (ValueError, KeyError) as cause:
        said = audit.stderr.strip().splitlines() or [f"exit code {audit.returncode}"]
        raise Unknown(f"pip-audit came to nothing: {said[-1]}") from cause
    # What it could not ask of it passes over, and says that all is well.
    skipped = [found["name"] for found in dependencies if "skip_reason" in found]
    if skipped:
        raise Unknown(f"pip-audit could not ask of {len(skipped)} packages, {skipped[0]} among them")
    return [
        f"{found['name']} {found['version']}: {', '.join([said['id'], *said['aliases']])}"
        f"; {'mended in ' + ', '.join(said['fix_versions']) if said['fix_versions'] else 'not mended yet'}"
        for found in dependencies
        for said in found["vulns"]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Whether an advisory speaks of what make setup installs.")
    parser.add_argument("--pip-audit", default="pip-audit", help="the program")
    parser.add_argument("--advisories", default="https://api.osv.dev/v1/query", help="a service of OSV's interface")
    parser.add_argument("--jars", type=Path, action="append", default=[], help="a directory of fetched jars")
    given = parser.parse_args()
    spark = find_spec("pyspark")
    assert spark is not None and spark.origin is not None
    directories = [*given.jars, Path(spark.origin).parent / "jars"]
    lists = [*sorted((ROOT / "conf").glob("**/packages")), ROOT / "conf" / "coordinates", ROOT / "tests" / "packages"]
    of_python, of_java = list(wheels()), list(dict.fromkeys(jars(directories, lists)))
    for package in sorted([*of_python, *of_java], key=lambda package: (package.since, package)):
        print(package.since, package.name, package.version, f"({package.came_with})" if package.came_with else "")
    try:
        said = advisories_of_jars(of_java, given.advisories) + advisories_of_wheels(given.pip_audit, given.advisories)
    except Unknown as unknown:
        print(f"audit: whether an advisory speaks of these versions is not known: {unknown}", file=sys.stderr)
        return 3
    for sentence in said:
        print(f"audit: {sentence}", file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
