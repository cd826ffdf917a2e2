"""Write models for the tables of a stream: `spark-submit generate.py KIND --help`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from reconcile_jobs.jdbc.connection import Source, secret_properties
from reconcile_jobs.jdbc.harmless_properties import check_properties
from reconcile_jobs.jdbc.kinds import database_of
from reconcile_jobs.process import session
from reconcile_jobs.process.command_line import Parser
from reconcile_jobs.process.console import Console
from reconcile_jobs.process.errors import DataError, UsageError
from reconcile_jobs.process.written_files import difference, write
from reconcile_jobs.staging import TableName

# What reads and writes a dbt project is imported when it is used, so that --help answers where there is no dbt.
if TYPE_CHECKING:
    from reconcile_jobs.generation.names import SnapshotPattern
    from reconcile_jobs.generation.plan import Plan
    from reconcile_jobs.generation.project import Project

_MODELS = """
For each table that staged records are of, the job writes a model and the YAML of the model, and for the staging table
the YAML of a source. A model that calls the source macro for the table is there already, whatever its file is called:
the job then adds the columns that the YAML does not declare, and changes nothing else. It removes no column and
changes no type. A second run writes nothing.
"""

_OF_DATASTREAM = """
The type of a column is from the best witness, and the YAML names the witness: the dictionary of the source's
database, --url; the headers of the Avro files under --path; what staging has of Avro types; the staged values. By
values, a whole number is a bigint (a decimal if it is larger), true and false a boolean, and everything else a string.
A string holds every value.

With --url the job also reads keys, and comments, which become descriptions. As of snapshot.py jdbc, user and password
are in RECONCILE_JDBC_USER and RECONCILE_JDBC_PASSWORD, or in the file of --properties, and the driver comes by
--packages.

With --columns the job adds columns to the YAML of models that are there, and writes nothing else: no model, no source,
no list. A new column has the type that the dictionary or an Avro header tells, and is a string otherwise, so that the
order of the batches has no part in its type. A table that was built with the old columns has to be built again: dbt run
--full-refresh --select the models that the line of JSON names.

A table that has no key in its records gets no model, and neither do two tables of one name. The file
_not_generated.md names each, with the reason and what to do; with --select or --since-batch the file stays as it is.
A column that a model names under meta: {ignored_columns: [...]} is not added. --keys names a YAML file of keys:

  shop.orders: [id]
  shop.events: [_change_id]                                   # each event is a row
  shop.photos: {key: [id], encodings: {photo: base64}}

Patterns are as in a shell, for names like shop.orders: 'shop.*'. --name '{schema}_{table}' names the models; with
--name '{schema}/{table}' each schema has a folder. Names of models have lower-case letters, digits and _.
"""

_OF_SPANNER = """
Types and keys are those that the records of the change stream name: the lists of column types in each of them, in
GoogleSQL's dialect and in PostgreSQL's. A column whose values Spark's type does not hold is a string: a TIMESTAMP with
nanoseconds, a PostgreSQL numeric. A column gets a line when a value of it, or a NULL, has come.

With --columns the job adds columns to the YAML of models that are there, and writes nothing else: no model, no source,
no list. A table that was built with the old columns has to be built again: dbt run --full-refresh --select the models
that the line of JSON names.

A table without a primary key gets no model, and neither do two tables of one name. The file _not_generated.md names
each, with the reason and what to do; with --select or --since-batch the file stays as it is. A column that a model
names under meta: {ignored_columns: [...]} is not added. --keys names a YAML file of keys: Settings: [_change_id]

Patterns are as in a shell, for names as the records have them: 'sales.*', 'Order*'. --name '{schema}_{table}' names the
models. Names of models have lower-case letters, digits and _.
"""

_OF_BIGTABLE = """
A table of Bigtable has two models: events_cells, the visible cells, and events, a view with a row for each row key and
a column for each family and qualifier whose cells came. Bytes have no type. Where all cells of a qualifier are text,
the column is a string with the encoding text; else it is binary with the encoding raw, and the YAML says where each
cell has 8 bytes, as the whole numbers of an increment have. Declare other types and encodings by hand, in the SQL of
the view: they stay. A family with more than 200 qualifiers has no columns, since the qualifiers are data.

A view that calls bigtable_rows for a model of the cells is there already, whatever its file is called: the job then
adds the cells that its list does not name, and changes nothing else. With --materialized history no view is written.

With --columns the job adds columns to views that are there, as binary with the encoding raw, so that the order of the
batches has no part in it; and writes nothing else. A view needs no rebuild: dbt run makes it anew.

Two tables of one name get no models. The file _not_generated.md names them, and the families without columns, with
what to do; with --select or --since-batch the file stays as it is. A column that a view names under
meta={'ignored_columns': [...]} is not added: its name, or its cell, as 'stats:hits'.

Patterns are as in a shell, for the ids of tables: 'event*'. --name 'raw_{table}' names the views; the models of cells
are called after them. Names of models have lower-case letters, digits and _.
"""

_RESULT = """
  0  done, or nothing to do
  1  --check: a model is missing, or no longer fits the records; a sentence names each
  2  the command or the configuration is wrong: a file that is no YAML, a table that --keys names and no record is of
  4  a fault that a retry may cure

Standard output is one line of JSON: written, unchanged, not_written by reason, columns_added, models_with_new_columns,
misfits, and status: written, unchanged, or with --check and --diff would change. With --diff the differences come
before this line.
"""


def main(words: list[str], console: Console) -> None:
    """Write the models that are missing, and the columns. Raises JobError."""
    parser = Parser(prog="generate.py", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    of_datastream = kinds.add_parser(
        "datastream", help="records of Datastream", epilog=_MODELS + _OF_DATASTREAM + _RESULT
    )
    of_spanner = kinds.add_parser(
        "spanner", help="records of a Spanner change stream", epilog=_MODELS + _OF_SPANNER + _RESULT
    )
    of_bigtable = kinds.add_parser(
        "bigtable", help="records of a Bigtable change stream", epilog=_MODELS + _OF_BIGTABLE + _RESULT
    )
    for options in (of_datastream, of_spanner, of_bigtable):
        options.add_argument(
            "--staging", required=True, metavar="SCHEMA.TABLE", help="the staging table; also CATALOG.SCHEMA.TABLE"
        )
        options.add_argument("--into", required=True, metavar="FOLDER", help="the folder of the models, as models/shop")
    _add_witnesses(of_datastream)
    for options in (of_datastream, of_spanner):
        options.add_argument("--keys", metavar="FILE", help="a YAML file of keys, for tables whose records name none")
        options.add_argument(
            "--snapshot",
            metavar="PATTERN",
            help="names of snapshots, as 'lake.{table}_source': a new model has the test of parity where a source of "
            "the project declares such a table",
        )
    for options in (of_datastream, of_spanner, of_bigtable):
        _add_options(options)
    _generate(parser.parse_args(words), console)


def _generate(given: Namespace, console: Console) -> None:
    from reconcile_jobs.generation.avro_files import headers_below
    from reconcile_jobs.generation.bigtable_records import cell_tables
    from reconcile_jobs.generation.dictionary import dictionary_of
    from reconcile_jobs.generation.keys_file import read_keys
    from reconcile_jobs.generation.names import Pattern
    from reconcile_jobs.generation.plan import Settings, plan_of
    from reconcile_jobs.generation.project import Project
    from reconcile_jobs.generation.rows_plan import plan_of_cells
    from reconcile_jobs.generation.staged_tables import observe
    from reconcile_jobs.generation.streams import BIGTABLE, DATASTREAM, SPANNER
    from reconcile_jobs.generation.tables import tables_of
    from reconcile_jobs.generation.witnesses import Testimony, of_headers

    staging = TableName.parse(given.staging)
    stream = {"datastream": DATASTREAM, "spanner": SPANNER, "bigtable": BIGTABLE}[given.kind]
    answers = read_keys(given.keys) if stream is not BIGTABLE else {}
    settings = Settings(
        (staging.schema, staging.parts[-1]),
        Pattern(given.name),
        given.materialized,
        tuple(given.tag),
        is_whole=not given.select and given.since_batch is None,
        only_columns=given.columns,
        stream=stream,
        snapshot=_snapshot(given),
    )
    source = _source(given.url, given.properties, given.allow_property) if stream is DATASTREAM else None
    project = Project(Path(given.into))
    for path, why in project.unreadable.items():
        console.say(f"{project.shown(path)} cannot be read as Jinja ({why}): a model in it is not found.")
    spark = session.start(f"generate {staging}")
    observations = observe(spark, staging, stream, given.since_batch)
    if observations.nameless:
        records = "1 record names" if observations.nameless == 1 else f"{observations.nameless:,} records name"
        console.say(f"{records} no table, and no model takes them: see reconcile_unrouted.")
    if stream is BIGTABLE:
        cells, refusals = cell_tables(observations, given.select, given.exclude)
        plan = plan_of_cells(project, cells, refusals, settings)
        _finish(plan, project, console, given)
        return
    testimonies: list[Testimony] = [stream.testimony(observations)] if stream.testimony else []
    if source:
        testimonies.append(dictionary_of(spark, source, observations))
    if stream is DATASTREAM and given.path:
        testimonies.append(of_headers(headers_below(spark, given.path)))
    tables, refusals = tables_of(
        observations, testimonies, answers, given.select, given.exclude, given.since_batch is None
    )
    plan = plan_of(project, tables, refusals, settings)
    _finish(plan, project, console, given)


def _add_witnesses(options: ArgumentParser) -> None:
    options.add_argument("--path", metavar="PATH", help="where Avro files are, whose headers tell types")
    options.add_argument(
        "--url",
        help="the source's database, whose dictionary tells types, keys and comments: jdbc:postgresql://host/shop",
    )
    options.add_argument("--properties", metavar="FILE", help="a file of mode 600 with properties of the connection")
    options.add_argument(
        "--allow-property",
        action="append",
        default=[],
        metavar="NAME",
        help="a driver property in --url or --properties to accept, although it is not known to be harmless",
    )


def _add_options(options: ArgumentParser) -> None:
    options.add_argument("--name", default="{table}", metavar="PATTERN", help="names of models (default: {table})")
    options.add_argument(
        "--materialized",
        choices=["current_state", "history", "current_view"],
        default="current_state",
        help="the materialization of new models (default: current_state)",
    )
    options.add_argument("--tag", action="append", default=[], help="a tag of new models; may be repeated")
    options.add_argument(
        "--select", action="append", default=[], metavar="PATTERN", help="only these tables; may be repeated"
    )
    options.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN", help="not these tables; may be repeated"
    )
    options.add_argument(
        "--since-batch", type=int, metavar="N", help="read only records of this batch and later ones (default: all)"
    )
    options.add_argument(
        "--columns", action="store_true", help="only add new columns to the YAML of models that are there"
    )
    options.add_argument("--diff", action="store_true", help="print what would change, and write nothing")
    options.add_argument(
        "--check", action="store_true", help="write nothing, and end with 1 if a model is missing or does not fit"
    )


def _snapshot(given: Namespace) -> SnapshotPattern | None:
    if given.kind == "bigtable" or given.snapshot is None:
        return None
    if given.materialized == "history":
        raise UsageError(
            "--snapshot is for models of the current rows, and a history has several versions of a row: leave out one "
            "of --snapshot and --materialized history."
        )
    from reconcile_jobs.generation.names import SnapshotPattern

    return SnapshotPattern(given.snapshot)


def _source(url: str | None, properties_file: str | None, allowed: list[str]) -> Source | None:
    if url is None:
        return None
    database = database_of(url)
    properties = secret_properties(properties_file)
    check_properties(database, url, properties, allowed)
    return Source(database, url, properties)


def _finish(plan: Plan, project: Project, console: Console, given: Namespace) -> None:
    from reconcile_jobs.generation.plan import NOT_GENERATED

    check, diff = given.check, given.diff
    will = check or diff
    if given.columns:
        summary = plan.summary_of_columns(will)
    else:
        summary = plan.summary(project.shown(project.into / NOT_GENERATED), will)
    for sentence in plan.misfits:
        console.say(sentence)
    if check:
        for sentence in plan.news:
            console.say(f"{sentence}.")
    if diff:
        console.write("".join(difference(plan.files, {path: project.shown(path) for path in plan.files})))
    if not will:
        write(plan.files)
        for sentence in plan.added:
            console.say(f"{sentence}.")
    console.say(f"{summary}.")
    reasons = sorted({refusal.reason for refusal in plan.refusals})
    status = ("would change" if will else "written") if plan.files else "unchanged"
    console.result(
        {
            "written": len(plan.written),
            "unchanged": len(plan.unchanged),
            "not_written": {r: sum(refusal.reason == r for refusal in plan.refusals) for r in reasons},
            "columns_added": plan.columns_added,
            "models_with_new_columns": plan.models_with_new_columns,
            "misfits": len(plan.misfits),
            "status": status,
        }
    )
    if check and (plan.files or plan.misfits):
        raise DataError("The models do not fit the records: see the sentences above, and run this without --check.")


if __name__ == "__main__":
    console = Console("generate")
    sys.exit(console.exit_code(lambda: main(sys.argv[1:], console)))
