{#- A condition that holds while nothing has changed since the run looked, and ends the statement that asks it if something has: another run of the model has come
    in between. Asked inside the statement that writes, of the very version of the table that it writes to: Delta refuses what comes between that
    and its commit. `unchanged` is SQL. -#}
{%- macro not_overtaken(relations, unchanged) -%}
if({{ unchanged }}, true, raise_error({{ reconcile.literal(
      reconcile.ledger_name(relations.live) ~ ': another run of this model has come in between, and this one stopped; what it lacks the next `dbt run` brings') }}))
{%- endmacro %}

{#- Whether the base table is as `range_to_apply` saw it: no row of a later batch. Files without such rows are skipped, which is all of them. -#}
{%- macro base_is_unchanged(relations, range) -%}
{{ reconcile.not_overtaken(relations, '(select count(*) from ' ~ reconcile.qualified(relations.base) ~ ' where _change_batch > ' ~ range.base_batch ~ ') = 0') }}
{%- endmacro %}
