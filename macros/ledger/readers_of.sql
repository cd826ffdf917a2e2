{#- The table beside a staging table in which the models that read it are registered. `ingestion/maintain.py` asks the
    ledgers of these models how far a purge of the staging table may go. -#}
{%- macro readers_of(staging) -%}
  {{ return(staging.incorporate(path={'identifier': staging.identifier ~ '__readers'}, type='table')) }}
{%- endmacro %}

{#- Statements that register models with a staging table. `models`: {name in the ledger: reader}, with the reader as
    `reader_of` gives it, and with `after`: the time of the newest row that the model has, in microseconds, none if it
    has none. The statement only appends, so registrations of two runs do not conflict. Of several rows of a model the
    newest counts; so its time is later than that of the row before, even if the clock was set back. -#}
{%- macro get_register_statements(staging, models) -%}
  {{ return([reconcile._insert_readers(reconcile.qualified(reconcile.readers_of(staging)), staging, models)]) }}
{%- endmacro %}

{%- macro _insert_readers(table, staging, models) -%}
insert into {{ table }} by name
{%- for relation, reader in models.items() %}
select
    {{ reconcile.literal(reconcile.ledger_name(staging)) }} as staging,
    {{ reconcile.literal(reconcile.ledger_name(reconcile.ledger())) }} as ledger,
    {{ reconcile.literal(relation) }} as relation,
    {{ reconcile.literal(reader.materialized) }} as materialized,
    {{ reconcile.literal(reader.objects) }} as objects,
    {{ 'current_timestamp()' if reader.after is none else 'greatest(current_timestamp(), timestamp_micros(' ~ (reader.after | int + 1000000) ~ '))' }} as registered_at
{{ 'union all' if not loop.last }}
{%- endfor -%}
{%- endmacro %}

{#- A query of what is registered of this ledger's models: staging, relation, reader (as `reader_text` gives it) and
    registered_at, in microseconds. `tables`: staging tables, each with a table of readers. -#}
{%- macro registered_readers(tables) -%}
{%- for staging in tables %}
select {{ reconcile.literal(reconcile.ledger_name(staging)) }} as staging, relation, max_by(concat(materialized, ' ', objects), registered_at) as reader, unix_micros(max(registered_at)) as registered_at
from {{ reconcile.qualified(reconcile.readers_of(staging)) }}
where ledger = {{ reconcile.literal(reconcile.ledger_name(reconcile.ledger())) }}
group by relation
{{ 'union all' if not loop.last }}
{%- endfor -%}
{%- endmacro %}

{#- What is registered of a model: {materialized, objects}. -#}
{%- macro reader_of(node) -%}
  {{ return({
      'materialized': node.config.materialized,
      'objects': tojson(reconcile.model_inputs(node).objects | list | sort)}) }}
{%- endmacro %}

{%- macro reader_text(reader) -%}
  {{ return(reader.materialized ~ ' ' ~ reader.objects) }}
{%- endmacro %}
