"""The audit says what advisories say, and never that all is well where nobody could be asked."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import audit
import pytest

# As pip-audit 2.10.1 printed them: of a service that knew of an advisory, and of an index that knew no package.
FOUND = (
    '{"dependencies": [{"name": "colorama", "version": "0.4.6", "vulns": [{"id": "GHSA-1", "fix_versions": ["0.4.7"], '
    '"aliases": ["CVE-1"]}]}, {"name": "six", "version": "1.17.0", "vulns": []}], "fixes": []}'
)
SKIPPED = (
    '{"dependencies": [{"name": "colorama", "skip_reason": "Dependency not found on PyPI and could not be audited: '
    'colorama (0.4.6)"}], "fixes": []}'
)
LOCK = """six==1.17.0 \\
    --hash=sha256:00
    # via
    #   dateutil
    #   moto
great-expectations[spark]==1.24.0 \\
    --hash=sha256:11
    # via dbt-reconcile (pyproject.toml)
"""


class Service(BaseHTTPRequestHandler):
    """What OSV answers to a batch: an advisory of h2, none of others."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        vulns: list[dict[str, Any]] = [
            {"vulns": [{"id": "GHSA-2", "modified": "2026-01-01T00:00:00Z"}]}
            if query == {"package": {"name": "com.h2database:h2", "ecosystem": "Maven"}, "version": "2"}
            else {}
            for query in asked
        ]
        self.send_response(200 if self.path == "/v1/querybatch" else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"results": vulns}).encode())

    def log_message(self, format: str, *given: object) -> None:
        pass


@pytest.fixture
def service() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
        server.shutdown()
        thread.join()


def printing(directory: Path, text: str, code: int) -> str:
    """Return a program that prints a text."""
    program = directory / "pip-audit"
    program.write_text(f"#!{sys.executable}\nprint({text!r})\nraise SystemExit({code})\n")
    program.chmod(0o755)
    return str(program)


def jar(name: str, version: str = "2") -> audit.Package:
    return audit.Package(name, version, "2026-01-01", "tests/packages")


def test_an_advisory_of_a_jar_is_named_with_what_the_jar_came_with(service: str) -> None:
    found = audit.advisories_of_jars([jar("org.a:b"), jar("com.h2database:h2"), jar("com.h2database:h2", "3")], service)
    assert found == ["com.h2database:h2 2, of tests/packages: GHSA-2"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1/query", "{service}/elsewhere"])
def test_a_service_that_does_not_answer_is_not_an_all_clear(service: str, url: str) -> None:
    with pytest.raises(audit.Unknown, match="does not answer: "):
        audit.advisories_of_jars([jar("org.a:b")], url.format(service=service))


def test_an_advisory_of_a_wheel_is_named_with_the_version_that_mends_it(tmp_path: Path) -> None:
    found = audit.advisories_of_wheels(printing(tmp_path, FOUND, 1), "http://127.0.0.1:1")
    assert found == ["colorama 0.4.6: GHSA-1, CVE-1; mended in 0.4.7"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SKIPPED, "pip-audit could not ask of 1 packages, colorama among them"),
        ("", "pip-audit came to nothing: exit code 0"),
    ],
)
def test_what_pip_audit_passes_over_is_not_an_all_clear(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(audit.Unknown, match=says):
        audit.advisories_of_wheels(printing(tmp_path, text, 0), "http://127.0.0.1:1")


def test_what_a_lock_has_is_listed_with_what_it_came_with(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text(LOCK)
    assert [package._replace(since="") for package in audit.wheels(lock)] == [
        audit.Package("six", "1.17.0", "", "dateutil, moto"),
        audit.Package("great-expectations", "1.24.0", "", "dbt-reconcile"),
    ]


def test_every_wheel_and_jar_of_the_project_is_listed() -> None:
    pinned = {line.split("==")[0].split("[")[0] for line in audit.LOCK.read_text().splitlines() if "==" in line}
    assert {package.name for package in audit.wheels()} == pinned
    lists = [audit.ROOT / "conf" / "coordinates", audit.ROOT / "tests" / "packages"]
    named = {":".join((p.name, p.version)) for p in audit.jars([], lists)}
    assert named == {word for file in lists for word in file.read_text().split() if word.count(":") == 2}
    assert len(named) == 10
