{#- Ends a data test that could not show anything, with a sentence: a test of a model that no run has built yet, or a
    test of a part of a table. `model` is the argument of the test. -#}
{%- macro refuse_untestable(model, test) -%}
  {%- if model is string -%}
    {{ exceptions.raise_compiler_error('Test ' ~ test ~ ': it tests a whole table, and `where` leaves rows out; remove `where` from its config.') }}
  {%- elif execute and flags.WHICH in ['test', 'build'] and not reconcile.existing_relation(model) -%}
    {{ exceptions.raise_compiler_error('Test ' ~ test ~ ': ' ~ reconcile.ledger_name(model) ~ ' does not exist yet; build a model with `dbt run` first, or create a staging table with ingestion/append.py.') }}
  {%- endif -%}
{%- endmacro %}
