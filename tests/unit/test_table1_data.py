"""The TABLE1 experiment is what it says: a thousand operations that leave the export's 188 rows."""

import csv
import gzip
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from dbt_common.clients import agate_helper

ROOT = Path(__file__).resolve().parents[2]
TABLE1 = ROOT / "tests" / "data" / "table1"
EXPORT = ROOT / "seeds" / "demo" / "table1_oracle_export.csv"


def read(landing: Path) -> dict[str, str]:
    return {
        str(path.relative_to(landing)): gzip.decompress(path.read_bytes()).decode()
        for path in sorted(landing.rglob("*.jsonl.gz"))
    }


def export(path: Path) -> dict[str, str]:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["COL1", "COL2"]
    assert len({key for key, _ in rows}) == len(rows)
    return dict(rows)


RECORDS = [json.loads(line) for text in read(TABLE1).values() for line in text.splitlines()]


def fold(records: list, *order: str) -> dict[str, str | None]:
    """Apply the records in the order of these fields, else in the order given."""
    table: dict[str, str | None] = {}
    for record in sorted(records, key=lambda record: [{**record, **record["source_metadata"]}[name] for name in order]):
        if record["source_metadata"]["change_type"] == "DELETE":
            table.pop(record["payload"]["COL1"], None)
        else:
            table[record["payload"]["COL1"]] = record["payload"]["COL2"]
    return table


def test_a_thousand_operations_leave_the_export():
    assert len(RECORDS) == 1000
    kinds = Counter(record["source_metadata"]["change_type"] for record in RECORDS)
    assert kinds == {"INSERT": 382, "UPDATE-INSERT": 424, "DELETE": 194}
    assert len(export(EXPORT)) == 188
    assert fold(RECORDS, "scn", "rs_id", "ssn") == export(EXPORT)


def test_every_operation_was_possible_when_it_happened():
    there: set[str] = set()
    for record in sorted(RECORDS, key=lambda record: record["sort_keys"]):
        metadata, key = record["source_metadata"], record["payload"]["COL1"]
        assert record["object"] == "USER1.TABLE1"
        assert record["sort_keys"][1:] == [metadata["scn"], metadata["rs_id"], metadata["ssn"]]
        assert (key in there) == (metadata["change_type"] != "INSERT")
        assert metadata["is_deleted"] == (metadata["change_type"] == "DELETE")
        (there.discard if metadata["is_deleted"] else there.add)(key)


@pytest.mark.parametrize("order", [(), ("rs_id", "ssn"), ("source_timestamp",), ("scn",), ("read_timestamp",)])
def test_easy_orders_are_wrong(order):
    assert fold(RECORDS, *order) != export(EXPORT)


def test_it_holds_what_makes_it_hard():
    by_key: dict[str, list] = {}
    for record in sorted(RECORDS, key=lambda record: record["sort_keys"]):
        by_key.setdefault(record["payload"]["COL1"], []).append(record)
    again = [key for key, life in by_key.items() if sum(r["source_metadata"]["is_deleted"] for r in life) > 1]
    assert len(again) >= 10, "keys that were deleted more than once"
    assert len({record["uuid"] for record in RECORDS}) == 1000
    assert len({record["source_timestamp"] for record in RECORDS}) < 200
    values = {record["payload"]["COL2"] for record in RECORDS}
    assert {None, "NULL", "it's", "back\\slash", "line\nbreak", "a, b and c"} <= values
    deletes = Counter(
        (record["source_metadata"]["rs_id"], record["source_metadata"]["ssn"])
        for record in RECORDS
        if record["source_metadata"]["is_deleted"]
    )
    assert max(deletes.values()) > 1, "a bulk delete gives its rows one (rs_id, ssn)"


def test_the_articles_two_updates():
    xyz, pqr = (next(r for r in RECORDS if r["payload"] == {"COL1": "ABC", "COL2": value}) for value in ("XYZ", "PQR"))
    assert xyz["source_timestamp"] == pqr["source_timestamp"]
    assert xyz["source_metadata"]["scn"] < pqr["source_metadata"]["scn"]
    assert xyz["source_metadata"]["rs_id"] > pqr["source_metadata"]["rs_id"]
    assert export(EXPORT)["ABC"] == "PQR"


def test_deleted_and_inserted_again_at_one_scn():
    deleted, inserted = sorted(
        (r for r in RECORDS if r["payload"]["COL1"] == "DEF"), key=lambda record: record["sort_keys"]
    )[-2:]
    assert deleted["source_metadata"]["is_deleted"]
    assert deleted["source_metadata"]["scn"] == inserted["source_metadata"]["scn"]
    assert deleted["source_metadata"]["tx_id"] == inserted["source_metadata"]["tx_id"]
    assert deleted["source_metadata"]["rs_id"] < inserted["source_metadata"]["rs_id"]


def test_dbt_seed_reads_the_export_as_it_is_written():
    table = agate_helper.from_csv(str(EXPORT), text_columns=["COL1", "COL2"])
    assert dict(tuple(row) for row in table.rows) == export(EXPORT)
    # dbt's Spark session puts values between single quotes without escaping them.
    assert not any(set(text) & set("'\\") for row in table.rows for text in row)


def test_the_script_makes_these_files(tmp_path):
    subprocess.run([sys.executable, TABLE1 / "make_table1.py", tmp_path], check=True)
    assert read(tmp_path) == read(TABLE1)
    assert (tmp_path / EXPORT.name).read_bytes() == EXPORT.read_bytes()
