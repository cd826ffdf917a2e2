{#- How the records of models differ from what the models declare: one row for each column that differs, and for each
    key or schema that replaced an earlier one. A column that a model names under `ignored_columns` has the finding `ignored`.
    There is no WITH: Spark numbers the queries of a WITH by their place in the whole statement, and so would not see that
    `reconcile_models` reads a `reconcile_status` that `report.py` keeps. `nodes`: the models' nodes. -#}
{%- macro drift_of(nodes) -%}
{%- if not nodes -%}
{{ reconcile.no_rows({'relation': 'string', 'object': 'string', 'kind': 'string', 'name': 'string', 'finding': 'string', 'since_batch': 'bigint', 'last_batch': 'bigint', 'records': 'bigint', 'forms': 'string', 'yaml': 'string'}) }}
{%- else -%}
select
    relation, object, kind, name, if(kind = 'column' and array_contains(ignored, name), 'ignored', finding) as finding, since_batch, last_batch, records, forms,
    concat('- {name: "', replace(replace(undeclared, '\\', '\\\\'), '"', '\\"'), '", data_type: ', if(data_type = 'json', json_type, concat(data_type, ', config: {meta: {added: true}}')), '}') as yaml
from (
    select
        relation, 'column' as kind, name, last_batch,
        case when not is_declared then 'new' when cardinality(missing) > 0 then 'missing' when is_changed then 'changed form' end as finding,
        case when not is_declared then first_batch when cardinality(missing) > 0 then array_min(missing.batch) else element_at(observed_forms, -1).since end as since_batch,
        case when not is_declared then records when cardinality(missing) > 0 then aggregate(missing.records, 0L, (sum, number) -> sum + number) else element_at(observed_forms, -1).records end as records,
        array_join(transform(observed_forms, entry -> concat(entry.form, ' as ', entry.spelled, ' since batch ', entry.since)), ', ') as forms,
        if(not is_declared, spelled, null) as undeclared,
        case when exists(observed_forms, entry -> entry.form = 'json') then 'json' when is_changed then 'string' when observed_forms[0].form = 'whole number' then 'bigint' when observed_forms[0].form = 'boolean' then 'boolean' else 'string' end as data_type
    from (
        {{ reconcile._judged_columns() | indent(8) }}
    )
    union all
    -- of a key or schema that the source takes up again, the newest return counts
    select relation, kind, name, last_batch, if(kind = 'key', 'changed key', 'changed schema'), last_batch, records, null, null, null
    from (
        select *, row_number() over (partition by relation, kind order by since, name) as place
        from (
            {{ reconcile._observations("kind <> 'column'") | indent(12) }}
        )
    )
    where place > 1 or cardinality(batches) > 1
)
inner join (
    {{ reconcile._models_of_drift(nodes) | indent(4) }}
) using (relation)
where finding is not null
{%- endif -%}
{%- endmacro %}

{#- A column is missing since the first batch that lacks it after the last batch that does not lack it. -#}
{%- macro _judged_columns() -%}
select
    *,
    filter(lacking, entry -> entry.batch > coalesce(last_whole, 0)) as missing,
    cardinality(array_distinct(transform(observed_forms, entry -> struct(entry.form, entry.spelled)))) > 1 as is_changed
from (
    select
        relation, name, is_declared,
        min(since) as first_batch,
        max(last_batch) as last_batch,
        sum(if(form = 'missing', 0, records)) as records,
        array_sort(collect_list(if(form in ('missing', 'null'), null, struct(since, form, spelled, records)))) as observed_forms,
        coalesce(max(if(form = 'missing', batches, null)), array()) as lacking,
        array_max(array_except(flatten(collect_list(if(form = 'missing', null, batches.batch))), lacking.batch)) as last_whole,
        max(spelled) as spelled
    from (
        {{ reconcile._observations("kind = 'column'") | indent(8) }}
    )
    group by relation, name, is_declared
)
{%- endmacro %}

{#- What the records show of each column, key or schema, with its batches. -#}
{%- macro _observations(where) -%}
select relation, kind, name, is_declared, spelled, min(form) as form, min(batch) as since, max(batch) as last_batch, sum(records) as records, collect_list(struct(batch, records)) as batches
from {{ reconcile.qualified(reconcile.columns_seen()) }}
where {{ where }}
group by relation, kind, name, is_declared, spelled, replace(form, 'whole ', '')
{%- endmacro %}

{%- macro _models_of_drift(nodes) -%}
select *
from values
    {% for node in nodes %}{% set ignored = reconcile.ignored_columns(node) -%}
    ({{ reconcile.literals([reconcile.ledger_name(reconcile.relation_of(node)), reconcile.model_inputs(node).objects | join(', ')]) }}, {{ reconcile._array_of_texts(ignored) if ignored else 'cast(array() as array<string>)' }}, {{ reconcile.literal(reconcile._json_type(node)) }}){{ ',\n    ' if not loop.last }}
    {%- endfor %}
    as models (relation, object, ignored, json_type)
{%- endmacro %}

{#- The type and the meta, as YAML, that a model declares for an added column of JSON which is no text. For Datastream it
    is the one that generate.py writes, which tables of every format hold. Only Datastream's macros take `encoding`; for others a variant holds the
    JSON, which an Iceberg table cannot have. -#}
{%- macro _json_type(node) -%}
{%- if reconcile.model_inputs(node).objects.values() | selectattr('carries', 'undefined') | list -%}
string, config: {meta: {encoding: json, added: true}}
{%- else -%}
{{ 'string' if reconcile.file_format(node) == 'iceberg' else 'variant' }}, config: {meta: {added: true}}
{%- endif -%}
{%- endmacro %}
