{#- The SELECT of a model's change records at an earlier moment: `sql` itself where there is none. A filter on the sequence, which holds a hash of all
    values, would take the parsing of a record into it: `explode` stops it. -#}
{%- macro records_as_of(sql, as_of) -%}
{%- if not as_of -%}
{{ sql }}
{%- else -%}
select * except (_change_error, _change_place), nullif(concat_ws('; ', _change_error, {{ reconcile._as_of_complaint(as_of) }}), '') as _change_error
from (
{{ sql }}
)
lateral view explode(array(_change_sequence)) as _change_place
where _change_batch <= {{ as_of.last | default(0) }} and {{ reconcile._is_as_of(as_of) }}
{%- endif -%}
{%- endmacro %}

{#- The change records of an earlier moment, as a condition. What cannot be placed is kept, and quarantined (see `_as_of_complaint`). Batches bound what is read in any case. -#}
{%- macro _is_as_of(as_of) -%}
{%- if as_of.position == 'commit_time' -%}
coalesce(_change_time <= to_timestamp({{ reconcile.literal(as_of.value) }}), true)
{%- elif as_of.position == 'sequence' -%}
coalesce(left(_change_place, {{ as_of.value | length }}) <= {{ reconcile.literal(as_of.value) }}, true)
{%- elif as_of.position == 'pg_snapshot' -%}
coalesce({{ reconcile.is_seen(as_of.value) }}, true)
{%- else -%}
true
{%- endif -%}
{%- endmacro %}

{%- macro _as_of_complaint(as_of) -%}
{%- if as_of.position == 'commit_time' -%}
if(_change_time is null, 'the record has no time, which the variable as_of asks for', null)
{%- elif as_of.position == 'pg_snapshot' -%}
if({{ reconcile.is_in_log() }} and try_cast(_change_transaction as bigint) is null, 'the record names no transaction, which the variable as_of asks for', null)
{%- else -%}
cast(null as string)
{%- endif -%}
{%- endmacro %}

{#- Whether a snapshot of PostgreSQL, `xmin:xmax:in progress`, sees the record's transaction. A backfill row has none. Datastream gives the 32 bits of a
    transaction's id that PostgreSQL logs, and a snapshot all 64: taken is the id of these bits that is next to the snapshot. -#}
{%- macro is_seen(snapshot) -%}
{%- set xmin, xmax, in_progress = snapshot.split(':') -%}
{%- set xmin, xmax, wrap = xmin | int, xmax | int, 4294967296 -%}
{%- set epoch = xmax - xmax % wrap -%}
{%- set logged = 'try_cast(_change_transaction as bigint)' -%}
{%- set id -%}
case
    when {{ logged }} >= {{ wrap }} then {{ logged }}
    {%- if epoch > 0 %}
    when {{ epoch }} + {{ logged }} >= {{ xmax + wrap // 2 }} then {{ epoch - wrap }} + {{ logged }}
    {%- endif %}
    when {{ epoch }} + {{ logged }} < {{ xmax - wrap // 2 }} then {{ epoch + wrap }} + {{ logged }}
    else {{ epoch }} + {{ logged }}
end
{%- endset -%}
({{ id }} < {{ xmin }} or ({{ id }} < {{ xmax }}{% if in_progress %} and {{ id }} not in ({{ in_progress }}){% endif %}))
{%- endmacro %}
