{#- A list of at most one sentence, if the log that orders a Datastream model's changes seems to have begun anew. Then
    some changes of the range are an hour or more later than other changes of their rows, but before them in the log,
    and lose to them. The sentence has the time of the first such change: the log began anew at this time or earlier. The
    order stays as it is declared. -#}
{%- macro log_messages(fold, form, counts) -%}
  {%- set is_history = form.materialized == 'history' -%}
  {%- if not (is_history or counts.superseded) -%}{{ return([]) }}{%- endif -%}
  {%- set query = reconcile._changes_out_of_log_order(
        fold, form.unique_key, is_history, reconcile.keys_may_shift(form.keyless)) -%}
  {%- set changes, first_time = run_query(query)[0] -%}
  {{ return([
      changes ~ ' lost to changes that are later in the log, but an hour or more earlier in time (the first that lost is of ' ~ first_time
      ~ '): if the log began anew at this time or earlier, ' ~ ('give its source a model of its own, with generations' if form.source_columns else 'add the time when it did to generations')
      ~ '; see the test log_is_one'] if changes else []) }}
{%- endmacro %}

{#- SQL that counts the rows of `fold` that lie before the newest stored record of their key in the log, but whose time
    is at least one hour later. Only changes count, and not rows of a backfill. Only records of one generation are
    compared. `fold`: the fold of the range; of a `history` (`is_history`), its recomputed versions. `keys`: the unique_key.
    `by_address`: whether the fold is as `newest_by_address` gives it; its rows may be those of the base table, so the
    newest record of the range is compared. -#}
{%- macro _changes_out_of_log_order(fold, keys, is_history, by_address) -%}
{%- set of_range = '_change_range' if by_address and not is_history else '_change' -%}
{%- set sequence, time = ('known._change_sequence', 'known._change_time') if is_history
      else ('_change_base_sequence', '_change_base_time') -%}
select count(*) as changes, date_format(min({{ of_range }}_time), 'yyyy-MM-dd HH:mm:ssXXX') as first_time
{%- if is_history %}
{%- set of_key = 'over (partition by ' ~ reconcile.key_columns(keys) ~ ')' %}
from (
    select *, max(if(_change_is_new, null, struct(_change_sequence, _change_time))) {{ of_key }} as known
    from {{ fold }}
)
{%- else %}
from {{ fold }}
{%- endif %}
where
    {{ '_change_is_new and ' if is_history }}{{ of_range }}_sequence < {{ sequence }}
    and {{ reconcile.is_in_log(of_range ~ '_sequence') }}
    and {{ reconcile.generation_in_log(of_range ~ '_sequence') }} = {{ reconcile.generation_in_log(sequence) }}
    and {{ of_range }}_time >= {{ time }} + interval 1 hour
{%- endmacro %}
