{#- A condition that is true as long as nothing has changed since the run looked at the table. Otherwise the condition
    fails its statement: another run of the model has written in between. The statement that writes contains the
    condition, so the condition sees the very version of the table to which the statement writes. Delta refuses the
    statement's commit if another commit came after that version. `unchanged` is SQL. -#}
{%- macro not_overtaken(relations, unchanged) -%}
if({{ unchanged }}, true, raise_error({{ reconcile.literal(
      reconcile.ledger_name(relations.live) ~ ': another run of this model wrote at the same time, or the table was restored, so this run stopped; the next `dbt run` applies the batches that are missing') }}))
{%- endmacro %}

{#- Whether the base table is still as `range_to_apply` saw it: no row is of a later batch, and there is one of its largest
    batch. A table that was restored meanwhile lacks that batch, and once this range is written nothing would show it.
    Spark skips files without such rows, and normally those are all files but the last ones. -#}
{%- macro base_is_unchanged(relations, range) -%}
{%- set rows = '(select count(*) from ' ~ reconcile.qualified(relations.base) ~ ' where _change_batch ' -%}
{{ reconcile.not_overtaken(relations, rows ~ '> ' ~ range.base_batch ~ ') = 0' ~ (' and ' ~ rows ~ '= ' ~ range.base_batch ~ ') > 0' if range.base_batch)) }}
{%- endmacro %}

{#- The same for the table of keyless deletes; none if it had none when the run began. -#}
{%- macro deletes_are_unchanged(relations, keyless, range) -%}
  {{ return(reconcile.not_overtaken(relations, '(select count(*) from ' ~ reconcile.qualified(relations[keyless.kind]) ~ ' where _change_batch = ' ~ range.deletes_batch ~ ') > 0') if range.deletes_batch else none) }}
{%- endmacro %}
