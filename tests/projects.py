"""Projects that install the package as a user does, and run dbt in the Spark session of the tests."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from dbt.cli.main import dbtRunner
from file_formats import file_format

PACKAGE = Path(__file__).parent.parent
_SESSION = {"method": "session", "host": "none"}
PARTS_OF_A_PACKAGE = ("macros", "models", "dbt_project.yml")


class Project:
    """A dbt project under `root` whose models and tests live in `schema`; `package` is the package it installs.

    `target`: what its profile says beside type, schema and threads; of itself, a Spark session in dbt's own process.
    """

    def __init__(
        self, root: Path, schema: str, package: Path = PACKAGE, threads: int = 1,
        target: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.root, self.schema = root, schema
        (root / "models").mkdir(parents=True)
        self._write(
            "dbt_project.yml",
            {"name": "shop", "version": "1.0.0", "profile": "shop", "models": {"+file_format": file_format()}},
        )
        target = {"type": "spark", "schema": schema, "threads": threads, **(target or _SESSION)}
        self._write("profiles.yml", {"shop": {"target": "local", "outputs": {"local": target}}})
        self._write("packages.yml", {"packages": [{"local": str(package)}]})
        # What `dbt deps` does of it; tests/consumer shows that it does.
        (root / "dbt_packages").mkdir()
        (root / "dbt_packages" / "reconcile").symlink_to(package)

    def source(self, schema: str, *tables: str) -> None:
        """Declare staging tables as the source `lake`."""
        declared = [{"name": table} for table in tables]
        self._write("models/sources.yml", {"sources": [{"name": "lake", "schema": schema, "tables": declared}]})

    def model(self, name: str, sql: str, columns: Mapping[str, str | Mapping[str, Any]], **properties: Any) -> None:
        """Write a model and its YAML; `columns` maps names to data types, or to all that the YAML says of a column."""
        (self.root / "models" / f"{name}.sql").write_text(sql)
        declared = [
            {"name": column, **({"data_type": said} if isinstance(said, str) else said)}
            for column, said in columns.items()
        ]
        self._write(f"models/{name}.yml", {"models": [{"name": name, "columns": declared, **properties}]})

    def dbt(self, *arguments: str, succeed: bool = True) -> Any:
        """Run dbt in this process and return its result; with `succeed`, a failure is the test's."""
        with _working_in(self.root):
            outcome = dbtRunner().invoke(["--quiet", "--no-use-colors", *arguments, "--profiles-dir", str(self.root)])
        if succeed and not outcome.success:
            results = getattr(outcome.result, "results", [])
            raise AssertionError([r.message for r in results if r.message] or str(outcome.exception))
        return outcome

    def run(self, *names: str, full_refresh: bool = False, variables: Mapping[str, Any] | None = None) -> Any:
        """Run models, of these names or all."""
        words = [*(["--select", *names] if names else []), *(["--full-refresh"] if full_refresh else [])]
        return self.dbt("run", *words, *(["--vars", json.dumps(variables)] if variables else []))

    def failing_tests(self, model: str) -> set[str]:
        """Run the tests that a model declares, and return the names of those that fail."""
        outcome = self.dbt("test", "--select", model, succeed=False)
        results = [result for result in outcome.result.results if result.node.resource_type == "test"]
        assert {result.status for result in results} <= {"pass", "fail"}, f"a test has an error: {results}"
        return {result.node.test_metadata.name for result in results if result.status == "fail"}

    def _write(self, path: str, content: Mapping[str, Any]) -> None:
        (self.root / path).write_text(yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True))


def with_planted_bug(file: str, changes: dict[str, str]) -> str:
    """Return the text of a file of the package with a bug: each of some passages, of which there is one, is another."""
    text = (PACKAGE / file).read_text()
    for found, planted in changes.items():
        assert text.count(found) == 1, f"{file} has changed: plant this bug anew where now is {found!r}"
        text = text.replace(found, planted)
    return text


def package_with_planted_bug(root: Path, file: str, changes: dict[str, str]) -> Path:
    """Copy what dbt reads of the package, with a bug."""
    root.mkdir()
    for part in PARTS_OF_A_PACKAGE:
        source = PACKAGE / part
        (shutil.copytree if source.is_dir() else shutil.copy)(source, root / part)
    (root / file).write_text(with_planted_bug(file, changes))
    return root


@contextlib.contextmanager
def _working_in(directory: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)
