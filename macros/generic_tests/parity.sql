{#- One row for each difference between the model and `compare_to`, a relation with the source's own rows: the key, the verdict
    (missing: only in `compare_to`; unexpected: only in the model; different), and the differing columns with both values.
    NULL equals NULL; of several rows with one key each needs its match. An empty side is a difference, unless `allow_empty`. -#}
{%- test parity(model, compare_to, key, columns=none, allow_empty=false) -%}
{%- if execute -%}
{%- set keys = [key] if key is string else key -%}
{%- set columns = reconcile._compared_columns(model, compare_to, keys, columns) -%}
with model_rows as (
    {{ reconcile._numbered_rows(model, keys, columns) | indent(4) }}
),

source_rows as (
    {{ reconcile._numbered_rows(compare_to, keys, columns) | indent(4) }}
),

differences as (
    select
        {%- for key in keys %}
        coalesce(model_rows.{{ reconcile.identifier(key) }}, source_rows.{{ reconcile.identifier(key) }}) as {{ reconcile.identifier(key) }},
        {%- endfor %}
        case when source_rows._change_copy is null then 'unexpected' when model_rows._change_copy is null then 'missing' else 'different' end as verdict,
        case
            when model_rows._change_copy is not null and source_rows._change_copy is not null then filter(
                array(
                    {%- for column in columns if column.name not in keys %}
                    if({{ reconcile._differs(column) }}, named_struct('column', {{ reconcile.literal(column.name) }}, 'model', {{ reconcile._shown('model_rows', column) }}, 'source', {{ reconcile._shown('source_rows', column) }}), null){{ ',' if not loop.last }}
                    {%- else %}
                    cast(null as struct<column: string, model: string, source: string>)
                    {%- endfor %}
                ),
                difference -> difference is not null
            )
        end as columns
    from model_rows
    full outer join source_rows
        on {% for key in keys %}model_rows.{{ reconcile.identifier(key) }} <=> source_rows.{{ reconcile.identifier(key) }} and {% endfor %}model_rows._change_copy = source_rows._change_copy
    where
        model_rows._change_copy is null
        or source_rows._change_copy is null
        {%- for column in columns if column.name not in keys %}
        or {{ reconcile._differs(column) }}
        {%- endfor %}
)

select * from differences
{%- if not allow_empty %}
{%- for relation in [model, compare_to] %}
union all
select {% for key in keys %}null, {% endfor %}{{ reconcile.literal(reconcile.ledger_name(relation) ~ ' is empty') }}, null
where not exists (select 1 from {{ reconcile.qualified(relation) }})
{%- endfor %}
{%- endif %}
{%- endif -%}
{%- endtest %}

{#- The columns to compare, with the model's types. Types that Spark would compare by rounding are refused. -#}
{%- macro _compared_columns(model, compare_to, keys, names) -%}
  {%- set complaints = [] -%}
  {%- set sides = [] -%}
  {%- for relation in [model, compare_to] -%}
    {%- set types = {} -%}
    {%- if not load_relation(relation) -%}
      {%- do complaints.append(reconcile.ledger_name(relation) ~ ' does not exist; build it first') -%}
    {%- else -%}
      {%- for column in adapter.get_column_schema_from_query('select * from ' ~ reconcile.qualified(relation) ~ ' where false') -%}
        {%- do types.update({column.name | lower: column.dtype}) -%}
      {%- endfor -%}
    {%- endif -%}
    {%- do sides.append(types) -%}
  {%- endfor -%}
  {%- set columns = [] -%}
  {%- if not complaints -%}
    {%- set integers = ['tinyint', 'smallint', 'int', 'bigint'] -%}
    {%- for name in (keys + (names or (sides[0] | list))) | unique -%}
      {%- set types = [sides[0].get(name | lower), sides[1].get(name | lower)] -%}
      {%- for relation, type in [(model, types[0]), (compare_to, types[1])] if not type -%}
        {%- do complaints.append(reconcile.ledger_name(relation) ~ ' has no column ' ~ name ~ '; name the columns to compare in `columns`') -%}
      {%- endfor -%}
      {%- if types[0] and types[1] and types[0] != types[1] and not (types[0] in integers and types[1] in integers)
            and not (types[0].startswith('decimal') and types[1].startswith('decimal')) -%}
        {%- do complaints.append('column ' ~ name ~ ' is ' ~ types[0] ~ ' in ' ~ reconcile.ledger_name(model) ~ ' and ' ~ types[1] ~ ' in '
              ~ reconcile.ledger_name(compare_to) ~ ', which cannot be compared without loss; give them one type') -%}
      {%- endif -%}
      {%- do columns.append({'name': name, 'type': types[0] or ''}) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- if complaints -%}
    {{ exceptions.raise_compiler_error('Test parity:\n  - ' ~ complaints | join('\n  - ')) }}
  {%- endif -%}
  {{ return(columns) }}
{%- endmacro %}

{%- macro _numbered_rows(relation, keys, columns) -%}
select
    {%- for column in columns %}
    {{ reconcile.identifier(column.name) }},
    {%- endfor %}
    row_number() over (
        partition by {{ reconcile.key_columns(keys) }}
        order by {% for column in columns %}{{ reconcile.comparable(reconcile.identifier(column.name), column.type) }}{{ ', ' if not loop.last }}{% endfor %}
    ) as _change_copy
from {{ reconcile.qualified(relation) }}
{%- endmacro %}

{%- macro _differs(column) -%}
not {{ reconcile.comparable('model_rows.' ~ reconcile.identifier(column.name), column.type) }} <=> {{ reconcile.comparable('source_rows.' ~ reconcile.identifier(column.name), column.type) }}
{%- endmacro %}

{%- macro _shown(side, column) -%}
{%- set value = side ~ '.' ~ reconcile.identifier(column.name) -%}
{{ 'hex(' ~ value ~ ')' if column.type == 'binary' else 'cast(' ~ value ~ ' as string)' }}
{%- endmacro %}
