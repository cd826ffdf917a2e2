"""What a statement of the package answers, of rows that a test makes up: by SQLite, which has this much of the SQL."""

from __future__ import annotations

import functools
import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlite_functions

_FIELD = re.compile(r"(?:.* as )?(?:\w+\.)?`?(\w+)`?\s*$", re.S)
_WHERE = re.compile(r"\bwhere\b")
# What Spark says in other words, where one word for another is enough. SQLite casts a text that is no number to 0.
_WORDS = {
    r"interval '(\d+)' hour": r"\1",
    r"\bleft\(": "left_of(",
    r"\btry_cast\(": "cast(",
    r" div ": " / ",
    r" <=> ": " is ",
    r"\b(\d+)L\b": r"\1",
    # The fields of what a call gives, and the elements of a list.
    r"\)\.(\w+)": r") ->> '$[1].\1'",
    r"(?<=[\w)])\[(\d+)\]\.(\w+)": r" ->> \1 ->> '$[1].\2'",
    r"(?<=[\w)])\[(\d+)\]": r" ->> \1",
    r"\bfrom values\s(.*?)\sas (\w+) \(([\w, ]+)\)": r"from (with \2 (\3) as (values \1) select * from \2) as \2",
}
_LAMBDAS = {
    "transform": "(select json_group_array({body}) from (select value as {name} from json_each({of})))",
    "filter": "(select json_group_array({name}) from (select value as {name} from json_each({of})) where {body})",
    "exists": "(select coalesce(max({body}), false) from (select value as {name} from json_each({of})))",
    "aggregate": "(select coalesce(sum(value), 0) from json_each({of}))",  # the package makes nothing but sums
}


class RaisedError(Exception):
    """What `raise_error` says."""


def answer(
    sql: str, tables: Mapping[str, Iterable[Mapping[str, Any]]], structs: Sequence[str] = ("place",)
) -> list[tuple[Any, ...]]:
    """Return the rows of a SELECT; `tables`: by `schema.name`; `structs`: the columns of which fields are named.

    Times are texts of one form, or numbers. A struct has the order of its fields, NULL before all others; a list is one
    in JSON.
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
    database.create_function("named_struct", -1, _struct, deterministic=True)
    database.create_function("field", 2, _field)
    database.create_function("unix_micros", 1, lambda time: time)
    database.create_function("left_of", 2, lambda text, length: text[:length])
    database.create_function("char_length", 1, len)
    database.create_function("split_part", 3, lambda text, mark, place: (text.split(mark) + [""] * place)[place - 1])
    database.create_function("concat", -1, lambda *texts: None if None in texts else "".join(map(str, texts)))
    database.create_function("lpad", 3, lambda text, length, by: str(text)[:length].rjust(length, by))
    database.create_function("octet_length", 1, lambda of: None if of is None else len(of))
    database.create_function("conv", 3, _conv)
    database.create_function("regexp_replace", 3, lambda text, form, by: text and re.sub(form, by, text))
    database.create_function("date_format", 2, lambda time, _: time)
    # Hours of one month.
    database.create_function("date_trunc", 2, lambda _, time: 24 * int(time[8:10]) + int(time[11:13]))
    sqlite_functions.teach(database)
    database.create_function("to_json", 1, lambda of: json.dumps(json.loads(of)[1]))
    database.create_function("map", -1, lambda *_: None)
    database.create_function("from_json", 3, lambda text, *_: _of_fields(json.loads(text)))
    database.create_function("split", 2, lambda text, mark: json.dumps(text.split(mark)))
    database.create_function(
        "map_contains_key", 2, lambda of, key: key in json.loads(of) if str(of)[:1] == "{" else None
    )
    for name, gives in _OF_LISTS.items():
        database.create_function(name, -1, functools.partial(_of_lists, gives))
    database.create_function("array", -1, lambda *values: json.dumps(values))
    database.create_function("greatest", -1, lambda *numbers: max((n for n in numbers if n is not None), default=None))
    database.create_aggregate("bool_or", 1, _Or)  # type: ignore[arg-type]
    database.create_aggregate("collect_list", 1, _List)  # type: ignore[arg-type]
    database.create_aggregate("collect_set", 1, _Set)  # type: ignore[arg-type]
    database.create_aggregate("max_by", 2, _MaxBy)  # type: ignore[arg-type]


def _struct(*said: Any) -> str:
    names, values = said[::2], said[1::2]
    order = ["" if value is None else f"{value:020}" if isinstance(value, int) else f"={value}" for value in values]
    return json.dumps([order, dict(zip(names, values, strict=True))])


def _field(of: str | None, name: str) -> Any:
    """Return the field of a struct; of a list of structs, those of all."""
    given = None if of is None else json.loads(of)
    if given is None or (given[1:] and isinstance(given[1], dict)):
        return given and given[1][name]
    return json.dumps([_field(one, name) for one in given])


def _of_fields(fields: dict[str, Any]) -> str:
    """Return what `from_json` makes of an object: a struct, as each object in it."""
    of = {name: json.loads(_of_fields(said)) if isinstance(said, dict) else said for name, said in fields.items()}
    return json.dumps([[], of])


def _conv(digits: str, base: int, to: int) -> str:
    """Return digits of 64 bits as a decimal number with its sign."""
    assert to == -10
    number = int(digits, base)
    return str(number - 2**64 if number >= 2**63 else number)


def _ordered(values: Iterable[Any]) -> list[Any]:
    """Return values in their order, structs by that of their fields."""
    return sorted(values, key=lambda value: json.loads(value)[0] if str(value).startswith("[[") else value)


# What is made of a list, and of what else is given.
_OF_LISTS: dict[str, Any] = {
    "cardinality": len,
    "element_at": lambda values, place: values[place - 1 if place > 0 else place] if values else None,
    "slice": lambda values, first, length: values[first - 1 : first - 1 + length],
    "sort_array": _ordered,
    "array_sort": _ordered,
    "array_min": lambda values: min((value for value in values if value is not None), default=None),
    "array_max": lambda values: max((value for value in values if value is not None), default=None),
    "array_contains": lambda values, value: value in values,
    "array_compact": lambda values: [value for value in values if value is not None],
    "array_distinct": lambda values: list(dict.fromkeys(values)),
    "array_except": lambda values, others: [
        value for value in dict.fromkeys(values) if value not in json.loads(others)
    ],
    "array_join": lambda values, mark: mark.join(value for value in values if value is not None),
    "flatten": lambda values: [value for each in values for value in json.loads(each)],
}


def _of_lists(gives: Any, values: str | None, *more: Any) -> Any:
    found = None if values is None else gives(json.loads(values), *more)
    return json.dumps(found) if isinstance(found, list) else found


class _Or:
    """Whether any row satisfies a condition; NULL if none is known."""

    def __init__(self) -> None:
        self._any: bool | None = None

    def step(self, value: Any) -> None:
        self._any = self._any if value is None else bool(self._any or value)

    def finalize(self) -> bool | None:
        return self._any


class _List:
    """The values, as a list in JSON, NULL left out."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def step(self, value: Any) -> None:
        self._values += [value] if value is not None else []

    def finalize(self) -> str:
        return json.dumps(self._values)


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
    sql = re.sub(r"\b(?:try_)?cast\((\w+|array\(\)) as (?:array|map)<[^()]*>\)", r"\1", sql)
    sql = _each_call(sql, "struct", lambda parts: f"struct({', '.join(map(_named, parts))})")
    sql = _each_call(sql, "if", lambda parts: f"(case when {parts[0]} then {parts[1]} else {parts[2]} end)")
    for name, becomes in _LAMBDAS.items():
        sql = _each_call(sql, name, functools.partial(_without_lambda, becomes))
    for name in structs:
        sql = re.sub(rf"\b{name}\.(\w+)", rf"field({name}, '\1')", sql)
    for word, of_sqlite in _WORDS.items():
        sql = re.sub(word, of_sqlite, sql, flags=re.S)
    return _without_half_joins(sql)


def _without_lambda(becomes: str, parts: Sequence[str]) -> str:
    name, _, body = parts[-1].partition("->")
    return becomes.format(of=parts[0], name=name.strip(), body=body.strip())


def _without_half_joins(sql: str) -> str:
    """Return a statement whose semi joins and anti joins are conditions; each is the last join of its SELECT."""
    while found := list(re.finditer(r"\bleft (semi|anti) join\s", sql)):
        kind, depth, end = found[-1][1], 0, found[-1].end()
        while end < len(sql) and depth >= 0 and not (depth == 0 and _WHERE.match(sql, end)):
            depth += (sql[end] == "(") - (sql[end] == ")")
            end += depth >= 0
        join = re.sub(r"(.*)\son\s", r"\1 where ", sql[found[-1].end() : end], count=1, flags=re.S)
        is_there = f"{'not ' if kind == 'anti' else ''}exists (select 1 from {join})"
        sql = f"{sql[: found[-1].start()]}where {is_there} {re.sub(r'^where', 'and', sql[end:])}"
    return sql


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
