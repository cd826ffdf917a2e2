"""A real MariaDB for tests, where the machine has one."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from postgres import free_port

_PROGRAMS = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"


def _program(name: str) -> str | None:
    return shutil.which(name, path=_PROGRAMS)


class MariaDB:
    """A server on this machine with a binary log, empty, until `stop`. Skips the test where there is none."""

    user = "reader"

    def __init__(self) -> None:
        server, install = _program("mariadbd"), _program("mariadb-install-db")
        if server is None or install is None:
            pytest.skip("no MariaDB: install the package mariadb-server")
        self._root = Path(tempfile.mkdtemp(prefix="mariadb-"))
        self.port, self.password = free_port(), secrets.token_hex(16)
        data = (
            [f"--datadir={self._root / 'data'}", "--user=root"]
            if os.geteuid() == 0
            else [f"--datadir={self._root / 'data'}"]
        )
        made = subprocess.run(
            [install, "--no-defaults", *data, "--auth-root-authentication-method=normal", "--skip-test-db"],
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stderr
        listening = [f"--socket={self._socket}", f"--port={self.port}", "--bind-address=127.0.0.1"]
        logging = ["--log-bin=bin", "--binlog-format=ROW", "--server-id=1", "--innodb-flush-log-at-trx-commit=0"]
        self._log = (self._root / "log").open("w+")
        self._process = subprocess.Popen(
            [server, "--no-defaults", *data, *listening, *logging], stdout=self._log, stderr=self._log
        )
        until = time.monotonic() + 60
        while self._client("SELECT 1").returncode:
            if time.monotonic() > until or self._process.poll() is not None:
                pytest.fail((self._root / "log").read_text()[-2000:])
            time.sleep(0.2)
        # All that a snapshot needs is to read the tables.
        self.query(f"CREATE USER reader@'127.0.0.1' IDENTIFIED BY '{self.password}'")
        self.query("CREATE DATABASE shop; GRANT SELECT ON shop.* TO reader@'127.0.0.1'")

    @property
    def _socket(self) -> str:
        return str(self._root / "socket")

    def _client(self, sql: str) -> subprocess.CompletedProcess[str]:
        command = [
            _program("mariadb") or "mariadb",
            "--no-defaults",
            "-S",
            self._socket,
            "-u",
            "root",
            "-N",
            "-B",
            "-e",
            sql,
        ]
        return subprocess.run(command, capture_output=True, text=True)

    def query(self, sql: str) -> list[list[str]]:
        """Return a statement's rows, as texts."""
        done = self._client(sql)
        assert done.returncode == 0, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()
        shutil.rmtree(self._root)
