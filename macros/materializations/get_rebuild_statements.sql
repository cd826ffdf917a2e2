{#- `rows`: a SELECT of all rows of the base table. Where staging was purged the quarantine keeps what came of the records that are gone. -#}
{%- macro get_rebuild_statements(relations, settings, range, rows) -%}
  {{ return([
      reconcile._replace_quarantine(relations, range) if range.snapshot and settings.built.quarantine else reconcile._create_quarantine(relations, settings),
      reconcile._create_base(relations, settings, rows)]) }}
{%- endmacro %}

{%- macro _create_quarantine(relations, settings) -%}
create or replace table {{ reconcile.qualified(relations.quarantine) }}
using delta
tblproperties ('reconcile.quarantine' = {{ reconcile.literal(reconcile.ledger_name(relations.live)) }}{{ reconcile.as_of_property(settings) }})
as
{{ reconcile.quarantined_records(relations.changes_cache) }}
{%- endmacro %}

{#- What is in quarantine, of checked records: a table or a subquery. -#}
{%- macro quarantined_records(changes) -%}
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
from {{ changes }}
where _change_error is not null
{%- endmacro %}

{%- macro _create_base(relations, settings, rows) -%}
create or replace table {{ reconcile.qualified(relations.base) }}
using delta
{{ partition_cols(label='partitioned by') }}
{{ location_clause() if not settings.as_of }}
tblproperties (
    {%- for property, value in reconcile._base_properties(settings).items() %}
    {{ reconcile.literal(property) }} = {{ reconcile.literal(value) }}{{ ',' if not loop.last }}
    {%- endfor %}
)
as
{{ rows }}
{%- endmacro %}

{#- Deletion vectors: a merge marks rows instead of writing their files again. Column mapping: only for names Parquet cannot hold. -#}
{%- macro _base_properties(settings) -%}
  {%- set properties = {'delta.enableDeletionVectors': 'true'} -%}
  {%- if modules.re.search('[ ,;{}()\n\t=]', settings.columns | map(attribute='name') | join('')) -%}
    {%- do properties.update({'delta.columnMapping.mode': 'name'}) -%}
  {%- endif -%}
  {%- do properties.update(config.get('tblproperties') or {}) -%}
  {%- do properties.update({'reconcile.declaration': settings.declaration}) -%}
  {%- if settings.as_of -%}{%- do properties.update({'reconcile.as_of': settings.as_of.said}) -%}{%- endif -%}
  {{ return(properties) }}
{%- endmacro %}
