"""What is expected of staged records before dbt reads them: a suite of Great Expectations, with Data Docs.

The suite looks at the envelope of each record and never at its values, so that Data Docs show none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconcile_jobs import data_docs
from reconcile_jobs.process.errors import DataError
from reconcile_jobs.staging import JSON_LIMITS, TableName, keep, kept, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Expected", "Outcome", "check", "envelopes", "refusal", "volumes"]

# A property of the staging table: its last batch that met what was expected, or was let pass. A run that is only
# repeated must not make bad records good.
_THROUGH = "expected_through"

# The days before the last one with which volumes are compared, and the fewest days that show what is usual.
_DAYS, _FEWEST_DAYS = 7, 3

_CHANGE_TYPES = {
    "datastream": ["INSERT", "UPDATE", "DELETE", "UPDATE-INSERT", "UPDATE-DELETE"],
    "spanner": ["INSERT", "UPDATE", "DELETE"],
    "bigtable": ["user", "garbage_collection", "backfill"],
}

# What each source's records say of themselves: `parsable`, `change_type`, `ordered` (what orders the record is there),
# and `lag_seconds` from the commit at the source to the append, NULL for rows of a backfill. The words of Datastream's
# read methods are those of macros/change_records/datastream_envelope.sql.
_ENVELOPES = {
    "datastream": """
WITH events AS (
  SELECT object, origin, batch, appended_at, event.*, event.source_metadata.*
  FROM (SELECT *, from_json(record, '
    read_method string, read_timestamp string, source_timestamp string, source_metadata struct<
      change_type string, scn string, rs_id string, ssn string, lsn string,
      log_file string, log_position string, binlog_file string, binlog_position string
    >, _corrupt_record string', {limits}) AS event FROM {records})
),
parsed AS (
  SELECT *,
    read_method RLIKE '(?i)backfill|_dump$' AS is_backfill,
    read_method RLIKE '(?i)(^|[-_])cdc([-_]|$)|supplementation' AS is_change,
    if(read_timestamp RLIKE '^[0-9]+$', timestamp_millis(try_cast(read_timestamp AS bigint)),
      try_cast(read_timestamp AS timestamp)) AS read_at,
    if(source_timestamp RLIKE '^[0-9]+$', timestamp_millis(try_cast(source_timestamp AS bigint)),
      try_cast(source_timestamp AS timestamp)) AS changed_at,
    scn IS NOT NULL AND rs_id IS NOT NULL AND ssn IS NOT NULL AS has_scn,
    coalesce(log_file, binlog_file) IS NOT NULL AND coalesce(log_position, binlog_position) IS NOT NULL AS has_log,
    lsn IS NOT NULL AS has_lsn
  FROM events
)
SELECT object, origin, batch,
  object IS NOT NULL AND _corrupt_record IS NULL AND source_metadata IS NOT NULL AS parsable,
  coalesce(upper(nullif(change_type, '')), if(is_backfill, 'INSERT', NULL)) AS change_type,
  coalesce(CASE
    WHEN is_backfill THEN read_at IS NOT NULL
    WHEN NOT is_change THEN false
    WHEN read_method LIKE 'oracle%' THEN has_scn
    WHEN read_method LIKE 'mysql%' THEN has_log
    WHEN read_method LIKE 'postgres%' OR read_method LIKE 'sqlserver%' THEN has_lsn
    ELSE has_scn OR has_log OR has_lsn
  END, false) AS ordered,
  if(is_backfill, NULL, double(timestampdiff(SECOND, changed_at, appended_at))) AS lag_seconds
FROM parsed""",
    "spanner": """
WITH changes AS (
  SELECT object, origin, batch, appended_at, change.*
  FROM (SELECT *, from_json(record, '
    commit_timestamp string, server_transaction_id string, record_sequence string, mod_type string, backfill string,
    _corrupt_record string', {limits}) AS change FROM {records} WHERE NOT object <=> '#cut')
),
parsed AS (
  SELECT *, backfill <=> 'true' AS is_backfill, try_cast(commit_timestamp AS timestamp) AS committed_at FROM changes
)
SELECT object, origin, batch,
  object IS NOT NULL AND _corrupt_record IS NULL AS parsable,
  mod_type AS change_type,
  committed_at IS NOT NULL
    AND (is_backfill OR server_transaction_id IS NOT NULL AND record_sequence IS NOT NULL) AS ordered,
  if(is_backfill, NULL, double(timestampdiff(SECOND, committed_at, appended_at))) AS lag_seconds
FROM parsed""",
    "bigtable": """
WITH changes AS (
  SELECT object, origin, batch, appended_at, change.*
  FROM (SELECT *, from_json(record, '
    row_key string, type string, commit_timestamp string, tiebreaker bigint,
    _corrupt_record string', {limits}) AS change
    FROM {records} WHERE NOT object <=> '#cut')
),
parsed AS (SELECT *, try_cast(commit_timestamp AS timestamp) AS committed_at FROM changes)
SELECT object, origin, batch,
  object IS NOT NULL AND _corrupt_record IS NULL AND row_key IS NOT NULL AS parsable,
  type AS change_type,
  committed_at IS NOT NULL AND tiebreaker IS NOT NULL AS ordered,
  if(type = 'backfill', NULL, double(timestampdiff(SECOND, committed_at, appended_at))) AS lag_seconds
FROM parsed""",
}

# For each object the records of the last day of staging, and how many times those of a usual day that is: of the median
# of at most {days} days before. No rows while staging is too young for {fewest} such days.
_VOLUMES = """
WITH newest AS (
  SELECT max(appended_at) AS at, datediff(SECOND, min(appended_at), max(appended_at)) AS age FROM {staging}
),
days AS (
  SELECT object, floor(datediff(SECOND, appended_at, at) / 86400) AS days_ago, count(*) AS records
  FROM {staging} CROSS JOIN newest
  WHERE appended_at > at - interval {through} days AND object NOT LIKE '#%'
  GROUP BY ALL
),
objects AS (
  SELECT object, map_from_entries(collect_list(struct(days_ago, records))) AS records FROM days GROUP BY object
),
volumes AS (
  SELECT object, coalesce(records[0L], 0L) AS records,
    array_sort(transform(
      sequence(1L, least({days}L, floor(age / 86400) - 1)), day -> coalesce(records[day], 0L)
    )) AS before
  FROM objects CROSS JOIN newest WHERE age >= 86400 * ({fewest} + 1)
),
usual AS (SELECT object, records, before[int((size(before) - 1) / 2)] AS usual FROM volumes)
SELECT *, records / nullif(usual, 0) AS times_usual FROM usual
"""


@dataclass(frozen=True)
class Expected:
    """What the command line expects; `max_lag` is in seconds, `volume_factor` how many times more or less is usual."""

    on_failure: str  # "warn" or "fail"
    objects: tuple[str, ...] | None  # None: those that staging had before
    max_lag: int
    volume_factor: float
    data_docs: str | None


@dataclass(frozen=True)
class Outcome:
    """What became of it: `failed` names expectations; `data_docs` is the page to open."""

    success: bool
    failed: list[str]
    first_batch: int
    last_batch: int
    data_docs: str


def check(
    spark: SparkSession,
    staging: TableName,
    source: str,
    first_batch: int | None,
    expected: Expected,
    say: Callable[[str], None],
) -> Outcome | None:
    """Look at every batch that was not let pass before, from `first_batch` on where none ever was; None: there is none.

    Says what was not met. The caller fails with `refusal` where that was asked for.
    """
    known = kept(spark, staging)
    last_batch, through = int(known.get("last_batch", 0)), known.get(_THROUGH)
    first_batch = int(through) + 1 if through is not None else first_batch
    if first_batch is None or first_batch > last_batch:
        return None
    if through is None:
        keep(spark, staging, _THROUGH, str(first_batch - 1))
    found, records = _validate(_suites(spark, staging, source, first_batch, last_batch, expected))
    failed = [name for name, result in found.items() if not result["success"]]
    for name in failed:
        say(_sentence(name, found[name]))
    directory, now = Path(expected.data_docs or f"lakehouse/_expectations/{staging.file_name}"), datetime.now(UTC)
    run = data_docs.Run(str(staging), first_batch, last_batch, records, f"{now:%F %T}", list(found.values()))
    index = data_docs.write(directory, f"{now:%Y%m%dT%H%M%S.%f}-{staging.file_name}", run)
    if not failed or expected.on_failure == "warn":
        keep(spark, staging, _THROUGH, str(last_batch))
    return Outcome(not failed, failed, first_batch, last_batch, str(index))


def refusal(staging: TableName, outcome: Outcome) -> DataError:
    """Return what a job ends with whose records are not as expected."""
    return DataError(
        f"The batches {outcome.first_batch} to {outcome.last_batch} of {staging} are appended, but not as expected; "
        f"see {outcome.data_docs}. The same command fails again until a run with --expect warn accepts them."
    )


def envelopes(spark: SparkSession, staging: TableName, source: str, first: int, last: int) -> DataFrame:
    """Return what the records of some batches say of themselves.

    Columns: object, origin, batch, parsable, change_type, ordered, lag_seconds.
    """
    records = f"(SELECT * FROM {staging.sql} WHERE source = {literal(source)} AND batch BETWEEN {first} AND {last})"
    return spark.sql(_ENVELOPES[source].format(records=records, limits=JSON_LIMITS))


def volumes(spark: SparkSession, staging: TableName) -> DataFrame:
    """Return what the last day brought of each object. Columns: object, records, usual, times_usual."""
    query = _VOLUMES.format(staging=staging.sql, days=_DAYS, fewest=_FEWEST_DAYS, through=_DAYS + 1)
    return spark.sql(query)


@dataclass(frozen=True)
class _Suite:
    name: str
    frame: DataFrame
    where: list[str]  # columns that say where something was found
    expectations: dict[str, Any]  # name -> expectation


def _suites(
    spark: SparkSession, staging: TableName, source: str, first: int, last: int, expected: Expected
) -> Iterator[_Suite]:
    from great_expectations import expectations as gxe

    objects = expected.objects
    if objects is None:
        before = spark.sql(f"SELECT DISTINCT object FROM {staging.sql} WHERE batch < {first} AND object IS NOT NULL")
        objects = tuple(sorted(row.object for row in before.collect()))
    of_records = {
        "parsable": gxe.ExpectColumnValuesToBeInSet(
            column="parsable", value_set=[True], description="Every record can be read, and names its object."
        ),
        "known_change_type": gxe.ExpectColumnValuesToBeInSet(
            column="change_type", value_set=_CHANGE_TYPES[source], description="The change type is known."
        ),
        "change_type_present": gxe.ExpectColumnValuesToNotBeNull(
            column="change_type", description="Every record has a change type."
        ),
        "order_present": gxe.ExpectColumnValuesToBeInSet(
            column="ordered", value_set=[True], description="The fields that order the changes of a key exist."
        ),
        "delivery_lag": gxe.ExpectColumnValuesToBeBetween(
            column="lag_seconds",
            max_value=expected.max_lag,
            description=f"A change is staged within {expected.max_lag:,} seconds of its commit.",
        ),
    }
    if objects:
        of_records["known_object"] = gxe.ExpectColumnValuesToBeInSet(
            column="object",
            value_set=list(objects),
            description="The object is given with --expect-object, or was staged before.",
        )
    records = envelopes(spark, staging, source, first, last)
    yield _Suite("records", records, ["object", "batch", "origin"], of_records)
    usual = gxe.ExpectColumnValuesToBeBetween(
        column="times_usual",
        min_value=1 / expected.volume_factor,
        max_value=expected.volume_factor,
        description=f"The last day brought no {expected.volume_factor:g} times more or fewer records than usual.",
    )
    yield _Suite("volumes", volumes(spark, staging), ["object", "records", "usual"], {"volume": usual})


def _validate(suites: Iterator[_Suite]) -> tuple[dict[str, dict[str, Any]], int]:
    """Return what was found of each expectation, as Great Expectations writes it as JSON, and the number of records.

    The records are those of the suite `records`.
    """
    # Before Great Expectations is imported: otherwise it reports to its makers.
    os.environ["GX_ANALYTICS_ENABLED"] = "False"
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    tables = context.data_sources.add_spark("staging")
    found: dict[str, dict[str, Any]] = {}
    counts: dict[str, int] = {}
    for suite in suites:
        frame = suite.frame.persist()
        try:
            counts[suite.name] = frame.count()
            found |= _found(tables, suite, frame)
        finally:
            frame.unpersist()
    return found, counts["records"]


def _found(tables: Any, suite: _Suite, frame: DataFrame) -> dict[str, dict[str, Any]]:
    import great_expectations as gx

    batch = tables.add_dataframe_asset(suite.name).add_batch_definition_whole_dataframe("appended")
    expectations = [
        expectation.copy(update={"meta": {"name": name}}) for name, expectation in suite.expectations.items()
    ]
    validated = batch.get_batch(batch_parameters={"dataframe": frame}).validate(
        gx.ExpectationSuite(name=suite.name, expectations=expectations),
        result_format={"result_format": "SUMMARY", "unexpected_index_column_names": suite.where},
    )
    found = {result.expectation_config.meta["name"]: result.to_json_dict() for result in validated.results}
    # Great Expectations sorts the results by column.
    return {name: found[name] for name in suite.expectations}


def _sentence(name: str, found: dict[str, Any]) -> str:
    result = found["result"]
    if "unexpected_count" not in result:
        return f"the expectation {name} could not be checked: {found['exception_info']}"
    first = ", ".join(f"{column} {value}" for column, value in result["partial_unexpected_index_list"][0].items())
    return (
        f"not as expected, {result['unexpected_count']:,} of {result['element_count']:,}: "
        f"{found['expectation_config']['description']} Among them: {first}"
    )
