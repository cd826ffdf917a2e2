{#- How many of the generations a record has reached: a section of `_change_sequence`. A generation that is a time
    begins a log. A generation that is a position lies in the log that the last time before it began. So every record of
    a later log is after the position, and every record of an earlier log is before it. A backfill row has no
    coordinates; it is placed by the time when it was read. The SQL is over the columns that `datastream_change_records`
    makes of a record. -#}
{%- macro hex_of_generation(generations, coordinates) -%}
{%- set reached = [] -%}
{%- for generation in generations -%}
  {%- if generation is mapping -%}
    {%- set change = reconcile._is_after_position(
          generation, coordinates,
          generations[:loop.index0] | reject('mapping') | list | last, generations[loop.index:] | reject('mapping') | list | first) -%}
    {%- do reached.append('if(if(is_backfill, read_at >= ' ~ reconcile._moment_in_sql(generation.read_timestamp) ~ ', ' ~ change ~ '), 1, 0)') -%}
  {%- else -%}
    {%- do reached.append('if(if(is_backfill, read_at, changed_at) >= ' ~ reconcile._moment_in_sql(generation) ~ ', 1, 0)') -%}
  {%- endif -%}
{%- endfor -%}
{%- if reached -%}
lpad(hex({{ reached | join(' + ') }}), 4, '0')
{%- else -%}
'0000'
{%- endif -%}
{%- endmacro %}

{#- Whether a record is at or after a position, as SQL. The same SQL makes sections of the position and of a record's
    coordinates, so that their texts can be compared. -#}
{%- macro _is_after_position(position, coordinates, log_began, next_log_began) -%}
{%- set of_record = [] -%}
{%- set of_position = [] -%}
{%- for name, sections in coordinates.items() if name in position -%}
  {%- do of_record.append(reconcile.identifier('section ' ~ name)) -%}
  {%- do of_position.append(sections | replace('metadata.' ~ name, reconcile.literal(position[name]))) -%}
{%- endfor -%}
{%- set is_after = reconcile._joined_sections(of_record) ~ ' >= ' ~ reconcile._joined_sections(of_position) -%}
{{ 'changed_at >= ' ~ reconcile._moment_in_sql(next_log_began) ~ ' or ' if next_log_began -}}
{{ 'changed_at >= ' ~ reconcile._moment_in_sql(log_began) ~ ' and ' if log_began -}}
{{ is_after }}
{%- endmacro %}

{%- macro _joined_sections(sections) -%}
{{ sections[0] if sections | length == 1 else 'concat(' ~ sections | join(", '/', ") ~ ')' }}
{%- endmacro %}

{%- macro _moment_in_sql(text) -%}
to_timestamp({{ reconcile.literal(text) }})
{%- endmacro %}
