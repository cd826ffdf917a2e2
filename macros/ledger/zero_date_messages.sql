{#- A list of at most one sentence: how many zero dates became NULL in each column that declares it. The macro also adds
    their number to `counts`, for the ledger. The number includes the values of copies and of superseded records, but
    not of quarantined ones. `facts`: see `facts_of_changes`. `counts`: the account of the range. -#}
{%- macro zero_date_messages(relations, facts, counts) -%}
  {%- if not facts.zero_dates -%}{{ return([]) }}{%- endif -%}
  {%- set columns = [] -%}
  {%- for name, values in run_query(reconcile._zero_dates_by_column(relations)) -%}
    {%- do columns.append(values ~ ' of ' ~ name) -%}
    {%- do counts.update({'zero_dates': counts.get('zero_dates', 0) + values}) -%}
  {%- endfor -%}
  {{ return(['zero dates that became NULL: ' ~ columns | join(', ')]) }}
{%- endmacro %}

{#- The prefix of the name is reserved: the model may have a column of any other name. -#}
{%- macro _zero_dates_by_column(relations) -%}
select _change_zero_date, count(*) as zero_dates
from {{ relations.changes_cache }}
lateral view explode(_change_zero_dates) zero_dates as _change_zero_date
where _change_error is null
group by _change_zero_date
order by _change_zero_date
{%- endmacro %}
