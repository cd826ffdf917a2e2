"""Failures as the one sentence that a user needs."""

import sys

import pytest
from reconcile_jobs.errors import DataError, Fault, UsageError, explained

modules_and_packages = pytest.mark.parametrize(
    ("module", "package"),
    [
        ("grpc", "google-cloud-spanner"),
        ("google.cloud", "google-cloud-spanner"),
        ("google.cloud.spanner_v1", "google-cloud-spanner"),
        ("google", "google-cloud-spanner"),
        ("fastavro", "fastavro"),
        ("grpcless", "grpcless"),
    ],
)


@modules_and_packages
def test_a_package_that_the_job_itself_lacks_is_named_as_it_is_installed_and_so_is_its_python(
    module: str, package: str
):
    told = explained(ModuleNotFoundError(f"No module named '{module}'", name=module))
    assert isinstance(told, UsageError)
    assert f" does not have the package {package}: " in str(told)
    assert sys.executable in str(told)
    assert "executor" not in str(told)
    assert "\n" not in str(told)


@modules_and_packages
def test_a_package_that_sparks_processes_lack_is_named_as_it_is_installed(module: str, package: str):
    class Crossed(Exception):
        pass

    told = explained(Crossed(f"Traceback\n  File\nModuleNotFoundError: No module named '{module}'\n\n\tat org.apache"))
    assert isinstance(told, UsageError)
    assert f" do not have the package {package}: " in str(told)
    assert "executor" in str(told)
    assert "\n" not in str(told)


@pytest.mark.parametrize(
    ("cause", "kind", "says"),
    [
        ("MetaException: Version information not found in metastore.", UsageError, "ingestion/metastore.py"),
        ("org.postgresql.util.PSQLException: Connection to 10.0.0.1:5432 refused.\n", Fault, "10.0.0.1:5432 refused)"),
    ],
)
def test_a_metastore_that_is_not_there_is_told_by_its_cause(cause: str, kind: type, says: str):
    told = explained(Exception(f"Unable to instantiate SessionHiveMetaStoreClient\n{cause}"))
    assert type(told) is kind
    assert says in str(told)
    assert "\n" not in str(told)


@pytest.mark.parametrize("kind", [UsageError, DataError, Fault])
def test_a_failure_keeps_its_kind_on_the_way_from_an_executor(kind: type):
    class Crossed(Exception):
        pass

    told = explained(Crossed(f"Traceback\n  File\nreconcile_jobs.errors.{kind.__name__}: What it is.\n\tat org.apache"))
    assert (type(told), str(told)) == (kind, "What it is.")
