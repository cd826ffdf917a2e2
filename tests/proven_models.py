"""Results of proofs, made up, for what is done with them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from reconcile_jobs.jdbc.database import Cut, Table
from reconcile_jobs.proofs.canonical_form import Field
from reconcile_jobs.proofs.comparison import Bucket, Comparison, Row
from reconcile_jobs.proofs.plans import Plan
from reconcile_jobs.proofs.proving import Asked, Proof, Requests
from reconcile_jobs.proofs.verdicts import Difference, Proven


def proven(name: str = "orders", differences: list[Difference] | None = None, **said: Any) -> Proven:
    model = {
        "unique_id": f"model.shop.{name}", "name": name, "relation": f"shop.{name}", "key": [name],
        "columns": [{"name": name, "type": "bigint", "tolerances": [{"kind": "round", "argument": 2}]}],
        "left_out": [name], "uncertainty": "1 hour", "allowance": "10 minutes",
    }  # fmt: skip
    pairs = [(Field(name, "number", name), Field(name, "number", "bigint"))]
    plan = Plan(model, Table("s", name), pairs, [], {}, [name])
    sums = (Bucket(12, 3, 2**70), Bucket(12, 3, 2**70))
    found = Comparison(sums, 4, 1 if differences else 0, [Row("=1", "0" * 64)] if differences else [])
    sides = {
        "versions": {"model": 7, "source": None}, "staged": {"last": 3},
        "delivered": {"is_complete": True, "reason": None},
        "batches": [1, 3], "quarantined": 0, "pending": 0, "gaps": [], "form_columns": [name], **said,
    }  # fmt: skip
    counts = {"confirmed": len(differences or []), "compared": len(differences or []), "tolerated": "{}"}
    return Proven(
        plan, f"PostgreSQL s.{name}", sides, found, counts, differences or [], seconds=1.25, bytes=70_000,
        sql=(f"SELECT {name}", f"select {name}"),
    )  # fmt: skip


def proof(results: list[Proven], not_compared: dict[str, str] | None = None) -> Proof:
    cut = Cut("18642:18650:", session="secret session", properties={"taken_at": "2026-11-24 10:02:11.5+00"})
    requests = Requests("pg_snapshot", cut, Asked(["tag:shop"]))
    return Proof("PostgreSQL", requests, datetime(2026, 11, 24, tzinfo=UTC), results, not_compared or {})
