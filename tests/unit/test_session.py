"""The session of a job: the settings with which dbt refuses a session never hold in it."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from reconcile_jobs.process.session import configured_format, list_in_few_tasks, read_and_write_alike, settings

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


def of_settings(values: dict[str, str], cores: int = 2, configured: tuple[str, ...] = ()) -> Any:
    conf = SimpleNamespace(
        get=lambda key, default=None: values.get(key, default),
        set=values.__setitem__,
        unset=lambda key: values.pop(key, None),
    )
    context = SimpleNamespace(
        defaultParallelism=cores, getConf=lambda: SimpleNamespace(contains=configured.__contains__)
    )
    return SimpleNamespace(conf=conf, sparkContext=context)


def test_settings_for_a_while_are_put_back_whatever_happens_meanwhile() -> None:
    values = {"a": "1", "b": "2"}
    with pytest.raises(KeyError), settings(of_settings(values), {"a": "3", "c": "4"}):
        assert values == {"a": "3", "b": "2", "c": "4"}
        raise KeyError
    assert values == {"a": "1", "b": "2"}


@pytest.mark.parametrize(("cores", "tasks"), [(2, "32"), (8, "32"), (9, "36")])
def test_files_are_listed_by_few_tasks_unless_somebody_has_said_how_many(cores: int, tasks: str) -> None:
    name = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    values: dict[str, str] = {}
    list_in_few_tasks(of_settings(values, cores))
    assert values == {name: tasks}
    values.clear()
    list_in_few_tasks(of_settings(values, cores, (name,)))
    assert values == {}


@pytest.mark.parametrize(
    ("catalog", "extensions", "found"),
    [
        ("org.apache.spark.sql.delta.catalog.DeltaCatalog", "io.delta.sql.DeltaSparkSessionExtension", "delta"),
        ("org.apache.spark.sql.delta.catalog.DeltaCatalog", "", None),
        ("", "io.delta.sql.DeltaSparkSessionExtension", None),
        ("org.apache.iceberg.spark.SparkSessionCatalog", "", "iceberg"),
        ("", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions", None),
    ],
)
def test_a_session_is_for_the_format_of_its_own_catalog(catalog: str, extensions: str, found: str | None) -> None:
    said = {"spark.sql.catalog.spark_catalog": catalog, "spark.sql.extensions": extensions}
    assert configured_format(said.get) == found
