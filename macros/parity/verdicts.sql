{#- The verdict of each row, with all rows that match in one row. The columns are verdict, difference, reason, `key` as
    JSON, `key_columns`, a struct of the key's columns, `columns` that differ, and `rows`. Further columns, to be added
    up, are the digests of both sides and the number of values that are equal only by a tolerance. A column of the
    model's may have any of these names: so the key is in a struct. -#}
{%- macro cache_verdicts(comparison, versions, staged, delivered, scope) -%}
{{ reconcile.cached(comparison.verdicts_cache, reconcile._incomparable(comparison) if comparison.incomparable else reconcile._verdicts(comparison, versions, staged, delivered, scope)) }}
{%- endmacro %}

{%- macro _incomparable(comparison) -%}
select
    'unprovable' as verdict,
    cast(null as string) as difference,
    {{ reconcile.literal(comparison.incomparable | join('; ')) }} as reason,
    cast(null as string) as key,
    named_struct({% for key in comparison.key %}{{ reconcile.literal(key) }}, cast(null as string){{ ', ' if not loop.last }}{% endfor %}) as key_columns,
    cast(null as array<struct<column: string, model: string, source: string>>) as columns,
    1L as rows,
    cast(0 as decimal(38, 0)) as model_digest,
    cast(0 as decimal(38, 0)) as source_digest,
    cast(map() as map<string, bigint>) as tolerated
{%- endmacro %}

{%- macro _verdicts(comparison, versions, staged, delivered, scope) -%}
{%- set keys, columns = comparison.key, comparison.columns -%}
{%- set others = columns | rejectattr('name', 'in', keys) | list -%}
{%- set at_position = comparison.position is not none -%}
{%- set model_rows = '(\n    ' ~ reconcile.rows_at_position(comparison, versions, staged) | indent(4) ~ '\n)' if at_position else reconcile.qualified(comparison.model) -%}
select
    verdict,
    any_value(if(verdict = 'match', null, difference)) as difference,
    any_value(reason) as reason,
    if(verdict = 'match', null, {{ reconcile._key_text(columns, keys, 'key_columns') }}) as key,
    if(verdict = 'match', null, key_columns) as key_columns,
    any_value(if(verdict = 'match', null, columns)) as columns,
    count(*) as rows,
    coalesce(sum(cast(model_hash as decimal(38, 0))), 0) as model_digest,
    coalesce(sum(cast(source_hash as decimal(38, 0))), 0) as source_digest,
    cast(map({% for column in others if column.tolerances %}{{ reconcile.literal(column.name) }}, count_if(tolerated[{{ loop.index0 }}]){{ ', ' if not loop.last }}{% endfor %}) as map<string, bigint>) as tolerated
from (
    select
        *,
        case
            when is_equal{{ ' or is_version' if at_position }} then 'match'
            {%- if at_position %}
            when is_pending or quarantined > 0{{ ' or true' if staged.unreadable }}{{ ' or is_touched' if staged.purged }} then 'unprovable'
            when is_uncertain{{ ' or true' if not delivered.is_complete }} then 'in_flight'
            {%- endif %}
            else 'confirmed'
        end as verdict,
        case when is_equal then null when not in_source then 'unexpected' when not in_model then 'missing' else 'different' end as difference,
        {%- if at_position %}
        case
            when is_equal or is_version then null
            when is_pending then 'only some columns of the row are known'
            when quarantined > 0 then concat(quarantined, ' records of the row are in quarantine')
            {%- if staged.unreadable %}
            when true then '{{ staged.unreadable }} records in quarantine do not show to which row they belong'
            {%- endif %}
            {%- if staged.purged %}
            when is_touched then 'staging was purged up to batch {{ staged.purged }}, and the row may have changed after the position or has records that are not merged'
            {%- endif %}
            when is_uncertain then 'the row changed so close to the position that it is unknown whether the position includes the change, and the source has none of the versions that the row had then'
            {%- if not delivered.is_complete %}
            when true then {{ reconcile.literal(delivered.reason) }}
            {%- endif %}
        end as reason
        {%- else %}
        cast(null as string) as reason
        {%- endif %}
    from (
        {{ reconcile._compared_rows(comparison, model_rows, versions, staged, scope) | indent(8) }}
    )
)
group by verdict, if(verdict = 'match', null, copy), if(verdict = 'match', null, {{ reconcile._key_text(columns, keys, 'key_columns') }}), if(verdict = 'match', null, key_columns)
{%- endmacro %}

{#- Each row beside the row of the same key on the other side, if there is one. -#}
{%- macro _compared_rows(comparison, model_rows, versions, staged, scope) -%}
{%- set keys = comparison.key -%}
{%- set others = comparison.columns | rejectattr('name', 'in', keys) | list -%}
select
    named_struct({% for key in keys %}{{ reconcile.literal(key) }}, coalesce(model_rows.{{ reconcile.identifier(key) }}, source_rows.{{ reconcile.identifier(key) }}){{ ', ' if not loop.last }}{% endfor %}) as key_columns,
    coalesce(model_rows._change_copy, source_rows._change_copy) as copy,
    model_rows._change_copy is not null as in_model,
    source_rows._change_copy is not null as in_source,
    {%- for side in ['model', 'source'] %}
    {{ side }}_rows._change_hash as {{ side }}_hash,
    {%- endfor %}
    model_rows._change_copy is not null and source_rows._change_copy is not null
    {%- for column in others %}
    and {{ reconcile.same_value(reconcile._of_side('model', column), reconcile._of_side('source', column), column) }}
    {%- endfor %} as is_equal,
    {%- if comparison.position %}
    coalesce(exists(doubts._change_versions, version -> case
        when source_rows._change_copy is null then version._deleted
        when source_rows._change_copy = 1 then not version._deleted{% for column in others %} and {{ reconcile.same_value('version.' ~ reconcile.identifier(column.name), reconcile._of_side('source', column), column) }}{% endfor %}
        else false
    end), false) as is_version,
    coalesce(doubts._change_is_uncertain, false) as is_uncertain,
    coalesce(doubts._change_quarantined, 0) as quarantined,
    coalesce(doubts._change_is_pending, false) as is_pending,
    doubts._change_is_uncertain is not null as is_touched,
    {%- endif %}
    array({% for column in others if column.tolerances %}model_rows._change_copy is not null and source_rows._change_copy is not null and {{ reconcile.same_value(reconcile._of_side('model', column), reconcile._of_side('source', column), column) }} and not {{ reconcile.same_value(reconcile._of_side('model', column), reconcile._of_side('source', column), dict(column, tolerances=[])) }}{{ ', ' if not loop.last }}{% endfor %}) as tolerated,
    if(model_rows._change_copy is null or source_rows._change_copy is null, null, filter(
        array(
            {%- for column in others %}
            if({{ reconcile.same_value(reconcile._of_side('model', column), reconcile._of_side('source', column), column) }}, null, named_struct('column', {{ reconcile.literal(column.name) }}, 'model', {{ reconcile.shown_value(reconcile._of_side('model', column), column.type) }}, 'source', {{ reconcile.shown_value(reconcile._of_side('source', column), column.type) }})){{ ',' if not loop.last }}
            {%- else %}
            cast(null as struct<column: string, model: string, source: string>)
            {%- endfor %}
        ),
        difference -> difference is not null
    )) as columns
from (
    {{ reconcile._numbered_rows(model_rows, comparison, scope) | indent(4) }}
) as model_rows
full outer join (
    {{ reconcile._numbered_rows(reconcile.at_version(comparison.compare_to, versions.source), comparison, scope) | indent(4) }}
) as source_rows
    on {% for key in keys %}model_rows.{{ reconcile.identifier(key) }} <=> source_rows.{{ reconcile.identifier(key) }} and {% endfor %}model_rows._change_copy = source_rows._change_copy
{%- if comparison.position %}
left join (
    {{ reconcile.doubts_at_position(comparison, versions, staged) | indent(4) }}
) as doubts
    on {% for key in keys %}doubts.{{ reconcile.identifier(key) }} = coalesce(model_rows.{{ reconcile.identifier(key) }}, source_rows.{{ reconcile.identifier(key) }}){{ ' and ' if not loop.last }}{% endfor %}
{%- endif %}
{%- endmacro %}

{#- Rows of one key are numbered by their values, so that each row needs its own match. With a `scope`, only the rows
    count that an earlier run left in flight. -#}
{%- macro _numbered_rows(rows, comparison, scope) -%}
select
    {%- for column in comparison.columns %}
    {{ reconcile.identifier(column.name) }},
    {%- endfor %}
    xxhash64({% for column in comparison.columns %}{{ reconcile.values_to_hash(reconcile.identifier(column.name), column.type) | join(', ') }}{{ ', ' if not loop.last }}{% endfor %}) as _change_hash,
    row_number() over (
        partition by {{ reconcile.key_columns(comparison.key) }}
        order by {% for column in comparison.columns %}{{ reconcile.comparable(reconcile.identifier(column.name), column.type) }}{{ ', ' if not loop.last }}{% endfor %}
    ) as _change_copy
from {{ rows }}
{%- if scope %}
where {{ reconcile._key_text(comparison.columns, comparison.key) }} in ({{ scope.rows }})
{%- endif %}
{%- endmacro %}

{#- A key as JSON, with its values as texts that people read. `struct`: the column that has those of the key, if they are
    in one. -#}
{%- macro _key_text(columns, keys, struct=none) -%}
to_json(named_struct({% for column in columns if column.name in keys %}{{ reconcile.literal(column.name) }}, {{ reconcile.shown_value((struct ~ '.' if struct else '') ~ reconcile.identifier(column.name), column.type) }}{{ ', ' if not loop.last }}{% endfor %}))
{%- endmacro %}

{#- A column of one side, as SQL. `side`: model or source. -#}
{%- macro _of_side(side, column) -%}
{{ side }}_rows.{{ reconcile.identifier(column.name) }}
{%- endmacro %}

{#- Whether two values are the same, as SQL. NULL is NULL and NaN is NaN, but -0.0 is not 0.0, although Spark's `<=>`
    finds them equal: see docs/decisions/0021. `column`: {name, type, tolerances}. -#}
{%- macro same_value(left, right, column) -%}
{%- set values = [] -%}
{%- for value in [left, right] -%}
  {%- set found = {'value': value} -%}
  {%- for tolerance in column.tolerances -%}
    {%- do found.update({'value': {
          'trim': 'trim(' ~ found.value ~ ')', 'case': 'lower(' ~ found.value ~ ')', 'to_second': "date_trunc('second', " ~ found.value ~ ')',
          'sign_of_zero': found.value ~ ' + 0D',
          'round': 'round(' ~ found.value ~ ', ' ~ tolerance.argument ~ ')'}[tolerance.kind]}) -%}
  {%- endfor -%}
  {%- do values.append(reconcile.comparable(found.value, column.type)) -%}
{%- endfor -%}
{%- set floats = 'double' in column.type or 'float' in column.type -%}
({{ values[0] }} <=> {{ values[1] }}{{ ' and cast(' ~ values[0] ~ ' as string) <=> cast(' ~ values[1] ~ ' as string)' if floats }})
{%- endmacro %}

{#- A value as text that people read, as SQL. -#}
{%- macro shown_value(value, type) -%}
{{ 'hex(' ~ value ~ ')' if type == 'binary' else 'cast(' ~ value ~ ' as string)' }}
{%- endmacro %}

{#- How many rows each verdict has, and the digests of both sides. -#}
{%- macro count_verdicts(comparison) -%}
select
    coalesce(sum(rows), 0) as compared,
    coalesce(sum(if(verdict = 'match', rows, 0)), 0) as matched,
    {%- for verdict in ['confirmed', 'in_flight', 'unprovable'] %}
    coalesce(sum(if(verdict = '{{ verdict }}', rows, 0)), 0) as {{ verdict }},
    {%- endfor %}
    {%- for difference in ['missing', 'unexpected', 'different'] %}
    coalesce(sum(if(difference = '{{ difference }}', rows, 0)), 0) as {{ difference }},
    {%- endfor %}
    cast(coalesce(sum(model_digest), 0) as string) as model_digest,
    cast(coalesce(sum(source_digest), 0) as string) as source_digest,
    to_json(cast(map({% for column in comparison.columns if column.tolerances %}{{ reconcile.literal(column.name) }}, sum(tolerated[{{ reconcile.literal(column.name) }}]){{ ', ' if not loop.last }}{% endfor %}) as map<string, bigint>)) as tolerated
from {{ comparison.verdicts_cache }}
{%- endmacro %}
