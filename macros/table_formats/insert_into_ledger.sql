{#- One statement that inserts a relation's row into the ledger, and fails if another run has inserted one since the
    statement began. On Delta, an INSERT fails then, because its row is computed from the ledger's rows of the relation.
    On Iceberg, an append conflicts with nothing, but a MERGE conflicts with every new row of the relation that its
    condition names. So the statement is a MERGE there, although the condition never matches a row. -#}
{%- macro insert_into_ledger(row, relation, file_format, ledger) -%}
{%- set ledger = reconcile.qualified(ledger) -%}
{%- if file_format == 'iceberg' -%}
merge into {{ ledger }} as known
using (
    {{ row | indent(4) }}
) as incoming
on known.relation = {{ reconcile.literal(relation) }} and known.invocation_id = incoming.invocation_id and known.recorded_at = incoming.recorded_at
when matched then update set seconds = incoming.seconds
when not matched then insert *
{%- else -%}
insert into {{ ledger }} by name
{{ row }}
{%- endif -%}
{%- endmacro %}
