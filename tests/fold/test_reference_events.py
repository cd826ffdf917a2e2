"""The three events of Datastream's documentation: INSERT, UPDATE and DELETE of one row."""

from __future__ import annotations

import itertools
import json
from typing import Any, NamedTuple

import pytest
from datastream import Staged
from lakes import stored
from memory import Memory
from pyspark.sql import SparkSession

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


class Outcome(NamedTuple):
    """The live row of each arrival after each batch, and the base table's rows after the last one."""

    live: list[dict[int, Any]]
    base: list[Any]


@pytest.fixture(scope="module")
def outcome(spark: SparkSession) -> Outcome:
    """The arrivals lie side by side in one table."""
    with Memory(spark) as memory:
        project = memory.project("reference_events")
        project.source("reference_staging", "changes")
        project.model(
            "tbl",
            "{{ config(materialized='current_state', unique_key=['arrival', 'this_is_my_pk']) }}\n"
            "{{ reconcile.datastream_oracle(source('lake', 'changes'), object='SAMPLE.TBL') }}",
            {"arrival": "int", "this_is_my_pk": "bigint", "field1": "string", "field2": "string"},
        )
        live = []
        for batch in (1, 2, 3):
            records = []
            for arrival, (order, at_once) in enumerate(ARRIVALS):
                for change_type in order if at_once and batch == 1 else [] if at_once else [order[batch - 1]]:
                    record = EVENTS[change_type]
                    records.append(json.dumps({**record, "payload": {**record["payload"], "ARRIVAL": arrival}}))
            memory.stage("reference_staging.changes", [Staged(record, "SAMPLE.TBL", batch) for record in records])
            project.run("tbl")
            live.append({row.arrival: row for row in memory.rows("reference_events.tbl")})
        return Outcome(live, stored(memory, "reference_events.tbl__base").collect())


@pytest.mark.parametrize("arrival", range(len(ARRIVALS)), ids=[f"{'-'.join(o)}{'-at-once' * a}" for o, a in ARRIVALS])
def test_in_any_order_the_three_events_leave_no_row(outcome: Outcome, arrival: int) -> None:
    assert arrival not in outcome.live[2]


@pytest.mark.parametrize("arrival", range(len(ARRIVALS)), ids=[f"{'-'.join(o)}{'-at-once' * a}" for o, a in ARRIVALS])
def test_after_each_batch_the_row_is_what_the_newest_event_seen_made_of_it(outcome: Outcome, arrival: int) -> None:
    order, at_once = ARRIVALS[arrival]
    for batch in (1, 2, 3):
        newest = max(order if at_once else order[:batch], key=list(EVENTS).index)
        row = outcome.live[batch - 1].get(arrival)
        expected = None if newest == "DELETE" else (arrival, KEY, {"INSERT": "foo", "UPDATE": None}[newest], "TLV")
        assert (row and tuple(row)) == expected, f"after batch {batch}"


def test_the_base_keeps_one_tombstone_of_each(outcome: Outcome) -> None:
    assert [(row.this_is_my_pk, row.field1, row.field2, row._deleted) for row in outcome.base] == [
        (KEY, None, None, True)
    ] * 12
    assert {row.arrival for row in outcome.base} == set(range(12))


def test_the_reference_is_quoted_faithfully() -> None:
    """`rs_id` falls from the insert to the update: ordered by it alone, the insert would be the newest."""
    assert EVENTS["INSERT"]["source_metadata"]["rs_id"] > EVENTS["DELETE"]["source_metadata"]["rs_id"]
    assert [EVENTS[change]["source_metadata"]["scn"] for change in EVENTS] == sorted(
        EVENTS[change]["source_metadata"]["scn"] for change in EVENTS
    )
