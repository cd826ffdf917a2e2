"""A table of a database becomes a snapshot table: all of it as of one position, every value exact, or not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from reconcile_jobs.exact_text import ExactText, NotExact, reader_of, shown
from reconcile_jobs.jdbc.connection import Connection, Source, connected
from reconcile_jobs.jdbc.database import Column, Cut, Database, Table
from reconcile_jobs.jdbc.forms import TEXT_FORMS, microseconds_of_span
from reconcile_jobs.masks import ColumnMask, RowMasks
from reconcile_jobs.process import session
from reconcile_jobs.process.counted import counted
from reconcile_jobs.process.errors import DataError, Fault, UsageError, explained
from reconcile_jobs.snapshots import snapshot_table
from reconcile_jobs.staging import TableName, literal, quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "Partitions",
    "Snapshot",
    "Target",
    "load_jdbc",
    "named_columns",
    "not_exact",
    "predicates",
    "reader_of_type",
    "target_of",
    "typed_rows",
]

# Rows that a driver keeps at a time. PostgreSQL's then reads in a transaction, which a shared snapshot needs.
_FETCHED = "2000"

# Of a CHAR(n) Spark would pad what the source does not, and count bytes where the source does.
_AS_IT_IS = {"spark.sql.readSideCharPadding": "false"}

# Behind a type: what of it is NULL, as the model's column says it, and the types that have such.
_NULLS = {
    "infinity_is_null": (re.compile("-?infinity"), ("timestamp", "timestamp_ntz")),
    "zero_date_is_null": (
        re.compile(r"0000-00-00(?: 00:00:00(?:\.0+)?)?"),
        ("date", "timestamp", "timestamp_ntz"),
    ),
}
# Behind a type: the text is JSON, though the database does not say so, as MariaDB does not.
_IS_JSON = "is_json"
_CLAUSE = "|".join((*_NULLS, _IS_JSON))

# Whether JSON lost digits as a variant: see _may_have_rounded in macros/values/datastream_texts.sql.
_NUMBERS = r"(?:^|[:\\[,])\\s*(-?[0-9](?:[0-9.]*+[eE][-+0-9]+|[0-9.]{{38,}}))(?=\\s*(?:[,\\]}}\\\\]|$))"
_DIGITS = "trim('0' from translate(substring_index(upper(%s), 'E', 1), '+-. ', ''))"
_ROUNDED = (
    f"(schema_of_variant(try_parse_json({{0}})) rlike 'DOUBLE|VARIANT' and exists(regexp_extract_all({{0}}, "
    f"'{_NUMBERS}'), number -> not ({_DIGITS % 'number'} <=> {_DIGITS % 'to_json(try_parse_json(number))'})))"
)
# In one form, as a model has it; what a model refuses stays the text that it is.
_JSON_AS_TEXT = f"coalesce(if({_ROUNDED}, null, to_json(try_parse_json({{0}}))), {{0}})"
# No JSON begins with this sign.
_NO_VARIANT = "!"
_JSON_OF_VARIANT = f"if(try_parse_json({{0}}) is null or {_ROUNDED}, concat('{_NO_VARIANT}', {{0}}), {{0}})"

_COMMENT = "A source's own rows, read over JDBC as of one position; each load replaces them all"


@dataclass(frozen=True)
class Partitions:
    """A table is read in `count` ranges of a column, over as many connections."""

    column: str
    count: int


@dataclass(frozen=True)
class Target:
    """A column of the snapshot table, and how it is read.

    `text` None: as bytes; of an array it reads an element, within lists of so many `dimensions`. `form`: what is made
    of a text before it is read. `nulls`: the texts that are NULL. `mask`: what stands for the values instead.
    """

    name: str
    source: Column
    text: ExactText | None
    form: Callable[[str], str] | None = None
    dimensions: int = 0
    nulls: re.Pattern[str] | None = None
    mask: ColumnMask | None = None

    @property
    def type_name(self) -> str:
        """The type as it was declared."""
        if self.mask is not None and self.mask.how == "sha256":
            return "string"
        return self._listed(self.text.type_name if self.text else "binary")

    @property
    def stored_type(self) -> str:
        """The type of the table's column, as DDL."""
        if self.mask is not None and self.mask.how == "sha256":
            return "string"
        return self._listed(self.text.stored_type if self.text else "binary")

    @property
    def is_variant(self) -> bool:
        """Whether the rows that Python gives hold JSON, of which Spark makes a variant."""
        return self.text is not None and self.text.type_name == "variant"

    def arrow(self) -> pa.DataType:
        """Return the type of its values in Arrow."""
        import pyarrow as pa

        assert self.text is not None
        found = self.text.arrow()
        for _ in range(self.dimensions):
            found = pa.list_(found)
        return found

    def read(self, text: str) -> Any:
        """Return what Arrow takes for a text. Raises NotExact."""
        return self._read_list(json.loads(text), self.dimensions) if self.dimensions else self._read_one(text)

    def _read_one(self, text: str) -> Any:
        assert self.text is not None
        if self.nulls and self.nulls.fullmatch(text):
            return None
        return self.text.read(self.form(text) if self.form else text)

    def _read_list(self, value: Any, dimensions: int) -> Any:
        if value is None:
            return None
        if isinstance(value, list) != (dimensions > 0):
            raise NotExact(f"does not have the {counted(self.dimensions, 'dimension')} of {self.type_name}")
        return [self._read_list(item, dimensions - 1) for item in value] if dimensions else self._read_one(value)

    def _listed(self, kind: str) -> str:
        return "array<" * self.dimensions + kind + ">" * self.dimensions


@dataclass(frozen=True)
class Snapshot:
    """What was written."""

    rows: int
    position: str


def load_jdbc(
    spark: SparkSession,
    source: Source,
    table_name: str,
    into: TableName,
    at: str = "now",
    columns: str | None = None,
    partitions: Partitions | None = None,
    masks: RowMasks | None = None,
) -> Snapshot:
    """Create or replace the table with the rows that a table of the source has at a position.

    `columns` are the names of those to take, each with the Spark type it is to have if that is not the usual one.
    `masks`: those of its columns. Raises UsageError, DataError where a value is not exactly one of its type, Undecided
    where the source no longer knows the position, and other JobErrors. The table is then as it was.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    database = source.database
    table = database.table(table_name)
    if partitions and database.one_connection:
        raise UsageError(
            f"--partitions is given, but {database.one_connection}: remove --partitions and --partition-column."
        )
    try:
        snapshot_table.prepare(spark, into)
        with connected(spark, source) as connection:
            database.prepare(connection, table)
            targets, partition_column = _targets(
                database, table, database.columns(connection, table), columns, partitions
            )
            if masks is not None:
                targets = _masked(targets, masks, columns, partitions)
            cut = database.fix(connection, table, at)
            ranges = _ranges(connection, database, table, cut, partition_column, partitions)
            query = database.select(table, [target.source for target in targets], cut, partition_column)
            with session.settings(spark, _AS_IT_IS):
                read = _reader(spark, source, query, cut, targets, ranges)
                return _write(spark, read, into, database, table, cut, targets, masks)
    except (PySparkException, Py4JJavaError) as problem:
        known = explained(problem)
        # What a value is complained of may look like a failure of the database.
        if not isinstance(known, DataError):
            known = source.refusal(problem) or known
        raise type(known)(source.without_secrets(str(known))) from None


def named_columns(text: str) -> list[tuple[str, str | None]]:
    """Read columns like 'id, total decimal(38,10), "Odd, name" string': names, and types where they stand.

    A `*` is a column of this name: `with_the_rest` puts the others in its place. Raises UsageError.
    """
    name = r'"(?:[^"]|"")+"|`(?:[^`]|``)+`|\[[^\]]+\]|[^\s,()"`\[\]]+'
    scalar = r"\w+(?:\s*\([\d\s,]+\))?"
    kind = rf"(?:(?i:array)\s*<\s*)*{scalar}(?:\s*>)*(?:\s+(?:{_CLAUSE}))?"
    column = rf"\s*(?P<name>{name})(?:\s+(?P<kind>{kind}))?\s*"
    if not re.fullmatch(rf"(?:{column},)*{column}".replace("?P<name>", "?:").replace("?P<kind>", "?:"), text):
        raise UsageError(
            f"--columns {text!r} cannot be read: write column names, each with a type of Spark if the column needs "
            "another than its usual type, as in 'id, total decimal(38,10), \"odd name\" string'."
        )
    found = []
    for match in re.finditer(rf"{column}(?:,|$)", text):
        bare = match["name"]
        if bare[0] in '"`[':
            closing = "]" if bare[0] == "[" else bare[0]
            bare = bare[1:-1].replace(closing * 2, closing)
        found.append((bare, match["kind"]))
    return found


def with_the_rest(asked: Sequence[tuple[str, str | None]], known: Iterable[str]) -> list[tuple[str, str | None]]:
    """Return the columns asked for; where `*` is the first, all that are known, with the types of those asked for."""
    if asked[0] != ("*", None):
        return [*asked]
    found: list[tuple[str, str | None]] = []
    for name in known:
        found += [column for column in asked[1:] if column[0].lower() == name.lower()] or [(name, None)]
    return [*found, *(column for column in asked[1:] if column not in found)]  # which are then refused


def predicates(column: str, least: int, greatest: int, count: int) -> list[str]:
    """Return conditions of which each row fulfils exactly one, NULL too; `column` is SQL."""
    bounds = sorted({least + (greatest - least + 1) * part // count for part in range(1, count)} - {least})
    if not bounds:
        return ["1 = 1"]
    inner = [f"{column} >= {low} AND {column} < {high}" for low, high in pairwise(bounds)]
    return [f"{column} < {bounds[0]} OR {column} IS NULL", *inner, f"{column} >= {bounds[-1]}"]


def typed_rows(
    batches: Iterable[pa.RecordBatch], targets: Sequence[Target], positions: Any | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield texts as values of their types. Raises DataError at the first that is not exactly one.

    With `positions`, an accumulator, the position stands before the columns, and whether there is a row.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in batches:
        if positions is not None:
            for position in pc.unique(batch.column(0)).to_pylist():
                positions.add({position})
            batch = batch.filter(pc.is_valid(batch.column(1)))
            batch = batch.select(range(2, batch.num_columns))
        arrays = [_values(target, batch.column(place)) for place, target in enumerate(targets)]
        yield pa.RecordBatch.from_arrays(arrays, names=[target.name for target in targets])


def _values(target: Target, array: pa.Array) -> pa.Array:
    import pyarrow as pa

    if target.mask is not None:
        if target.mask.how == "drop":
            return pa.nulls(len(array), target.arrow() if target.text else pa.binary())
        return pa.array([target.mask.of(value) for value in array.to_pylist()], pa.string())
    if target.text is None or (target.stored_type == target.type_name == "string" and not target.form):
        return array
    texts = array.to_pylist()
    try:
        values = [None if text is None else target.read(text) for text in texts]
    except NotExact:
        values = [None if text is None else _value(target, text) for text in texts]
    return pa.array(values, target.arrow())


def _value(target: Target, text: str) -> Any:
    try:
        return target.read(text)
    except NotExact as problem:
        delivered = text.removeprefix(_NO_VARIANT) if target.is_variant else text
        raise not_exact(target.source.name, target.source.source_type, delivered, problem, target.type_name) from None


def _read_variant(text: str) -> str:
    if text.startswith(_NO_VARIANT):
        raise NotExact(
            "is JSON that a variant cannot hold: it has a name twice, or a number that a variant would round"
        )
    return text


_VARIANT = ExactText("variant", "string", _read_variant)


def not_exact(column: str, source_type: str, text: str, problem: NotExact, type_name: str) -> DataError:
    """Return the complaint about a value that its type does not hold."""
    cures = [
        f" Or write {name} after the type in --columns."
        for name, (null, of) in _NULLS.items()
        if null.fullmatch(text) and type_name in of
    ]
    return DataError(
        f"Column {column}, {source_type}: {shown(text)} {problem}, and the type of the column is {type_name}. "
        f"Nothing was written; declare a type that holds the value in --columns, for example string.{''.join(cures)}"
    )


def _targets(
    database: Database, table: Table, known: Sequence[Column], asked: str | None, partitions: Partitions | None
) -> tuple[list[Target], Column | None]:
    """Return the columns to write, and the column of the partitions. Raises UsageError with all that is wrong."""
    shown = f"{table.schema}.{table.name}"
    if not known:
        raise UsageError(
            f"{database.name} has no table {shown}, or this user cannot see it: write --table exactly as in the "
            "database, and grant SELECT to the user."
        )
    complaints: list[str] = []

    def find(name: str, option: str) -> Column | None:
        exact = [column for column in known if column.name == name]
        close = [column for column in known if column.name.lower() == name.lower()]
        if len(exact or close) != 1:
            number = "no" if not close else "more than one"
            complaints.append(f"{shown} has {number} column {name}: write {option} as in the database")
        return next(iter(exact or close), None)

    targets: list[Target] = []
    named = named_columns("*" if asked is None else asked)
    for name, declared in with_the_rest(named, [column.name for column in known]):
        column = find(name, "--columns")
        if column is None:
            continue
        same = next((target.name for target in targets if target.name.lower() == name.lower()), None)
        if same is not None and declared is None and named == [("*", None)]:
            complaints.append(
                f"{shown} has two columns {same} and {name}, whose names differ in case only, and Spark ignores case: "
                "name the columns to read in --columns"
            )
        elif same is not None:
            complaints.append(
                f"--columns has the column {name} more than once (upper and lower case count as the same): name it once"
            )
        elif column.expression is None:
            complaints.append(
                f"the column {column.name} is {column.source_type}, which the job cannot read exactly as text: leave "
                "it out, by naming the others in --columns"
            )
        else:
            target = target_of(name, column, declared)
            if isinstance(target, Target):
                targets.append(target)
            else:
                complaints.append(target)
    partition_column = find(partitions.column, "--partition-column") if partitions else None
    if partition_column and not partition_column.is_number:
        complaints.append(
            f"--partition-column {partition_column.name} is {partition_column.source_type}, and must be a number: name "
            "another column, or leave out --partition-column and --partitions"
        )
    if complaints:
        raise UsageError(f"{'; '.join(complaints)}.")
    return targets, partition_column


def _masked(
    targets: Sequence[Target], masks: RowMasks, asked: str | None, partitions: Partitions | None
) -> list[Target]:
    """Return the columns with their masks. Raises UsageError where a masked value would be needed in clear."""
    if partitions and masks.of(partitions.column):
        raise UsageError(
            f"--partition-column {partitions.column} is masked, and the bounds of its ranges would be values in "
            "clear: name another column, or leave out --partition-column and --partitions."
        )
    declared = {name.lower(): kind for name, kind in named_columns(asked)} if asked is not None else {}
    return [_masked_target(target, masks, declared.get(target.name.lower())) for target in targets]


def _masked_target(target: Target, masks: RowMasks, declared: str | None) -> Target:
    how = masks.of(target.name) or masks.of(target.source.name)
    if how is None:
        return target
    if how == "drop":
        return replace(target, mask=ColumnMask(how, masks.masks))
    if declared is not None and declared.lower() != "string":
        raise UsageError(
            f"The column {target.name} is masked, and what stands for its values is a text: leave {declared} out of "
            "--columns."
        )
    as_text = target_of(target.name, target.source, "string")
    read = as_text if isinstance(as_text, Target) else target
    # Records of MySQL have BIT(1) as a number.
    is_number = target.source.is_number or target.source.source_type == "bit(1)"
    spark_type = "decimal" if is_number else target.source.spark_type
    return replace(read, mask=ColumnMask(how, masks.masks, spark_type, read.form), nulls=None)


def target_of(name: str, column: Column, declared: str | None) -> Target | str:
    """Return how a column is read as the type that is declared, or why it cannot be and what to do."""
    kind, *found_clause = re.split(rf"\s+({_CLAUSE})$", declared or column.spark_type)
    clause = found_clause[0] if found_clause else None
    nulls, nullable_types = _NULLS.get(clause or "", (None, ()))
    subject = f"the column {column.name} is {column.source_type}"
    if clause == _IS_JSON:
        if column.spark_type != "string" or kind.lower() not in ("string", "variant"):
            return (
                f"{subject}, and {_IS_JSON} applies only to a text that becomes string or variant: leave out {_IS_JSON}"
            )
        column = replace(column, form="json")
    found = re.fullmatch(r"((?:array\s*<\s*)*)(.*?)((?:\s*>)*)", kind, re.IGNORECASE)
    assert found is not None
    dimensions = found[1].lower().count("array")
    if found[3].count(">") != dimensions:
        return f"{declared}, the type of the column {column.name}, is not a type of Spark: declare {column.spark_type}"
    is_list = column.spark_type.startswith("array")
    chosen = "array" if dimensions else found[2].lower()
    text = _VARIANT if chosen == "variant" else reader_of_type(found[2])
    if chosen in column.otherwise:
        column = replace(column, expression=column.otherwise[chosen])
        if chosen == "binary":
            return Target(name, column, None)
    elif column.spark_type == "binary":
        if chosen == "binary":
            return Target(name, column, None)
        return f"{subject}, and can only become binary: declare binary"
    elif is_list != (dimensions > 0):
        possible = "only an array or string" if is_list else "no array"
        return f"{subject}, and can become {possible}: declare {column.spark_type}"
    if text is None:
        return (
            f"{declared}, the type of the column {column.name}, is not a scalar type of Spark: declare "
            f"{column.spark_type}"
        )
    if chosen == "variant" and column.form != "json":
        return f"{subject}, and only JSON can become variant: declare string"
    if text.arrow_type == "string" and column.spark_type.removeprefix("array<").rstrip(">") in ("float", "double"):
        return f"{subject}, and databases write its digits as text in different ways: declare {column.spark_type}"
    if nulls and (dimensions or text.type_name not in nullable_types):
        return (
            f"{clause} applies only to {' and '.join(nullable_types)}, and the column {column.name} is {kind}: leave "
            f"out {clause}"
        )
    return Target(name, column, text, _form(column, text), dimensions, nulls)


def _form(column: Column, text: ExactText) -> Callable[[str], str] | None:
    if text.arrow_type == "string":
        return TEXT_FORMS.get(column.form or "")
    return microseconds_of_span if (column.form, text.type_name) == ("span", "bigint") else None


def reader_of_type(kind: str) -> ExactText | None:
    """Return how a type of Spark, as DDL, is read from text; None for one that is not."""
    from pyspark.errors import ParseException
    from pyspark.sql.types import StructType

    try:
        return reader_of(cast(StructType, StructType.fromDDL(f"c {kind}")).fields[0].dataType)
    except ParseException:
        return None


def _ranges(
    connection: Connection,
    database: Database,
    table: Table,
    cut: Cut,
    partition_column: Column | None,
    partitions: Partitions | None,
) -> list[str]:
    if partition_column is None or partitions is None or partition_column.expression is None:
        return ["1 = 1"]
    ends = (
        partition_column.expression.replace("{}", f"{end}({database.quoted(partition_column.name)})")
        for end in ("MIN", "MAX")
    )
    least, greatest = connection.rows(f"SELECT {', '.join(ends)} FROM {database.relation(table)}{cut.clause}")[0]
    if least is None or greatest is None:
        return ["1 = 1"]
    low, high = Decimal(least), Decimal(greatest)
    if not (low.is_finite() and high.is_finite()):
        raise UsageError(
            f"--partition-column {partition_column.name} has values that are not numbers; choose another column."
        )
    return predicates(database.quoted("p"), int(low), int(high), partitions.count)


def _reader(
    spark: SparkSession, source: Source, query: str, cut: Cut, targets: Sequence[Target], ranges: list[str]
) -> DataFrame:
    """Return what Spark will read: c0, c1 and so on, the values of the targets, which `typed_rows` then converts.

    Each range is read by a connection of its own. If the query itself returns the position, reconcile_position and
    reconcile_row come before the values (see `Database.select`).
    """
    texts = [f"c{place} STRING" for place, target in enumerate(targets) if target.text]
    if cut.position_sql:
        texts.insert(0, "reconcile_position STRING")
    options = {
        **source.database.options,
        **source.properties,
        "driver": source.database.driver,
        "fetchsize": _FETCHED,
    }
    # A binary column alone would leave nothing to declare.
    if texts:
        options["customSchema"] = ", ".join(texts)
    if cut.session:
        options["sessionInitStatement"] = cut.session
    if cut.prefix:
        options["prepareQuery"] = cut.prefix
    frame = spark.read.jdbc(source.url, f"({query}) t", predicates=ranges, properties=options)
    position_columns = ["reconcile_position", "reconcile_row"] if cut.position_sql else []
    return frame.selectExpr(
        *position_columns, *(f"{_delivered(target, place)} as c{place}" for place, target in enumerate(targets))
    )


def _delivered(target: Target, place: int) -> str:
    """Return SQL for the value of a column that goes to Python. Spark parses JSON before, as it does for models."""
    if target.source.form != "json" or target.text is None:
        return f"c{place}"
    return (_JSON_OF_VARIANT if target.is_variant else _JSON_AS_TEXT).format(f"c{place}")


def _write(
    spark: SparkSession,
    read: DataFrame,
    into: TableName,
    database: Database,
    table: Table,
    cut: Cut,
    targets: Sequence[Target],
    masks: RowMasks | None = None,
) -> Snapshot:
    session.ship_by_value()
    positions = _accumulator(spark) if cut.position_sql else None
    rows = read.mapInArrow(
        lambda batches: typed_rows(batches, targets, positions),
        ", ".join(f"{quoted(target.name)} {target.stored_type}" for target in targets),
    )
    if any(target.is_variant for target in targets):
        names = [(quoted(target.name), target.is_variant) for target in targets]
        rows = rows.selectExpr(*(f"parse_json({name}) as {name}" if variant else name for name, variant in names))
    properties = {
        "reconcile.snapshot": "jdbc",
        "reconcile.snapshot.database": database.name,
        "reconcile.snapshot.table": f"{table.schema}.{table.name}",
        "reconcile.snapshot.position_kind": database.kind_of_position,
        **{f"reconcile.snapshot.{name}": value for name, value in cut.properties.items()},
        **(masks.properties() if masks else {}),
    }
    if cut.position is not None:
        properties["reconcile.snapshot.position"] = cut.position
    snapshot_table.writer(rows, into, _COMMENT, properties).createOrReplace()
    position = cut.position
    if positions is not None:
        position = _one_position(positions.value, database, into)
        # After the rows, since the position came with them: a snapshot without a position was not finished.
        spark.sql(
            f"ALTER TABLE {into.sql} SET TBLPROPERTIES ({literal('reconcile.snapshot.position')} = {literal(position)})"
        )
    return Snapshot(spark.table(into.sql).count(), position or "")


def _accumulator(spark: SparkSession) -> Any:
    from pyspark.accumulators import AccumulatorParam

    class Union(AccumulatorParam[set[Any]]):
        def zero(self, value: set[Any]) -> set[Any]:
            return set()

        def addInPlace(self, value1: set[Any], value2: set[Any]) -> set[Any]:
            return value1 | value2

    return spark.sparkContext.accumulator(set(), Union())


def _one_position(positions: set[Any], database: Database, into: TableName) -> str:
    """Return the one position that all rows have."""
    if len(positions) != 1:
        raise Fault(
            f"{database.name} was read at {len(positions)} positions, and {into} must have one: run the same command "
            "again."
        )
    position = positions.pop()
    if not position:
        raise UsageError(
            f"{database.name} did not give the position in its log, so the snapshot {into} has no position: grant the "
            "user the rights that `snapshot.py jdbc --help` lists."
        )
    return str(position)
