"""prove.py's command line: refused before Spark starts, and without what may be secret."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import prove
import pytest
from reconcile_jobs.process import session
from reconcile_jobs.process.errors import UsageError

URL = ["--url", "jdbc:postgresql://host/shop"]
ASKED = [*URL, "--models", "orders"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "--url and --models are needed, or --replay"),
        (URL, "--url and --models are needed"),
        ([*ASKED, "--password", "hidden"], "User and password are not given on the command line"),
        (["--url", "jdbc:postgresql://u:hidden@host/shop", "--models", "a"], "--url holds a password"),
        (["--url", "jdbc:h2:mem:x", "--models", "a"], "--url is not of a supported database"),
        (["--url", "jdbc:cloudspanner://hidden", "--models", "a"], "Spanner has no JDBC URL here"),
        ([*ASKED, "--table", "orders"], "--table orders is not a model and its table"),
        ([*ASKED, "--table", "a=b.c", "--table", "a=b.d"], "--table names a twice"),
        ([*ASKED, "--allowance", "soon"], "soon is not a duration; write it as '10 minutes'"),
        ([*ASKED, "--max-rows", "0"], "0 is not a number of rows"),
        ([*ASKED, "--statement-timeout", "1d"], "1d is not an interval"),
        ([*ASKED, "--certificate", "proof.json"], "does not end in .html"),
        (["--url", f"{URL[1]}?loggerFile=hidden", "--models", "a"], "the property loggerFile"),
        ([*ASKED, "--replay", "proof.json"], "--replay goes without --url"),
        (["--replay", "nowhere.json"], "--replay nowhere.json cannot be read: No such file or directory"),
        ([*ASKED, "--secret=hidden"], "unrecognized arguments: --secret; see `prove.py --help`"),
    ],
)
def test_what_cannot_be_asked_for_is_a_sentence(words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session, "start", _started)
    monkeypatch.delenv("RECONCILE_JDBC_USER", raising=False)
    with pytest.raises(UsageError) as refused:
        prove.main(words, SimpleNamespace(err=None))  # type: ignore[arg-type]
    assert sentence in str(refused.value) and "hidden" not in str(refused.value)


def _started(name: str) -> Any:
    raise AssertionError("Spark was started")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("<html>", "it is not JSON"),
        ("[]", "is not the JSON of a certificate"),
        (json.dumps({"models": [], "position": {}, "format": 2}), "has the format 2, and this version reads 1"),
    ],
)
def test_what_is_no_certificate_is_not_replayed(
    content: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(session, "start", _started)
    (tmp_path / "proof.json").write_text(content)
    with pytest.raises(UsageError, match=sentence):
        prove.main(["--replay", str(tmp_path / "proof.json")], SimpleNamespace(err=None))  # type: ignore[arg-type]


def test_a_certificate_says_how_to_run_the_command_again_without_properties_of_the_connection():
    words = [
        "--url", "jdbc:postgresql://host/shop?sslkey=hidden", "--select", "tag:shop", "orders", "--table",
        'orders=shop."Or ders"', "--properties", "hidden", "--certificate", "proof.html", "--values",
    ]  # fmt: skip
    assert prove._again(prove._parser().parse_args(words)) == [
        "prove.py", "--url", "jdbc:postgresql://host/shop", "--models", "tag:shop", "orders", "--table",
        'orders=shop."Or ders"', "--values", "--certificate", "proof.html",
    ]  # fmt: skip


def test_urls_lose_their_properties():
    assert prove.without_properties("jdbc:sqlserver://host:1433;databaseName=shop;trustStore=x") == (
        "jdbc:sqlserver://host:1433"
    )
    assert prove.without_properties("jdbc:oracle:thin:@//host/shop") == "jdbc:oracle:thin:@//host/shop"
