{#- First the quarantine, replacing the range's: should the run die behind it, the same range comes again. Then the one MERGE. -#}
{%- macro get_apply_statements(relations, settings, range, counts) -%}
  {%- set statements = [] -%}
  {%- if counts.quarantined or range.kind == 'replay' -%}
    {%- do statements.append(reconcile._replace_quarantine(relations, range)) -%}
  {%- endif -%}
  {%- if counts.applied or counts.pending -%}
    {%- do statements.append(reconcile._merge(relations, settings, counts)) -%}
  {%- endif -%}
  {{ return(statements) }}
{%- endmacro %}

{%- macro _replace_quarantine(relations, range) -%}
insert into {{ reconcile.qualified(relations.quarantine) }}
replace where _change_batch between {{ range.first }} and {{ range.last }}
{{ reconcile._quarantined_records(relations) }}
{%- endmacro %}

{#- A row is only ever replaced by a newer record, and a deleted row stays as a tombstone: no order of arrival can bring it back.
    Where its columns change apart, each is (see `joined_columns`), and no record is too old for that.
    Without new keys nothing is inserted, and Delta needs no outer join, for which it shuffles the base table. -#}
{%- macro _merge(relations, settings, counts) -%}
merge into {{ reconcile.qualified(relations.base) }} as base
using (
    select {{ reconcile.broadcast_hint('record', counts.applied + counts.pending) }}*
    from {{ relations.newest_cache }} as record
    {%- if settings.partial_records %}
    where cardinality(_change_writers) > 0
    {%- else %}
    where _change_base_sequence is null or _change_sequence > _change_base_sequence
    {%- endif %}
) as newest
on {{ reconcile.keys_match(settings.unique_key, 'newest', 'base') }}
{%- if settings.partial_records %}
when matched then update set
    {%- for column, value in reconcile.joined_columns(settings.columns, settings.unique_key).items() %}
    {{ column }} = {{ value }}{{ ',' if not loop.last }}
    {%- endfor %}
{%- else %}
when matched and newest._change_sequence > base._change_sequence then update set
    {%- for column in reconcile._base_columns(settings) %}
    {{ column }} = newest.{{ column }}{{ ',' if not loop.last }}
    {%- endfor %}
{%- endif %}
{%- if counts.new_keys %}
when not matched then insert ({{ reconcile._base_columns(settings) | join(', ') }})
values ({% for column in reconcile._base_columns(settings) %}newest.{{ column }}{{ ', ' if not loop.last }}{% endfor %})
{%- endif %}
{%- endmacro %}
