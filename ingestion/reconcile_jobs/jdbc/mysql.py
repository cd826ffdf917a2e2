"""MySQL and MariaDB: one connection, one consistent snapshot, and the place in the binary log where it lies."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reconcile_jobs.jdbc.database import Column, Cut, Database, Rows, Table, bad_position, decimal_type
from reconcile_jobs.process.errors import Fault, UsageError

__all__ = ["MySQL"]

_SERVER = "SELECT VERSION(), IF(@@log_bin, '1', '0'), CONCAT(UTC_TIMESTAMP(6), '+00')"
_ENGINE = "SELECT engine FROM information_schema.tables WHERE table_schema = ? AND table_name = ?"
_COLUMNS = """
SELECT column_name, data_type, column_type, CAST(numeric_precision AS CHAR), CAST(numeric_scale AS CHAR)
FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position
"""
_KEY = """
SELECT column_name FROM information_schema.key_column_usage
WHERE constraint_name = 'PRIMARY' AND table_schema = ? AND table_name = ? ORDER BY ordinal_position
"""
_COMMENTS = """
SELECT column_name, column_comment FROM information_schema.columns WHERE table_schema = ? AND table_name = ?
UNION ALL
SELECT NULL, table_comment FROM information_schema.tables
WHERE table_schema = ? AND table_name = ? AND table_type = 'BASE TABLE'
"""

# ANSI_QUOTES: under a URL that begins with jdbc:mariadb Spark writes names in double quotes, which are texts otherwise.
_SETTINGS = (
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; "
    "SET SESSION time_zone = '+00:00', sql_mode = 'ANSI_QUOTES'"
)
_BEGIN = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"

# MariaDB reports the position in the binary log that belongs to a transaction's snapshot. MySQL does not. So on MySQL
# the job holds FLUSH TABLES WITH READ LOCK while it takes the snapshot and reads the position: nobody commits in
# between. The lock waits for the statements that are running; the job then holds it for milliseconds.
_OF_MARIADB = (
    "(SELECT GROUP_CONCAT(variable_value ORDER BY variable_name SEPARATOR ':') FROM information_schema.session_status "
    "WHERE variable_name IN ('BINLOG_SNAPSHOT_FILE', 'BINLOG_SNAPSHOT_POSITION'))"
)
_OF_MYSQL = "@reconcile_position"
_READ_OF_MYSQL = (
    "SELECT CONCAT(JSON_UNQUOTE(JSON_EXTRACT(`LOCAL`, '$.binary_log_file')), ':', "
    "JSON_EXTRACT(`LOCAL`, '$.binary_log_position')) INTO @reconcile_position FROM performance_schema.log_status"
)

_TEXT = "CAST({} AS CHAR)"
_NUMBER = "CAST({} + 0 AS CHAR)"
_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "integer": 32, "bigint": 64}
_FORMS = {"date": "moment", "datetime": "moment", "timestamp": "moment", "time": "span", "json": "json"}
_TEXTS: dict[str, tuple[str, str]] = {
    # As text a float has six digits; as a double it has them all.
    "float": ("CAST({} + 0e0 AS CHAR)", "float"),
    "double": (_TEXT, "double"),
    "date": (_TEXT, "date"),
    "datetime": (_TEXT, "timestamp_ntz"),
    "timestamp": (_TEXT, "timestamp"),
    "time": (_TEXT, "string"),
    "year": (_TEXT, "smallint"),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), ("{}", "string")),
    **dict.fromkeys(("enum", "set", "json", "uuid", "inet4", "inet6"), (_TEXT, "string")),
    **dict.fromkeys(
        ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"),
        ("{}", "binary"),
    ),
}


class MySQL(Database):
    """MySQL 8.0.22 and later, MariaDB 10.5 and later, both with MariaDB's driver."""

    name = "MySQL"
    prefix = "jdbc:mariadb:"
    driver = "org.mariadb.jdbc.Driver"
    coordinates = "org.mariadb.jdbc:mariadb-java-client:3.5.6"
    kind_of_position = "binlog"
    key_sql = _KEY
    comments_sql = _COMMENTS
    quotes = ("`", "`")
    one_connection = "connections cannot share a snapshot of MySQL"
    # A server may ask for any file of the machine that the driver runs on, unless that is off.
    options = {"allowMultiQueries": "true", "allowLocalInfile": "false"}  # noqa: RUF012
    failures = (
        (
            r"(Access denied for user[^\n]*using password[^\n]*)",
            UsageError,
            "MySQL refused the login: check the user and the password in RECONCILE_JDBC_USER and "
            "RECONCILE_JDBC_PASSWORD, or in the file of --properties.",
        ),
        (
            r"([^\n]*(?:command denied|Access denied;|Access denied for user)[^\n]*)",
            UsageError,
            "MySQL refuses: {0}. Grant the job's user SELECT on the table and, on MySQL, RELOAD and BACKUP_ADMIN.",
        ),
        (
            r"(Query execution was interrupted[^\n]*|Query timed out[^\n]*|maximum statement execution time[^\n]*)",
            Fault,
            "MySQL stopped a query that took too long ({0}); nothing was written: allow more time, or run the same "
            "command again when the server has less to do.",
        ),
        (
            r"(Lock wait timeout exceeded[^\n]*|Server shutdown in progress|Socket error|unexpected end of stream)",
            Fault,
            "MySQL stopped the read: {0}. Nothing was written: run the same command again.",
        ),
    )

    def prepare(self, connection: Rows, *tables: Table) -> None:
        """Refuse a table whose engine has no snapshots."""
        connection.execute("SET SESSION time_zone = '+00:00'")
        for table in tables:
            for (engine,) in connection.rows(_ENGINE, table.schema, table.name):
                if engine not in (None, "InnoDB"):  # views have none
                    raise UsageError(
                        f"{table.schema}.{table.name} has the engine {engine}, which has no consistent snapshots: "
                        "change the engine to InnoDB."
                    )

    def _beginning(self, cut: Cut) -> Sequence[str]:
        """START TRANSACTION ends the transaction in which the catalog was read."""
        return (cut.session or "").split("; ")

    def columns(self, connection: Rows, table: Table) -> list[Column]:
        """Read the catalog."""
        return [
            self.column(name or "", kind or "", declared or "", precision, scale)
            for name, kind, declared, precision, scale in connection.rows(_COLUMNS, table.schema, table.name)
        ]

    def column(self, name: str, kind: str, declared: str, precision: str | None, scale: str | None) -> Column:
        """Return how a column is read, given what information_schema.columns has of it."""
        # What pads it with zeros does not belong to a number.
        text = _NUMBER if "zerofill" in declared else _TEXT
        if kind in _INTEGERS:
            bits = _INTEGERS[kind] + ("unsigned" in declared)
            fitting = (t for b, t in ((8, "tinyint"), (16, "smallint"), (32, "int"), (64, "bigint")) if bits <= b)
            return Column(name, declared, text, next(fitting, "decimal(20,0)"))
        if kind == "decimal":
            return Column(name, declared, text, decimal_type(int(precision or 10), int(scale or 0)))
        if kind == "bit":
            spark_type = {"1": "boolean", "64": "decimal(20,0)"}.get(precision or "", "bigint")
            return Column(name, declared, _NUMBER, spark_type)
        expression, spark_type = _TEXTS.get(kind, (None, "string"))
        return Column(name, declared, expression, spark_type, form=_FORMS.get(kind))

    def fix(self, connection: Rows, table: Table, at: str) -> Cut:
        """Say how the one connection begins its snapshot, and where its place in the binary log stands."""
        if at != "now":
            raise bad_position(self, at)
        version, logs, now = connection.rows(_SERVER)[0]
        if logs != "1":
            raise UsageError(
                "This server writes no binary log, so a snapshot has no position: enable the binary log (log_bin)."
            )
        if re.search("mariadb", version or "", re.IGNORECASE):
            return Cut(None, f"{_SETTINGS}; {_BEGIN}", position_sql=_OF_MARIADB, properties={"taken_at": now or ""})
        session = f"{_SETTINGS}; FLUSH TABLES WITH READ LOCK; {_BEGIN}; {_READ_OF_MYSQL}; UNLOCK TABLES"
        return Cut(None, session, position_sql=_OF_MYSQL, properties={"taken_at": now or ""})
