"""The job appends files that Datastream wrote as they are: the records of which the fold level makes the true rows.

See tests/fold/test_real_files.py, also for where the files are.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from process.landings import Landing
from pyspark.sql import SparkSession
from reconcile_jobs.avro_json import json_records

DIRECTORY = os.environ.get("RECONCILE_REAL_FILES")


@pytest.mark.skipif(not DIRECTORY, reason="RECONCILE_REAL_FILES names no directory: no real file was appended")
def test_real_files_are_appended_record_by_record(spark: SparkSession, tmp_path: Path) -> None:
    files = sorted(Path(DIRECTORY or "").glob("*.avro"))
    assert len(files) == 64
    landing = Landing(spark, tmp_path)
    for file in files:
        shutil.copy(file, landing.path)
    expected = Counter((file.name, record) for file in files for record in json_records(file.read_bytes()))
    totals = landing.append(max_files=40)
    assert (totals.files, totals.records, totals.last_batch) == (64, expected.total(), 2)
    rows = landing.rows()
    assert Counter((row.origin.rsplit("/", 1)[1], row.record) for row in rows) == expected
    assert all(row.object == json.loads(row.record)["object"] for row in rows)
    assert landing.append().files == 0, "the same command appends nothing twice"
    spark.sql(f"DROP TABLE {landing.table}")
