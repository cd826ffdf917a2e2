{#- The earlier moment at which `dbt run --vars '{as_of: {batch: 17}}'` builds the models, or none: {position, value, said}. -#}
{%- macro as_of() -%}
  {%- if var('as_of', none) is not none and not modules.re.fullmatch('[A-Za-z0-9_]+', var('as_of_schema', none) or '_') -%}
    {{ exceptions.raise_compiler_error("as_of_schema: '" ~ var('as_of_schema') ~ "' is no name of a schema that Spark's catalog takes; write it of ASCII letters, digits and _.") }}
  {%- endif -%}
  {{ return(reconcile.named_position(var('as_of', none), 'The variable as_of')) }}
{%- endmacro %}

{#- A position that somebody names, as {batch: 17}: {position, value, said}, or none. `where`: what names it, for the message. -#}
{%- macro named_position(said, where) -%}
  {%- if said is none -%}{{ return(none) }}{%- endif -%}
  {%- set forms = {
      'batch': ['[1-9][0-9]{0,17}', 'the number of a batch, as 17'],
      'appended_at': [none, "a time with a zone, as '2026-11-21 11:33:14+00'"],
      'commit_time': [none, "a time with a zone, as '2026-11-21 11:33:14+00'"],
      'sequence': ['[0-9A-F]+(/[0-9A-F]+)*', 'a _change_sequence, or its first sections'],
      'pg_snapshot': ['[0-9]+:[0-9]+:([0-9]+(,[0-9]+)*)?', "what PostgreSQL's pg_current_snapshot() gives, as '18642:18650:18644'"]} -%}
  {%- if said is not mapping or said | length != 1 or said.keys() | list | first not in forms -%}
    {{ exceptions.raise_compiler_error(where ~ " names one position, as {batch: 17}: one of " ~ forms.keys() | join(', ') ~ ", and not '" ~ said ~ "'.") }}
  {%- endif -%}
  {%- set position, value = said.items() | list | first -%}
  {%- if not (modules.re.fullmatch(forms[position][0], value | string) if forms[position][0] else reconcile.moment(value | string)) -%}
    {{ exceptions.raise_compiler_error("as_of: {" ~ position ~ ": " ~ value ~ "} is not " ~ forms[position][1] ~ ".") }}
  {%- endif -%}
  {{ return({'position': position, 'value': value | string, 'said': position ~ ' ' ~ value}) }}
{%- endmacro %}

{#- The relation that a model is built as: itself, or at an earlier moment the one of its name in a schema that is for that. -#}
{%- macro destination(relation) -%}
  {%- if not reconcile.as_of() -%}{{ return(relation) }}{%- endif -%}
  {{ return(relation.incorporate(path={'schema': var('as_of_schema', none) or relation.schema ~ '_as_of'})) }}
{%- endmacro %}

{#- The property by which what was built of an earlier moment is known, as SQL to go behind others. -#}
{%- macro as_of_property(settings) -%}
{{ ", 'reconcile.as_of' = " ~ reconcile.literal(settings.as_of.said) if settings.as_of }}
{%- endmacro %}

{#- The last batch that is read for an earlier moment, none behind the batch that `begin_run` saw. -#}
{%- macro batch_as_of(settings) -%}
  {%- do reconcile.refuse_missing_staging(settings) -%}
  {%- set last = reconcile._batch_as_of(settings, settings.as_of) -%}
  {%- do settings.as_of.update({'last': last}) -%}
  {{ return(last) }}
{%- endmacro %}

{%- macro _batch_as_of(settings, as_of) -%}
  {%- set cut = reconcile._cut(settings) -%}
  {%- if not settings.inputs.objects -%}
    {%- if as_of.position == 'appended_at' -%}
      {%- do reconcile.raise_complaints(['as_of: {appended_at: ...} asks when records were appended, and it reads no staging table by a source macro; name another position']) -%}
    {%- endif -%}
    {{ return(as_of.value | int if as_of.position == 'batch' else cut) }}
  {%- endif -%}
  {%- set staging = settings.inputs.relations[0] -%}
  {%- set by_then = 'appended_at <= to_timestamp(' ~ reconcile.literal(as_of.value) ~ ')' if as_of.position == 'appended_at' else 'true' -%}
  {%- set staged = reconcile.one_row('select max(batch) as last, max(if(' ~ by_then ~ ', batch, null)) as by_then from ' ~ reconcile.qualified(staging) ~ ' where batch <= ' ~ cut) -%}
  {%- if as_of.position == 'batch' and as_of.value | int > staged.last | int(0) -%}
    {%- do reconcile.raise_complaints(['as_of asks for ' ~ as_of.said ~ ', and the last one of ' ~ reconcile.ledger_name(staging) ~ ' is ' ~ staged.last | int(0)]) -%}
  {%- elif staged.by_then is none -%}
    {%- do reconcile.raise_complaints(['as_of asks for ' ~ as_of.said ~ ', and nothing had been appended to ' ~ reconcile.ledger_name(staging) ~ ' by then']) -%}
  {%- endif -%}
  {{ return(as_of.value | int if as_of.position == 'batch' else staged.by_then | int) }}
{%- endmacro %}

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
