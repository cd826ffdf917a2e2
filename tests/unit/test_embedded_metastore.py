"""`conf/spark-env.sh` says that another process holds the embedded metastore, before Derby does in pages of Java."""

from __future__ import annotations

import fcntl
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CONF = Path(__file__).resolve().parents[2] / "conf"


@contextmanager
def held(directory: Path, seconds: float | None = None) -> Iterator[None]:
    """Hold the lock of Derby's as it does itself, for so long, or until the end."""
    file = directory / "lakehouse" / "metastore" / "dbex.lck"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        if seconds is not None:
            release = threading.Timer(seconds, lambda: fcntl.lockf(lock, fcntl.LOCK_UN))
            release.start()
            yield
            release.join()
        else:
            yield


def start(directory: Path, conf: str, patience: int = 1, **more: str) -> subprocess.CompletedProcess[str]:
    """Do what Spark's scripts do before they start the JVM; no jar is fetched."""
    for name in ("packages", "spark-env.sh", "spark-defaults.conf"):
        content = "" if name == "packages" else (CONF / conf / name).read_text()
        (directory / name).write_text(content)
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "RECONCILE_PATIENCE": str(patience), **more}
    environment |= {f"RECONCILE_{name}": "a" for name in (
        "METASTORE_URL", "METASTORE_USER", "METASTORE_PASSWORD", "WAREHOUSE"
    )}  # fmt: skip
    return subprocess.run(
        ["bash", str(directory / "spark-env.sh")], cwd=directory, env=environment, capture_output=True, text=True
    )


@pytest.mark.parametrize("conf", [".", "iceberg"])
def test_a_metastore_that_another_process_holds_is_one_sentence_with_a_way_out(tmp_path: Path, conf: str):
    with held(tmp_path):
        started = start(tmp_path, conf)
    assert started.returncode == 4
    (said,) = started.stderr.splitlines()
    assert f"the metastore in lakehouse is held by process {os.getpid()}" in said and "conf/shared" in said


def test_a_process_that_is_about_to_end_is_waited_for(tmp_path: Path):
    with held(tmp_path, seconds=1):
        started = start(tmp_path, ".", patience=20)
    assert (started.returncode, started.stderr) == (0, "")


def test_what_a_killed_process_left_behind_keeps_nobody_out(tmp_path: Path):
    with held(tmp_path):
        pass
    assert (tmp_path / "lakehouse" / "metastore" / "dbex.lck").exists()
    started = start(tmp_path, ".")
    assert (started.returncode, started.stderr) == (0, "")


def test_who_has_another_metastore_is_not_kept_out(tmp_path: Path):
    with held(tmp_path):
        started = start(tmp_path, ".", SPARK_SUBMIT_OPTS="-Dderby.system.home=elsewhere")
    assert (started.returncode, started.stderr) == (0, "")


def test_a_shared_metastore_asks_for_no_lock(tmp_path: Path):
    with held(tmp_path):
        started = start(tmp_path, "shared")
    assert (started.returncode, started.stderr) == (0, "")
