{#- What a run says where the log that orders a Datastream model's changes seems to have begun anew: changes of the range that come an hour or more behind others of their rows in time,
    and before them in the log, so that they lose. A list of at most one sentence. The order stays as it is declared; the test `log_is_one` names the generation to declare. -#}
{%- macro said_of_log(relations, settings, range, counts) -%}
  {%- set has_log = settings.inputs.objects.values() | selectattr('coordinates', 'defined') | list -%}
  {%- if not has_log or range.kind == 'rebuild' or settings.as_of or settings.materialized == 'current_state' and not counts.superseded -%}{{ return([]) }}{%- endif -%}
  {%- set changes = run_query(reconcile._behind_in_time_and_before_in_log(relations, settings))[0][0] -%}
  {{ return([changes ~ ' lost to changes that are an hour or more older and further in the log: see the test log_is_one'] if changes else []) }}
{%- endmacro %}

{%- macro _behind_in_time_and_before_in_log(relations, settings) -%}
select count(*)
from (
    select
        _change_sequence,
        _change_time,
        {%- if settings.materialized == 'history' %}
        _change_is_new,
        max(if(_change_is_new, null, struct(_change_sequence, _change_time))) over (partition by {{ reconcile.key_columns(settings.unique_key) }}) as known
        {%- else %}
        true as _change_is_new,
        struct(_change_base_sequence as _change_sequence, _change_base_time as _change_time) as known
        {%- endif %}
    from {{ relations.fold_cache }}
)
where
    _change_is_new
    and _change_sequence < known._change_sequence
    and split_part(_change_sequence, '/', 2) = '1'
    and left(known._change_sequence, 4) = left(_change_sequence, 4)
    and _change_time >= known._change_time + interval 1 hour
{%- endmacro %}
