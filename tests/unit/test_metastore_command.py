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
    said: list[dict[str, Any]] = []
    console: Any = SimpleNamespace(say=lambda _: None, result=said.append)
    metastore.main([], console)
    lock, *then, noted, first_session, close = executed
    assert lock == f"select pg_advisory_lock({metastore._LOCK})"
    assert then == ["the version", "the tables"]
    assert noted.startswith('insert into "VERSION" ') and "values (1, '2.3.0', " in noted
    assert (first_session, close) == ("the first session", "close")
    del executed[:]
    monkeypatch.setattr(metastore, "_version", lambda _: "2.3.0")
    metastore.main([], console)
    assert executed[1:] == ["the first session", "close"], "what is there stays as it is"
    assert [(told["created"], told["version"], sorted(told)) for told in said] == [
        (made, "2.3.0", ["created", "seconds", "version"]) for made in (True, False)
    ]


@pytest.mark.parametrize("name", ["METASTORE_URL", "METASTORE_USER", "METASTORE_PASSWORD", "WAREHOUSE"])
def test_what_the_configuration_takes_from_the_environment_is_asked_for_before_anything_is_made(
    name: str, executed: list[str], monkeypatch: pytest.MonkeyPatch
):
    console: Any = None
    for absent in (
        lambda: monkeypatch.delenv(f"RECONCILE_{name}"),
        lambda: monkeypatch.setenv(f"RECONCILE_{name}", ""),
    ):
        absent()
        with pytest.raises(UsageError, match=f"^RECONCILE_{name} is not set"):
            metastore.main([], console)
    assert not executed


def test_a_metastore_of_another_database_is_refused(executed: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RECONCILE_METASTORE_URL", "jdbc:mysql://a/b")
    console: Any = None
    with pytest.raises(UsageError, match=r"^RECONCILE_METASTORE_URL is not a URL of PostgreSQL"):
        metastore.main([], console)
    assert not executed


class Database:
    """A connection of the JVM to a database that answers these queries, each with the text in its first column."""

    def __init__(self, **answers: str | None) -> None:
        self.answers, self.open = answers, 0

    def createStatement(self) -> Any:
        self.open += 1
        return self

    def executeQuery(self, sql: str) -> Any:
        rows = [answer for word, answer in self.answers.items() if word in sql]
        return SimpleNamespace(next=lambda: bool(rows), getString=lambda place: rows[place - 1])

    def close(self) -> None:
        self.open -= 1


@pytest.mark.parametrize(
    ("answers", "version"),
    [
        ({"to_regclass": "t"}, None), ({"to_regclass": "f", "max": "2.3.0"}, "2.3.0"), ({"to_regclass": "f"}, None),
        ({"to_regclass": "t", "max": "2.3.0"}, None),
    ],
    ids=["nothing", "a metastore", "half of one", "no table that one could ask"],
)  # fmt: skip
def test_the_version_is_the_one_that_the_metastore_says(answers: dict[str, str | None], version: str | None):
    database = Database(**answers)
    assert metastore._version(database) == version
    assert database.open == 0, "each statement is closed"
