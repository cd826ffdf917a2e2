"""Data change records of a Spanner change stream as its documentation shapes them, staged as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

WHOLE_ROWS = ("NEW_ROW", "NEW_ROW_AND_OLD_VALUES")
CHANGED_COLUMNS = ("NEW_VALUES", "OLD_AND_NEW_VALUES")


def mod(
    keys: Mapping[str, Any], new_values: Mapping[str, Any] | None = None, old_values: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return {"keys": keys, "new_values": new_values or {}, "old_values": old_values or {}}


def data_change_record(
    mods: Sequence[Any] | str,
    mod_type: str = "INSERT",
    *,
    value_capture_type: str = "OLD_AND_NEW_VALUES",
    without: Iterable[str] = (),
    **fields: Any,
) -> str:
    """Return one record as a line of JSON.

    `mods` of text is JSON as it stands; `fields` replace, `without` leaves out.
    """
    record = {
        "commit_timestamp": "2026-11-21T11:33:12.123456789Z",
        "record_sequence": "00000000",
        "server_transaction_id": "6329047911",
        "is_last_record_in_transaction_in_partition": True,
        "table_name": "Things",
        "column_types": [],
        "mods": [],
        "mod_type": mod_type,
        "value_capture_type": value_capture_type,
        "number_of_records_in_transaction": "1",
        "number_of_partitions_in_transaction": "1",
        "transaction_tag": "app=shop",
        "is_system_transaction": False,
        **fields,
    }
    said = {name: value for name, value in record.items() if name not in {*without, "mods"}}
    text = json.dumps(said, ensure_ascii=False)
    if "mods" in without:
        return text
    return f'{text[:-1]}, "mods": {mods if isinstance(mods, str) else json.dumps(mods, ensure_ascii=False)}}}'


def backfill_record(rows: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], read_at: str, **fields: Any) -> str:
    """Return the record of rows as they were at a time: pairs of keys and other values."""
    return data_change_record(
        [mod(keys, values) for keys, values in rows],
        commit_timestamp=read_at,
        value_capture_type="NEW_ROW",
        backfill=True,
        **{
            **dict.fromkeys(["record_sequence", "server_transaction_id", "transaction_tag"], ""),
            **dict.fromkeys(["number_of_records_in_transaction", "number_of_partitions_in_transaction"], 0),
            **fields,
        },
    )


def cut(cut_time: str, start: str) -> str:
    """Return the record of a batch's cut, whose object is `#cut`."""
    return json.dumps({"cut_time": cut_time, "start": start})
