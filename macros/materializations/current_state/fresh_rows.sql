{#- The live rows as a merge of everything up to now would leave them: the rows of `known`, a table with the base table's columns that holds what was
    delivered up to `batch`, brought up to date by the change records behind it; or these alone, where `known` is none. The batch is a literal, so
    that files of the staging table are skipped. Should the table hold more by now, as between a MERGE and the new view, the records that it
    knows are only applied again. `last`: the last batch that counts, at an earlier moment. -#}
{%- macro fresh_rows(relations, settings, known, has_keyless_deletes, batch, last=none) -%}
with {{ reconcile._rows_behind(relations, settings, known, batch, last) }}
{%- if settings.keyless %},

keyless_deletes as (
    select {{ settings.keyless.place }}, _change_sequence
    from changes
    where {{ reconcile.is_keyless_delete_record(settings.unique_key) }}
    {%- if has_keyless_deletes %}
    union all
    select {{ settings.keyless.place }}, _change_sequence
    from {{ reconcile.stored_keyless_deletes(relations, settings) }}
    {%- endif %}
)
{%- endif %}

{{ reconcile.shown_rows(settings, 'fresh', 'keyless_deletes' if settings.keyless) }}
{%- endmacro %}

{#- The rows of a `current_view` of which only some columns are known. -#}
{%- macro pending_rows(relations, settings) -%}
with {{ reconcile._rows_behind(relations, settings, settings.known, settings.batch, none) }}

select *
from fresh
where {{ reconcile.is_pending(reconcile.order_of('_change'), '_deleted') if settings.partial_records else 'false' }}
{%- endmacro %}

{#- Common table expressions, of which the last is `fresh`. -#}
{%- macro _rows_behind(relations, settings, known, batch, last) -%}
{%- set changes = reconcile.checked_records(
      'select * from ' ~ reconcile.qualified(relations.changes), [], settings, batch + 1, last) -%}
{%- set columns = reconcile.identifiers(settings.columns) + ['_change_sequence', '_deleted'] + (['_change_row_sequence'] if settings.partial_records else [])
      + (['_row_id'] if settings.row_ids else []) -%}
changes as (
    {{ changes | indent(4) }}
),

{%- if known is none %}
fresh as (
    select {{ columns | join(', ') }}
    from (
        {{ reconcile.fold_of('changes', settings) | indent(8) }}
    )
)
{%- else %}
folded as (
    {{ reconcile.fold_of('changes', settings) | indent(4) }}
),

{#- `newest` is named several times below; what is not deterministic Spark plans and computes once. #}
newest as (
    select *
    from folded
    where spark_partition_id() >= 0
),

touched as (
    {{ reconcile.touched_rows(reconcile.stored_rows(known, settings), 'newest', 'folded', settings, columns) | indent(4) }}
),

fresh as (
    {{ reconcile.folded_rows(reconcile.stored_rows(known, settings), 'newest', 'touched', settings, columns) | indent(4) }}
)
{%- endif %}
{%- endmacro %}
