"""Load a source's own rows into a snapshot table: `spark-submit snapshot.py csv --help`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import NoReturn

from reconcile_jobs import session
from reconcile_jobs.console import Console
from reconcile_jobs.csv_records import Dialect
from reconcile_jobs.errors import UsageError, explained
from reconcile_jobs.snapshot_csv import columns_of, load_csv
from reconcile_jobs.staging import TableName

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


class _Parser(argparse.ArgumentParser):
    # argparse writes to Python's standard error, which spark-submit turns into its standard output.
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see `{self.prog} --help`.")


def main(arguments: list[str], console: Console) -> None:
    """Load what the arguments name, and print one line of JSON: rows, into, seconds."""
    started = time.monotonic()
    parser = _Parser(prog="snapshot.py", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    csv = kinds.add_parser(
        "csv", help="CSV files", epilog=CSV_HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    csv.add_argument("--path", required=True, help="a file, a directory (searched recursively) or a pattern")
    csv.add_argument("--into", required=True, metavar="SCHEMA.TABLE", help="the table to create or replace")
    csv.add_argument("--schema", required=True, metavar="DDL", help="columns and types: 'id bigint, name string'")
    csv.add_argument(
        "--null", default="", metavar="MARKER", help=r"what means NULL, unquoted, as \N (default: nothing)"
    )
    csv.add_argument("--delimiter", default=",", metavar="CHARACTER", help=r"between values; \t is a tab (default: ,)")
    csv.add_argument("--no-header", action="store_true", help="files begin with a row, in the order of the schema")
    options = parser.parse_args(arguments)
    delimiter = options.delimiter.replace("\\t", "\t")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise UsageError(f"--delimiter {options.delimiter!r} is not one character, and neither quote nor line break.")
    if set(options.null) & {delimiter, '"', "\r", "\n"}:
        raise UsageError(f"--null {options.null!r} could never stand without quotes.")

    into = _table(options.into)

    spark = session.start(f"snapshot {into}")
    rows = load_csv(
        spark,
        options.path,
        into,
        columns_of(options.schema),
        Dialect(delimiter, options.null),
        header=not options.no_header,
    )
    console.result({"rows": rows, "into": str(into), "seconds": round(time.monotonic() - started, 1)})


def _table(name: str) -> TableName:
    try:
        return TableName.parse(name)
    except UsageError as problem:
        raise UsageError(str(problem).replace("--staging", "--into")) from None


if __name__ == "__main__":
    console = Console("snapshot")
    sys.stderr = console.err
    try:
        main(sys.argv[1:], console)
    except Exception as problem:
        if os.environ.get("RECONCILE_TRACEBACK"):
            raise
        known = explained(problem)
        console.say(str(known))
        sys.exit(known.exit_code)
