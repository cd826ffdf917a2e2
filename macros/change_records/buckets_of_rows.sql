{#- Buckets of keys, by which a large snapshot beside the log is compared with the base table: see
    docs/decisions/0073-buckets-of-a-snapshot.md. -#}

{#- In which bucket a row is, as SQL. A million buckets are small enough to
    be broadcast, and of ten million rows each has ten. -#}
{%- macro bucket_of_row(keys) -%}
{%- set values = [] -%}
{%- for key in keys -%}{%- do values.append(reconcile.identifier(key)) -%}{%- endfor -%}
{{ reconcile._bucket_of(values) }}
{%- endmacro %}

{%- macro _bucket_of(values) -%}
pmod(xxhash64({{ values | join(', ') }}), 1048576)
{%- endmacro %}

{#- The values of a snapshot's staged rows, each NULL if its text is no value of its type; and `_change_forms`, a digit for
    each column: 0 for a value, 1 for none, 2 for a text that is no value. The job has written the texts, so they need no
    more than a cast. -#}
{%- macro plain_rows_of_snapshot(snapshot, relation, columns) -%}
{%- set names, fields, forms = {}, [], [] -%}
{%- for name in snapshot.columns -%}{%- do names.update({name | lower: name}) -%}{%- endfor -%}
{%- for column in columns -%}
  {%- do fields.append(names[column.name | lower]) -%}
  {%- set text = 'row.' ~ reconcile.identifier(names[column.name | lower]) -%}
  {%- do forms.append('case when ' ~ text ~ " is null then '1'" ~ (' when ' ~ reconcile._plain_value(text, column) ~ " is null then '2'" if column.type.name != 'string') ~ " else '0' end") -%}
{%- endfor -%}
select
    {%- for column in columns %}
    {{ reconcile._plain_value('row.' ~ reconcile.identifier(names[column.name | lower]), column) }} as {{ reconcile.identifier(column.name) }},
    {%- endfor %}
    concat({{ forms | join(', ') }}) as _change_forms
from (
    select {{ reconcile._plain_row(fields) }} as row
    from {{ reconcile.qualified(relation) }}
    where object = {{ reconcile.literal(reconcile.snapshot_rows_object(snapshot.object)) }} and source = 'snapshot' and batch = {{ snapshot.batch }}
)
{%- endmacro %}

{#- Fields of a staged row, by their names, as texts. -#}
{%- macro _plain_row(names) -%}
{%- set fields = [] -%}
{%- for name in names -%}{%- do fields.append(reconcile.identifier(name) ~ ' string') -%}{%- endfor -%}
{{ reconcile.parsed_record(reconcile.literal('row struct<' ~ fields | join(', ') ~ '>')[1:-1]) }}.row
{%- endmacro %}

{%- macro _plain_value(text, column) -%}
{{ text if column.type.name == 'string' else 'try_to_binary(' ~ text ~ ", 'base64')" if column.type.name == 'binary' else 'try_cast(' ~ text ~ ' as ' ~ column.type.ddl ~ ')' }}
{%- endmacro %}

{#- The condition for a staged row of a snapshot to be in one of the buckets of a relation. `columns`: those of the model,
    of which the key is needed. -#}
{%- macro is_in_buckets(snapshot, columns, buckets) -%}
{%- set values = [] -%}
{%- for key in reconcile.keys_of(model) -%}
  {%- for column in columns if column.name == key -%}
    {%- for name in snapshot.columns if name | lower == key | lower -%}
      {%- do values.append(reconcile._plain_value(reconcile._plain_row([name]) ~ '.' ~ reconcile.identifier(name), column)) -%}
    {%- endfor -%}
  {%- endfor -%}
{%- endfor -%}
{{ reconcile._bucket_of(values) }} in (select /*+ broadcast(differing) */ bucket from {{ buckets }} as differing)
{%- endmacro %}
