{#- The account of the records that name their row (`keyed`), and the account of keyless deletes (`keyless`), as one.
    Both are SELECTs of one row. The counts named in `classes` are added; the others are those of `keyed`. -#}
{%- macro summed_counts(keyed, keyless, classes) -%}
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
