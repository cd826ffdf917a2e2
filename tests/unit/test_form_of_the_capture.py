"""The capture's files have the form of Datastream's real files: folders, names, and what their records say."""

import gzip
import io
import json
import re
from typing import Any

import fastavro
import pytest
from truth import CAPTURE, COLUMNS, SOURCES, object_of

METADATA = {
    "oracle": "schema table database row_id scn is_deleted change_type ssn rs_id tx_id log_file primary_keys",
    "mysql": "table database primary_keys log_file log_position change_type is_deleted",
    "postgresql": "schema table is_deleted change_type tx_id lsn primary_keys",
    "sqlserver": "table database schema is_deleted lsn tx_id physical_location replication_index change_type",
}
ENVELOPE = (
    "uuid read_timestamp source_timestamp object read_method stream_name schema_key sort_keys source_metadata payload"
)
PATH = re.compile(
    r"(?P<delivery>\d)/(?P<object>\w+)/2026/11/21/11/33/(?P<schema_key>[0-9a-f]{40})_(?P<method>[a-z-]+)_\d+_\d_\d+"
    r"\.(?:jsonl\.gz|avro)"
)


def metadata_of(source: str, delivery: int) -> str:
    """Return the names of the metadata; MySQL follows GTIDs from the third delivery on."""
    follows_gtids = source == "mysql" and delivery > 2
    return METADATA[source].replace("log_", "binlog_") if follows_gtids else METADATA[source]


@pytest.mark.parametrize("source", SOURCES)
def test_each_json_file_is_of_one_table_and_one_read_method(source: str) -> None:
    seen = set()
    for file in (CAPTURE / f"{source}_json").rglob("*.gz"):
        named = PATH.fullmatch(file.relative_to(CAPTURE / f"{source}_json").as_posix())
        assert named, file
        records = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
        assert {(record["object"], record["schema_key"]) for record in records} == {
            (named["object"], named["schema_key"])
        }
        (method,) = {record["read_method"] for record in records}
        assert named["method"] == ("mysql-cdc-binlog" if method == "cdc" else method)
        assert {" ".join(record) for record in records} == {ENVELOPE}
        told = {" ".join(record["source_metadata"]) for record in records}
        assert told == {metadata_of(source, int(named["delivery"]))}
        seen.add((named["object"], method))
    assert {object_ for object_, _ in seen} == {object_of(source, table) for table in COLUMNS}
    assert len(seen) == len(COLUMNS) * (3 if source == "mysql" else 2)


@pytest.mark.parametrize("source", SOURCES)
def test_each_avro_file_has_the_schema_of_real_ones(source: str) -> None:
    for file in (CAPTURE / f"{source}_avro").rglob("*.avro"):
        named = PATH.fullmatch(file.relative_to(CAPTURE / f"{source}_avro").as_posix())
        assert named, file
        reader = fastavro.reader(io.BytesIO(file.read_bytes()))
        schema: dict[str, Any] = reader.writer_schema  # type: ignore[assignment]
        assert schema["name"] == named["object"]
        fields = {field["name"]: field["type"] for field in schema["fields"]}
        assert set(fields) == set(ENVELOPE.split())
        assert {fields[name]["logicalType"] for name in ("read_timestamp", "source_timestamp")} == {"timestamp-millis"}
        assert [fields[name]["name"] for name in ("source_metadata", "payload")] == ["source_metadata", "payload"]
        names = " ".join(field["name"] for field in fields["source_metadata"]["fields"])
        expected = metadata_of(source, int(named["delivery"]))
        # Oracle's of 2021-03 have no keys.
        assert names == (expected.removesuffix(" primary_keys") if source == "oracle" else expected)
        assert all(field["type"][0] == "null" for field in fields["payload"]["fields"])
