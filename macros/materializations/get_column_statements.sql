{#- What a base table needs so that the run goes on with a changed declaration, see `changed_columns`: no record is read
    again. A removed column stays in the table as it is: rows that come later have NULL there. The table's properties
    come last: a run that dies before them begins again, and each statement may come twice. A table that was made before
    base tables said their columns says them from its next run on. -#}
{%- macro get_column_statements(relations, settings) -%}
  {%- set changes, form = settings.changes, settings.form -%}
  {%- if changes and not reconcile.has_changed_columns(settings) -%}{{ return([]) }}{%- endif -%}
  {%- set statements = [] -%}
  {%- if changes.removed and form.materialized == 'history' -%}
    {%- do statements.append(reconcile.merge_refolded(relations, form)) -%}
  {%- endif -%}
  {%- set built = changes.built if changes else reconcile.columns_as_built(form.shown) -%}
  {%- set properties = reconcile.properties_clause({
        'reconcile.declaration': settings.declaration, 'reconcile.columns': reconcile.property_of_columns(built)}) -%}
  {{ return(statements + ['alter table ' ~ reconcile.qualified(relations.base) ~ ' set ' ~ properties]) }}
{%- endmacro %}

{#- Whether columns of the base table are declared otherwise than when the table was built. -#}
{%- macro has_changed_columns(settings) -%}
  {{ return(settings.changes and fromjson(settings.built.base).columns != fromjson(settings.declaration).columns) }}
{%- endmacro %}

{#- What the run says before it follows a changed declaration: a list of sentences. -#}
{%- macro column_messages(relations, settings) -%}
  {%- set changes, base, messages = settings.changes, reconcile.ledger_name(relations.base), [] -%}
  {%- if not reconcile.has_changed_columns(settings) -%}{{ return([]) }}{%- endif -%}
  {%- if changes.removed -%}
    {%- do messages.append('columns removed: ' ~ changes.removed | map(attribute='name') | join(', ') ~ '; they leave the view, and stay in ' ~ base ~ ' until a full refresh'
          ~ ('. Its versions are compared anew without them, and those that change are written' if settings.form.materialized == 'history' else '')) -%}
  {%- endif -%}
  {%- do messages.append('records that are in quarantine because of these columns stay there until a full refresh') if messages -%}
  {{ return(messages) }}
{%- endmacro %}

{#- Why the run cannot follow a change of columns that loses nothing: a list of sentences. -#}
{%- macro obstacles_to_changes(settings) -%}
  {%- set changes, form, found = settings.changes, settings.form, [] -%}
  {%- set moved = (changes.removed + changes.renamed) | map(attribute='name') | join(', ') -%}
  {%- if moved and form.partial_records -%}
    {%- do found.append('column ' ~ moved ~ ': its records carry only some columns, and which updates set a whole row depends on all of them') -%}
  {%- endif -%}
  {%- if changes.removed and form.keyless and form.materialized == 'history' -%}
    {%- do found.append('column ' ~ changes.removed | map(attribute='name') | join(', ') ~ ': its versions depend on deletes without a key, and cannot be compared anew from the base table alone') -%}
  {%- endif -%}
  {%- if reconcile.has_other_stored_columns(changes) and form.materialized != 'history' and reconcile.keys_may_shift(form.keyless) -%}
    {%- do found.append('it keeps records that an insert displaced, with all their columns (row_ids)') -%}
  {%- endif -%}
  {%- if settings.snapshot -%}
    {%- do found.append('staging has a snapshot beside the log, which has the columns of its time') -%}
  {%- endif -%}
  {%- set partitions = config.get('partition_by') or [] -%}
  {%- for column in changes.removed + changes.renamed + changes.widened if column.name in ([partitions] if partitions is string else partitions) -%}
    {%- do found.append('column ' ~ column.name ~ ': the base table is partitioned by it') -%}
  {%- endfor -%}
  {{ return(found) }}
{%- endmacro %}

{#- Whether the rows of the base table are to have other columns than they have. -#}
{%- macro has_other_stored_columns(changes) -%}
  {{ return(changes.removed or changes.renamed or changes.widened | selectattr('is_stored_otherwise') | list) }}
{%- endmacro %}
