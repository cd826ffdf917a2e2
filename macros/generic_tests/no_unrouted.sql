{#- Fails on the records of a staging table that no model takes, as of a new table or a renamed one. The test is for the
    staging table, as a source. -#}
{%- test no_unrouted(model, ignore=[]) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'no_unrouted') if model is string -%}
{%- if not reconcile.existing_relation(model) -%}
  {{ exceptions.raise_compiler_error('Test no_unrouted: ' ~ reconcile.ledger_name(model) ~ ' does not exist; create it with ingestion/append.py first.') }}
{%- endif -%}
{%- set staging = reconcile.staging_read().get(reconcile.ledger_name(model), {'relation': model, 'objects': {}}) -%}
select
    object,
    reason,
    count(*) as records,
    min(batch) as first_batch,
    nullif(concat_ws(': ', object, concat(proposal, ', ', format_number(count(*), 0), ' records')), '') as proposal
from (
{{ reconcile.unrouted_of(staging) }}
)
{%- if ignore %}
where object is null or object not in ({% for object in ([ignore] if ignore is string else ignore) %}{{ reconcile.literal(object) }}{{ ', ' if not loop.last }}{% endfor %})
{%- endif %}
group by object, reason, proposal
{%- endif -%}
{%- endtest %}
