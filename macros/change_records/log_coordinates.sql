{#- What `_change_sequence` shows about a change of a Datastream source, as SQL: see "Order" in docs/design.md. -#}

{#- The coordinates of a change, from its `_change_sequence`: without the generation, the mark of a change, and the
    sections that settle ties. -#}
{%- macro log_coordinates() -%}
substring(_change_sequence, 8, char_length(_change_sequence) - 7 - 19)
{%- endmacro %}

{%- macro generation_in_log(sequence='_change_sequence') -%}
left({{ sequence }}, 4)
{%- endmacro %}

{#- Whether a record is a change, and not a row of a backfill. -#}
{%- macro is_in_log(sequence='_change_sequence') -%}
split_part({{ sequence }}, '/', 2) = '1'
{%- endmacro %}

{#- Whether objects, as `model_inputs` has them, are of Datastream sources. -#}
{%- macro have_log(objects) -%}
  {{ return(objects.values() | selectattr('generations', 'defined') | list | length > 0) }}
{%- endmacro %}
