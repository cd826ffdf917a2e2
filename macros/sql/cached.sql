{#- The statement that keeps the rows of a query for the statements after it, under the name of a temporary view.
    `lazy`: nothing is computed before the first of them. -#}
{%- macro cached(name, query, lazy=false) -%}
{{ return(adapter.dispatch('cached', 'reconcile')(name, query, lazy)) }}
{%- endmacro %}

{#- Spark keeps a cached relation for all sessions of a server, and finds it by its plan. Each plan names its run. So a
    run never gets a relation that another run has cached from older tables. -#}
{%- macro default__cached(name, query, lazy=false) -%}
cache {{ 'lazy ' if lazy }}table {{ name }} as
select *
from (
{{ query }}
)
where {{ reconcile.literal(invocation_id ~ ' ' ~ name) }} is not null
{%- endmacro %}

{#- A SQL warehouse of Databricks has no CACHE TABLE. A view of its own computes the rows for each statement anew, which
    gives the same rows as long as no table that it reads is written in between. -#}
{%- macro databricks__cached(name, query, lazy=false) -%}
create or replace temporary view {{ name }} as
{{ query }}
{%- endmacro %}

{#- Statements before the types of a table's columns change: afterwards nothing that is cached reads the table. Spark
    reads what is cached anew whenever the table is written, by the plan that it was cached with. On Delta that plan
    fails once a type is another (DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS), and so does each statement that writes, also for
    what a test or a run that was killed has left in another session of the server. -#}
{%- macro get_uncache_dependents_statements(relation) -%}
{{ return(adapter.dispatch('get_uncache_dependents_statements', 'reconcile')(relation)) }}
{%- endmacro %}

{%- macro default__get_uncache_dependents_statements(relation) -%}
{{ return(['uncache table ' ~ reconcile.qualified(relation)]) }}
{%- endmacro %}

{#- Nothing is cached there: see `databricks__cached`. -#}
{%- macro databricks__get_uncache_dependents_statements(relation) -%}
{{ return([]) }}
{%- endmacro %}
