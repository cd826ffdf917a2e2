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
