{#- Why a base table cannot go on with a change of columns that loses nothing, whatever the run is asked to do: a list of
    sentences. `changes`: see `changed_columns`. `snapshot`: see `snapshot_of_log`. -#}
{%- macro obstacles_to_changes(changes, form, snapshot) -%}
  {%- set found = [] -%}
  {%- set moved = (changes.removed + changes.renamed) | map(attribute='name') | join(', ') -%}
  {%- if moved and form.partial_records -%}
    {%- do found.append('column ' ~ moved ~ ': its records carry only some columns, and which updates set a whole row depends on all of them') -%}
  {%- endif -%}
  {%- if changes.removed and form.keyless and form.materialized == 'history' -%}
    {%- do found.append('column ' ~ changes.removed | map(attribute='name') | join(', ') ~ ': its versions depend on deletes without a key, and cannot be compared anew from the base table alone') -%}
  {%- endif -%}
  {%- if (changes.removed or changes.renamed or reconcile.columns_to_widen(changes, form.file_format)) and form.materialized != 'history' and reconcile.keys_may_shift(form.keyless) -%}
    {%- do found.append('it keeps records that an insert displaced, with all their columns (row_ids)') -%}
  {%- endif -%}
  {%- if snapshot and (moved or changes.widened) -%}
    {%- do found.append('staging has a snapshot beside the log, which has the columns of its time') -%}
  {%- endif -%}
  {%- set partitions = config.get('partition_by') or [] -%}
  {%- set partitions = [partitions] if partitions is string else partitions -%}
  {%- for column in changes.removed + changes.renamed + changes.widened if column.name in partitions or (column.column or column).name in partitions -%}
    {%- do found.append('column ' ~ column.name ~ ': the base table is partitioned by it') -%}
  {%- endfor -%}
  {{ return(found) }}
{%- endmacro %}

{#- The widened columns whose type in the table is another then: a longer varchar is a string as before. -#}
{%- macro columns_to_widen(changes, file_format) -%}
  {%- set wider = [] -%}
  {%- for column in changes.widened
        if reconcile.stored_type(column.former.ddl, file_format) != reconcile.stored_type(column.column.type.ddl, file_format) -%}
    {%- do wider.append(column) -%}
  {%- endfor -%}
  {{ return(wider) }}
{%- endmacro %}
