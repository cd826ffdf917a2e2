{#- The table beside a staging table in which the models that read it are registered. `ingestion/maintain.py` asks the
    ledgers of these models how far a purge of the staging table may go. -#}
{%- macro readers_of(staging) -%}
  {{ return(staging.incorporate(path={'identifier': staging.identifier ~ '__readers'}, type='table')) }}
{%- endmacro %}

{#- Statements that register models with a staging table. `models`: {name in the ledger: reader}, with the reader as
    `reader_of` gives it. The second statement only appends, so registrations of two runs do not conflict. Of several
    rows of a model the newest counts. -#}
{%- macro get_register_statements(staging, file_format, models) -%}
  {%- set table = reconcile.qualified(reconcile.readers_of(staging)) -%}
  {{ return([reconcile._create_readers(table, file_format), reconcile._insert_readers(table, staging, models)]) }}
{%- endmacro %}

{%- macro _create_readers(table, file_format) -%}
create table if not exists {{ table }} (
    staging string comment 'schema.name of the staging table, as the ledger has it',
    ledger string comment 'schema.name of the ledger that has the account of the model',
    relation string comment 'schema.name of the model',
    materialized string comment 'current_state, history or current_view',
    objects string comment 'the objects that the model reads, as a JSON list; an empty list for a model without a source macro, which may read every object',
    registered_at timestamp
) using {{ file_format }}{{ reconcile.format_properties_clause(file_format) }}
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
    current_timestamp() as registered_at
{{ 'union all' if not loop.last }}
{%- endfor -%}
{%- endmacro %}

{#- A query of what is registered of this ledger's models: staging, relation, reader, the last as `reader_text` gives it.
    `tables`: staging tables, each with a table of readers. -#}
{%- macro registered_readers(tables) -%}
{%- for staging in tables %}
select {{ reconcile.literal(reconcile.ledger_name(staging)) }} as staging, relation, max_by(concat(materialized, ' ', objects), registered_at) as reader
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
