{#- An object may hold the records of several tables (see `source_tables`). Where a model names an object and not a table, the tables of its records are those
    that came before, kept as a property of the base table, and those of this run; more of them than the model names end the run before anything is written.
    The property is `settings.tables`, none where it stays as it is. `facts`: see `facts_of_changes`. -#}
{%- macro refuse_doubtful_objects(settings, range, facts) -%}
  {%- set objects = settings.inputs.objects.values() | rejectattr('tables', 'defined') | list -%}
  {%- if facts.tables is defined -%}
    {%- set known = settings.built.tables.split(',') if settings.built.tables and range.kind != 'rebuild' else [] -%}
    {%- set tables = known + [] -%}
    {%- for table in (facts.tables.split(',') if facts.tables else []) if table not in known -%}{%- do tables.append(table) -%}{%- endfor -%}
    {%- if tables | length > objects | length -%}
      {%- set names = [] -%}
      {%- for row in run_query("select decode(unhex(name), 'UTF-8') as name from (select explode(split('" ~ tables | join(',') ~ "', ',')) as name) order by name") -%}
        {%- do names.append(row[0]) -%}
      {%- endfor -%}
      {%- do reconcile.raise_complaints([
            'the records of ' ~ settings.inputs.objects | join(', ') ~ ' are of several tables, ' ~ names | join(', ')
            ~ ", which have one name in the stream; name the one that is meant, as table='" ~ names[0].split('.')[-2:] | join('.') ~ "'"]) -%}
    {%- endif -%}
    {%- do settings.update({'tables': tables | join(',') if tables != known else none}) -%}
  {%- endif -%}
{%- endmacro %}
