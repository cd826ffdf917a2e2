"""The Spark configurations agree in all but what each is for."""

from pathlib import Path

import pytest

CONF = Path(__file__).resolve().parents[2] / "conf"

# The beginnings of the settings in which a configuration may differ from conf/.
OWN = {
    "iceberg": (
        "spark.databricks.delta.",
        "spark.hadoop.iceberg.",
        "spark.sql.catalog.spark_catalog",
        "spark.sql.extensions",
    ),
    "shared": (
        "spark.driver.extraJavaOptions",
        "spark.executor.extraJavaOptions",
        "spark.hadoop.datanucleus.",
        "spark.hadoop.hive.metastore.schema.verification",
        "spark.hadoop.hive.metastore.warehouse.dir",
        "spark.hadoop.javax.jdo.option.",
        "spark.sql.warehouse.dir",
    ),
}
OWN["shared-iceberg"] = OWN["shared"] + OWN["iceberg"]
# The mapping is Derby's, and so of those that have no other metastore.
LINKED = {
    "iceberg": ("spark-env.sh", "coordinates", "log4j2.properties", "package-reconcile.orm"),
    "shared": ("spark-env.sh", "coordinates", "log4j2.properties"),
    "shared-iceberg": ("spark-env.sh", "coordinates", "log4j2.properties"),
}
SHARED = ("shared", "shared-iceberg")


def settings(file: Path) -> dict[str, str]:
    lines = [line.split(None, 1) for line in file.read_text().splitlines() if line and not line.startswith("#")]
    assert len(dict(lines)) == len(lines), f"{file}: a setting stands there twice"
    return {name: value.strip() for name, value in lines}


def test_every_configuration_is_known():
    assert {path.name for path in CONF.iterdir() if path.is_dir()} == set(OWN)


@pytest.mark.parametrize("name", OWN)
def test_a_configuration_differs_from_conf_in_nothing_but_its_own(name: str):
    ours, theirs = settings(CONF / "spark-defaults.conf"), settings(CONF / name / "spark-defaults.conf")
    different = {key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}
    assert different, "then it need not be there"
    assert sorted(key for key in different if not key.startswith(OWN[name])) == []


@pytest.mark.parametrize(("name", "file"), [(name, file) for name, files in LINKED.items() for file in files])
def test_a_configuration_shares_what_is_no_setting(name: str, file: str):
    assert (CONF / name / file).read_bytes() == (CONF / file).read_bytes()


def packages(name: str) -> set[str]:
    return set((CONF / name / "packages").read_text().splitlines())


@pytest.mark.parametrize(("name", "shared"), [("", "shared"), ("iceberg", "shared-iceberg")])
def test_a_shared_metastore_takes_the_same_jars_and_its_driver(name: str, shared: str):
    assert packages(name) < packages(shared)
    assert packages(shared) - packages(name) == packages("shared") - packages("")


def test_the_shared_metastore_is_the_same_in_either_format():
    delta, iceberg = (settings(CONF / name / "spark-defaults.conf") for name in SHARED)
    different = {key for key in delta.keys() | iceberg.keys() if delta.get(key) != iceberg.get(key)}
    assert sorted(key for key in different if not key.startswith(OWN["iceberg"])) == []


@pytest.mark.parametrize("name", SHARED)
def test_java_has_the_same_options_but_for_derby(name: str):
    local = settings(CONF / "spark-defaults.conf")["spark.driver.extraJavaOptions"].split()
    shared = settings(CONF / name / "spark-defaults.conf")
    for process in ("driver", "executor"):
        assert shared[f"spark.{process}.extraJavaOptions"].split() == [o for o in local if "derby" not in o]


@pytest.mark.parametrize("name", SHARED)
def test_no_secret_stands_in_a_configuration(name: str):
    said = settings(CONF / name / "spark-defaults.conf")
    for option in ("ConnectionURL", "ConnectionUserName", "ConnectionPassword"):
        assert said[f"spark.hadoop.javax.jdo.option.{option}"].startswith("${env.RECONCILE_METASTORE_")


@pytest.mark.parametrize("name", ["iceberg", "shared-iceberg"])
def test_what_another_session_commits_to_a_table_of_iceberg_is_seen_at_once(name: str):
    assert settings(CONF / name / "spark-defaults.conf")["spark.sql.catalog.spark_catalog.cache-enabled"] == "false"
