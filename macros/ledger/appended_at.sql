{#- When a batch was appended to a staging table, in microseconds since 1970; none where there is no record of it. Of two batches of one number, before and
    after a table was restored, this tells which. Asked once in a run. -#}
{%- macro appended_at(staging, batch) -%}
  {%- set known = graph.setdefault('reconcile_appended_at', {}) -%}
  {%- set key = reconcile.ledger_name(staging) ~ ' ' ~ batch -%}
  {%- if key not in known -%}
    {%- do known.update({key: run_query('select unix_micros(max(appended_at)) from ' ~ reconcile.qualified(staging) ~ ' where batch = ' ~ batch)[0][0]}) -%}
  {%- endif -%}
  {{ return(known[key]) }}
{%- endmacro %}
