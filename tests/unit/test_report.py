"""report.py: one page and metrics of all models, whatever they are called, and the exit codes of status.py."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
import report
from reconcile_jobs.monitoring import facts, metrics, page
from reconcile_jobs.monitoring.facts import Facts, Limits
from reconcile_jobs.monitoring.state import DAYS, STATES, State, state_of
from reconcile_jobs.process import session
from reconcile_jobs.process.errors import DataError, Fault, JobError, Undecided, UsageError

NOW = datetime.fromtimestamp(1_795_000_000)  # as Spark gives a time
TODAY = datetime.fromtimestamp(1_795_000_000, UTC).date()
STAGING = "lake.changes"
HOSTILE = (
    'x</title><script>document.title="ran"</script>\'"\\\n\u202eevil {{ 7 * 7 }} &amp; <img src="//example.com/x"/>'
)


def said(kind: str, relation: str, **more: Any) -> Any:
    nothing = dict.fromkeys(("object", "records", "first_batch", "last_batch", "batches", "at", "detail", "state"))
    return SimpleNamespace(**{**nothing, "kind": kind, "relation": relation, "now": NOW, **more})


def appended(name: str = STAGING, hours: float | None = 1) -> Any:
    at = None if hours is None else NOW - timedelta(hours=hours)
    return said("appended", name, first_batch=1, last_batch=9, at=at)


def day(ago: int, applied: int, lag: int) -> Any:
    return SimpleNamespace(day=TODAY - timedelta(days=ago), applied=applied, lag_seconds=lag)


def model(relation: str = "demo.fine", **more: Any) -> Any:
    """Return a row of reconcile_models: of a model with which all is right, but for what `more` says."""
    fine = {
        "relation": relation, "state": "right", "staging": STAGING, "materialized": "current_state",
        "as_of": NOW - timedelta(hours=1), "lag_seconds": 3600, "batches_behind": 0, "records_behind": 0,
        "pending_rows": 0, "quarantined": 0, "quarantine_reasons": [], "drift": [], "set_back": None,
        "parity_verdict": "match", "compared_at": NOW - timedelta(days=3), "stored_rows": 1200,
        "days": [day(0, 40, 60), day(1, 20, 7200), day(29, 10, 30), day(30, 9999, 9999)], "now": NOW, "is_built": True,
    }  # fmt: skip
    return SimpleNamespace(**{**fine, **more})


BEHIND = model(
    "demo.behind",
    state="wait",
    as_of=NOW - timedelta(hours=5),
    lag_seconds=18000,
    batches_behind=2,
    records_behind=1500,
)
QUARANTINE = model(
    "demo.bad",
    state="wrong",
    quarantined=1007,
    quarantine_reasons=[
        SimpleNamespace(records=1000, reason="n: '300' is not exactly a tinyint"),
        SimpleNamespace(records=7, reason=HOSTILE),
    ],
)
NEVER = model(
    "demo.never", parity_verdict=None, compared_at=None, days=[], stored_rows=None, materialized="current_view"
)
SET_BACK = model(
    "demo.back", state="wrong", set_back="batch 9 was applied, and it is gone", as_of=None, lag_seconds=None
)
DRIFT = model("demo.drift", state="look", drift=[f"column c{n} is new" for n in range(5)], pending_rows=4)
ODD = model(HOSTILE, staging=HOSTILE, drift=[HOSTILE], set_back=HOSTILE, state="wrong")
MODELS = [model(), BEHIND, QUARANTINE, NEVER, SET_BACK, DRIFT, ODD]


def state(status: list[Any] | None = None, models: list[Any] | None = None, limits: Limits | None = None) -> State:
    return state_of(
        Facts([appended()] if status is None else status, MODELS if models is None else models, NOW),
        limits or Limits(),
    )


# --- the state ---


def test_the_worst_comes_first_and_of_the_same_kind_what_is_further_behind() -> None:
    shown = [(each.state, each.row.relation) for each in state().models]
    assert [word for word, _ in shown] == ["wrong", "wrong", "wrong", "look", "wait", "right", "right"]
    assert shown[0] == ("wrong", "demo.back"), "how far it is behind, nobody knows"
    assert state().state == "wrong" and state(models=[model()]).state == "right"
    later = model("demo.later", lag_seconds=3601)
    assert [each.row.relation for each in state(models=[model(), later]).models] == ["demo.later", "demo.fine"]


def test_models_of_a_table_to_which_nothing_was_appended_for_days_are_not_right_whatever_their_tests_say() -> None:
    stopped = [appended(hours=72), appended("lake.others")]
    others = model("demo.others", staging="lake.others")
    shown = state(stopped, [model(), others, DRIFT, QUARANTINE, model("demo.own", staging=None, as_of=None)])
    assert {each.row.relation: each.state for each in shown.models} == {
        "demo.bad": "wrong", "demo.fine": "stopped", "demo.drift": "stopped", "demo.others": "right",
        "demo.own": "right",
    }  # fmt: skip
    assert [(each.name, each.state) for each in shown.staging] == [(STAGING, "stopped"), ("lake.others", "right")]
    assert state(stopped, [model()]).state == "stopped"
    patient = Limits(appended_within=timedelta(hours=72))
    assert state(stopped, [model()], patient).state == "right"
    assert state([appended(hours=None)], []).state == "stopped"


def behind(hours: float, relation: str = "demo.behind") -> Any:
    at = NOW - timedelta(hours=hours)
    return said("not_applied", relation, records=1, first_batch=1, last_batch=1, at=at, state="wait")


def test_a_model_whose_records_no_run_has_applied_for_days_is_stopped() -> None:
    """A dbt run that died, while the append job goes on: it would be `wait` for ever."""
    for hours, word in ((24, "wait"), (24.1, "stopped")):
        shown = state([appended(), behind(hours)], [BEHIND, model()])
        assert {each.row.relation: each.state for each in shown.models} == {"demo.behind": word, "demo.fine": "right"}
        assert shown.state == word
    assert [each.late_seconds for each in shown.models] == [86760, None]
    text = page.html(shown, "v")
    assert '<b class="badge stopped">■ stopped</b>' in text
    rows = table(text, "models")
    assert rows["demo.behindcurrent_state of lake.changes"][3] == (
        "1,500 in 2 batchesno run applied them for 24 h 6 min: look whether dbt still runs"
    )
    assert values(metrics.text(shown), "reconcile_model_state", relation="demo.behind", state="stopped") == [1]
    assert values(metrics.text(shown), "reconcile_models", state="stopped") == [1]
    patient = Limits(applied_within=timedelta(hours=25))
    assert state([appended(), behind(24.1)], [BEHIND], patient).state == "wait"
    others = state([appended(), behind(25, "demo.gone")], [model()]).others
    assert [(word, sentence.split(":")[0]) for word, sentence in others] == [("stopped", "demo.gone")]


UNBUILT = model(
    "demo.new", state="look", as_of=None, lag_seconds=None, batches_behind=None, records_behind=None,
    pending_rows=None, quarantined=None, parity_verdict=None, compared_at=None, stored_rows=None, days=[],
    is_built=False,
)  # fmt: skip


def test_a_model_that_was_never_built_has_a_row_which_says_no_number() -> None:
    found = said("never_built", "demo.new", detail="new", state="look")
    shown = state([appended(), found], [model(), UNBUILT])
    assert (shown.state, shown.others) == ("look", [])
    assert [(each.row.relation, each.state) for each in shown.models] == [("demo.new", "look"), ("demo.fine", "right")]
    row = table(page.html(shown, "v"), "models")["demo.newcurrent_state of lake.changes"]
    assert row == [
        "◆ look", "demo.newcurrent_state of lake.changes",
        "never builtrun dbt, and see what it says of the model if it fails", "", "", "", "", "never", "", "",
    ]  # fmt: skip
    text = metrics.text(shown)
    assert values(text, "reconcile_model_built", relation="demo.new") == [0]
    assert values(text, "reconcile_model_built", relation="demo.fine") == [1]
    named = {name for name, labels, _ in samples(text) if labels.get("relation") == "demo.new"}
    assert named == {"reconcile_model_state", "reconcile_model_built", "reconcile_model_parity"}


def test_what_no_model_takes_is_said_of_its_staging_table() -> None:
    rows = [
        appended(),
        said("unrouted", STAGING, object="new", records=3, first_batch=1, last_batch=2, detail="a table", state="look"),
        said("unrouted", STAGING, records=1, first_batch=2, last_batch=2, state="wrong"),
    ]
    (shown,) = state(rows, []).staging
    assert (shown.state, shown.unrouted) == ("wrong", 4)
    assert [found.split(",")[0] for found in shown.findings] == ["1 record without an object", "no model reads new"]
    (shown,) = state(rows[:2], [], Limits(ignored=("new",))).staging
    assert (shown.state, shown.unrouted) == ("right", 0)


def test_what_is_found_of_no_model_in_the_list_counts_and_is_shown_before_the_models() -> None:
    """The exit code counts it: a page that says right beside an exit code of 1 would be believed."""
    gone = said("parity", "demo.gone", records=2, at=NOW, detail="confirmed, against src.gone", state="wrong")
    shown = state([appended(), gone], [model()])
    assert (shown.state, [each.state for each in shown.models]) == ("wrong", ["right"])
    text = page.html(shown, "v")
    (others,) = (each for each in shown_of(text).iter("ul") if each.get("class") == "others")
    assert words(others).startswith("✖ wrong demo.gone: 2 rows confirmed, against src.gone, at 20")
    assert text.index("demo.gone") < text.index("demo.fine")
    assert values(metrics.text(shown), "reconcile_state", state="wrong") == [1]
    assert sum(values(metrics.text(shown), "reconcile_state")) == 1
    assert "others" not in page.html(state([appended()], [model()]), "v")


def test_a_model_is_as_bad_as_the_worst_that_is_found_of_it_whatever_its_own_row_says() -> None:
    """The two views are read one after the other, and one may be older than the other."""
    found = said("pending", "demo.fine", records=1, state="look")
    shown = state([appended(), found], [model()])
    assert (shown.models[0].state, shown.state, shown.others) == ("look", "look", [])


@pytest.mark.parametrize(("hours", "is_late"), [(24, False), (25, True)])
def test_a_night_in_which_clocks_change_is_as_long_as_it_is(
    hours: int, is_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark gives times of the process's zone. On 2026-03-29 Berlin's clocks go from 2 to 3, on 10-25 from 3 to 2."""
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", "Europe/Berlin")
            time.tzset()
            for noon in (datetime(2026, 3, 29, 12, tzinfo=UTC), datetime(2026, 10, 25, 12, tzinfo=UTC)):
                now, at = (datetime.fromtimestamp(each.timestamp()) for each in (noon, noon - timedelta(hours=hours)))
                row = said("appended", STAGING, at=at, now=now)
                assert facts.is_stopped(row, Limits()) is is_late
                (shown,) = state_of(Facts([row], [model(compared_at=at)], now), Limits()).models
                assert shown.compared_seconds == hours * 3600
    finally:
        time.tzset()


def test_days_stand_in_their_places_and_a_day_that_is_too_old_in_none() -> None:
    (shown,) = state(models=[model()]).models
    assert len(shown.applied_by_day) == len(shown.lag_by_day) == DAYS
    assert (shown.applied_by_day[-1], shown.applied_by_day[-2], shown.applied_by_day[0]) == (40, 20, 10)
    assert [value for value in shown.lag_by_day if value is not None] == [30, 7200, 60]


def test_what_is_of_a_time_to_come_has_no_place_and_no_negative_age() -> None:
    """Clocks of two machines, of which one is ahead."""
    ahead = model(days=[day(-1, 7, 7), day(0, 8, 9)], compared_at=NOW + timedelta(hours=1))
    shown = state([appended(hours=-1)], [ahead])
    assert shown.staging[0].age_seconds == 0 and shown.models[0].compared_seconds == 0
    assert shown.models[0].applied_by_day == [None] * (DAYS - 1) + [8]
    assert shown.models[0].lag_by_day == [None] * (DAYS - 1) + [9]


def test_staging_tables_and_what_is_of_no_model_stand_in_the_order_of_how_bad_they_are() -> None:
    gone = [
        said("pending", relation, records=1, state=word)
        for relation, word in (("demo.c", "wait"), ("demo.b", "look"), ("demo.a", "look"), ("demo.d", "wrong"))
    ]
    torn = said("unrouted", "lake.torn", records=1, first_batch=2, last_batch=2, state="wrong")
    tables = [appended("lake.b"), appended("lake.a"), appended("lake.none", hours=None), appended("lake.torn")]
    shown = state([*tables, *gone, torn], [])
    assert [(each.name, each.state) for each in shown.staging] == [
        ("lake.torn", "wrong"), ("lake.none", "stopped"), ("lake.a", "right"), ("lake.b", "right"),
    ]  # fmt: skip
    assert [(word, sentence.split(":")[0]) for word, sentence in shown.others] == [
        ("wrong", "demo.d"), ("look", "demo.a"), ("look", "demo.b"), ("wait", "demo.c"),
    ]  # fmt: skip
    assert (shown.staging[0].unrouted, shown.staging[1].age_seconds, shown.staging[2].last_batch) == (1, None, 9)


# --- the page ---


def shown_of(text: str) -> ElementTree.Element:
    """Parse a page as XML, which forgives nothing."""
    return ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))


def words(element: ElementTree.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def table(text: str, name: str) -> dict[str, list[str]]:
    (found,) = (each for each in shown_of(text).iter("table") if each.get("class") == name)
    rows = [[words(cell) for cell in row.iter("td")] for row in found.iter("tr")]
    return {row[1]: row for row in rows if row}


def test_a_row_of_the_page_says_in_words_what_the_model_is() -> None:
    rows = table(page.html(state(), "demo.reconcile_status"), "models")
    assert len(rows) == len(MODELS)
    fine = rows["demo.finecurrent_state of lake.changes"]
    assert fine[0] == "● right" and fine[3:9] == ["0", "0", "0", "none", "match3 d 0 h ago", "1,200"]
    assert fine[2].startswith("1 h 0 min ago2026-")
    assert fine[9] == "lag, at most 2 h 0 minapplied, at most 40"
    assert rows["demo.behindcurrent_state of lake.changes"][3] == "1,500 in 2 batches"
    bad = rows["demo.badcurrent_state of lake.changes"]
    assert bad[0] == "✖ wrong" and bad[4].startswith("1,0071,000: n: '300' is not exactly a tinyint7: x</title>")
    assert rows["demo.nevercurrent_view of lake.changes"][7:] == ["never", "none stored", ""]
    drift = rows["demo.driftcurrent_state of lake.changes"]
    assert drift[5:7] == ["4", "column c0 is newcolumn c1 is newcolumn c2 is newand 2 more"]
    back = next(row for name, row in rows.items() if name.startswith("demo.back"))
    assert "set back: batch 9 was applied" in back[1] and back[2] == "not known"


def test_a_row_of_a_staging_table_says_when_something_was_appended_and_what_no_model_takes() -> None:
    new = [
        said("unrouted", STAGING, object=f"o{n}", records=1, first_batch=2, last_batch=2, detail="x", state="look")
        for n in range(4)
    ]
    text = page.html(state([appended(hours=49), appended("lake.none", hours=None), *new], []), "v")
    at = f"{(NOW - timedelta(hours=49)).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    rows = table(text, "staging")
    assert rows[STAGING][:3] == ["■ stopped", STAGING, f"2 d 1 h ago{at}, batch 9"]
    assert rows[STAGING][3].count("no model reads o") == 3 and rows[STAGING][3].endswith("batch 2: xand 1 more")
    assert rows["lake.none"] == ["■ stopped", "lake.none", "never", ""]
    assert "No model reads a staging table." in page.html(state([], []), "v")


def test_the_page_counts_the_models_of_each_state_and_leads_to_the_first_of_them() -> None:
    fine = [model(f"demo.m{number:04}") for number in range(1200)]
    text = page.html(
        state(models=[*fine, QUARANTINE, BEHIND, model("demo.worse", state="wait", lag_seconds=19000)]), "v"
    )
    root = shown_of(text)
    (counts,) = (each for each in root.iter("ul") if each.get("class") == "counts")
    assert [words(each) for each in counts] == ["1 model: ✖ wrong", "2 models: ▲ wait", "1,200 models: ● right"]
    assert [link.get("href") for link in counts.iter("a")] == ["#wrong", "#wait", "#right"]
    named = {row.get("id"): words(row) for row in root.iter("tr") if row.get("id")}
    assert [*named] == ["wrong", "wait", "right"]
    assert "demo.worse" in named["wait"] and "demo.m0000" in named["right"]
    assert f"<p>{{}} at {datetime.fromtimestamp(1_795_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC</p>".format(
        '<b class="badge wrong">✖ wrong</b>'
    ) in text.replace("\n", "")


def test_the_page_of_a_state_that_could_not_be_read_says_when_and_why() -> None:
    root = shown_of(page.unknown("demo.v", "the ledger is gone", datetime(2026, 11, 26, 12, 5, 9, tzinfo=UTC)))
    assert "At 2026-11-26 12:05:09 UTC the state could not be read: the ledger is gone" in words(root)
    assert root.findtext(".//title") == "not known: demo.v" and "? not known" in words(root)


def test_a_plot_has_a_mark_for_each_day_with_a_batch() -> None:
    text = page.html(state(models=[model()]), "v")
    lag, applied = (each.find("path") for each in shown_of(text).iter("svg"))
    assert lag is not None and applied is not None
    assert lag.get("d") == "M4 28h0M228 4h0M236 28h0", "the longest lag stands highest"
    assert applied.get("d") == "M4 32v-8M228 32v-14M236 32v-26"
    assert [each.get("aria-label") for each in shown_of(text).iter("svg")] == [
        "lag by day, at most 2 h 0 min", "applied by day, at most 40",
    ]  # fmt: skip


@pytest.mark.parametrize("scheme", ["state", "unknown"])
def test_a_page_runs_nothing_and_loads_nothing_whatever_things_are_called(scheme: str) -> None:
    rows = [
        appended(HOSTILE, hours=99),
        said("unrouted", HOSTILE, object=HOSTILE, records=1, detail=HOSTILE, state="look"),
    ]
    at = datetime.now(UTC)
    text = page.html(state(rows), HOSTILE) if scheme == "state" else page.unknown(HOSTILE, HOSTILE, at)
    root = shown_of(text)
    tags = {each.tag for each in root.iter()}
    assert not tags & {"script", "img", "link", "iframe", "object", "form", "base"}
    attributes = {(name, value) for each in root.iter() for name, value in each.attrib.items()}
    assert not [name for name, _ in attributes if name.startswith("on") or name in ("src", "style")]
    assert all(value.startswith("#") for name, value in attributes if name == "href")
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in attributes
    assert "\u202e" not in text and "49" not in words(root).split(), "no text turns the page around, none is a template"
    style = root.findtext(".//style") or ""
    assert "url(" not in style and "@import" not in style
    assert all(f"{rule}" in style for rule in ("prefers-color-scheme: dark", "@media print", "max-width: 60rem"))


def test_each_state_has_a_shape_and_a_word_of_its_own() -> None:
    assert len(set(page._SHAPES.values())) == len(page._SHAPES)
    assert set(page._MEANING) == set(STATES) < set(page._SHAPES)


def test_two_thousand_models_with_all_that_can_be_said_of_them_are_a_page_of_less_than_five_megabytes() -> None:
    days = [day(ago, 10**9 + ago, 86400 * 20 + ago) for ago in range(DAYS)]
    reasons = [SimpleNamespace(records=123456, reason="n: 'a text' is not exactly a tinyint " * 9) for _ in range(3)]
    models = [
        model(f"a_schema_of_some_length.table_{number:04}_of_the_shop", state="wrong", days=days,
              drift=["column it is new"] * 5, quarantined=123456, quarantine_reasons=reasons,
              records_behind=10**6, batches_behind=99)
        for number in range(2000)
    ]  # fmt: skip
    text = page.html(state(models=models), "demo.reconcile_status")
    assert len(text.encode()) < 5_000_000
    assert text.count("<svg") == 4000


def test_a_project_without_models_has_a_page() -> None:
    text = page.html(state([], []), "demo.reconcile_status")
    assert "The project had no model" in text and "● right" in words(shown_of(text))


@pytest.mark.parametrize(("findings", "more"), [(3, ""), (4, "and 1 more"), (1004, "and 1,001 more")])
def test_of_many_findings_three_are_shown_and_how_many_more_there_are(findings: int, more: str) -> None:
    shown = state(models=[model("demo.drift", drift=[f"c{n}" for n in range(findings)])])
    assert table(page.html(shown, "v"), "models")["demo.driftcurrent_state of lake.changes"][6] == f"c0c1c2{more}"


@pytest.mark.parametrize(("length", "shown"), [(160, "x" * 160), (161, "x" * 160 + "…")])
def test_of_a_long_text_the_page_has_the_beginning(length: int, shown: str) -> None:
    text = page.html(state(models=[model("demo.drift", drift=["x" * length])]), "v")
    assert table(text, "models")["demo.driftcurrent_state of lake.changes"][6] == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3600, "1 h 0 min"), (172799, "47 h 59 min"), (172800, "2 d 0 h"),
     (259199, "2 d 23 h")],
)  # fmt: skip
def test_a_length_of_time_has_two_units_at_most(seconds: int, shown: str) -> None:
    assert page._duration(seconds) == shown


# --- the metrics: the grammar of the specification of OpenMetrics 1.0, of the parts that gauges use ---

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
_SAMPLE = re.compile(rf"({_NAME})(?:{{({_LABEL}(?:,{_LABEL})*)?}})? (-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)")


def samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """Yield the samples of a text. Fails where the text is not OpenMetrics."""
    assert text.endswith("# EOF\n") and text.count("# EOF") == 1
    seen: set[str] = set()
    family, labels_seen = "", set()
    units: dict[str, str] = {}
    for line in text.removesuffix("# EOF\n").split("\n")[:-1]:
        if type_ := re.fullmatch(rf"# TYPE ({_NAME}) gauge", line):
            family = type_[1]
            assert family not in seen, "the samples of a family stand together"
            seen.add(family)
            labels_seen = set()
        elif unit := re.fullmatch(rf"# UNIT ({_NAME}) (\w+)", line):
            assert unit[1] == family and family.endswith(f"_{unit[2]}")
            units[family] = unit[2]
        elif help_ := re.fullmatch(rf"# HELP ({_NAME}) [^\n\\]+", line):
            assert help_[1] == family
        else:
            sample = _SAMPLE.fullmatch(line)
            assert sample and "{}" not in line, line
            assert sample[1] == family and (sample[2] not in labels_seen), "a sample comes once, in its family"
            labels_seen.add(sample[2])
            labels = {
                name: re.sub(r"\\(.)", lambda escaped: "\n" if escaped[1] == "n" else escaped[1], value)
                for name, value in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', sample[2] or "")
            }
            yield sample[1], labels, float(sample[3])
    assert units == {name: "seconds" for name in seen if name.endswith("_seconds")}


def values(text: str, name: str, **wanted: str) -> list[float]:
    return [value for found, labels, value in samples(text) if found == name and wanted.items() <= labels.items()]


def test_the_metrics_are_those_of_the_state() -> None:
    text = metrics.text(state())
    assert values(text, "reconcile_known") == [1]
    assert values(text, "reconcile_report_timestamp_seconds") == [1_795_000_000]
    assert [values(text, "reconcile_models", state=word) for word in STATES] == [[3], [0], [1], [1], [2]]
    assert values(text, "reconcile_model_records_behind", relation="demo.behind") == [1500]
    assert values(text, "reconcile_model_batches_behind", relation="demo.behind") == [2]
    assert values(text, "reconcile_model_pending_rows", relation="demo.drift") == [4]
    assert values(text, "reconcile_model_stored_rows", relation="demo.fine") == [1200]
    assert values(text, "reconcile_model_as_of_timestamp_seconds", relation="demo.behind") == [1_795_000_000 - 18000]
    assert values(text, "reconcile_model_compared_timestamp_seconds", relation="demo.fine") == [
        1_795_000_000 - 3 * 86400
    ]
    assert values(text, "reconcile_model_lag_seconds", relation="demo.behind") == [18000]
    assert values(text, "reconcile_model_lag_seconds", relation="demo.back") == [], "nobody knows"
    up_to_date = metrics.text(state(models=[model(lag_seconds=0, drift=None)]))
    assert values(up_to_date, "reconcile_model_lag_seconds", relation="demo.fine") == [0], "0 is no absent number"
    assert values(up_to_date, "reconcile_model_drift_findings", relation="demo.fine") == [0]
    assert values(text, "reconcile_model_quarantined_records", relation="demo.bad") == [1007]
    assert values(text, "reconcile_model_state", relation="demo.bad", state="wrong") == [1]
    assert sum(values(text, "reconcile_model_state", relation="demo.bad")) == 1
    assert values(text, "reconcile_model_parity", relation="demo.never", verdict="never") == [1]
    assert values(text, "reconcile_model_parity", relation="demo.fine", verdict="never") == [0]
    assert values(text, "reconcile_model_parity", relation="demo.fine", verdict="match") == [1]
    assert values(text, "reconcile_model_compared_timestamp_seconds", relation="demo.never") == []
    assert values(text, "reconcile_staging_appended_timestamp_seconds", staging=STAGING) == [1_795_000_000 - 3600]
    assert values(text, "reconcile_model_drift_findings", relation=HOSTILE) == [1], "its name is as it was"


@pytest.mark.parametrize("verdict", ["confirmed", "unprovable", "in_flight", "match"])
def test_each_verdict_of_a_comparison_is_a_metric(verdict: str) -> None:
    text = metrics.text(state(models=[model(parity_verdict=verdict)]))
    assert values(text, "reconcile_model_parity", verdict=verdict) == [1]
    assert sum(values(text, "reconcile_model_parity")) == 1 and len(values(text, "reconcile_model_parity")) == 5


def test_of_what_cannot_be_read_the_metrics_say_that_nothing_is_known() -> None:
    at = datetime(2026, 11, 26, 12, tzinfo=UTC)
    assert [name for name, _, _ in samples(metrics.unknown(at))] == [
        "reconcile_known", "reconcile_report_timestamp_seconds",
    ]  # fmt: skip
    assert values(metrics.unknown(at), "reconcile_known") == [0]


def test_metrics_of_no_models_are_openmetrics_too() -> None:
    assert values(metrics.text(state([], [])), "reconcile_models", state="right") == [0]


# --- the command ---


class Outputs:
    def __init__(self) -> None:
        self.results: list[dict[str, Any]] = []

    def result(self, values: dict[str, Any]) -> None:
        self.results.append(values)


def run(
    read: Facts | JobError | Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *more: str
) -> tuple[Outputs, JobError | None]:
    def read_all(spark: Any, view: Any) -> Facts:
        if isinstance(read, Exception):
            raise read
        return read

    outputs = Outputs()
    monkeypatch.setattr(session, "start", lambda name: None)
    monkeypatch.setattr(facts, "read_all", read_all)
    words = ["--status", "demo.reconcile_status", "--html", str(tmp_path / "state.html")]
    words += ["--metrics", str(tmp_path / "metrics.prom"), *more]
    try:
        report.main(words, outputs)  # type: ignore[arg-type]
    except JobError as failure:
        return outputs, failure
    return outputs, None


WRONG = said("quarantined", "demo.bad", records=1, first_batch=1, last_batch=1, detail="x", state="wrong")
LOOK = said("pending", "demo.drift", records=1, state="look")
WAIT = said("not_applied", "demo.behind", records=1, first_batch=1, last_batch=1, at=NOW, state="wait")


@pytest.mark.parametrize(
    ("status", "failure", "word"),
    [
        ([appended()], None, "right"),
        ([appended(), WAIT, LOOK, WRONG], DataError, "wrong"),
        ([appended(), WAIT, LOOK], Undecided, "look"),
        ([appended(), WAIT], Fault, "wait"),
        ([appended(), WAIT, behind(25)], Undecided, "look"),
        ([appended(hours=72)], Fault, "wait"),
    ],
)
def test_the_exit_code_is_that_of_status_py(
    status: list[Any], failure: type[JobError] | None, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs, ended = run(Facts(status, [model()], NOW), tmp_path, monkeypatch)
    assert type(ended) is (failure or type(None))
    (result,) = outputs.results
    assert (result["models"], result["staging_tables"], result["status"]) == (1, 1, word)
    assert sum(result[each] for each in ("wrong", "look", "wait")) == len(facts.findings(status, Limits()))
    assert "demo.fine" in (tmp_path / "state.html").read_text()
    assert values((tmp_path / "metrics.prom").read_text(), "reconcile_known") == [1]
    assert json.dumps(outputs.results)


def test_the_page_of_an_append_that_died_is_red_though_every_test_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(Facts([appended(hours=72)], [model()], NOW), tmp_path, monkeypatch)
    text = (tmp_path / "state.html").read_text()
    assert '<b class="badge stopped">■ stopped</b>' in text
    style = shown_of(text).findtext(".//style") or ""
    assert re.search(r"--stopped: (#\w+)", style)[1] == re.search(r"--wrong: (#\w+)", style)[1]  # type: ignore[index]
    run(Facts([appended(hours=72)], [model()], NOW), tmp_path, monkeypatch, "--appended-within", "100h")
    assert '<b class="badge right">● right</b>' in (tmp_path / "state.html").read_text()


@pytest.mark.parametrize(
    "problem",
    [UsageError("demo.reconcile_status reads `demo`.`reconcile_ledger`, which is gone."), ValueError("other")],
)
def test_a_state_that_cannot_be_read_leaves_no_page_of_before(
    problem: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger that is missing, for example. The page would go on saying that all is right."""
    run(Facts([appended()], [model()], NOW), tmp_path, monkeypatch)
    outputs, ended = run(problem, tmp_path, monkeypatch)
    assert ended is not None and ended.exit_code == (2 if isinstance(problem, UsageError) else 4)
    assert outputs.results == []
    text = (tmp_path / "state.html").read_text()
    assert "not known" in text and str(problem).split("`")[0] in words(shown_of(text)) and "demo.fine" not in text
    assert values((tmp_path / "metrics.prom").read_text(), "reconcile_known") == [0]


def test_a_state_that_cannot_be_shown_leaves_no_page_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(Facts([appended()], [model()], NOW), tmp_path, monkeypatch)
    outputs, ended = run(Facts([appended()], [model(state="a state of a later version")], NOW), tmp_path, monkeypatch)
    assert ended is not None and ended.exit_code == 4 and outputs.results == []
    assert "not known" in (tmp_path / "state.html").read_text()
    assert values((tmp_path / "metrics.prom").read_text(), "reconcile_known") == [0]


@pytest.mark.parametrize("place", ["a_directory", "a_file/state.html", "a_file/deeper/state.html"])
def test_a_place_where_no_file_can_be_is_a_matter_of_the_command_and_not_of_time(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_directory").mkdir()
    (tmp_path / "a_file").touch()
    monkeypatch.setattr(session, "start", lambda name: None)
    monkeypatch.setattr(facts, "read_all", lambda spark, view: Facts([appended()], [model()], NOW))
    with pytest.raises(UsageError, match="a directory is where the file would be, or a file where its directory"):
        report.main(["--status", "a.b", "--html", str(tmp_path / place)], Outputs())  # type: ignore[arg-type]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a_directory", "a_file"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--status", "a.b"], "Name a file to write, with --html or --metrics or both"),
        (["--status", "a.b", "--html", "x", "--metrics", "./x"], "another one with each"),
        (["--html", "x"], "--status"),
        (["--status", "no view", "--html", "x"], "--status no view is not the name of a table"),
    ],
)
def test_what_cannot_be_asked_for_is_a_sentence(given: list[str], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        report.main(given, Outputs())  # type: ignore[arg-type]
    assert sentence in str(refused.value)


class NoJinja:
    """Finds no Jinja, as a Python does that lacks it."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        if name == "jinja2":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_a_python_without_jinja_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delitem(sys.modules, "reconcile_jobs.monitoring.page")
    monkeypatch.delattr("reconcile_jobs.monitoring.page")
    monkeypatch.delitem(sys.modules, "jinja2")
    monkeypatch.setattr(sys, "meta_path", [NoJinja, *sys.meta_path])
    console = report.Console("report")
    assert console.exit_code(lambda: report.main(["--status", "a.b", "--html", "x"], console)) == 2
    said = capsys.readouterr().err
    assert "does not have the package jinja2: run `pip install jinja2` there" in said, said
