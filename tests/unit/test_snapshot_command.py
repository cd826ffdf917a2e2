"""snapshot.py: what its kinds are asked for reaches the one that loads, the rest is refused before Spark starts."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
import snapshot
from reconcile_jobs.csv_records import Dialect
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.timestamps import nanoseconds

CSV = ["csv", "--path", "/export", "--into", "lake.t", "--schema", "id int"]
FILES = ["files", "--path", "/export", "--into", "lake.t", "--format", "parquet"]
AT = "2026-05-01T09:00:00Z"


class Console:
    """What is said and printed."""

    def __init__(self) -> None:
        self.said, self.results = list[str](), list[dict[str, Any]]()
        self.say, self.result = self.said.append, self.results.append


def refuse(words: list[str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(name: str) -> Any:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(snapshot.session, "start", started)
    console: Any = Console()
    with pytest.raises(UsageError, match=says):
        snapshot.main(words, console)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        *(
            (["--delimiter", text], "^--delimiter .* is not one character, and neither quote nor line break")
            for text in (";;", '"', "\r", "\n", "\\n")
        ),
        *(
            (["--null", text], "^--null .* would always be in quotes; give a text without separator, quote")
            for text in (",", '"', "a\rb", "\n", 'NULL"')
        ),
        (["--null", ";", "--delimiter", ";"], "^--null ';' would always be in quotes"),
        (["--null", "\t", "--delimiter", "\\t"], "^--null .* would always be in quotes"),
        *(
            (["--at", AT, "--pg-snapshot", text], r"^--pg-snapshot '.*' is not what pg_current_snapshot\(\) says")
            for text in (
                "18642:18650",
                "18642",
                "18642:18650:x",
                "18642:18650:1,",
                "a18642:18650:",
                "1:2:3:4",
                "1:2:\n",
            )
        ),
        (["--pg-snapshot", "18642:18650:"], "^--pg-snapshot needs --at, the time of the export"),
        (["--mask-object", "shop.orders"], "^--mask-object works only with --masks"),
    ],
)
def test_what_cannot_be_of_a_csv_is_refused(words: list[str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse([*CSV, *words], says, monkeypatch)


def test_a_moment_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse([*FILES, "--at", "yesterday"], "yesterday", monkeypatch)
    refuse([*CSV, "--at", "tomorrow"], "tomorrow", monkeypatch)
    refuse(["table", "--table", "lake.view", "--into", "lake.t", "--at", "9:00"], "9:00", monkeypatch)


@pytest.mark.parametrize("option", ["--masks", "--mask-key-file", "--mask-object"])
def test_what_cannot_mask_refuses_each_option_of_masks(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gives one must not believe that values are masked."""
    source = ["--project", "p", "--instance", "i", "--table", "t", "--into", "lake.t"]
    refuse(["spanner", *source, "--database", "d", option, "x"], "^--masks is not for Spanner", monkeypatch)
    refuse(["bigtable", *source, option, "x"], "^--masks is not for Bigtable", monkeypatch)


def loaded(words: list[str], loader: str, monkeypatch: pytest.MonkeyPatch) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return what the one that loads is given; it loads seven rows."""
    given: list[Any] = []

    def load(spark: Any, *arguments: Any, **options: Any) -> int:
        given.append((arguments, options))
        return 7

    monkeypatch.setattr(snapshot.session, "start", lambda name: SimpleNamespace())
    monkeypatch.setattr(snapshot, "columns_of", lambda schema: schema)
    monkeypatch.setattr(snapshot, loader, load)
    console: Any = Console()
    snapshot.main(words, console)
    (result,) = console.results
    assert result.pop("seconds") < 60
    assert result == {"rows": 7, "into": "lake.t"} and not console.said
    found: tuple[tuple[Any, ...], dict[str, Any]] = given[0]
    return found


def test_an_export_of_postgresql_has_its_moment_and_its_position(monkeypatch: pytest.MonkeyPatch) -> None:
    for position in ("18642:18650:18644", "18642:18650:18644,18645,18646", "18642:18650:"):
        words = [*CSV, "--at", AT, "--pg-snapshot", position, "--null", "\\N", "--delimiter", "\\t"]
        (path, into, columns, dialect), options = loaded(words, "load_csv", monkeypatch)
        assert (path, str(into), columns, dialect) == ("/export", "lake.t", "id int", Dialect("\t", "\\N"))
        assert options == {
            "header": True, "taken_at": "2026-05-01T09:00:00.000000000Z", "pg_snapshot": position, "masks": None,
        }  # fmt: skip


def test_without_a_moment_rows_were_taken_when_the_command_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    before = time.time_ns()
    (*_, dialect), options = loaded([*CSV, "--no-header"], "load_csv", monkeypatch)
    assert (dialect, options["header"], options["pg_snapshot"]) == (Dialect(), False, None)
    assert before <= nanoseconds(options["taken_at"]) <= time.time_ns()
    (path, kind, _, taken_at, masks), _ = loaded(FILES, "load_files", monkeypatch)
    assert (path, kind, masks) == ("/export", "parquet", None) and before <= nanoseconds(taken_at) <= time.time_ns()


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro", "delta", "iceberg"])
def test_files_of_each_format_with_types_are_taken(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["files", "--path", "/export", "--into", "lake.t", "--format", kind]
    assert loaded(words, "load_files", monkeypatch)[0][1] == kind
