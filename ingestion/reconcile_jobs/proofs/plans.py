"""What is compared of a model: which of its columns have a canonical form on both sides, and which rows show why."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconcile_jobs.exact_text import NotExact
from reconcile_jobs.jdbc.database import Column, Table
from reconcile_jobs.proofs.canonical_form import Field, Unprovable, agreed
from reconcile_jobs.proofs.comparison import Row
from reconcile_jobs.proofs.dialect import Dialect
from reconcile_jobs.proofs.dialects import Spark
from reconcile_jobs.snapshots.snapshot_jdbc import Target, target_of

__all__ = ["Plan", "plan_of"]

_WHOLE = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True)
class Plan:
    """A model beside its table: what the macro `model_to_prove` says of it, and the columns of both that are compared.

    `pairs`: the columns, the key's first, each as both sides have it. `unprovable`: what stands in the way of the
    others, by column. `targets`: how the values of rows that differ are read. `left_out`: the columns that the test of
    parity leaves out, and `only_in_source` those that the model does not have.
    """

    model: Mapping[str, Any]
    table: Table
    pairs: Sequence[tuple[Field, Field]]
    targets: Sequence[Target]
    unprovable: Mapping[str, str] = field(default_factory=dict)
    only_in_source: Sequence[str] = ()
    complaints: Sequence[str] = ()

    @property
    def id(self) -> str:
        """The model's unique id."""
        return str(self.model["unique_id"])

    @property
    def name(self) -> str:
        """The model's name, as people know it."""
        return str(self.model["name"])

    @property
    def key_length(self) -> int:
        """How many columns the key has."""
        return len(self.model["key"])

    @property
    def compared(self) -> list[str]:
        """The model's columns that are compared."""
        return [ours.name for _, ours in self.pairs]

    @property
    def tolerances(self) -> dict[str, Any]:
        """The tolerances of these columns, as the test of parity takes them."""
        return {
            column["name"]: [
                one["kind"] if one["argument"] is None else {one["kind"]: one["argument"]}
                for one in column["tolerances"]
            ]
            for column in self.model["columns"]
            if column["tolerances"] and column["name"] in self.compared
        }

    @property
    def bytes_at(self) -> list[int]:
        """The places of the values, behind key and hash, that come as bytes."""
        return [place + 2 for place, target in enumerate(self.targets) if target.text is None]

    def view(self, kind: str) -> str:
        """Return the name of a temporary view of the job for this model."""
        return f"reconcile_proof_{kind}_{hashlib.md5(self.id.encode()).hexdigest()[:12]}"

    def inexact(self, rows: Sequence[Row]) -> str | None:
        """Return why a value of these rows is none of the model's type, None if all are. The value is not shown."""
        for row in rows:
            for target, value in zip(self.targets, row.values, strict=True):
                if target.text is None or value is None:
                    continue
                try:
                    target.read(value)
                except NotExact:
                    return (
                        f"a value of the column {target.source.name}, {target.source.source_type} at the source, is "
                        f"not exactly one of {target.type_name}, the type in the model"
                    )
        return None


def plan_of(model: Mapping[str, Any], table: Table, columns: Sequence[Column], dialect: Dialect, where: str) -> Plan:
    """Return what is compared of a model, given the columns of its table. `where`: the table as people know it."""
    complaints = list(model["complaints"])
    if not columns:
        complaints.append(f"the source has no table {where}, or this user cannot see it")
    pairs, targets, unprovable, found = [], [], dict[str, str](), set[str]()
    keys = [name.lower() for name in model["key"]]
    for column in model["columns"]:
        name, kind = column["name"], column["type"]
        at_source = _named(columns, name)
        if at_source is None:
            unprovable[name] = f"the source has no column {name}"
            continue
        found.add(at_source.name)
        try:
            pair = _pair(at_source, name, kind, dialect, name.lower() in keys)
            target = _target(at_source, name, kind)
        except Unprovable as problem:
            unprovable[name] = str(problem)
            continue
        pairs.append(pair)
        targets.append(target)
    left_out = {name.lower() for name in model.get("left_out", ())}
    only = [column.name for column in columns if column.name not in found and column.name.lower() not in left_out]
    # Without its key, no row is found on the other side.
    complaints += [why for name, why in unprovable.items() if columns and name.lower() in keys]
    return Plan(model, table, pairs, targets, unprovable, only, complaints)


def _named(columns: Sequence[Column], name: str) -> Column | None:
    """Return the column of this name; the case counts only where two columns differ in nothing else."""
    exact = [column for column in columns if column.name == name]
    close = [column for column in columns if column.name.lower() == name.lower()]
    return next(iter(exact or close), None) if len(exact or close) == 1 else None


def _pair(column: Column, name: str, kind: str, dialect: Dialect, is_key: bool) -> tuple[Field, Field]:
    """Return a column as both sides have it. Raises Unprovable, also where a dialect cannot write it."""
    theirs, ours = agreed(column, kind, digests=dialect.digests and not is_key)
    dialect.field(theirs)
    ours = replace(ours, name=name)
    Spark().field(ours)
    return theirs, ours


def _target(column: Column, name: str, kind: str) -> Target:
    """Return how a value is read for the comparison of rows. Raises Unprovable."""
    # Parity compares whole numbers of every size.
    declared = "bigint" if kind in _WHOLE and column.spark_type in _WHOLE else kind
    target = target_of(name, column, declared)
    if isinstance(target, str):
        raise Unprovable(target)
    return target
