"""A Python that is too old is told so, in one sentence, by every job."""

import ast
import runpy
import sys
from pathlib import Path

import pytest

INGESTION = Path(__file__).parents[2] / "ingestion"
SINCE_3_11 = {("datetime", "UTC"), ("typing", "Self"), ("enum", "StrEnum"), ("tomllib", "loads")}


def test_an_older_python_hears_which_it_is_and_which_it_is_to_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(INGESTION / "reconcile_jobs/__init__.py"))
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"{sys.executable}, is 3.10, and the jobs need 3.11, 3.12 or 3.13: set PYSPARK_PYTHON" in said


@pytest.mark.parametrize("script", sorted(path.name for path in INGESTION.glob("*.py")))
def test_no_job_imports_what_an_older_python_lacks_before_it_is_told(script: str) -> None:
    imported = {
        (node.module, name.name)
        for node in ast.walk(ast.parse((INGESTION / script).read_text(), feature_version=(3, 8)))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert not imported & SINCE_3_11
