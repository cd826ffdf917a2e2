{#- Why records of models could not be applied: one row for each model and reason. Reasons that differ only in a quoted
    value are one reason. `reason`, `example_key` and `example_origin` are of one record of the first batch. The ledger
    has the reasons of each range, so that no table of a model is read; a replay or a rebuild replaces those of the
    batches that it reads again, as in the quarantine. A view keeps no account, so its records are asked. `nodes`: the
    models' nodes. -#}
{%- macro quarantine_reasons(nodes) -%}
{%- set names, parts = [], [] -%}
{%- for node in nodes if node.config.materialized != 'current_view' -%}
  {%- do names.append(reconcile.ledger_name(reconcile.relation_of(node))) -%}
{%- endfor -%}
{%- if names -%}{%- do parts.append(reconcile._reasons_in_ledger(names)) -%}{%- endif -%}
{%- for node in nodes if node.config.materialized == 'current_view' -%}
  {%- set relation = reconcile.relation_of(node) -%}
  {%- do parts.append(reconcile._reasons_of_view(
        reconcile.ledger_name(relation), reconcile.qualified(reconcile.model_relations(relation).quarantine), reconcile.keys_of(node))) -%}
{%- endfor -%}
{{ parts | join('\nunion all\n') if parts else reconcile.no_rows({
    'relation': 'string', 'reason': 'string', 'records': 'bigint', 'first_batch': 'bigint', 'last_batch': 'bigint', 'example_key': 'string', 'example_origin': 'string'}) }}
{%- endmacro %}

{#- Of a range that an earlier version of this package wrote, and of the rarer of very many reasons, the ledger only has
    how many records they are of. `names`: the models' names in the ledger. -#}
{%- macro _reasons_in_ledger(names) -%}
select
    relation,
    coalesce(example.reason, concat('reasons that only ', relation, '__quarantine has')) as reason,
    records,
    first_batch,
    last_batch,
    example.example_key,
    example.example_origin
from (
    select
        relation,
        sum(records) as records,
        min(batch) as first_batch,
        max(batch) as last_batch,
        min_by(struct(reason, example_key, example_origin), batch) as example
    from (
        select relation, reason, example_key, example_origin, replayed_from, inline(batches)
        from (
            select
                relation,
                replayed_from,
                inline(coalesce(quarantine_reasons, array({{ reconcile._reason_of('cast(null as string)', 'cast(null as string)', 'cast(null as string)', 'array(struct(first_batch as batch, quarantined as records))') }})))
            from (
                select
                    relation, first_batch, quarantined, quarantine_reasons,
                    min(first_batch) over (partition by relation order by {{ reconcile.ledger_order() }} rows between 1 following and unbounded following) as replayed_from
                from {{ reconcile.qualified(reconcile.ledger()) }}
                where kind in ('apply', 'replay', 'rebuild') and relation in ({{ reconcile.literals(names) }})
            )
            where quarantined > 0
        )
    )
    where batch < coalesce(replayed_from, batch + 1)
    group by relation, {{ reconcile._form_of_reason('reason') }}
)
{%- endmacro %}

{%- macro _reasons_of_view(name, quarantine, keys) -%}
select {{ reconcile.literal(name) }} as relation, example.reason, records, first_batch, last_batch, example.key as example_key, example.origin as example_origin
from (
    select
        count(*) as records,
        min(_change_batch) as first_batch,
        max(_change_batch) as last_batch,
        {{ reconcile._example_of_reason(keys) }} as example
    from {{ quarantine }}
    group by {{ reconcile._form_of_reason('_change_error') }}
)
{%- endmacro %}

{#- The reasons of a range, as the ledger has them: the hundred that most records have, and one entry without a reason
    for all others. A scalar subquery. `changes`: the checked records of the range; `keys`: the unique_key. -#}
{%- macro reasons_of_range(changes, keys) -%}
(
    select array_sort(array_agg({{ reconcile._reason_of('example.reason', 'example.key', 'example.origin', 'batches') }}))
    from (
        select if(place > 100, null, form) as form, min(if(place > 100, null, example)) as example, array_sort(flatten(array_agg(batches))) as batches
        from (
            select *, row_number() over (order by records desc, form) as place
            from (
                select form, sum(records) as records, min(example) as example, array_agg(struct(batch, records)) as batches
                from (
                    select
                        {{ reconcile._form_of_reason('_change_error') }} as form,
                        _change_batch as batch,
                        count(*) as records,
                        {{ reconcile._example_of_reason(keys) }} as example
                    from (
                        {{ reconcile.quarantined_records(changes) | indent(24) }}
                    )
                    group by {{ reconcile._form_of_reason('_change_error') }}, _change_batch
                )
                group by form
            )
        )
        group by if(place > 100, null, form)
    )
)
{%- endmacro %}

{#- A record of the first batch, as an aggregate of the records of a reason. -#}
{%- macro _example_of_reason(keys) -%}
min(struct(_change_batch, _change_id, origin, _change_error as reason, {{ reconcile._key_of_record(keys) }} as key))
{%- endmacro %}

{%- macro _reason_of(reason, key, origin, batches) -%}
struct({{ reason }} as reason, {{ key }} as example_key, {{ origin }} as example_origin, {{ batches }} as batches)
{%- endmacro %}

{%- macro _type_of_reasons() -%}
array<struct<reason: string, example_key: string, example_origin: string, batches: array<struct<batch: bigint, records: bigint>>>>
{%- endmacro %}

{#- A reason without the values that it quotes. -#}
{%- macro _form_of_reason(reason) -%}
regexp_replace({{ reason }}, {{ reconcile.literal("'[^']*'") }}, '')
{%- endmacro %}

{#- The key columns of a record that may be malformed, as JSON; NULL if the record has none of them. Each source has the
    key in a field of its own. A record of Spanner has several mods: the last part of `_change_id` is the place of the
    mod, and of a backfill record the keys themselves. `keys`: the unique_key. -#}
{%- macro _key_of_record(keys) -%}
{%- set fields = reconcile.parsed_record('payload map<string,string>, row map<string,string>, keys map<string,string>, row_key string, mods array<struct<keys map<string,string>>>') -%}
nullif(to_json(transform(array({{ fields }}), parsed -> map_filter(
        coalesce(parsed.payload, parsed.row, parsed.keys, if(parsed.mods is null, null, if(contains(_change_id, '/backfill/'), from_json(substring_index(_change_id, '/backfill/', -1), 'map<string,string>'), get(parsed.mods, coalesce(try_cast(substring_index(_change_id, '/', -1) as int), 0)).keys)), map('row_key', parsed.row_key)), (name, value) -> lower(name) in ({{ reconcile.literals(keys | map('lower')) }}) and value is not null
    ))[0]), '{}')
{%- endmacro %}
