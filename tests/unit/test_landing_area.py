"""Which files Spark leaves out by their names, and names that Java does not see."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from reconcile_jobs.errors import UsageError
from reconcile_jobs.landing_area import check_names, escaped, is_hidden


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("a.json", False), ("a_b.json", False), ("a.b", False), ("_a.json", True), (".a.json", True), ("_", True),
        ("_a=1", False), (".a=1", True), ("_metadata.json", True), ("", False),
    ],
)  # fmt: skip
def test_what_spark_does_not_read(name: str, hidden: bool):
    assert is_hidden(name) == hidden


def test_a_path_is_met_by_its_pattern_alone():
    assert escaped(r"/a[1]/{b}/c*d?/e\f") == r"/a\[1\]/\{b\}/c\*d\?/e\\f"


def session(encoding: str) -> Any:
    system = SimpleNamespace(getProperty=lambda name: encoding)
    return SimpleNamespace(_jvm=SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system))))


@pytest.mark.parametrize("name", ["größe.json", "größe/a.json"])
def test_a_local_name_that_java_does_not_see_is_refused(tmp_path: Path, name: str):
    (tmp_path / "plain.json").touch()
    for encoding in ("ANSI_X3.4-1968", "UTF-8"):
        check_names(session(encoding), f"file:{tmp_path}")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    check_names(session("UTF-8"), f"file:{tmp_path}")
    check_names(session("ANSI_X3.4-1968"), "s3a://bucket/landing")
    with pytest.raises(UsageError, match=r"as ANSI_X3.4-1968 here, and does not see .*/größe.*LC_ALL to C.UTF-8"):
        check_names(session("ANSI_X3.4-1968"), f"file:{tmp_path}")
