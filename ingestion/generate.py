"""Write models for the tables of a stream: `spark-submit generate.py datastream --help`."""

from __future__ import annotations

import sys
from pathlib import Path

from reconcile_jobs.generation.avro_files import headers_below
from reconcile_jobs.generation.dictionary import dictionary_of
from reconcile_jobs.generation.keys_file import read_keys
from reconcile_jobs.generation.names import Pattern
from reconcile_jobs.generation.plan import NOT_GENERATED, Plan, Settings, plan_of
from reconcile_jobs.generation.project import Project
from reconcile_jobs.generation.staged_tables import observe
from reconcile_jobs.generation.tables import tables_of
from reconcile_jobs.generation.written_files import difference, write
from reconcile_jobs.jdbc.connection import Source, secret_properties
from reconcile_jobs.jdbc.harmless_properties import check_properties
from reconcile_jobs.jdbc.kinds import database_of
from reconcile_jobs.process import session
from reconcile_jobs.process.command_line import Parser
from reconcile_jobs.process.console import Console
from reconcile_jobs.process.errors import DataError
from reconcile_jobs.staging import TableName

_EPILOG = """
For each table that staged records are of, the job writes a model and the YAML of the model, and for the staging table
the YAML of a source. A model that calls the source macro for the table is there already, whatever its file is called:
the job then adds the columns that the YAML does not declare, and changes nothing else. It removes no column and
changes no type. A second run writes nothing.

The type of a column is from the best witness, and the YAML names the witness: the dictionary of the source's
database, --url; the headers of the Avro files under --path; what staging has of Avro types; the staged values. By
values, a whole number is a bigint (a decimal if it is larger), true and false a boolean, and everything else a string.
A string holds every value.

With --url the job also reads keys, and comments, which become descriptions. As of snapshot.py jdbc, user and password
are in RECONCILE_JDBC_USER and RECONCILE_JDBC_PASSWORD, or in the file of --properties, and the driver comes by
--packages.

A table that has no key in its records gets no model, and neither do two tables of one name. The file
_not_generated.md names each, with the reason and what to do; with --select or --since-batch the file stays as it is.
A column that a model names under meta: {ignored_columns: [...]} is not added. --keys names a YAML file of keys:

  shop.orders: [id]
  shop.events: [_change_id]                                   # each event is a row
  shop.photos: {key: [id], encodings: {photo: base64}}

Patterns are as in a shell, for names like shop.orders: 'shop.*'. --name '{schema}_{table}' names the models; with
--name '{schema}/{table}' each schema has a folder. Names of models have lower-case letters, digits and _.

  0  done, or nothing to do
  1  --check: a model is missing, or no longer fits the records; a sentence names each
  2  usage or configuration: a file that is no YAML, a table that --keys names and no record is of
  4  a fault that a retry may cure

Standard output is one line of JSON: written, unchanged, not_written by reason, columns_added, misfits, and status:
written, unchanged, or with --check and --diff would change. With --diff the differences come before this line.
"""


def main(words: list[str], console: Console) -> None:
    """Write the models that are missing, and the columns. Raises JobError."""
    parser = Parser(prog="generate.py", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    options = kinds.add_parser("datastream", help="records of Datastream", epilog=_EPILOG)
    options.add_argument(
        "--staging", required=True, metavar="SCHEMA.TABLE", help="the staging table; also CATALOG.SCHEMA.TABLE"
    )
    options.add_argument("--into", required=True, metavar="FOLDER", help="the folder of the models, as models/shop")
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
    options.add_argument("--keys", metavar="FILE", help="a YAML file of keys, for tables whose records name none")
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
    options.add_argument("--diff", action="store_true", help="print what would change, and write nothing")
    options.add_argument(
        "--check", action="store_true", help="write nothing, and end with 1 if a model is missing or does not fit"
    )
    given = parser.parse_args(words)
    staging = TableName.parse(given.staging)
    answers = read_keys(given.keys)
    settings = Settings(
        (staging.schema, staging.parts[-1]),
        Pattern(given.name),
        given.materialized,
        tuple(given.tag),
        is_whole=not given.select and given.since_batch is None,
    )
    source = _source(given.url, given.properties, given.allow_property)
    project = Project(Path(given.into))
    for path, why in project.unreadable.items():
        console.say(f"{project.shown(path)} cannot be read as Jinja ({why}): a model in it is not found.")
    spark = session.start(f"generate {staging}")
    observations = observe(spark, staging, given.since_batch)
    headers = headers_below(spark, given.path) if given.path else []
    dictionary = dictionary_of(spark, source, observations) if source else {}
    tables, refusals = tables_of(
        observations, headers, dictionary, answers, given.select, given.exclude, given.since_batch is None
    )
    if observations.nameless:
        records = "1 record names" if observations.nameless == 1 else f"{observations.nameless:,} records name"
        console.say(f"{records} no table, and no model takes them: see reconcile_unrouted.")
    plan = plan_of(project, tables, refusals, settings)
    _finish(plan, project, console, check=given.check, diff=given.diff)


def _source(url: str | None, properties_file: str | None, allowed: list[str]) -> Source | None:
    if url is None:
        return None
    database = database_of(url)
    properties = secret_properties(properties_file)
    check_properties(database, url, properties, allowed)
    return Source(database, url, properties)


def _finish(plan: Plan, project: Project, console: Console, *, check: bool, diff: bool) -> None:
    for sentence in plan.misfits:
        console.say(sentence)
    if check:
        for sentence in plan.news:
            console.say(f"{sentence}.")
    if diff:
        console.write("".join(difference(plan.files, {path: project.shown(path) for path in plan.files})))
    if not (check or diff):
        write(plan.files)
    console.say(plan.summary(project.shown(project.into / NOT_GENERATED), will=check or diff) + ".")
    reasons = sorted({refusal.reason for refusal in plan.refusals})
    status = ("would change" if check or diff else "written") if plan.files else "unchanged"
    console.result(
        {
            "written": len(plan.written),
            "unchanged": len(plan.unchanged),
            "not_written": {r: sum(refusal.reason == r for refusal in plan.refusals) for r in reasons},
            "columns_added": plan.columns_added,
            "misfits": len(plan.misfits),
            "status": status,
        }
    )
    if check and (plan.files or plan.misfits):
        raise DataError("The models do not fit the records: see the sentences above, and run this without --check.")


if __name__ == "__main__":
    console = Console("generate")
    sys.exit(console.exit_code(lambda: main(sys.argv[1:], console)))
