{#- Why the base table cannot go on with a change of columns that loses nothing, see `changed_columns`, in a run that does
    not retry its quarantine: a list of sentences. Two of them are about records. A new name was merged as if it were no
    column's. And of options by which more values are read: the records that did not fit are in quarantine, and a retry
    takes the option together with them. -#}
{%- macro obstacles_to_changes(relations, settings) -%}
  {%- set changes, form, found = settings.changes, settings.form, [] -%}
  {%- set moved = (changes.removed + changes.renamed) | map(attribute='name') | join(', ') -%}
  {%- if moved and form.partial_records -%}
    {%- do found.append('column ' ~ moved ~ ': its records carry only some columns, and which updates set a whole row depends on all of them') -%}
  {%- endif -%}
  {%- if changes.removed and form.keyless and form.materialized == 'history' -%}
    {%- do found.append('column ' ~ changes.removed | map(attribute='name') | join(', ') ~ ': its versions depend on deletes without a key, and cannot be compared anew from the base table alone') -%}
  {%- endif -%}
  {%- if (moved or reconcile.columns_to_widen(changes, form.file_format)) and form.materialized != 'history' and reconcile.keys_may_shift(form.keyless) -%}
    {%- do found.append('it keeps records that an insert displaced, with all their columns (row_ids)') -%}
  {%- endif -%}
  {%- if settings.snapshot and (moved or changes.widened) -%}
    {%- do found.append('staging has a snapshot beside the log, which has the columns of its time') -%}
  {%- endif -%}
  {%- set partitions = config.get('partition_by') or [] -%}
  {%- set partitions = [partitions] if partitions is string else partitions -%}
  {%- for column in changes.removed + changes.renamed + changes.widened if column.name in partitions or (column.column or column).name in partitions -%}
    {%- do found.append('column ' ~ column.name ~ ': the base table is partitioned by it') -%}
  {%- endfor -%}
  {%- set seen = reconcile.first_batches_of_fields(relations, changes.renamed | map(attribute='column.name') | list) -%}
  {%- for column in changes.renamed if column.column.name | lower in seen -%}
    {%- do found.append('records from batch ' ~ seen[column.column.name | lower] ~ ' on have ' ~ column.column.name
          ~ ', and were merged as if they had no ' ~ column.name ~ '; with `added: true` beside `was`, all staged records are read once more') -%}
  {%- endfor -%}
  {%- for column in changes.more -%}
    {%- do found.append('column ' ~ column.name ~ ' has another ' ~ column.option ~ ', with which `' ~ reconcile.retry_command() ~ '` goes on') -%}
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
