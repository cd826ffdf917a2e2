{#- Compares both sides, each at one version, and writes the result to the tables of results.

    The macros of this folder take the results under the same names: `comparison` as the macro `comparison` gives it,
    `versions` as `_compared_versions`, `staged` as `staged_at`, `delivered` as `delivery_at`, and `scope` as
    `rows_in_flight`. `staged` also has the counts of `count_recent_records`, and `folds`: whether rows have to be
    folded from their change records. -#}
{%- macro compare(comparison) -%}
  {%- set started = modules.datetime.datetime.now() -%}
  {%- do reconcile.run_statements(reconcile.get_session_statements() + reconcile.get_drop_comparison_statements(comparison)) -%}
  {%- set versions = reconcile._compared_versions(comparison) -%}
  {%- set scope = reconcile.rows_in_flight(comparison) -%}
  {%- set delivered = {'is_complete': true, 'reason': none} -%}
  {%- if comparison.position -%}
    {%- set staged = reconcile.staged_at(comparison, versions.model) -%}
    {%- set delivered = reconcile.delivery_at(comparison, staged) -%}
    {%- do reconcile.run_statements([reconcile.cache_recent_records(comparison, staged, versions.model)]) -%}
    {%- do staged.update(reconcile.one_row(reconcile.count_recent_records(comparison))) -%}
    {%- do staged.update({'folds': staged.touched > 0 or not staged.has_base}) -%}
    {%- do reconcile.run_statements([reconcile.cache_touched_records(comparison, staged)] if staged.folds else []) -%}
  {%- endif -%}
  {%- do reconcile.run_statements([reconcile.cache_verdicts(comparison, versions, staged, delivered, scope)]) -%}
  {%- set counts = reconcile.one_row(reconcile.count_verdicts(comparison)) -%}
  {%- if not counts.compared and not scope and not comparison.allow_empty -%}
    {%- do comparison.update({'incomparable': ['both sides are empty, so the comparison proves nothing; if they are expected to be empty, set `allow_empty: true`']}) -%}
    {%- do reconcile.run_statements(['drop view ' ~ comparison.verdicts_cache, reconcile.cache_verdicts(comparison)]) -%}
    {%- set counts = reconcile.one_row(reconcile.count_verdicts(comparison)) -%}
  {%- endif -%}
  {%- do reconcile.run_statements(reconcile.get_parity_statements(comparison, versions, delivered, scope, counts, reconcile._verdict_of(counts), started)) -%}
  {%- set differing = run_query(reconcile._columns_that_differ(comparison)) if counts.different else [] -%}
  {%- do log(reconcile.summary_of_comparison(comparison, delivered, counts, differing), info=true) -%}
{%- endmacro %}

{#- The verdict of a comparison is the worst that a row has. -#}
{%- macro _verdict_of(counts) -%}
  {{ return('match' if counts.compared == counts.matched else 'confirmed' if counts.confirmed else 'unprovable' if counts.unprovable else 'in_flight') }}
{%- endmacro %}

{%- macro get_drop_comparison_statements(comparison) -%}
  {{ return(['drop view if exists ' ~ comparison.verdicts_cache, 'drop view if exists ' ~ comparison.touched_cache, 'drop view if exists ' ~ comparison.recent_cache]) }}
{%- endmacro %}

{#- The versions of both sides that are compared, whatever is written meanwhile: {model, source}; none for a view. The
    version of the model is that of its base table. -#}
{%- macro _compared_versions(comparison) -%}
  {%- set base = comparison.relations.base -%}
  {%- set has_base = reconcile.existing_relation(base) -%}
  {%- set is_snapshot = reconcile.table_properties(comparison.compare_to).get('reconcile.snapshot') -%}
  {%- set compared_to = comparison.compare_to -%}
  {{ return({
      'model': reconcile.table_version(base, reconcile.file_format_of_catalog(reconcile.catalog_of(base))) if has_base else none,
      'source': reconcile.table_version(
          compared_to, reconcile.file_format_of_catalog(reconcile.catalog_of(compared_to))) if is_snapshot else none}) }}
{%- endmacro %}

{%- macro summary_of_comparison(comparison, delivered, counts, differing) -%}
parity of {{ reconcile.ledger_name(comparison.model) }} with {{ comparison.compared_to }}
{{- ' as of ' ~ comparison.position.label if comparison.position }}: {{ counts.matched }} of {{ counts.compared }} rows match
{%- for verdict in ['confirmed', 'in_flight', 'unprovable'] if counts[verdict] %}, {{ counts[verdict] }} {{ verdict }}{% endfor -%}
{%- for column, rows in differing %}{{ '; rows that differ, by column: ' if loop.first else ', ' }}{{ rows }} in {{ column }}{% endfor -%}
{%- for column, number in (fromjson(counts.tolerated) or {}).items() if number %}, {{ number }} by a tolerance of {{ column }}{% endfor -%}
{{ '; ' ~ delivered.reason if delivered.reason and counts.matched != counts.compared }}
{%- endmacro %}

{#- In which columns most rows differ. -#}
{%- macro _columns_that_differ(comparison) -%}
select _change_difference.column, count(*) as rows
from {{ comparison.verdicts_cache }}
lateral view explode(columns) as _change_difference
where difference = 'different'
group by _change_difference.column
order by rows desc, _change_difference.column
limit 5
{%- endmacro %}
