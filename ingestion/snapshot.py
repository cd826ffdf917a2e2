"""Load a source's own rows into a snapshot table: `spark-submit snapshot.py csv --help`.

The other kinds: jdbc, spanner, bigtable, table, files.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from typing import TYPE_CHECKING

from reconcile_jobs.csv_records import Dialect
from reconcile_jobs.jdbc.connection import Source, secret_properties
from reconcile_jobs.jdbc.harmless_properties import check_properties
from reconcile_jobs.jdbc.kinds import database_of
from reconcile_jobs.masks import RowMasks, read_row_masks
from reconcile_jobs.process import session
from reconcile_jobs.process.command_line import Parser
from reconcile_jobs.process.console import Console
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.snapshots.snapshot_csv import columns_of, load_csv
from reconcile_jobs.snapshots.snapshot_files import FORMATS, load_files, load_table
from reconcile_jobs.snapshots.snapshot_jdbc import Partitions, Snapshot, load_jdbc
from reconcile_jobs.staging import TableName
from reconcile_jobs.timestamps import as_text, asked_moment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CSV_HELP = r"""
The files are CSV in UTF-8, as in RFC 4180 and PostgreSQL's COPY. Values with a separator, a quote or a line break are
in quotes, and quotes inside them are doubled. Only a NULL marker without quotes is NULL: with --null '\N', \N is NULL
and "\N" is a text. Without --null, an empty value is NULL and "" is the empty text. All records of a file end in LF, or
all in CR LF; other files are refused. A byte order mark is dropped. Files that end in .gz or .bz2 are decompressed.

Types are Spark's scalar types. A value must be exactly one of its type. Examples of wrong values are 12.5 in a bigint,
an eleventh decimal place in a decimal(38,10), or a day that does not exist. The job then ends with exit code 1, names
file, line, column, value and type, and leaves the table unchanged. (float and double are the nearest values.)

Booleans are t, true, 1, f, false, 0. Binary is \x9f7a. Timestamps are 2026-11-21 11:33:13.049844+00; without a zone
they are UTC. char(n) and varchar(n) become string, and longer texts are an error. The job checks 'not null' in the
schema.

--pg-snapshot is for an export of PostgreSQL that append.py snapshot is to stage beside a log: what
pg_current_snapshot() says in the transaction of the export, which is REPEATABLE READ or stricter. --at is then the time
of that query, or an earlier one; a later time would set rows back.
"""

JDBC_HELP = r"""
All rows are from one position. The job prints the position, and stores it in the table property
reconcile.snapshot.position:

  PostgreSQL  the snapshot of a transaction, as pg_current_snapshot() writes it; all partitions read in this snapshot
  Oracle      an SCN; all partitions read AS OF this SCN. --at 15869128507100 reads as of an earlier SCN
  MySQL       file and position in the binary log; one connection. MySQL holds FLUSH TABLES WITH READ LOCK while it
              takes the snapshot; MariaDB does not need this lock. URLs begin with jdbc:mariadb:
  SQL Server  the newest LSN that change data capture has recorded; one connection. The database needs change data
              capture and ALLOW_SNAPSHOT_ISOLATION

The user of the job needs these rights:

  PostgreSQL  SELECT on the table, USAGE on its schema, and BYPASSRLS if row-level security hides rows from the user
  Oracle      SELECT and FLASHBACK on the table; SELECT on V_$DATABASE or EXECUTE on DBMS_FLASHBACK
  MySQL       SELECT on the table, RELOAD and BACKUP_ADMIN
  MariaDB     SELECT on the table
  SQL Server  SELECT on the table and on the schema cdc

The job reads user and password from RECONCILE_JDBC_USER and RECONCILE_JDBC_PASSWORD, or from the file of --properties,
but never from the command line. The file may also have other properties of the driver, for example
oracle.net.wallet_location. It has lines name=value, its mode is 600, and its owner is the job's user or root. The job
accepts properties for keys, timeouts and names. Some other properties load classes, read or write files, or run
statements: every other property needs --allow-property. The job's umask determines the rights of the files it writes.

The drivers are not part of this package. Use spark-submit --packages org.postgresql:postgresql:42.7.8, or
com.oracle.database.jdbc:ojdbc11:23.9.0.25.07, org.mariadb.jdbc:mariadb-java-client:3.5.6,
com.microsoft.sqlserver:mssql-jdbc:13.2.1.jre11. On one machine, RECONCILE_PACKAGES=... downloads a driver once.

The source writes each value as text, with all its digits, and the job converts the text to the column's type.
numeric(18,4) becomes decimal(18,4). A numeric or a NUMBER without digits becomes string, and so does Oracle's FLOAT.
Times without a zone become timestamp_ntz. --columns 'id, total decimal(38,10), placed_at timestamp' reads only these
columns, and declares another type for some of them. A time without a zone that is declared as timestamp is in UTC. If a
type does not hold a value exactly, for example an eleventh decimal place or the date infinity, the job ends with exit
code 1 and leaves the table unchanged. char(n) is as the source gives it: PostgreSQL and Oracle pad it, MySQL does not.
"""

SPANNER_HELP = r"""
All rows are from one timestamp: now, which is a strong read, or --at, a time within the database's
version_retention_period. The job prints the timestamp, and stores it in the table property
reconcile.snapshot.position. With --at and a batch's cut_time in the ledger, the snapshot has exactly the rows of a base
table that stopped at this batch.

Types: a NUMERIC is decimal(38,9), a NUMERIC of the PostgreSQL dialect is a string, arrays are arrays, JSON is a string.
--columns 'OrderId, Total decimal(20,4)' reads only these columns, and declares another type for some of them. If a type
does not hold a value exactly, for example nanoseconds in a timestamp, the job ends with exit code 1. Declare such a
column as a string. The job uses Google's application default credentials, and none for an emulator at
SPANNER_EMULATOR_HOST.
"""

BIGTABLE_HELP = r"""
The snapshot has a row for each cell, all versions of each column: row_key, family, qualifier, cell_time, value, as a
model of cells declares them. The job asks for ranges of row keys at the same time, and reads each row once, whatever
fails meanwhile.

The rows have no position: Bigtable reads as of no moment. A cell that is written while the job reads is in the snapshot
or not. The snapshot table records when the job began to read (reconcile.snapshot.taken_at), and the job prints it as
taken_at. Give the app profile of append.py bigtable, so that both read the same cluster.

The job needs the right to read the table, as the role Bigtable Reader has it. It uses Google's application default
credentials, and none for a server at BIGTABLE_EMULATOR_HOST.
"""

TABLE_HELP = r"""
The snapshot has the columns and types of the table or view. Use a view to leave columns out, or to change their types.
The rows have no position in a log. The snapshot table records when they were taken: --at, or the time of this command.
"""

FILES_HELP = r"""
The format delta needs a session of conf/, and iceberg one of conf/iceberg/.

The snapshot has the columns and types of the files; a directory name like day=1 becomes a column. For CSV, which has no
types, use snapshot.py csv. The rows have no position in a log. The snapshot table records when they were taken: --at,
or the time of this command.
"""


COLUMNS = (
    "the columns to read, separated by commas, each with a type if wanted: 'id, total decimal(38,10)', or all with "
    "'*, total decimal(38,10)' (default: all)"
)

_INTO = "the table to create or replace; also CATALOG.SCHEMA.TABLE"


def main(arguments: list[str], console: Console) -> None:
    """Load what the arguments name, and print one line of JSON: rows, into, seconds, and of a database the position."""
    started = time.monotonic()
    parser = Parser(prog="snapshot.py", description=__doc__, formatter_class=argparse.HelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    csv = kinds.add_parser("csv", help="CSV files", epilog=CSV_HELP)
    csv.add_argument("--path", required=True, help="a file, a directory (searched recursively) or a pattern")
    csv.add_argument("--into", required=True, metavar="SCHEMA.TABLE", help=_INTO)
    csv.add_argument("--schema", required=True, metavar="DDL", help="columns and types: 'id bigint, name string'")
    csv.add_argument(
        "--null",
        default="",
        metavar="MARKER",
        help=r"the unquoted text that means NULL, for example \N (default: the empty text)",
    )
    csv.add_argument(
        "--delimiter", default=",", metavar="CHARACTER", help=r"the separator between values; \t is a tab (default: ,)"
    )
    _add_moment(csv)
    csv.add_argument(
        "--pg-snapshot",
        metavar="POSITION",
        help="what pg_current_snapshot() says in the transaction of the export, as 18642:18650:18644; needs --at",
    )
    csv.add_argument(
        "--no-header", action="store_true", help="the files have no header; values are in the order of the schema"
    )
    jdbc = kinds.add_parser("jdbc", help="a table of a database", epilog=JDBC_HELP)
    jdbc.add_argument("--url", required=True, help="for example jdbc:postgresql://host:5432/shop, without a password")
    jdbc.add_argument(
        "--table", required=True, metavar="SCHEMA.TABLE", help="the table, quoted as in the database's SQL"
    )
    jdbc.add_argument("--into", required=True, metavar="SCHEMA.TABLE", help=_INTO)
    jdbc.add_argument("--at", default="now", metavar="POSITION", help="now (default), or for Oracle an SCN")
    jdbc.add_argument("--columns", metavar="LIST", help=COLUMNS)
    jdbc.add_argument(
        "--partition-column", metavar="NAME", help="a column of numbers; its ranges are read at the same time"
    )
    jdbc.add_argument("--partitions", type=int, metavar="N", help="the number of ranges, each with its own connection")
    jdbc.add_argument("--properties", metavar="FILE", help="a file of mode 600 with properties of the connection")
    jdbc.add_argument(
        "--allow-property",
        action="append",
        default=[],
        metavar="NAME",
        help="a driver property in --url or --properties to accept, although it is not known to be harmless",
    )
    # These options are there only to be refused: other users of the machine can see a command line. `_jdbc` says where
    # user and password belong, and does not repeat the value.
    jdbc.add_argument("--password", "--user", dest="secret", help=argparse.SUPPRESS)
    spanner = kinds.add_parser("spanner", help="a table of Spanner", epilog=SPANNER_HELP)
    spanner.add_argument("--project", required=True, help="the Google Cloud project of the instance")
    spanner.add_argument("--instance", required=True, help="the Spanner instance")
    spanner.add_argument("--database", required=True, help="the database, of either dialect")
    spanner.add_argument("--table", required=True, help="the table, exactly as Spanner spells it")
    spanner.add_argument("--into", required=True, metavar="SCHEMA.TABLE", help=_INTO)
    spanner.add_argument(
        "--at",
        default="now",
        metavar="TIME",
        help="now (default), or a time, for example 2026-05-01T09:00:00.123456789Z",
    )
    spanner.add_argument("--columns", metavar="LIST", help=COLUMNS)
    bigtable = kinds.add_parser("bigtable", help="the cells of a table of Bigtable", epilog=BIGTABLE_HELP)
    bigtable.add_argument("--project", required=True, help="the Google Cloud project of the instance")
    bigtable.add_argument("--instance", required=True, help="the Bigtable instance")
    bigtable.add_argument("--table", required=True, help="the table; it need not have a change stream")
    bigtable.add_argument("--app-profile", default="default", help="the app profile to read with (default: default)")
    bigtable.add_argument("--into", required=True, metavar="SCHEMA.TABLE", help=_INTO)
    bigtable.add_argument(
        "--allow-empty", action="store_true", help="accept a table without rows; the snapshot is then empty"
    )
    table = kinds.add_parser("table", help="a table or view of the session", epilog=TABLE_HELP)
    table.add_argument(
        "--table", required=True, metavar="SCHEMA.TABLE", help="the table or view to copy; also CATALOG.SCHEMA.TABLE"
    )
    table.add_argument("--into", required=True, metavar="SCHEMA.TABLE", help=_INTO)
    _add_moment(table)
    files = kinds.add_parser("files", help="files of a format with types, such as Parquet", epilog=FILES_HELP)
    files.add_argument("--path", required=True, help="a file or a directory")
    files.add_argument("--format", required=True, choices=FORMATS, help="the format of the files")
    files.add_argument("--into", required=True, metavar="SCHEMA.TABLE", help=_INTO)
    _add_moment(files)
    for kind_of in (csv, jdbc, table, files):
        _add_masks(kind_of)
    for unmasked in (spanner, bigtable):
        for name in ("--masks", "--mask-key-file", "--mask-object"):
            # There only to be refused: whoever gives it must not believe that values are masked.
            unmasked.add_argument(name, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.kind == "jdbc":
        _jdbc(options, console, started)
    elif options.kind == "spanner":
        _spanner(options, console, started)
    elif options.kind == "bigtable":
        _bigtable(options, console, started)
    elif options.kind in ("table", "files"):
        _copy(options, console, started)
    else:
        _csv(options, console, started)


def _add_masks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--masks",
        metavar="FILE",
        help="a file of YAML with the columns of each table to mask, as append.py --masks reads it; sha256 makes a "
        "column a string of hex digits, drop leaves it NULL",
    )
    parser.add_argument(
        "--mask-key-file",
        metavar="FILE",
        help="a file of mode 600 with the key of the masks (default: the variable RECONCILE_MASK_SECRET)",
    )
    parser.add_argument(
        "--mask-object",
        metavar="NAME",
        help="the table's name in the file of --masks (default for jdbc: that of --table)",
    )


def _tell_unmet(masks: RowMasks | None, spark: SparkSession, into: TableName, console: Console) -> None:
    if masks is not None and (sentence := masks.unmet(spark.table(into.sql).columns)):
        console.say(sentence)


def _row_masks(options: argparse.Namespace, object_: str | None = None) -> RowMasks | None:
    if options.masks is None and options.mask_object is not None:
        raise UsageError("--mask-object works only with --masks: add --masks, or remove --mask-object.")
    return read_row_masks(options.masks, options.mask_key_file, options.mask_object or object_)


def _csv(options: argparse.Namespace, console: Console, started: float) -> None:
    delimiter = options.delimiter.replace("\\t", "\t")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise UsageError(f"--delimiter {options.delimiter!r} is not one character, and neither quote nor line break.")
    if set(options.null) & {delimiter, '"', "\r", "\n"}:
        raise UsageError(
            f"--null {options.null!r} would always be in quotes; give a text without separator, quote and line break."
        )

    position = options.pg_snapshot
    if position is not None and not re.fullmatch(r"[0-9]{1,20}:[0-9]{1,20}:([0-9]{1,20}(,[0-9]{1,20})*)?", position):
        raise UsageError(f"--pg-snapshot {position!r} is not what pg_current_snapshot() says, as 18642:18650:18644.")
    if position is not None and options.at is None:
        raise UsageError(
            "--pg-snapshot needs --at, the time of the export: changes after it are told from earlier ones."
        )
    into, taken_at = TableName.parse(options.into, "--into"), _moment(options.at)
    masks = _row_masks(options)

    spark = session.start(f"snapshot {into}")
    rows = load_csv(
        spark,
        options.path,
        into,
        columns_of(options.schema),
        Dialect(delimiter, options.null),
        header=not options.no_header,
        taken_at=taken_at,
        pg_snapshot=position,
        masks=masks,
    )
    _tell_unmet(masks, spark, into, console)
    console.result({"rows": rows, "into": str(into), "seconds": round(time.monotonic() - started, 1)})


def _copy(options: argparse.Namespace, console: Console, started: float) -> None:
    into, taken_at = TableName.parse(options.into, "--into"), _moment(options.at)
    table = TableName.parse(options.table, "--table") if options.kind == "table" else None
    masks = _row_masks(options)
    spark = session.start(f"snapshot {into}")
    if table is not None:
        rows = load_table(spark, table, into, taken_at, masks)
    else:
        rows = load_files(spark, options.path, options.format, into, taken_at, masks)
    _tell_unmet(masks, spark, into, console)
    console.result({"rows": rows, "into": str(into), "seconds": round(time.monotonic() - started, 1)})


def _add_moment(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--at", metavar="TIME", help="when the rows were taken, for example 2026-05-01T09:00:00Z (default: now)"
    )


def _moment(at: str | None) -> str:
    return as_text(time.time_ns() if at is None else asked_moment("--at", at))


def _jdbc(options: argparse.Namespace, console: Console, started: float) -> None:
    if options.secret is not None:
        raise UsageError(
            "User and password are not given on the command line, where every user of the machine sees them: give "
            "them in RECONCILE_JDBC_USER and RECONCILE_JDBC_PASSWORD, or in the file of --properties."
        )
    database = database_of(options.url)
    table = database.table(options.table)
    masks = _row_masks(options, f"{table.schema}.{table.name}")
    partitions = None
    if (options.partition_column is None) != (options.partitions is None):
        raise UsageError("--partition-column and --partitions must be given together; give both, or neither.")
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
    snapshot = load_jdbc(spark, source, options.table, into, options.at, options.columns, partitions, masks)
    _tell_unmet(masks, spark, into, console)
    _tell(snapshot, into, console, started)


def _spanner(options: argparse.Namespace, console: Console, started: float) -> None:
    _refuse_masks(options, "Spanner: its values cannot be masked yet. Leave the columns out with --columns.")
    from reconcile_jobs.snapshots.snapshot_spanner import load_spanner
    from reconcile_jobs.spanner.queries import DatabaseName

    database = DatabaseName.from_environment(options.project, options.instance, options.database)
    into = TableName.parse(options.into, "--into")

    spark = session.start(f"snapshot {into}")
    console.say(f"{options.table} of Spanner is being read into {into}")
    snapshot = load_spanner(spark, database, options.table, into, options.at, options.columns)
    _tell(snapshot, into, console, started)


def _bigtable(options: argparse.Namespace, console: Console, started: float) -> None:
    _refuse_masks(options, "Bigtable: its cells cannot be masked yet.")
    from reconcile_jobs.bigtable.calls import SourceTable
    from reconcile_jobs.snapshots.snapshot_bigtable import load_bigtable

    source = SourceTable.from_environment(options.project, options.instance, options.table, options.app_profile)
    into = TableName.parse(options.into, "--into")

    spark = session.start(f"snapshot {into}")
    console.say(f"{options.table} of Bigtable is being read into {into}")
    loaded = load_bigtable(spark, source, into, options.allow_empty)
    seconds = round(time.monotonic() - started, 1)
    console.result({"rows": loaded.rows, "into": str(into), "taken_at": loaded.taken_at, "seconds": seconds})


def _refuse_masks(options: argparse.Namespace, why: str) -> None:
    if options.masks or options.mask_key_file or options.mask_object:
        raise UsageError(f"--masks is not for {why}")


def _tell(snapshot: Snapshot, into: TableName, console: Console, started: float) -> None:
    seconds = round(time.monotonic() - started, 1)
    console.result({"rows": snapshot.rows, "into": str(into), "position": snapshot.position, "seconds": seconds})


if __name__ == "__main__":
    console = Console("snapshot")
    sys.exit(console.exit_code(lambda: main(sys.argv[1:], console)))
