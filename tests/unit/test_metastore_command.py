"""What the metastore's database says when it does not let us in, or holds a metastore of another version."""

from types import SimpleNamespace
from typing import Any

import metastore
import pytest
from reconcile_jobs.process.errors import UsageError


@pytest.mark.parametrize(
    ("state", "may_pass"),
    [("08006", True), ("53300", True), ("57P03", True), (None, True), ("28P01", False), ("3D000", False)],
)
def test_a_retry_is_promised_where_it_may_help(state: str | None, may_pass: bool):
    """Lost, too many connections, starting up, nothing said; a wrong password, a database that is not there."""
    assert metastore._may_pass(state) == may_pass


@pytest.mark.parametrize("version", ["2.2.0", "2.3.1", "3.1.0", "4.0.0"])
def test_a_metastore_of_an_earlier_or_later_version_is_refused(version: str, monkeypatch: pytest.MonkeyPatch):
    said = {"URL": "jdbc:postgresql://a/b", "USER": "u", "PASSWORD": "p"}
    for name, value in said.items():
        monkeypatch.setenv(f"RECONCILE_METASTORE_{name}", value)
    monkeypatch.setenv("RECONCILE_WAREHOUSE", "/warehouse")
    connection: Any = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(metastore, "_connect", lambda *_: connection)
    monkeypatch.setattr(metastore, "_execute", lambda *_: None)
    monkeypatch.setattr(metastore, "_version", lambda _: version)
    console: Any = SimpleNamespace(say=lambda _: None, result=lambda _: None)
    with pytest.raises(UsageError, match=rf"has version {version}, and Spark's Hive client needs"):
        metastore.main([], console)
