"""Load a source's own rows into a snapshot table: `spark-submit snapshot.py csv --help`.

The other kinds: jdbc, spanner, table, files.
"""

from __future__ import annotations

import argparse
import sys
import time

from reconcile_jobs.csv_records import Dialect
from reconcile_jobs.jdbc.connection import Source, secret_properties
from reconcile_jobs.jdbc.harmless_properties import check_properties
from reconcile_jobs.jdbc.kinds import database_of
from reconcile_jobs.process import session
from reconcile_jobs.process.command_line import Parser
from reconcile_jobs.process.console import Console
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.snapshots.snapshot_csv import columns_of, load_csv
from reconcile_jobs.snapshots.snapshot_files import FORMATS, load_files, load_table
from reconcile_jobs.snapshots.snapshot_jdbc import Partitions, Snapshot, load_jdbc
from reconcile_jobs.staging import TableName
from reconcile_jobs.timestamps import as_text, asked_moment

CSV_HELP = r"""
The files are CSV as RFC 4180 and PostgreSQL's COPY have it, in UTF-8: values that hold a separator, a quote or a
line break are in quotes, and quotes inside are doubled. The NULL marker counts where it stands without quotes: with
--null '\N', \N is NULL and "\N" a text; without --null, nothing between two separators is NULL and "" the empty
text. Files that end in .gz or .bz2 are decompressed.

Types are Spark's scalar types. A value must be exactly one of its type: 12.5 in a bigint, an eleventh decimal place in
a decimal(38,10) or a day that does not exist end the job with exit code 1, naming file, line, column, value and type,
and the table stays as it was. (float and double are the nearest ones.) Booleans are t, true, 1, f, false, 0; binary
is \x9f7a; timestamps are 2026-11-21 11:33:13.049844+00, and UTC without a zone. char(n) and varchar(n) become string,
and refuse longer texts. 'not null' in the schema is checked.
"""

JDBC_HELP = r"""
All rows are of one position, which is kept as a property of the table, reconcile.snapshot.position, and printed:

  PostgreSQL  the snapshot of a transaction, as pg_current_snapshot() writes it; all partitions read by it
  Oracle      an SCN; all partitions read AS OF it. --at 15869128507100 goes back to one
  MySQL       file and place in the binary log; one connection. MySQL holds FLUSH TABLES WITH READ LOCK while it takes
              the snapshot (rights: RELOAD, BACKUP_ADMIN), MariaDB needs none. URLs begin with jdbc:mariadb:
  SQL Server  the newest LSN that change data capture knew; one connection. It needs ALLOW_SNAPSHOT_ISOLATION

User and password come from RECONCILE_JDBC_USER and RECONCILE_JDBC_PASSWORD, or with whatever else the driver takes,
such as oracle.net.wallet_location, from the file of --properties: lines name=value, mode 600, the job's user its owner.
Never from the command line. Properties of keys, timeouts and names are taken; others, of which some load classes, read
or write files, or run statements, want --allow-property. What the job writes has the rights that its umask leaves.

The drivers are not part of this package: spark-submit --packages org.postgresql:postgresql:42.7.8, or
com.oracle.database.jdbc:ojdbc11:23.9.0.25.07, org.mariadb.jdbc:mariadb-java-client:3.5.6,
com.microsoft.sqlserver:mssql-jdbc:13.2.1.jre11; on one machine RECONCILE_PACKAGES=... fetches them once.

The source itself writes each value as text, with all its digits, and it becomes one of the column's type: numeric(18,4)
is decimal(18,4); a numeric, a NUMBER or a FLOAT of Oracle's without digits is a string, times without a zone are
timestamp_ntz. --columns 'id, total decimal(38,10), placed_at timestamp' takes these columns only and gives some another
type; a time without a zone is then in UTC. A value that its type does not hold exactly, an eleventh decimal place or
the date infinity, ends the job with exit code 1, and the table stays as it was. char(n) is what the source
gives: PostgreSQL and Oracle pad it, MySQL does not.
"""

SPANNER_HELP = r"""
All rows are those of one timestamp, which is kept as a property of the table, reconcile.snapshot.position, and printed:
now, a strong read, or a time within the database's version_retention_period. At the time of a batch's cut, cut_time in
the ledger, a base table that stopped at that batch has the very same rows.

Types: a NUMERIC is decimal(38,9), one of the PostgreSQL dialect a string, arrays are arrays, JSON is a string.
--columns 'OrderId, Total decimal(20,4)' takes these columns only, and gives some another type. A value that its type
does not hold exactly, nanoseconds in a timestamp, ends the job with exit code 1; declare it as a string.
The credentials are Google's application default ones, or none for an emulator at SPANNER_EMULATOR_HOST.
"""

TABLE_HELP = r"""
Columns and types are those of the table, or of the view: a view can leave columns out, or give them other types. The
rows have no position in a log. The snapshot table says when they were taken: --at, or the time of this command.
"""

FILES_HELP = r"""
Columns and types are those of the files; a directory like day=1 is a column. CSV, which has no types, is read by
snapshot.py csv. The rows have no position in a log. The snapshot table says when they were taken: --at, or the time of
this command.
"""


def main(arguments: list[str], console: Console) -> None:
    """Load what the arguments name, and print one line of JSON: rows, into, seconds, and of a database the position."""
    started = time.monotonic()
    parser = Parser(prog="snapshot.py", description=__doc__, formatter_class=argparse.HelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    csv = kinds.add_parser("csv", help="CSV files", epilog=CSV_HELP)
    csv.add_argument("--path", required=True, help="a file, a directory (searched recursively) or a pattern")
    csv.add_argument("--into", required=True, metavar="SCHEMA.TABLE", help="the table to create or replace")
    csv.add_argument("--schema", required=True, metavar="DDL", help="columns and types: 'id bigint, name string'")
    csv.add_argument(
        "--null", default="", metavar="MARKER", help=r"what means NULL, unquoted, as \N (default: nothing)"
    )
    csv.add_argument("--delimiter", default=",", metavar="CHARACTER", help=r"between values; \t is a tab (default: ,)")
    _add_moment(csv)
    csv.add_argument("--no-header", action="store_true", help="files begin with a row, in the order of the schema")
    jdbc = kinds.add_parser("jdbc", help="a table of a database", epilog=JDBC_HELP)
    jdbc.add_argument("--url", required=True, help="jdbc:postgresql://host:5432/shop, without a password")
    jdbc.add_argument("--table", required=True, metavar="SCHEMA.TABLE", help="the table, quoted as the database does")
    jdbc.add_argument("--into", required=True, metavar="SCHEMA.TABLE", help="the table to create or replace")
    jdbc.add_argument("--at", default="now", metavar="POSITION", help="now (default), or of Oracle an SCN")
    jdbc.add_argument("--columns", metavar="LIST", help="those to take (default: all), some with a type")
    jdbc.add_argument("--partition-column", metavar="NAME", help="a column of numbers; its ranges are read at once")
    jdbc.add_argument("--partitions", type=int, metavar="N", help="how many ranges, each by a connection")
    jdbc.add_argument("--properties", metavar="FILE", help="properties of the connection, in a file of mode 600")
    jdbc.add_argument(
        "--allow-property",
        action="append",
        default=[],
        metavar="NAME",
        help="a property of the driver's, in --url or --properties, that is not known to be harmless",
    )
    # Named on the command line a password has been seen; it is not shown again in the complaint.
    jdbc.add_argument("--password", "--user", dest="secret", help=argparse.SUPPRESS)
    spanner = kinds.add_parser("spanner", help="a table of Spanner", epilog=SPANNER_HELP)
    spanner.add_argument("--project", required=True, help="the Google Cloud project of the instance")
    spanner.add_argument("--instance", required=True, help="the Spanner instance")
    spanner.add_argument("--database", required=True, help="the database, of either dialect")
    spanner.add_argument("--table", required=True, help="the table, as it is spelled there")
    spanner.add_argument("--into", required=True, metavar="SCHEMA.TABLE", help="the table to create or replace")
    spanner.add_argument(
        "--at", default="now", metavar="TIME", help="now (default), or as 2026-05-01T09:00:00.123456789Z"
    )
    spanner.add_argument("--columns", metavar="LIST", help="those to take (default: all), some with a type")
    table = kinds.add_parser("table", help="a table or view of the session", epilog=TABLE_HELP)
    table.add_argument("--table", required=True, metavar="SCHEMA.TABLE", help="the table or view to copy")
    table.add_argument("--into", required=True, metavar="SCHEMA.TABLE", help="the table to create or replace")
    _add_moment(table)
    files = kinds.add_parser("files", help="files of a format with types, such as Parquet", epilog=FILES_HELP)
    files.add_argument("--path", required=True, help="a file or a directory")
    files.add_argument("--format", required=True, choices=FORMATS, help="the format of the files")
    files.add_argument("--into", required=True, metavar="SCHEMA.TABLE", help="the table to create or replace")
    _add_moment(files)
    options = parser.parse_args(arguments)
    if options.kind == "jdbc":
        _jdbc(options, console, started)
    elif options.kind == "spanner":
        _spanner(options, console, started)
    elif options.kind in ("table", "files"):
        _copy(options, console, started)
    else:
        _csv(options, console, started)


def _csv(options: argparse.Namespace, console: Console, started: float) -> None:
    delimiter = options.delimiter.replace("\\t", "\t")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise UsageError(f"--delimiter {options.delimiter!r} is not one character, and neither quote nor line break.")
    if set(options.null) & {delimiter, '"', "\r", "\n"}:
        raise UsageError(f"--null {options.null!r} could never stand without quotes.")

    into = TableName.parse(options.into, "--into")

    spark = session.start(f"snapshot {into}")
    rows = load_csv(
        spark,
        options.path,
        into,
        columns_of(options.schema),
        Dialect(delimiter, options.null),
        header=not options.no_header,
        taken_at=_moment(options.at),
    )
    console.result({"rows": rows, "into": str(into), "seconds": round(time.monotonic() - started, 1)})


def _copy(options: argparse.Namespace, console: Console, started: float) -> None:
    into, taken_at = TableName.parse(options.into, "--into"), _moment(options.at)
    table = TableName.parse(options.table, "--table") if options.kind == "table" else None
    spark = session.start(f"snapshot {into}")
    if table is not None:
        rows = load_table(spark, table, into, taken_at)
    else:
        rows = load_files(spark, options.path, options.format, into, taken_at)
    console.result({"rows": rows, "into": str(into), "seconds": round(time.monotonic() - started, 1)})


def _add_moment(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--at", metavar="TIME", help="when the rows were taken, as 2026-05-01T09:00:00Z (default: now)")


def _moment(at: str | None) -> str:
    return as_text(time.time_ns() if at is None else asked_moment("--at", at))


def _jdbc(options: argparse.Namespace, console: Console, started: float) -> None:
    if options.secret is not None:
        raise UsageError(
            "User and password are not given on the command line, where everybody sees them: let RECONCILE_JDBC_USER "
            "and RECONCILE_JDBC_PASSWORD hold them, or the file of --properties."
        )
    database = database_of(options.url)
    database.table(options.table)
    partitions = None
    if (options.partition_column is None) != (options.partitions is None):
        raise UsageError("--partition-column and --partitions go together; give both, or neither.")
    if options.partitions is not None:
        if not 1 <= options.partitions <= 1000:
            raise UsageError(f"--partitions {options.partitions} is not a number from 1 to 1000.")
        partitions = Partitions(options.partition_column, options.partitions)
    properties = secret_properties(options.properties)
    check_properties(database, options.url, properties, options.allow_property)
    source = Source(database, options.url, properties)
    into = TableName.parse(options.into, "--into")

    spark = session.start(f"snapshot {into}")
    console.say(f"{options.table} of {database.name} is being read into {into}")
    snapshot = load_jdbc(spark, source, options.table, into, options.at, options.columns, partitions)
    _tell(snapshot, into, console, started)


def _spanner(options: argparse.Namespace, console: Console, started: float) -> None:
    from reconcile_jobs.snapshots.snapshot_spanner import load_spanner
    from reconcile_jobs.spanner.queries import DatabaseName

    database = DatabaseName.here(options.project, options.instance, options.database)
    into = TableName.parse(options.into, "--into")

    spark = session.start(f"snapshot {into}")
    console.say(f"{options.table} of Spanner is being read into {into}")
    snapshot = load_spanner(spark, database, options.table, into, options.at, options.columns)
    _tell(snapshot, into, console, started)


def _tell(snapshot: Snapshot, into: TableName, console: Console, started: float) -> None:
    seconds = round(time.monotonic() - started, 1)
    console.result({"rows": snapshot.rows, "into": str(into), "position": snapshot.position, "seconds": seconds})


if __name__ == "__main__":
    console = Console("snapshot")
    sys.exit(console.exit_code(lambda: main(sys.argv[1:], console)))
