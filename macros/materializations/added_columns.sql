{#- The columns that the model declares and its base table lacks, as `declared_columns` has them, if nothing else differs
    between the columns of the two; an empty list otherwise. `settings.declaration` alone cannot tell: it has one digest
    of all columns. The mark `meta: {added: true}` is not asked here, and no part of that digest: once the base table has
    the column, the mark may stay or go. A table that says its columns is not asked for those that it has: it also has
    columns that the model does not declare any more, and one of these that is declared again is new. -#}
{%- macro added_columns(relations, settings) -%}
  {%- set built = fromjson(settings.built.base).get('columns') -%}
  {%- if built == fromjson(settings.declaration).columns -%}{{ return([]) }}{%- endif -%}
  {%- set changes = settings.changes -%}
  {%- if changes -%}
    {{ return([] if changes.removed or changes.widened or changes.renamed or changes.more or changes.other
        else settings.form.columns | selectattr('name', 'in', changes.added) | list) }}
  {%- endif -%}
  {%- set stored = adapter.get_column_schema_from_query('select * from ' ~ reconcile.qualified(relations.base) ~ ' where false')
        | map(attribute='name') | map('lower') | list -%}
  {%- set added, known = [], [] -%}
  {%- for column in settings.form.columns -%}
    {%- set name = reconcile.stored_column(reconcile.identifier(column.name), settings.form.file_format)[1:-1] | replace('``', '`') -%}
    {%- do (known if name | lower in stored else added).append(column) -%}
  {%- endfor -%}
  {{ return(added if reconcile.digest_of_columns(known) == built else []) }}
{%- endmacro %}

{#- A column is added from all records in staging, as by a rebuild: the last section of `_change_sequence`, which settles
    ties, is a hash of all declared columns, so every record gets another place in the order: see
    docs/decisions/0048-added-columns.md. Nobody has asked for a rebuild, so the run takes no row away: it is refused if
    staging no longer has all records that the base table was made from. `added`: as `added_columns` gives them.
    `applied`: see `applied_batches`. -#}
{%- macro refuse_added_columns(relations, inputs, added, applied) -%}
  {%- set beginning = 'column ' ~ added | map(attribute='name') | join(', ') ~ ' is new, and ' ~ reconcile.ledger_name(relations.base) ~ ' gets it from all records in staging' -%}
  {%- set purged = reconcile.purged_through(inputs.relations[0], inputs.objects) if inputs.objects else {} -%}
  {%- set complaints = [] -%}
  {%- if config.get('full_refresh') is false -%}
    {%- do complaints.append(beginning ~ ', as a full refresh does, which `full_refresh: false` in its config forbids; remove that for one run, or leave the column out') -%}
  {%- endif -%}
  {%- for object, batch in purged.items() -%}
    {%- do complaints.append(beginning ~ ', but the records of ' ~ object ~ ' up to batch ' ~ batch ~ ' were purged from ' ~ reconcile.ledger_name(inputs.relations[0])
          ~ '; declare a copy of the base table as it was at batch ' ~ batch ~ ', with the column, as `meta: {base_snapshot: schema.table}`, and rebuild with `' ~ reconcile._rebuild_command() ~ '`, or leave the column out') -%}
  {%- endfor -%}
  {%- if applied.base_batch and not applied.ledger_batch -%}
    {%- do complaints.append(beginning ~ ', but the ledger has nothing of this table, so nothing shows whether staging still has them; leave the column out (`' ~ reconcile._rebuild_command() ~ '` builds the table from what staging has)') -%}
  {%- endif -%}
  {%- set lost = reconcile.lost_range(relations, inputs, sql) if not purged else none -%}
  {%- if lost -%}
    {%- do complaints.append(beginning ~ ', but ' ~ lost.said ~ ' in batches ' ~ lost.first ~ ' to ' ~ lost.last
          ~ ', and rows would be lost; restore the records, or leave the column out (`' ~ reconcile._rebuild_command() ~ '` builds the table from what is left)') -%}
  {%- endif -%}
  {%- do reconcile.raise_complaints(complaints) -%}
{%- endmacro %}

{#- A list of at most one sentence: which columns the base table got. `added`: their names. -#}
{%- macro added_messages(added) -%}
  {{ return(['columns added: ' ~ added | join(', ')] if added else []) }}
{%- endmacro %}
