"""What a model declares wrongly, or finds in its way, is refused in sentences that say what to do; nothing is written.

Every sentence that the macros can say is provoked by one of the tables of these modules.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import refusals
import test_added_columns
import test_as_of
import test_catalogs
import test_changed_columns
import test_databricks
import test_generations
import test_monitoring_views
import test_names
import test_notes_of_writes
import test_parity_refusals
import test_restore
import test_retry_of_quarantine
import test_snapshot_refusals
import test_source_columns
from by_sqlite import answer
from plain_dbt import PACKAGE, CompilerError, PlainProject, Relation
from recorder import Recorder
from refusals import SENTENCE, THINGS, Refusal, run, thing
from shapes import (
    APPEND_TABLE,
    BIGTABLE,
    CELL_KEY,
    CELLS,
    MYSQL,
    ORACLE,
    OWN_SELECT,
    POSTGRESQL,
    SHAPES,
    SNAPSHOTS,
    SPANNER,
    STAGING,
    Life,
    Shape,
)

# --- declarations -----------------------------------------------------------------------------------------------------

ROUND = {"config": {"meta": {"round": True}}}
MASKED_NAME = {"id": "bigint", "name": {"data_type": "string", "config": {"meta": {"mask": "sha256"}}}}
ZERO_DATE = {"id": "bigint", "day": {"data_type": "date", "config": {"meta": {"zero_date": "null"}}}}
NO_DATA_TYPE = (
    "is not supported; use a scalar type of Spark except interval and time, or an array or a map of such types"
)
OWN_NAME = "the package reserves _deleted and names that begin with _change_; rename the column"
OF_A_CELL = "row_key, family, qualifier, cell_time, value, change_type, source_cluster_id, commit_timestamp, tiebreaker"
KEY_OF_A_CELL = (
    "row_key, family, qualifier and cell_time identify a cell; write `unique_key=['row_key', 'family', 'qualifier', "
    "'cell_time']`, and use reconcile.bigtable_rows for rows"
)
OF_HISTORY = "a history adds its own column with this name; rename the source's column in a SELECT of your own"
NEVER = "garbage_collection: 'never' is unknown; write 'keep' or 'apply'"


def cells(columns: Any = CELLS, key: Any = CELL_KEY, **said: Any) -> Shape:
    return Shape(BIGTABLE, columns, key, object="events", **said)


def own(columns: Any = THINGS, key: Any = "id", **said: Any) -> Shape:
    return Shape(OWN_SELECT, columns, key, **said)


def iceberg(columns: Any = THINGS, key: Any = "id", buckets: Any = 4, **said: Any) -> Shape:
    return thing(columns=columns, key=key, meta={"buckets": buckets}, file_format="iceberg", **said)


def clustered(by: Any, columns: Any = THINGS, **said: Any) -> Shape:
    return thing(columns=columns, meta={"cluster_by": by, **said.pop("meta", {})}, **said)


def many(number: int) -> dict[str, str]:
    return {"id": "bigint", **{f"c{place}": "int" for place in range(2, number + 1)}}


OPTIONS = (
    "fresh", "fold_unchanged", "base_snapshot", "ignored_columns", "buckets", "cluster_by", "partial_records",
    "row_ids", "range_deletes", "catalog",
)  # fmt: skip
DECLARED: dict[str, tuple[Shape, list[str]]] = {
    "columns of every wrong kind": (
        thing(columns={"id": "bigint", "_change_x": "int", "_Deleted": "int", "ID": "int", "size": {}, "a": "money"}),
        [f"column _change_x: {OWN_NAME}", f"column _Deleted: {OWN_NAME}",
         "column ID: it is declared twice (Spark ignores upper and lower case); remove one declaration",
         "column size: it has no data_type; declare one, for example `data_type: bigint`",
         f"column a: data_type 'money' {NO_DATA_TYPE}"],
    ),
    "types that cannot be kept": (
        thing(columns={"a": "interval", "b": "time", "c": "decimal(39,0)", "d": "decimal(2,3)", "e": "struct<f: int>",
                       "f": "map<array<int>,int>", "g": "array<map<int,int>>", "h": "map<int>", "i": "char"}),
        [f"column {name}: data_type '{said}' {NO_DATA_TYPE}" for name, said in {
            "a": "interval", "b": "time", "c": "decimal(39,0)", "d": "decimal(2,3)", "e": "struct<f: int>",
            "f": "map<array<int>,int>", "g": "array<map<int,int>>", "h": "map<int>", "i": "char"}.items()],
    ),
    "no columns": (
        thing(columns={}),
        ["no columns are declared; add `columns: [{name: id, data_type: bigint}, ...]` to the model's YAML"],
    ),
    "no key": (thing(key=None), [(
        "no unique_key is configured; add `unique_key='id'`, or a list of columns, to its config"
    )]),
    "texts that are read in a way that is none": (
        thing(columns={"id": "bigint", **{name: {"data_type": type_, "meta": said} for name, type_, said in (
            ("a", "binary", {"encoding": "hexadecimal"}), ("b", "string", {"encoding": "hex"}),
            ("c", "array<int>", {"encoding": "base64"}), ("d", "date", {"infinity_is_null": True}),
            ("e", "timestamp", {"infinity_is_null": "yes"}),
        )}}),
        ["column a: encoding 'hexadecimal' is unknown; use one of hex, base64, json, microseconds, interval, time",
         *(f"column {name}: encoding {encoding} applies only to columns of type binary, or of an array or a map of "
           f"binary, and this column is a {type_}; remove the encoding" for name, encoding, type_ in (
               ("b", "hex", "string"), ("c", "base64", "array<int>"))),
         *(f"column {name}: infinity_is_null must be true or false, and applies only to timestamp and timestamp_ntz; "
           "a string column keeps infinity as text" for name in "de")],
    ),
    **{
        f"options of Datastream's in a model of {source}": (
            thing(source, columns={"id": "bigint", **{
                name: {"data_type": type_, "meta": said} for name, type_, said in (
                    ("a", "binary", {"encoding": "hex"}), ("b", "timestamp", {"infinity_is_null": True}),
                )
            }}),
            [f"column {name}: its meta has {option}, which applies only to files of Datastream; {writer} writes each "
             "type in only one form; remove the option"
             for name, option in (("a", "encoding"), ("b", "infinity_is_null"))],
        )
        for source, writer in (
            (SPANNER, "Spanner"), (APPEND_TABLE, "append.py table"), (SNAPSHOTS, "append.py snapshot"),
        )
    },
    "zero dates that are none": (
        thing(columns={"id": "bigint", **{
            name: {"data_type": type_, "meta": {"zero_date": said}} for name, type_, said in (
                ("a", "date", "NULL"), ("b", "timestamp", None), ("c", "timestamp_ntz", True), ("d", "string", "null"),
                ("e", "array<date>", "null"), ("f", "date", "null"),
            )
        }}),
        [f"column {name}: zero_date must be 'null', in quotation marks, and applies only to date, timestamp and "
         "timestamp_ntz; a string column keeps a zero date as text" for name in "abcde"],
    ),
    "zero dates in a key": (
        thing(columns={"id": {"data_type": "date", "meta": {"zero_date": "null"}}}),
        ["unique_key id: a key that is a zero date would become NULL; remove zero_date from its meta, and declare "
         "the column as string"],
    ),
    **{
        f"zero dates of {name}": (
            shape, ["column day: zero_date applies only to models of datastream_mysql, since no other source has "
                    "zero dates; remove it from its meta"],
        )
        for name, shape in {
            "PostgreSQL": thing(POSTGRESQL, columns=ZERO_DATE), "Spanner": thing(SPANNER, columns=ZERO_DATE),
            "an own SELECT": own(columns=ZERO_DATE),
        }.items()
    },
    "options of columns that are misspelt": (
        thing(columns={"id": "bigint", "a": {"data_type": "date", "meta": {"zero_dates": "null", "owner": "shop"}},
                       "b": {"data_type": "binary", "config": {"meta": {"Encoding": "hex", "rund": True}}}}),
        [f"column {name}: its meta has {option}, which is not an option of this package; write {meant}, or rename "
         "the entry if it is your own" for name, option, meant in (
             ("a", "zero_dates", "zero_date"), ("b", "Encoding", "encoding"), ("b", "rund", "round"))],
    ),
    "a rounding that is neither on nor off": (
        thing(columns={"id": "bigint", "ratio": {"data_type": "decimal(9,2)", "meta": {"round": "no"}}}),
        ["column ratio: round is 'no'; write true or false"],
    ),
    "kinds of records that are neither on nor off": (
        thing(meta={"partial_records": "", "row_ids": 0, "range_deletes": 0}),
        [f"meta {name}: '{value}' is neither true nor false; write one of them"
         for name, value in (("partial_records", ""), ("row_ids", 0), ("range_deletes", 0))],
    ),
    "no table": (
        thing(object=""),
        ["its source macro has no table; write table='shop.orders', or object='shop_orders' as in the records"],
    ),
    "an object and a table": (
        thing(arguments=", table='shop.orders'"), ["its source macro has both object and table; give only table"],
    ),
    "tables that are none": (
        thing(table=["orders", "a.b.c.d", "shop.", {"table": "orders"}]),
        [f"table '{name}' is not the name of a table; write schema and table (for MySQL, database and table) as "
         "'shop.orders', or, if a name contains a dot, as {'schema': 'shop', 'table': 'or.ders'}"
         for name in ("orders", "a.b.c.d", "shop.", {"table": "orders"})],
    ),
    "an event's id that is not the whole key": (
        thing(key=["_change_id", "id"]),
        ["unique_key _change_id: this column alone identifies an event; remove the other columns from the key"],
    ),
    "a history of events": (
        thing(key="_change_id", materialized="history"),
        ["unique_key _change_id: an event has no versions; make the model a current_state, or name the columns that "
         "identify a row"],
    ),
    "events of some columns": (
        thing(SPANNER, key="_change_id"),
        [(
            "unique_key _change_id: a record with only some columns is not a whole row; name the columns that "
            "identify a row"
        )],
    ),
    "events of snapshots": (
        thing(SNAPSHOTS, key="_change_id"),
        ["unique_key _change_id: all records of one snapshot have the same id; name the columns that identify a row"],
    ),
    "keys that are no columns": (
        thing(key=["ID", "number"]),
        [(
            f"unique_key {key}: the model declares no column of this name; add it to the model's YAML with exactly "
            "the same name"
        )
         for key in ("ID", "number")],
    ),
    "keys that cannot be compared": (
        thing(columns={"list": "array<int>", "pairs": "map<int,int>", "id": {"data_type": "bigint", **ROUND}},
              key=["list", "pairs", "id"]),
        ["unique_key list: a key cannot be of type array; use a scalar type",
         "unique_key pairs: a key cannot be of type map; use a scalar type",
         "unique_key id: after rounding, different rows could have the same key; declare a type that holds every "
         "digit, for example string"],
    ),
    "columns of a history's own": (
        thing(columns={**THINGS, "Valid_From": "date", "valid_to": "date", "IS_CURRENT": "int"},
              materialized="history"),
        [f"column {name}: {OF_HISTORY}" for name in ("Valid_From", "valid_to", "IS_CURRENT")],
    ),
    "a key of row ids that the source does not give": (
        thing(key="_row_id"),
        ["unique_key _row_id: the records of its source have no row ids; only Oracle's have. For a SELECT of your "
         "own with a column _row_id, set `meta: {row_ids: true}`"],
    ),
    "a row id that is not the whole key": (
        thing(ORACLE, key=["_row_id", "id"]),
        ["unique_key _row_id: this column alone identifies a row; remove the other columns from the key"],
    ),
    "a column where the source gives the row id": (
        thing(ORACLE, {**THINGS, "_ROW_ID": "string"}),
        ["column _ROW_ID: the source macro adds the address of a row under this name; rename the column"],
    ),
    "the same where the model takes no row ids": (
        thing(ORACLE, {**THINGS, "_row_id": "string"}, meta={"row_ids": False}),
        ["column _row_id: the source macro adds the address of a row under this name; rename the column"],
    ),
    "row ids of partial records": (
        thing(ORACLE, meta={"partial_records": True}),
        ["row_ids and partial_records cannot be combined; set `meta: {row_ids: false}` or `meta: "
         "{partial_records: false}`"],
    ),
    "cells of another key": (
        cells(key=["row_key", "family", "qualifier"]), [f"unique_key row_key, family, qualifier: {KEY_OF_A_CELL}"],
    ),
    "a column where the source gives the range": (
        own({**CELLS, "_Range": "string"}, CELL_KEY, meta={"range_deletes": True}),
        ["column _Range: the source macro adds the range of a delete under this name; rename the column"],
    ),
    "ranges of partial records": (
        own(CELLS, CELL_KEY, meta={"range_deletes": True, "partial_records": True}),
        ["range_deletes cannot be combined with partial_records or row_ids; set `meta: {partial_records: false}`"],
    ),
    "ranges beside row ids": (
        own(CELLS, CELL_KEY, meta={"range_deletes": True, "row_ids": True}),
        ["range_deletes cannot be combined with partial_records or row_ids; set `meta: {row_ids: false}`"],
    ),
    "columns that a cell has not": (
        cells({**CELLS, "row_key": "string", "temperature": "double"}, arguments=", garbage_collection='never'"),
        ["column row_key: its type is binary, but it is declared as string; declare `data_type: binary`",
         f"column temperature: a cell has no column of this name; use only {OF_A_CELL}", NEVER],
    ),
    "switches that are neither on nor off": (
        thing(meta={"fresh": "yes", "fold_unchanged": 1, "partial_records": 0, "row_ids": 0, "range_deletes": 0}),
        [f"meta {name}: '{said}' is neither true nor false; write one of them" for name, said in (
            ("fresh", "yes"), ("fold_unchanged", 1), ("partial_records", 0), ("row_ids", 0), ("range_deletes", 0),
        )],
    ),
    "a fresh history": (
        thing(meta={"fresh": True}, materialized="history"),
        ["meta fresh applies only to the materialization current_state, and this model is a history; remove it"],
    ),
    "a fresh current_view": (
        thing(meta={"fresh": True}, materialized="current_view"),
        ["meta fresh applies only to the materialization current_state, and this model is a current_view; remove it"],
    ),
    "a current_state that folds versions": (
        thing(meta={"fold_unchanged": False}),
        [(
            "meta fold_unchanged applies only to the materialization history, and this model is a current_state; "
            "remove it"
        )],
    ),
    "options outside of meta": (
        thing(config=dict.fromkeys(OPTIONS, True)),
        [f"config {name}: it is outside of meta, where it has no effect; write `meta={{'{name}': ...}}`"
         for name in OPTIONS],
    ),
    "masks that are none": (
        thing(columns={"id": "bigint", **{name: {"data_type": type_, "meta": said} for name, type_, said in (
            ("a", "string", {"mask": "md5"}), ("b", "bigint", {"mask": "sha256"}),
            ("c", "string", {"mask": "sha256", "encoding": "json"}), ("d", "int", {"mask": "drop", "round": True}),
            ("e", "string", {"mask": "sha256", "was": "f"}),
        )}}),
        ["column a: mask is 'md5'; write sha256 or drop, as the file of append.py --masks has it",
         "column b: what stands for a masked value is a text of hex digits, and this column is a bigint; declare "
         "`data_type: string`",
         *(f"column {name}: {option} says how a value is read, and a masked column has none; remove {option}"
           for name, option in (("c", "encoding"), ("d", "round"))),
         "column e: it has a mask, and its former names have none, so records with such a name would be in clear; "
         "remove was, and rebuild the table if the column was renamed"],
    ),
    "columns of the source macro without the mask": (
        thing(columns=MASKED_NAME, arguments=", columns=[{'name': 'id', 'data_type': 'bigint'}, "
                                             "{'name': 'name', 'data_type': 'string'}]"),
        ["column name: the model masks it by sha256, and the argument `columns` of the source macro does not; give the "
         "mask there too, or remove the argument"],
    ),
    "a key that is dropped": (
        thing(columns={"id": {"data_type": "bigint", "meta": {"mask": "drop"}}}),
        ["unique_key id: the mask drop leaves it out of every record, and a key cannot be NULL; mask it by sha256, "
         "which keeps keys apart"],
    ),
    **{
        f"a mask of {name}": (
            shape, ["column name: its meta has mask, and only models of files of Datastream and of snapshots can have "
                    "masks so far, whose records say what was masked; remove mask, and leave the column out at the "
                    "source"],
        )
        for name, shape in {
            "Spanner": thing(SPANNER, columns=MASKED_NAME), "an append table": thing(APPEND_TABLE, columns=MASKED_NAME),
            "an own SELECT": own(columns=MASKED_NAME),
        }.items()
    },
    "options of columns in the meta of the model": (
        thing(meta={"round": True, "zero_date": "null", "infinity_is_null": True, "mask": "drop",
                    "encoding": "its own"}),
        [f"meta {name}: it is an option of a column, and nothing reads it in the meta of a model; write it into the "
         "meta of the column" for name in ("round", "zero_date", "infinity_is_null", "mask")],
    ),
    "options that are misspelt": (
        thing(meta={"freshh": True, "Ignored-Columns": ["x"], "rowids": True, "base_snapshto": "a.b", "owner": "me",
                    "contains_pii": True, "fres": 1, "fress": 1, "refresh": 1}),
        [f"meta {said}: this package has no option of this name; write {meant}, or rename the entry if it is your own"
         for said, meant in {"freshh": "fresh", "Ignored-Columns": "ignored_columns", "rowids": "row_ids",
                             "base_snapshto": "base_snapshot", "fres": "fresh", "fress": "fresh"}.items()],
    ),
    **{
        f"a condition after its source macro, {number}": (
            thing(behind=behind),
            ["there is a `where` after its source macro, and a model must have all records of its table; remove the "
             "`where`, and filter rows in a view of your own"],
        )
        for number, behind in enumerate(("\nwhere id > 1", " WHERE true -- all", "\n-- new\nwhere 1 = 1\n"))
    },
    **{
        f"a {materialized} of change records of {source}": (
            thing(source, materialized=materialized),
            [f"materialized='{materialized}' would store every change record instead of the current rows; use "
             "current_state, history or current_view"],
        )
        for materialized, source in (("table", MYSQL), ("view", SPANNER), ("incremental", BIGTABLE))
    },
    "a base snapshot without a schema": (
        thing(meta={"base_snapshot": "kept"}), [(
            "meta base_snapshot: 'kept' is not the name of a table; write it as schema.table, or as "
            "catalog.schema.table"
        )],
    ),
    "a variant in a table of Iceberg's": (
        thing(columns={"doc": "variant", **THINGS}, file_format="iceberg"),
        [
            "column doc: Hive's metastore does not accept an Iceberg table with a variant; declare string, which "
            "holds the same JSON as text"
        ],
    ),
    "no buckets": (iceberg(buckets=0), ["meta buckets: '0' is not a number of buckets; write it as 16"]),
    "buckets of a boolean": (iceberg(buckets=True), [(
        "meta buckets: 'True' is not a number of buckets; write it as 16"
    )]),
    "buckets of a text": (iceberg(buckets="16"), ["meta buckets: '16' is not a number of buckets; write it as 16"]),
    "buckets of a view": (
        iceberg(materialized="current_view"),
        ["meta buckets applies only to base tables, and a current_view has no base table; remove it"],
    ),
    "buckets beside partitions": (
        iceberg(config={"partition_by": "name"}),
        ["meta buckets and partition_by cannot be combined; remove one of them"],
    ),
    **{
        f"buckets of a {type}": (
            iceberg({"ratio": type, **THINGS}, ["ratio", "id"]),
            [f"meta buckets: Iceberg cannot make buckets of a {type}, which is the type of the first key column, "
             "ratio; put another key column first"],
        )
        for type in ("boolean", "float", "double")
    },
    **{
        f"clustered by {by!r}": (
            clustered(by), [f"meta cluster_by: '{by}' is neither a column nor a list of columns; write it as `[id]`"]
        )
        for by in (True, 4, [], "", {"id": "asc"}, [4])
    },
    "clustered by five columns": (
        clustered(["id", "c2", "c3", "c4", "c5"], many(5)),
        ["meta cluster_by: it names 5 columns, and a table is clustered by four at most; name those by which queries "
         "find rows"],
    ),
    "clustered by columns that are none, or stand twice": (
        clustered(["id", "ID", "nme", "_change_batch", "id"]),
        ["meta cluster_by: it names 5 columns, and a table is clustered by four at most; name those by which queries "
         "find rows",
         *(f"meta cluster_by: the model declares no column {name}; write the name exactly as in the model's YAML"
           for name in ("ID", "nme", "_change_batch")),
         "meta cluster_by: it names id twice; name it once"],
    ),
    **{
        f"clustered by a column of {type}, {file_format}": (
            clustered(["id", "x"], {**THINGS, "x": type}, file_format=file_format),
            [f"meta cluster_by: a table cannot be clustered by a column of type {type.partition('<')[0]}, as x is; "
             "name another column"],
        )
        for type, file_format in (
            ("boolean", "delta"), ("binary", "delta"), ("variant", "delta"), ("array<int>", "delta"),
            ("map<string,int>", "delta"), ("boolean", "iceberg"), ("binary", "iceberg"),
        )
    },
    **{
        f"clustered by a column without bounds, {file_format}": (
            clustered([f"c{first + 1}", f"c{first}"], many(first + 1), file_format=file_format),
            [f"meta cluster_by: {file_format.capitalize()} gathers bounds of the first {first} columns of a table, and "
             f"c{first + 1} is column {first + 1}; declare it further ahead, or name another column"],
        )
        for file_format, first in (("delta", 32), ("iceberg", 100))
    },
    "a clustered view": (
        clustered("id", materialized="current_view"),
        ["meta cluster_by applies only to base tables, and a current_view has no base table; remove it"],
    ),
    "clustered beside partitions": (
        clustered("id", config={"partition_by": "name"}),
        ["meta cluster_by and partition_by cannot be combined; remove one of them"],
    ),
    "clustered beside buckets": (
        clustered("id", meta={"buckets": 4}, file_format="iceberg"),
        ["meta cluster_by and buckets cannot be combined; remove one of them"],
    ),
    "ignored columns that are no list": (
        thing(meta={"ignored_columns": "note"}),
        ["meta ignored_columns: 'note' is not a list; write the column names as `[name, other_name]`"],
    ),
    "buckets of Delta": (
        thing(meta={"buckets": 4}),
        [(
            "meta buckets applies only to the file_format iceberg, and the file_format of this model is delta; "
            "remove it"
        )],
    ),
    "everything at once": (
        thing(key="number", meta={"fresh": "yes", "base_snapshot": "kept", "buckets": 0}),
        [(
            "unique_key number: the model declares no column of this name; add it to the model's YAML with exactly "
            "the same name"
        ),
         "meta fresh: 'yes' is neither true nor false; write one of them",
         "meta base_snapshot: 'kept' is not the name of a table; write it as schema.table, or as catalog.schema.table",
         "meta buckets: '0' is not a number of buckets; write it as 16",
         (
             "meta buckets applies only to the file_format iceberg, and the file_format of this model is delta; "
             "remove it"
         )],
    ),
}  # fmt: skip


def declared(name: str) -> Refusal:
    shape, says = DECLARED[name]
    return Refusal(run(lambda: Life(shape)), says)


@pytest.mark.parametrize("name", DECLARED)
def test_a_model_that_is_declared_wrongly_says_all_that_is_wrong(name: str) -> None:
    declared(name).check()


# --- what a model reads -----------------------------------------------------------------------------------------------

BESIDE = "{{ source('lake', 'others') }}"


def of_two(shape: Shape) -> Callable[[], Life]:
    """Return a model that reads a second table."""

    def living() -> Life:
        life = Life(shape)
        life.project.source("lake", "others")
        life.project.model("orders", f"{shape.sql} -- {{{{ source('lake', 'shop_changes') }}}} {BESIDE}", THINGS)
        life.warehouse.has("lake.others", reconcile__last_batch="9")
        return life

    return living


def without_staging(shape: Shape) -> Callable[[], Life]:
    def living() -> Life:
        life = Life(shape)
        life.warehouse.relations.clear()
        return life

    return living


def selecting(shape: Shape, *left_out: str) -> Callable[[], Life]:
    """Return a model of a SELECT without some columns."""

    def living() -> Life:
        life = Life(shape)
        types = life.warehouse.column_types
        for part, columns in types.items():
            types[part] = {name: type for name, type in columns.items() if name not in left_out}
        return life

    return living


def given(shape: Shape, relation: str) -> Callable[[], Life]:
    """Return a model whose source macro is given something else than a source."""

    def living() -> Life:
        life = Life(shape)
        life.project.model("orders", shape.sql.replace("source('lake', 'shop_changes')", relation), {}, config={})
        return life

    return living


def of_another_table(shape: Shape) -> Callable[[], Life]:
    """Return a model whose source macro is given a table that exists, and that append.py did not make."""

    def living() -> Life:
        life = Life(shape)
        life.warehouse.column_types["`shop_changes` where false"] = {"id": "bigint"}
        return life

    return living


NO_STAGING = [f"the staging table {STAGING} does not exist; create it with ingestion/append.py first"]
READS: dict[str, Refusal] = {
    **{
        f"a {materialized} before the first append": Refusal(
            run(without_staging(thing(materialized=materialized))), NO_STAGING
        )
        for materialized in ("current_state", "current_view", "history")
    },
    **{
        f"a {materialized} of a table that is no staging table": Refusal(
            run(of_another_table(thing(materialized=materialized))),
            [f"{STAGING} is not a staging table, since it has no columns `batch`, a bigint, and `record`; name the "
             "table that append.py fills, as source('lake', 'shop_changes')"],
        )
        for materialized in ("current_state", "current_view", "history")
    },
    **{
        f"{relation} in place of a source, of {source}": Refusal(
            run(given(thing(source), relation)),
            [f"its source macro reads {what}; write source('lake', 'shop_changes'), with the names of the staging "
             "table that a YAML file declares"],
        )
        for source in (MYSQL, SPANNER, BIGTABLE, SNAPSHOTS, APPEND_TABLE)
        for relation, what in (("'lake.shop_changes'", "the text 'lake.shop_changes', which is not a relation"),
                               ("shop_changes", "nothing that is a relation"))
    },
    "a source macro beside another table": Refusal(
        run(of_two(thing())),
        ["it reads 2 relations; a model with a source macro must read one staging table and nothing else"],
    ),
    "a SELECT of two staging tables": Refusal(
        run(of_two(own())),
        ["it reads 2 staging tables (lake.shop_changes, lake.others), and each has its own batch numbers; write one "
         "model for each staging table"],
    ),
    "a SELECT without columns": Refusal(
        run(selecting(own(), "_change_id", "_change_columns", "name")),
        ['its SELECT has no column _change_id; add it, see "Change records" in docs/design.md',
         'its SELECT has no column _change_columns; add it, see "Change records" in docs/design.md',
         "its SELECT has no column name, which its YAML declares; add it to the SELECT, or remove it from the YAML"],
    ),
    "a view of a SELECT without columns": Refusal(
        run(selecting(own(materialized="current_view"), "name")),
        ["its SELECT has no column name, which its YAML declares; add it to the SELECT, or remove it from the YAML"],
    ),
    "a SELECT without row ids": Refusal(
        run(selecting(own(meta={"row_ids": True}))),
        [(
            "its SELECT has no column _row_id, which `meta: {row_ids: true}` requires; add the column, or remove "
            "row_ids from meta"
        ),
],
    ),
    "a SELECT of rows with addresses without transactions": Refusal(
        run(selecting(own(meta={"row_ids": True}), "_change_transaction")),
        [(
            "its SELECT has no column _row_id, which `meta: {row_ids: true}` requires; add the column, or remove "
            "row_ids from meta"
        ),
         "its SELECT has no column _change_transaction, the transaction of a change; select it, or add `cast(null "
         "as string) as _change_transaction` if the source has no transactions"],
    ),
    "a SELECT without ranges": Refusal(
        run(selecting(own(CELLS, CELL_KEY, meta={"range_deletes": True}))),
        [(
            "its SELECT has no column _range, which `meta: {range_deletes: true}` requires; add the column, or "
            "remove range_deletes from meta"
        )],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_a_model_that_reads_what_it_cannot_says_what_to_read(name: str) -> None:
    READS[name].check()


@pytest.mark.parametrize("flags", [{}, {"full_refresh": True}, {"empty": True}])
def test_before_the_first_append_every_run_says_that_there_is_no_staging_table(flags: dict[str, bool]) -> None:
    Refusal(run(without_staging(thing()), **flags), NO_STAGING).check()


# --- a declaration that changed ---------------------------------------------------------------------------------------


def after(before: Shape, shape: Shape, staging: str = "shop_changes") -> Callable[[], Life]:
    """Return a model in a warehouse where another one had been built."""

    def living() -> Life:
        first, life = Life(before), Life(shape)
        first.statements("first run")
        for name, type in first.warehouse.relations.items():
            life.warehouse.relations[name] = type
            life.warehouse.properties[name] = first.warehouse.properties[name]
        for types in life.warehouse.column_types.values():
            assert isinstance(types, dict)
            types["_range"] = "struct<...>"
        life.project.source("lake", "others")
        life.warehouse.has("lake.others", reconcile__last_batch="9")
        life.project.model("orders", shape.sql.replace("shop_changes", staging), life.project.node("orders")["columns"])
        return life

    return living


ROUNDED = {"id": "bigint", "name": {"data_type": "decimal(9,2)", **ROUND}}
GENERATIONS = ", generations=['2026-11-01 00:00:00+00']"
SOURCES = "source macros, objects or generations"
CHANGED: dict[str, tuple[Shape, Shape, str]] = {
    "a column was added": (thing(), thing(columns={**THINGS, "size": "int"}), "columns"),
    "a column was renamed": (thing(), thing(columns={"id": "bigint", "title": "string"}), "columns"),
    "a column was removed": (thing(), thing(columns={"id": "bigint"}), "columns"),
    "a type was changed": (thing(), thing(columns={"id": "bigint", "name": "binary"}), "columns"),
    "bytes are read otherwise": (
        thing(columns={"id": "bigint", "name": "binary"}),
        thing(columns={"id": "bigint", "name": {"data_type": "binary", "meta": {"encoding": "base64"}}}), "columns",
    ),
    "infinity is NULL": (
        thing(columns={"id": "bigint", "name": "timestamp"}),
        thing(columns={"id": "bigint", "name": {"data_type": "timestamp", "meta": {"infinity_is_null": True}}}),
        "columns",
    ),
    "a zero date is NULL": (
        thing(columns={"id": "bigint", "name": "date"}),
        thing(columns={"id": "bigint", "name": {"data_type": "date", "meta": {"zero_date": "null"}}}), "columns",
    ),
    "a mask was added": (thing(columns={"id": "bigint", "name": "string"}), thing(columns=MASKED_NAME), "columns"),
    "another table": (thing(table="shop.orders"), thing(table=["shop.orders", "shop.orders_old"]), SOURCES),
    "digits were added": (
        thing(columns={"id": "bigint", "name": "decimal(9,2)"}),
        thing(columns={"id": "bigint", "name": "decimal(9,3)"}), "columns",
    ),
    "it rounds": (thing(columns={"id": "bigint", "name": "decimal(9,2)"}), thing(columns=ROUNDED), "columns"),
    "the key was changed": (thing(), thing(key=["id", "name"]), "unique_key"),
    "a generation was added": (thing(), thing(arguments=GENERATIONS), SOURCES),
    "a generation was moved": (
        thing(arguments=GENERATIONS), thing(arguments=GENERATIONS.replace("00:00:00", "00:00:01")), SOURCES,
    ),
    "another object": (thing(), thing(object="shop.parts"), SOURCES),
    "another source": (thing(), thing(POSTGRESQL), f"{SOURCES} and other form of the order"),
    "what is collected as garbage is kept": (cells(), cells(arguments=", garbage_collection='keep'"), SOURCES),
    "partial records": (own(), own(meta={"partial_records": True}), "partial_records"),
    "no partial records": (
        thing(SPANNER), thing(SPANNER, meta={"partial_records": False}), "partial_records",
    ),
    "row ids": (thing(ORACLE, meta={"row_ids": False}), thing(ORACLE), "row_ids"),
    "range deletes": (
        own(CELLS, CELL_KEY), own(CELLS, CELL_KEY, meta={"range_deletes": True}), "range_deletes",
    ),
    "a history": (thing(), thing(materialized="history"), "materialization"),
    "no history": (thing(materialized="history"), thing(), "materialization"),
    "several things": (
        thing(), thing(POSTGRESQL, {**THINGS, "size": "int"}, ["size"], materialized="history"),
        f"columns and other unique_key and other {SOURCES} and other form of the order and other materialization",
    ),
}  # fmt: skip
REBUILD = "rebuild it with `dbt run --full-refresh --select orders`"


# With a removed column the base table goes on: see tests/render/test_changed_columns.py.
CHANGES_REFUSED = [name for name in CHANGED if name != "a column was removed"]
RETRIED = "with which `dbt run --select orders --vars '{retry_quarantine: true}'` goes on"
FEWER = "which holds fewer digits on one side of the point"
WHY = {
    "a column was added": ", or write `meta: {added: true}` for the new column size",
    "a column was renamed": " (column title is new, and other columns have changed too: make one change, run the "
    "model, and then make the other)",
    "a type was changed": " (column name was string and is binary, which is not the same type with more room)",
    "bytes are read otherwise": " (column name has another encoding)",
    "a mask was added": " (column name has another mask)",
    "infinity is NULL": f" (column name has another infinity_is_null, {RETRIED})",
    "a zero date is NULL": f" (column name has another zero_date, {RETRIED})",
    "digits were added": f" (column name was decimal(9,2) and is decimal(9,3), {FEWER})",
    "it rounds": f" (column name has another round, {RETRIED})",
}


def changed(name: str, **flags: Any) -> Refusal:
    before, shape, what = CHANGED[name]
    says = f"demo.orders__base was built with other {what}; {REBUILD}{WHY.get(name, '')}"
    return Refusal(run(after(before, shape), **flags), [says])


Note = tuple[str, str, bool, bool, bool]
MISSING: Note = ("column", "name", True, True, False)
NEVER_HAD = (
    "no record has the declared column name{}; correct the name in the YAML, or remove the column, or, if records "
    "with it will arrive later, add it to `meta: {{ignored_columns: [...]}}`"
)


def noted(*notes: Note) -> Callable[[], Life]:
    def life() -> Life:
        living = Life(thing())
        living.warehouse.notes = notes
        return living

    return life


NOTED: dict[str, Refusal] = {
    "a column that no record has": Refusal(run(noted(MISSING)), [NEVER_HAD.format("")]),
    "a column of another name": Refusal(
        run(noted(("column", "nmae", False, False, True), MISSING)),
        [NEVER_HAD.format("; columns of the records that are not declared: nmae")],
    ),
}


@pytest.mark.parametrize("name", NOTED)
def test_a_declared_column_that_no_record_has_ever_had_is_refused(name: str) -> None:
    NOTED[name].check()


@pytest.mark.parametrize("flags", [{}, {"empty": True}], ids=["run", "empty run"])
@pytest.mark.parametrize("name", CHANGES_REFUSED)
def test_a_changed_declaration_is_refused(name: str, flags: dict[str, bool]) -> None:
    changed(name, **flags).check()


@pytest.mark.parametrize("name", CHANGED)
def test_a_full_refresh_builds_the_base_table_as_it_is_declared_now(name: str) -> None:
    before, shape, _ = CHANGED[name]
    life = after(before, shape)()
    built = life.warehouse.properties["demo.orders__base"]["reconcile.declaration"]
    life.project.run("orders", full_refresh=True)
    (made,) = (sql for sql in life.warehouse.statements if "create or replace table `demo`.`orders__base`" in sql)
    assert all(f"`{column}`" in made for column in shape.columns)
    assert life.warehouse.properties["demo.orders__base"]["reconcile.declaration"] != built
    life.project.run("orders")


def test_a_rebuild_knows_the_tables_of_its_own_records_and_no_others() -> None:
    """Else a second table of the object would later be folded in, or a staging table made anew be refused for ever."""
    for table in ("a.b_c", "a_b.c"):
        life = built(thing(object="a_b_c"), tables=(table,))()
        base = life.warehouse.properties["demo.orders__base"]
        base["reconcile.tables"] = b"a.b_c".hex().upper()
        life.project.run("orders", full_refresh=True)
        base = life.warehouse.properties["demo.orders__base"]
        assert base["reconcile.tables"] == table.encode().hex().upper()


def test_a_model_of_another_staging_table_is_refused_until_it_is_rebuilt() -> None:
    Refusal(
        run(after(thing(), thing(), staging="others")),
        [f"demo.orders__base was built with other staging table; {REBUILD}"],
    ).check()


def test_a_base_table_of_another_form_of_the_order_is_refused_until_it_is_rebuilt() -> None:
    def living() -> Life:
        life = Life(thing())
        life.project.run("orders")
        form = {"macros/model/model_settings.sql": {"| list else 1) }}": "| list else 3) }}"}}
        later = Life(thing(), replaced=form)
        later.warehouse.relations, later.warehouse.properties = life.warehouse.relations, life.warehouse.properties
        return later

    Refusal(run(living), [f"demo.orders__base was built with other form of the order; {REBUILD}"]).check()


def test_another_order_of_columns_or_of_keys_or_spelling_of_types_is_no_change() -> None:
    columns = {"id": "bigint", "name": "string", "at": "decimal(10,0)"}
    again = {"at": "DEC", "name": "STRING", "id": "long"}
    life = after(thing(columns=columns, key=["id", "name"]), thing(columns=again, key=["name", "id"]))()
    life.project.run("orders")
    (view,) = (sql for sql in life.warehouse.statements if "view `demo`.`orders`" in sql)
    assert view.split("\nselect\n")[1].split("from")[0].split() == ["`at`,", "`name`,", "`id`"]


# --- what stands in the way -------------------------------------------------------------------------------------------

SOMEBODY = "that this package did not create, so it is not replaced; drop or rename it, or give the model an alias"


def beside(shape: Shape, relation: str, type: str = "table", **properties: str) -> Callable[[], Life]:
    """Return a model where somebody has made a relation."""

    def living() -> Life:
        life = Life(shape)
        life.warehouse.has(relation, type, **properties)
        return life

    return living


THEIRS = {
    "current_state": ["", "__base", "__changes", "__quarantine"],
    "history": ["", "__base", "__changes", "__quarantine"],
    # Of a base table it has no use.
    "current_view": ["", "__changes", "__quarantine"],
}


def theirs() -> dict[str, Refusal]:
    found = {}
    for materialized, parts in THEIRS.items():
        for part in parts:
            for type in ("table", "view"):
                act = run(beside(thing(materialized=materialized), f"demo.orders{part}", type))
                says = [f"demo.orders{part} exists and is a {type} {SOMEBODY}"]
                found[f"{materialized} orders{part} {type}"] = Refusal(act, says)
    for shape, part in ((thing(ORACLE), "__row_deletes"), (cells(), "__range_deletes")):
        says = [f"demo.orders{part} exists and is a table {SOMEBODY}"]
        found[f"orders{part}"] = Refusal(run(beside(shape, f"demo.orders{part}")), says)
    return found


def left(before: str, materialized: str, *drops: str) -> Refusal:
    says = f"its relations of another materialization still exist; before it can be built as a {materialized}"
    act = run(after(thing(materialized=before), thing(materialized=materialized)))
    return Refusal(act, [f"{says}, run `{'; '.join(drops)}`"])


IN_THE_WAY: dict[str, Refusal] = {
    **theirs(),
    "what another materialization left: a current_state": left(
        "current_state", "current_view", "drop table demo.orders__base", "drop table demo.orders__quarantine"
    ),
    "what another materialization left: a history": left(
        "history", "current_view", "drop table demo.orders__base", "drop table demo.orders__quarantine"
    ),
    **{
        f"what another materialization left: {kind}": Refusal(
            run(beside(shape, f"demo.orders__{kind}", **{f"reconcile__{kind}": "demo.orders"})),
            [
                "its relations of another materialization still exist; before it can be built as a current_view, "
                f"run `drop table demo.orders__{kind}`"
            ],
        )
        for kind, shape in (
            ("row_deletes", thing(ORACLE, materialized="current_view")),
            ("range_deletes", cells(materialized="current_view")),
        )
    },
    "what another materialization left: a view, of a current_state": left(
        "current_view", "current_state", "drop view demo.orders__quarantine"
    ),
    "what another materialization left: a view, of a history": left(
        "current_view", "history", "drop view demo.orders__quarantine"
    ),
}


@pytest.mark.parametrize("name", IN_THE_WAY)
def test_what_somebody_else_or_another_materialization_made_is_not_replaced(name: str) -> None:
    IN_THE_WAY[name].check()


@pytest.mark.parametrize("part", THEIRS["current_state"])
def test_a_full_refresh_does_not_replace_it_either(part: str) -> None:
    says = [f"demo.orders{part} exists and is a table {SOMEBODY}"]
    Refusal(run(beside(thing(), f"demo.orders{part}"), full_refresh=True), says).check()


def test_row_deletes_of_somebody_else_do_not_matter_to_a_model_without_any() -> None:
    beside(thing(ORACLE, meta={"row_ids": False}), "demo.orders__row_deletes")().project.run("orders")


@pytest.mark.parametrize("before", ["current_state", "history", "current_view"])
def test_another_materialization_begins_where_nothing_is_left_of_the_one_before(before: str) -> None:
    materialized = "current_state" if before == "current_view" else "current_view"
    life = after(thing(materialized=before), thing(materialized=materialized))()
    for part in ("base", "quarantine"):
        life.warehouse.relations.pop(f"demo.orders__{part}", None)
    life.project.run("orders")
    made = "table" if materialized == "current_state" else "view"
    assert life.warehouse.relations["demo.orders__quarantine"] == made
    assert ("demo.orders__base" in life.warehouse.relations) == (made == "table")


# --- staging that is not what it was ----------------------------------------------------------------------------------


def built(shape: Shape, **warehouse: Any) -> Callable[[], Life]:
    """Return a model that was run once, where since then the warehouse answers this."""

    def living() -> Life:
        life = Life(shape)
        life.statements("first run")
        for name, value in warehouse.items():
            assert hasattr(life.warehouse, name)
            setattr(life.warehouse, name, value)
        return life

    return living


MADE_ANEW = (
    f"batch 3 was applied to demo.orders__base, but the last batch of {STAGING} is 1: the staging table was restored "
    "or created again; rebuild the model with `dbt run --full-refresh --select orders`"
)
PURGED = f"the records of shop.orders up to batch 2 were purged from {STAGING}"
NO_RECORD = (
    f"batch 3 was applied to demo.orders__base, but {STAGING} no longer has a record of this batch: the staging "
    "table was restored or created again; restore its newest version, or rebuild the model with `dbt run "
    "--full-refresh --select orders` when the staging table has all records again"
)
ANOTHER_BATCH = (
    f"batch 3 was applied to demo.orders__base, but {STAGING} now has another batch under this number: "
    "the staging table was restored or created again; rebuild the model with `dbt run --full-refresh --select "
    "orders` when the staging table has all records again"
)
LACKS = (
    f"demo.orders__base lacks batch {{}}, and {PURGED}; restore a newer version of the base table, or declare a base "
    "snapshot and rebuild with `dbt run --full-refresh --select orders`"
)
UNDECLARED = (
    f"{PURGED}, but a rebuild needs them; declare a copy of the base table to which they had been applied, as `meta: "
    "{base_snapshot: schema.table}`"
)
NOT_TOLD = f"{PURGED}, so the rows as of {{}} cannot be built; set as_of to batch 2 or a later batch"
KEYLESS = (
    "and a base snapshot does not show which of its rows a delete without a key has removed; "
    "rebuild the model where its base table exists"
)
KEPT = "its base snapshot lake.orders_kept"
AGAIN_WITH_TYPE = "create the copy again with this type"
SNAPSHOT = {"base_snapshot": "lake.orders_kept"}


ADDRESSES = {
    "_change_transaction": "string",
    "_change_is_insert": "boolean",
    "_change_contenders": "array<struct<address:string,sequence:string,time:timestamp,batch:bigint>>",
    # Of any type: Spark shortens the names of types with many fields.
    "_change_displaced": "array<struct<... 7 more fields>>",
}


def purged(
    shape: Shape,
    *,
    kept: bool = True,
    columns: dict[str, str | None] | None = None,
    built_with: str = "{}",
    base_batch: int = 0,
    of_batch: str | None = None,
    applied_at_purge: int | None = 0,
) -> Callable[[], Life]:
    """Return a model whose staging table was purged up to batch 2; `columns`: other types of those that were kept.

    `of_batch`: the batch that the copy says it has; `applied_at_purge`: see the recorder.
    """

    def living() -> Life:
        life = Life(shape)
        warehouse = life.warehouse
        warehouse.purges, warehouse.base_batch = {shape.object: 2, "shop.others": 9}, base_batch
        warehouse.applied_at_purge = applied_at_purge
        if kept:
            said = {} if of_batch is None else {"reconcile__base_snapshot": of_batch}
            warehouse.has("lake.orders_kept", reconcile__declaration=built_with, **said)
        there = {**warehouse.column_types["orders_kept"], **(columns or {})}
        warehouse.column_types["orders_kept"] = {name: type for name, type in there.items() if type}
        return life

    return living


def with_snapshot(**said: Any) -> Shape:
    return thing(meta=SNAPSHOT, **said)


def refreshed_addresses(deletes: int = 0) -> Life:
    """Return a model of rows with addresses that is built, so that its deletes without a key are there."""
    life = purged(thing(ORACLE, meta=SNAPSHOT), columns={"_row_id": "string", **ADDRESSES})()
    purges, life.warehouse.purges = life.warehouse.purges, {}
    life.warehouse.keyless_deletes = deletes
    life.project.run("orders")
    life.warehouse.purges = purges
    return life


def lacking_deletes() -> Life:
    """Return such a model of which somebody has restored the table of deletes."""
    life = refreshed_addresses(deletes=1)
    life.warehouse.properties["lake.orders_kept"]["reconcile.base_snapshot"] = "2"
    life.warehouse.ledger, life.warehouse.ledger_deletes, life.warehouse.deletes_batch = (3, 3), 3, 2
    return life


def staged_again(shape: Shape, **said: str) -> Callable[[], Life]:
    """Return a model of which staging has records of purged batches. `said`: properties of staging."""

    def living() -> Life:
        life = purged(shape)()
        life.warehouse.left = (("shop.orders", 2),)
        life.warehouse.properties[STAGING].update(said)
        return life

    return living


def copied_with_others() -> Life:
    """Return a model whose copy has a row of which staging has no record."""
    life = purged(with_snapshot(), base_batch=3)()
    life.warehouse.of_others = (1, 3)
    return life


def deletes_set_back_and_gone() -> Life:
    """Return a model whose table of deletes without a key was restored, and of whose later batches records are gone."""
    life = Life(thing(ORACLE))
    life.warehouse.keyless_deletes = 1
    life.statements("first run")
    w = life.warehouse
    w.staged, w.ledger, w.base_batch, w.ledger_deletes, w.deletes_batch = 5, (5, 5), 5, 5, 3
    w.lost = ((4, 5, 100, 90),)
    return life


def named_in_another_case() -> Life:
    life = Life(thing())
    life.project.model("others", thing(config={"alias": "Orders"}).sql, THINGS)
    return life


def quarantine_after_purge(found: int | None) -> Life:
    """Return a model whose copy expects two quarantined records, of which the quarantine has some; None without one."""
    life = with_kept_copy(thing(), reconcile__base_snapshot="2", reconcile__quarantined="2 2")
    if found is not None:
        life.warehouse.has("demo.orders__quarantine", reconcile__quarantine="true")
    life.warehouse.answers["`orders__quarantine` where _change_batch <= 2"] = {"count": found}
    return life


OF_OTHERS = (
    "demo.orders__base has 2 rows of batch 3 or later without a record in lake.shop_changes: a run of this model ended "
    "before it could write what it had applied, and the staging table was restored or created again since; rebuild the "
    "model with `dbt run --full-refresh --select orders` when the staging table has all records again"
)
AGAIN = (
    f"{STAGING} has records of shop.orders up to batch 2, which count as purged, and a rebuild would not read them; "
)

REPLACED = (
    f"{KEPT} has records up to batch 3, and {STAGING} no longer has this batch, or has another one under this number: "
    "the staging table was restored or created again; restore the newest version of the staging table, or name an "
    "earlier copy"
)
LATER_COPY = "name a later copy, or remove base_snapshot from its meta if ingestion/maintain.py has kept a copy"


@pytest.mark.parametrize("said", ["keep", "apply"])
def test_what_is_collected_as_garbage_may_be_kept_or_applied(said: str) -> None:
    life = Life(cells(arguments=f", garbage_collection='{said}'"))
    life.statements("first run")


def test_a_rebuild_from_a_copy_keeps_the_deletes_without_a_key() -> None:
    life = refreshed_addresses(deletes=1)
    life.warehouse.properties["lake.orders_kept"]["reconcile.base_snapshot"] = "2"
    life.project.run("orders", full_refresh=True)
    sent = "".join(life.warehouse.statements)
    assert sent.count("create or replace table `demo`.`orders__row_deletes`") == 1, "the first run alone makes it"
    assert "merge into `demo`.`orders__row_deletes`" in sent


def test_deletes_without_a_key_are_added_to_the_table_that_the_run_has_seen() -> None:
    """It may be restored while the run is under way, and then lacks the deletes of before."""
    life = Life(thing(ORACLE))
    life.warehouse.keyless_deletes = 1
    life.statements("first run")
    life._increment()
    life.warehouse.ledger_deletes = life.warehouse.deletes_batch = 2
    life.project.run("orders")
    (merge,) = (sql for sql in life.warehouse.statements if sql.startswith("merge into `demo`.`orders__row_deletes`"))
    records, _ = merge.split("group by")
    assert "(select count(*) from `demo`.`orders__row_deletes` where _change_batch = 2) > 0" in records
    *_, ledger = (sql for sql in life.warehouse.statements if sql.startswith("insert into `demo`.`reconcile_ledger`"))
    assert "    2 as deletes_batch," in ledger


def test_a_merge_of_iceberg_always_has_an_update_so_that_two_at_once_conflict() -> None:
    for materialized in ("current_state", "history"):
        life = built(thing(materialized=materialized, file_format="iceberg"))()
        life._increment()
        life.warehouse.counts |= {"merged": 5, "new_keys": 5}
        life.project.run("orders")
        (merge,) = (sql for sql in life.warehouse.statements if sql.startswith("merge into `demo`.`orders__base`"))
        assert "when matched then update set" in merge or "when matched and" in merge, materialized


def weaker() -> Life:
    """Return a model on Iceberg with news, whose base table has a weaker level of isolation than it was made with."""
    life = built(thing(file_format="iceberg"))()
    life._increment()
    life.warehouse.properties["demo.orders__base"]["write.merge.isolation-level"] = "snapshot"
    return life


def quarantine_of(**columns: str) -> Callable[[], Life]:
    """Return a model with news, of which a record is quarantined, and whose quarantine has other columns."""

    def living() -> Life:
        life = built(thing())()
        life._increment()
        life.warehouse.column_types["__quarantine` where false"] = columns
        return life

    return living


def rolled_back_meanwhile(full_refresh: bool) -> None:
    """Run a model with a marked range, or a rebuild; the base table is rolled back before that is in the ledger."""
    life = built(thing(materialized="history", file_format="iceberg"))()
    life._increment()
    life.warehouse.counts |= {"base_batch": 3}
    life.warehouse.answers["as ancestors,"] = {"snapshots": 1, "ancestors": 0, "number": 9}
    life.project.run("orders", full_refresh=full_refresh)


def copy_of(appended_at: int | None) -> Callable[[], Life]:
    """Return a model whose copy has records up to batch 3, and what staging says of that batch now."""

    def living() -> Life:
        life = purged(with_snapshot(), of_batch="2")()
        life.warehouse.purges = {life.shape.object: 2}
        life.warehouse.properties["lake.orders_kept"]["reconcile.copied_from"] = "3 41"
        life.warehouse.appended_at[3] = appended_at
        return life

    return living


def rolled_back(ancestors: int) -> Callable[[], Life]:
    """Return a model whose copy on Iceberg was set back, which leaves the property that says which batch it has."""

    def living() -> Life:
        columns = {"_deleted": None, "_change_deleted": "boolean"}
        life = purged(with_snapshot(file_format="iceberg"), columns=columns, of_batch="2")()
        life.warehouse.properties["lake.orders_kept"]["reconcile.declared_in"] = "41 3"
        life.warehouse.answers["as ancestors,"] = {"snapshots": 1, "ancestors": ancestors, "number": 9}
        return life

    return living


def purged_meanwhile(before: str = "cache table reconcile_changes", **said: Any) -> Callable[[], Life]:
    """Return a model whose records are purged up to batch 3 just before a statement, by which a run reads them."""

    def living() -> Life:
        life = Life(thing(**said))
        query = life.warehouse.query

        def meanwhile(sql: str) -> Any:
            if sql.startswith(before):
                mark = f"reconcile.purged.{hashlib.md5(b'shop.orders').hexdigest()}"
                life.warehouse.properties[STAGING][mark] = "3"
            return query(sql)

        life.project.context["run_query"] = meanwhile
        return life

    return living


def without(end: str, shape: Shape) -> Callable[[], Life]:
    """Return a model of which somebody has dropped a table; it had deletes without keys, if its source writes them."""

    def living() -> Life:
        life = Life(shape)
        life.statements("first run")
        life.statements("increment")
        life.warehouse.delivered, life.warehouse.ledger, life.warehouse.base_batch = 0, (5, 5), 5
        del life.warehouse.relations[f"demo.orders{end}"]
        return life

    return living


def of_tables(*names: str, known: str | None = None, says: str | None = None) -> Refusal:
    """Refuse that the records of one object are of these tables; `known`: the one that came in an earlier run."""

    def living() -> Life:
        life = built(thing(object="a_b_c"), staged=4, ledger=(3, 3), base_batch=3)()
        life.warehouse.tables = tuple(name for name in names if name != known)
        if known:
            life.warehouse.properties["demo.orders__base"]["reconcile.tables"] = known.encode().hex().upper()
        return life

    return Refusal(
        run(living),
        [f"the records of a_b_c are of several tables, {', '.join(names)}, which have the same object name; name the "
         f"table that the model reads, for example table='{says or names[0]}'"],
    )  # fmt: skip


def spelled(*objects: str, **said: Any) -> Callable[[], Life]:
    """Return a model that finds no record, where staging has those of these objects."""

    def living() -> Life:
        life = Life(thing(**said))
        life.warehouse.objects, life.warehouse.delivered = objects, 0
        life.project.model("others", thing(object="shop.order").sql, THINGS)
        return life

    return living


OTHER_SPELLING = (
    "no record of lake.shop_changes has the object {}, and no model reads {}, which has records; write the name "
    "exactly as the records have it"
)


def of_another_source(**said: Any) -> Callable[[], Life]:
    """Return a model whose macro reads none of its records."""

    def living() -> Life:
        life = Life(thing(ORACLE, **said))
        life.warehouse.meant = "datastream_mysql"
        return life

    return living


def in_clear(number: int, **said: Any) -> Callable[[], Life]:
    """Return a model with a mask, and staging in which so many of its records were not masked."""

    def living() -> Life:
        life = Life(thing(POSTGRESQL, MASKED_NAME, **said))
        life.warehouse.unmasked = number
        return life

    return living


def copied_in_clear() -> Life:
    life = Life(thing(POSTGRESQL, MASKED_NAME, meta={"base_snapshot": "lake.orders_kept"}))
    life._purge()
    return life


def of_spanner() -> Life:
    life = spelled("shop.orders")()
    life.warehouse.source = "spanner"
    return life


def numbers_after_a_purge(numbered: str) -> Callable[[], Life]:
    """Staging that is purged of all that was applied, up to batch 3, and whose job has given out so many numbers."""

    def living() -> Life:
        life = built(thing(), staged=1, ledger=(3, 3), base_batch=3, purges={"shop.orders": 3})()
        life.warehouse.has(STAGING, reconcile__last_batch=numbered)
        return life

    return living


def declared_as(**said: str) -> str:
    """Return the declaration of a model that is built, with other aspects."""
    life = Life(thing())
    life.project.run("orders")
    declaration = json.loads(life.warehouse.properties["demo.orders__base"]["reconcile.declaration"])
    return json.dumps({**declaration, **said})


def unknown_to_the_purge(mark: int, **said: Any) -> Callable[[], Life]:
    """Return a model whose ledger ends with batch 3, of whose object records were purged: the last was of `mark`."""

    def living() -> Life:
        life = built(thing(**said), staged=9, ledger=(3, 3), base_batch=3)()
        life.warehouse.has(
            STAGING, reconcile__last_batch="9",
            **{f"reconcile__purged__{hashlib.md5(name.encode()).hexdigest()}": str(batch)
               for name, batch in (("shop.orders", mark), ("shop.others", 8))},
        )  # fmt: skip
        return life

    return living


STAGED: dict[str, Refusal] = {
    **{
        f"of another source, and a {materialized} is built": Refusal(
            run(of_another_source(materialized=materialized)),
            ["the source macro of the model can read no record of shop.orders in lake.shop_changes; the macro that "
             "fits is datastream_mysql"],
        )
        for materialized in ("current_state", "history", "current_view")
    },
    **{
        f"in clear, and a {materialized} with a mask is built": Refusal(
            run(in_clear(number, materialized=materialized)),
            [f"the model masks name, and {records} of shop.orders in lake.shop_changes, the first in batch 2, {were} "
             "staged without these masks, so nothing was built; stage the records again with --masks, into a new "
             "staging table, and drop lake.shop_changes"],
        )
        for materialized, number, records, were in (
            ("current_state", 1, "1 record", "was"), ("history", 7, "7 records", "were"),
            ("current_view", 7, "7 records", "were"))
    },
    "purged, and the copy may hold values in clear": Refusal(
        run(copied_in_clear),
        ["nothing shows that its base snapshot lake.orders_kept was built with the masks of the model, so it may hold "
         "values of name in clear; name a copy that ingestion/maintain.py made of a base table with these columns and "
         "masks, or stage all records again with --masks, into a new staging table"],
    ),
    "of another source without a record of the object": Refusal(
        run(of_spanner),
        ["the records of lake.shop_changes are of the source spanner, and the source macro of the model cannot read "
         "them; the macro that fits is spanner_change_stream"],
    ),
    "that has its object in capitals": Refusal(
        run(spelled("shop.lines", "SHOP.ORDERS")), [OTHER_SPELLING.format("shop.orders", "SHOP.ORDERS")]
    ),
    "that has its object with another sign": Refusal(
        run(spelled("shop_orders")), [OTHER_SPELLING.format("shop.orders", "shop_orders")]
    ),
    "that has the object of its table misspelt": Refusal(
        run(spelled("shop_ordres", table="shop.orders")), [OTHER_SPELLING.format("shop_orders", "shop_ordres")]
    ),
    "of two tables": of_tables("a.b_c", "a_b.c"),
    "of one table in two databases": of_tables("one.a.b_c", "two.a.b_c", says="a.b_c"),
    "of another table than before": of_tables("a.b_c", "a_b.c", known="a_b.c"),
    "made anew": Refusal(run(built(thing(), staged=1, ledger=(3, 3), base_batch=3)), [MADE_ANEW]),
    "made anew, of a history": Refusal(
        run(built(thing(materialized="history"), staged=1, ledger=(3, 3), base_batch=3)), [MADE_ANEW]
    ),
    "made anew, as the base table knows": Refusal(run(built(thing(), staged=1, base_batch=3)), [MADE_ANEW]),
    "made anew with what the base table has, and without what left no trace in it": Refusal(
        run(built(thing(), staged=1, ledger=(3, 1), base_batch=1)), [MADE_ANEW]
    ),
    "made anew and still empty": Refusal(
        run(built(thing(), staged=None, ledger=(3, 3), base_batch=3)), [MADE_ANEW.replace("is 1", "is 0")]
    ),
    **{
        f"and the quarantine of a {materialized} is dropped": Refusal(
            run(without("__quarantine", thing(materialized=materialized))),
            ["the table demo.orders__quarantine does not exist, so the records that could not be applied are lost; "
             "rebuild the model with `dbt run --full-refresh --select orders`"],
        )
        for materialized in ("current_state", "history")
    },
    "and its base table lets two runs at once insert rows twice": Refusal(
        run(weaker),
        ["demo.orders__base has write.merge.isolation-level = 'snapshot', with which two runs at once insert rows "
         "twice; run `alter table demo.orders__base set tblproperties ('write.merge.isolation-level' = "
         "'serializable')`, and remove what overrides it in the session, "
         "spark.sql.catalog.<catalog>.table-override.write.merge.isolation-level"],
    ),
    "and the quarantine lacks a column": Refusal(
        run(quarantine_of(record="string", _change_error="string", _change_batch="bigint", origin="string")),
        ["the table demo.orders__quarantine has no column _change_id, so records that could not be applied cannot be "
         "kept there; restore its newest version, or rebuild the model with "
         "`dbt run --full-refresh --select orders`"],
    ),
    **{
        f"and the {kind} of {name} are dropped": Refusal(
            run(without(f"__{kind}", SHAPES[name])),
            [f"the table demo.orders__{kind} does not exist, so the deletes without a key are lost, and a record that "
             "comes late would bring its row back; rebuild the model with `dbt run --full-refresh --select orders`"],
        )
        for name, kind in (
            ("oracle", "row_deletes"), ("oracle_history", "row_deletes"), ("iceberg_oracle", "row_deletes"),
            ("bigtable", "range_deletes"),
        )
    },
    # No record shows which numbers were given; of new records under numbers of before nothing would be applied.
    "made anew after a purge": Refusal(
        run(numbers_after_a_purge("1")),
        ["batch 3 was applied to demo.orders__base and purged, and the numbers of lake.shop_changes are at 1: that "
         "table was restored or made anew, and its records would be taken for those that are gone; restore its newest "
         "version, or fill a staging table of another name and let the model read that one"],
    ),
    "made anew, and as far as before": Refusal(
        run(built(thing(), staged=4, ledger=(3, 3), base_batch=3, last_appended_at=7, appended_at={3: 8})),
        [ANOTHER_BATCH],
    ),
    "made anew, and as far as before, of a history": Refusal(
        run(built(thing(materialized="history"), staged=3, ledger=(3, 3), base_batch=3, last_appended_at=7)),
        [ANOTHER_BATCH],
    ),
    **{
        f"a base table that was restored, of whose batches records are gone: {name}": Refusal(
            run(built(shape, staged=5, ledger=(5, 5), base_batch=3, lost=((4, 5, 100, 90),))),
            [f"demo.orders__base was restored, and batches 4 to 5 are to be applied again, but {staging} has 90 of the "
             "100 records that were delivered in them; restore the records, or a newer version of that table, or "
             "build the table from what is left with `dbt run --full-refresh --select orders`"],
        )
        for name, shape, staging in (
            ("staging", thing(), STAGING), ("its own SELECT", SHAPES["own_select"], "its SELECT"),
        )
    },
    "restored, and further than before": Refusal(
        run(built(thing(), staged=5, ledger=(3, 3), base_batch=3, last_appended_at=7, appended_at={3: None})),
        [NO_RECORD],
    ),
    "restored, and purged before": Refusal(
        run(built(thing(), staged=5, ledger=(3, 3), base_batch=3, last_appended_at=7, appended_at={3: None},
                  purges={"shop.others": 2})),
        [NO_RECORD],
    ),
    **{
        f"filled with others after a run that died, of {name}": Refusal(
            run(built(shape, ledger=(2, 2), base_batch=3, of_others=(2, 3))), [OF_OTHERS]
        )
        for name, shape in (
            ("rows", thing()), ("a history", thing(materialized="history")), ("partial records", thing(SPANNER))
        )
    },
    "filled with others after a run that died, and purged with its rows": Refusal(
        run(copied_with_others),
        [f"{KEPT.removeprefix('its base snapshot ')} has 1 row of batch 3 or later without a record in {STAGING}: a "
         "run of this model ended before it could write what it had applied, and the staging table was restored or "
         "created again since; restore the newest version of the staging table, or name an earlier copy"],
    ),
    "purged, and restored": Refusal(
        run(staged_again(with_snapshot())),
        [f"{AGAIN}the staging table was restored or created again: restore its newest version, delete these records if "
         "they were applied before, or fill a staging table of another name and let the model read that one"],
    ),
    "purged by a job that died": Refusal(
        run(staged_again(with_snapshot(), **{"reconcile.purge": "{}"})),
        [f"{AGAIN}the purge has begun and not ended: run ingestion/maintain.py again, which ends it or takes it back"],
    ),
    "purged, and the deletes without a key restored": Refusal(
        run(lacking_deletes, full_refresh=True),
        ["the table demo.orders__row_deletes lacks deletes without a key up to batch 3, whose records were purged from "
         "lake.shop_changes, and a rebuild would bring deleted rows back; restore the newest version of the table"],
    ),
    "purged, and the base table restored": Refusal(
        run(built(thing(), ledger=(3, 3), base_batch=1, purges={"shop.orders": 2})), [LACKS.format(2)]
    ),
    "purged, and the base table never filled": Refusal(
        run(built(thing(), purges={"shop.orders": 2})), [LACKS.format(1)]
    ),
    **{
        f"purged, and a {materialized} is built": Refusal(run(purged(thing(materialized=materialized))), [UNDECLARED])
        for materialized in ("current_state", "history", "current_view")
    },
    "purged, and the model is rebuilt": Refusal(
        run(built(thing(), ledger=(3, 3), base_batch=3, purges={"shop.orders": 2}), full_refresh=True), [UNDECLARED]
    ),
    "purged, and an earlier batch is asked for": Refusal(
        run(purged(with_snapshot(as_of={"batch": 1}))), [NOT_TOLD.format("batch 1")]
    ),
    "purged, and a commit time is asked for": Refusal(
        run(purged(with_snapshot(as_of={"commit_time": "2026-11-21 12:00:00Z"}))),
        [NOT_TOLD.format("commit_time 2026-11-21 12:00:00Z")],
    ),
    "a base snapshot of later": Refusal(
        run(purged(with_snapshot(as_of={"batch": 2}), base_batch=3)),
        [f"{PURGED}, and {KEPT} is newer than batch 2; set as_of to a later batch, or declare an older copy"],
    ),
    "a base snapshot of rows with addresses by an earlier version": Refusal(
        run(purged(thing(ORACLE, meta=SNAPSHOT), columns={"_row_id": "string"})),
        [f"{KEPT} has no column {name}; name a copy of the whole base table, or add the column to a copy that an "
         "earlier version made" for name in ADDRESSES],
    ),
    "a base snapshot of rows with addresses": Refusal(
        run(purged(thing(ORACLE, meta=SNAPSHOT), columns={"_row_id": "string", **ADDRESSES})),
        [f"{PURGED}, {KEYLESS}, or set `meta: {{row_ids: false}}` if the source writes no such deletes"],
    ),
    "a base snapshot of cells": Refusal(
        run(purged(cells(meta=SNAPSHOT))), [f"{PURGED.replace('shop.orders', 'events')}, {KEYLESS}"]
    ),
    "no base snapshot": Refusal(
        run(purged(with_snapshot(), kept=False)),
        [f"{KEPT} does not exist, and {PURGED}; name a copy of the base table to which these records had been applied"],
    ),
    "no base snapshot of a view": Refusal(
        run(purged(with_snapshot(materialized="current_view"), kept=False)),
        [f"{KEPT} does not exist, and {PURGED}; name a copy of the base table to which these records had been applied"],
    ),
    "a base snapshot that is no copy": Refusal(
        run(purged(with_snapshot(), columns={"_change_sequence": None, "id": "bigint", "_change_batch": "int"})),
        [f"column `id` of {KEPT} has the type bigint, and the base table needs string; {AGAIN_WITH_TYPE}",
         f"{KEPT} has no column _change_sequence; name a copy of the whole base table",
         f"column _change_batch of {KEPT} has the type int, and the base table needs bigint; {AGAIN_WITH_TYPE}"],
    ),
    "a base snapshot that was rolled back": Refusal(
        run(rolled_back(ancestors=0)),
        [f"{KEPT} was set back to before it had batch 2, and {PURGED}; restore its newest version"],
    ),
    "a base snapshot of a batch that was replaced": Refusal(run(copy_of(42)), [REPLACED]),
    "a base snapshot of a batch that is gone": Refusal(run(copy_of(None)), [REPLACED]),
    "a base snapshot of before a column was renamed": Refusal(
        run(
            purged(
                with_snapshot(
                    columns={"id": "string", "note": {"data_type": "string", "config": {"meta": {"was": "text"}}}}
                ),
                columns={"note": "string", "text": "string"},
            )
        ),
        [f"{KEPT} has a column note and a column text, which is what note was called, so it was made before that "
         "column was renamed; name a copy that was made since"],
    ),
    **{
        f"a base table of Iceberg that is rolled back while it is {done}": Refusal(
            partial(rolled_back_meanwhile, done == "rebuilt"),
            ["demo.orders__base was rolled back while this run wrote it, and its properties stay; restore its newest "
             "version, and run the same command again"],
        )
        for done in ("written", "rebuilt")
    },
    "a base snapshot of a history, of the rows alone": Refusal(
        run(purged(with_snapshot(materialized="history"), columns={"valid_from": None})),
        [f"{KEPT} has no column valid_from; name a copy of the whole base table"],
    ),
    **{
        f"a base snapshot of before the purge, of a {materialized}": Refusal(
            run(purged(with_snapshot(materialized=materialized), of_batch="1")),
            [f"{KEPT} is of batch 1, and {PURGED}; {LATER_COPY}"],
        )
        for materialized in ("current_state", "history", "current_view")
    },
    "a base snapshot that ends too early, as the ledger shows": Refusal(
        run(purged(with_snapshot(), base_batch=1, applied_at_purge=2)),
        [f"{KEPT} ends with batch 1, and {PURGED} when the base table had batch 2; {LATER_COPY}"],
    ),
    "a base snapshot of which nothing shows what it has": Refusal(
        run(purged(with_snapshot(), base_batch=9, applied_at_purge=None)),
        [f"nothing shows that batch 2 had been applied to {KEPT}, and {PURGED}; if it had been, run `alter table "
         "lake.orders_kept set tblproperties ('reconcile.base_snapshot' = '2')`"],
    ),
    **{
        f"a base snapshot of which the ledger cannot show it: {name}": Refusal(
            run(living, full_refresh=True),
            [f"nothing shows that batch 2 had been applied to {KEPT}, and {PURGED}; if it had been, run `alter table "
             "lake.orders_kept set tblproperties ('reconcile.base_snapshot' = '2')`"],
        )
        for name, living in (
            ("a history", purged(with_snapshot(materialized="history"))), ("rows with addresses", refreshed_addresses)
        )
    },
    "a table of deletes that was restored, of whose batches records are gone": Refusal(
        run(deletes_set_back_and_gone),
        [f"demo.orders__row_deletes was restored, and batches 4 to 5 are to be applied again, but {STAGING} has 90 of "
         "the 100 records that were delivered in them; restore the records, or a newer version of that table, or "
         "build the table from what is left with `dbt run --full-refresh --select orders`"],
    ),
    "a table of another model's name in another case": Refusal(
        run(named_in_another_case),
        ["The models orders and others build demo.orders and demo.Orders, which Spark takes for one table; give one of "
         "them another name or alias."],
        SENTENCE,
    ),
    **{
        f"a quarantine that has {found} of two purged records": Refusal(
            run(partial(quarantine_after_purge, found)),
            [f"demo.orders__quarantine has {found or 0} of the 2 records up to batch 2 that could not be applied, and "
             f"{PURGED}, so nothing else has them; restore its newest version, or give them up with `alter table "
             f"demo.orders__snapshot set tblproperties ('reconcile.quarantined' = '2 {found or 0}')`"],
        )
        for found in (1, None)
    },
    "a base snapshot that is not finished": Refusal(
        run(purged(with_snapshot(), of_batch="")),
        [f"{KEPT} is not finished, and {PURGED}; run ingestion/maintain.py again, and then this command"],
    ),
    **{
        f"purged while a {materialized} is built": Refusal(
            run(purged_meanwhile(materialized=materialized)),
            [f"{PURGED.replace('batch 2', 'batch 3')} while this run read them; run the same command again, which "
             "begins with a base snapshot"],
        )
        for materialized in ("current_state", "history")
    },
    "a base snapshot of another model": Refusal(
        run(purged(with_snapshot(), built_with='{"unique_key": "1", "sources": "2", "sequence": "3", "columns": "4"}')),
        [f"{KEPT} was built with another {aspect}, so its rows cannot be compared with new records; "
         f"name a copy of a base table that has the {aspect} of the model"
         for aspect in ("sequence", "sources", "unique_key")],
    ),
    "a base snapshot with records that are read again, of other columns": Refusal(
        run(purged(with_snapshot(), base_batch=9, of_batch="2", built_with=declared_as(columns="4"))),
        [f"{PURGED}, and {KEPT} was made with other columns and has records up to batch 9, which would be read again "
         "and could lose to their own earlier form; name a copy of the base table as it was at batch 2"],
    ),
    "a base snapshot of a model of another staging table": Refusal(
        run(purged(with_snapshot(), built_with=declared_as(staging="lake.others"))),
        [f"{KEPT} was built with another staging, so its rows cannot be compared with new records; "
         "name a copy of a base table that has the staging of the model"],
    ),
    **{
        f"purged by somebody who did not know the {materialized}": Refusal(
            run(unknown_to_the_purge(4, materialized=materialized)),
            [LACKS.format(4).replace("batch 2 were", "batch 4 were")],
        )
        for materialized in ("current_state", "history")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", STAGED)
def test_staging_that_is_not_what_it_was_is_not_taken_for_it(name: str) -> None:
    STAGED[name].check()


@pytest.mark.parametrize(
    "living",
    [
        built(thing(), ledger=(3, 3), base_batch=3, purges={"shop.orders": 2}),
        # Another run may have applied what came after this run's cut; and what was purged is known by its number.
        built(thing(), staged=1, ledger=(3, 3), base_batch=3, purges={"shop.orders": 3}),
        built(thing(), staged=3, ledger=(3, 3), base_batch=1),
        built(own(), staged=1, ledger=(3, 3), base_batch=3),
        built(thing(), staged=4, ledger=(3, 3), base_batch=3, last_appended_at=7, appended_at={3: 7}),
        # Whatever the batch held was of other tables, and is purged.
        built(
            thing(),
            staged=4,
            ledger=(3, 3),
            base_batch=3,
            last_appended_at=7,
            appended_at={3: None},
            purges={"shop.others": 3},
        ),
        # The last batch had records of another table, which is purged; and so are all of this model's.
        built(thing(), staged=None, ledger=(3, 3), base_batch=3, purges={"shop.orders": 1, "shop.others": 3}),
        unknown_to_the_purge(3),
        unknown_to_the_purge(0),
        # A ledger of before the time was written down.
        built(thing(), staged=4, ledger=(3, 3), base_batch=3, last_appended_at=None, appended_at={3: 8}),
    ],
    ids=[
        "purged after it",
        "purged of everything",
        "restored",
        "of its own SELECT",
        "the same batch",
        "purged of another table",
        "purged until it was empty",
        "purged as far as it was applied",
        "a purge that was taken back",
        "an old ledger",
    ],
)
def test_increments_go_on_where_nothing_is_lost(living: Callable[[], Life]) -> None:
    living().project.run("orders")


def test_a_table_without_a_record_yet_is_no_mistake() -> None:
    """Neither what another model reads, nor what is another name, is meant."""
    life = spelled("shop.order", "shop.lines", "orders")()
    life.project.run("orders")
    (said,) = (line for line in life.project.logged if "no record of" in line)
    assert said == (
        "orders: no record of lake.shop_changes has the object shop.orders; shop.order has records, and another model "
        "reads them"
    )


def test_an_empty_run_of_a_restored_table_asks_for_no_records() -> None:
    life = built(thing(), staged=5, ledger=(5, 5), base_batch=3, lost=((4, 5, 100, 90),))()
    life.project.run("orders", empty=True)


def test_a_rebuild_says_which_records_staging_lacks() -> None:
    lost = {"staged": 5, "ledger": (5, 5), "base_batch": 5, "lost": ((4, 5, 100, 90),)}
    life = built(thing(), **lost)()
    life.project.run("orders", full_refresh=True)
    said = (
        f"orders: {STAGING} has 90 of the 100 records that were delivered in batches 4 to 5, and the table is built "
        "from what is left"
    )
    assert said in life.project.logged
    life = built(thing(), **lost)()
    life.project.model("orders", thing(object="shop.other_orders").sql, THINGS)
    life.project.run("orders", full_refresh=True)
    assert not [line for line in life.project.logged if "what is left" in line], "of another object"


def test_a_temporary_view_of_the_session_does_not_stand_for_a_table_of_its_name() -> None:
    life = Life(thing())
    life.warehouse.temporary = ("reconcile_ledger", "orders__quarantine")
    life.project.begin("run", ["orders"])
    assert [sql for sql in life.warehouse.statements if "create or replace table `demo`.`reconcile_ledger`" in sql]


def test_a_purge_while_an_earlier_moment_is_written_ends_the_run() -> None:
    life = purged_meanwhile("create or replace table `demo_as_of`.`orders__base`")()
    life.project.variables["as_of"] = {"batch": 2}
    with pytest.raises(CompilerError, match=r"were purged from lake\.shop_changes while this run read them"):
        life.project.run("orders")


@pytest.mark.parametrize("materialized", ["current_state", "history", "current_view"])
def test_a_model_is_built_from_its_base_snapshot(materialized: str) -> None:
    life = purged(with_snapshot(materialized=materialized), of_batch="2" if materialized == "history" else None)()
    life.project.run("orders")
    assert any("from `lake`.`orders_kept`" in sql for sql in life.warehouse.statements if "create" in sql)


def with_kept_copy(shape: Shape, **properties: str) -> Life:
    """Return a model that declares no base snapshot, beside which there is a table of that name."""
    life = purged(shape, kept=False)()
    life.warehouse.has("demo.orders__snapshot", **properties)
    life.warehouse.column_types["orders__snapshot"] = life.warehouse.column_types["orders_kept"]
    return life


@pytest.mark.parametrize("materialized", ["current_state", "history", "current_view"])
def test_the_copy_that_the_job_keeps_is_a_base_snapshot_without_a_word_in_the_model(materialized: str) -> None:
    life = with_kept_copy(thing(materialized=materialized), reconcile__base_snapshot="2")
    life.project.run("orders")
    assert any("from `demo`.`orders__snapshot`" in sql for sql in life.warehouse.statements if "create" in sql)
    assert not any("kind not in ('purge', 'snap" in sql for sql in life.warehouse.statements), "it says itself"


# relation, kind, first and last batch, largest batch of the base table, number of a retry
Entry = tuple[str, str, int, int, int | None, int | None]
OWN_ENTRIES: list[Entry] = [("demo.orders", "rebuild", 1, 2, 2, None), ("demo.orders", "apply", 3, 3, 3, None)]
OF_OTHERS: list[Entry] = [("demo.a", "apply", 1, 3, 3, None), ("demo.b", "apply", 1, 3, 1, None)]


@pytest.mark.parametrize(
    ("entries", "largest"),
    [
        (OWN_ENTRIES, 2), (OWN_ENTRIES[::-1], 2), ([*OF_OTHERS, *OWN_ENTRIES], 2), ([*OF_OTHERS, OWN_ENTRIES[1]], 3),
        # To which nothing came since, the batch before that.
        ([("demo.orders", "rebuild", 1, 1, 1, None)], 1),
        ([("demo.orders", "rebuild", 1, 1, 1, None), ("demo.orders", "replay", 1, 0, 7, None)], 1),
        # Of a model that is not yet built, the models of the same object; the smallest batch counts.
        (OF_OTHERS, 1), (OF_OTHERS[::-1], 1), ([("demo.a", "apply", 1, 3, 3, None)], 3),
        # A mark says that the largest batch shows nothing.
        ([*OWN_ENTRIES, ("demo.orders", "replay", 2, 3, 3, 1)], None),
        *(([(STAGING, kind, 1, 2, None, None), *OF_OTHERS], 1) for kind in ("purge", "snapshot", "erasure")),
    ],
)  # fmt: skip
def test_the_ledger_shows_which_batch_the_base_table_had_when_a_batch_was_applied(
    entries: list[Entry], largest: int | None
) -> None:
    """The statement is run as it is, by SQLite; the batch that was purged is 2."""
    life = Life(thing())
    with life.project._of(life.project.node("orders")):
        asked = life.project.macros._batch_when_applied(["shop.orders"], 2)
    columns = ("relation", "kind", "first_batch", "last_batch", "base_batch", "retried", "object")
    rows = [*((*entry, "shop.orders") for entry in entries), (*OWN_ENTRIES[0][:4], 0, None, "shop.others")]
    ledger = [dict(zip(columns, row, strict=True)) for row in rows]
    assert answer(asked, {"demo.reconcile_ledger": ledger}) == [(largest,)]


def test_a_base_snapshot_of_other_columns_is_taken_if_no_record_of_it_is_read_again() -> None:
    life = purged(with_snapshot(), base_batch=2, of_batch="2", built_with=declared_as(columns="4"))()
    life.project.run("orders")
    assert any("from `lake`.`orders_kept`" in sql for sql in life.warehouse.statements if "create" in sql)


def test_pending_rows_of_a_view_begin_with_the_copy_that_the_job_keeps() -> None:
    life = with_kept_copy(
        thing(materialized="current_view", meta={"partial_records": True}), reconcile__base_snapshot="2"
    )
    life.project.begin("run")
    pending = life.project.macros.pending_rows_of(life.project.node("orders"))
    assert "`demo`.`orders__snapshot`" in pending
    del life.warehouse.relations["demo.orders__snapshot"]
    life.project.begin("run")
    assert "`demo`.`orders__snapshot`" not in life.project.macros.pending_rows_of(life.project.node("orders"))


def test_a_purge_that_was_taken_back_is_none() -> None:
    life, staging = Life(thing()), Relation("lake", "shop_changes")
    mark = f"reconcile__purged__{hashlib.md5(b'shop.orders').hexdigest()}"
    life.warehouse.has(STAGING, reconcile__last_batch="9", **{mark: "0"})
    assert life.project.macros.purged_through(staging, ["shop.orders"]) == {}
    assert life.project.macros.purged_from(staging, ["shop.orders"], 1) == {}


def test_a_table_of_the_name_of_the_copy_that_the_job_has_not_made_is_none() -> None:
    Refusal(run(lambda: with_kept_copy(thing())), [UNDECLARED]).check()


def test_the_copy_that_the_job_keeps_is_refused_where_it_is_of_before_the_purge() -> None:
    living = partial(with_kept_copy, thing(), reconcile__base_snapshot="1")
    says = f"its base snapshot demo.orders__snapshot is of batch 1, and {PURGED}; {LATER_COPY}"
    Refusal(run(living), [says]).check()


def test_a_rebuild_after_a_purge_goes_on_where_the_quarantine_has_what_it_had() -> None:
    quarantine_after_purge(2).project.run("orders")
    life = quarantine_after_purge(0)
    life.warehouse.properties["demo.orders__snapshot"]["reconcile.quarantined"] = "3 2"
    life.project.run("orders")  # the purge for which the copy was made has failed: staging has the records


def test_a_quarantine_with_a_column_more_and_in_another_order_gets_each_value_in_its_column() -> None:
    life = quarantine_of(
        origin="string", RECORD="string", seen_by="int", _change_batch="bigint", _change_id="string",
        _change_error="string",
    )()  # fmt: skip
    life.project.run("orders")
    (sql,) = (sql for sql in life.warehouse.statements if sql.startswith("insert into `demo`.`orders__quarantine`"))
    assert (
        "\nselect `origin`, `RECORD`, cast(null as int), `_change_batch`, `_change_id`, `_change_error`\nfrom (\n"
        in sql
    )


def test_a_copy_of_iceberg_that_has_its_snapshot_is_taken() -> None:
    life = rolled_back(ancestors=1)()
    life.project.run("orders")
    assert any("from `lake`.`orders_kept`" in sql for sql in life.warehouse.statements if "create" in sql)


def test_a_purge_that_was_there_before_the_run_is_no_purge_meanwhile() -> None:
    life = purged(with_snapshot(), of_batch="2")()
    mark = f"reconcile.purged.{hashlib.md5(b'shop.orders').hexdigest()}"
    life.warehouse.properties[STAGING][mark] = "2"
    life.project.run("orders")
    assert any("create or replace table `demo`.`orders__base`" in sql for sql in life.warehouse.statements)


# --- the readers of staging -------------------------------------------------------------------------------------------

READERS = "`lake`.`shop_changes__readers`"


def registering(life: Life, **flags: bool) -> list[str]:
    """Return what the start of a run asks of the readers, and writes."""
    life.warehouse.statements.clear()
    life.project.begin("run", **flags)
    return [" ".join(sql.split()) for sql in life.warehouse.statements if READERS in sql]


def with_readers(life: Life) -> Life:
    """Return a model beside whose staging table `maintain.py` has made the table of readers."""
    life.warehouse.has("lake.shop_changes__readers")
    return life


def test_models_register_once_and_again_where_they_read_something_else() -> None:
    life = with_readers(Life(thing()))
    _, insert = registering(life)
    assert insert == (
        f"insert into {READERS} by name select 'lake.shop_changes' as staging, 'demo.reconcile_ledger' as ledger, "
        "'demo.orders' as relation, 'current_state' as materialized, '[\"shop.orders\"]' as objects, "
        "current_timestamp() as registered_at"
    )
    (asked,) = registering(life)
    assert asked == (
        "select 'lake.shop_changes' as staging, relation, max_by(concat(materialized, ' ', objects), registered_at) as "
        f"reader, unix_micros(max(registered_at)) as registered_at from {READERS} "
        "where ledger = 'demo.reconcile_ledger' group by relation"
    )
    # Another model, whether or not this run selects it; what was registered is not written again.
    life.project.model("past", thing(materialized="history", object="shop.past").sql, THINGS)
    _, insert = registering(life)
    assert "'demo.past' as relation, 'history' as materialized" in insert and "demo.orders" not in insert
    assert insert.endswith(" current_timestamp() as registered_at")
    # Of a model that has become another one the newest row counts, also after the clock was set back.
    life.project.model("past", thing(materialized="history", object="shop.older").sql, THINGS)
    insert = registering(life)[-1]
    assert '["shop.older"]' in insert
    assert insert.endswith("greatest(current_timestamp(), timestamp_micros(1767225601000000)) as registered_at")
    assert len(registering(life)) == 1


def test_a_model_without_a_source_macro_registers_without_objects() -> None:
    life = with_readers(Life(thing()))
    life.project.model("own", own().sql + " from {{ source('lake', 'shop_changes') }}", THINGS)
    assert "'demo.own' as relation, 'current_state' as materialized, '[]' as objects" in registering(life)[-1]


@pytest.mark.parametrize(
    "living",
    [
        lambda: Life(thing()),
        lambda: with_readers(Life(thing(as_of={"batch": 2}))),
        lambda: with_readers(registering_only(False)),
        lambda: with_readers(registering_only(["prod", "nightly"])),
        lambda: with_readers(with_view_as_staging()),
    ],
    ids=["before maintain.py was ever called", "at an earlier moment", "by the variable", "of a target", "of a view"],
)
def test_nothing_is_registered(living: Callable[[], Life]) -> None:
    assert registering(living()) == []


def test_an_empty_run_registers_nothing() -> None:
    """It applies nothing, so a purge need not wait for it."""
    assert registering(with_readers(Life(thing())), empty=True) == []


def registering_only(where: Any) -> Life:
    life = Life(thing())
    life.project.variables["reconcile_register_models"] = where
    return life


def test_the_models_of_some_targets_register() -> None:
    assert len(registering(with_readers(registering_only(["prod", "dev"])))) == 2


REGISTERING: dict[str, Refusal] = {
    str(said): Refusal(
        run(partial(registering_only, said)),
        [f"The variable reconcile_register_models is {said}; write true, false, or a list of names of targets."],
        SENTENCE,
    )
    for said in ("prod", 7)
}


@pytest.mark.parametrize("name", REGISTERING)
def test_a_variable_that_says_nothing_of_targets_is_refused(name: str) -> None:
    REGISTERING[name].check()


def with_view_as_staging() -> Life:
    life = Life(thing())
    life.warehouse.relations[STAGING] = "view"
    life.warehouse.answers["where object = '#snapshot' and source"] = {}
    return life


def test_a_column_that_only_the_base_snapshot_has_had_is_no_reason_to_refuse() -> None:
    life = purged(with_snapshot())()
    life.warehouse.notes = (MISSING,)
    life.project.run("orders")
    assert any("create or replace table" in sql for sql in life.warehouse.statements)


def test_each_batch_of_each_staging_table_has_a_time_of_its_own() -> None:
    life = Life(thing())
    life.warehouse.appended_at = {1: 10, 2: 20}
    macros = life.project.macros
    one, other = Relation("lake", "one"), Relation("lake", "other")
    assert [macros.appended_at(one, batch) for batch in (1, 2, 1)] == [10, 20, 10]
    life.warehouse.appended_at = {1: 11, 2: 20}
    assert [macros.appended_at(staging, 1) for staging in (one, other)] == [10, 11], "asked once in a run"


def test_a_purge_is_written_into_the_ledger_and_into_staging() -> None:
    life = Life(thing())
    life.warehouse.has(STAGING)
    in_ledger, in_staging = life.project.macros.get_purge_statements(Relation("lake", "shop_changes"), "it's", 2)
    digest = hashlib.md5(b"it's").hexdigest()
    assert " ".join(in_staging.split()) == (
        f"alter table `lake`.`shop_changes` set tblproperties ( 'reconcile.purged.{digest}' = '2' )"
    )
    assert " ".join(in_ledger.split()) == (
        "insert into `demo`.`reconcile_ledger` by name select 'lake.shop_changes' as relation, 'it\\'s' as object, "
        "'purge' as kind, 1 as first_batch, 2 as last_batch, "
        "'00000000-0000-0000-0000-000000000000' as invocation_id, current_timestamp() as recorded_at"
    )


def test_the_numbers_of_a_purged_table_show_that_it_is_the_one_that_was_purged() -> None:
    for numbered in ("3", "4"):
        numbers_after_a_purge(numbered)().project.run("orders")


def test_a_purge_that_the_ledger_has_lost_is_known_from_staging() -> None:
    life, staging = Life(thing()), Relation("lake", "shop_changes")
    macros = life.project.macros
    life.warehouse.has(STAGING, reconcile__last_batch="9")
    for batch in (2, 1):  # an earlier one takes nothing back
        for statement in macros.get_purge_statements(staging, "shop.orders", batch):
            life.warehouse.query(statement)
    assert macros.purged_through(staging, ["shop.orders", "shop.others"]) == {"shop.orders": 2}
    assert macros.purged_of_any_object(staging) == 2
    with pytest.raises(CompilerError, match=re.escape(UNDECLARED)):
        life.project.run("orders")


def test_of_several_objects_and_of_both_memories_of_a_purge_the_farthest_batch_counts() -> None:
    """Either the ledger or the staging table may have been restored to before the last purge."""
    life, staging, objects = Life(thing()), Relation("lake", "shop_changes"), ["shop.orders", "shop.others", "shop.new"]
    life.project.begin("run")
    marks = [f"reconcile.purged.{hashlib.md5(name.encode()).hexdigest()}" for name in objects]
    life.warehouse.has(STAGING, **{"reconcile__last_batch": "9", marks[0]: "2", marks[1]: "5"})
    life.warehouse.purges = {"shop.orders": 4, "shop.others": 3}
    macros = life.project.macros

    def last(*names: str) -> Any:
        return macros.last_purged({"relations": [staging], "objects": {name: {} for name in names}})

    assert macros.purged_through(staging, objects) == {"shop.orders": 4, "shop.others": 5}
    assert (last(*objects), last(*objects[:1]), last(*objects[2:]), last()) == (5, 4, 0, 0)
    assert macros.purged_of_any_object(staging) == 5
    # The staging table alone says what was deleted since a batch was read.
    since = [macros.purged_from(staging, objects, batch) for batch in (2, 3, 5, 6)]
    assert since == [{"shop.orders": 2, "shop.others": 5}, {"shop.others": 5}, {"shop.others": 5}, {}]
    life.project.graph["reconcile_staging_properties"] = {STAGING: {marks[0]: "1", marks[1]: "0"}}
    assert macros.purged_at_start(staging, objects) == {"shop.orders": 1}


def test_a_model_of_its_own_select_has_times_of_appends_where_it_reads_one_table_that_append_py_has_made() -> None:
    life = Life(thing())
    one, two, foreign, view = (Relation("lake", name) for name in ("one", "two", "foreign", "view"))
    for table in (one, two):
        life.warehouse.has(str(table), reconcile__last_batch="3")
    life.warehouse.has(str(foreign))
    macros, graph = life.project.macros, life.project.graph
    graph["reconcile_dated"] = dict.fromkeys(map(str, (one, two, foreign)))
    for objects, relations, dated in (
        ({}, [one], one), ({}, [foreign, one], one), ({}, [one, two], None), ({}, [foreign], None), ({}, [view], None),
        ({}, [], None), ({"shop.orders": {}}, [foreign], foreign),
    ):  # fmt: skip
        assert (macros.dated_staging({"objects": objects, "relations": relations}) or None) == dated


@pytest.mark.parametrize(
    ("columns", "type", "last", "is_dated"),
    [
        ({"record": "string", "batch": "bigint", "appended_at": "timestamp"}, "table", 3, True),
        ({"record": "string", "batch": "BIGINT", "appended_at": "timestamp"}, "view", 3, False),
        ({"record": "string", "batch": "int", "appended_at": "string"}, "table", 3, False),
        ({"record": "string", "batch": "string", "appended_at": "timestamp"}, "table", None, False),
        ({"record": "string", "batch": "VARCHAR(9)", "appended_at": "timestamp"}, "table", None, False),
        ({"record": "string", "batch": "char(9)", "appended_at": "timestamp"}, "table", None, False),
        ({"record": "string", "appended_at": "timestamp"}, "table", None, False),
        ({"other": "string", "batch": "bigint", "appended_at": "timestamp"}, "table", None, False),
    ],
)  # fmt: skip
def test_a_run_stops_at_the_last_batch_of_what_is_a_staging_table(
    columns: dict[str, str], type: str, last: int | None, is_dated: bool
) -> None:
    """Of batches that are texts 9 would come after 10; and others may write tables with some of these columns."""
    life, relation = Life(thing()), Relation("lake", "somebodys")
    life.warehouse.has(str(relation), type)
    life.warehouse.column_types = {"`lake`.`somebodys`": columns, **life.warehouse.column_types}
    life.project.graph["reconcile_dated"] = {}
    assert life.project.macros._last_batch(relation) == last
    assert ("lake.somebodys" in life.project.graph["reconcile_dated"]) is is_dated
    if last:
        life.warehouse.staged = None
        assert life.project.macros._last_batch(relation) == 0


def test_a_ledger_of_before_gets_the_columns_that_it_lacks() -> None:
    life = Life(thing())
    life.warehouse.column_types["`reconcile_ledger` where false"] = {"relation": "string", "entry": "bigint"}
    life.project.begin("run")
    assert [sql for sql in life.warehouse.statements if sql.startswith("alter table")] == [
        "alter table `demo`.`reconcile_ledger` add columns (last_appended_at timestamp, zero_dates bigint, "
        f"retried bigint, deletes_batch bigint, quarantine_reasons {life.project.macros._type_of_reasons()}, "
        "stored_rows bigint)"
    ]


# --- file formats -----------------------------------------------------------------------------------------------------

AGAIN = "and run again. With a Thrift server, set it where the server is started."
UNKNOWN = {
    "delta": "This Spark session is not configured for Delta: set SPARK_CONF_DIR to the package's conf/ directory "
    f"(dbt_packages/reconcile/conf) {AGAIN}",
    "iceberg": "This Spark session is not configured for Iceberg, the file_format of the models: set SPARK_CONF_DIR "
    f"to the package's conf/iceberg/ directory (dbt_packages/reconcile/conf/iceberg) {AGAIN}",
}
OTHER_SESSION = {
    "delta": {"extensions": "<undefined>"},
    "iceberg": {"catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"},
}


def of_formats(*formats: str) -> Callable[[], Life]:
    def living() -> Life:
        life = Life(thing(file_format=formats[0]))
        for number, name in enumerate(formats[1:]):
            life.project.model(f"more_{number}", thing(config={"file_format": name}).sql, THINGS)
        return life

    return living


def in_another_session(file_format: str) -> Callable[[], Life]:
    def living() -> Life:
        life = Life(thing(file_format=file_format))
        for name, value in OTHER_SESSION[file_format].items():
            setattr(life.warehouse, name, value)
        return life

    return living


MEANING = "which changes the meaning of this package's SQL"
OTHER_SQL = {
    "spark.sql.parser.escapedStringLiterals": ("true", MEANING),
    "spark.sql.parser.quotedRegexColumnNames": ("TRUE", MEANING),
    "spark.sql.caseSensitive": ("true", MEANING),
    "spark.sql.timestampType": ("TIMESTAMP_NTZ", MEANING),
    "spark.sql.legacy.timeParserPolicy": ("LEGACY", MEANING),
    "spark.sql.parquet.outputTimestampType": ("TIMESTAMP_MILLIS", "which cuts the microseconds of timestamps"),
    "spark.sql.parquet.datetimeRebaseModeInWrite": ("LEGACY", "which changes days of October 1582"),
    "spark.sql.parquet.int96RebaseModeInWrite": ("LEGACY", "which changes days of October 1582"),
    "spark.sql.files.ignoreMissingFiles": ("true", "which leaves out the rows of files that are missing"),
    "spark.sql.files.ignoreCorruptFiles": ("true", "which leaves out the rows of files that cannot be read"),
    "spark.wap.id": ("audit", "with which Iceberg writes rows that nobody reads until they are published"),
    "spark.wap.branch": ("audit", "with which Iceberg writes to a branch"),
}


def in_a_session_with(setting: str, value: str) -> Callable[[], Life]:
    def living() -> Life:
        life = Life(thing())
        life.warehouse.settings = {"spark.sql.ansi.enabled": "true", setting: value}
        return life

    return living


FORMATS: dict[str, Refusal] = {
    **{
        f"{name} in another session": Refusal(run(in_another_session(name)), [UNKNOWN[name]], SENTENCE)
        for name in UNKNOWN
    },
    **{
        f"{name} is {value}": Refusal(
            run(in_a_session_with(name, value)),
            [f"This Spark session has {name} set to {value}, {effect}: remove the setting where the session gets its "
             "configuration, and run again."],
            SENTENCE,
        )
        for name, (value, effect) in OTHER_SQL.items()
    },
    "a format that is none": Refusal(
        run(of_formats("orc", "delta")),
        ["The file_format orc of orders is not supported; use delta or iceberg."],
        SENTENCE,
    ),
    "several formats": Refusal(
        run(of_formats("delta", "iceberg", "delta")),
        ["Models in the session's own catalog have several file formats: delta (more_1, orders) and iceberg (more_0). "
         "A catalog holds tables of only one format: set the same format for all of them, by `+file_format` in "
         "dbt_project.yml, or build some of them in another catalog, by `+meta: {catalog: ...}`."],
        SENTENCE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_or_a_session_that_cannot_be_is_refused_before_anything_runs(name: str) -> None:
    FORMATS[name].check()


@pytest.mark.parametrize(("end", "name"), [("quarantine", "mysql_composite_key"), ("row_deletes", "oracle")])
def test_a_model_without_one_of_its_tables_is_rebuilt(end: str, name: str) -> None:
    life = without(f"__{end}", SHAPES[name])()
    life.project.run("orders", full_refresh=True)
    life.project.run("orders")


@pytest.mark.parametrize("name", ["oracle", "oracle_history", "iceberg_oracle", "bigtable"])
def test_that_deletes_without_keys_are_kept_is_noted_once_and_after_a_rebuild_once_more(name: str) -> None:
    life, noted = Life(SHAPES[name]), []
    for phase in ("first run", "increment", "increment"):
        noted.append(any("'reconcile.kept_deletes' = 'r" in sql for sql in life.statements(phase)))
    life.project.begin("run", ["orders"], full_refresh=True)
    life.warehouse.statements.clear()
    life.project.materialize(life.project.node("orders"))
    noted.append(any("'reconcile.kept_deletes' = 'r" in sql for sql in life.warehouse.statements))
    assert noted == [False, True, False, True]


def test_settings_at_their_defaults_are_no_other_sql() -> None:
    life = in_a_session_with("spark.sql.caseSensitive", "false")()
    life.warehouse.settings["spark.sql.legacy.timeParserPolicy"] = "CORRECTED"
    life.project.run("orders")


# --- the rows of Bigtable ---------------------------------------------------------------------------------------------

GOOD = {"name": "word", "cell": "f:word", "data_type": "string", "encoding": "text"}
# what is declared otherwise than of a good column, and what is said of it
OF_ROWS: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "column 1: it has no name; write {'name': 'count', ...}"),
    ({"name": "Row_Key"}, "column Row_Key: another column has the same name; rename one of them"),
    ({"cell": "word"}, "column no family: cell 'word' is not a family and a qualifier; write it as 'stats:count'"),
    ({"qualifier_hex": "ff"},
     (
         "column twice: qualifier_hex 'ff' must be hexadecimal and replaces the qualifier in cell; write "
         "{'cell': 'f:', 'qualifier_hex': '00ff'}"
     )),
    ({"cell": "f:", "qualifier_hex": "f"},
     (
         "column half: qualifier_hex 'f' must be hexadecimal and replaces the qualifier in cell; write "
         "{'cell': 'f:', 'qualifier_hex': '00ff'}"
     )),
    ({"data_type": "array<int>"},
     "column array: data_type 'array<int>' is not supported; use a scalar type of Spark except interval and time"),
    ({"encoding": "text", "round": "no"}, "column rounded: round is 'no'; write true or false"),
    ({"encoding": "utf-8"}, "column utf: encoding 'utf-8' is unknown; use text, big_endian or raw"),
    ({"data_type": "binary"},
     "column binary: the encoding raw and the type binary belong together, and it is declared as binary with the "
     "encoding text; change one of them"),
    ({"encoding": "big_endian"},
     "column number: the encoding big_endian needs the type tinyint, smallint, int or bigint, and it is declared as "
     "string; change one of them"),
    ({"name": "HALF"}, "column HALF: another column has the same name; rename one of them"),
]  # fmt: skip
LIST_OF_ROWS = (
    "bigtable_rows needs a list of columns, for example "
    "[{'name': 'count', 'cell': 'stats:count', 'data_type': 'bigint', 'encoding': 'big_endian'}]"
)


def rows_of(columns: Any) -> Callable[[], object]:
    """Return what declares a model of rows: dbt refuses it while it parses."""

    def act() -> None:
        project = PlainProject(Recorder(), "demo")
        project.source("lake", "cells")
        project.model("rows", f"{{{{ reconcile.bigtable_rows(source('lake', 'cells'), {columns!r}) }}}}", {})

    return act


def rows_all_wrong() -> Refusal:
    columns = [{**GOOD, "name": says.removeprefix("column ").split(":")[0], **column} for column, says in OF_ROWS]
    return Refusal(rows_of(columns), [says for _, says in OF_ROWS], "Model rows")


def test_all_that_is_wrong_with_the_columns_of_rows_is_said_at_once() -> None:
    rows_all_wrong().check()


@pytest.mark.parametrize("columns", [[], "word", GOOD, 7])
def test_rows_have_a_list_of_columns(columns: Any) -> None:
    Refusal(rows_of(columns), [LIST_OF_ROWS], "Model rows").check()


# --- views and tests --------------------------------------------------------------------------------------------------


def asked(
    shape: Shape, test: str, of: str = "orders", is_built: bool = True, where: str | None = None, **arguments: Any
) -> Callable[[], object]:
    """Return what asks a data test of the model, or of a view that is none of this package."""

    def act() -> None:
        life = Life(shape)
        life.project.model("seen", "select 1 as id", {})
        if is_built and "." not in of:
            life.warehouse.has(f"demo.{of}")
        life.project.test(test, of, where=where, **arguments)

    return act


def impatient(patience: Any) -> Callable[[], object]:
    return lambda: PlainProject(Recorder(), "demo", variables={"reconcile_stalled_after": patience})


NOT_OURS = "demo.seen is not a model of this package, and this test is only for such models; remove the test from it."
OF_MODELS = [
    "history_is_sound", "key_is_the_sources", "keys_are_disjoint", "ledger_balances", "log_is_one", "no_drift",
    "no_pending_rows",
    "no_quarantine", "no_shifted_keys", "one_payload_per_sequence", "time_agrees_with_log", "transactions_complete",
]  # fmt: skip
VIEWS: dict[str, Refusal] = {
    **{
        f"{test} before the first run": Refusal(
            asked(thing(ORACLE), test, is_built=False),
            [f"Test {test}: demo.orders does not exist yet; build a model with `dbt run` first, or create a staging "
             "table with ingestion/append.py."],
            "",
        )
        for test in OF_MODELS
    },
    **{
        f"{test} of a staging table whose models are not built": Refusal(
            asked(thing(ORACLE), test, STAGING),
            [f"No model that reads {STAGING} has been built yet; build one by `dbt run` first."],
            "",
        )
        for test in ("ledger_balances", "no_quarantine")
    },
    **{
        f"{test} with where": Refusal(
            asked(thing(ORACLE), test, where="id > 1"),
            [f"Test {test}: it tests a whole table, and `where` leaves rows out; remove `where` from its config."],
            "",
        )
        for test in (*OF_MODELS, "no_unrouted")
    },
    **{
        f"a {view} of somebody else's": Refusal(
            run(beside(thing(), f"demo.{view}"), view),
            [(
                f"demo.{view} exists and is a table that this package did not create, so it is not replaced; drop or "
                "rename it"
            )],
            f"Model {view}",
        )
        for view in test_monitoring_views.VIEWS
    },
    **{
        f"patience of {patience}": Refusal(
            impatient(patience),
            [f"reconcile_stalled_after: '{patience}' is not a duration; write it as '10 minutes'."],
            SENTENCE,
        )
        for patience in ("soon", 10, "10 minutes'", "ten minutes", "1.5 hours")
    },
    **{
        f"{name} of a model of another source": Refusal(
            asked(thing(SPANNER), name),
            [f"Test {name}: demo.orders has no source macro of Datastream, and this test is only for models with "
             "one; remove the test from it."],
            SENTENCE,
        )
        for name in ("log_is_one", "time_agrees_with_log", "no_shifted_keys", "keys_are_disjoint")
    },
    **{
        f"{name} of a current_view": Refusal(
            asked(thing(materialized="current_view"), name),
            ["demo.orders is a current_view, and runs do not record the columns of its records; remove the test "
             f"{name} from it."],
            SENTENCE,
        )
        for name in ("no_drift", "key_is_the_sources")
    },
    "a staging table that is not there is asked for what no model takes": Refusal(
        lambda: Life(thing()).project.test("no_unrouted", "lake.nowhere"),
        ["Test no_unrouted: lake.nowhere does not exist; create it with ingestion/append.py first."],
        SENTENCE,
    ),
    **{
        f"a {materialized} is asked whether its history is sound": Refusal(
            asked(thing(materialized=materialized), "history_is_sound"),
            [f"Test history_is_sound: demo.orders is a {materialized}, and this test is only for the "
             "materialization history; remove the test from it."],
            SENTENCE,
        )
        for materialized in ("current_state", "current_view")
    },
    "a view is asked for its account": Refusal(
        asked(thing(materialized="current_view"), "ledger_balances"),
        ["demo.orders is a current_view, and the ledger has no rows for it; remove the test ledger_balances from it."],
        SENTENCE,
    ),
    **{
        f"{test} of no model of this package": Refusal(asked(thing(), test, "seen"), [NOT_OURS], SENTENCE)
        for test in ("history_is_sound", "ledger_balances", "no_pending_rows", "one_payload_per_sequence")
    },
}  # fmt: skip


@pytest.mark.parametrize("test", ["ledger_balances", "no_quarantine"])
def test_dbt_build_passes_the_tests_of_a_staging_table_that_no_built_model_reads(test: str) -> None:
    """dbt runs the tests of a source before any model, so that a new project would never get beyond them."""
    sql = Life(thing(ORACLE)).project.test(test, STAGING, which="build")
    assert sql.rstrip().endswith("where false")


@pytest.mark.parametrize("test", OF_MODELS)
def test_before_the_first_run_a_data_test_compiles_and_asks_for_no_table(test: str) -> None:
    shape = thing(ORACLE, materialized="history") if test == "history_is_sound" else thing(ORACLE)
    life = Life(shape)
    assert "select" in life.project.test(test, "orders", which="compile")
    assert all(sql.startswith("show tblproperties `lake`") for sql in life.warehouse.statements)


def test_before_the_first_run_parity_compiles_and_asks_for_no_table() -> None:
    life = Life(thing())
    assert "select" in life.project.test("parity", "orders", which="compile", compare_to=Relation("a", "b"), key="id")
    assert life.warehouse.statements == []


@pytest.mark.parametrize("name", VIEWS)
def test_what_cannot_be_asked_of_a_view_or_a_model_is_a_sentence(name: str) -> None:
    VIEWS[name].check()


# --- every sentence ---------------------------------------------------------------------------------------------------


def provoked() -> list[Refusal]:
    """Return all that the tables of these modules hold."""
    rows = [rows_all_wrong(), Refusal(rows_of([]), [LIST_OF_ROWS], "Model rows")]
    of_models = [*map(declared, DECLARED), *READS.values(), *map(changed, CHANGES_REFUSED)]
    of_models += IN_THE_WAY.values()
    here = [
        *of_models,
        *STAGED.values(),
        *REGISTERING.values(),
        *FORMATS.values(),
        *VIEWS.values(),
        *NOTED.values(),
        *rows,
    ]
    elsewhere = (
        test_added_columns, test_as_of, test_catalogs, test_changed_columns, test_databricks, test_generations,
        test_names, test_notes_of_writes, test_parity_refusals, test_restore, test_retry_of_quarantine,
        test_snapshot_refusals, test_source_columns,
    )  # fmt: skip
    return [*here, *(refusal for module in elsewhere for refusal in module.REFUSED)]


def test_every_sentence_that_a_macro_can_say_is_provoked_here() -> None:
    """What a table says is what the macros say: a test of each row demands it, so no row is run once more here."""
    said = {sentence for refusal in provoked() for sentence in (*refusal.says, f"{refusal.by}:\n  - {refusal.says[0]}")}
    missing = [site.place for site in refusals.sites() if not any(map(site.form.fullmatch, said))]
    assert not missing, f"add what provokes these to a table of this directory: {missing}"


def test_the_places_that_complain_are_found() -> None:
    """A complaint in words that `sites` does not see would need no test."""
    places = {site.place.split(":")[0] for site in refusals.sites()}
    files = {str(file.relative_to(PACKAGE)): file.read_text() for file in PACKAGE.glob("macros/**/*.sql")}
    says = {file for file, text in files.items() if "raise_c" in text or "complaints.append" in text}
    assert says == places, says ^ places
