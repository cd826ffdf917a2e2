{#- An object may hold the records of several tables (see `source_tables`). Where a model names an object and not a table, the tables of its records are those
    that came before, kept as a property of the base table, and those of this run; more of them than the model names end the run before anything is written.
    The property is `settings.tables`, none where it stays as it is: names in hex, since Spark hides values that speak of a token or a url. -#}
{%- macro refuse_doubtful_objects(relations, settings, range) -%}
  {%- set objects = settings.inputs.objects.values() | rejectattr('tables', 'defined') | list -%}
  {%- if objects and '_change_table' in settings.fields -%}
    {%- set known = settings.built.tables.split(',') if settings.built.tables and range.kind != 'rebuild' else [] -%}
    {%- set tables = known + [] -%}
    {%- for row in run_query('select distinct hex(_change_table) from ' ~ relations.changes_cache ~ ' where _change_table is not null') if row[0] not in known -%}
      {%- do tables.append(row[0]) -%}
    {%- endfor -%}
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
