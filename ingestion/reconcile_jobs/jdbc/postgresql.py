"""PostgreSQL: one exported snapshot for all connections; its position is pg_current_snapshot()."""

from __future__ import annotations

import re

from reconcile_jobs.jdbc.database import Column, Cut, Database, Rows, Table, bad_position, decimal_type
from reconcile_jobs.process.errors import Fault, UsageError

__all__ = ["PostgreSQL"]

_TABLE = """
SELECT c.oid::text, c.relkind::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ? AND c.relname = ? AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""

# What a domain is made of is what counts.
_COLUMNS = """
WITH RECURSIVE found AS (
    SELECT
        a.attnum, a.attname, format_type(a.atttypid, a.atttypmod) AS declared,
        a.atttypid AS type, a.atttypmod AS modifier
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ? AND c.relname = ? AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT f.attnum, f.attname, f.declared, t.typbasetype, t.typtypmod
    FROM found f JOIN pg_type t ON t.oid = f.type WHERE t.typtype = 'd'
)
SELECT f.attname::text, f.declared, format_type(f.type, f.modifier)
FROM found f JOIN pg_type t ON t.oid = f.type WHERE t.typtype <> 'd'
ORDER BY f.attnum
"""

_KEY = """
SELECT a.attname::text
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
WHERE n.nspname = ? AND c.relname = ? AND i.indisprimary
ORDER BY array_position(i.indkey::smallint[], a.attnum)
"""
_COMMENTS = """
SELECT a.attname::text, d.description
FROM pg_description d JOIN pg_class c ON c.oid = d.objoid AND d.classoid = 'pg_class'::regclass
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.objsubid AND d.objsubid > 0
WHERE n.nspname = ? AND c.relname = ?
"""

_POSITION = """
SELECT
    pg_export_snapshot(),
    pg_current_snapshot()::text,
    (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END)::text,
    (transaction_timestamp() AT TIME ZONE 'UTC')::text || '+00'
"""

# In the reading transaction alone. With row_security off a query that a policy would take rows from fails.
_TEXTS = (
    "SET LOCAL TIME ZONE 'UTC'; SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL intervalstyle = 'iso_8601'; "
    "SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 3; SET LOCAL row_security = off; "
    "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
)

_TEXT = "{}::text"
_SCALARS = {
    "smallint": "smallint",
    "integer": "int",
    "bigint": "bigint",
    "oid": "bigint",
    "boolean": "boolean",
    "real": "float",
    "double precision": "double",
    "date": "date",
    "timestamp without time zone": "timestamp_ntz",
    "timestamp with time zone": "timestamp",
}
_FORMS = {
    "date": "date",
    "timestamp without time zone": "moment",
    "timestamp with time zone": "moment",
    "time without time zone": "time",
    "time with time zone": "time",
    "interval": "interval",
    "json": "json",
    "jsonb": "json",
}
# A cast to text alters these types: it removes the blanks that pad a character, and adds /32 to an address. The text
# of money depends on a locale.
_OWN_TEXTS = {"character": "textin(bpcharout({}))", "inet": "textin(inet_out({}))", "money": "{}::numeric::text"}
# The same of arrays.
_OWN_ELEMENTS = {"character": "{}", "inet": "{}", "money": "{}::numeric[]::text[]"}


class PostgreSQL(Database):
    """PostgreSQL 13 and later."""

    name = "PostgreSQL"
    prefix = "jdbc:postgresql:"
    driver = "org.postgresql.Driver"
    coordinates = "org.postgresql:postgresql:42.7.8"
    kind_of_position = "pg_snapshot"
    key_sql = _KEY
    comments_sql = _COMMENTS
    failures = (
        (
            r"ERROR: (invalid snapshot identifier[^\n]*|could not import the requested snapshot[^\n]*)",
            Fault,
            "The transaction that held the snapshot ended before all partitions had begun ({0}); nothing was "
            "written: run the same command again.",
        ),
        (
            r"ERROR: (canceling statement due to (?:user request|statement timeout))",
            Fault,
            "PostgreSQL stopped a query that took too long ({0}); nothing was written: allow more time, or run the "
            "same command again when the server has less to do.",
        ),
        (
            r"ERROR: (canceling statement due to conflict with recovery[^\n]*|terminating connection[^\n]*)",
            Fault,
            "PostgreSQL stopped the read: {0}. Nothing was written: run the same command again.",
        ),
        (
            r"ERROR: (query would be affected by row-level security[^\n]*)",
            UsageError,
            "Row-level security would hide rows without an error: {0}. Grant the job's user BYPASSRLS.",
        ),
        (
            r"ERROR: function (pg_current_snapshot\(\)) does not exist",
            UsageError,
            "This PostgreSQL has no {0}: PostgreSQL 13 or later is needed.",
        ),
        (
            r"ERROR: (permission denied[^\n]*)",
            UsageError,
            "PostgreSQL refuses: {0}. Grant the job's user SELECT on the table and USAGE on its schema.",
        ),
        (
            r"FATAL: (database .* does not exist|no pg_hba.conf entry[^\n]*)",
            UsageError,
            "PostgreSQL refuses: {0}. Check --url.",
        ),
    )

    def folded(self, part: str) -> str:
        """Names without quotes are in lower case."""
        return part.lower()

    def prepare(self, connection: Rows, *tables: Table) -> None:
        """Begin the transaction and keep others from altering the tables.

        Before the snapshot: a table that is rewritten or truncated between the two would look empty in it.
        """
        known = [connection.rows(_TABLE, table.schema, table.name) for table in tables]
        connection.execute("COMMIT")
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute(_TEXTS)
        for table, found in zip(tables, known, strict=True):
            if found and found[0][1] in ("r", "p", "v"):  # the others cannot be locked
                connection.execute(f"LOCK TABLE {self.relation(table)} IN ACCESS SHARE MODE")

    def columns(self, connection: Rows, table: Table) -> list[Column]:
        """Read the catalog, domains as what they are made of."""
        return [
            self.column(name or "", declared or "", made_of or "")
            for name, declared, made_of in connection.rows(_COLUMNS, table.schema, table.name)
        ]

    def column(self, name: str, declared: str, made_of: str) -> Column:
        """Return how a column is read, given its types as format_type() writes them."""
        if made_of.endswith("[]"):
            return self._array(name, declared, made_of.removesuffix("[]"))
        kind = re.sub(r"\([^)]*\)", "", made_of)
        # An interval may name the fields that it has.
        form = _FORMS.get("interval" if kind.startswith("interval ") else kind)
        if kind in _SCALARS:
            is_number = kind in ("smallint", "integer", "bigint", "oid")
            return Column(name, declared, _TEXT, _SCALARS[kind], is_number, form)
        if found := re.fullmatch(r"numeric\((\d+),(-?\d+)\)", made_of):
            return Column(name, declared, _TEXT, decimal_type(int(found[1]), int(found[2])), True)
        if kind == "numeric":
            return Column(name, declared, _TEXT, is_number=True)
        if kind == "bytea":
            return Column(name, declared, "{}", "binary")
        if kind in ("bit", "bit varying"):
            # To Datastream these are bytes, a 0 or 1 in ASCII for each bit.
            return Column(name, declared, _TEXT, otherwise={"binary": "convert_to({}::text, 'UTF8')"})
        return Column(name, declared, _OWN_TEXTS.get(kind, _TEXT), form=form)

    def _array(self, name: str, declared: str, made_of: str) -> Column:
        """Return how an array is read: of one dimension unless another type is declared, as the catalog names none."""
        element = self.column(name, made_of, made_of)
        kind = re.sub(r"\([^)]*\)", "", made_of)
        elements = _OWN_ELEMENTS.get(kind, "{}::text[]")
        return Column(
            name,
            declared,
            f"array_to_json({elements})::text",
            f"array<{element.spark_type}>",
            # JSON within an array stays the text that it is.
            form=element.form if element.form != "json" else None,
            otherwise={"string": _TEXT},
            elements=(element,),
        )

    def fix(self, connection: Rows, table: Table, at: str) -> Cut:
        """Export the snapshot of a transaction that stays open."""
        if at != "now":
            raise bad_position(self, at)
        exported, snapshot, lsn, moment = connection.rows(_POSITION)[0]
        return Cut(
            snapshot,
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; "
            f"SET TRANSACTION SNAPSHOT '{exported}'; {_TEXTS}",
            properties={"wal_lsn": lsn or "", "taken_at": moment or ""},
        )
