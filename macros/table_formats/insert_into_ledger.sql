{#- One statement that inserts a relation's row into the ledger, and fails where another run has inserted one since it began. Delta sees to that where the row itself asks
    what the ledger has of the relation. An append to Iceberg conflicts with nothing; a MERGE does, with whatever came of the relation that
    its condition names: so it is one, although the row is never there. -#}
{%- macro insert_into_ledger(row, relation, file_format, ledger) -%}
{%- set ledger = reconcile.qualified(ledger) -%}
{%- if file_format == 'iceberg' -%}
merge into {{ ledger }} as known
using (
    {{ row | indent(4) }}
) as come
on known.relation = {{ reconcile.literal(relation) }} and known.invocation_id = come.invocation_id and known.recorded_at = come.recorded_at
when matched then update set seconds = come.seconds
when not matched then insert *
{%- else -%}
insert into {{ ledger }} by name
{{ row }}
{%- endif -%}
{%- endmacro %}
