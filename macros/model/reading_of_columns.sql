{#- How columns are read, in a form by which `reads_only_more` can compare two declarations, as JSON: {columns, limits}.
    `columns`: a digest of all columns, but without what only limits which values a column takes. `limits`: for each
    column with such a limit or a licence to change a value, by a digest of its name, {length, options}. Spark hides
    values that contain words such as token, and a name may contain one. -#}
{%- macro reading_of_columns(columns) -%}
  {%- set unlimited, limits = [], {} -%}
  {%- for column in columns -%}
    {%- set has_length = column.type.length is defined -%}
    {%- set options = [] -%}
    {%- for option in ['round', 'infinity_is_null', 'zero_date'] if column[option] -%}{%- do options.append(option) -%}{%- endfor -%}
    {%- do unlimited.append({
          'name': column.name, 'type': reconcile.column_type('string') if has_length else column.type, 'encoding': column.encoding, 'mask': column.mask}) -%}
    {%- if has_length or options -%}
      {%- do limits.update({local_md5(column.name): {'length': column.type.length if has_length else none, 'options': options}}) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(tojson({'columns': reconcile.digest_of_columns(unlimited), 'limits': limits}, sort_keys=true)) }}
{%- endmacro %}

{#- Whether columns read every value that they read before, as the same value of the same type, and perhaps more values:
    a longer text, or one more of `round`, `infinity_is_null` and `zero_date`. Then no record that could be applied gets
    another place in the order, and no column is stored otherwise. `before`: what `reading_of_columns` gave when the
    base table was built; none of a table that an earlier version built, of which nothing is known. -#}
{%- macro reads_only_more(before, columns) -%}
  {%- if not before -%}{{ return(false) }}{%- endif -%}
  {%- set was, now = fromjson(before), fromjson(reconcile.reading_of_columns(columns)) -%}
  {%- if was.columns != now.columns -%}{{ return(false) }}{%- endif -%}
  {%- set narrower = [] -%}
  {%- for column in columns -%}
    {%- set name = local_md5(column.name) -%}
    {%- set of_was = was.limits.get(name, {'length': none, 'options': []}) -%}
    {%- set of_now = now.limits.get(name, {'length': none, 'options': []}) -%}
    {%- if of_now.length is not none and (of_was.length is none or of_was.length > of_now.length) or of_was.options | reject('in', of_now.options) | list -%}
      {%- do narrower.append(column.name) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(not narrower) }}
{%- endmacro %}
