{#- A batch is parsed once and folded once, whatever is then asked of it. Two settings, wherever the session was configured:
    inferring filters from the source macro's chain of projections takes Spark half a minute and gains nothing; and a cached view
    that is kept as text is parsed and analyzed, the whole chain of it, each time it is read. -#}
{%- macro get_fold_statements(relations, settings, range) -%}
  {%- set fields = reconcile._fields_of_model() -%}
  {{ return(reconcile.get_uncache_statements(relations) + [
      'set spark.sql.constraintPropagation.enabled = false',
      'set spark.sql.legacy.storeAnalyzedPlanForView = true',
      reconcile._cache(relations.changes_cache,
          reconcile.checked_records(sql, fields, settings.columns, settings.unique_key, range.first, range.last, settings.partial_records)),
      reconcile._cache(relations.newest_cache,
          reconcile.columns_beside_base(reconcile._newest_beside_base(relations, settings, range)) if settings.partial_records
          else reconcile._newest_beside_base(relations, settings, range)),
  ]) }}
{%- endmacro %}

{%- macro _cache(name, query) -%}
cache table {{ name }} as
{{ query }}
{%- endmacro %}

{%- macro get_uncache_statements(relations) -%}
  {{ return(['drop view if exists ' ~ relations.newest_cache, 'drop view if exists ' ~ relations.changes_cache]) }}
{%- endmacro %}

{%- macro _fields_of_model() -%}
  {%- set fields = adapter.get_column_schema_from_query(sql) | map(attribute='name') | list -%}
  {%- set complaints = [] -%}
  {%- for field in ['_change_type', '_change_sequence', '_change_id', '_change_time', '_change_batch', '_change_columns', '_change_error']
        if field not in fields -%}
    {%- do complaints.append('its SELECT has no column ' ~ field ~ '; see "Change records" in docs/design.md') -%}
  {%- endfor -%}
  {%- for column in reconcile.declared_columns() if column.name not in fields -%}
    {%- do complaints.append('its SELECT has no column ' ~ column.name ~ ', which its YAML declares') -%}
  {%- endfor -%}
  {%- do reconcile.raise_complaints(complaints) -%}
  {{ return(fields) }}
{%- endmacro %}

{#- The semi join comes first because an outer join can only broadcast, or else shuffles, the side that grows: the base table.
    Subqueries, not CTEs: through a CTE Spark does not see that what it reads is cached. -#}
{%- macro _newest_beside_base(relations, settings, range) -%}
{%- set known = {'_change_sequence': 'string', '_deleted': 'boolean'} -%}
{%- if settings.partial_records -%}
  {%- do known.update({'_change_row_sequence': 'string', '_change_column_sequences': 'map<string, string>'}) -%}
{%- endif -%}
{%- set fold = reconcile.newest_columns if settings.partial_records else reconcile.newest_records -%}
select
    newest.*,
    {%- for column, type in known.items() %}
    {{ 'cast(null as ' ~ type ~ ')' if range.kind == 'rebuild' else 'base.' ~ column }} as {{ '_change_base' ~ column | replace('_change', '') }}{{ ',' if not loop.last }}
    {%- endfor %}
from (
    {{ fold(relations.changes_cache, settings.columns, settings.unique_key) | indent(4) }}
) as newest
{%- if range.kind != 'rebuild' %}
left join (
    select {{ reconcile.broadcast_hint('change', range.delivered) }}{{ reconcile.key_columns(settings.unique_key) }}, {{ known | join(', ') }}
    from {{ reconcile.qualified(relations.base) }} as known
    left semi join {{ relations.changes_cache }} as change
        on {{ reconcile.keys_match(settings.unique_key, 'change', 'known') }}
) as base
    on {{ reconcile.keys_match(settings.unique_key, 'newest', 'base') }}
{%- endif -%}
{%- endmacro %}
