"""What is in the wheel and what it needs; the command that it brings."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
COMMANDS = [
    "append", "erase", "generate", "maintain", "metastore", "parity", "prove", "report", "run_dbt", "snapshot",
    "status",
]  # fmt: skip


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=~ ]", requirement)[0].lower().replace(".", "-") for requirement in requirements}


def test_every_folder_of_the_jobs_is_in_the_wheel():
    ingestion = ROOT / "ingestion"
    folders = {path.parent.relative_to(ingestion) for path in ingestion.glob("reconcile_jobs/**/*.py")}
    assert {*PROJECT["tool"]["setuptools"]["packages"]} == {
        "reconcile_commands", *(".".join(folder.parts) for folder in folders)
    }  # fmt: skip


def test_executors_get_neither_spark_nor_dbt_nor_great_expectations():
    extras = PROJECT["project"]["optional-dependencies"]
    assert names(PROJECT["project"]["dependencies"]) == {"pyarrow", "pandas"}
    for extra, package in {
        "datastream": "fastavro", "spanner": "google-cloud-spanner", "bigtable": "google-cloud-bigtable",
    }.items():  # fmt: skip
        assert names(extras[extra]) == {package}


def test_the_lock_has_every_extra():
    locked = names((ROOT / "requirements.lock").read_text().splitlines())
    extras = PROJECT["project"]["optional-dependencies"]
    assert names([one for extra in extras.values() for one in extra]) - locked == set()


@pytest.mark.parametrize(
    "words", [[], *([command] for command in COMMANDS), ["append", "datastream"], ["append", "spanner"],
              ["append", "bigtable"], ["generate", "datastream"], ["snapshot", "jdbc"]], ids=" ".join,
)  # fmt: skip
def test_help_needs_no_package(words: list[str]):
    # -S: without site-packages.
    command = [sys.executable, "-S", str(ROOT / "ingestion"), *words, "--help"]
    told = subprocess.run(command, capture_output=True, text=True, env={"PATH": os.defpath})
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("usage: ")
    if not words:
        assert re.findall(r"^  (\w+) +[A-Z]", told.stdout, re.M) == COMMANDS


class Executed(Exception):
    pass


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The package's command, as the wheel has it; it is not replaced by spark-submit."""
    module = runpy.run_path(str(ROOT / "ingestion" / "__main__.py"), run_name="reconcile_commands.__main__")

    def execv(program: str, words: list[str]) -> None:
        raise Executed([program, *words[1:]])

    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setattr(shutil, "which", lambda name, path=None: f"/spark/bin/{name}")
    return module


def test_a_command_runs_by_spark_submit_with_the_options_before_it(
    command: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    words = ["--master", "spark://m:7077", "append", "table", "--path", "status"]
    monkeypatch.setattr(sys, "argv", ["dbt-reconcile", *words])
    with pytest.raises(Executed) as executed:
        command["main"]()
    script = str(ROOT / "ingestion" / "append.py")
    assert executed.value.args[0] == [
        "/spark/bin/spark-submit", "--master", "spark://m:7077", script, "table", "--path", "status",
    ]  # fmt: skip


def test_help_is_also_asked_for_by_one_letter(
    command: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["dbt-reconcile", "-h"])
    command["main"]()
    assert re.findall(r"^  (\w+) +[A-Z]", capsys.readouterr().out, re.M) == COMMANDS
    monkeypatch.setattr(sys, "argv", ["dbt-reconcile", "status", "-h"])
    with pytest.raises(SystemExit) as ended:
        command["main"]()
    assert (ended.value.code, "usage: status.py" in capsys.readouterr().out) == (0, True)


def test_of_an_environment_that_is_not_activated_spark_submit_is_found_beside_its_python(
    command: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "argv", ["dbt-reconcile", "status"])
    monkeypatch.setattr(shutil, "which", lambda name, path=None: path and f"{path}/{name}")
    with pytest.raises(Executed) as executed:
        command["main"]()
    beside = str(Path(sys.executable).with_name("spark-submit"))
    assert executed.value.args[0] == [beside, str(ROOT / "ingestion" / "status.py")]


def test_what_is_no_command_and_a_machine_without_spark_are_told(
    command: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["dbt-reconcile", "appned"])
    with pytest.raises(SystemExit) as ended:
        command["main"]()
    assert (ended.value.code, "a command is missing: one of append, " in capsys.readouterr().err) == (2, True)
    monkeypatch.setattr(sys, "argv", ["dbt-reconcile", "status"])
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    with pytest.raises(SystemExit) as ended:
        command["main"]()
    assert (ended.value.code, "spark-submit is not on PATH" in capsys.readouterr().err) == (2, True)
