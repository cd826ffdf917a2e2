"""What tests do, for Java to write down the classes of it: `spark-submit typical_run.py`, in an empty directory."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "ingestion")]

import append  # noqa: E402
from projects import PACKAGE, Project  # noqa: E402
from reconcile_jobs.process.console import Console  # noqa: E402
from reconcile_jobs.process.shutdown import Shutdown  # noqa: E402

LANDING = PACKAGE / "tests" / "data" / "table1"
append.main(["datastream", "--path", str(LANDING), "--staging", "lake.changes"], Console("append"), Shutdown())
project = Project(Path("project").absolute(), "shop")
project.source("lake", "changes")
project.model(
    "table1",
    "{{ config(materialized='current_state', unique_key='COL1') }}\n"
    "{{ reconcile.datastream_oracle(source('lake', 'changes'), object='USER1.TABLE1') }}",
    {"COL1": "string", "COL2": "string"},
)
project.dbt("run")
project.dbt("run", "--full-refresh")
project.dbt("test")
