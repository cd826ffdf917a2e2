{#- One row for each model, the worst first. What is wrong with a model is what `reconcile_status` says of it; beside it
    stand the size of the model and what its ledger has of the last 30 days. `nodes`: the nodes of models that are built.
    `declared`: those of all models. `status`: the relation of `reconcile_status`, which alone says of the others that they
    were never built: they may have been since the view was made. -#}
{%- macro states_of_models(nodes, declared, status) -%}
{%- set missing = reconcile.missing_nodes(nodes, declared) -%}
{%- if not nodes and not missing -%}
{{ reconcile.no_rows({
    'relation': 'string', 'state': 'string', 'staging': 'string', 'materialized': 'string', 'as_of': 'timestamp', 'lag_seconds': 'bigint', 'batches_behind': 'bigint', 'records_behind': 'bigint',
    'pending_rows': 'bigint', 'quarantined': 'bigint', 'quarantine_reasons': 'array<struct<records: bigint, reason: string>>', 'drift': 'array<string>', 'set_back': 'string',
    'parity_verdict': 'string', 'compared_at': 'timestamp', 'stored_rows': 'bigint', 'days': 'array<struct<day: date, applied: bigint, lag_seconds: bigint>>', 'is_built': 'boolean'}) }}
{%- else -%}
{#- The day in UTC: a view keeps the time zone of the session that made it, and the reader's may be another. -#}
{%- set day = 'date_from_unix_date(cast(unix_micros(recorded_at) div 86400000000 as int))' -%}
with models as (
    select *
    from values
        {% for node in nodes + missing %}{{ reconcile._row_of_model(node, loop.index <= nodes | length) }}{{ ',\n        ' if not loop.last }}{% endfor %}
        as models (relation, staging, materialized, is_built)
),

facts as (
    select * from {{ reconcile.qualified(status) }}
),

found as (
    select
        relation,
        min(case state when 'wrong' then 1 when 'look' then 2 when 'wait' then 3 end) as place,
        min(if(kind = 'not_applied', at, null)) as waiting_since,
        coalesce(sum(if(kind = 'not_applied', batches, null)), 0) as batches_behind,
        coalesce(sum(if(kind = 'not_applied', records, null)), 0) as records_behind,
        coalesce(sum(if(kind = 'pending', records, null)), 0) as pending_rows,
        coalesce(sum(if(kind = 'quarantined', records, null)), 0) as quarantined,
        slice(array_sort(collect_list(if(kind = 'quarantined', struct(-records as fewer, detail), null))), 1, 3) as commonest,
        array_sort(collect_list(if(kind = 'drift', detail, null))) as drift,
        max(if(kind = 'set_back', detail, null)) as set_back,
        max(kind = 'never_built') as is_never_built,
        min(if(kind = 'parity', case state when 'wrong' then 1 when 'look' then 2 when 'wait' then 3 else 4 end, null)) as verdict,
        max(if(kind = 'parity', at, null)) as compared_at
    from facts
    where kind not in ('appended', 'unrouted')
    group by relation
),

appended as (
    select relation as staging, at as appended_at
    from facts
    where kind = 'appended'
),

sizes as (
    select relation, max_by(stored_rows, {{ reconcile.ledger_order() }}) as stored_rows
    from {{ reconcile.qualified(reconcile.ledger()) }}
    where kind in ('apply', 'replay', 'rebuild')
    group by relation
),

applied_by_day as (
    select relation, array_sort(collect_list(struct(day, applied, lag_seconds))) as days
    from (
        select
            relation,
            {{ day }} as day,
            sum(applied) as applied,
            max((unix_micros(recorded_at) - unix_micros(last_appended_at)) div 1000000) as lag_seconds
        from {{ reconcile.qualified(reconcile.ledger()) }}
        where kind = 'apply' and recorded_at >= current_timestamp() - interval 30 days
        group by relation, {{ day }}
    )
    group by relation
),

known as (
    select
        models.*,
        found.* except (relation),
        -- of a model whose staging table was set back, nothing says what it has applied
        if(models.is_built and found.set_back is null, coalesce(found.waiting_since, appended.appended_at), null) as as_of,
        sizes.stored_rows,
        applied_by_day.days
    from models
    left join found on found.relation = models.relation
    left join appended on appended.staging = models.staging
    left join sizes on sizes.relation = models.relation
    left join applied_by_day on applied_by_day.relation = models.relation
    where models.is_built or found.is_never_built
)

select
    relation,
    coalesce(element_at(array('wrong', 'look', 'wait'), place), 'right') as state,
    staging,
    materialized,
    as_of,
    (unix_micros(current_timestamp()) - unix_micros(as_of)) div 1000000 as lag_seconds,
    if(is_built, coalesce(batches_behind, 0), null) as batches_behind,
    if(is_built, coalesce(records_behind, 0), null) as records_behind,
    if(is_built, coalesce(pending_rows, 0), null) as pending_rows,
    if(is_built, coalesce(quarantined, 0), null) as quarantined,
    coalesce(transform(commonest, reason -> struct(-reason.fewer as records, reason.detail as reason)), array()) as quarantine_reasons,
    coalesce(drift, array()) as drift,
    set_back,
    element_at(array('confirmed', 'unprovable', 'in_flight', 'match'), verdict) as parity_verdict,
    compared_at,
    stored_rows,
    coalesce(days, array()) as days,
    is_built
from known
order by coalesce(place, 4), lag_seconds desc, relation
{%- endif -%}
{%- endmacro %}

{%- macro _row_of_model(node, is_built) -%}
{%- set inputs = reconcile.model_inputs(node) -%}
{%- set staging = reconcile.literal(reconcile.ledger_name(inputs.relations[0])) if inputs.objects else 'cast(null as string)' -%}
({{ reconcile.literal(reconcile.ledger_name(reconcile.relation_of(node))) }}, {{ staging }}, '{{ node.config.materialized }}', {{ 'true' if is_built else 'false' }})
{%- endmacro %}
