"""Oracle: every connection reads AS OF one SCN."""

from __future__ import annotations

import re

from reconcile_jobs.jdbc.database import Column, Cut, Database, Rows, Table, decimal_type
from reconcile_jobs.process.errors import Fault, Undecided, UsageError

__all__ = ["Oracle"]

_COLUMNS = """
SELECT column_name, data_type, TO_CHAR(data_precision), TO_CHAR(data_scale)
FROM all_tab_columns WHERE owner = ? AND table_name = ? ORDER BY column_id
"""
_KEY = """
SELECT k.column_name
FROM all_constraints c JOIN all_cons_columns k ON k.owner = c.owner AND k.constraint_name = c.constraint_name
WHERE c.constraint_type = 'P' AND c.owner = ? AND c.table_name = ? ORDER BY k.position
"""
_COMMENTS = """
SELECT column_name, comments FROM all_col_comments WHERE owner = ? AND table_name = ?
UNION ALL
SELECT NULL, comments FROM all_tab_comments WHERE owner = ? AND table_name = ?
"""
_NOW = "TO_CHAR(SYSTIMESTAMP AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.FF6') || '+00'"
_SCN = f"SELECT TO_CHAR(current_scn), {_NOW} FROM v$database"
_SCN_WITHOUT_THE_VIEW = f"SELECT TO_CHAR(DBMS_FLASHBACK.GET_SYSTEM_CHANGE_NUMBER), {_NOW} FROM dual"
# Oracle says the time of an SCN, to three seconds, by the clock of its host, and not in which zone that is.
_TIME_OF = (
    "SELECT TO_CHAR((SYSTIMESTAMP AT TIME ZONE 'UTC') - (CAST(SYSTIMESTAMP AS TIMESTAMP) - SCN_TO_TIMESTAMP({})), "
    "'YYYY-MM-DD HH24:MI:SS.FF6') || '+00' FROM dual"
)

# The formats below leave to the session what they do not say.
_SESSION = "ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,' NLS_CALENDAR = 'GREGORIAN' TIME_ZONE = 'UTC'"

# TM9 gives as many digits as there are. S is the year's sign: without it 44 BC would be 44.
_NUMBER = "TO_CHAR({}, 'TM9')"
_TEXTS: dict[str, tuple[str, str]] = {
    # Seventeen and nine digits, which distinguish all doubles and floats; TM9 would cut them at 64 characters.
    "BINARY_DOUBLE": ("TO_CHAR({})", "double"),
    "BINARY_FLOAT": ("TO_CHAR({})", "float"),
    # A FLOAT is a NUMBER of up to 126 binary digits: a double does not hold it.
    "FLOAT": (_NUMBER, "string"),
    "CHAR": ("{}", "string"),
    "NCHAR": ("{}", "string"),
    "VARCHAR2": ("{}", "string"),
    "NVARCHAR2": ("{}", "string"),
    "CLOB": ("{}", "string"),
    "NCLOB": ("{}", "string"),
    "RAW": ("{}", "binary"),
    "BLOB": ("{}", "binary"),
    "DATE": ("LTRIM(TO_CHAR({}, 'SYYYY-MM-DD HH24:MI:SS'))", "timestamp_ntz"),
    "TIMESTAMP": ("LTRIM(TO_CHAR({}, 'SYYYY-MM-DD HH24:MI:SS.FF9'))", "timestamp_ntz"),
    # Z is within the format: after the format, it would turn NULL into a text.
    "TIMESTAMP WITH TIME ZONE": (
        "LTRIM(TO_CHAR({} AT TIME ZONE 'UTC', 'SYYYY-MM-DD HH24:MI:SS.FF9\"Z\"'))",
        "timestamp",
    ),
    "TIMESTAMP WITH LOCAL TIME ZONE": (
        "LTRIM(TO_CHAR({} AT TIME ZONE 'UTC', 'SYYYY-MM-DD HH24:MI:SS.FF9\"Z\"'))",
        "timestamp",
    ),
    "INTERVAL YEAR TO MONTH": ("TO_CHAR({})", "string"),
    "INTERVAL DAY TO SECOND": ("TO_CHAR({})", "string"),
    "ROWID": ("ROWIDTOCHAR({})", "string"),
    "XMLTYPE": ("XMLSERIALIZE(CONTENT {} AS CLOB)", "string"),
    "JSON": ("JSON_SERIALIZE({} RETURNING CLOB)", "string"),
    "BOOLEAN": ("CASE WHEN {} THEN 'true' WHEN NOT {} THEN 'false' END", "boolean"),
}
_FORMS = {
    "DATE": "moment",
    "TIMESTAMP": "moment",
    "TIMESTAMP WITH TIME ZONE": "moment",
    "TIMESTAMP WITH LOCAL TIME ZONE": "moment",
    "INTERVAL YEAR TO MONTH": "interval",
    "INTERVAL DAY TO SECOND": "interval",
    "JSON": "json",
}


class Oracle(Database):
    """Oracle 12.2 and later."""

    name = "Oracle"
    prefix = "jdbc:oracle:"
    driver = "oracle.jdbc.OracleDriver"
    coordinates = "com.oracle.database.jdbc:ojdbc11:23.9.0.25.07"
    kind_of_position = "scn"
    key_sql = _KEY
    comments_sql = _COMMENTS
    password_in_url = r"^jdbc:oracle:\w+:[^@/]*/[^@]+@"
    failures = (
        (
            r"(ORA-(?:01555|30052|08180|08181|08186|08187|01466|08161)[^\n]*)",
            Undecided,
            "Oracle does not have the table at this SCN, which is too old or in the future: {0}. Choose another "
            "--at, raise UNDO_RETENTION above the duration of the read, or read with more partitions.",
        ),
        (
            r"(ORA-(?:01017|28000|28001|01005|01045)[^\n]*)",
            UsageError,
            "Oracle refused the login ({0}): check the user and the password in RECONCILE_JDBC_USER and "
            "RECONCILE_JDBC_PASSWORD, or in the file of --properties.",
        ),
        (
            r"(ORA-(?:00942|01031|41900)[^\n]*)",
            UsageError,
            "Oracle refuses: {0}. Grant the job's user SELECT and FLASHBACK on the table, and SELECT on V_$DATABASE or "
            "EXECUTE on DBMS_FLASHBACK.",
        ),
        (
            r"(ORA-(?:12\d{3}|170\d\d|17410|17800|03113|03114|03135|00028|01033|01034|01089)[^\n]*)",
            Fault,
            "The connection to Oracle failed: {0}. Check --url, or run the same command again later.",
        ),
    )

    def folded(self, part: str) -> str:
        """Names without quotes are in upper case."""
        return part.upper()

    def prepare(self, connection: Rows, *tables: Table) -> None:
        """Have texts of numbers be the same whatever the machine's language is."""
        connection.execute(_SESSION)

    def columns(self, connection: Rows, table: Table) -> list[Column]:
        """Read the catalog; hidden columns do not stand in this view."""
        return [
            self.column(name or "", kind or "", precision, scale)
            for name, kind, precision, scale in connection.rows(_COLUMNS, table.schema, table.name)
        ]

    def column(self, name: str, data_type: str, precision: str | None, scale: str | None) -> Column:
        """Return how a column is read, given what all_tab_columns has of it."""
        kind = re.sub(r"\(\d+\)", "", data_type)
        if kind == "NUMBER":
            if scale is None:
                return Column(name, kind, _NUMBER, is_number=True)
            # INTEGER has a scale of 0 and no precision, which is 38 digits.
            digits, places = int(precision or 38), int(scale)
            return Column(name, f"NUMBER({digits},{places})", _NUMBER, decimal_type(digits, places), True)
        expression, spark_type = _TEXTS.get(kind, (None, "string"))
        return Column(name, data_type, expression, spark_type, kind == "FLOAT", _FORMS.get(kind))

    def fix(self, connection: Rows, table: Table, at: str) -> Cut:
        """Take the SCN that is asked for, or the newest."""
        if at == "now":
            scn, taken_at = self._newest(connection)
        elif re.fullmatch(r"[0-9]{1,20}", at):
            scn, taken_at = at, connection.rows(_TIME_OF.format(at))[0][0]
        else:
            raise UsageError(f"--at {at} is not a position of Oracle: write now, or an SCN in digits.")
        return Cut(scn, _SESSION, clause=f" AS OF SCN {scn}", properties={"taken_at": taken_at or ""})

    def _newest(self, connection: Rows) -> tuple[str, str | None]:
        try:
            scn, taken_at = connection.rows(_SCN)[0]
        except UsageError:  # the view is the administrators'
            scn, taken_at = connection.rows(_SCN_WITHOUT_THE_VIEW)[0]
        return scn or "", taken_at
