"""Proofs of a PostgreSQL that is written to all the time, by prove.py, while its changes come late and in disorder.

test_live_parity.py runs it in a session of conf/shared, beside an append job. One line of JSON for each proof.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import prove
from cluster.live_source import ALLOWANCE, Server, project_of_orders, say, written_to
from consoles import Outputs
from pyspark.sql import SparkSession
from reconcile_jobs.process.errors import JobError

PROOFS = int(os.environ["LIVE_PROOFS"])


class Live:
    """The source, and a project whose model is proven. The certificates lie beside it."""

    def __init__(self, root: Path, postgres: Server) -> None:
        self.root, self.url = root, postgres.url
        self.project = project_of_orders(root, [])
        os.environ |= {"RECONCILE_JDBC_USER": postgres.user, "RECONCILE_JDBC_PASSWORD": postgres.password}

    def prove(self, *words: str) -> str:
        """Return how prove.py ends: ok, or the name and the text of its error."""
        self.outputs = Outputs()
        dbt = ["--project-dir", str(self.project.root), "--profiles-dir", str(self.project.root)]
        try:
            prove.main([*words, *dbt], self.outputs)  # type: ignore[arg-type]
        except JobError as problem:
            return f"{type(problem).__name__}: {problem}"
        return "ok"

    def proven(self, name: str, *words: str) -> dict[str, Any]:
        """Return what the certificate says, and how prove.py ended."""
        page = self.root / f"{name}.html"
        allowance = ["--allowance", f"{ALLOWANCE} seconds"]
        ended = self.prove("--url", self.url, "--models", "orders", "--certificate", str(page), *allowance, *words)
        document = json.loads(page.with_suffix(".json").read_text())
        (model,) = document["models"]
        title = re.search("<title>(.*)</title>", page.read_text())
        counts = ("compared", "matched", "in_flight", "confirmed", "unprovable")
        return {
            "ended": ended, "position": document["position"]["value"], "state": document["state"],
            "title": title and title[1], "reasons": model["reasons"], "rows_read": model["rows_read"],
            "digests": model["digests"], "folds": model["staged"]["folds"],
            **{name: model["counts"][name] for name in counts},
        }  # fmt: skip


def main(root: Path, postgres: Server) -> None:
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    live = Live(root, postgres)
    with written_to(root, postgres, spark) as source:
        began = time.monotonic()
        for number in range(PROOFS):
            # In turn: of every second proof the base table is older, and more is folded from change records.
            if number % 2 == 0:
                live.project.dbt("run", "--select", "orders")
            say(proof=number, **live.proven(f"proof_{number}", "--no-wait", "--no-record"))
        say(seconds=time.monotonic() - began, changes=len(source.capture.captured))
    live.project.dbt("run", "--select", "orders")
    found = live.proven("quiet")
    say(quiet=True, recorded=[run.verdict for run in spark.table("live.reconcile_parity").collect()], **found)
    # What was folded from change records then is folded from them again.
    ended = live.prove("--replay", str(root / f"proof_{PROOFS - 1}.json"))
    say(replay=ended, lines=live.outputs.lines)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Server())
