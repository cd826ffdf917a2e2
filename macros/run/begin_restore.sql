{#- A restore is a rebuild whose cut is an earlier batch: `dbt run --vars '{restore: {batch: 17}}'`. The account of each
    model begins anew there, and the next run goes on with the batches after it. This macro checks the run, and lowers
    the cut of the staging table. `cuts`: the last batch of each staging table. -#}
{%- macro begin_restore(cuts) -%}
  {%- set batch, staging = reconcile.restored_batch(), [] -%}
  {%- if flags.WHICH != 'run' -%}
    {{ exceptions.raise_compiler_error('The variable restore works only with dbt run: tests and seeds know the present alone. Use dbt run, or remove restore.') }}
  {%- endif -%}
  {%- for name, is_given in [('as_of', reconcile.as_of()), ('retry_quarantine', reconcile.is_asked('retry_quarantine')), ('only_new_records', reconcile.is_asked('only_new_records'))] if is_given -%}
    {{ exceptions.raise_compiler_error('restore puts models back to a batch, which does not go together with ' ~ name ~ '; use one of the two variables.') }}
  {%- endfor -%}
  {%- for node in reconcile.reconciled_nodes() if node.unique_id in selected_resources -%}
    {%- set inputs = reconcile.model_inputs(node) -%}
    {%- if node.config.materialized not in ['current_state', 'history'] or not inputs.objects -%}
      {{ exceptions.raise_compiler_error('restore: ' ~ node.name ~ ' is ' ~ ('a ' ~ node.config.materialized if inputs.objects else 'a model of its own SELECT') ~ ', and only a current_state or history of staged records can be put back; select other models with --select.') }}
    {%- endif -%}
    {%- do staging.append(reconcile.ledger_name(inputs.relations[0])) -%}
  {%- endfor -%}
  {%- if staging | unique | list | length > 1 -%}
    {{ exceptions.raise_compiler_error('restore: {batch: ' ~ batch ~ '} is a batch of one staging table, and the selected models read ' ~ staging | unique | sort | join(', ')
        ~ ', each with its own batch numbers; select models of one staging table with --select.') }}
  {%- endif -%}
  {%- for name in staging | unique -%}
    {%- if cuts.get(name) is not none and batch > cuts[name] -%}
      {{ exceptions.raise_compiler_error('restore is batch ' ~ batch ~ ', but the last batch of ' ~ name ~ ' is ' ~ cuts[name] ~ '; name a batch that exists.') }}
    {%- endif -%}
    {%- do cuts.update({name: batch}) if cuts.get(name) is not none -%}
  {%- endfor -%}
{%- endmacro %}
