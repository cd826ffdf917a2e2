{#- The SELECT of a model's change records at an earlier moment; `sql` itself if there is no such moment. The sequence
    holds a hash of all values, so a filter on the sequence would pull the whole parsing of a record into the filter.
    `explode` prevents that. -#}
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

{#- A condition for the change records of an earlier moment. Records that cannot be placed are kept, and quarantined
    (see `_as_of_complaint`). Batches limit what is read in any case. -#}
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

{#- Why a record cannot be placed at an earlier moment, as SQL; NULL if it can. A batch and a sequence place every
    record, and `pg_snapshot` places every backfill row. -#}
{%- macro _as_of_complaint(as_of) -%}
{%- if as_of.position == 'commit_time' -%}
if(_change_time is null, 'the record has no _change_time, which the variable as_of needs', null)
{%- elif as_of.position == 'pg_snapshot' -%}
if({{ reconcile.is_in_log() }} and try_cast(_change_transaction as bigint) is null, 'the record has no _change_transaction, which the variable as_of needs', null)
{%- else -%}
cast(null as string)
{%- endif -%}
{%- endmacro %}

{#- Whether a snapshot of PostgreSQL, `xmin:xmax:in progress`, sees the record's transaction. A backfill row has no
    transaction. Datastream gives the 32 bits of a transaction id that PostgreSQL logs, and a snapshot has all 64. So
    the macro takes the id that has these 32 bits and is nearest to the snapshot. -#}
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
