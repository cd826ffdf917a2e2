{#- Fails on each change that is after another change of its row in the log, but before it in time: the clock of the
    source was set back, or the log began anew. The log orders the changes, so the rows are right unless the log began
    anew. For Oracle and MySQL, the time is the time of the statement, which may well be earlier. -#}
{%- test time_agrees_with_log(model) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'time_agrees_with_log') -%}
{%- do reconcile.refuse_other_sources(model, 'time_agrees_with_log') -%}
{%- set keys = reconcile.key_columns(reconcile.keys_of(reconcile.node_of(model))) -%}
select {{ keys }}, _change_id, _change_time, time_before, _change_sequence
from (
    select
        {{ keys }},
        _change_id,
        _change_time,
        _change_sequence,
        max(_change_time) over (partition by {{ keys }} order by _change_sequence rows between unbounded preceding and 1 preceding) as time_before
    from {{ reconcile.qualified(model.incorporate(path={'identifier': model.identifier ~ '__changes'})) }}
    where _change_error is null and {{ reconcile.is_in_log() }}
)
where _change_time < time_before
{%- endif -%}
{%- endtest %}
