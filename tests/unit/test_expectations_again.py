"""Records that were not as expected are looked at again by the next run, whether or not that appends anything."""

import re
from pathlib import Path
from typing import Any

import pytest
from reconcile_jobs import expectations
from reconcile_jobs.expectations import Expected, Outcome
from reconcile_jobs.process.caller import silence
from reconcile_jobs.staging import TableName

MACROS = Path(__file__).resolve().parents[2] / "macros"


class Runs:
    """Runs over a staging table whose properties are kept here; `bad` are the batches that are not as expected."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path, on_failure: str) -> None:
        self.properties: dict[str, str] = {}
        self.bad: set[int] = set()
        self.expected = Expected(on_failure, None, 3600, 10.0, str(directory))
        monkeypatch.setattr(expectations, "kept", lambda spark, staging: dict(self.properties))
        monkeypatch.setattr(
            expectations, "keep", lambda spark, staging, name, value: self.properties.update({name: value})
        )
        monkeypatch.setattr(
            expectations, "_suites", lambda spark, staging, source, first, last, *_: range(first, last + 1)
        )
        monkeypatch.setattr(expectations, "_validate", self._validate)

    def _validate(self, batches: range) -> tuple[dict[str, dict[str, Any]], int]:
        unchecked = {"result": {}, "exception_info": "why", "expectation_config": {"description": "It is good."}}
        return {f"batch {batch}": unchecked | {"success": batch not in self.bad} for batch in batches}, 1

    def run(self, last_batch: int, first_batch: int | None) -> Outcome | None:
        """Check a run that has appended from `first_batch` on, or nothing."""
        self.properties["last_batch"] = str(last_batch)
        staging, spark = TableName.parse("lake.changes"), None
        return expectations.check(spark, staging, "datastream", first_batch, self.expected, silence)  # type: ignore[arg-type]


def test_a_first_batch_that_failed_fails_until_it_is_let_pass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runs = Runs(monkeypatch, tmp_path, "fail")
    runs.bad = {1}
    for last_batch, first_batch in ((1, 1), (1, None), (2, 2)):
        outcome = runs.run(last_batch, first_batch)
        assert outcome is not None
        assert (outcome.success, outcome.failed, outcome.first_batch) == (False, ["batch 1"], 1)
    runs.bad = set()
    outcome = runs.run(2, None)
    assert outcome is not None and outcome.success
    assert runs.run(2, None) is None, "what was as expected is not looked at again"


def test_a_warning_lets_them_pass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runs = Runs(monkeypatch, tmp_path, "warn")
    runs.bad = {3}
    outcome = runs.run(3, 3)
    assert outcome is not None and not outcome.success and outcome.first_batch == 3
    assert runs.run(3, None) is None


def test_the_change_types_that_are_expected_are_those_that_models_take() -> None:
    """Of one that is missing here, records that models apply would be reported; of one more, quarantine would begin."""

    def taken(path: str, *patterns: str) -> set[str]:
        text = (MACROS / path).read_text()
        lists = [found for pattern in patterns for found in re.findall(pattern, text)]
        return {word for found in lists for word in re.findall("[A-Za-z_-]+", found)}

    of_datastream = r"upper\(source_metadata\.change_type\) (?:= |in \()('[^)\n]*?')(?: or|\) then)"
    assert {source: set(words) for source, words in expectations._CHANGE_TYPES.items()} == {
        "datastream": taken("change_records/datastream_envelope.sql", of_datastream),
        "spanner": taken("sources/spanner_change_stream.sql", r"when ('[A-Z]+') then '"),
        "bigtable": taken("sources/bigtable_change_stream.sql", r"type not in \(([^)]*)\)"),
    }
