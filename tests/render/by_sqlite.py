"""What a statement of the package answers, of rows that a test makes up: by SQLite, which has this much of the SQL."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_FIELD = re.compile(r"(?:.* as )?(?:\w+\.)?`?(\w+)`?\s*$", re.S)


class RaisedError(Exception):
    """What `raise_error` says."""


def answer(
    sql: str, tables: Mapping[str, Iterable[Mapping[str, Any]]], structs: Sequence[str] = ("place",)
) -> list[tuple[Any, ...]]:
    """Return the rows of a SELECT; `tables`: by `schema.name`; `structs`: the columns of which fields are named.

    Times are texts of one form, or numbers. A struct has the order of its fields, NULL before all others.
    """
    with sqlite3.connect(":memory:", isolation_level=None) as database:
        raised: list[str] = []
        _teach(database, raised)
        for schema in {name.split(".")[0] for name in tables}:
            database.execute(f"attach ':memory:' as `{schema}`")
        for name, given in tables.items():
            rows = list(given)
            columns = list(rows[0]) if rows else ["nothing"]
            at = "`" + name.replace(".", "`.`") + "`"
            database.execute(f"create table {at} ({', '.join(f'`{column}`' for column in columns)})")
            database.executemany(
                f"insert into {at} values ({', '.join('?' * len(columns))})",
                [[row[column] for column in columns] for row in rows],
            )
        try:
            return database.execute(_in_sqlite(sql, structs)).fetchall()
        except sqlite3.OperationalError as error:
            raise RaisedError(*raised) if raised else error from None


def _teach(database: sqlite3.Connection, raised: list[str]) -> None:
    def raise_error(says: str) -> None:
        raised.append(says)
        raise ValueError(says)

    database.create_function("raise_error", 1, raise_error)
    database.create_function("struct", -1, _struct, deterministic=True)
    database.create_function("field", 2, lambda of, name: None if of is None else json.loads(of)[1][name])
    database.create_function("unix_micros", 1, lambda time: time)
    database.create_function("left_of", 2, lambda text, length: text[:length])
    database.create_function("char_length", 1, len)
    database.create_function("split_part", 3, lambda text, mark, place: (text.split(mark) + [""] * place)[place - 1])
    database.create_function("concat", -1, lambda *texts: None if None in texts else "".join(map(str, texts)))
    database.create_function("date_format", 2, lambda time, _: time)
    # Hours of one month.
    database.create_function("date_trunc", 2, lambda _, time: 24 * int(time[8:10]) + int(time[11:13]))
    database.create_function(
        "get_json_object", 2, lambda text, path: _at(json.loads(text), path.removeprefix("$.").split("."))
    )
    database.create_function("to_json", 1, lambda of: json.dumps(json.loads(of)[1]))
    database.create_function("sort_array", 1, lambda values: values)
    database.create_aggregate("collect_set", 1, _Set)  # type: ignore[arg-type]
    database.create_aggregate("max_by", 2, _MaxBy)  # type: ignore[arg-type]


def _at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value.get(name) if value else None
    return value


def _struct(*said: Any) -> str:
    names, values = said[::2], said[1::2]
    order = ["" if value is None else f"{value:020}" if isinstance(value, int) else f"={value}" for value in values]
    return json.dumps([order, dict(zip(names, values, strict=True))])


class _Set:
    """The different values, as a list in JSON in their order."""

    def __init__(self) -> None:
        self._values: set[Any] = set()

    def step(self, value: Any) -> None:
        self._values |= {value} - {None}

    def finalize(self) -> str:
        return json.dumps(sorted(self._values))


class _MaxBy:
    """The value of the row that has the greatest of another; NULL is no greatest one."""

    def __init__(self) -> None:
        self._greatest: Any = None
        self._value: Any = None

    def step(self, value: Any, of: Any) -> None:
        if of is not None and (self._greatest is None or of > self._greatest):
            self._greatest, self._value = of, value

    def finalize(self) -> Any:
        return self._value


def _in_sqlite(sql: str, structs: Sequence[str]) -> str:
    """Return a statement in SQLite's words: structs are functions, and what must not be worked out stands in a CASE."""
    sql = _each_call(sql, "struct", lambda parts: f"struct({', '.join(map(_named, parts))})")
    sql = _each_call(sql, "if", lambda parts: f"(case when {parts[0]} then {parts[1]} else {parts[2]} end)")
    for name in structs:
        sql = re.sub(rf"\b{name}\.(\w+)", rf"field({name}, '\1')", sql)
    sql = re.sub(r"interval '(\d+)' hour", r"\1", sql)
    return re.sub(r"\bleft\(", "left_of(", sql)


def _named(part: str) -> str:
    found = _FIELD.fullmatch(part)
    assert found, part
    value = re.sub(r" as `?\w+`?\s*$", "", part)
    return f"'{found[1]}', {value}"


def _each_call(sql: str, name: str, becomes: Any) -> str:
    """Return a statement in which each call of a function has become another text; what is inside becomes it first."""
    while found := list(re.finditer(rf"(?<!\w){name}\((?!')", sql)):
        begin, depth, parts = found[-1].end(), 1, [""]
        quoted = False
        for end in range(begin, len(sql)):
            letter = sql[end]
            quoted ^= letter == "'"
            depth += 0 if quoted else (letter == "(") - (letter == ")")
            if not depth:
                break
            if letter == "," and depth == 1 and not quoted:
                parts.append("")
            else:
                parts[-1] += letter
        sql = sql[: found[-1].start()] + becomes([part.strip() for part in parts]) + sql[end + 1 :]
    return sql
