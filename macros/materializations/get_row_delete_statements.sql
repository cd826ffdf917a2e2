{#- Row deletes are kept beside the base table and touch none of its rows, so that what comes later, and in any order, settles everything anew. They
    are written before the MERGE: should the run die in between, the same range comes again. The table is made when the first one comes. -#}
{%- macro get_row_delete_statements(relations, settings, range, come) -%}
  {%- set statements = ['drop view if exists ' ~ relations.rows_cache] -%}
  {%- if range.kind == 'rebuild' and not reconcile.knows_row_deletes(settings, range) -%}
    {%- do statements.append(reconcile._create_row_deletes(relations, settings, replace=true)) -%}
  {%- elif come and settings.built.row_deletes -%}
    {%- do statements.append(reconcile._merge_row_deletes(relations, settings)) -%}
  {%- elif come -%}
    {%- do statements.append(reconcile._create_row_deletes(relations, settings, replace=false)) -%}
  {%- endif -%}
  {{ return(statements) }}
{%- endmacro %}

{#- How many row deletes a range holds: one query, of models alone whose source gives row ids. -#}
{%- macro come_row_deletes(relations, settings) -%}
  {{ return(0 if not settings.row_deletes else run_query(
      'select count(*) from ' ~ relations.changes_cache ~ ' where ' ~ reconcile.is_row_delete_record(settings.unique_key))[0][0] | int) }}
{%- endmacro %}

{%- macro get_cache_rows_statements(relations, settings, range) -%}
  {{ return([
      'drop view if exists ' ~ relations.rows_cache,
      reconcile.cached(relations.rows_cache, reconcile.rows_beside_row_deletes(relations, settings, range)),
  ]) }}
{%- endmacro %}

{%- macro _create_row_deletes(relations, settings, replace) -%}
create {{ 'or replace ' if replace }}table {{ reconcile.qualified(relations.row_deletes) }}
using {{ settings.file_format }}
{{ reconcile.properties_clause(reconcile.properties_of(settings, {'reconcile.row_deletes': reconcile.ledger_name(relations.live)})) }}
as
{{ reconcile._distinct_row_deletes(relations, settings) }}
{%- endmacro %}

{%- macro _merge_row_deletes(relations, settings) -%}
{%- set row_id = reconcile.stored_column('_row_id', settings.file_format) -%}
merge into {{ reconcile.qualified(relations.row_deletes) }} as known
using (
    {{ reconcile._distinct_row_deletes(relations, settings) | indent(4) }}
) as come
on come.{{ row_id }} = known.{{ row_id }} and come._change_sequence = known._change_sequence
when matched and struct(come._change_time, come._change_id) < struct(known._change_time, known._change_id) then update set _change_time = come._change_time, _change_id = come._change_id
when not matched then insert *
{%- endmacro %}

{%- macro _distinct_row_deletes(relations, settings) -%}
{%- set row_id = reconcile.stored_column('_row_id', settings.file_format) -%}
select _row_id{{ ' as ' ~ row_id if row_id != '_row_id' }}, _change_sequence, _change_time, _change_id, _change_batch
from (
    {{ reconcile.row_deletes(relations.changes_cache, settings.unique_key) | indent(4) }}
)
{%- endmacro %}
