{#- What was purged from a staging table, as {object: batch}: the last batch whose records of the object were deleted.
    Objects without a purge are left out. `objects`: their names. -#}
{%- macro purged_through(staging, objects) -%}
  {%- set known, purged = reconcile._known_purges(staging), {} -%}
  {%- for object in objects if reconcile._purge_property(object) in known -%}
    {%- do purged.update({object: known[reconcile._purge_property(object)]}) -%}
  {%- endfor -%}
  {{ return(purged) }}
{%- endmacro %}

{#- The last purged batch of the objects that a model reads; 0 if nothing was purged. `inputs`: as `model_inputs` gives
    them. -#}
{%- macro last_purged(inputs) -%}
  {{ return(reconcile.purged_through(inputs.relations[0], inputs.objects).values() | max | default(0, true) if inputs.objects else 0) }}
{%- endmacro %}

{#- The same as `purged_through`, of purges that go to this batch or a later one, as the staging table alone says it.
    The property of a purge is written before its records are deleted. So records that were read before this question
    are whole if the answer is empty. -#}
{%- macro purged_from(staging, objects, batch) -%}
  {{ return(reconcile._purged_by_properties(reconcile.table_properties(staging), objects, batch)) }}
{%- endmacro %}

{#- The same as `purged_through`, as the properties of the staging table had it when this run began: see
    `newest_snapshots`, which asks for them. This sends no statement. A run registers its models before it asks. So a
    purge that comes later knows the models. -#}
{%- macro purged_at_start(staging, objects) -%}
  {%- set properties = graph.get('reconcile_staging_properties', {}).get(reconcile.ledger_name(staging), {}) -%}
  {{ return(reconcile._purged_by_properties(properties, objects, 1)) }}
{%- endmacro %}

{#- `properties`: those of the staging table. A property of 0 says that a purge was marked, and nothing was deleted. -#}
{%- macro _purged_by_properties(properties, objects, batch) -%}
  {%- set purged = {} -%}
  {%- for object in objects if properties.get(reconcile._purge_property(object), 0) | int >= batch -%}
    {%- do purged.update({object: properties[reconcile._purge_property(object)] | int}) -%}
  {%- endfor -%}
  {{ return(purged) }}
{%- endmacro %}

{#- The last purged batch of any object of a staging table; 0 if nothing was purged. -#}
{%- macro purged_of_any_object(staging) -%}
  {{ return(reconcile._known_purges(staging).values() | max | default(0, true)) }}
{%- endmacro %}

{#- The last purged batch of every object that was purged, as {name of its table property (see `_purge_property`):
    batch}. The staging table and the ledger both record a purge, because either may be lost or restored. -#}
{%- macro _known_purges(staging) -%}
  {%- set known = {} -%}
  {%- if reconcile.existing_relation(reconcile.ledger()) -%}
    {%- for row in run_query(reconcile._purges(staging)) -%}
      {%- do known.update({reconcile._purge_property(row[0]): row[1] | int}) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- set properties = reconcile.table_properties(staging) if reconcile.existing_relation(staging) else {} -%}
  {#- 0: a purge was marked, and nothing was deleted. -#}
  {%- for property, batch in properties.items() if property.startswith('reconcile.purged.') and batch | int -%}
    {%- do known.update({property: [batch | int, known.get(property, 0)] | max}) -%}
  {%- endfor -%}
  {{ return(known) }}
{%- endmacro %}

{#- To purge an object up to a batch, execute these statements first and then delete the records. Before that, every
    model that reads the object must have applied the batch. -#}
{%- macro get_purge_statements(staging, object, batch) -%}
  {%- set before = reconcile.purged_through(staging, [object]).get(object, 0) -%}
  {{ return([
      reconcile._purge_in_ledger(staging, object, batch),
      'alter table ' ~ reconcile.qualified(staging) ~ ' set ' ~ reconcile.properties_clause({reconcile._purge_property(object): [batch, before] | max})]) }}
{%- endmacro %}

{#- The property contains a digest of the object's name. A name may contain words such as token or password, and Spark
    would then hide the property's value. -#}
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
