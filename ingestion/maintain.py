"""Keep a staging table in order: `spark-submit maintain.py --help`."""

from __future__ import annotations

import argparse
import re
import sys
from datetime import timedelta
from typing import Any

from reconcile_jobs.process import session
from reconcile_jobs.process.command_line import Parser
from reconcile_jobs.process.console import Console
from reconcile_jobs.process.counted import counted, first_of
from reconcile_jobs.retention.compaction import Compaction, CompactionResult
from reconcile_jobs.retention.files import TableFiles
from reconcile_jobs.retention.plan import KeptBack
from reconcile_jobs.retention.purge import Purge, Result
from reconcile_jobs.retention.tables import Tables
from reconcile_jobs.retention.tombstones import TombstoneResult, Tombstones
from reconcile_jobs.staging import TableName

_EPILOG = """
The job deletes (purges) records from a staging table that are older than --keep, up to the last batch that all
registered models have applied. The first call makes the table <staging>__readers. Then run `dbt run` in every project
that reads the staging table: each run writes the models of its project into this table. The job asks the ledger and the
base table of each model what was applied. It names the models that keep the purge back.

Before the purge the job copies the base table of each model to <model>__snapshot. Later rebuilds begin with this copy.
Records that a model has quarantined keep the purge back too: a rebuild with corrected declarations can apply them. With
--purge-quarantined they go. Rows of the object #cut, records of objects that no model reads, and records of snapshots
stay.

With --tombstones the job deletes tombstones. It takes three steps, each by one call of the job or one run of the model.
The job proposes a horizon, the place in the log of the last tombstone that is old enough. The next run of the model
that has records takes it. When staging is purged up to the batch before this run, a call deletes the tombstones up to
the horizon. From the run on, a record that is not after the horizon is quarantined, so it cannot bring a row back.

After the purge the job combines small files (compacts): of the staging table, of all tables of the registered models,
and of their ledgers and results. Tables with few small files are passed over. If another process writes to a table at
the same moment, the job leaves this table as it is; the next call compacts it. Old versions of the tables stay, unless
--delete-old-versions is given. A table with a property delta.deletedFileRetentionDuration (Delta), or with a longer
time in history.expire.max-snapshot-age-ms (Iceberg), keeps its versions as long as it says.

If the job ends early, run the same command again. Standard output is one line of JSON: staging, purged_up_to (null:
nothing was purged), records, quarantined, models, kept_back_by, snapshots, tombstones_deleted, tombstones_waiting,
tombstones_kept_by, tables, compacted, old_versions_deleted (a number of tables), left, dry_run.
"""


def main(words: list[str], console: Console) -> None:
    """Purge the staging table and compact the tables, and say what was done and what was not. Raises JobError."""
    parser = Parser(prog="maintain.py", description=__doc__, epilog=_EPILOG)
    parser.add_argument(
        "--staging",
        required=True,
        metavar="SCHEMA.TABLE",
        help="the staging table; also CATALOG.SCHEMA.TABLE",
    )
    parser.add_argument(
        "--keep",
        required=True,
        type=age,
        metavar="30d",
        help="the age up to which all records stay, by appended_at: 30d, 12h, 30m or 90s",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be purged, deleted and compacted")
    parser.add_argument(
        "--purge-quarantined",
        action="store_true",
        help="also delete records that a model has quarantined: no rebuild can apply them any more",
    )
    parser.add_argument(
        "--tombstones",
        type=age,
        metavar="90d",
        help="the age from which on tombstones (rows of deleted keys) are deleted from the base tables: changes that "
        "arrive later than that are quarantined. Without it tombstones stay for ever",
    )
    parser.add_argument("--no-compact", action="store_true", help="do not combine small files")
    parser.add_argument(
        "--delete-old-versions",
        action="store_true",
        help="also delete versions of the tables (of Iceberg: snapshots) that are older than 7 days, and files that no "
        "version needs",
    )
    options = parser.parse_args(words)
    staging = TableName.parse(options.staging)
    spark = session.start(f"maintain {staging}")
    tables = Tables(spark, staging)
    purge = Purge(tables, staging, options.keep, console.say, with_quarantined=options.purge_quarantined)
    result = purge.run(options.dry_run)
    for sentence in sentences(str(staging), result, options.dry_run):
        console.say(sentence)
    horizons = TombstoneResult()
    if options.tombstones is not None:
        horizons = Tombstones(spark, tables, options.tombstones, console.say).run(options.dry_run)
        for sentence in sentences_of_tombstones(horizons):
            console.say(sentence)
    compaction = Compaction(
        tables, TableFiles(spark, tables), staging, console.say, not options.no_compact, options.delete_old_versions
    )
    compacted = compaction.run(options.dry_run)
    for sentence in sentences_of_compaction(compacted, options.dry_run):
        console.say(sentence)
    console.result(
        {
            "staging": str(staging),
            "purged_up_to": result.batch or None,
            "records": result.records,
            "quarantined": result.quarantined,
            "models": result.models,
            "kept_back_by": [_as_json(one) for one in result.kept_back],
            "snapshots": result.snapshots,
            "tombstones_deleted": horizons.deleted,
            "tombstones_waiting": horizons.waiting,
            "tombstones_kept_by": horizons.kept,
            "tables": compacted.tables,
            "compacted": [
                {"table": of.table, "files_before": of.before, "files_after": of.after} for of in compacted.compacted
            ],
            "old_versions_deleted": compacted.tidied,
            "left": [{"table": of.table, "why": of.why} for of in compacted.left],
            "dry_run": options.dry_run,
        }
    )
    compacted.refuse_failures()


def age(text: str) -> timedelta:
    """Return a length of time, given as 30d, 12h, 30m or 90s. For argparse's `type`."""
    found = re.fullmatch(r"([0-9]{1,6})([dhms])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text} is not an age; write 30d, 12h, 30m or 90s")
    unit = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}[found[2]]
    return timedelta(**{unit: int(found[1])})


def sentences_of_tombstones(result: TombstoneResult) -> list[str]:
    """Return which tombstones wait for a run of their model, and which models keep theirs."""
    said = [
        f"{relation}: {counted(number, 'tombstone')} can be deleted once its next run with records has taken a new "
        "horizon, and staging is purged up to there."
        for relation, number in result.waiting.items()
    ]
    if result.kept:
        kept = ", ".join(f"{relation} ({why})" for relation, why in result.kept.items())
        verb = "keeps" if len(result.kept) == 1 else "keep"
        said.append(f"{counted(len(result.kept), 'model')} {verb} all tombstones: {kept}.")
    return said


def sentences_of_compaction(result: CompactionResult, dry_run: bool) -> list[str]:
    """Return how many tables were compacted, and of how many old versions were deleted."""
    said = []
    if result.compacted:
        done = "would be compacted" if dry_run else "compacted"
        said.append(f"{len(result.compacted):,} of {counted(result.tables, 'table')} {done}.")
    if result.tidied:
        said.append(f"Old versions of {counted(result.tidied, 'table')} deleted.")
    return said


def sentences(staging: str, result: Result, dry_run: bool) -> list[str]:
    """Return what a purge came to: what went, which models kept it back, and which old records stay."""
    said = []
    if result.batch:
        done = "would be purged" if dry_run else "purged"
        said.append(
            f"{staging}: {done} up to batch {result.batch:,} ({counted(result.records, 'record')}, applied by all "
            f"{counted(result.models, 'model')} that need them)."
        )
        if result.quarantined:
            said.append(
                f"Among them {'are' if dry_run else 'were'} quarantined records, {result.quarantined:,} if each model "
                "is counted; only the quarantines of the models keep them."
            )
    else:
        said.append(f"{staging}: nothing to purge.")
    if result.kept_back:
        kept = ", ".join(f"{one.reader.relation} ({one.why})" for one in result.kept_back)
        said.append(f"{counted(len(result.kept_back), 'model')} kept the purge back: {kept}.")
    for why, objects in result.kept_objects.items():
        records = counted(sum(of.records for of in objects), "old record")
        names = first_of([of.name or "without an object" for of in objects], 5)
        said.append(f"{records} stay, since {why}: {names}.")
    return said


def _as_json(one: KeptBack) -> dict[str, Any]:
    return {"relation": one.reader.relation, "ledger": one.reader.ledger, "batch": one.batch, "why": one.why}


if __name__ == "__main__":
    console = Console("maintain")
    sys.exit(console.exit_code(lambda: main(sys.argv[1:], console)))
