"""Erase keys from staging and from all that models keep of them: `spark-submit erase.py --help`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from reconcile_jobs.erasure.erasure import Erasure, Result
from reconcile_jobs.erasure.keys_file import read_keys_file
from reconcile_jobs.erasure.models import readers_called
from reconcile_jobs.process import session
from reconcile_jobs.process.command_line import Parser
from reconcile_jobs.process.console import Console
from reconcile_jobs.process.counted import counted, first_of
from reconcile_jobs.process.errors import Undecided, UsageError
from reconcile_jobs.retention.plan import Reader
from reconcile_jobs.retention.tables import Tables
from reconcile_jobs.staging import TableName, quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EPILOG = """
The job erases all that the lakehouse has of some keys, for example of a person who asks to be forgotten. --keys is a
CSV file of mode 600. Its first line has the names of the model's unique_key, and each further line one key. The model
and all other models that read the same records lose the keys: rows and deleted rows of base tables and histories,
quarantines, the copies <model>__snapshot, models as of an earlier moment (as_of), examples in the ledger, and keys and
values that parity has noted. In staging, a note without any value takes the place of each record, and of each row of a
snapshot beside a log. A record of Spanner may be of several rows, and keeps what it says of the others. The ledger gets
rows of the kind erasure, and balances.

The table <staging>__erased keeps a keyed digest of each key, and no key. append.py then drops and counts later records
of these keys, and leaves their rows out of later snapshots. The key of the digests has 32 characters or more, and is in
RECONCILE_ERASURE_SECRET or in the file of --erasure-key-file; append.py needs it too. If it is lost, later records
cannot be recognised.

Models are known to the job if they are registered with the staging table: see maintain.py. Records of Bigtable cannot
be erased so far, and a key must be of whole numbers, decimals or texts.

Old versions of the tables still have the rows, until the table formats have deleted these versions. With --now the job
deletes them at once, and the tables cannot be restored or read as of an earlier version any more. Let no other job, run
or query use the tables meanwhile. The job does not touch files of the landing area, append tables and snapshot tables;
it lists them.

Let no dbt run of these models be under way: it may write the rows again. If the job ends early, run the same command
again. What is erased already stays as it is. Standard output ends with one line of JSON: staging, objects, keys,
records (change records of staging, and rows of snapshots beside them), rows (of each other table), ledgers (rows of
each whose examples were erased), unreadable, without_object, landing_files, source_tables, not_reached,
old_versions_deleted and old_versions_left (tables).

Exit codes: 0 done; 2 the command or the configuration is wrong; 3 something may still hold the keys, and is named; 4 a
fault that a retry may cure.
"""

_MOST_NAMED = 10


def main(words: list[str], console: Console) -> None:
    """Erase the keys, and say what was erased and what may still hold them. Raises JobError."""
    parser = Parser(prog="erase.py", description=__doc__, epilog=_EPILOG)
    parser.add_argument(
        "--model", required=True, metavar="NAME", help="a registered model: its name, or SCHEMA.NAME as in the ledger"
    )
    parser.add_argument("--keys", required=True, metavar="FILE", help="a CSV file of mode 600 with the keys")
    parser.add_argument(
        "--reason",
        required=True,
        type=reason,
        metavar="TICKET-17",
        help="what the register notes with the keys: the name of a ticket, and nothing about the person",
    )
    parser.add_argument(
        "--staging",
        type=TableName.parse,
        metavar="SCHEMA.TABLE",
        help="the staging table; also CATALOG.SCHEMA.TABLE (default: the one of the session's catalog with which the "
        "model is registered)",
    )
    parser.add_argument("--now", action="store_true", help="also delete the old versions of all these tables, at once")
    parser.add_argument(
        "--with-unreadable",
        action="store_true",
        help="also erase the records of these objects whose key cannot be read",
    )
    parser.add_argument(
        "--erasure-key-file",
        metavar="FILE",
        help="a file of mode 600 with the key of the digests (default: the variable RECONCILE_ERASURE_SECRET)",
    )
    options = parser.parse_args(words)
    keys = read_keys_file(options.keys)
    spark = session.start("erase")
    staging, chosen = reader_of(spark, options.model, options.staging)
    erasure = Erasure(
        spark, staging, chosen, keys, options.reason, console.say, options.erasure_key_file, options.with_unreadable
    )
    result = erasure.run(options.now)
    for sentence in sentences(str(staging), result):
        console.say(sentence)
    left = [str(table) for table in result.tables if table not in result.versions_deleted]
    console.result(
        {
            "staging": str(staging),
            "objects": list(result.objects),
            "keys": result.keys,
            "records": result.records,
            "rows": result.rows,
            "ledgers": result.ledgers,
            "unreadable": result.unreadable,
            "without_object": result.without_object,
            "landing_files": result.landing_files,
            "source_tables": result.source_tables,
            "not_reached": [{"what": one.what, "why": one.why} for one in result.not_reached],
            "old_versions_deleted": [str(table) for table in result.versions_deleted],
            "old_versions_left": left,
        }
    )
    if result.not_reached:
        names = ", ".join(one.what for one in result.not_reached)
        raise Undecided(f"These may still hold the keys, each for the reason that its line names: {names}.")


def reason(text: str) -> str:
    """Return a reason, which is short and printable. For argparse's `type`."""
    if not text.strip() or len(text) > 200 or not text.isprintable():
        raise argparse.ArgumentTypeError("it is empty, longer than 200 characters or not printable; name a ticket")
    return text.strip()


def reader_of(spark: SparkSession, model: str, staging: TableName | None) -> tuple[TableName, Reader]:
    """Return the one registered model of this name, with its staging table. Raises UsageError."""
    found: list[tuple[TableName, Reader]] = []
    for table in [staging] if staging is not None else _staging_tables(spark):
        found += [(table, reader) for reader in readers_called(model, Tables(spark, table).readers())]
    if not found:
        where = f"with {staging}" if staging is not None else "with any staging table of the session's catalog"
        raise UsageError(
            f"No model {model} is registered {where}: correct --model; or run maintain.py of its staging table once, "
            "and then `dbt run` in each project that reads the table, and this command again."
        )
    if len(found) > 1:
        names = ", ".join(f"{reader.relation} of {table}" for table, reader in found)
        raise UsageError(
            f"Several registered models are called {model} ({names}): give --model its schema, or --staging."
        )
    return found[0]


def _staging_tables(spark: SparkSession) -> list[TableName]:
    """Return the tables of the session's catalog with which models may be registered."""
    found = []
    for schema in spark.catalog.listDatabases():
        for row in spark.sql(f"SHOW TABLES IN {quoted(schema.name)} LIKE '*__readers'").collect():
            table = TableName((schema.name, row.tableName.removesuffix("__readers")))
            if not row.isTemporary and spark.catalog.tableExists(table.sql):
                found.append(table)
    return found


def sentences(staging: str, result: Result) -> list[str]:
    """Return what an erasure came to: what is gone, what may still hold the keys, and where."""
    said = []
    if result.records or result.rows:
        said.append(
            f"{staging}: {counted(result.records, 'record')} of {counted(result.keys, 'key')} erased; a note without "
            "values stands in the place of each."
        )
        said += [f"{table}: {counted(rows, 'row')} erased" for table, rows in result.rows.items()]
        said += [f"{ledger}: examples erased in {counted(rows, 'row')}" for ledger, rows in result.ledgers.items()]
    else:
        said.append(f"{staging}: nothing of {counted(result.keys, 'key')} was there any more.")
    if result.unreadable:
        said.append(
            f"{counted(result.unreadable, 'record')} of these objects, in staging or in quarantine, stay, since their "
            "keys cannot be read: look at them, and erase all of them with --with-unreadable if they may be of these "
            "keys."
        )
    if result.without_object:
        said.append(
            f"{counted(result.without_object, 'record')} in {staging} without an object were not looked at: nobody "
            "can read of which table they are."
        )
    if result.landing_files:
        said.append(
            f"The records came from {counted(len(result.landing_files), 'file')}, which this job does not touch: "
            f"{first_of(result.landing_files, _MOST_NAMED)}. Delete them, or their records. Standard output has all "
            "names."
        )
    if result.source_tables:
        said.append(
            f"Rows of these keys came from {counted(len(result.source_tables), 'table')}, which this job does not "
            f"touch: {first_of(result.source_tables, _MOST_NAMED)}. Delete the rows there, with their old versions, or "
            "drop the tables."
        )
    if result.source == "spanner":
        said.append(
            "The change stream itself keeps its records for its retention period, and Spanner older versions of rows "
            "for the database's."
        )
    said += [f"{one.what} {one.why}." for one in result.not_reached]
    if result.versions_deleted:
        said.append(f"Old versions of {counted(len(result.versions_deleted), 'table')} deleted.")
    else:
        said.append(
            f"Old versions of {counted(len(result.tables), 'table')} still have what was erased, until they are "
            "deleted: run this command again with --now while nothing else uses the tables."
        )
    said.append(
        "Not known to this job, and not searched: snapshots of the source, copies of tables under other names, other "
        "tables and views that were made from the models, logs and artifacts of dbt, and certificates."
    )
    return said


if __name__ == "__main__":
    console = Console("erase")
    sys.exit(console.exit_code(lambda: main(sys.argv[1:], console)))
