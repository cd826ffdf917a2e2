{#- Keyless deletes are kept beside the base table and change none of its rows. So records that come later, in any
    order, settle everything anew. Keyless deletes are written before the MERGE: if the run dies in between, the next
    run has the same range again. Their table is made when the first one comes. `keyless_count`: how many keyless
    deletes the range holds. `unchanged`: a condition that fails the statement if somebody has restored the table; none if
    there is no such table yet. -#}
{%- macro get_keyless_delete_statements(relations, settings, range, keyless_count, unchanged) -%}
  {%- set form, as_of = settings.form, settings.as_of -%}
  {%- set statements = ['drop view if exists ' ~ relations.rows_cache] -%}
  {%- if range.kind == 'rebuild' and not range.known_keyless_deletes -%}
    {%- do statements.append(reconcile._create_keyless_deletes('create or replace table ' ~ reconcile.qualified(relations[form.keyless.kind]), relations, form, as_of)) -%}
  {%- elif keyless_count -%}
    {%- set table = relations[form.keyless.kind] -%}
    {%- if not settings.built[form.keyless.kind] and reconcile.is_missing(table) -%}
      {#- Another run may create the table at the same moment. So it is created without rows, and both runs add theirs. -#}
      {%- do statements.append(reconcile._create_keyless_deletes(reconcile.create_table_clause(table, form.file_format), relations, form, as_of) ~ '\nwhere false') -%}
    {%- endif -%}
    {%- do statements.append(reconcile._merge_keyless_deletes(relations, form, unchanged)) -%}
  {%- endif -%}
  {{ return(statements) }}
{%- endmacro %}

{#- How many keyless deletes a range holds. Only models whose source has such deletes pay for this query. `changes`: the
    checked records of the range. `keyless`: {kind, place}, or none for a model that takes no such deletes. -#}
{%- macro count_keyless_deletes(changes, keyless, keys) -%}
  {{ return(0 if not keyless else run_query(
      'select count(*) from ' ~ changes ~ ' where ' ~ reconcile.is_keyless_delete_record(keys))[0][0] | int) }}
{%- endmacro %}

{#- Whether the model has keyless deletes, from this range or from earlier ones. `keyless`: {kind, place}, or none.
    `built`: what exists of the model, by the names of its relations. `keyless_count`: how many keyless deletes the
    range holds; undefined if the run had nothing to apply. -#}
{%- macro has_keyless_deletes(keyless, built, keyless_count) -%}
  {{ return(keyless and (keyless_count or built[keyless.kind])) }}
{%- endmacro %}

{#- Statements that cache the fold beside the keyless deletes in `rows_cache`. -#}
{%- macro get_cache_rows_statements(relations, keyless, keys, range) -%}
  {{ return([
      'drop view if exists ' ~ relations.rows_cache,
      reconcile.cached(relations.rows_cache, reconcile.rows_with_keyless_deletes(relations, keyless, keys, range)),
  ]) }}
{%- endmacro %}

{#- `clause`: the beginning of the statement, with the name of the table. -#}
{%- macro _create_keyless_deletes(clause, relations, form, as_of) -%}
{%- set kind = form.keyless.kind -%}
{{ clause }}
using {{ form.file_format }}
{{ reconcile.properties_clause(reconcile.properties_of(
      form.file_format, as_of, {'reconcile.' ~ kind: reconcile.ledger_name(relations.live)})) }}
as
{{ reconcile._distinct_keyless_deletes(relations.changes_cache, form) }}
{%- endmacro %}

{#- A delete may come again. It keeps its batch, and of its copies the least time and id count, whichever copy came
    first. In Delta 4.1 a condition with a subquery of the table itself has to stand at the records: outside of the grouping
    it ends the MERGE with "Table does not support reads". -#}
{%- macro _merge_keyless_deletes(relations, form, unchanged) -%}
{%- set changes = '(\n    select *\n    from ' ~ relations.changes_cache ~ '\n    where ' ~ unchanged ~ '\n)' if unchanged else relations.changes_cache -%}
{%- set place = reconcile.stored_column(form.keyless.place, form.file_format) -%}
merge into {{ reconcile.qualified(relations[form.keyless.kind]) }} as known
using (
    {{ reconcile._distinct_keyless_deletes(changes, form) | indent(4) }}
) as incoming
on incoming.{{ place }} = known.{{ place }} and incoming._change_sequence = known._change_sequence
when matched and struct(incoming._change_time, incoming._change_id) < struct(known._change_time, known._change_id) then update set _change_time = incoming._change_time, _change_id = incoming._change_id
{%- if reconcile.keys_may_shift(form.keyless) %}
when matched and known._change_transaction is null and incoming._change_transaction is not null then update set _change_transaction = incoming._change_transaction
{%- endif %}
when not matched then insert *
{%- endmacro %}

{%- macro _distinct_keyless_deletes(changes, form) -%}
{%- set place = form.keyless.place -%}
{%- set stored = reconcile.stored_column(place, form.file_format) -%}
select {{ place }}{{ ' as ' ~ stored if stored != place }}, {{ reconcile.columns_of_keyless_deletes(form.keyless) | join(', ') }}
from (
    {{ reconcile.keyless_deletes(changes, form.keyless, form.unique_key) | indent(4) }}
)
{%- endmacro %}
