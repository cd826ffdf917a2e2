"""append.py as spark-submit runs it: exit codes, the two outputs, and an end when it is asked for one."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from dataclasses import asdict
from pathlib import Path

from process.landings import avro
from pyspark.sql import SparkSession
from reconcile_jobs.datastream import Totals

APPEND = Path(__file__).parents[2] / "ingestion" / "append.py"


def submit(*words: str, cwd: Path, **environment: str) -> tuple[int, str, str]:
    """Run append.py by spark-submit from another directory, and return exit code, output and errors."""
    program = start(*words, cwd=cwd, stderr=subprocess.PIPE, **environment)
    out, err = program.communicate(timeout=300)
    return program.returncode, out, err


def start(*words: str, cwd: Path, stderr: int, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["spark-submit", str(APPEND), *words],
        cwd=cwd,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


def one_sentence(err: str) -> bool:
    return err.startswith("append: ") and err.count("\n") == 1 and "\tat " not in err and "Traceback" not in err


def test_wrong_usage_is_answered_without_a_session(tmp_path: Path) -> None:
    code, out, err = submit("datastream", "--path", "x", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert one_sentence(err), err
    assert list(tmp_path.iterdir()) == []


def test_without_the_configuration_the_sentence_names_it(tmp_path: Path) -> None:
    code, out, err = submit("datastream", "--path", ".", "--staging", "a.b", cwd=tmp_path, SPARK_CONF_DIR="/nowhere")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("append: ")
    assert "SPARK_CONF_DIR" in err.splitlines()[-1]


def test_a_metastore_that_another_process_holds_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    place = Path(spark._jvm.java.lang.System.getProperty("user.dir"))  # type: ignore[union-attr]
    spark.sql("SHOW SCHEMAS").collect()  # so that this process holds it
    code, out, err = submit("datastream", "--path", str(tmp_path), "--staging", "a.b", cwd=place)
    assert (code, out) == (4, "")
    (said,) = err.splitlines()
    assert said.startswith(f"dbt-reconcile: the metastore in lakehouse is held by process {_java_of(spark)}, "), err


def _java_of(spark: SparkSession) -> int:
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


def test_asked_to_stop_the_job_finishes_its_line_and_ends_with_0(tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    landing.mkdir()
    (landing / "a.json").write_text('{"object": "SHOP.A"}\n')
    (landing / "b.avro").write_bytes(avro({"object": "SHOP.B"}))
    screen, terminal = os.openpty()
    job = start("datastream", "--path", str(landing), "--staging", "lake.shop", "--every", "1s",
                cwd=tmp_path, stderr=terminal)  # fmt: skip
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while chunk := os.read(screen, 1000):
            shown += chunk
            if b"2 records" in shown:
                job.terminate()
    os.close(screen)
    out, _ = job.communicate(timeout=120)
    assert job.returncode == 0, shown
    (line,) = out.splitlines()
    # The search for hidden files is not waited for.
    counts = {"seconds": 0, "hidden_files": None}
    assert json.loads(line) | counts == asdict(Totals(files=2, records=2, first_batch=1, last_batch=1)) | counts
    assert b"Traceback" not in shown
