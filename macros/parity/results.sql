{%- macro parity_runs() -%}
  {{ return(reconcile.own_table('reconcile_parity')) }}
{%- endmacro %}

{%- macro parity_differences() -%}
  {{ return(reconcile.own_table('reconcile_parity_differences')) }}
{%- endmacro %}

{#- Whether this run has a parity test. -#}
{%- macro has_parity_tests() -%}
  {%- for node in graph.nodes.values() | selectattr('resource_type', 'equalto', 'test') if node.unique_id in selected_resources and (node.get('test_metadata') or {}).get('name') == 'parity' -%}
    {{ return(true) }}
  {%- endfor -%}
  {{ return(false) }}
{%- endmacro %}

{#- Creates the tables of parity's results, in the target schema, if they are missing. `reconcile_parity` has one row for
    each comparison, `reconcile_parity_differences` one for each row that did not match in it: see "Parity" in
    docs/design.md. -#}
{%- macro create_parity_tables(file_format) -%}
  {%- do run_query('create schema if not exists ' ~ reconcile.qualified_schema(reconcile.parity_runs())) -%}
  {%- do reconcile.create_if_missing(reconcile.parity_runs(), reconcile.get_create_parity_statement(file_format)) -%}
  {%- do reconcile.create_if_missing(reconcile.parity_differences(), reconcile.get_create_parity_differences_statement(file_format)) -%}
{%- endmacro %}

{%- macro get_create_parity_statement(file_format) -%}
{{ reconcile.create_table_statement(reconcile.parity_runs(), reconcile._columns_of_parity(), file_format) }}
{%- endmacro %}

{%- macro _columns_of_parity() %}
run_id string comment 'invocation_id of the dbt run',
test string comment 'name of the test',
relation string comment 'schema.name of the model',
compared_to string comment 'schema.name of the relation with the rows of the source; of a proof by prove.py, the database and its table',
verdict string comment 'match if every row in scope matches; otherwise the worst verdict of a row: confirmed, unprovable, in_flight',
rechecked_run_id string comment 'the run whose rows in flight are the only rows that were compared again; NULL: all rows were compared',
rechecks bigint comment 'how often rows in flight have been compared again so far',
position_kind string,
position string comment 'NULL: both sides were compared as they were',
uncertain_from timestamp comment 'it is uncertain whether the snapshot includes a change of this time or later; NULL: the position is exact',
uncertain_to timestamp,
is_delivered boolean comment 'whether staging held everything up to the position',
not_delivered_because string,
allowance string comment 'how late records may arrive, if the source does not report what it has delivered',
compared bigint comment 'the number of rows of both sides; a row on both sides counts once',
matched bigint,
confirmed bigint,
in_flight bigint,
unprovable bigint,
missing bigint comment 'rows that did not match: only in the source',
unexpected bigint comment 'rows that did not match: only in the model',
different bigint,
tolerated map<string, bigint> comment 'by column, the number of values that match only by a tolerance',
model_version bigint comment 'the version of the base table',
source_version bigint comment 'the version of the snapshot',
model_digest string comment 'the sum of the hashes of the rows; equal on both sides if the rows are equal, except for versions and tolerances; of a proof, both sums of hashes',
source_digest string,
seconds double,
recorded_at timestamp
{%- endmacro %}

{%- macro get_create_parity_differences_statement(file_format) -%}
{{ reconcile.create_table_statement(reconcile.parity_differences(), reconcile._columns_of_parity_differences(), file_format) }}
{%- endmacro %}

{%- macro _columns_of_parity_differences() %}
run_id string,
test string,
relation string,
compared_to string,
key string comment 'the key as JSON; NULL if the finding is not about one row',
verdict string,
difference string comment 'missing: only in the source; unexpected: only in the model; different',
reason string comment 'why the verdict could not be decided',
columns array<struct<column: string, model: string, source: string>> comment 'the columns that differ; their values only with store_values'
{%- endmacro %}

{#- The run whose rows in flight are compared again, {run_id, rechecks, rows}, or none. It is the last run of this test,
    if that run left nothing but rows in flight and one more recheck is allowed. -#}
{%- macro rows_in_flight(comparison) -%}
  {%- if not comparison.recheck or not comparison.position -%}{{ return(none) }}{%- endif -%}
  {%- set last = run_query(reconcile._last_comparison(comparison)) -%}
  {%- if not last or last[0][1] != 'in_flight' or last[0][2] >= comparison.recheck -%}{{ return(none) }}{%- endif -%}
  {{ return({'run_id': last[0][0], 'rechecks': last[0][2] | int + 1, 'rows': reconcile._keys_in_flight(comparison, last[0][0])}) }}
{%- endmacro %}

{%- macro _is_of_comparison(comparison) -%}
test = {{ reconcile.literal(comparison.test) }} and relation = {{ reconcile.literal(reconcile.ledger_name(comparison.model)) }} and compared_to = {{ reconcile.literal(comparison.compared_to) }}
{%- endmacro %}

{%- macro _last_comparison(comparison) -%}
select run_id, verdict, rechecks
from {{ reconcile.qualified(reconcile.parity_runs()) }}
where {{ reconcile._is_of_comparison(comparison) }}
order by recorded_at desc
limit 1
{%- endmacro %}

{%- macro _keys_in_flight(comparison, run_id) -%}
select key
from {{ reconcile.qualified(reconcile.parity_differences()) }}
where run_id = {{ reconcile.literal(run_id) }} and {{ reconcile._is_of_comparison(comparison) }}
{%- endmacro %}

{#- The differences are inserted first: if `reconcile_parity` has a run, `reconcile_parity_differences` has all differences
    of the run. `verdict`: the worst verdict
    of a row. `started`: when the comparison began. -#}
{%- macro get_parity_statements(comparison, versions, delivered, scope, counts, verdict, started) -%}
  {{ return(([reconcile._insert_differences(comparison)] if counts.compared != counts.matched else [])
      + [reconcile._insert_parity(comparison, versions, delivered, scope, counts, verdict, started)]) }}
{%- endmacro %}

{#- The columns by which both tables identify a comparison. -#}
{%- macro _names_of_comparison(comparison) -%}
'{{ invocation_id }}' as run_id,
    {{ reconcile.literal(comparison.test) }} as test,
    {{ reconcile.literal(reconcile.ledger_name(comparison.model)) }} as relation,
    {{ reconcile.literal(comparison.compared_to) }} as compared_to
{%- endmacro %}

{%- macro _insert_differences(comparison) -%}
insert into {{ reconcile.qualified(reconcile.parity_differences()) }} by name
select
    {{ reconcile._names_of_comparison(comparison) }},
    key,
    verdict,
    difference,
    reason,
    {{ 'columns' if comparison.store_values else "transform(columns, difference -> named_struct('column', difference.column, 'model', cast(null as string), 'source', cast(null as string)))" }} as columns
from {{ comparison.verdicts_cache }}
where verdict <> 'match'
{%- endmacro %}

{%- macro _insert_parity(comparison, versions, delivered, scope, counts, verdict, started) -%}
{%- set position = comparison.position -%}
insert into {{ reconcile.qualified(reconcile.parity_runs()) }} by name
select
    {{ reconcile._names_of_comparison(comparison) }},
    '{{ verdict }}' as verdict,
    {{ reconcile.literal(scope.run_id) if scope else 'cast(null as string)' }} as rechecked_run_id,
    {{ scope.rechecks if scope else 0 }}L as rechecks,
    {{ reconcile.literal(position.kind) if position else 'cast(null as string)' }} as position_kind,
    {{ reconcile.literal(position.value) if position else 'cast(null as string)' }} as position,
    {{ position.from if position and position.from else 'cast(null as timestamp)' }} as uncertain_from,
    {{ position.to if position and position.to else 'cast(null as timestamp)' }} as uncertain_to,
    {{ delivered.is_complete | lower }} as is_delivered,
    {{ reconcile.literal(delivered.reason) if delivered.reason else 'cast(null as string)' }} as not_delivered_because,
    {{ reconcile.literal(comparison.allowance) if position and position.taken_at and position.kind != 'read_timestamp' else 'cast(null as string)' }} as allowance,
    {%- for count in ['compared', 'matched', 'confirmed', 'in_flight', 'unprovable', 'missing', 'unexpected', 'different'] %}
    {{ counts[count] }}L as {{ count }},
    {%- endfor %}
    from_json({{ reconcile.literal(counts.tolerated) }}, 'map<string, bigint>') as tolerated,
    {%- for side in ['model', 'source'] %}
    {{ 'cast(null as bigint)' if versions[side] is none else versions[side] ~ 'L' }} as {{ side }}_version,
    {{ reconcile.literal(counts[side ~ '_digest']) }} as {{ side }}_digest,
    {%- endfor %}
    {{ (modules.datetime.datetime.now() - started).total_seconds() }}D as seconds,
    current_timestamp() as recorded_at
{%- endmacro %}
