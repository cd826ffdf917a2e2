"""SQL Server: one query under SNAPSHOT isolation, and the newest LSN that change data capture knows in it."""

from __future__ import annotations

from collections.abc import Sequence

from reconcile_jobs.jdbc.database import Column, Cut, Database, Rows, Table, bad_position, decimal_type
from reconcile_jobs.process.errors import Fault, UsageError

__all__ = ["SQLServer"]

_DATABASE = """
SELECT CAST(snapshot_isolation_state AS varchar(3)), CAST(is_cdc_enabled AS varchar(3)), name,
    CONVERT(varchar(26), SYSUTCDATETIME(), 121) + '+00'
FROM sys.databases WHERE database_id = DB_ID()
"""
# For a user-defined type, the type from which it was made.
_COLUMNS = """
SELECT
    c.name, COALESCE(TYPE_NAME(c.system_type_id), TYPE_NAME(c.user_type_id)),
    CAST(c.precision AS varchar(3)), CAST(c.scale AS varchar(3))
FROM sys.columns c JOIN sys.objects o ON o.object_id = c.object_id JOIN sys.schemas s ON s.schema_id = o.schema_id
WHERE s.name = ? AND o.name = ? AND o.type IN ('U', 'V') AND c.is_hidden = 0
ORDER BY c.column_id
"""
_KEY = """
SELECT c.name
FROM sys.indexes i JOIN sys.index_columns k ON k.object_id = i.object_id AND k.index_id = i.index_id
JOIN sys.columns c ON c.object_id = k.object_id AND c.column_id = k.column_id
JOIN sys.objects o ON o.object_id = i.object_id JOIN sys.schemas s ON s.schema_id = o.schema_id
WHERE s.name = ? AND o.name = ? AND i.is_primary_key = 1
ORDER BY k.key_ordinal
"""
_COMMENTS = """
SELECT c.name, CONVERT(nvarchar(4000), p.value)
FROM sys.extended_properties p JOIN sys.objects o ON o.object_id = p.major_id
JOIN sys.schemas s ON s.schema_id = o.schema_id
LEFT JOIN sys.columns c ON c.object_id = p.major_id AND c.column_id = p.minor_id AND p.minor_id > 0
WHERE p.class = 1 AND p.name = 'MS_Description' AND s.name = ? AND o.name = ?
"""

# The driver wraps each statement, and a wrapped SET ends with its statement: so SET comes before the query itself.
_ISOLATION = "SET TRANSACTION ISOLATION LEVEL SNAPSHOT; "
# Read in the same snapshot: all that was captured up to it had been committed then.
_POSITION = "CONVERT(varchar(22), sys.fn_cdc_get_max_lsn(), 1)"

_NUMBER = "CONVERT(varchar(45), {})"
_TEXTS: dict[str, tuple[str, str]] = {
    "tinyint": (_NUMBER, "smallint"),
    "smallint": (_NUMBER, "smallint"),
    "int": (_NUMBER, "int"),
    "bigint": (_NUMBER, "bigint"),
    "bit": (_NUMBER, "boolean"),
    # Styles: 2 has all four digits of money, 3 all that distinguish two floats, 121 all of a second's fraction.
    "money": ("CONVERT(varchar(45), {}, 2)", "decimal(19,4)"),
    "smallmoney": ("CONVERT(varchar(45), {}, 2)", "decimal(10,4)"),
    "float": ("CONVERT(varchar(45), {}, 3)", "double"),
    "real": ("CONVERT(varchar(45), {}, 3)", "float"),
    "date": ("CONVERT(varchar(10), {}, 23)", "date"),
    "datetime": ("CONVERT(varchar(23), {}, 121)", "timestamp_ntz"),
    "smalldatetime": ("CONVERT(varchar(23), {}, 121)", "timestamp_ntz"),
    "datetime2": ("CONVERT(varchar(27), {}, 121)", "timestamp_ntz"),
    "datetimeoffset": ("CONVERT(varchar(34), SWITCHOFFSET({}, '+00:00'), 121)", "timestamp"),
    "time": ("CONVERT(varchar(16), {}, 121)", "string"),
    "uniqueidentifier": ("CONVERT(char(36), {})", "string"),
    "xml": ("CONVERT(nvarchar(max), {})", "string"),
    "hierarchyid": ("{}.ToString()", "string"),
    **dict.fromkeys(("char", "varchar", "nchar", "nvarchar", "text", "ntext"), ("{}", "string")),
    **dict.fromkeys(("binary", "varbinary", "image", "timestamp"), ("{}", "binary")),
}
_FORMS = {
    **dict.fromkeys(("datetime", "smalldatetime", "datetime2", "datetimeoffset"), "moment"),
    "time": "time",
}


class SQLServer(Database):
    """SQL Server 2016 and later."""

    name = "SQL Server"
    prefix = "jdbc:sqlserver:"
    driver = "com.microsoft.sqlserver.jdbc.SQLServerDriver"
    coordinates = "com.microsoft.sqlserver:mssql-jdbc:13.2.1.jre11"
    kind_of_position = "lsn"
    key_sql = _KEY
    comments_sql = _COMMENTS
    quotes = ("[", "]")
    one_connection = "connections cannot share a snapshot of SQL Server"
    failures = (
        (
            r"Login failed for user",
            UsageError,
            "SQL Server refused the login: check the user and the password in RECONCILE_JDBC_USER and "
            "RECONCILE_JDBC_PASSWORD, or in the file of --properties.",
        ),
        (
            r"([^\n]*permission was denied[^\n]*)",
            UsageError,
            "SQL Server refuses: {0}. Grant the job's user SELECT on the table and on the schema cdc.",
        ),
        (
            r"(Snapshot isolation transaction failed[^\n]*)",
            Fault,
            "{0}. Nothing was written: run the same command again.",
        ),
        (
            r"(The TCP/IP connection to the host [^\n]*? failed)",
            Fault,
            "{0}. Check --url, or run the same command again later.",
        ),
    )

    def quoted(self, name: str) -> str:
        """In brackets only the closing one is doubled."""
        return f"[{name.replace(']', ']]')}]"

    def columns(self, connection: Rows, table: Table) -> list[Column]:
        """Read the catalog."""
        return [
            self.column(name or "", kind or "", precision, scale)
            for name, kind, precision, scale in connection.rows(_COLUMNS, table.schema, table.name)
        ]

    def column(self, name: str, kind: str, precision: str | None, scale: str | None) -> Column:
        """Return how a column is read, given what sys.columns has of it."""
        if kind in ("decimal", "numeric"):
            digits, places = int(precision or 18), int(scale or 0)
            return Column(name, f"{kind}({digits},{places})", _NUMBER, decimal_type(digits, places))
        expression, spark_type = _TEXTS.get(kind, (None, "string"))
        return Column(name, kind, expression, spark_type, form=_FORMS.get(kind))

    def _beginning(self, cut: Cut) -> Sequence[str]:
        """The catalog was read in another transaction, and a transaction keeps the level that it began with."""
        return ("COMMIT", cut.prefix.strip("; "))

    def fix(self, connection: Rows, table: Table, at: str) -> Cut:
        """Check that the database has snapshots and captures changes. The query then returns the position."""
        if at != "now":
            raise bad_position(self, at)
        state, captures, database, now = connection.rows(_DATABASE)[0]
        if state != "1":
            raise UsageError(
                f"The database {database} does not allow snapshots: run ALTER DATABASE {self.quoted(database or '')} "
                "SET ALLOW_SNAPSHOT_ISOLATION ON."
            )
        if captures != "1":
            raise UsageError(
                f"The database {database} does not capture changes, so a snapshot has no position: run "
                "EXEC sys.sp_cdc_enable_db."
            )
        return Cut(None, prefix=_ISOLATION, position_sql=_POSITION, properties={"taken_at": now or ""})
