"""The state of models and staging tables as reports show it, the worst first, with their last days as small plots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from math import inf
from typing import Any

from reconcile_jobs.monitoring.facts import EXIT_CODES, Facts, Limits, finding, in_utc, is_stopped

__all__ = ["DAYS", "STATES", "Model", "Staging", "State", "state_of"]

# Worst first. A staging table is stopped if it had no append for too long; then its models are stopped too, however
# well they have applied what is there. The exit codes call this `wait`, since the next append may cure it.
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

    The lists have a place for each of the last DAYS days, the last one today. A day without a batch has None.
    """

    row: Any
    state: str
    as_of: datetime | None
    compared_at: datetime | None
    compared_seconds: int | None
    lag_by_day: list[int | None]
    applied_by_day: list[int | None]


@dataclass(frozen=True)
class State:
    """The state of a project at a time, in UTC."""

    at: datetime
    state: str
    staging: list[Staging]
    models: list[Model]

    def count(self, state: str) -> int:
        """Return how many models have a state."""
        return sum(model.state == state for model in self.models)


def state_of(facts: Facts, limits: Limits) -> State:
    """Return the state that facts show."""
    staging = sorted(_staging(facts.status, limits), key=lambda each: (STATES.index(each.state), each.name))
    stopped = {row.relation for row in facts.status if row.kind == "appended" and is_stopped(row, limits)}
    today = in_utc(facts.now).date()
    models = sorted((_model(row, stopped, facts.now, today) for row in facts.models), key=_place)
    states = [each.state for each in staging] + [each.state for each in models]
    return State(in_utc(facts.now), min(states, key=STATES.index, default="right"), staging, models)


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
            age_seconds=None if row.at is None else _seconds(row.now - row.at),
            last_batch=row.last_batch,
            unrouted=sum(each.records or 0 for _, each, _ in found_here),
            findings=[sentence.removeprefix(f"{row.relation}: ") for _, _, sentence in found_here],
        )


def _model(row: Any, stopped: set[str], now: datetime, today: date) -> Model:
    state = "stopped" if row.staging in stopped and STATES.index(row.state) > STATES.index("stopped") else row.state
    lag: list[int | None] = [None] * DAYS
    applied: list[int | None] = [None] * DAYS
    for day in row.days or []:
        place = DAYS - 1 - (today - day.day).days
        if 0 <= place < DAYS:
            lag[place], applied[place] = day.lag_seconds, day.applied
    return Model(
        row=row,
        state=state,
        as_of=None if row.as_of is None else in_utc(row.as_of),
        compared_at=None if row.compared_at is None else in_utc(row.compared_at),
        compared_seconds=None if row.compared_at is None else _seconds(now - row.compared_at),
        lag_by_day=lag,
        applied_by_day=applied,
    )


def _seconds(of: timedelta) -> int:
    # A clock that was set back gives no negative age.
    return max(0, int(of.total_seconds()))
