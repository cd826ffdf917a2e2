"""The state of a project as OpenMetrics text, of gauges only, so that Prometheus' older text format reads it as well.

https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from reconcile_jobs.monitoring.state import STATES, Model, Staging, State

__all__ = ["text", "unknown"]

_Sample = tuple[dict[str, str], float]
_VERDICTS = ("confirmed", "unprovable", "in_flight", "match", "never")


def text(state: State) -> str:
    """Return the metrics of a state."""
    return "".join([*_families(state), "# EOF\n"])


def unknown(at: datetime) -> str:
    """Return the metrics of a project whose state cannot be read."""
    return "".join([*_head(at, 0), "# EOF\n"])


def _head(at: datetime, known: int) -> Iterator[str]:
    yield _family("reconcile_known", "1 if the state could be read; 0 if nothing else is known.", [({}, known)])
    yield _family("reconcile_report_timestamp_seconds", "When the state was read.", [({}, _time(at))], "seconds")


def _families(state: State) -> Iterator[str]:
    yield from _head(state.at, 1)
    yield _family(
        "reconcile_models",
        "Models by state; stopped: nothing was appended to their staging table, or applied by them, for too long.",
        [({"state": word}, state.count(word)) for word in STATES],
    )
    yield _family(
        "reconcile_state",
        "1 for the worst state of all models and staging tables, and of what is no model any more.",
        [({"state": word}, int(state.state == word)) for word in STATES],
    )
    of = [({"staging": each.name}, each) for each in state.staging]
    yield _family("reconcile_staging_state", "1 for the state that a staging table has.", _by_state(of))
    yield _family(
        "reconcile_staging_appended_timestamp_seconds", "When a staging table was last appended to.",
        [(labels, _time(each.appended_at)) for labels, each in of if each.appended_at], "seconds",
    )  # fmt: skip
    yield _family(
        "reconcile_staging_unrouted_records",
        "Records of a staging table that no model takes.",
        [(labels, each.unrouted) for labels, each in of],
    )
    yield from _of_models([({"relation": model.row.relation}, model) for model in state.models])


def _of_models(of: list[tuple[dict[str, str], Model]]) -> Iterator[str]:
    yield _family("reconcile_model_state", "1 for the state that a model has.", _by_state(of))
    yield _family(
        "reconcile_model_built",
        "0 if a model is declared and was never built; then it has no sample of what follows but its parity.",
        [(labels, int(model.row.is_built)) for labels, model in of],
    )
    yield _family(
        "reconcile_model_as_of_timestamp_seconds", "What was appended before this time, the model has applied.",
        [(labels, _time(model.as_of)) for labels, model in of if model.as_of], "seconds",
    )  # fmt: skip
    yield _family(
        "reconcile_model_lag_seconds", "Seconds from the time that the model is as of until the state was read.",
        [(labels, model.row.lag_seconds) for labels, model in of if model.row.lag_seconds is not None], "seconds",
    )  # fmt: skip
    for name, help_, column in _COUNTS:
        values = [(labels, getattr(model.row, column)) for labels, model in of]
        yield _family(f"reconcile_model_{name}", help_, [(labels, each) for labels, each in values if each is not None])
    yield _family(
        "reconcile_model_drift_findings",
        "Columns, keys and schemas that are not as declared.",
        [(labels, len(model.row.drift or [])) for labels, model in of if model.row.is_built],
    )
    yield _family(
        "reconcile_model_parity",
        "1 for the worst verdict of the last comparisons of a model; never: it was not compared.",
        [
            ({**labels, "verdict": verdict}, int(verdict == (model.row.parity_verdict or "never")))
            for labels, model in of
            for verdict in _VERDICTS
        ],
    )
    yield _family(
        "reconcile_model_compared_timestamp_seconds", "When a model was last compared with its source.",
        [(labels, _time(model.compared_at)) for labels, model in of if model.compared_at], "seconds",
    )  # fmt: skip


_COUNTS = (
    ("batches_behind", "Batches with records that the model has not applied.", "batches_behind"),
    ("records_behind", "Records that the model has not applied.", "records_behind"),
    ("pending_rows", "Rows that wait for the rest of their columns, or for their row.", "pending_rows"),
    ("quarantined_records", "Records that the model could not apply.", "quarantined"),
    ("stored_rows", "Rows of the base table, with deleted and pending rows.", "stored_rows"),
)


def _by_state(of: Iterable[tuple[dict[str, str], Staging | Model]]) -> list[_Sample]:
    return [({**labels, "state": word}, int(each.state == word)) for labels, each in of for word in STATES]


def _family(name: str, help_: str, samples: Iterable[_Sample], unit: str = "") -> str:
    # The name ends with the unit, as the specification wants it. Without a sample a family is its head alone.
    lines = [f"# TYPE {name} gauge", *([f"# UNIT {name} {unit}"] if unit else []), f"# HELP {name} {help_}"]
    lines += [f"{name}{_labels(labels)} {value}" for labels, value in samples]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _time(at: datetime) -> float:
    return round(at.timestamp(), 3)
