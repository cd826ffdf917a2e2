"""append.py's command line, and the names of staging tables: refused before Spark starts."""

import dataclasses
import io
import re
import threading
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import append
import pytest
from reconcile_jobs import append_table, datastream, snapshot_differences
from reconcile_jobs.append_arguments import arguments
from reconcile_jobs.bigtable import job as bigtable_job
from reconcile_jobs.expectations import Expected
from reconcile_jobs.process import session
from reconcile_jobs.process.dbt_runs import append_and_run
from reconcile_jobs.process.errors import DataError, Fault, UsageError
from reconcile_jobs.spanner import job
from reconcile_jobs.staging import TableName, literal, quoted
from reconcile_jobs.table_formats import format_of

DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
ASKED = ["datastream", "--path", "/landing", "--staging", "lake.shop"]
STREAM = ["spanner", "--project", "p", "--instance", "i", "--database", "d", "--stream", "s", "--staging", "lake.shop"]

TABLE = [
    "bigtable",
    "--project",
    "p",
    "--instance",
    "i",
    "--table",
    "t",
    "--app-profile",
    "a",
    "--staging",
    "lake.shop",
]


def asked_by(words: list[str]) -> Any:
    """Return the options of the source's job."""
    _, options, *_ = arguments(words, "Append.")
    return SimpleNamespace(**options)


def test_what_is_not_said_has_a_default():
    options = asked_by(ASKED)
    assert (options.format, options.checkpoint, options.max_files, options.every) == ("auto", None, None, None)
    assert (options.skip_corrupt_files, options.longest_record) == (False, 32 * 2**20)
    options = asked_by(STREAM)
    assert (options.window, options.heartbeat, options.partition_check) == ("60s", "10s", "fail")


@pytest.mark.parametrize(
    ("words", "kind"),
    [(ASKED, datastream.Job), (STREAM, job.Job), (TABLE, bigtable_job.Job)],
    ids=["datastream", "spanner", "bigtable"],
)
def test_a_job_has_the_options_of_its_source_and_their_defaults(words: list[str], kind: Any):
    source, options, dbt, expected = arguments(words, "Append.")
    assert (source, dbt, expected) == (words[0], None, None)
    made = kind(**options)
    assert str(made.staging) == "lake.shop"
    for field in dataclasses.fields(kind):
        assert field.default is dataclasses.MISSING or getattr(made, field.name) == field.default, field.name


@pytest.mark.parametrize(("said", "interval"), [("30s", "30 seconds"), ("5m", "5 minutes"), ("1h", "1 hours")])
def test_an_interval_is_a_number_and_a_unit(said: str, interval: str):
    assert asked_by([*ASKED, "--every", said]).every == interval
    number, unit = interval.split()
    assert asked_by([*TABLE, "--every", said]).every == int(number) * {"seconds": 1, "minutes": 60, "hours": 3600}[unit]


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ([*ASKED, "--format", "avro"], "format", "avro"),
        ([*ASKED, "--max-files", "1"], "max_files", 1),
        ([*ASKED, "--checkpoint", "s3://b/c"], "checkpoint", "s3://b/c"),
        ([*ASKED, "--format", "json"], "format", "json"),
        ([*ASKED, "--longest-record", "1m"], "longest_record", 2**20),
        ([*ASKED, "--longest-record", "1024k"], "longest_record", 2**20),
        ([*STREAM, "--longest-record", "33MB"], "longest_record", 33 * 2**20),
        ([*TABLE, "--longest-record", "1g"], "longest_record", 2**30),
        ([*STREAM, "--heartbeat", "1s"], "heartbeat", "1s"),
        ([*STREAM, "--heartbeat", "5m"], "heartbeat", "5m"),
        ([*STREAM, "--window", "2 h"], "window", "2h"),
        ([*STREAM, "--partition-check", "fail"], "partition_check", "fail"),
        ([*ASKED, "--skip-corrupt-files"], "skip_corrupt_files", True),
        ([*STREAM, "--table", "Orders", "--table", "Lines"], "tables", ["Orders", "Lines"]),
        ([*STREAM, "--partition-check", "warn"], "partition_check", "warn"),
        ([*STREAM, "--start", "2026-05-01T09:00:00Z"], "start", "2026-05-01T09:00:00Z"),
        ([*STREAM, "--end", "2026-05-01T09:00:00Z"], "end", "2026-05-01T09:00:00Z"),
        ([*STREAM, "--backfill"], "backfill", True),
        ([*TABLE, "--backfill"], "backfill", True),
        ([*TABLE, "--start", "2026-05-01T09:00:00Z"], "start", "2026-05-01T09:00:00Z"),
        ([*TABLE, "--end", "2026-05-01T09:00:00Z"], "end", "2026-05-01T09:00:00Z"),
    ],
)
def test_what_is_said_of_a_source_reaches_its_job(words: list[str], name: str, value: Any):
    assert getattr(asked_by(words), name) == value


@pytest.mark.parametrize("source", [STREAM, TABLE])
def test_a_source_is_named_whole(source: list[str]):
    for place in range(1, len(source), 2):
        with pytest.raises(UsageError, match=source[place]):
            asked_by(source[:place] + source[place + 2 :])


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
        [*ASKED, "--max-files", "-1"],
        [*ASKED, "--max-files", "1.5"],
        [*ASKED, "--start", "2026-05-01T09:00:00Z"],
        [*ASKED, "--format", "csv"],
        [*ASKED, "--unknown"],
        STREAM[:9],
        [*STREAM, "--window", "soon"],
        [*STREAM, "--heartbeat", "0s"],
        [*STREAM, "--heartbeat", "6m"],
        [*STREAM, "--heartbeat", "301s"],
        [*ASKED, "--longest-record", "1023k"],
        [*ASKED, "--longest-record", "1025m"],
        [*ASKED, "--longest-record", "2g"],
        [*ASKED, "--longest-record", "1048576"],
        [*STREAM, "--partition-check", "maybe"],
        [*ASKED, "--expect", "perhaps"],
        [*ASKED, "--expect", "--expect-lag", "long"],
        [*ASKED, "--expect", "--expect-volume", "1"],
        TABLE[:9],
        [*TABLE, "--every", "0s"],
        [*TABLE, "--checkpoint", "/there"],
        # argparse would take the last path, and the first would never be read.
        [*ASKED, "--path", "/elsewhere"],
        [*ASKED, "--format", "auto", "--format", "json"],
        # A variable of the shell that is not set.
        [*ASKED, "--dbt", ""],
        [*ASKED, "--checkpoint", ""],
        [*STREAM, "--start="],
    ],
)
def test_a_wrong_command_is_one_sentence_and_exit_code_2(wrong: list[str]):
    with pytest.raises(UsageError) as refused:
        asked_by(wrong)
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)
    assert "--help" in str(refused.value)


@pytest.mark.parametrize(
    ("source", "option"),
    [
        ("datastream", "--skip-corrupt-files"),
        ("spanner", "--stream"),
        ("bigtable", "--app-profile"),
    ],
)
def test_help_is_told_without_a_session(
    source: str, option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def started(name: str) -> Any:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(session, "start", started)
    with pytest.raises(SystemExit) as ended:
        append.main([source, "--help"], SimpleNamespace(), SimpleNamespace())  # type: ignore[arg-type]
    assert ended.value.code == 0
    told = capsys.readouterr()
    assert option in told.out
    assert told.err == ""


def test_expectations_have_defaults():
    *_, expected = arguments([*ASKED, "--expect"], "Append.")
    assert expected == Expected("warn", None, max_lag=86400, volume_factor=10, data_docs=None)
    *_, expected = arguments(
        [*STREAM, "--expect", "fail", "--expect-object", "a", "--expect-object", "b", "--expect-lag", "5m"], "Append."
    )
    assert expected == Expected("fail", ("a", "b"), max_lag=300, volume_factor=10, data_docs=None)
    *_, expected = arguments([*ASKED, "--expect", "warn", "--expect-volume", "1.5", "--data-docs", "/docs"], "Append.")
    assert expected == Expected("warn", None, max_lag=86400, volume_factor=1.5, data_docs="/docs")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--expect-lag", "5m"], "^--expect-lag works only with --expect"),
        (["--expect-object", "a"], "^--expect-object works only with --expect"),
        (["--expect-volume", "2"], "^--expect-volume works only with --expect"),
        (["--data-docs", "/docs"], "^--data-docs works only with --expect"),
        (["--expect", "--every", "30s"], "--every does not end"),
    ],
)
def test_expectations_that_nothing_would_come_of_are_refused(words: list[str], why: str):
    with pytest.raises(UsageError, match=why):
        asked_by([*ASKED, *words])


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


def test_a_name_of_three_parts_begins_with_the_catalog():
    plain, of_lake = TableName.parse("shop.orders"), TableName.parse("lake.shop.orders")
    assert (plain.catalog, plain.schema, plain.schema_sql) == (None, "shop", "`shop`")
    assert (of_lake.catalog, of_lake.schema, of_lake.schema_sql) == ("lake", "lake.shop", "`lake`.`shop`")
    assert TableName.parse("`lake.shop`.orders").catalog is None
    with pytest.raises(
        UsageError, match=r"^--staging a.b.c.d is .* as schema.table or catalog.schema.table, parts with"
    ):
        TableName.parse("a.b.c.d")


@pytest.mark.parametrize(
    ("catalog", "kind", "expected"),
    [
        (None, None, "delta"),
        ("lake", "org.apache.iceberg.spark.SparkCatalog", "iceberg"),
        ("spark_catalog", DELTA_CATALOG, "delta"),
        ("lake", None, "This Spark session has no catalog lake: set spark.sql.catalog.lake and its options where"),
        (
            "pg",
            "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
            "The catalog pg is of the class org",
        ),
    ],
)
def test_a_table_has_the_format_of_its_catalog(catalog: str | None, kind: str | None, expected: str):
    settings = {"spark.sql.catalog.spark_catalog": DELTA_CATALOG, "spark.sql.extensions": "io.delta.sql.DeltaExtension"}
    settings |= {f"spark.sql.catalog.{catalog}": kind} if kind else {}
    spark: Any = SimpleNamespace(conf=settings)
    if expected in ("delta", "iceberg"):
        assert format_of(spark, catalog).name == expected
    else:
        with pytest.raises(UsageError, match=f"^{expected}"):
            format_of(spark, catalog)


def test_different_tables_have_different_checkpoints():
    names = ["a.b", "a.`b.c`", "`a.b`.c", "a.`b c`", "a.`b%20c`", "a.`b/c`", "a.`b`````"]
    files = [TableName.parse(name).file_name for name in names]
    assert len(set(files)) == len(files)
    assert not any("/" in file for file in files)
    assert TableName.parse("Lake.SHOP").file_name == TableName.parse("lake.shop").file_name


def test_identifiers_and_literals_cannot_be_left():
    assert quoted("a`b", "c") == "`a``b`.`c`"
    # Spark would replace ${x} by a variable.
    assert literal("it's \\ ${x}") == r"'it\'s \\ \u0024{x}'"


# --- what main does ---------------------------------------------------------------------------------------------------


class Said:
    """A console that keeps what it is told."""

    def __init__(self) -> None:
        self.results: list[dict[str, Any]] = []

    def say(self, text: str) -> None: ...

    def progress(self, text: str) -> None: ...

    def result(self, values: dict[str, Any]) -> None:
        self.results.append(values)


@dataclasses.dataclass
class Appended:
    first_batch: int = 3
    last_batch: int = 7


@pytest.mark.parametrize(("on_failure", "success", "fails"), [
    ("fail", False, True), ("fail", True, False), ("warn", False, False),
])  # fmt: skip
def test_what_was_appended_is_looked_at_from_the_first_batch_of_the_run_on(
    monkeypatch: pytest.MonkeyPatch, on_failure: str, success: bool, fails: bool
) -> None:
    looked_at: list[int] = []

    @dataclasses.dataclass
    class Outcome:
        success: bool

    def check(spark: Any, staging: Any, source: str, first: int, expected: Any, say: Any) -> Outcome:
        looked_at.append(first)
        return Outcome(success)

    monkeypatch.setattr(append, "import_module", lambda name: SimpleNamespace(
        Job=lambda **asked: asked, run=lambda spark, job, caller: Appended()
    ))  # fmt: skip
    monkeypatch.setattr(session, "start", lambda name, has_context: "a session")
    monkeypatch.setattr(append.expectations, "check", check)
    monkeypatch.setattr(append.expectations, "refusal", lambda staging, outcome: UsageError("not as expected"))
    console, shutdown = Said(), SimpleNamespace(watch=lambda spark: None, listen=None, stop=None)
    words = [*ASKED, "--expect", on_failure]
    if fails:
        with pytest.raises(UsageError, match="not as expected"):
            append.main(words, console, shutdown)  # type: ignore[arg-type]
    else:
        append.main(words, console, shutdown)  # type: ignore[arg-type]
    assert looked_at == [3]
    (result,) = console.results
    assert result.pop("seconds") < 60
    assert result == {"first_batch": 3, "last_batch": 7, "expectations": {"success": success}}


def test_what_a_job_that_comes_back_finds_again_is_said_once() -> None:
    said: list[str] = []
    say = append._once(said.append)
    for sentence in ("a link leads nowhere", "a file is hidden", "a link leads nowhere"):
        say(sentence)
    assert said == ["a link leads nowhere", "a file is hidden"]


@pytest.mark.parametrize("every", [None, "30s"])
@pytest.mark.parametrize("fails", [False, True])
def test_with_dbt_what_it_came_to_is_told_and_a_failure_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, every: str | None, fails: bool
) -> None:
    """Only a job that comes back may leave a pass unfinished, and says once what it finds again."""
    callers: list[Any] = []
    said: list[str] = []
    stop = threading.Event()

    class Dbt(append.DbtRuns):
        def run(self) -> bool:
            self.totals.runs, self.totals.failed = self.totals.runs + 1, ["orders"] if fails else []
            return True

    def run(spark: Any, job: Any, caller: Any) -> Appended:
        callers.append(caller)
        for _ in range(2):
            caller.say("a link leads nowhere")
        return Appended()

    def passed(job: Any, dbt: Dbt, interval: float | None, *more: Any) -> Any:
        assert interval == (30 if every else None) and more[0] is stop and not more[1]()
        return append_and_run(job, dbt, None, *more)

    monkeypatch.setattr(append, "import_module", lambda name: SimpleNamespace(Job=lambda **asked: asked, run=run))
    monkeypatch.setattr(append, "DbtRuns", Dbt)
    monkeypatch.setattr(append, "append_and_run", passed)
    monkeypatch.setattr(session, "start", lambda name, has_context: "a session")
    console, shutdown = Said(), SimpleNamespace(watch=lambda spark: None, listen=None, stop=stop)
    console.err, console.say = io.StringIO(), said.append  # type: ignore[attr-defined, method-assign]
    words = [*ASKED, "--dbt", "build", *(["--every", every] if every else [])]
    with pytest.raises(DataError, match="in the last run of dbt orders failed") if fails else nullcontext():
        append.main(words, console, shutdown)  # type: ignore[arg-type]
    assert [caller.comes_back for caller in callers] == [every is not None]
    assert said == ["a link leads nowhere"]
    (result,) = console.results
    assert result.pop("seconds") < 60
    told = {"runs": 1, "failed_runs": 0, "failed": ["orders"] if fails else [], "seconds": 0}
    assert result == {"first_batch": 3, "last_batch": 7, "dbt": told}


@pytest.mark.parametrize(
    ("words", "dbt"),
    [
        ([*ASKED, "--dbt", "build"], ("build", None)),
        ([*ASKED, "--dbt", "build", "--every", "2m"], ("build", 120)),
        ([*TABLE, "--dbt", "run -s tag:x", "--every", "5s"], ("run -s tag:x", 5)),
    ],
)
def test_with_dbt_it_is_not_the_job_that_keeps_going(words: list[str], dbt: Any):
    _, options, found, _ = arguments(words, "Append.")
    assert (found, options["every"], "dbt" in options) == (dbt, None, False)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([*STREAM, "--dbt", "build", "--every", "5s", "--end", "2026-05-01T09:00:00Z"], "--dbt with --every does not"),
        ([*STREAM, "--dbt", "build", "--every", "5s", "--expect"], "--expect checks the records of a run that ends"),
    ],
)
def test_what_keeps_going_with_dbt_has_no_end(words: list[str], sentence: str):
    with pytest.raises(UsageError, match=sentence):
        arguments(words, "Append.")


@pytest.mark.parametrize("asked", [True, False])
def test_what_breaks_while_spark_starts_is_no_failure_if_the_job_was_asked_to_stop(
    monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    """Ctrl-C ends the JVM too, so that the next call to it fails in words of its own."""

    def start(name: str, has_context: Any) -> None:
        has_context()
        raise RuntimeError("the JVM is gone")

    stop = threading.Event()
    shutdown = SimpleNamespace(listen=stop.set if asked else lambda: None, stop=stop)
    monkeypatch.setattr(session, "start", start)
    refused, says = (Fault, "Stopped before anything was appended") if asked else (RuntimeError, "the JVM is gone")
    with pytest.raises(refused, match=says):
        append.main(ASKED, Said(), shutdown)  # type: ignore[arg-type]


APPENDED = ["table", "--table", "shop.orders", "--staging", "lake.appended"]
COPY = ["snapshot", "--table", "lake.copy", "--staging", "lake.copies", "--key", "region, id"]


def test_an_append_table_and_a_snapshot_are_asked_for_without_a_checkpoint_or_expectations():
    tables = append_table.Job(**vars(asked_by([*APPENDED, "--table", "shop.lines", "--every", "2m"])))
    assert [str(table) for table in tables.tables] == ["shop.orders", "shop.lines"]
    assert (tables.every, tables.reread, tables.object) == (120, False, None)
    snapshot = snapshot_differences.Job(**vars(asked_by(COPY)))
    assert (str(snapshot.table), snapshot.key, snapshot.allow_empty) == ("lake.copy", ("region", "id"), False)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([*COPY, "--key", "id,ID"], "'id,ID' names no column, or a column twice"),
        ([*COPY, "--key", ","], "',' names no column"),
        (["snapshot", "--table", "copy", "--staging", "lake.copies", "--key", "id"], "--table copy is not the name of"),
        ([*COPY, "--every", "5s"], "unrecognized arguments: --every"),
        ([*APPENDED, "--reread", "--every", "5s"], "--reread reads each table only once: remove --every."),
        ([*APPENDED, "--expect"], "unrecognized arguments: --expect"),
        ([*APPENDED, "--checkpoint", "/c"], "unrecognized arguments: --checkpoint"),
    ],
)
def test_what_neither_takes_is_refused(words: list[str], sentence: str):
    with pytest.raises(UsageError, match=re.escape(sentence)):
        arguments(words, "Append.")
