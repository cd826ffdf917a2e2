{#- The columns of a payload, typed: a SELECT. `events` is the SELECT that it reads, with one `payload map<string,
    variant>` for each record. `texts` is SQL for the array of the texts of `fields`. If a source has them, `kinds` is
    SQL for what is known about each field beside its text, and `readable` is SQL for the texts from which the types are
    read.

    The result adds `names`, and `field_names` and `lower_names`, which are NULL if every field is in its column's
    place, as nearly all are. It also adds `fields`, `texts` and `lost`, each by the columns' numbers, and the value of
    each column as `value <name>`. -#}
{%- macro typed_payload(events, columns, texts, kinds=none, readable=none) -%}
{%- set located -%}
-- a field is found by its place where all are in their columns' places; else by its column's exact name, else by its name in any case
select
    *,
    {{ reconcile._names_to_find(columns) }} as names,
    if({{ reconcile._fields_match_columns(columns) }}, null, map_keys(payload)) as field_names,
    transform(field_names, name -> lower(name)) as lower_names
from (
{{ events }}
) as payloads
{%- endset -%}
{%- set fields -%}
select
    *,
    if(field_names is null, map_values(payload), transform(names, name -> coalesce(payload[name], get(map_values(payload), int(array_position(lower_names, lower(name))) - 1)))) as fields,
    {{ reconcile.fields_of_payload() | indent(4) }} as fields_of_payload
    {%- if kinds %},
    {{ kinds }} as kinds
    {%- endif %}
from (
{{ located }}
) as located
{%- endset -%}
{%- set delivered -%}
-- every value as the text that was delivered, digit for digit
select
    *,
    {{ texts | indent(4) }} as texts
from (
{{ fields }}
) as fields
{%- endset -%}
{%- if readable -%}
{%- set delivered -%}
-- the text that each type is read from
select
    *,
    {{ readable | indent(4) }} as readable
from (
{{ delivered }}
) as texts
{%- endset -%}
{%- endif -%}
{%- set typed -%}
select
    *
    {%- for column in columns %},
    {{ reconcile._value_of_column(column, loop.index0, kinds, readable) }} as {{ reconcile.identifier('value ' ~ column.name) }}
    {%- endfor %}
from (
{{ delivered }}
) as {{ 'readable' if readable else 'texts' }}
{%- endset -%}
-- whether a column's type cannot hold the value that was delivered
select
    *,
    array(
        {%- for column in columns %}
        {% if column.removed %}false{% else %}texts[{{ loop.index0 }}] is not null and {{ reconcile.identifier('value ' ~ column.name) }} is null{{ " and readable[" ~ loop.index0 ~ "] not in ('infinity', '-infinity')" if column.infinity_is_null }}{{ ' and not ' ~ reconcile.is_zero_date('texts[' ~ loop.index0 ~ ']') if column.zero_date }}{% endif %}{{ ',' if not loop.last }}
        {%- endfor %}
    ) as lost
from (
{{ typed }}
) as typed
{%- endmacro %}

{%- macro _value_of_column(column, number, kinds, readable) -%}
{%- set texts, field, kind = 'readable' if readable else 'texts', 'fields[' ~ number ~ ']', 'get(kinds, ' ~ number ~ ')' if kinds else none -%}
{{ reconcile.typed_value(texts ~ '[' ~ number ~ ']', column.type, column.round, none if readable and column.type.name == 'string' else field, kind) }}
{%- endmacro %}

{#- The name under which a record has each column: its own if a field has it, in any case, or else a former one. -#}
{%- macro _names_to_find(columns) -%}
{%- if columns | selectattr('was', 'defined') | selectattr('was') | list -%}
array({% for column in columns %}
        {%- if column.was -%}
        coalesce(get(filter({{ reconcile._array_of_texts([column.name] + column.was) }}, name -> array_contains(transform(map_keys(payload), field -> lower(field)), lower(name))), 0), {{ reconcile.literal(column.name) }})
        {%- else -%}
        {{ reconcile.literal(column.name) }}
        {%- endif -%}
        {{ ', ' if not loop.last }}
        {%- endfor %})
{%- else -%}
{{ reconcile._array_of_texts(columns | map(attribute='name')) }}
{%- endif -%}
{%- endmacro %}

{#- The complaints of `checked` about a record: values that their columns cannot hold exactly, with what usually helps,
    and names that several fields have. -#}
{%- macro payload_complaints(columns, readable=none, zero_dates=false) -%}
if(
    array_contains(lost, true) or cardinality(array_distinct(lower_names)) < cardinality(lower_names),
    concat_ws('; ', transform(names, (name, i) -> case
        {%- for column in columns %}{% if column.removed %}
        when i = {{ loop.index0 }} then null
        {%- endif %}{% endfor %}
        when lost[i] then concat_ws(
            '; ',
            concat(name, ': \'', left(texts[i], 200), '\' is not exactly a ', {{ reconcile._array_of_texts(columns | map(attribute='type.label')) }}[i]),
            {{ reconcile.fixes_for_values(columns, readable, zero_dates) | indent(12) }}
        )
        when cardinality(filter(field_names, field -> field = name)) > 1
            then concat(name, ': several fields have this name')
        when not array_contains(field_names, name) and cardinality(filter(lower_names, key -> key = lower(name))) > 1
            then concat(name, ': the names of several fields differ from it only in upper and lower case; declare the column with the exact name of one of them')
    end)),
    null
)
{%- endmacro %}

{#- Whether the fields of a payload are the columns, one by one: by their names as declared, or all in capitals, as
    Oracle has them. -#}
{%- macro _fields_match_columns(columns) -%}
{%- set names = columns | map(attribute='name') | list -%}
{%- set capitals = names | map('upper') | list -%}
{%- set same_in_capitals = capitals | map('lower') | list == names | map('lower') | list -%}
map_keys(payload) in ({{ reconcile._array_of_texts(names) }}{{ ', ' ~ reconcile._array_of_texts(capitals) if same_in_capitals and capitals != names }})
{%- endmacro %}

{%- macro _array_of_texts(texts) -%}
array({% for text in texts %}{{ reconcile.literal(text) }}{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro %}
