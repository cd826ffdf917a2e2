"""Seconds to apply one batch of changes at random keys to a history, and to a current_state of the same rows.

The two take turns on the same batches, in one Spark session under the settings of conf/; the ratio is the median of
pairs. What is timed is what dbt times of a model, with all its bookkeeping. At first each key has one version.

    python benchmarks/history.py [--rows 1000000 10000000] [--changes 10000] [--repeats 3]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]
os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "conf"))

from merge import CHANGE, COLUMNS, Ask, in_a_session, megabytes_written, rows, seconds_of_dbt  # noqa: E402
from projects import Project  # noqa: E402

NAMES = ", ".join(COLUMNS)
FILLED = {
    "state": "lpad(hex(1), 16, '0') as _change_sequence, timestamp'2026-01-01' as _change_time, 1L as _change_batch, "
    "false as _deleted",
    "versions": "'insert' as _change_type, lpad(hex(1), 16, '0') as _change_sequence, string(id) as _change_id, "
    "timestamp'2026-01-01' as _change_time, 1L as _change_batch, timestamp'2026-01-01' as valid_from, "
    "cast(null as timestamp) as valid_to, false as _change_repeats, cast(null as timestamp) as _change_valid_to",
}


def prepare(ask: Ask, project: Project, schema: str, base_rows: int) -> None:
    """Both tables with `base_rows` rows, made by their own first runs and then filled alike."""
    ask(f"create schema {schema}")
    ask(f"create table {schema}.changes using delta partitioned by (batch) as {rows('select 0L as id', '1')}")
    project.source(schema, "changes")
    change = CHANGE.replace("timestamp'2026-01-01'", "timestamp_seconds(1767225600 + batch)")
    for model, materialized in (("state", "current_state"), ("versions", "history")):
        project.model(
            model,
            f"{{{{ config(materialized='{materialized}', unique_key='id') }}}}\n"
            f"select {NAMES},{change} from {{{{ source('lake', 'changes') }}}}",
            COLUMNS,
        )
    project.dbt("run")
    all_rows = rows(f"select id from range(1, {base_rows})", "1")
    for model, filled in FILLED.items():
        ask(f"insert into {schema}.{model}__base by name select {NAMES}, {filled} from ({all_rows})")


def measure(ask: Ask, base_rows: int, changes: int, repeats: int) -> None:
    """Print one line of the table for one size of base and batch."""
    schema = f"bench_{base_rows}_{changes}"
    with tempfile.TemporaryDirectory() as directory:
        project = Project(Path(directory) / "project", schema)
        prepare(ask, project, schema, base_rows)
        took: dict[str, list[float]] = {model: [] for model in FILLED}
        for repeat in range(repeats + 1):
            batch = repeat + 2
            keys = f"select distinct cast(rand({batch}) * {base_rows} as bigint) as id from range({changes})"
            ask(f"insert into {schema}.changes by name {rows(keys, str(batch))}")
            for model, seconds in took.items():
                seconds.append(seconds_of_dbt(project, model))
        written = [megabytes_written(ask, f"{schema}.{model}__base") for model in FILLED]
        [(differ,)] = ask(
            f"select count(*) from (select {NAMES} from {schema}.state "
            f"except all select {NAMES} from {schema}.versions where is_current)"
        )
    ask(f"drop schema {schema} cascade")
    # The first round warms up.
    state, versions = (seconds[1:] for seconds in took.values())
    ratio = statistics.median(two / one for one, two in zip(state, versions, strict=True))
    print(
        f"{base_rows:>11,} {changes:>8,}{statistics.median(versions):10.2f}{statistics.median(state):15.2f}{ratio:8.2f}"
        f"{written[1]:11.2f}{written[0]:15.2f}{differ:>8}",
        flush=True,
    )


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000], help="versions in the base")
    parser.add_argument("--changes", type=int, nargs="+", default=[10_000], help="changes of a batch")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory), in_a_session() as (ask, _):
        print(f"{'':20}{'seconds':^33}{'MB written':^26}")
        print(f"{'base':>11} {'changes':>8}{'history':>10}{'current_state':>15}{'ratio':>8}"
              f"{'history':>11}{'current_state':>15}{'differ':>8}")  # fmt: skip
        for base_rows in arguments.rows:
            for changes in arguments.changes:
                measure(ask, base_rows, changes, arguments.repeats)


if __name__ == "__main__":
    main()
