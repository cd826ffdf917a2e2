"""append.py's command line, and the names of staging tables: refused before Spark starts."""

import importlib.util
from pathlib import Path

import pytest
from reconcile_jobs.errors import UsageError
from reconcile_jobs.staging import TableName, literal, quoted

PATH = Path(__file__).resolve().parents[2] / "ingestion" / "append.py"
spec = importlib.util.spec_from_file_location("append", PATH)
assert spec is not None
assert spec.loader is not None
append = importlib.util.module_from_spec(spec)
spec.loader.exec_module(append)

ASKED = ["datastream", "--path", "/landing", "--staging", "lake.shop"]


def test_what_is_not_said_has_a_default():
    options = append.arguments(ASKED)
    assert (options.format, options.checkpoint, options.max_files, options.every) == ("auto", None, None, None)
    assert options.skip_corrupt_files is False


@pytest.mark.parametrize(("said", "interval"), [("30s", "30 seconds"), ("5m", "5 minutes"), ("1h", "1 hours")])
def test_an_interval_is_a_number_and_a_unit(said: str, interval: str):
    assert append.arguments([*ASKED, "--every", said]).every == interval


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ["spannr"],
        ["datastream"],
        ASKED[:3],
        [*ASKED, "--every", "0s"],
        [*ASKED, "--every", "soon"],
        [*ASKED, "--max-files", "0"],
        [*ASKED, "--max-files", "many"],
        [*ASKED, "--format", "csv"],
        [*ASKED, "--unknown"],
    ],
)
def test_a_wrong_command_is_one_sentence_and_exit_code_2(wrong: list[str]):
    with pytest.raises(UsageError) as refused:
        append.arguments(wrong)
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)
    assert "--help" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("lake.shop", ("lake", "shop")),
        ("main.lake.shop", ("main", "lake", "shop")),
        ("lake.`odd name`", ("lake", "odd name")),
        ("`a.b`.`c``d`", ("a.b", "c`d")),
        ("lake.größe", ("lake", "größe")),
        ("lake.`x'); drop table y; --`", ("lake", "x'); drop table y; --")),
    ],
)
def test_a_name_is_read_and_quoted_whatever_it_holds(text: str, parts: tuple[str, ...]):
    name = TableName.parse(text)
    assert name.parts == parts
    assert TableName.parse(name.sql).parts == parts
    assert TableName.parse(str(name)).parts == parts


@pytest.mark.parametrize(
    "text", ["", "shop", "a.b.c.d", "lake.", ".shop", "lake.odd name", "lake.`open", "lake.``", "a`b.c"]
)
def test_what_is_no_name_is_refused(text: str):
    with pytest.raises(UsageError, match="not the name of a table"):
        TableName.parse(text)


def test_different_tables_have_different_checkpoints():
    names = ["a.b", "a.`b.c`", "`a.b`.c", "a.`b c`", "a.`b%20c`", "a.`b/c`", "a.`b`````"]
    files = [TableName.parse(name).file_name for name in names]
    assert len(set(files)) == len(files)
    assert not any("/" in file for file in files)
    assert TableName.parse("Lake.SHOP").file_name == TableName.parse("lake.shop").file_name


def test_identifiers_and_literals_cannot_be_left():
    assert quoted("a`b", "c") == "`a``b`.`c`"
    assert literal("it's \\ ${x}") == r"'it\'s \\ ${x}'"
