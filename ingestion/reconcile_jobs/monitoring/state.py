"""The state of models and staging tables as reports show it, the worst first, with their last days as small plots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from typing import Any

from reconcile_jobs.monitoring.facts import EXIT_CODES, Facts, Limits, finding, in_utc, is_late, is_stopped, since

__all__ = ["DAYS", "STATES", "Model", "Staging", "State", "state_of"]

# Worst first. A staging table is stopped if it had no append for too long; then its models are stopped too, however
# well they have applied what is there. The exit codes call this `wait`, since the next append may cure it. A model is
# stopped too if no run has applied its records for too long, which the exit codes call `look`.
STATES = ("wrong", "stopped", "look", "wait", "right")
# How many days reconcile_models has.
DAYS = 30


@dataclass(frozen=True)
class Staging:
    """A staging table: its last append, in UTC, and what no model takes of it. `age_seconds` is None before it."""

    name: str
    state: str
    appended_at: datetime | None
    age_seconds: int | None
    last_batch: int | None
    unrouted: int
    findings: list[str]


@dataclass(frozen=True)
class Model:
    """A model. `row` is its row of reconcile_models; times are in UTC, and ages in seconds.

    `late_seconds`: for how long no run has applied its records, None if that is not too long. The lists have a place
    for each of the last DAYS days, the last one today. A day without a batch has None.
    """

    row: Any
    state: str
    as_of: datetime | None
    compared_at: datetime | None
    compared_seconds: int | None
    late_seconds: int | None
    lag_by_day: list[int | None]
    applied_by_day: list[int | None]


@dataclass(frozen=True)
class State:
    """The state of a project at a time, in UTC.

    `others`: findings of what is no model in the list, each with its state: of a model that was removed, for example,
    of which the last comparison is still there. They count for the exit code, so they count here.
    """

    at: datetime
    state: str
    staging: list[Staging]
    models: list[Model]
    others: list[tuple[str, str]]

    def count(self, state: str) -> int:
        """Return how many models have a state."""
        return sum(model.state == state for model in self.models)


def state_of(facts: Facts, limits: Limits) -> State:
    """Return the state that facts show."""
    staging = sorted(_staging(facts.status, limits), key=lambda each: (STATES.index(each.state), each.name))
    stopped = {row.relation for row in facts.status if row.kind == "appended" and is_stopped(row, limits)}
    found = _found(facts.status, limits)
    late = {row.relation: _seconds(since(row)) for row in facts.status if is_late(row, limits)}
    now = in_utc(facts.now)
    models = sorted(
        (_model(row, stopped, found.get(row.relation, []), late.get(row.relation), now) for row in facts.models),
        key=_place,
    )
    listed = {each.name for each in staging} | {each.row.relation for each in models}
    others = sorted(
        (each for relation, here in found.items() if relation not in listed for each in here),
        key=lambda each: (STATES.index(each[0]), each[1]),
    )
    states = [*(each.state for each in staging), *(each.state for each in models), *(word for word, _ in others)]
    return State(now, min(states, key=STATES.index, default="right"), staging, models, others)


def _found(rows: Iterable[Any], limits: Limits) -> dict[str, list[tuple[str, str]]]:
    """Return the findings of each relation, as state and sentence; that an append is missing is not among them."""
    words = {code: word for word, code in EXIT_CODES.items()}
    found: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        if row.kind != "appended" and (each := finding(row, limits)):
            word = "stopped" if is_late(row, limits) else words[each[0]]
            found.setdefault(row.relation, []).append((word, each[1]))
    return found


def _place(model: Model) -> tuple[int, float, str]:
    lag = model.row.lag_seconds
    return STATES.index(model.state), -inf if lag is None else -lag, model.row.relation


def _staging(rows: Iterable[Any], limits: Limits) -> Iterable[Staging]:
    unrouted: dict[str, list[tuple[int, Any, str]]] = {}
    for row in rows:
        if row.kind == "unrouted" and (found := finding(row, limits)):
            unrouted.setdefault(row.relation, []).append((found[0], row, found[1]))
    words = {code: word for word, code in EXIT_CODES.items()}
    for row in rows:
        if row.kind != "appended":
            continue
        found_here = sorted(unrouted.get(row.relation, []), key=lambda each: each[0])
        states = [words[code] for code, _, _ in found_here] + (["stopped"] if is_stopped(row, limits) else [])
        yield Staging(
            name=row.relation,
            state=min(states, key=STATES.index, default="right"),
            appended_at=None if row.at is None else in_utc(row.at),
            age_seconds=None if row.at is None else _seconds(since(row)),
            last_batch=row.last_batch,
            unrouted=sum(each.records or 0 for _, each, _ in found_here),
            findings=[sentence.removeprefix(f"{row.relation}: ") for _, _, sentence in found_here],
        )


def _model(row: Any, stopped: set[str], found: list[tuple[str, str]], late_seconds: int | None, now: datetime) -> Model:
    states = [row.state, *(word for word, _ in found)] + (["stopped"] if row.staging in stopped else [])
    compared_at = None if row.compared_at is None else in_utc(row.compared_at)
    lag: list[int | None] = [None] * DAYS
    applied: list[int | None] = [None] * DAYS
    for day in row.days or []:
        place = DAYS - 1 - (now.date() - day.day).days
        if 0 <= place < DAYS:
            lag[place], applied[place] = day.lag_seconds, day.applied
    return Model(
        row=row,
        state=min(states, key=STATES.index),
        as_of=None if row.as_of is None else in_utc(row.as_of),
        compared_at=compared_at,
        compared_seconds=None if compared_at is None else _seconds(now - compared_at),
        late_seconds=late_seconds,
        lag_by_day=lag,
        applied_by_day=applied,
    )


def _seconds(of: timedelta) -> int:
    # A clock that was set back gives no negative age.
    return max(0, int(of.total_seconds()))
