{#- The clause of the place at which a model's config puts its base table, as `location_root`; empty without it. -#}
{%- macro location_of_base() -%}
  {{ return(adapter.dispatch('location_of_base', 'reconcile')()) }}
{%- endmacro %}

{%- macro default__location_of_base() -%}
  {{ return(location_clause()) }}
{%- endmacro %}

{#- The macro `location_clause` of dbt-databricks takes an argument, whose kind differs between its versions. -#}
{%- macro databricks__location_of_base() -%}
  {%- set root = config.get('location_root') -%}
  {{ return('\n    location ' ~ reconcile.literal(root ~ '/' ~ model.alias) if root else '') }}
{%- endmacro %}
