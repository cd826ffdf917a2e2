"""The tables of a stream as models declare them, and those that nothing can be written for, with the reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from reconcile_jobs.generation.declarations import (
    Declaration,
    Values,
    declaration_of_values,
    holds,
    is_moment,
    joined,
    of_kind,
)
from reconcile_jobs.generation.observations import Observations, Observed, Place, is_half
from reconcile_jobs.generation.witnesses import Testimony, Witness, types_of
from reconcile_jobs.process.counted import first_of
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.staging import quoted

__all__ = ["Answer", "Column", "Refusal", "Table", "is_undeclarable", "label_of", "tables_of"]

# Keys that are no columns: each event is a row; the address of the row.
_OF_THE_PACKAGE = ("_change_id", "_row_id")


@dataclass(frozen=True)
class Column:
    """A column as a model is to declare it."""

    name: str
    declaration: Declaration
    description: str = ""
    values: Values = field(default_factory=Values, compare=False)
    # What the source itself says of the type, if every value that came is of it: the order of the batches has no part.
    own: Declaration | None = field(default=None, compare=False)
    # Whether the column gets the mark by which a model that is built takes it.
    added: bool = False

    def of_the_source(self) -> Column:
        """Return the column with the type that the source says, or as a string, which holds every value."""
        return replace(self, declaration=self.own or _UNTOLD)


_UNTOLD = Declaration("string", witness="the source has not told the type")


@dataclass(frozen=True)
class Table:
    """A table of the stream. `database`: only where the name needs it to be one table's.

    `source` is '' and `key` empty where nothing tells them.
    """

    label: str
    source: str
    database: str | None
    schema: str
    name: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    description: str = ""
    # Columns that no model can declare, by their names.
    left_out: tuple[str, ...] = ()
    # Columns of bytes whose encoding nothing tells; `columns` does not have them.
    unsettled: tuple[str, ...] = ()
    # The names in the stream that are this table's alone.
    objects: tuple[str, ...] = ()
    # The key that the records name; () where they name none.
    named_key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refusal:
    """A table that no model can be written for: `reason` in two or three words that summaries count, and what to do.

    `table`: what is known of it, for a model that somebody has written by hand.
    """

    label: str
    reason: str
    advice: str
    table: Table | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Answer:
    """What a person says of a table that its records do not: its key, and the encoding of bytes."""

    key: tuple[str, ...] = ()
    encodings: Mapping[str, str] = field(default_factory=dict)


def label_of(place: Place, with_database: bool = False) -> str:
    """Return the name of a table for people, patterns and files of keys: shop.orders; odd parts in backticks."""
    parts = [place.schema, place.table] if place.schema else [place.table]
    if with_database and place.database:
        parts.insert(0, place.database)
    return ".".join(part if re.fullmatch(r"[^`.\s]+", part) else quoted(part) for part in parts)


def tables_of(
    observations: Observations,
    testimonies: Sequence[Testimony] = (),
    answers: Mapping[str, Answer] | None = None,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    is_whole: bool = True,
) -> tuple[list[Table], list[Refusal]]:
    """Return the tables by their labels, and those that no model can be written for. Raises UsageError.

    `testimonies`: of each witness of types but the values, the best first. `is_whole`: all records were read, so that
    a table in `answers` without a record is a mistake.
    """
    answers = dict(answers or {})
    databases: dict[tuple[str, str], set[str | None]] = {}
    for place in observations.tables:
        databases.setdefault((place.schema, place.table), set()).add(place.database)
    owners = Counter(name for observed in observations.tables.values() for name in observed.objects)
    tables: list[Table] = []
    refusals: list[Refusal] = []
    labels: set[str] = set()
    for place, observed in sorted(observations.tables.items(), key=lambda item: [part or "" for part in item[0]]):
        several = len(databases[place.schema, place.table]) > 1
        label = label_of(place, several)
        labels.add(label)
        if not _selected(label, select, exclude):
            continue
        answer = answers.get(label, Answer())
        witnesses = [testimony[place] for testimony in testimonies if place in testimony]
        table = _table(place, label, observed, witnesses, answer)
        own = tuple(sorted(name for name in observed.objects if owners[name] == 1))
        table = replace(table, objects=own, database=place.database if several else None)
        if several and place.database is None:
            refusals.append(Refusal(label, "database unknown", _SEVERAL))
            continue
        refusal = _refusal(table, observed, answer)
        if refusal is None:
            tables.append(table)
        else:
            refusals.append(replace(refusal, table=table))
    if is_whole and (unknown := sorted({*answers} - labels)):
        raise UsageError(
            f"--keys names {', '.join(unknown)}, and no staged record is of such a table: write schema.table as the "
            "records have it, and in backticks what has a dot or a blank."
        )
    return tables, refusals


_SEVERAL = (
    "Some records of this name have a database and some have none, so that nothing tells the tables apart. Write the "
    "model by hand, with `object=`, or correct the stream."
)


def _selected(label: str, select: Sequence[str], exclude: Sequence[str]) -> bool:
    is_selected = not select or any(fnmatchcase(label, pattern) for pattern in select)
    return is_selected and not any(fnmatchcase(label, pattern) for pattern in exclude)


def _table(
    place: Place,
    label: str,
    observed: Observed,
    witnesses: Sequence[Witness],
    answer: Answer,
) -> Table:
    """Return what the records, Avro's headers, the dictionary and `--keys` together say of a table.

    The key is that of `--keys`, else the dictionary's, else the records'. Raises UsageError if `--keys` gives the
    encoding of a column that the table does not have.
    """
    source = next(iter(observed.sources)) if len(observed.sources) == 1 else ""
    if answer.encodings and source == "spanner":
        raise UsageError(f"--keys: {label} has encodings, and the bytes of Spanner need none: give its key alone.")
    columns = _columns(observed, witnesses)
    by_lower = {column.name.lower(): column for column in columns}
    if unknown := sorted(name for name in answer.encodings if name.lower() not in by_lower):
        raise UsageError(f"--keys: {label} has no column {', '.join(unknown)}, whose encoding is given there.")
    encodings = {name.lower(): encoding for name, encoding in answer.encodings.items()}
    settled, unsettled = [], []  # an unsettled column holds bytes, and nothing tells in which encoding
    for column in columns:
        if encoding := encodings.get(column.name.lower()):
            witness = f"the values: text in {encoding}, by --keys"
            binary = Declaration("binary", encoding, witness)
            settled.append(replace(column, declaration=binary, own=binary))
        elif _needs_encoding(column, source):
            unsettled.append(column.name)
        else:
            settled.append(column)
    of_witness = next((witness.key for witness in witnesses if witness.key), ())
    key = answer.key or of_witness or tuple(observed.key or ())
    settled = [_with_options(column, source, {name.lower() for name in key}) for column in settled]
    return Table(
        label=label,
        source=source,
        database=None,
        schema=place.schema,
        name=place.table,
        key=tuple(by_lower[name.lower()].name if name.lower() in by_lower else name for name in key),
        columns=tuple(column for column in settled if not is_undeclarable(column.name)),
        description=next((witness.description for witness in witnesses if witness.description), ""),
        left_out=tuple(column.name for column in settled if is_undeclarable(column.name)),
        unsettled=tuple(unsettled),
        named_key=tuple(observed.key or ()),
    )


def _with_options(column: Column, source: str, key: set[str]) -> Column:
    """Return a column with the options that its values need, beside the type that a witness tells."""
    declared, values = column.declaration, column.values
    if source == "mysql" and values.zero_dates and is_moment(declared.data_type):
        if column.name.lower() in key:  # two rows could then have the key NULL
            return replace(column, declaration=Declaration("string", witness=f"{declared.witness}; zero dates came"))
        witness = f"{declared.witness}; zero dates came: they become NULL"
        return replace(column, declaration=replace(declared, witness=witness, zero_dates_are_null=True))
    is_text = declared.data_type == "string" and not declared.encoding
    if source == "mysql" and is_text and "json" in {*values.shown, *values.kinds}:
        # The catalog of MariaDB calls its JSON a text. Of Oracle, the preview of 2020 has texts as {length, value}.
        return replace(column, declaration=replace(declared, encoding="json"))
    return column


def _refusal(table: Table, observed: Observed, answer: Answer) -> Refusal | None:
    """Return why no model can be written for a table. Raises UsageError where a file of keys is wrong."""
    label = table.label
    if not table.source:
        return _refusal_of_source(label, observed.sources)
    if observed.twins:
        names = ", ".join(sorted(observed.twins))
        return Refusal(
            label,
            "two columns of one name",
            f"A record has two columns whose names differ in case only ({names}), and Spark ignores case. Rename one "
            "at the source, or write the model by hand with one of them.",
        )
    if not observed.columns:
        return Refusal(
            label,
            "no columns",
            "No record of it that can be read has values, so that nothing tells its columns. Run this again when one "
            "has come.",
        )
    if not table.key:
        return _refusal_of_key(table, is_known=observed.key == [])
    if undeclarable := [name for name in table.key if name in table.left_out]:
        return Refusal(
            label,
            "key not possible",
            f"The key has the column {', '.join(undeclarable)}, and no model can declare a column of this name. Rename "
            "it at the source, or name another key with `--keys`.",
        )
    spelled = {*(column.name for column in table.columns), *table.unsettled}
    known = {name.lower() for name in spelled}
    if missing := [name for name in table.key if name.lower() not in known and name not in _OF_THE_PACKAGE]:
        if answer.key:
            columns = ", ".join(name for name in observed.ordered() if name in spelled)
            raise UsageError(f"--keys: {label} has no column {', '.join(missing)}; its columns are {columns}.")
        return Refusal(
            label,
            "key not in the records",
            f"The key has the column {', '.join(missing)}, which no record carries. Include the column in the stream, "
            "or name another key with `--keys`.",
        )
    return _refusal_of_encoding(table) if table.unsettled else None


def _refusal_of_encoding(table: Table) -> Refusal:
    return Refusal(
        table.label,
        "encoding unknown",
        f"The column {', '.join(table.unsettled)} has bytes, which arrive as text, and nothing tells whether this is "
        f"hex or base64. Give a file with `--keys`: `{table.label}: {{encodings: {{{table.unsettled[0]}: base64}}}}`.",
    )


def is_undeclarable(name: str) -> bool:
    """Whether the package refuses a column of this name: names of its own, and what Spark does not read as a name."""
    # Of whatever ends a line to Python, U+2028 too, Jinja's filter `indent` makes a line feed, in a name as elsewhere.
    if "${" in name or name.splitlines() != [name] or is_half(name):
        return True
    return name.lower() == "_deleted" or name.lower().startswith("_change_")


def _refusal_of_source(label: str, sources: set[str]) -> Refusal:
    if sources:
        return Refusal(
            label,
            "two sources",
            f"Its records are of {' and '.join(sorted(sources))}. A staging table holds the records of one stream: "
            "append each stream to a staging table of its own.",
        )
    return Refusal(
        label,
        "source unknown",
        "Nothing in its records shows whether the source is Oracle, MySQL, PostgreSQL or SQL Server. Write the model "
        "by hand, with the source macro of the database; the next run finds it by this macro and writes its YAML.",
    )


def _refusal_of_key(table: Table, is_known: bool) -> Refusal:
    why = "The table has no primary key." if is_known else "Its records name no primary key."
    columns = first_of([column.name for column in table.columns], 8)
    other = " `[_row_id]` makes the row's address the key." if table.source == "oracle" else ""
    return Refusal(
        table.label,
        "no key",
        f"{why} Give a file with `--keys`: `{table.label}: [...]`, with the columns that together identify a row "
        f"(of {columns}), or `{table.label}: [_change_id]`, which makes each event a row.{other}",
    )


def _needs_encoding(column: Column, source: str) -> bool:
    """Whether bytes came as text without a note of the append job that says base64.

    The macro of MySQL takes them for hex, that of Spanner for base64.
    """
    declared = column.declaration
    if "binary" not in declared.data_type or declared.encoding or source in ("mysql", "spanner"):
        return False
    return column.values.without_kind > 0


def _columns(observed: Observed, witnesses: Sequence[Witness]) -> list[Column]:
    """Return the columns. Of names that differ only in case, the one that was seen last is the column's.

    The type is that of the first witness that knows the column: the dictionary, the Avro headers, the append job's
    notes. The values can only make it wider, and they alone decide if nothing else shows the type.
    """
    newest: dict[str, str] = {}
    for name in observed.ordered():
        lower = name.lower()
        if lower not in newest or observed.last_seen[name] > observed.last_seen[newest[lower]]:
            newest[lower] = name
    of_witnesses = types_of(witnesses)
    descriptions = {name.lower(): text for w in reversed(witnesses) for name, text in w.descriptions.items()}
    columns = []
    for lower, name in newest.items():
        values = Values()
        for spelled, of_name in observed.columns.items():
            if spelled.lower() == lower:
                values.merge(of_name)
        of_the_source = of_witnesses.get(lower)
        witness = of_the_source or _of_notes(values)
        declaration = declaration_of_values(values) if witness is None else _wide_enough(witness, values)
        own = of_the_source if of_the_source and holds(of_the_source, values) else None
        columns.append(Column(name, declaration, descriptions.get(lower, ""), values, own))
    return columns


def _of_notes(values: Values) -> Declaration | None:
    """Return what the append job's notes about a column's Avro type say, None if there is no note, or notes differ."""
    kinds = [*values.kinds]
    return of_kind(kinds[0]) if len(kinds) == 1 else None


def _wide_enough(shown: Declaration, values: Values) -> Declaration:
    """Return a declaration, or a wider one if it cannot hold some value."""
    return shown if holds(shown, values) else joined(shown, declaration_of_values(values))
