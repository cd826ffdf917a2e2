{#- The account of the records that name their row, and the account of keyless deletes, as one: the `classes` of both
    are added. -#}
{%- macro added_counts(keyed, keyless, classes) -%}
select
    keyed.* except ({{ classes | join(', ') }}),
    {%- for class in classes %}
    keyed.{{ class }} + keyless.{{ class }} as {{ class }}{{ ',' if not loop.last }}
    {%- endfor %}
from (
    {{ keyed | indent(4) }}
) as keyed
cross join (
    {{ keyless | indent(4) }}
) as keyless
{%- endmacro %}
