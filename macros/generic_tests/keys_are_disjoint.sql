{#- Fails on each key that several sources of a model have. With source columns, these are the live rows that differ in
    nothing else of the key: both are kept. Without source columns nothing tells the rows of two tables apart, and
    positions of two logs decide which is shown: then these are the keys of which records name several tables, as the
    metadata name a table. -#}
{%- test keys_are_disjoint(model) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'keys_are_disjoint') -%}
{%- do reconcile.refuse_other_sources(model, 'keys_are_disjoint') -%}
{%- set node = reconcile.node_of(model) -%}
{%- set source_columns = reconcile.source_columns_of(reconcile.model_inputs(node).objects) | list -%}
{%- set keys = reconcile.keys_of_payload(reconcile.keys_of(node), source_columns) -%}
{%- if not keys -%}
  {{ exceptions.raise_compiler_error('Test keys_are_disjoint: ' ~ reconcile.ledger_name(model) ~ ' has no columns in its unique_key but the source columns ' ~ source_columns | join(', ') ~ ', so there is no key that its sources could share; remove the test from it.') }}
{%- endif -%}
{%- set columns = reconcile.key_columns(keys) -%}
select {{ columns }}, count(distinct _change_source) as sources, sort_array(collect_set(_change_source)) as found_in
from (
    {%- if source_columns %}
    select {{ columns }}, to_json(struct({{ reconcile.key_columns(source_columns) }})) as _change_source
    from {{ reconcile.qualified(model) }}
    {%- if node.config.materialized == 'history' %}
    where is_current
    {%- endif %}
    {%- else %}
    select {{ columns }}, {{ reconcile.source_table('_change_metadata') }} as _change_source
    from (
        select {{ columns }}, {{ reconcile.metadata_of_record('_change_record') }} as _change_metadata
        from {{ reconcile.qualified(model.incorporate(path={'identifier': model.identifier ~ '__changes'})) }}
        where _change_error is null
    )
    {%- endif %}
)
group by {{ columns }}
having count(distinct _change_source) > 1{% for name in keys %} and count({{ reconcile.identifier(name) }}) > 0{% endfor %}
{%- endif -%}
{%- endtest %}
