{#- `rows`: a SELECT of all rows of the base table. If staging was purged, the quarantine keeps its rows for the purged
    records. Both tables get the mark of `number_of_rebuild`, as of a retry that is under way: until the ledger has the row
    of the rebuild, the next run replays its batches. The base table that is there gets the mark first: if the run dies
    before the table is replaced, the quarantine lacks what only the new declaration reads, and a run without news, which
    asks the base table alone, has to see that. -#}
{%- macro get_rebuild_statements(relations, settings, range, rows) -%}
  {%- set number = reconcile.number_of_rebuild(settings, range) -%}
  {%- set mark = {'reconcile.retried': number ~ ' ' ~ range.first} if number else {} -%}
  {%- if not (range.snapshot and settings.built.quarantine) -%}
    {%- set statements = [reconcile._create_quarantine(relations, settings.form.file_format, settings.as_of, mark)] -%}
  {%- else -%}
    {%- set statements = [reconcile._replace_quarantine(relations, range)] -%}
    {%- do statements.insert(0, reconcile._set_property(relations.quarantine, mark))
          if number > reconcile._number_of_retry(settings.built.retried_quarantine) -%}
  {%- endif -%}
  {%- do statements.insert(0, reconcile._set_property(relations.base, mark))
        if settings.built.base and not settings.as_of and number > reconcile._number_of_retry(settings.built.retried) -%}
  {{ return(statements + [reconcile.create_base(relations, settings, rows, number if settings.as_of else mark['reconcile.retried'])]) }}
{%- endmacro %}

{%- macro _create_quarantine(relations, file_format, as_of, mark) -%}
{%- set properties = dict({'reconcile.quarantine': reconcile.ledger_name(relations.live)}, **mark) -%}
create or replace table {{ reconcile.qualified(relations.quarantine) }}
using {{ file_format }}{{ reconcile.replaceable_ranges(file_format) }}
{{ reconcile.properties_clause(reconcile.properties_of(file_format, as_of, properties)) }}
as
{{ reconcile.quarantined_records(relations.changes_cache) }}
{%- endmacro %}

{#- `rows`: a SELECT of all rows of the base table, which is made anew. `retried`: its mark, see `_begun_retry`. -#}
{%- macro create_base(relations, settings, rows, retried) -%}
{%- set stored_key = reconcile.stored_column(reconcile.identifier(settings.form.unique_key[0]), settings.form.file_format) -%}
{%- set clustered = reconcile._clustered_columns(settings) -%}
create or replace table {{ reconcile.qualified(relations.base) }}
using {{ settings.form.file_format }}
{{ reconcile.buckets_clause(settings.buckets, stored_key) or reconcile.clustering_clause(clustered, settings.form.file_format) or partition_cols(label='partitioned by') }}
{{ reconcile.location_of_base() if not settings.as_of }}
{{ reconcile.properties_clause(reconcile._base_properties(settings, retried)) }}
as
{{ reconcile.rows_in_order(reconcile.rows_to_store(rows, settings.form), clustered, settings.form.file_format) }}
{%- endmacro %}

{#- The columns by which the base table is clustered, as SQL, under the names that it stores them as. -#}
{%- macro _clustered_columns(settings) -%}
  {%- set stored = [] -%}
  {%- for name in settings.cluster_by -%}{%- do stored.append(reconcile.column_of_table(reconcile.identifier(name), settings.form)) -%}{%- endfor -%}
  {{ return(stored) }}
{%- endmacro %}

{%- macro _base_properties(settings, retried) -%}
  {%- set properties = dict(
        reconcile.base_format_properties(settings.form), **(config.get('tblproperties') or {})) -%}
  {#- A table of Iceberg that is replaced keeps its properties: what no longer holds is set to nothing. -#}
  {%- for name, now, before in [('reconcile.retried', retried, none), ('reconcile.declared_in', none, settings.built.declared_in),
                                ('reconcile.kept_deletes', none, settings.built.kept_deletes), ('reconcile.horizon', settings.horizon, settings.built.horizon), ('reconcile.tables', settings.tables, settings.built.tables),
                                ('reconcile.cluster_by', reconcile.clustering_property(reconcile._clustered_columns(settings), settings.form.file_format), settings.built.cluster_by),
                                ('reconcile.snapshot_applied', reconcile.name_of_applied(settings.snapshot) if settings.snapshot, settings.built.snapshot)] -%}
    {%- if now or before -%}{%- do properties.update({name: now or ''}) -%}{%- endif -%}
  {%- endfor -%}
  {%- do properties.update(reconcile.properties_of_declaration(settings)) -%}
  {{ return(reconcile.properties_of(settings.form.file_format, settings.as_of, properties)) }}
{%- endmacro %}
