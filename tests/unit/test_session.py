"""The session of a job: the settings with which dbt refuses a session never hold in it."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from reconcile_jobs.process.session import read_and_write_alike

CHECK = Path(__file__).resolve().parents[2] / "macros" / "table_formats" / "check_session.sql"


def test_the_settings_that_a_run_of_dbt_refuses_are_set_otherwise_in_a_job() -> None:
    refused = dict(re.findall(r"'(spark\.sql\.[\w.]+)': \['(\w+)'", CHECK.read_text()))
    assert {"spark.sql.caseSensitive", "spark.sql.parquet.outputTimestampType"} <= set(refused)
    unset = re.findall(r"'(spark\.[\w.]+)': \[none, ", CHECK.read_text())
    assert unset == ["spark.wap.id", "spark.wap.branch"]
    conf = refused | dict.fromkeys(unset, "x")
    session: Any = SimpleNamespace(conf=SimpleNamespace(set=conf.__setitem__, unset=conf.__delitem__))
    read_and_write_alike(session)
    assert not [name for name, value in refused.items() if conf[name].lower() == value]
    assert not set(unset) & set(conf)
