{#- What was purged of a staging table: {object: batch}, the last batch of which records of the object were deleted; nothing for the others. -#}
{%- macro purged_through(staging, objects) -%}
  {%- set purged = {} -%}
  {%- for row in run_query(reconcile._purges(staging)) if row[0] in objects -%}
    {%- do purged.update({row[0]: row[1] | int}) -%}
  {%- endfor -%}
  {{ return(purged) }}
{%- endmacro %}

{#- The last batch of which anything was purged that a model reads, 0 where nothing was; `inputs` as `model_inputs` gives them. -#}
{%- macro last_purged(inputs) -%}
  {{ return(reconcile.purged_through(inputs.relations[0], inputs.objects).values() | max | default(0, true) if inputs.objects else 0) }}
{%- endmacro %}

{#- Whoever deletes the records of an object up to a batch writes this before, when every model that reads the object has applied that batch. -#}
{%- macro get_purge_statement(staging, object, batch) -%}
insert into {{ reconcile.qualified(reconcile.ledger()) }} by name
select
    {{ reconcile.literal(reconcile.ledger_name(staging)) }} as relation,
    {{ reconcile.literal(object) }} as object,
    'purge' as kind,
    1 as first_batch,
    {{ batch }} as last_batch,
    '{{ invocation_id }}' as invocation_id,
    current_timestamp() as recorded_at
{%- endmacro %}

{%- macro _purges(staging) -%}
select object, max(last_batch) as batch
from {{ reconcile.qualified(reconcile.ledger()) }}
where relation = {{ reconcile.literal(reconcile.ledger_name(staging)) }} and kind = 'purge'
group by object
{%- endmacro %}
