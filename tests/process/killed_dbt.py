"""dbt, killed with SIGKILL at a named place of a merge: `killed_dbt.py PLACE run ...`.

The places are statements of the materialization, told by their SQL; the product itself has no code for this.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from typing import Any

from dbt.adapters.spark import session
from dbt.cli.main import cli

STATEMENTS = {
    "quarantine": r"^(create or replace table|insert into) `\w+`\.`\w+__quarantine`",
    "merge": r"^(create or replace table|merge into) `\w+`\.`\w+__base`",
    "ledger": r"^(insert|merge) into `\w+`\.`reconcile_ledger`",
}
PLACES = [f"{when}_{statement}" for statement in STATEMENTS for when in ("before", "after")]  # as a merge comes to them


def main() -> None:
    """Run dbt until it executes the statement."""
    when, statement = sys.argv.pop(1).split("_")
    execute = session.Cursor.execute

    def executing(self: session.Cursor, sql: str, *parameters: Any) -> None:
        here = re.search(STATEMENTS[statement], re.sub(r"/\*.*?\*/", "", sql, flags=re.DOTALL).strip())
        if here and when == "before":
            os.killpg(0, signal.SIGKILL)
        execute(self, sql, *parameters)
        if here:
            os.killpg(0, signal.SIGKILL)

    session.Cursor.execute = executing
    cli()


if __name__ == "__main__":
    main()
