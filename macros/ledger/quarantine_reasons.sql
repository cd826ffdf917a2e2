{#- Why records of models could not be applied: one row for each model and reason. Reasons that differ only in a quoted
    value are one reason. `reason`, `example_key` and `example_origin` are of one record of the first batch. `nodes`:
    the models' nodes. -#}
{%- macro quarantine_reasons(nodes) -%}
{%- for node in nodes %}
{%- set relation = reconcile.relation_of(node) %}
select relation, example.reason, records, first_batch, last_batch, example.key as example_key, example.origin as example_origin
from (
    select
        {{ reconcile.literal(reconcile.ledger_name(relation)) }} as relation,
        count(*) as records,
        min(_change_batch) as first_batch,
        max(_change_batch) as last_batch,
        min(struct(_change_batch, _change_id, origin, _change_error as reason, {{ reconcile._key_of_record(reconcile.keys_of(node)) }} as key)) as example
    from {{ reconcile.qualified(reconcile.model_relations(relation).quarantine) }}
    group by regexp_replace(_change_error, {{ reconcile.literal("'[^']*'") }}, '')
)
{{ 'union all' if not loop.last }}
{%- else -%}
{{ reconcile.no_rows({'relation': 'string', 'reason': 'string', 'records': 'bigint', 'first_batch': 'bigint', 'last_batch': 'bigint', 'example_key': 'string', 'example_origin': 'string'}) }}
{%- endfor -%}
{%- endmacro %}

{#- The key columns of a record that may be malformed, as JSON; NULL if the record has none of them. Each source has the
    key in a field of its own. `keys`: the unique_key. -#}
{%- macro _key_of_record(keys) -%}
{%- set names = [] -%}
{%- for key in keys -%}{%- do names.append(reconcile.literal(key | lower)) -%}{%- endfor -%}
{%- set fields = reconcile.parsed_record('payload map<string,string>, row map<string,string>, keys map<string,string>, row_key string, mods array<struct<keys map<string,string>>>') -%}
nullif(to_json(transform(array({{ fields }}), parsed -> map_filter(
        coalesce(parsed.payload, parsed.row, parsed.keys, get(parsed.mods, 0).keys, map('row_key', parsed.row_key)), (name, value) -> lower(name) in ({{ names | join(', ') }}) and value is not null
    ))[0]), '{}')
{%- endmacro %}
