"""Tables in memory whose run can die before any of its statements that write, and is begun again from what it left."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

from memory import Memory
from plain_dbt import Rows
from pyspark.sql import SparkSession
from rounds import note_rounds

# What leaves nothing behind when the process is dead: everything else is a place to die before, whatever it is.
_READS = re.compile(
    r"(select|with|show|describe|set|reset|cache|uncache|from|values|drop view if exists reconcile_|"
    r"create (or replace )?(global )?temporary view)\b",
    re.IGNORECASE,
)


class KilledError(Exception):
    """The run ends here."""


class MortalMemory(Memory):
    """Refuses every statement that writes, once a run has sent so many."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self.lives: int | None = None
        self.dead = False
        self.written: list[str] = []

    def query(self, sql: str) -> Rows:
        if not _READS.match(sql.strip()):
            if self.lives is not None and len(self.written) >= self.lives:
                self.dead = True
            if self.dead:
                raise KilledError(sql)
            self.written.append(sql)
        return super().query(sql)

    def dies(self, lives: int | None, command: Callable[[], object]) -> bool:
        """Run a command, and return whether it died before its statement of this number, from 0 on."""
        self.lives, self.dead, self.written = lives, False, []
        try:
            command()
        except KilledError:
            return True
        finally:
            self.lives, self.dead = None, False
        return False

    def die_before_each(self, name: str, command: Callable[[], object], check: Callable[[], object]) -> int:
        """Let a command die before each of its statements, each time from what there is now; the next one lives.

        `check` says whether all is then as it has to be. Return how many rounds that were.
        """
        before = self._kept()
        for number in itertools.count():
            self._go_back_to(before)
            if not self.dies(number, command):
                check()
                break
            self.dies(None, command)
            check()
        note_rounds(name, number, map(_in_short, self.written))
        return number

    def _kept(self) -> Any:
        tables = {name: list(versions) for name, versions in self._tables.items()}
        return tables, dict(self._views), {name: dict(said) for name, said in self._properties.items()}

    def _go_back_to(self, kept: Any) -> None:
        tables, views, properties = kept
        self._tables = {name: list(versions) for name, versions in tables.items()}
        self._views, self._properties = dict(views), {name: dict(said) for name, said in properties.items()}
        for name, versions in self._tables.items():
            versions[-1].createOrReplaceGlobalTempView(self._view(name))


def _in_short(sql: str) -> str:
    return " ".join(sql.split())[:90]
