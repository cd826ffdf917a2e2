"""What a staged record of a Spanner change stream shows of its table: the types of its columns above all."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from typing import Any

from reconcile_jobs.cuts import CUT
from reconcile_jobs.generation.declarations import Declaration, joined
from reconcile_jobs.generation.observations import Observations, Observed, Place, decoded
from reconcile_jobs.generation.witnesses import Testimony, Witness
from reconcile_jobs.spanner.column_types import described, spark_type_of

__all__ = ["add_data_change", "of_column_types", "place_of"]

# Values that the type which Spark has for the column does not hold: their columns are strings.
_BEYOND = {
    "TIMESTAMP": (re.compile(r".*\.[0-9]{6}[0-9]*[1-9][0-9]*Z"), "TIMESTAMP with nanoseconds"),
    "NUMERIC": (re.compile(r"(?!-?[0-9]{1,29}(\.[0-9]{1,9})?$).*", re.S), "NUMERIC beyond decimal(38,9)"),
}


def add_data_change(found: Observations, record: str | None, object_: str | None, batch: int) -> None:
    """Take note of a staged record."""
    if not object_:
        found.nameless += 1
    if not object_ or object_ == CUT:
        return
    observed = found.of(place_of(object_))
    observed.records += 1
    observed.objects.add(object_)
    observed.sources.add("spanner")
    change = decoded(record)
    if change is None:  # it goes to quarantine
        return
    order = ("commit_timestamp", "server_transaction_id", "record_sequence")
    newest = [batch, *(str(change.get(name) or "") for name in order)]
    types = _add_columns(observed, change.get("column_types"), newest)
    for mod in _objects(change.get("mods")):
        parts = [_object(mod.get(part)) for part in ("keys", "new_values")]
        values = parts[0] | parts[1]
        observed.add_values(values, {}, newest, batch)
        for name, value in values.items():
            element = types.get(name, "").removeprefix("ARRAY<").removesuffix(">")
            if element in _BEYOND:
                _add_beyond(observed, name, types[name], element, value)


def _add_columns(observed: Observed, column_types: Any, newest: list[Any]) -> dict[str, str]:
    """Take note of the columns that a record names, which may be those alone that changed; return their types."""
    types, key = {}, []
    for column in sorted(_objects(column_types), key=_place):
        name = str(column.get("name") or "")
        if type_ := described(column.get("type")):
            types[name] = type_
            observed.types.setdefault(name, set()).add(type_)
        place = [*newest, _place(column)]
        observed.places[name] = max(place, observed.places.get(name, place))
        if column.get("is_primary_key") is True:
            key.append(name)
    if types:
        observed.add_key(key, newest)
    return types


def _place(column: dict[str, Any]) -> int:
    place = str(column.get("ordinal_position"))
    return int(place) if re.fullmatch(r"[0-9]{1,9}", place) else 0


def _add_beyond(observed: Observed, name: str, type_: str, element: str, value: Any) -> None:
    pattern, beyond = _BEYOND[element]
    values = value if isinstance(value, list) else [value]
    # The emulator has an array that is NULL as the text NULL.
    if any(isinstance(one, str) and one != "NULL" and pattern.match(one) for one in values):
        observed.types.setdefault(name, set()).add(type_.replace(element, beyond))


def _objects(listed: Any) -> Iterable[dict[str, Any]]:
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _object(part: Any) -> dict[str, Any]:
    """Return a part of a mod: an object, or the JSON text of one."""
    if isinstance(part, dict):
        return part
    return (decoded(part) or {}) if isinstance(part, str) else {}


def place_of(object_: str) -> Place:
    """Return the table that a record names: of a named schema, sales.Orders, or of the default one, Orders."""
    schema, _, table = object_.rpartition(".")
    return Place(None, schema, table) if schema and table else Place(None, "", object_)


def of_column_types(observations: Observations) -> Testimony:
    """Return what the records themselves tell of the columns of their tables."""
    return {
        place: Witness({name: _declaration(types) for name, types in observed.types.items()})
        for place, observed in observations.tables.items()
    }


def _declaration(types: set[str]) -> Declaration:
    """Return the type that holds all that a column was: Spanner may change a STRING to BYTES, and back."""
    names, witness = sorted(types), f"Spanner: {', '.join(sorted(types))}"
    is_array = all(name.startswith("ARRAY<") for name in names)
    told = [Declaration(spark_type_of(name[6:-1] if is_array else name)) for name in names]
    data_type = reduce(joined, told).data_type
    return Declaration(f"array<{data_type}>" if is_array else data_type, witness=witness)
