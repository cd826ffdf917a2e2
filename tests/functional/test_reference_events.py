"""The three events of Datastream's documentation: INSERT, UPDATE and DELETE of one row."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from datastream import Staged, stage
from projects import Project
from pyspark.sql import SparkSession
from tables import stored

KEY = 1231535353


def _event(
    uuid: str, second: int, change_type: str, scn: int, rs_id: str, ssn: int, row_id: str, field1: str | None
) -> Any:
    """Return an event of the documentation, which leaves out some commas and values, as a valid one."""
    return {
        "stream_name": "projects/myProj/locations/myLoc/streams/Oracle-to-Source",
        "read_method": "oracle-cdc-logminer",
        "object": "SAMPLE.TBL",
        "uuid": uuid,
        "read_timestamp": f"2019-11-07T07:37:{second}.808Z",
        "source_timestamp": f"2019-11-07T02:{second - 1}:39",
        "source_metadata": {
            "log_file": "",
            "scn": scn,
            "row_id": row_id,
            "is_deleted": change_type == "DELETE",
            "database": "DB1",
            "schema": "ROOT",
            "table": "SAMPLE",
            "change_type": change_type,
            "tx_id": "",
            "rs_id": rs_id,
            "ssn": ssn,
        },
        "payload": {"THIS_IS_MY_PK": str(KEY), "FIELD1": field1, "FIELD2": "TLV"},
    }


EVENTS = {
    "INSERT": _event("d7989206-380f-0e81-8056-240501101100", 16, "INSERT", 15869116216871,
                     "0x0073c9.000a4e4c.01d0", 67, "AAAPwRAALAAMzMBABD", "foo"),
    "UPDATE": _event("e6067366-1efc-0a10-a084-0d8701101101", 18, "UPDATE", 15869150473224,
                     "0x006cf4.00056b26.0010", 0, "AAAGYPAATAAPIC5AAB", None),
    "DELETE": _event("c504f4bc-0ffc-4a1a-84df-6aba382fa651", 20, "DELETE", 158691504732555,
                     "0x006cf4.00056b26.0011", 0, "AAAGYPAATAAPIC5AAC", None),
}  # fmt: skip

# each order twice: one event a batch, and all in one batch
ARRIVALS = [(list(order), at_once) for order in itertools.permutations(EVENTS) for at_once in (False, True)]


@pytest.fixture(scope="module")
def after_each_batch(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[int, Any]]:
    """The live row of each arrival after each batch. The arrivals lie side by side in one table."""
    project = Project(tmp_path_factory.mktemp("events") / "project", schema="reference_events")
    project.source("reference_staging", "changes")
    project.model(
        "tbl",
        "{{ config(materialized='current_state', unique_key=['arrival', 'this_is_my_pk']) }}\n"
        "{{ reconcile.datastream_oracle(source('lake', 'changes'), object='SAMPLE.TBL') }}",
        {"arrival": "int", "this_is_my_pk": "bigint", "field1": "string", "field2": "string"},
    )
    spark.sql("create schema if not exists reference_staging")
    seen = []
    for batch in (1, 2, 3):
        records = []
        for arrival, (order, at_once) in enumerate(ARRIVALS):
            for change_type in order if at_once and batch == 1 else [] if at_once else [order[batch - 1]]:
                record = EVENTS[change_type]
                records.append(json.dumps({**record, "payload": {**record["payload"], "ARRIVAL": arrival}}))
        stage(spark, "reference_staging.changes", [Staged(record, "SAMPLE.TBL", batch) for record in records])
        project.dbt("run", "--select", "tbl")
        seen.append({row.arrival: row for row in spark.table("reference_events.tbl").collect()})
    return seen


@pytest.mark.parametrize("arrival", range(len(ARRIVALS)), ids=[f"{'-'.join(o)}{'-at-once' * a}" for o, a in ARRIVALS])
def test_in_any_order_the_three_events_leave_no_row(after_each_batch: list[dict[int, Any]], arrival: int) -> None:
    assert arrival not in after_each_batch[2]


@pytest.mark.parametrize("arrival", range(len(ARRIVALS)), ids=[f"{'-'.join(o)}{'-at-once' * a}" for o, a in ARRIVALS])
def test_after_each_batch_the_row_is_what_the_newest_event_seen_made_of_it(
    after_each_batch: list[dict[int, Any]], arrival: int
) -> None:
    order, at_once = ARRIVALS[arrival]
    for batch in (1, 2, 3):
        newest = max(order if at_once else order[:batch], key=list(EVENTS).index)
        row = after_each_batch[batch - 1].get(arrival)
        expected = None if newest == "DELETE" else (arrival, KEY, {"INSERT": "foo", "UPDATE": None}[newest], "TLV")
        assert (row and tuple(row)) == expected, f"after batch {batch}"


def test_the_base_keeps_one_tombstone_of_each(spark: SparkSession, after_each_batch: list[dict[int, Any]]) -> None:
    base = stored(spark, "reference_events.tbl__base").collect()
    assert [(row.this_is_my_pk, row.field1, row.field2, row._deleted) for row in base] == [(KEY, None, None, True)] * 12
    assert {row.arrival for row in base} == set(range(12))


def test_the_reference_is_quoted_faithfully() -> None:
    """`rs_id` falls from the insert to the update: ordered by it alone, the insert would be the newest."""
    assert EVENTS["INSERT"]["source_metadata"]["rs_id"] > EVENTS["DELETE"]["source_metadata"]["rs_id"]
    assert [EVENTS[change]["source_metadata"]["scn"] for change in EVENTS] == sorted(
        EVENTS[change]["source_metadata"]["scn"] for change in EVENTS
    )
