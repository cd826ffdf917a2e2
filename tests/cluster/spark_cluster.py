"""A standalone Spark cluster on this machine, of the installed pyspark: a master, two workers and a Thrift server."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pyspark
from file_formats import CONFIGURATIONS, SHARED, file_format
from postgres import Postgres, free_port
from projects import PACKAGE

SPARK = Path(pyspark.__file__).parent
SECONDS = 300


class Cluster:
    """Started on entry, with a metastore in PostgreSQL; everything that it writes lies under `root`.

    Every application gets one core of a worker, the Thrift server `thrift_cores`. `more`: of the environment. `conf`: a
    copy of conf/, in place of the one of the format.
    Not `shared`: a master and workers alone, and an embedded metastore below `root` for the one that submits a job.
    """

    workers = 2

    def __init__(
        self,
        root: Path,
        thrift_cores: int = 1,
        more: Mapping[str, str] | None = None,
        conf: Path | None = None,
        shared: bool = True,
    ) -> None:
        self.daemons, self.sessions = CONFIGURATIONS[file_format()], SHARED[file_format()]
        if conf:
            self.daemons, self.sessions = conf, conf / "shared"
        if not shared:
            self.sessions = self.daemons
        self.thrift_cores, self.more = thrift_cores, dict(more or {})
        self.root, self.warehouse, self.logs = root, root / "warehouse", root / "logs"
        self.logs.mkdir(parents=True)
        self.warehouse.mkdir()
        self.postgres = Postgres() if shared else None
        self.master, self.thrift = f"spark://127.0.0.1:{free_port()}", free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._applications: list[str] = []
        self._starts = 0

    def __enter__(self) -> Cluster:
        try:
            if self.postgres:
                self.submit("metastore", [], PACKAGE / "ingestion" / "metastore.py", master="local[1]").wait(SECONDS)
            port = self.master.rpartition(":")[2]
            listening = ["--host", "127.0.0.1", "--webui-port", "0"]
            self._start("master", ["spark-class", f"{_DEPLOY}.master.Master", *listening, "--port", port])
            wait_for("the master", lambda: listens(int(port)))
            for number in range(self.workers):
                self.start_worker(number)
            if not self.postgres:
                return self
            # The table format's jars come from its configuration, as everywhere.
            thrift = ["--hiveconf", f"hive.server2.thrift.port={self.thrift}"]
            thrift += ["--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1"]
            server = ["--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"]
            server += ["--conf", f"spark.cores.max={self.thrift_cores}"]
            self.submit("thrift", server, "spark-internal", *thrift)
            wait_for("the Thrift server", lambda: listens(self.thrift))
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def environment(self) -> dict[str, str]:
        """What a user's processes have in theirs."""
        environment = os.environ | (self.postgres.environment if self.postgres else {}) | {
            "SPARK_CONF_DIR": str(self.sessions),
            "RECONCILE_WAREHOUSE": str(self.warehouse),
            "PYSPARK_PYTHON": sys.executable,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            **self.more,
        }  # fmt: skip
        for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "DBT_PROFILES_DIR"):
            environment.pop(name, None)
        return environment

    @property
    def target(self) -> dict[str, Any]:
        """What a profile says of it, as profiles.yml."""
        where = {"method": "thrift", "host": "127.0.0.1", "port": self.thrift, "user": "dbt"}
        return where | {"poll_interval": 0, "query_retries": 0}

    def submit(
        self, name: str, options: Sequence[str], program: Path | str, *arguments: str, master: str | None = None
    ) -> subprocess.Popen[bytes]:
        """Give spark-submit a job, which gets one executor of one core, on whichever worker has it."""
        sizes = {"spark.executor.cores": "1", "spark.cores.max": "1", "spark.executor.memory": "800m"}
        sizes |= {"spark.driver.memory": "1500m", "spark.driver.host": "127.0.0.1"}
        sizes |= {"spark.executor.defaultJavaOptions": _QUICKLY}
        configured = [word for key, value in sizes.items() for word in ("--conf", f"{key}={value}")]
        submit = ["spark-submit", "--master", master or self.master, *configured]
        if not master:
            self._applications.append(name)
        return self._start(name, [*submit, *options, str(program), *arguments], self.environment)

    def start_worker(self, number: int) -> None:
        """Start a worker, as whoever watches over it would."""
        words = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
        words += ["--work-dir", str(self.root / f"work{number}"), self.master]
        self._start(f"worker{number}", ["spark-class", f"{_DEPLOY}.worker.Worker", *words])

    def kill_worker(self, number: int) -> int:
        """Kill a worker and its executors with SIGKILL, as a machine that is gone; return how many executors it had."""
        worker = self._processes[f"worker{number}"]
        executors = _children(worker.pid)
        for process in [worker.pid, *executors]:
            os.kill(process, signal.SIGKILL)
        worker.wait()
        return len(executors)

    def runs(self, number: int, name: str) -> bool:
        """Whether a worker has an executor of what was submitted under a name."""
        # The master numbers applications in the order in which they came.
        application = re.compile(rf"app-\d+-{self._applications.index(name):04}\b")
        return any(application.search(command) for command in _commands_below(self._processes[f"worker{number}"].pid))

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask the Thrift server, in a session of its own."""
        from pyhive import hive

        with contextlib.closing(hive.connect("127.0.0.1", self.thrift)) as connection:
            cursor = connection.cursor()
            cursor.execute(sql)
            return list(cursor.fetchall())

    def stop(self) -> None:
        """End everything, whatever state it is in."""
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if self.postgres:
            self.postgres.stop()

    def _start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        # Masters and workers need no metastore: conf/ or conf/iceberg has the jars and Java's options.
        daemon = {"SPARK_CONF_DIR": str(self.daemons)}
        daemon |= {"SPARK_DAEMON_MEMORY": "300m", "SPARK_DAEMON_JAVA_OPTS": _QUICKLY}
        self._starts += 1
        with (self.logs / f"{self._starts}_{name}").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                command,
                cwd=self.root,
                env=environment or self.environment | daemon,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self._processes[name]


_DEPLOY = "org.apache.spark.deploy"

# As tests/conftest.py asks of every session.
_QUICKLY = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m"


def listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def wait_for(what: str, there: Callable[[], Any], poll: float = 0.1) -> Any:
    """Ask until there is an answer, and return it."""
    until = time.monotonic() + SECONDS
    while not (found := there()):
        assert time.monotonic() < until, f"{what} was not there after {SECONDS} seconds"
        time.sleep(poll)
    return found


def _children(parent: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # pid (name) state parent ...
            if int(status.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(status.parent.name))
    return found


def _commands_below(parent: int) -> list[str]:
    found = []
    for child in _children(parent):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.append(Path(f"/proc/{child}/cmdline").read_text())
    return found
