{#- Fails if the records name another key than the model's `unique_key`, which would then fold different rows into one.
    The newest key that the records name counts. If the source names no key, or its table has none, the model chooses
    its key. Source columns are no columns of the source's key. -#}
{%- test key_is_the_sources(model) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'key_is_the_sources') -%}
{%- set node = reconcile.noted_node(model, 'key_is_the_sources') -%}
{%- set unique_key = reconcile.keys_of_payload(reconcile.keys_of(node), reconcile.source_columns_of(reconcile.model_inputs(node).objects)) -%}
select name as key_of_the_source, {{ reconcile.literal(tojson(unique_key)) }} as unique_key, batch as since_batch, records
from (
    select name, batch, records, max(batch) over () as last_batch
    from {{ reconcile.qualified(reconcile.columns_seen()) }}
    where relation = {{ reconcile.literal(reconcile.ledger_name(model)) }} and kind = 'key' and name <> '[]'
)
where
    {{ 'false' if unique_key == ['_row_id'] else 'batch = last_batch' }}
    and array_sort(transform(from_json(name, 'array<string>'), name -> lower(name))) <> array_sort(array({% for key in unique_key %}lower({{ reconcile.literal(key) }}){{ ', ' if not loop.last }}{% endfor %}))
{%- endif -%}
{%- endtest %}
