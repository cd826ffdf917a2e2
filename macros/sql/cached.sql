{#- Spark keeps what is cached for all sessions of a server, and knows it by its plan. What another run has cached, of tables as they were then, is never this
    run's: its plan names another run. -#}
{%- macro cached(name, query, lazy=false) -%}
cache {{ 'lazy ' if lazy }}table {{ name }} as
select *
from (
{{ query }}
)
where {{ reconcile.literal(invocation_id ~ ' ' ~ name) }} is not null
{%- endmacro %}
