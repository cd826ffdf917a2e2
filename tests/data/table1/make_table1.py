"""Make the TABLE1 experiment: a thousand operations as Datastream delivers them, and the Oracle export in the end.

`python tests/data/table1/make_table1.py [directory]` writes USER1.TABLE1/**/*.jsonl.gz and table1_oracle_export.csv,
the same ones at every run; without a directory to their places in this repository.
"""

from __future__ import annotations

import csv
import gzip
import json
import random
import string
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

ABC = string.ascii_uppercase
OPERATIONS = {"INSERT": 382, "UPDATE-INSERT": 424, "DELETE": 194}
FILES = 3
START = datetime(2024, 8, 29, 10, 15, 0, tzinfo=UTC)

# Two redo threads: each numbers its records by itself, so that rs_id alone tells nothing about their order.
THREADS = (0x006CF6, 0x0073CB)

# What dbt seed reads as it is written ...
PLAIN = [
    "XYZ", "plain", "a, b and c", '6" nail', '""', "007", "1.10", "1e3", "true", "2024-08-29", "100 %", "semi;colon",
    "  two  spaces  ", "line\nbreak", "tab\there", "Ελένη", "李雷", '{{ ref("x") }}', "-- dash",
    "N/A", "None", "\N{PILE OF POO}", "$1", "`tick`",
]  # fmt: skip
# ... and what it does not: it makes these NULL, the text None, or no SQL. So they come and go before the end.
AWKWARD = [None, "NULL", "null", "it's", "back\\slash", "\\N", " ", "'; DROP TABLE TABLE1; --"]


@dataclass
class Change:
    """One row that one statement changed."""

    kind: str
    key: str
    value: str | None
    row_id: str


def changes(rng: random.Random) -> tuple[list[list[Change]], dict[str, str | None]]:
    """Return statements of one or more changes, in the order of their execution, and the table that they leave."""
    left = dict(OPERATIONS)
    table: dict[str, Change] = {}
    gone: list[str] = []
    statements: list[list[Change]] = []
    # The two updates of the article, and a row that is deleted and inserted again at once.
    script = {
        250: [("INSERT", "ABC", "new")],
        600: [("UPDATE-INSERT", "ABC", "XYZ"), ("UPDATE-INSERT", "ABC", "PQR")],
        700: [("INSERT", "DEF", "first")],
        720: [("DELETE", "DEF", None), ("INSERT", "DEF", "second")],
    }
    fresh = ["".join(letters) for letters in rng.sample([(a, b, c) for a in ABC for b in ABC for c in ABC], k=400)]
    fresh = [key for key in fresh if key not in ("ABC", "DEF")]

    def apply(kind: str, key: str, value: str | None) -> Change:
        left[kind] -= 1
        if kind == "DELETE":
            old = table.pop(key)
            gone.append(key)
            return Change(kind, key, old.value, old.row_id)
        row_id = f"AAAPwRAALAAM{rng.getrandbits(24):06X}" if kind == "INSERT" else table[key].row_id
        table[key] = Change(kind, key, value, row_id)
        return table[key]

    while any(left.values()):
        done = sum(OPERATIONS.values()) - sum(left.values())
        if due := [at for at in script if at <= done]:
            statements += [[apply(*step)] for step in script.pop(due[0])]
            continue
        pending = [step for steps in script.values() for step in steps]
        free = {kind: left[kind] - sum(step[0] == kind for step in pending) for kind in left}
        there = [key for key in table if key not in ("ABC", "DEF")]
        kinds = [kind for kind in free if free[kind] > 0 and (kind == "INSERT" or there)]
        kind = rng.choices(kinds, [free[kind] for kind in kinds])[0]
        rows = min(rng.choice([1] * 15 + [2, 3, 5]), free[kind], len(there) if kind != "INSERT" else 5)
        # Rows are often changed again at once: within the second, which is all that source_timestamp tells.
        recent = [change.key for statement in statements[-4:] for change in statement if change.key in there]
        if kind != "INSERT" and rows == 1 and recent and rng.random() < 0.4:
            keys = [rng.choice(recent)]
        elif kind != "INSERT":
            keys = rng.sample(there, rows)
        else:
            again = [key for key in dict.fromkeys(gone) if key not in table and key != "DEF"]
            keys = [
                again.pop(rng.randrange(len(again))) if again and rng.random() < 0.25 else fresh.pop()
                for _ in range(rows)
            ]
        statements.append([apply(kind, key, rng.choice(PLAIN * 2 + AWKWARD * 3)) for key in keys])
        if kind == "DELETE" and rows == 1 and free["INSERT"] > 0 and rng.random() < 0.15:
            statements.append([apply("INSERT", keys[0], rng.choice(PLAIN))])

    for last in table.values():
        if last.value in AWKWARD:
            last.value = rng.choice(PLAIN)
    return statements, {key: last.value for key, last in sorted(table.items())}


def records(rng: random.Random, statements: list[list[Change]]) -> Iterator[dict[str, object]]:
    """Yield the statements' records in Datastream's envelope, in the order of the log."""
    scn, transaction, thread = 15_869_130_000_000, 20_000, 1
    blocks = [0x3000, 0x2A00]
    for number, statement in enumerate(statements):
        twin = number and statement[0].key == statements[number - 1][0].key
        if twin and statement[0].value == "PQR":
            # Committed in the same second, by the other instance: by rs_id, XYZ would be the later one.
            thread, transaction = 0, transaction + 1
        elif not twin and rng.random() < 0.6:
            thread, transaction = (1 if statement[0].value == "XYZ" else rng.randrange(2)), transaction + 1
        # What is deleted and inserted again at once has one SCN: rs_id decides.
        if not (twin and statement[0].kind == "INSERT"):
            scn += rng.randrange(1, 4000)
        blocks[thread] += rng.randrange(1, 5)
        committed = START + timedelta(seconds=number // 7)
        rs_id = f"0x{THREADS[thread]:06x}.{blocks[thread]:08x}.{rng.randrange(0x10, 0x1F0, 8):04x}"
        for place, change in enumerate(statement):
            # A bulk delete gives all its rows one (rs_id, ssn).
            ssn = 0 if change.kind == "DELETE" else place
            read = committed + timedelta(seconds=rng.randrange(2, 60), microseconds=rng.randrange(1_000_000))
            yield {
                "stream_name": "projects/myProj/locations/myLoc/streams/oracle-user1",
                "read_method": "oracle-cdc-logminer",
                "object": "USER1.TABLE1",
                "schema_key": "table1-v1",
                "uuid": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
                "read_timestamp": read.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                "source_timestamp": committed.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "sort_keys": [int(committed.timestamp()) * 1000, scn, rs_id, ssn],
                "source_metadata": {
                    "log_file": f"+DATA/arch/{thread + 1}_41",
                    "scn": scn,
                    "row_id": change.row_id,
                    "is_deleted": change.kind == "DELETE",
                    "database": "DB1",
                    "schema": "USER1",
                    "table": "TABLE1",
                    "change_type": change.kind,
                    "tx_id": str(transaction),
                    "rs_id": rs_id,
                    "ssn": ssn,
                },
                "payload": {"COL1": change.key, "COL2": change.value},
            }


def main(landing: Path, seeds: Path) -> None:
    """Write the files."""
    rng = random.Random(1000)
    statements, table = changes(rng)
    delivered = list(records(rng, statements))
    rng.shuffle(delivered)
    folder = landing / "USER1.TABLE1" / START.strftime("%Y/%m/%d/%H/%M")
    folder.mkdir(parents=True, exist_ok=True)
    size = -(-len(delivered) // FILES)
    for first in range(0, len(delivered), size):
        name = f"{uuid.UUID(int=rng.getrandbits(128), version=4)}_oracle_{first}.jsonl.gz"
        lines = "".join(
            json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
            for record in delivered[first : first + size]
        )
        # Neither name nor time inside: the bytes are the same at every run.
        with (folder / name).open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
            packed.write(lines.encode())
    seeds.mkdir(parents=True, exist_ok=True)
    with (seeds / "table1_oracle_export.csv").open("w", encoding="utf-8", newline="") as export:
        writer = csv.writer(export, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(["COL1", "COL2"])
        writer.writerows(table.items())


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]), Path(sys.argv[1]))
    else:
        main(here, here.parents[2] / "seeds" / "demo")
