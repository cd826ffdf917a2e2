"""`parity.py`: what the newest comparisons came to, as an exit code."""

from __future__ import annotations

import json
from typing import Any

import parity
import pytest
from file_formats import file_format
from pyspark.sql import SparkSession
from reconcile_jobs.process.errors import DataError, Fault, JobError, Undecided, UsageError

RESULTS = "parity_command.reconcile_parity"
COLUMNS = (
    "run_id string, test string, relation string, compared_to string, verdict string, compared bigint, matched bigint, "
    "confirmed bigint, unprovable bigint, in_flight bigint, recorded_at string"
)


class Outputs:
    """A console that keeps what it is told."""

    def __init__(self) -> None:
        self.results: list[dict[str, Any]] = []

    def result(self, values: dict[str, Any]) -> None:
        self.results.append(json.loads(json.dumps(values)))


def ran(run: str, model: str, verdict: str, at: int, test: str = "parity", source: str = "lake") -> tuple[Any, ...]:
    counts = [int(verdict == kind) for kind in ("confirmed", "unprovable", "in_flight")]
    return (
        run,
        f"{test}_{model}",
        f"shop.{model}",
        f"{source}.{model}_source",
        verdict,
        10,
        10 - sum(counts),
        *counts,
        f"2026-11-22 00:00:{at:02}",
    )


@pytest.fixture(scope="module")
def results(spark: SparkSession) -> None:
    spark.sql("create schema if not exists parity_command")
    rows = [
        ran("first", "orders", "confirmed", 1),
        ran("first", "lines", "match", 1),
        ran("first", "carts", "unprovable", 1),
        ran("second", "orders", "in_flight", 2),
        ran("second", "lines", "match", 2),
        ran("third", "orders", "match", 3),
        # Another test of the same two tables, of other columns, that ran once.
        ran("first", "orders", "match", 1, "parity_of_totals"),
        ran("third", "customers", "unprovable", 3),
        ran("third", "carts", "in_flight", 3),
        # One test with two sources.
        ran("fourth", "bills", "in_flight", 4, source="oracle"),
        ran("fourth", "bills", "match", 5),
    ]
    spark.createDataFrame(rows, COLUMNS).write.format(file_format()).saveAsTable(RESULTS)


@pytest.mark.parametrize(
    ("words", "refused", "counts"),
    [
        (["--relation", "shop.orders"], None, (2, 20, 20)),
        (["--relation", "shop.lines"], None, (1, 10, 10)),
        (["--run", "first"], DataError, (4, 40, 38)),
        (["--run", "second"], Fault, (2, 20, 19)),
        (["--relation", "shop.bills"], Fault, (2, 20, 19)),
        ([], Undecided, (7, 70, 67)),
    ],
    ids=[
        "a model that matches now",
        "one of the run before",
        "confirmed before unprovable",
        "in flight",
        "in flight with one source, though it matches another one",
        "unprovable before in flight, the newest of each",
    ],
)
def test_the_verdict_of_the_newest_comparisons_is_the_exit_code(
    results: None, words: list[str], refused: type[JobError] | None, counts: tuple[int, ...]
) -> None:
    console = Outputs()
    if refused:
        with pytest.raises(refused, match="rows match"):
            parity.main(["--results", RESULTS, *words], console)  # type: ignore[arg-type]
    else:
        parity.main(["--results", RESULTS, *words], console)  # type: ignore[arg-type]
    (said,) = console.results
    assert (said["comparisons"], said["compared"], said["matched"]) == counts


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--results", "parity_command.absent"], "parity_command.absent does not exist"),
        (["--results", RESULTS, "--run", "it's none"], "has no such comparison"),
    ],
)
def test_what_cannot_be_told_is_a_sentence(results: None, words: list[str], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        parity.main(words, Outputs())  # type: ignore[arg-type]
    assert sentence in str(refused.value)
