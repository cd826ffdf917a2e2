{#- How many change records the rows of a staging table hold, as SQL for an aggregate. One each, but for the objects whose source macro says that a
    record `carries` mods: as many as there are, and one where there are none, which goes to quarantine. -#}
{%- macro delivered_records(objects) -%}
{%- if objects.values() | selectattr('carries', 'equalto', 'mods') | list -%}
coalesce(sum(if(source = 'spanner', greatest(cardinality(from_json(record, 'mods array<variant>').mods), 1), 1)), 0)
{%- else -%}
count(*)
{%- endif -%}
{%- endmacro %}
