{#- Spark keeps a cached relation for all sessions of a server, and finds it by its plan. Each plan names its run. So a
    run never gets a relation that another run has cached from older tables. -#}
{%- macro cached(name, query, lazy=false) -%}
cache {{ 'lazy ' if lazy }}table {{ name }} as
select *
from (
{{ query }}
)
where {{ reconcile.literal(invocation_id ~ ' ' ~ name) }} is not null
{%- endmacro %}
