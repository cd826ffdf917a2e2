{#- A view that is made only if it is missing or its definition changed. Spark replaces a view by dropping it, and a
    session that reads or replaces the view at that moment would fail. -#}
{%- materialization monitoring_view, adapter='spark' -%}
  {{ run_hooks(pre_hooks) }}
  {%- set existing = reconcile.existing_relation(this) -%}
  {%- if existing and existing.type != 'view' -%}
    {%- do reconcile.raise_complaints([reconcile.ledger_name(this) ~ " exists and is a " ~ existing.type
          ~ " that this package did not create, so it is not replaced; drop or rename it"]) -%}
  {%- endif -%}
  {%- set built = reconcile.table_properties(this).get('reconcile.definition', 'otherwise') if existing -%}
  {%- set comments = reconcile.view_comments(model.columns.values()) -%}
  {%- set statement = reconcile.get_view_statement(this, sql | trim, comments, built) -%}
  {%- do reconcile.run_statements([statement] if statement else []) -%}
  {{ return(reconcile.finish_model(this, 'MADE ANEW' if statement else 'nothing new', [], post_hooks)) }}
{%- endmaterialization %}
