{#- One row for each row that is not proven equal between the model and `compare_to`, a relation with the source's own
    rows. It has the key, the verdict and its reason, and the differing columns with both values: see "Parity" in
    docs/design.md. The test also writes its result to `reconcile_parity` and `reconcile_parity_differences`. -#}
{%- test parity(model, compare_to, key, columns=none, as_of=none, allowance='10 minutes', uncertainty='1 hour', tolerances={}, recheck=0, store_values=false, allow_empty=false) -%}
{%- if execute -%}
{#- The test compiles without any table. -#}
{%- if flags.WHICH in ['test', 'build'] -%}
  {%- do reconcile.compare(reconcile.comparison(model, compare_to, key, columns, as_of, allowance, uncertainty, tolerances, recheck, store_values, allow_empty)) -%}
{%- endif -%}
select key_columns.*, verdict, difference, reason, columns
from {{ reconcile.comparison_cache('verdicts', model) }}
where verdict <> 'match'
{%- endif -%}
{%- endtest %}
