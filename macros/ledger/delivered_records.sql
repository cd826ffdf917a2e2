{#- An aggregate, as SQL: how many change records the rows of a staging table hold. A row holds one change record,
    except for objects whose source macro says that a record `carries` mods or entries. Such a row holds one change
    record for each mod or entry. A row without any counts as one change record, which is quarantined. The mark of an
    erased mod counts as none. A model may keep cells that garbage collection deleted; it then takes no records of
    garbage collection, and they do not count. `objects`: as `model_inputs` has them. -#}
{%- macro delivered_records(objects) -%}
{%- set carried = objects.values() | selectattr('carries', 'defined') | map(attribute='carries') | select('in', ['mods', 'entries']) | unique | list -%}
{%- set keeping = [] -%}
{%- for object, properties in objects.items() if properties.garbage_collection == 'keep' -%}{%- do keeping.append(reconcile.literal(object)) -%}{%- endfor -%}
{%- if not carried -%}
count(*)
{%- else -%}
coalesce(sum(case source
    {%- if 'mods' in carried %}
    when 'spanner' then {{ reconcile._delivered_mods() }}
    {%- endif %}
    {%- if 'entries' in carried %}
    when 'bigtable' then {{ reconcile._delivered_entries(keeping) }}
    {%- endif %}
    else 1
end), 0)
{%- endif -%}
{%- endmacro %}

{#- The array of one element lets the mods have a name, so that the record is parsed once. -#}
{%- macro _delivered_mods() -%}
transform(array({{ reconcile.parsed_record('mods array<variant>') }}.mods), mods -> if(cardinality(mods) > 0, cardinality(filter(mods, mod -> not {{ reconcile.is_erased_mod('try_cast(mod as map<string, variant>)') }})), 1))[0]
{%- endmacro %}

{#- `keeping`: the objects, as literals, of which the model keeps the cells that garbage collection deleted. -#}
{%- macro _delivered_entries(keeping) -%}
{%- set entries = 'cardinality(' ~ reconcile.parsed_record('entries array<variant>') ~ '.entries)' -%}
{%- if keeping -%}
if(object in ({{ keeping | join(', ') }}) and get_json_object(record, '$.type') = 'garbage_collection' and {{ entries }} > 0, 0, greatest({{ entries }}, 1))
{%- else -%}
greatest({{ entries }}, 1)
{%- endif -%}
{%- endmacro %}

{#- What follows SELECT in a query that counts the change records of a model in batches `first` to `last` of
    staging. -#}
{%- macro delivered_in(inputs, first, last) -%}
{{ reconcile.delivered_records(inputs.objects) }} from {{ reconcile.qualified(inputs.relations[0]) }} where {{ reconcile.is_of_objects(inputs.objects) }} and batch between {{ first }} and {{ last }}
{%- endmacro %}
