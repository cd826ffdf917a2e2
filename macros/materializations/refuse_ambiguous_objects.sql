{#- An object may hold the records of several tables (see `source_tables`). A model may name an object and not a table.
    The tables of its records are then those of this run and those of earlier runs, which a property of the base table
    keeps. If there are more tables than objects that the model names, the run ends before it writes anything.
    Returns the new value of the property, or none if it does not change. `known`: its value, none if the base table is
    made anew. `facts`: see `facts_of_changes`. -#}
{%- macro refuse_ambiguous_objects(objects, known, facts) -%}
  {%- set named = objects.values() | rejectattr('tables', 'defined') | list -%}
  {%- if facts.tables is defined -%}
    {%- set known = known.split(',') if known else [] -%}
    {%- set tables = known + [] -%}
    {%- for table in (facts.tables.split(',') if facts.tables else []) if table not in known -%}
      {%- do tables.append(table) -%}
    {%- endfor -%}
    {%- if tables | length > named | length -%}
      {%- set names = [] -%}
      {%- for row in run_query("select decode(unhex(name), 'UTF-8') as name from (select explode(split('" ~ tables | join(',') ~ "', ',')) as name) order by name") -%}
        {%- do names.append(row[0]) -%}
      {%- endfor -%}
      {%- do reconcile.raise_complaints([
            'the records of ' ~ objects | join(', ') ~ ' are of several tables, ' ~ names | join(', ')
            ~ ", which have the same object name; name the table that the model reads, for example table='" ~ names[0].split('.')[-2:] | join('.') ~ "'"]) -%}
    {%- endif -%}
    {{ return(tables | join(',') if tables != known else none) }}
  {%- endif -%}
  {{ return(none) }}
{%- endmacro %}
