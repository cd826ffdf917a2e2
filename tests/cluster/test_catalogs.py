"""Catalogs of two formats through Thrift, on a cluster."""

from __future__ import annotations

import shutil
from pathlib import Path

import catalogs
import pytest
from cluster.spark_cluster import SECONDS, Cluster
from cluster.test_cluster import as_read, rows_of
from dbt_process import dbt, outcome
from file_formats import file_format
from projects import PACKAGE, Project
from truth import CAPTURE, COLUMNS, true_rows

if file_format() != "delta":
    pytest.skip("its sessions have both formats", allow_module_level=True)


@pytest.mark.soak
def test_the_capture_reaches_the_truth_in_three_catalogs_through_thrift(tmp_path: Path) -> None:
    conf = catalogs.configuration(tmp_path / "conf", str(tmp_path / "iceberg"))
    with Cluster(tmp_path / "cluster", conf=conf) as cluster:
        project = Project(cluster.root / "project", "ice.accounts", threads=2, target=cluster.target)
        catalogs.declare_capture(project)
        for delivery in (1, 2), (3, 4):
            words = ["datastream", "--staging", catalogs.STAGING, "--checkpoint", str(cluster.root / "checkpoint")]
            landing = cluster.root / "landing"
            landing.mkdir(exist_ok=True)
            for number in delivery:
                shutil.copytree(CAPTURE / "oracle_json" / str(number), landing / str(number))
            append = PACKAGE / "ingestion" / "append.py"
            assert cluster.submit("append", [], append, *words, "--path", str(landing)).wait(SECONDS) == 0
            code, said = outcome(dbt(project.root, cluster.environment, "build"))
            assert code == 0, said[-3000:]
        for table in COLUMNS:
            schema = catalogs.relation_of(table).rpartition(".")[0]
            assert rows_of(cluster, table, schema) == as_read(true_rows(table)), table
        accounted = {relation for (relation,) in cluster.query(f"select distinct relation from {catalogs.LEDGER}")}
        assert accounted == set(map(catalogs.relation_of, COLUMNS))
