{#- `rows`: a SELECT of all rows of the base table. If staging was purged, the quarantine keeps its rows for the purged
    records. -#}
{%- macro get_rebuild_statements(relations, settings, range, rows) -%}
  {{ return([
      reconcile._replace_quarantine(relations, range) if range.snapshot and settings.built.quarantine
      else reconcile._create_quarantine(relations, settings.form.file_format, settings.as_of),
      reconcile.create_base(relations, settings, rows, range.retry)]) }}
{%- endmacro %}

{%- macro _create_quarantine(relations, file_format, as_of) -%}
{%- set properties = {'reconcile.quarantine': reconcile.ledger_name(relations.live)} -%}
create or replace table {{ reconcile.qualified(relations.quarantine) }}
using {{ file_format }}{{ reconcile.replaceable_ranges(file_format) }}
{{ reconcile.properties_clause(reconcile.properties_of(file_format, as_of, properties)) }}
as
{{ reconcile.quarantined_records(relations.changes_cache) }}
{%- endmacro %}

{#- The records that go into quarantine. `changes`: a table or a subquery of checked records. -#}
{%- macro quarantined_records(changes) -%}
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
from {{ changes }}
where _change_error is not null
{%- endmacro %}

{#- `rows`: a SELECT of all rows of the base table, which is made anew. `retry`: see `retry_of_quarantine`; until its
    ledger row is written, the next run replays all batches. -#}
{%- macro create_base(relations, settings, rows, retry=none) -%}
{%- set stored_key = reconcile.stored_column(reconcile.identifier(settings.form.unique_key[0]), settings.form.file_format) -%}
create or replace table {{ reconcile.qualified(relations.base) }}
using {{ settings.form.file_format }}
{{ reconcile.buckets_clause(settings.buckets, stored_key) or partition_cols(label='partitioned by') }}
{{ reconcile.location_of_base() if not settings.as_of }}
{{ reconcile.properties_clause(reconcile._base_properties(settings, retry)) }}
as
{{ reconcile.rows_to_store(rows, settings.form) }}
{%- endmacro %}

{%- macro _base_properties(settings, retry) -%}
  {%- set properties = dict(
        reconcile.base_format_properties(settings.form.file_format, settings.form.columns), **(config.get('tblproperties') or {})) -%}
  {#- A table of Iceberg that is replaced keeps its properties: what no longer holds is set to nothing. -#}
  {#- A quarantine that stays has the number of its last retry, see `_begun_retry`. A table that is made from its own rows
      still lacks what a retry that died has not applied. -#}
  {%- set retried = (settings.built.retried_quarantine or settings.built.retried or '') | string -%}
  {%- set retried = retry.number ~ ' ' ~ retry.first if retry
        else settings.built.retried if settings.is_rewritten else retried.split(' ')[0] -%}
  {%- for name, now, before in [('reconcile.retried', retried, none), ('reconcile.tables', settings.tables, settings.built.tables),
                                ('reconcile.snapshot_applied', reconcile.name_of_applied(settings.snapshot) if settings.snapshot, settings.built.snapshot)] -%}
    {%- if now or before -%}{%- do properties.update({name: now or ''}) -%}{%- endif -%}
  {%- endfor -%}
  {%- do properties.update(reconcile.properties_of_declaration(settings)) -%}
  {{ return(reconcile.properties_of(settings.form.file_format, settings.as_of, properties)) }}
{%- endmacro %}
