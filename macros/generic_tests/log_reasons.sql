{#- Prints why a data test fails, the most frequent reasons first; dbt itself only prints how many rows it got.
    `reasons`: a SELECT of relation, reason, records (or ranges of the ledger), first_batch, last_batch and example_key,
    which may be NULL. -#}
{%- macro log_reasons(test, reasons) -%}
  {%- if flags.WHICH in ['test', 'build'] -%}
    {%- set rows = run_query(reconcile._commonest_reasons(reasons)) -%}
    {%- for relation, reason, records, first_batch, last_batch, example_key, others in rows -%}
      {%- do log(reconcile.printable(test ~ ' of ' ~ relation ~ ': ' ~ records ~ (' time, ' if records == 1 else ' times, ')
            ~ ('batch ' ~ first_batch if first_batch == last_batch else 'batches ' ~ first_batch ~ ' to ' ~ last_batch) ~ ': ' ~ reason
            ~ (' (for example the key ' ~ example_key ~ ')' if example_key else '')), info=true) -%}
      {%- if loop.last and others > loop.length -%}{%- do log(test ~ ': and ' ~ (others - loop.length) ~ ' more reasons', info=true) -%}{%- endif -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro %}

{%- macro _commonest_reasons(reasons) -%}
select relation, reason, records, first_batch, last_batch, example_key, count(*) over () as reasons
from (
{{ reasons }}
)
order by records desc, relation, reason
limit 5
{%- endmacro %}
