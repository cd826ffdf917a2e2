{#- Law 3: every delivered record is accounted for, once. On a staging table, as a source, the test covers all models
    that read the table at once. -#}
{%- test ledger_balances(model) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'ledger_balances') -%}
{%- set of_all = reconcile.nodes_to_test(model) -%}
{%- set nodes = of_all | rejectattr('config.materialized', 'equalto', 'current_view') | list -%}
{%- if of_all and not nodes -%}
  {{ exceptions.raise_compiler_error(reconcile.ledger_name(model) ~ ' is a current_view, and the ledger has no rows for it; remove the test ledger_balances from it.') }}
{%- endif -%}
{%- set findings = reconcile.account_findings(nodes) if nodes else reconcile.no_rows({'relation': 'string', 'finding': 'string'}) -%}
{%- if nodes and flags.WHICH in ['test', 'build'] -%}
  {%- set cache = 'reconcile_findings_' ~ local_md5(reconcile.ledger_name(model))[:12] -%}
  {%- do run_query('drop view if exists ' ~ cache) -%}
  {%- do run_query(reconcile.cached(cache, findings)) -%}
  {%- do reconcile.log_reasons('ledger_balances', reconcile._reasons_of_findings(cache)) -%}
select *
from {{ cache }}
{%- else -%}
{{ findings }}
{%- endif -%}
{%- endif -%}
{%- endtest %}

{%- macro _reasons_of_findings(findings) -%}
select relation, finding as reason, count(*) as records, min(first_batch) as first_batch, max(last_batch) as last_batch, cast(null as string) as example_key
from {{ findings }}
group by relation, finding
{%- endmacro %}
