"""The capture with a tenth of its changes lost for good, and the positions of snapshots that were taken beside it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shop import records
from truth import CAPTURE, DELIVERIES, KEYS

Record = Mapping[str, Any]
# When the source's tables were copied in the middle, and which transactions that copy sees.
COPIED = json.loads((CAPTURE / "snapshot" / "at.json").read_text())


@dataclass(frozen=True)
class Kept:
    """The records of a table that were not lost. All of its changes by their ids, and the ids of those lost."""

    source: str
    table: str
    lines: list[str]
    lost: set[str]
    changes: Mapping[str, Record]

    @property
    def newest(self) -> Any:
        """Where the last change lies in the log."""
        return max(place(self.source, said) for said in self.changes.values())

    @property
    def latest(self) -> datetime:
        """The time of the last change."""
        return max(time_of(said["source_timestamp"]) for said in self.changes.values())

    def key(self, change: str) -> tuple[int, ...]:
        """Return the key of the row that a change is of."""
        payload = {name.lower(): value for name, value in self.changes[change]["payload"].items()}
        return tuple(int(payload[name]) for name in KEYS[self.table])


def kept(source: str, table: str, chance: random.Random) -> Kept:
    """Return what is left of the records of a table."""
    told = [line for delivery in DELIVERIES for line in records(source, table, "json", delivery)]
    changes = {said["uuid"]: said for said in map(json.loads, told) if "backfill" not in said["read_method"]}
    # Every tenth change, and every tenth of the transactions that have several: both for good, in all deliveries.
    # MySQL's records name no transaction. All sources have the same changes, under the same ids.
    transactions: dict[Any, list[str]] = {}
    of_postgresql = {} if source != "mysql" else transaction_of_change(table)
    for uuid, said in changes.items():
        transactions.setdefault(of_postgresql.get(uuid) or said["source_metadata"]["tx_id"], []).append(uuid)
    several = [uuids for uuids in transactions.values() if len(uuids) > 1]
    lost = {uuid for uuid in changes if chance.random() < 0.1}
    lost |= {uuid for uuids in several if chance.random() < 0.1 for uuid in uuids}
    return Kept(source, table, [line for line in told if json.loads(line)["uuid"] not in lost], lost, changes)


def transaction_of_change(table: str) -> dict[str, str]:
    """Return the transaction of each change, as PostgreSQL's records name it."""
    told = (json.loads(line) for delivery in DELIVERIES for line in records("postgresql", table, "json", delivery))
    return {said["uuid"]: said["source_metadata"]["tx_id"] for said in told if "backfill" not in said["read_method"]}


def time_of(text: str) -> datetime:
    """Return a time of the capture, which is in UTC and perhaps does not say so."""
    return datetime.fromisoformat(text.removesuffix("Z").removesuffix("+00:00"))


def place(source: str, record: Record) -> Any:
    """Return where a change lies in its log, or of PostgreSQL its transaction."""
    said = record["source_metadata"]
    if source == "postgresql":
        return int(said["tx_id"])
    if source == "oracle":
        return int(said["scn"])
    if source == "sqlserver":
        return tuple(int(part, 16) for part in said["lsn"].split(":"))
    log = "binlog" if "binlog_file" in said else "log"
    name, _, number = said[f"{log}_file"].rpartition(".")
    return int(number), int(said[f"{log}_position"]), name


def position(source: str, last: Any) -> tuple[str, str]:
    """Return the position of a snapshot that was taken after the last change."""
    if source == "postgresql":
        return "pg_snapshot", f"{last + 1}:{last + 1}:"
    if source == "oracle":
        return "scn", str(last + 1)
    if source == "sqlserver":
        file, block, slot = last
        return "lsn", f"0x{file:08X}{block:08X}{slot:04X}"
    number, offset, name = last
    return "binlog", f"{name}.{number:06}:{offset + 100}"


def after_the_copy(table: str) -> set[str]:
    """Return the ids of the changes that the copy in the middle does not see. They are the same for all sources."""
    _, end, still_open = COPIED["pg_current_snapshot"].split(":")
    assert not still_open
    told = [json.loads(line) for delivery in DELIVERIES for line in records("postgresql", table, "json", delivery)]
    changes = (said for said in told if "backfill" not in said["read_method"])
    return {said["uuid"] for said in changes if place("postgresql", said) >= int(end)}


def position_of_the_copy(of: Kept) -> tuple[str, str] | None:
    """Return the position of the copy in the middle, as its database would have told it; None where it has none."""
    if of.source == "postgresql":
        return "pg_snapshot", COPIED["pg_current_snapshot"]
    later = after_the_copy(of.table)
    places = {uuid: place(of.source, said) for uuid, said in of.changes.items()}
    if of.source == "oracle":
        # Changes of transactions that were open have smaller numbers, too.
        return position(of.source, max(at for uuid, at in places.items() if uuid not in later))
    if of.source == "sqlserver":
        # The capture lags: the copy has all changes up to its last number, and more.
        first = min(at for uuid, at in places.items() if uuid in later)
        return position(of.source, max(at for at in places.values() if at < first))
    # MySQL's places are in the order of the changes and not of the commits, so the copy lies at none of them.
    return None
