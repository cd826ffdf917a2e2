{#- When a batch was appended to a staging table, in microseconds since 1970; none if staging has no record of the
    batch. After a table was restored, two batches can have the same number; this time distinguishes them. A run queries
    the time of a batch only once. -#}
{%- macro appended_at(staging, batch) -%}
  {%- set known = graph.setdefault('reconcile_appended_at', {}) -%}
  {%- set key = reconcile.ledger_name(staging) ~ ' ' ~ batch -%}
  {%- if key not in known -%}
    {%- do known.update({key: run_query('select unix_micros(max(appended_at)) from ' ~ reconcile.qualified(staging) ~ ' where batch = ' ~ batch)[0][0]}) -%}
  {%- endif -%}
  {{ return(known[key]) }}
{%- endmacro %}

{#- The staging table whose batches a model applies; none without one, or if the table has no `appended_at`. A model of a
    SELECT of its own names the table by `source` or `ref`, so `begin_run` knows it. `inputs`: see `model_inputs`. -#}
{%- macro dated_staging(inputs) -%}
  {%- if inputs.objects -%}{{ return(inputs.relations[0]) }}{%- endif -%}
  {%- set dated = [] -%}
  {%- for relation in inputs.relations if reconcile.ledger_name(relation) in graph.get('reconcile_dated', []) -%}
    {%- do dated.append(relation) -%}
  {%- endfor -%}
  {{ return(dated[0] if dated | length == 1) }}
{%- endmacro %}
