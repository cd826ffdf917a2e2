{#- The columns of a payload, typed: common table expressions, of which the last is `checked`. `events` names the one before, which has
    `payload map<string, variant>`, one for each record; `texts` is SQL for the array of the texts of `fields`.
    They add `lower_names`, `names`, `fields`, `texts`, `lost` (each by the columns' numbers) and the value of each column, `value <name>`. -#}
{%- macro typed_payload(events, columns, texts) -%}
-- a field is found by its column's exact name, else by its name in any case
located as (
    select
        *,
        array({% for column in columns %}{{ reconcile.literal(column.name) }}{{ ', ' if not loop.last }}{% endfor %}) as names,
        array({% for column in columns %}payload[{{ reconcile.literal(column.name) }}]{{ ', ' if not loop.last }}{% endfor %}) as named_fields,
        case
            when cardinality(payload) <> {{ columns | length }} or array_contains(array({% for column in columns %}map_contains_key(payload, {{ reconcile.literal(column.name) }}){{ ', ' if not loop.last }}{% endfor %}), false)
                then transform(map_keys(payload), name -> lower(name))
        end as lower_names
    from {{ events }}
),

fields as (
    select
        *,
        if(lower_names is null, named_fields, transform(names, (name, i) -> coalesce(named_fields[i], get(map_values(payload), int(array_position(lower_names, lower(name))) - 1)))) as fields
    from located
),

-- every value as the text that was delivered, digit for digit
texts as (
    select
        *,
        {{ texts | indent(8) }} as texts
    from fields
),

typed as (
    select
        *
        {%- for column in columns %},
        {{ reconcile.typed_value('texts[' ~ loop.index0 ~ ']', column.type, column.round, 'fields[' ~ loop.index0 ~ ']') }} as {{ reconcile.identifier('value ' ~ column.name) }}
        {%- endfor %}
    from texts
),

-- whether a column's type cannot hold the value that was delivered
checked as (
    select
        *,
        array(
            {%- for column in columns %}
            texts[{{ loop.index0 }}] is not null and {{ reconcile.identifier('value ' ~ column.name) }} is null{{ ',' if not loop.last }}
            {%- endfor %}
        ) as lost
    from typed
)
{%- endmacro %}

{#- What `checked` tells against a record: values that their columns cannot hold exactly, and names that several fields have. -#}
{%- macro payload_complaints(columns) -%}
if(
    exists(lost, is_lost -> is_lost) or cardinality(array_distinct(lower_names)) < cardinality(lower_names),
    concat_ws('; ', transform(names, (name, i) -> case
        when lost[i]
            then concat(name, ': \'', left(texts[i], 200), '\' is not exactly a ', array({% for column in columns %}{{ reconcile.literal(column.type.said) }}{{ ', ' if not loop.last }}{% endfor %})[i])
        when cardinality(filter(map_keys(payload), key -> key = name)) > 1
            then concat(name, ': several fields have this name')
        when payload[name] is null and cardinality(filter(lower_names, key -> key = lower(name))) > 1
            then concat(name, ': several fields have this name but for case, none exactly')
    end)),
    null
)
{%- endmacro %}
