{#- Runs after every `dbt run` and `dbt build`, in every project that installs the package: prints what otherwise only
    those would see who look for it. -#}
{%- macro end_run() -%}
  {%- if execute and flags.WHICH in ['run', 'build'] and not flags.EMPTY and not reconcile.as_of() -%}
    {%- do reconcile._rebuild_monitoring_views() -%}
    {%- for line in reconcile.summary_of_run() -%}{%- do log(line, info=true) -%}{%- endfor -%}
  {%- endif -%}
{%- endmacro %}

{#- After the first run of a model, makes the views of built models anew: they were made before the model and do not
    include it. -#}
{%- macro _rebuild_monitoring_views() -%}
  {%- if 'rebuild' in graph.get('reconcile_ranges', {}).values() | map(attribute='kind') | list -%}
    {%- for name in ['reconcile_quarantine', 'reconcile_status', 'reconcile_models'] -%}
      {%- set node = graph.nodes.get('model.reconcile.' ~ name) -%}
      {%- set view = reconcile.relation_of(node) if node -%}
      {%- if view and reconcile.existing_relation(view) -%}
        {%- set query = reconcile._query_of_built_models(name, reconcile.built_nodes()) -%}
        {%- set statement = reconcile.get_view_statement(view, query | trim, '', reconcile.table_properties(view).get('reconcile.definition', 'otherwise')) -%}
        {%- do run_query(statement) if statement -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro %}

{%- macro _query_of_built_models(name, nodes) -%}
{%- if name == 'reconcile_quarantine' -%}
{{ reconcile.quarantine_reasons(nodes) }}
{%- elif name == 'reconcile_status' -%}
{{ reconcile.status_of(nodes, reconcile.reconciled_nodes()) }}
{%- else -%}
{{ reconcile.states_of_models(nodes, reconcile.reconciled_nodes(), reconcile.relation_of(graph.nodes['model.reconcile.reconcile_status'])) }}
{%- endif -%}
{%- endmacro %}

{#- A list of lines about the batches that this run has applied: which of their records no model reads, and to which
    models they brought nothing. -#}
{%- macro summary_of_run() -%}
  {%- set lines = [] -%}
  {%- for name, staging in reconcile.staging_read().items() -%}
    {%- set ranges = graph.get('reconcile_ranges', {}).values() | selectattr('staging', 'equalto', name) | list -%}
    {%- set new_ranges = ranges | selectattr('delivered') | list -%}
    {%- if new_ranges -%}
      {%- set first, last = new_ranges | map(attribute='first') | max, new_ranges | map(attribute='last') | max -%}
      {%- set unread = [] -%}
      {%- for row in run_query(reconcile._unread_of_batches(staging, first, last)) -%}{%- do unread.append(row[0]) -%}{%- endfor -%}
      {%- if unread -%}
        {%- do lines.append('No model reads these objects of ' ~ name ~ ' (batch ' ~ first ~ ' and later): ' ~ reconcile._first_five(unread) ~ '. See reconcile_unrouted.') -%}
      {%- endif -%}
      {%- set idle = [] -%}
      {%- for range in ranges | rejectattr('delivered') | sort(attribute='model') -%}{%- do idle.append(range.model ~ (' (since batch ' ~ range.ledger_batch ~ ')' if range.ledger_batch else ' (none so far)')) -%}{%- endfor -%}
      {%- if idle -%}
        {%- do lines.append('No new records for ' ~ reconcile._first_five(idle) ~ '; the last batch of ' ~ name ~ ' is ' ~ last ~ '.') -%}
      {%- endif -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(lines) }}
{%- endmacro %}

{%- macro _unread_of_batches(staging, first, last) -%}
select concat_ws(': ', object, concat(concat_ws(', ', proposal, format_number(count(*), 0)), if(count(*) = 1, ' record', ' records'))) as unread
from (
    {{ reconcile.unrouted_of(staging) | indent(4) }}
)
where batch between {{ first }} and {{ last }}
group by object, proposal
order by count(*) desc, unread
limit 100
{%- endmacro %}

{%- macro _first_five(texts) -%}
{{ texts[:5] | join('; ') }}{{ ' and ' ~ (texts | length - 5) ~ ' more' if texts | length > 5 }}
{%- endmacro %}
