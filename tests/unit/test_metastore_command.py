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


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for the metastore's database; return the statements that it is given, and `close` at the end."""
    said = {"URL": "jdbc:postgresql://a/b", "USER": "u", "PASSWORD": "p"}
    for name, value in said.items():
        monkeypatch.setenv(f"RECONCILE_METASTORE_{name}", value)
    monkeypatch.setenv("RECONCILE_WAREHOUSE", "/warehouse")
    statements = list[str]()
    connection: Any = SimpleNamespace(close=lambda: statements.append("close"))
    monkeypatch.setattr(metastore, "_connect", lambda *_: connection)
    monkeypatch.setattr(metastore, "_execute", lambda _, sql: statements.append(sql))
    return statements


@pytest.mark.parametrize("version", ["2.2.0", "2.3.1", "3.1.0", "4.0.0"])
def test_a_metastore_of_an_earlier_or_later_version_is_refused(
    version: str, executed: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(metastore, "_version", lambda _: version)
    console: Any = SimpleNamespace(say=lambda _: None, result=lambda _: None)
    with pytest.raises(UsageError, match=rf"has version {version}, and Spark's Hive client needs"):
        metastore.main([], console)
    assert executed[-1] == "close"


def test_of_two_at_once_the_second_waits_until_the_first_has_made_the_metastore(
    executed: list[str], monkeypatch: pytest.MonkeyPatch
):
    """PostgreSQL's own lock, which waits and ends with the connection: taken first, given back last."""

    def made(*_: object) -> None:
        executed.append("the tables")

    def version(_: object) -> str | None:
        executed.append("the version")
        return None

    monkeypatch.setattr(metastore, "_version", version)
    monkeypatch.setattr(metastore, "_create_tables", made)
    monkeypatch.setattr(metastore, "_first_session", lambda: executed.append("the first session"))
    metastore.main([], SimpleNamespace(say=lambda _: None, result=lambda _: None))  # type: ignore[arg-type]
    lock, *then, _, first_session, close = executed
    assert lock == f"select pg_advisory_lock({metastore._LOCK})"
    assert then == ["the version", "the tables"]
    assert (first_session, close) == ("the first session", "close")
