{#- How many of the generations a record has reached: a section of `_change_sequence`. A generation that is a time
    begins a log. A generation that is a position lies in the log that the last time before it began. So every record of
    a later log is after the position, and every record of an earlier log is before it. A backfill row has no
    coordinates; it is placed by the time when it was read. The SQL is over the columns that `datastream_change_records`
    makes of a record. -#}
{%- macro hex_of_generation(generations, coordinates) -%}
{%- set reached = [] -%}
{%- for beginning in generations -%}
  {%- if beginning is mapping -%}
    {%- set change = reconcile._lies_behind(
          beginning, coordinates,
          generations[:loop.index0] | reject('mapping') | list | last, generations[loop.index:] | reject('mapping') | list | first) -%}
    {%- do reached.append('if(if(is_backfill, read_at >= ' ~ reconcile._moment_in_sql(beginning.read_timestamp) ~ ', ' ~ change ~ '), 1, 0)') -%}
  {%- else -%}
    {%- do reached.append('if(if(is_backfill, read_at, changed_at) >= ' ~ reconcile._moment_in_sql(beginning) ~ ', 1, 0)') -%}
  {%- endif -%}
{%- endfor -%}
{%- if reached -%}
lpad(hex({{ reached | join(' + ') }}), 4, '0')
{%- else -%}
'0000'
{%- endif -%}
{%- endmacro %}

{#- The position goes through the same SQL as a record's coordinates. -#}
{%- macro _lies_behind(position, coordinates, log_began, next_log_began) -%}
{%- set there = [] -%}
{%- set here = [] -%}
{%- for name, sections in coordinates.items() if name in position -%}
  {%- do there.append(reconcile.identifier('section ' ~ name)) -%}
  {%- do here.append(sections | replace('metadata.' ~ name, reconcile.literal(position[name]))) -%}
{%- endfor -%}
{%- set behind = reconcile._in_one(there) ~ ' >= ' ~ reconcile._in_one(here) -%}
{{ 'changed_at >= ' ~ reconcile._moment_in_sql(next_log_began) ~ ' or ' if next_log_began -}}
{{ 'changed_at >= ' ~ reconcile._moment_in_sql(log_began) ~ ' and ' if log_began -}}
{{ behind }}
{%- endmacro %}

{%- macro _in_one(sections) -%}
{{ sections[0] if sections | length == 1 else 'concat(' ~ sections | join(", '/', ") ~ ')' }}
{%- endmacro %}

{%- macro _moment_in_sql(text) -%}
to_timestamp({{ reconcile.literal(text) }})
{%- endmacro %}
