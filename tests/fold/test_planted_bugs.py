"""A test of the tests: bugs planted into a copy of the package, each of which the checks of the laws must find."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from histories import COORDINATES, generate
from laws import Lakehouse, LawBroken, StagedHistories
from memory import Memory
from pyspark.sql import SparkSession
from version_laws import Histories

RECORDS, MATERIALIZATIONS = "macros/change_records", "macros/materializations"
STATE, HISTORY = f"{MATERIALIZATIONS}/current_state", f"{MATERIALIZATIONS}/history"
REBUILD, INCREMENTS, REPLAY = "rebuild", "increments", "replay"


class Bug(NamedTuple):
    """A bug: which text of which file becomes which, in models of which source it shows, after what, and as what."""

    name: str
    file: str
    changes: dict[str, str]
    source: str
    after: str
    shows: str
    models: type[Lakehouse] = Lakehouse


BUGS = [
    Bug("LSN as text", "macros/sources/datastream_postgresql.sql",
        {"reconcile.hex_of_fields('metadata.lsn', '/', 2)": "'metadata.lsn'"},
        "postgresql", REBUILD, "not as folded"),
    Bug("rs_id first", "macros/sources/datastream_oracle.sql",
        {"'scn': reconcile.hex_of_number('metadata.scn'),": "",
         "'ssn': reconcile": "'scn': reconcile.hex_of_number('metadata.scn'), 'ssn': reconcile"},
        "oracle", REBUILD, "not as folded"),
    Bug("no tombstone", f"{STATE}/merge_newest.sql",
        {"when matched and {% if":
         "when matched and newest._change_sequence > base._change_sequence and newest._deleted then delete\n"
         "when matched and {% if"},
        "mysql", INCREMENTS, "keys"),
    Bug("no guard on delete", f"{STATE}/merge_newest.sql",
        {"where (_change_base_sequence is null or": "where (_deleted or _change_base_sequence is null or",
         "{% else %}newest._change_sequence >": "{% else %}newest._deleted or newest._change_sequence >"},
        "sqlserver", INCREMENTS, "not as folded"),
    Bug("ties by arrival", f"{RECORDS}/sequence_sections.sql",
        {"hex(xxhash64({{ change_type }}, {{ values | join(', ') }}))": "'0'"},
        "mysql", REBUILD, "sequence of several identities"),
    Bug("backfill last", "macros/sources/datastream_change_records.sql",
        {"concat('/0/', ": "concat('/2/', "},
        "oracle", REBUILD, "not as folded"),
    Bug("absent as NULL", f"{RECORDS}/newest_columns.sql",
        {"filter (where array_contains(_change_columns, {{ reconcile.literal(column.name) }}))":
         "filter (where _change_columns is not null)"},
        "spanner", REBUILD, "not as folded"),
    Bug("one sequence for the row", f"{RECORDS}/joined_columns.sql",
        {"reconcile.sequence_of_column(incoming, column.name) ~ ' > ' "
         "~ reconcile.sequence_of_column(known, column.name)":
         "'newest._change_sequence > base._change_sequence'"},
        "spanner", INCREMENTS, "not as folded"),
    Bug("an old value shines through a delete", f"{RECORDS}/column_sequences.sql",
        {"sequence > coalesce(' ~ row ~ \", ''))\"": "sequence is not null)'"},
        "spanner", INCREMENTS, "not as folded"),
    Bug("neighbours of a late record left as they were", f"{HISTORY}/recomputed_versions.sql",
        {"_change_known is not null and not (": "false and not ("},
        "oracle", INCREMENTS, "not as replayed", Histories),
    Bug("equal versions folded across a delete", f"{HISTORY}/recomputed_versions.sql",
        {"_change_before.valid_to = valid_from": "_change_before is not null"},
        "postgresql", REBUILD, "not as replayed", Histories),
    Bug("what a partial record does not carry is NULL", f"{HISTORY}/recomputed_versions.sql",
        {"_change_columns is null or array_contains": "_change_columns is not null or array_contains"},
        "spanner", REBUILD, "not as replayed", Histories),
    Bug("a version begins when its record says", f"{HISTORY}/recomputed_versions.sql",
        {"    min(_change_time) {{ later }} current row) as valid_from": "    _change_time as valid_from"},
        "mysql", REBUILD, "not as replayed", Histories),
    Bug("a delete opens a version", f"{HISTORY}/recomputed_versions.sql",
        {"is_version = \"_change_type <> 'delete'\"": 'is_version = "true"'},
        "sqlserver", REBUILD, "not as replayed", Histories),
    Bug("folded in storage", f"{HISTORY}/recomputed_versions.sql",
        {"_change_known is null as _change_is_new": "_change_known is null and not _change_repeats as _change_is_new"},
        "oracle", INCREMENTS, "records|counts", Histories),
    Bug("a run ends with its first version", f"{HISTORY}/recomputed_versions.sql",
        {"if(_change_is_version and not coalesce(_change_is_repeated, false), struct(valid_to), null)":
         "if(_change_is_version, struct(valid_to), null)"},
        "mysql", REBUILD, "not as replayed", Histories),
    Bug("the id of whichever copy", f"{HISTORY}/recomputed_versions.sql",
        {"min(struct(_change_time, _change_id))._change_id": "max(_change_id)"},
        "postgresql", REBUILD, "not as replayed", Histories),
    Bug("columns carried through a delete", f"{HISTORY}/recomputed_versions.sql",
        {"_change_columns is null or array_contains":
         "_change_type <> 'delete' and _change_columns is null or array_contains"},
        "spanner", REBUILD, "not as replayed", Histories),
    Bug("copies of what the base has counted as new", f"{HISTORY}/version_counts.sql",
        {"_change_records - if(_change_is_new, 1, 0)": "_change_records - 1"},
        "mysql", REPLAY, "counts", Histories),
    Bug("pending versions shown", f"{HISTORY}/shown_versions.sql",
        {"'_change_is_known' if form.partial_records else ": ""},
        "spanner", REBUILD, "the view's versions", Histories),
    Bug("repeated versions shown", f"{HISTORY}/shown_versions.sql",
        {"    and not _change_repeats\n": ""},
        "sqlserver", REBUILD, "the view's versions", Histories),
    Bug("fold by row", f"{RECORDS}/newest_columns.sql",
        {"if({{ last }}.sequence > coalesce(_change_whole._change_sequence, ''), {{ last }}.value, ":
         "if({{ last }}.sequence = _change_newest._change_sequence, {{ last }}.value, "},
        "spanner", REBUILD, "not as folded"),
    Bug("pending shown", f"{RECORDS}/column_sequences.sql",
        {"({{ order.row }} is not null and not {{ deleted }})": "(not {{ deleted }})"},
        "spanner", REBUILD, "not the live ones"),
    Bug("a stale update of some columns dropped", f"{STATE}/merge_newest.sql",
        {"where cardinality(_change_writers) > 0":
         "where (_change_base_sequence is null or _change_sequence > _change_base_sequence)"},
        "spanner", INCREMENTS, "not as folded"),
    Bug("what a whole row lacks is NULL", "macros/sources/spanner_change_stream.sql",
        {"if(change_type = 'update', filter(":
         "if(change_type = 'update' and value_capture_type not like 'NEW_ROW%', filter("},
        "spanner", REBUILD, "not as folded|not the live ones"),
    Bug("an update after a delete brings the row back", f"{RECORDS}/newest_columns.sql",
        {"_change_type = 'delete' as _deleted\n": "false as _deleted\n"},
        "spanner", REBUILD, "not as folded"),
    Bug("the batch of what was not applied", f"{RECORDS}/joined_columns.sql",
        {"array_max(transform(newest._change_writers, record -> record.batch))": "newest._change_batch"},
        "spanner", INCREMENTS, "not as folded"),
    Bug("pending counted as applied", f"{RECORDS}/column_counts.sql",
        {"writer -> not _change_is_pending or writer.sequence <=> _change_row_after": "writer -> true",
         "writer -> _change_is_pending and not writer.sequence <=> _change_row_after": "writer -> false"},
        "spanner", REBUILD, "counts"),
    Bug("superseded by the row", f"{RECORDS}/column_counts.sql",
        {"coalesce(_change_columns_after[name], _change_row_after) > record.sequence": "true"},
        "spanner", REBUILD, "counts"),
    Bug("commit timestamps to the microsecond", f"{RECORDS}/sequence_sections.sql",
        {"[.]([0-9]{1,9})": "[.]([0-9]{1,6})"},
        "spanner", REBUILD, "not as folded|sequence of several"),
    Bug("mods in one place", "macros/sources/spanner_change_stream.sql",
        {"reconcile.hex_of_index('place')": "reconcile.hex_of_index('0')"},
        "spanner", REBUILD, "not as folded"),
    Bug("backfill before its time", "macros/sources/spanner_change_stream.sql",
        {"if(is_backfill, '/1', concat_ws('/', '/0'": "if(is_backfill, '/0', concat_ws('/', '/1'"},
        "spanner", REBUILD, "not as folded"),
    Bug("records counted, not mods", "macros/ledger/delivered_records.sql",
        {"{{ reconcile._delivered_mods() }}": "1"},
        "spanner", REBUILD, "counts"),
    Bug("log_file as text", "macros/sources/datastream_mysql.sql",
        {"'log_file': reconcile":
         "'log_file': 'coalesce(metadata.log_file, metadata.binlog_file)' if true else reconcile"},
        "mysql", REBUILD, "not as folded"),
    Bug("newest by batch", f"{RECORDS}/newest_records.sql",
        {"struct(_change_sequence, -_change_batch)": "struct(_change_batch, _change_sequence)"},
        "postgresql", REBUILD, "not as folded"),
    Bug("the last of equal copies counts", f"{RECORDS}/newest_records.sql",
        {"struct(_change_sequence, -_change_batch)": "struct(_change_sequence, _change_batch)"},
        "sqlserver", REBUILD, "not as folded"),
    Bug("a hash that ignores NULL", f"{RECORDS}/sequence_sections.sql",
        {"value ~ ' is null',": ""},
        "oracle", REBUILD, "sequence of several identities"),
    Bug("quarantine appended", "macros/table_formats/replace_range.sql",
        {"replace where _change_batch between {{ range.first }} and {{ range.last }}": ""},
        "mysql", REPLAY, "quarantined"),
    Bug("amounts rounded", "macros/values/typed_value.sql",
        {"{%- if not round %} and {{": "{%- if false %} and {{"},
        "postgresql", REBUILD, "keys|not as folded"),
    Bug("no guard on merge", f"{STATE}/merge_newest.sql",
        {"where (_change_base_sequence is null or _change_sequence > _change_base_sequence)": "where true",
         "newest._change_sequence > base._change_sequence{%": "true{%"},
        "mysql", INCREMENTS, "not as folded"),
    Bug("a delete wins", f"{RECORDS}/sequence_sections.sql",
        {"= 'delete', '0', '1')": "= 'delete', '1', '0')"},
        "mysql", REBUILD, "not as folded"),
    Bug("scn as text", "macros/sources/datastream_oracle.sql",
        {"reconcile.hex_of_number('metadata.scn')": "'metadata.scn'"},
        "oracle", REBUILD, "not as folded"),
    Bug("the commit's time before the LSN", "macros/sources/datastream_sqlserver.sql",
        {"coordinates={": "coordinates={'source_timestamp': reconcile.hex_of_time('changed_at'),"},
        "sqlserver", REBUILD, "not as folded"),
    Bug("supplementation as backfill", f"{RECORDS}/datastream_envelope.sql",
        {"'(?i)backfill|_dump$'": "'(?i)backfill|supplementation|_dump$'"},
        "oracle", REBUILD, "not as folded"),
    Bug("a bare word for a change is unknown", f"{RECORDS}/datastream_envelope.sql",
        {"(^|[-_])cdc([-_]|$)": "[-_]cdc([-_]|$)"}, "postgresql", REBUILD, "keys|not as folded"),
    Bug("a bare word for a backfill is unknown", f"{RECORDS}/datastream_envelope.sql",
        {"'(?i)backfill|_dump$'": "'(?i)-backfill|_dump$'"}, "sqlserver", REBUILD, "keys|not as folded"),
    Bug("the place in the log of a stream that follows GTIDs", "macros/sources/datastream_mysql.sql",
        {"coalesce(metadata.log_position, metadata.binlog_position)": "metadata.log_position"},
        "mysql", REBUILD, "keys|not as folded"),
    Bug("times that are numbers", f"{RECORDS}/datastream_envelope.sql",
        {"d{10,15}": "d{16,17}"}, "oracle", REBUILD, "quarantined"),
    Bug("NULL keys", f"{RECORDS}/checked_records.sql",
        {"if(_change_error is null and {{ reconcile.identifier(key) }} is null{{": "if(false{{"},
        "sqlserver", REBUILD, "keys"),
    Bug("a batch not delivered", "macros/ledger/delivered_records.sql",
        {"and batch between {{ first }} and {{ last }}": "and batch between {{ first }} and -1 + {{ last }}"},
        "sqlserver", REBUILD, "counts"),
    Bug("copies in the base not counted", f"{RECORDS}/change_counts.sql",
        {"if(array_contains(_change_sequences, _change_base_sequence), 1, 0)": "0"},
        "postgresql", REPLAY, "counts"),
    Bug("ranges that overlap", f"{MATERIALIZATIONS}/range_to_apply.sql",
        {"(applied.ledger_batch if applied": "(applied.ledger_batch - 1 if applied",
         "'replay' if first <= known_batches | max else 'apply'": "'apply'"},
        "mysql", INCREMENTS, "after"),
]  # fmt: skip


@pytest.fixture(scope="module")
def staged(spark: SparkSession) -> Iterator[StagedHistories]:
    records = {source: generate(source, 40, seed=2) for source in COORDINATES}
    # What comes late and is yet applied in part is rare.
    records["spanner"] = generate("spanner", 250, seed=1)
    with Memory(spark) as memory:
        yield StagedHistories(memory, "planted_records", records, delivery=0)


@pytest.mark.planted
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_laws_find(staged: StagedHistories, bug: Bug) -> None:
    schema = "planted_" + "".join(character if character.isalnum() else "_" for character in bug.name.lower())
    lakehouse = bug.models(schema, staged, [bug.source], replaced={bug.file: bug.changes})
    if bug.after != REBUILD:
        lakehouse.run(1)
    lakehouse.run(staged.last)
    if bug.after == REPLAY:
        lakehouse.forget_last_account()
        lakehouse.run(staged.last)
    with pytest.raises(LawBroken, match=bug.shows):
        lakehouse.check()
