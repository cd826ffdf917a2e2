{#- How many change records the rows of a staging table hold, as SQL for an aggregate. One each, but for the objects whose source macro says that a
    record `carries` mods or entries: as many as there are, and one where there are none, which goes to quarantine. What a model keeps that garbage collection
    deleted, it does not take. -#}
{%- macro delivered_records(objects) -%}
{%- set carried = objects.values() | selectattr('carries', 'defined') | map(attribute='carries') | select('in', ['mods', 'entries']) | unique | list -%}
{%- set keeping = [] -%}
{%- for object, said in objects.items() if said.garbage_collection == 'keep' -%}{%- do keeping.append(reconcile.literal(object)) -%}{%- endfor -%}
{%- if not carried -%}
count(*)
{%- else -%}
coalesce(sum(case source
    {%- if 'mods' in carried %}
    when 'spanner' then greatest(cardinality({{ reconcile.parsed_record('mods array<variant>') }}.mods), 1)
    {%- endif %}
    {%- if 'entries' in carried %}
    when 'bigtable' then {{ reconcile._delivered_entries(keeping) }}
    {%- endif %}
    else 1
end), 0)
{%- endif -%}
{%- endmacro %}

{%- macro _delivered_entries(keeping) -%}
{%- set entries = 'cardinality(' ~ reconcile.parsed_record('entries array<variant>') ~ '.entries)' -%}
{%- if keeping -%}
if(object in ({{ keeping | join(', ') }}) and get_json_object(record, '$.type') = 'garbage_collection' and {{ entries }} > 0, 0, greatest({{ entries }}, 1))
{%- else -%}
greatest({{ entries }}, 1)
{%- endif -%}
{%- endmacro %}

{#- The change records that a model is given of batches of its staging table, as what follows a SELECT. -#}
{%- macro delivered_in(inputs, first, last) -%}
{{ reconcile.delivered_records(inputs.objects) }} from {{ reconcile.qualified(inputs.relations[0]) }} where {{ reconcile.is_of_objects(inputs.objects) }} and batch between {{ first }} and {{ last }}
{%- endmacro %}
