{#- The last batch that is read for an earlier moment; never a batch after the one that `begin_run` saw. -#}
{%- macro batch_as_of(settings) -%}
  {%- do reconcile.refuse_missing_staging(settings.inputs) -%}
  {%- set cut = reconcile._cut(settings.inputs, settings.form.row_ids, settings.form.keyless) -%}
  {%- set last = reconcile._batch_as_of(settings.inputs, settings.as_of, cut) -%}
  {%- do settings.as_of.update({'last': last}) -%}
  {{ return(last) }}
{%- endmacro %}

{%- macro _batch_as_of(inputs, as_of, cut) -%}
  {%- if not inputs.objects -%}
    {%- if as_of.position == 'appended_at' -%}
      {%- do reconcile.raise_complaints(['as_of: {appended_at: ...} is a time of appends to a staging table, and the model has no source macro that reads one; name another position']) -%}
    {%- endif -%}
    {{ return(as_of.value | int if as_of.position == 'batch' else cut) }}
  {%- endif -%}
  {%- set staging = inputs.relations[0] -%}
  {%- set is_as_of = 'appended_at <= to_timestamp(' ~ reconcile.literal(as_of.value) ~ ')' if as_of.position == 'appended_at'
        else 'true' -%}
  {%- set staged = reconcile.one_row(
        'select max(batch) as last, max(if(' ~ is_as_of ~ ', batch, null)) as as_of_batch from ' ~ reconcile.qualified(staging)
        ~ ' where batch <= ' ~ cut) -%}
  {%- if as_of.position == 'batch' and as_of.value | int > staged.last | int(0) -%}
    {%- do reconcile.raise_complaints(['as_of is ' ~ as_of.label ~ ', but the last batch of ' ~ reconcile.ledger_name(staging) ~ ' is ' ~ staged.last | int(0) ~ '; name a batch that exists']) -%}
  {%- elif staged.as_of_batch is none -%}
    {%- do reconcile.raise_complaints(['as_of is ' ~ as_of.label ~ ', but nothing had been appended to ' ~ reconcile.ledger_name(staging) ~ ' at this time; use a later time']) -%}
  {%- endif -%}
  {{ return(as_of.value | int if as_of.position == 'batch' else staged.as_of_batch | int) }}
{%- endmacro %}
