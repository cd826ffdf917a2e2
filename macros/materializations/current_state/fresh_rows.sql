{#- The live rows as a merge of all records up to now would leave them. `known`: a table with the columns of the base
    table; it holds everything that was delivered up to `batch`. The change records after `batch` are folded into the
    rows of `known`. If `known` is none, the rows follow from the change records alone. `batch` is a literal in the
    view, so that Spark skips files of the staging table. When the view is read, `known` may hold later batches too, for
    example between a MERGE and the new view: their records are then applied once more, which changes nothing.
    `has_keyless_deletes`: whether the model has a table of keyless deletes, which the view then reads too. `last`: the
    last batch that counts, for an earlier moment; none otherwise. -#}
{%- macro fresh_rows(relations, form, known, has_keyless_deletes, batch, last=none) -%}
with {{ reconcile._fresh_rows_ctes(relations, form, known, batch, last, has_keyless_deletes) }}
{%- if form.keyless %},

keyless_deletes as (
    select {{ form.keyless.place }}, _change_sequence
    from changes
    where {{ reconcile.is_keyless_delete_record(form.unique_key) }}
    {%- if has_keyless_deletes %}
    union all
    select {{ form.keyless.place }}, _change_sequence
    from {{ reconcile.stored_keyless_deletes(relations, form.keyless, form.file_format) }}
    {%- endif %}
)
{%- endif %}

{{ reconcile.shown_rows(form, 'fresh', 'keyless_deletes' if form.keyless) }}
{%- endmacro %}

{#- The rows of a `current_view` of which only some columns are known. `known` and `batch`: see `fresh_rows`. -#}
{%- macro pending_rows(relations, form, known, batch) -%}
with {{ reconcile._fresh_rows_ctes(relations, form, known, batch, none, false) }}

select *
from fresh
where {{ reconcile.is_pending(reconcile.order_of('_change'), '_deleted') if form.partial_records else 'false' }}
{%- endmacro %}

{#- Common table expressions, with the arguments of `fresh_rows`. The last one, `fresh`, has the rows of `known` with
    the later records folded in, deleted rows too. Spark plans and computes a nondeterministic common table
    expression once, however often the query names it. The condition `spark_partition_id() >= 0` is always true, and only
    makes the expression nondeterministic. So `newest` is `folded`, computed once, and `changes` is `checked`, computed
    once. `touched_rows` reads `folded` itself: Spark skips files only by a deterministic filter. -#}
{%- macro _fresh_rows_ctes(relations, form, known, batch, last, has_keyless_deletes) -%}
{%- set changes = reconcile.checked_records(
      'select * from ' ~ reconcile.qualified(relations.changes), [], form, batch + 1, last) -%}
{%- set columns = reconcile.identifiers(form.columns) + ['_change_sequence', '_deleted']
      + (['_change_row_sequence'] if form.partial_records else [])
      + (['_row_id'] if form.row_ids else []) -%}
{%- set undoing = reconcile.undoing_deletes(
      'changes', form.unique_key,
      reconcile.stored_keyless_deletes(relations, form.keyless, form.file_format) if has_keyless_deletes)
      if reconcile.keys_may_shift(form.keyless) -%}
{%- set joins_by_address = known is not none and reconcile.keys_may_shift(form.keyless) -%}
{{ 'checked' if joins_by_address else 'changes' }} as (
    {{ changes | indent(4) }}
),

{%- if known is none %}
fresh as (
    select {{ columns | join(', ') }}
    from (
        {{ reconcile.fold_of('changes', form, undoing) | indent(8) }}
    )
)
{%- else %}
{%- set stored = reconcile.stored_rows(known, form) %}
{%- if joins_by_address %}
changes as (
    select *
    from checked
    where spark_partition_id() >= 0
),
{% endif %}
folded as (
    {{ (reconcile.newest_by_address('changes', form, undoing, reconcile.touched_as_records(stored, 'changes', form, true))
          if joins_by_address else reconcile.fold_of('changes', form)) | indent(4) }}
),

newest as (
    select *
    from folded
    where spark_partition_id() >= 0
),

{% if not joins_by_address -%}
touched as (
    {{ reconcile.touched_rows(stored, 'newest', 'folded', form, columns) | indent(4) }}
),

{% endif -%}
fresh as (
    {{ reconcile.folded_rows(
          stored, 'newest', 'newest' if joins_by_address else 'touched', form.unique_key, columns) | indent(4) }}
)
{%- endif %}
{%- endmacro %}
