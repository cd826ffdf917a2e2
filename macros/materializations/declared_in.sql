{#- A rollback of Iceberg sets back the rows of a table and leaves its properties. So a base table that was set back to
    before it took its declaration, or to before a retry of the quarantine, says that it has both, and its largest batch
    may be the same. Nothing else shows what its rows lack. Therefore the property `reconcile.declared_in` has the
    snapshot of Iceberg in which the table last became what its properties say: in each marked range (see
    `marked_range`). The snapshots before a rebuild are no ancestors of it, so a rebuild replaces the note of an earlier
    one. A restore of Delta sets back both. `written_in`: as `snapshot_of_declaration` gives it. -#}
{%- macro note_declared_in(relations, settings, written_in) -%}
  {%- do reconcile.run_statements([reconcile._set_property(relations.base, {'reconcile.declared_in': written_in})]) if written_in -%}
{%- endmacro %}

{#- The present snapshot of a base table of Iceberg, for its note; none where none is noted. -#}
{%- macro snapshot_of_declaration(relations, settings) -%}
  {{ return(reconcile.snapshot_in_sequence(relations.base) if settings.form.file_format == 'iceberg' and not settings.as_of else none) }}
{%- endmacro %}

{#- The note is written only in a table that has what was written: on Iceberg somebody may have rolled it back since.
    `written_in`: as `snapshot_of_declaration` gave it right after the rows were written. -#}
{%- macro refuse_set_back_meanwhile(relations, written_in) -%}
  {%- if reconcile.was_set_back(relations.base, written_in) -%}
    {%- do reconcile.raise_complaints([
          reconcile.ledger_name(relations.base) ~ ' was rolled back while this run wrote it, and its properties stay; restore its newest version, and run the same command again']) -%}
  {%- endif -%}
{%- endmacro %}

{#- `applied`: see `applied_batches`. Of a model without news, whose base table has the batches that the ledger says,
    Iceberg is asked only if the run is to retry the quarantine, or writes rows anew: it replaces the note. -#}
{%- macro refuse_set_back(relations, settings, applied) -%}
  {%- set noted = settings.built.declared_in or '' -%}
  {%- set is_asked = noted.split(' ')[0] != (settings.built.current_snapshot or '') and not flags.EMPTY
        and not (reconcile.is_idle(relations.live) and reconcile.tables_are_as_applied(applied) and not reconcile.is_asked('retry_quarantine') and not reconcile.rewrites_base(settings)) -%}
  {%- if is_asked and reconcile.was_set_back(relations.base, noted) -%}
    {%- do reconcile.raise_complaints([
          reconcile.ledger_name(relations.base) ~ ' was set back to before it was built with its present declaration, or to before a retry of its quarantine; restore its newest version, or rebuild it with `'
          ~ reconcile._rebuild_command() ~ '`']) -%}
  {%- endif -%}
{%- endmacro %}

{#- Two runs of a model at once, which both bring new keys, insert them twice under a weaker level of isolation. The table
    is made with this level, but somebody may set another one, or the session overrides it for all tables. -#}
{%- macro refuse_weaker_isolation(relations, settings) -%}
  {%- set level = settings.built.isolation_level -%}
  {%- if settings.form.file_format == 'iceberg' and level and level | lower != 'serializable' -%}
    {%- do reconcile.raise_complaints([
          reconcile.ledger_name(relations.base) ~ " has write.merge.isolation-level = '" ~ reconcile.printable(level) ~ "', with which two runs at once insert rows twice; run `alter table "
          ~ reconcile.ledger_name(relations.base) ~ " set tblproperties ('write.merge.isolation-level' = 'serializable')`, and remove what overrides it in the session, spark.sql.catalog.<catalog>.table-override.write.merge.isolation-level"]) -%}
  {%- endif -%}
{%- endmacro %}

{#- Whether a table of Iceberg does not follow from the snapshot that one of its properties notes, as
    `snapshot_in_sequence` gives it; false without a note. Of a snapshot that has expired its number in the table's
    sequence tells; a note of an earlier version of this package has none. -#}
{%- macro was_set_back(relation, noted) -%}
  {%- set snapshot, number = ((noted or '') ~ '  ').split(' ')[:2] -%}
  {%- if not snapshot -%}{{ return(false) }}{%- endif -%}
  {%- set found = run_query(
        'select count(*) as snapshots, count_if(is_current_ancestor) as ancestors,'
        ~ ' (select max_by(latest_sequence_number, timestamp) from ' ~ reconcile.qualified_metadata(relation, 'metadata_log_entries') ~ ') as number'
        ~ ' from ' ~ reconcile.qualified_metadata(relation, 'history') ~ ' where snapshot_id = ' ~ snapshot | int(0))[0] -%}
  {{ return(not found[1] | int if found[0] | int else found[2] is not none and found[2] | int < number | int(0)) }}
{%- endmacro %}
