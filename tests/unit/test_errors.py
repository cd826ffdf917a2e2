"""Failures as the one sentence that a user needs."""

import sys
from types import SimpleNamespace

import grpc
import pytest
from reconcile_jobs.google_service import details_of
from reconcile_jobs.jdbc.connection import Source, _other
from reconcile_jobs.jdbc.postgresql import PostgreSQL
from reconcile_jobs.process.errors import DataError, Fault, UsageError, explained

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
    ("module", "extra"),
    [
        ("fastavro", "dbt-reconcile[datastream]"), ("google.cloud.bigtable_v2", "dbt-reconcile[bigtable]"),
        ("grpc", "dbt-reconcile[spanner]"), ("great_expectations", "dbt-reconcile[expectations]"),
        ("ruamel", "dbt-reconcile[dbt]"), ("pandas", "this package's requirements"),
    ],
)  # fmt: skip
def test_the_extra_that_brings_a_package_is_named(module: str, extra: str):
    lacking = f"No module named '{module}'"
    told = str(explained(ModuleNotFoundError(lacking, name=module)))
    assert "run `pip install " in told and f"there (the wheel brings it with {extra}), or" in told
    assert f"a Python with {extra}, on the" in str(explained(Exception(f"x\nModuleNotFoundError: {lacking}")))


def test_a_table_that_hives_metastore_does_not_take_is_told_by_its_type_and_not_by_its_name():
    cause = "Invalid Hive object for lake.t\nCaused by: InvalidObjectException(message:Invalid column type: unknown)"
    told = explained(Exception(cause))
    assert type(told) is UsageError and "with a variant: declare string" in str(told)


def test_a_java_that_did_not_start_has_said_why_itself():
    told = explained(Exception("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number."))
    assert type(told) is Fault and str(told).startswith("Spark's Java did not start, and the lines above say why")


def test_a_view_in_the_place_of_a_table_is_one_sentence():
    """As Spark says it where somebody has made staging a view over a copy."""
    cause = "[EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE] 'DESCRIBE DETAIL' expects a table but `c`.`s t`.`ch` is a view."
    told = explained(Exception(f"{cause}; line 1 pos 0"))
    assert type(told) is UsageError and str(told).startswith("`c`.`s t`.`ch` is a view, and records are appended to t")


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

    told = explained(Crossed(f"Traceback\n  File\n{kind.__module__}.{kind.__name__}: What it is.\n\tat org.apache"))
    assert (type(told), str(told)) == (kind, "What it is.")


class Refused(grpc.RpcError):
    def __init__(self, details: str | None) -> None:
        self.said = details

    def details(self) -> str | None:
        return self.said


@pytest.mark.parametrize(
    ("details", "told"),
    [
        ("Session not found: projects/p/instances/i/databases/d/sessions/AFr-x_1: gone.", "Session not found: "
         "projects/p/instances/i/databases/d/sessions/... gone"),
        ("the first line.\nand a trace", "the first line"),
        ("x" * 301, "x" * 300 + "..."),
        ("x" * 300, "x" * 300),
        (None, ""),
    ],
    ids=["without the name of a session", "one line", "a short one", "the longest", "nothing"],
)  # fmt: skip
def test_what_a_service_says_is_told_in_a_line(details: str | None, told: str):
    assert details_of(Refused(details)) == told


class Broken(Exception):
    """A failure as the JVM tells it, of a driver that repeats its properties."""

    @property
    def java_exception(self) -> object:
        said = {"getMessage": "no such option: password=canary-51c9\nat org.example", "getCause": None}
        named = SimpleNamespace(getName=lambda: "org.example.Odd")
        return SimpleNamespace(
            getClass=lambda: named, **{name: lambda value=value: value for name, value in said.items()}
        )


def test_what_a_driver_says_of_a_known_failure_is_told_without_secrets():
    source = Source(PostgreSQL(), "jdbc:postgresql://h/db", {"user": "me", "password": "canary-51c9"})
    told = str(source.refusal(RuntimeError("SQLState 08001: Connection to canary-51c9:5432 refused")))
    assert "connection to PostgreSQL failed" in told and "***" in told
    assert "canary" not in told


def test_what_a_driver_says_of_an_unknown_failure_is_told_without_secrets():
    source = Source(PostgreSQL(), "jdbc:postgresql://h/db", {"user": "me", "password": "canary-51c9"})
    told = str(_other(source, Broken()))
    assert told.startswith("PostgreSQL failed with Odd: no such option: password=")
    assert "canary" not in told and "\n" not in told


def test_a_full_disk_is_a_fault_that_the_same_command_may_not_meet_again():
    failure = explained(OSError("java.io.IOException: No space left on device"))
    assert isinstance(failure, Fault) and failure.exit_code == 4
    assert str(failure).startswith("The disk is full; what was committed stays: free some space")


def test_a_metastore_that_another_process_holds_is_a_fault_where_only_derby_says_so():
    said = "ERROR XSDB6: Another instance of Derby may have already booted the database"
    failure = explained(RuntimeError(f"java.sql.SQLException: {said}"))
    assert isinstance(failure, Fault) and "Another process uses the metastore" in str(failure)


@pytest.mark.parametrize("name", ["java_exception", "_origin"])
def test_what_lies_beneath_a_failure_of_sparks_is_found_by_either_of_its_names(name: str):
    beneath = SimpleNamespace(
        getClass=lambda: SimpleNamespace(getName=lambda: "java.io.IOException"),
        getMessage=lambda: "No space left on device",
        getCause=lambda: None,
    )
    problem = RuntimeError("Job aborted")
    setattr(problem, name, beneath)
    told = explained(problem)
    assert isinstance(told, Fault)
    assert "The disk is full" in str(told)


@pytest.mark.parametrize(
    ("cause", "kind", "says"),
    [
        ("ConcurrentAppendException: files were added", Fault, "changed the staging table at the same moment (Concurr"),
        ("CommitFailedException: metadata location", Fault, "(CommitFailedException), and nothing of this batch was"),
        ("Another job has appended under the batch number 7", Fault, "number 7 at the same moment, and nothing of thi"),
        ("[CONCURRENT_QUERY] another query", Fault, "Another process is appending with the same checkpoint"),
        ("AccessDenied: s3://lake", UsageError, "Access was denied (s3://lake)"),
        ("java.io.IOException: Permission denied", UsageError, "Access was denied ()"),
        ("ClassNotFoundException: org.apache.iceberg.spark.X", UsageError, "does not find the classes of iceberg: set"),
        ('No FileSystem for scheme "gs"', UsageError, "no connector for paths that begin with gs: put its jar"),
        ("[INVALID_SCHEMA_OR_RELATION_NAME] `a-b` is", UsageError, "does not accept `a-b` as the name of a table or"),
        ("a text of the column note is not UTF-8", DataError, "A text of the column note is not UTF-8, and staging"),
        ("JAVA_HEAP", Fault, "Spark failed with Outermost: JAVA_HEAP; what was committed stays, and the same command"),
    ],
)
def test_a_known_failure_says_by_its_kind_whether_the_same_command_may_be_given_again(
    cause: str, kind: type, says: str
):
    outermost = SimpleNamespace(
        getClass=lambda: SimpleNamespace(getName=lambda: "org.example.Outermost"),
        getMessage=lambda: cause,
        getCause=lambda: None,
    )
    problem = RuntimeError("Job aborted")
    problem.java_exception = outermost  # type: ignore[attr-defined]
    told = explained(problem)
    assert (type(told), says in str(told)) == (kind, True), told


def test_what_nobody_knows_is_a_fault_that_says_how_to_see_more_of_it():
    told = explained(KeyError("a name"))
    assert type(told) is Fault
    assert str(told) == "The job failed with KeyError: 'a name'; RECONCILE_TRACEBACK=1 shows where."


def test_what_spark_refuses_is_a_matter_of_the_command_and_is_told_in_its_first_line():
    class AnalysisException(Exception):
        pass

    told = explained(AnalysisException("[UNRESOLVED_COLUMN] no column x. SQLSTATE: 42703; line 1\n'Project ['x]"))
    assert (type(told), str(told)) == (UsageError, "Spark refuses: [UNRESOLVED_COLUMN] no column x.; line 1")
    long = str(explained(AnalysisException("x" * 301)))
    assert (long, str(explained(AnalysisException("x" * 300)))) == (
        "Spark refuses: " + "x" * 300 + "...", "Spark refuses: " + "x" * 300,
    )  # fmt: skip
