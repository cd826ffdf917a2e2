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

{#- The staging table whose batches a model applies; none without one. A model of a SELECT of its own names the table by
    `source` or `ref`, so `begin_run` knows it. It counts only if append.py has made it: others may have batches that
    go after they were applied. `inputs`: see `model_inputs`. -#}
{%- macro dated_staging(inputs) -%}
  {%- if inputs.objects -%}{{ return(inputs.relations[0]) }}{%- endif -%}
  {%- set known, dated = graph.get('reconcile_dated', {}), [] -%}
  {%- for relation in inputs.relations if reconcile.ledger_name(relation) in known -%}
    {%- set name = reconcile.ledger_name(relation) -%}
    {%- if known[name] is none -%}
      {%- do known.update({name: 'reconcile.last_batch' in reconcile.table_properties(relation)}) -%}
    {%- endif -%}
    {%- do dated.append(relation) if known[name] -%}
  {%- endfor -%}
  {{ return(dated[0] if dated | length == 1) }}
{%- endmacro %}
