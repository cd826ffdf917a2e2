{#- What `known_at_start` has for a model's relation; none if it did not query the model. -#}
{%- macro known_of(relation) -%}
  {{ return(graph.get('reconcile_known', {}).get(reconcile.ledger_name(relation))) }}
{%- endmacro %}

{#- Whether a model has nothing to apply, and its tables are as the ledger says. -#}
{%- macro is_idle(relation) -%}
  {%- set known = reconcile.known_of(relation) -%}
  {{ return(known and known.base_batch is not undefined and reconcile.tables_are_as_applied(known)) }}
{%- endmacro %}

{#- Whether a table that the ledger speaks of, the base table or that of keyless deletes, is as the ledger has it. The table
    of the deletes may also have later ones, of a run that died. `account`: as `applied_batches` describes it. -#}
{%- macro tables_are_as_applied(account) -%}
  {{ return(account.base_batch == account.ledger_base_batch and account.deletes_batch >= account.ledger_deletes_batch) }}
{%- endmacro %}

{#- Whether a run leaves a model as it is: see the variable `only_new_records`. -#}
{%- macro is_left(relation) -%}
  {%- set known = reconcile.known_of(relation) -%}
  {{ return(known and known.is_left) }}
{%- endmacro %}

{#- Whether the SELECT of a model is needed: dbt renders it also while it parses, and of a model that the run leaves. -#}
{%- macro needs_select() -%}
  {{ return(execute and not (graph.get('reconcile_known') and reconcile.is_left(this))) }}
{%- endmacro %}

{#- The digest of what a view was made from, without a statement: dbt has read it together with its relations. None for
    a view that this package did not make, or of an earlier moment. -#}
{%- macro cached_definition(view) -%}
  {%- set listed = modules.re.search('^Table Properties: \\[(.*)\\]$', view.information or '', modules.re.MULTILINE) -%}
  {%- set definition = modules.re.search('(?:^|[,] ?)reconcile[.]definition=([0-9a-f]{32})(?=,|$)', listed.group(1)) if listed and 'reconcile.as_of=' not in listed.group(1) -%}
  {{ return(definition.group(1) if definition else none) }}
{%- endmacro %}
