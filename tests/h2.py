"""H2 in Oracle mode, in a JVM of its own without Spark: a script that ends with queries, and their rows as texts."""

from __future__ import annotations

import csv
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

_PACKAGES = Path(__file__).parent / "packages"


def _jar() -> Path:
    """Return H2's jar, where conf/spark-env.sh puts it."""
    (coordinates,) = (line for line in _PACKAGES.read_text().split() if line.startswith("com.h2database:"))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jars = Path(os.environ.get("RECONCILE_JARS") or cache / "dbt-reconcile" / "jars")
    jar = jars / f"h2-{coordinates.rpartition(':')[2]}.jar"
    if not jar.exists():
        if os.environ.get("CI"):
            pytest.fail(f"CI has no {jar}: run `make setup`, which fetches it")
        pytest.skip(f"there is no {jar}: run `make setup`, which fetches it")
    return jar


def _literal(text: str) -> str:
    return f"'{text.replace(chr(39), chr(39) * 2)}'"


def rows_in_h2(script: Sequence[str], queries: Sequence[str]) -> tuple[list[list[list[str]] | None], str]:
    """Run the statements, then the queries, all of ASCII.

    Return the rows of each query, None of one that H2 refuses, and what H2 said of all that it refuses.
    """
    home = os.environ.get("JAVA_HOME")
    with tempfile.TemporaryDirectory(prefix="h2-") as directory:
        files = [Path(directory) / f"{number}.csv" for number in range(len(queries))]
        written = [
            f"CALL CSVWRITE({_literal(str(file))}, {_literal(query)}, 'charset=UTF-8 writeColumnHeader=false')"
            for file, query in zip(files, queries, strict=True)
        ]
        lines = Path(directory) / "lines.sql"
        lines.write_text("".join(f"{each};\n" for each in [*script, *written]), encoding="ascii")
        command = [f"{home}/bin/java" if home else "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", _jar()]
        command += ["org.h2.tools.RunScript", "-url", "jdbc:h2:mem:shop;MODE=Oracle", "-script", lines]
        ended = subprocess.run([*command, "-continueOnError"], capture_output=True, text=True)
        return [_read(file) for file in files], ended.stderr


def _read(file: Path) -> list[list[str]] | None:
    if not file.exists():
        return None
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.reader(lines))
