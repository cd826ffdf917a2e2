{#- What was purged of a staging table: {object: batch}, the last batch of which records of the object were deleted; nothing for the others. -#}
{%- macro purged_through(staging, objects) -%}
  {%- set known, purged = reconcile._known_purges(staging), {} -%}
  {%- for object in objects if reconcile._purge_property(object) in known -%}
    {%- do purged.update({object: known[reconcile._purge_property(object)]}) -%}
  {%- endfor -%}
  {{ return(purged) }}
{%- endmacro %}

{#- The last batch of which anything was purged that a model reads, 0 where nothing was; `inputs` as `model_inputs` gives them. -#}
{%- macro last_purged(inputs) -%}
  {{ return(reconcile.purged_through(inputs.relations[0], inputs.objects).values() | max | default(0, true) if inputs.objects else 0) }}
{%- endmacro %}

{#- The last batch of which anything at all was purged of a staging table, 0 where nothing was. -#}
{%- macro purged_of_any_object(staging) -%}
  {{ return(reconcile._known_purges(staging).values() | max | default(0, true)) }}
{%- endmacro %}

{#- {property: batch} of all objects. The staging table says it and the ledger, either of which may be lost or restored. -#}
{%- macro _known_purges(staging) -%}
  {%- set known = {} -%}
  {%- if load_relation(reconcile.ledger()) -%}
    {%- for row in run_query(reconcile._purges(staging)) -%}
      {%- do known.update({reconcile._purge_property(row[0]): row[1] | int}) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- set properties = reconcile.table_properties(staging) if load_relation(staging) else {} -%}
  {%- for property, batch in properties.items() if property.startswith('reconcile.purged.') -%}
    {%- do known.update({property: [batch | int, known.get(property, 0)] | max}) -%}
  {%- endfor -%}
  {{ return(known) }}
{%- endmacro %}

{#- Whoever deletes the records of an object up to a batch executes these before, when every model that reads the object has applied that batch. -#}
{%- macro get_purge_statements(staging, object, batch) -%}
  {%- set before = reconcile.purged_through(staging, [object]).get(object, 0) -%}
  {{ return([
      reconcile._purge_in_ledger(staging, object, batch),
      'alter table ' ~ reconcile.qualified(staging) ~ ' set ' ~ reconcile.properties_clause({reconcile._purge_property(object): [batch, before] | max})]) }}
{%- endmacro %}

{#- By a digest of the object: a name may speak of tokens or passwords, and Spark then does not show what the property says. -#}
{%- macro _purge_property(object) -%}
reconcile.purged.{{ local_md5(object) }}
{%- endmacro %}

{%- macro _purge_in_ledger(staging, object, batch) -%}
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
