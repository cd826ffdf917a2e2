{#- MySQL's zero date, alone or with a zero time of day. A zero month or day within a year is something else: a part of
    that date is known. -#}
{%- macro is_zero_date(text) -%}
{{ text }} rlike {{ reconcile.literal('^0000-00-00([T ]00:00(:00([.]0*)?)?\\s*(Z|[-+]00(:?00)?)?)?$') }}
{%- endmacro %}

{#- The columns of a record whose zero dates became NULL, as SQL for an array of their names; NULL if there are
    none. -#}
{%- macro zero_dates_of(columns) -%}
nullif(filter(names, (name, i) -> name in ({{ reconcile.literals(columns | selectattr('zero_date') | map(attribute='name')) }}) and {{ reconcile.is_zero_date('texts[i]') }}), array())
{%- endmacro %}
