{#- What a base table needs so that the run goes on with a changed declaration, see `changed_columns`: no record is read
    again. A removed column stays in the table as it is: rows that come later have NULL there. The table's properties
    come last: a run that dies before them begins again, and each statement may come twice. A table that was made before
    base tables said their columns says them from its next run on. -#}
{%- macro get_column_statements(relations, settings) -%}
  {%- set changes, form = settings.changes, settings.form -%}
  {%- if changes and not reconcile._has_changed_columns(settings) -%}{{ return([]) }}{%- endif -%}
  {%- set statements = [] -%}
  {%- if changes.removed and form.materialized == 'history' -%}
    {%- do statements.append(reconcile.merge_refolded(relations, form)) -%}
  {%- endif -%}
  {%- set wider = reconcile.columns_to_widen(changes, form.file_format) if changes else [] -%}
  {%- if reconcile.is_rewritten(wider, form.file_format) -%}
    {%- for column in changes.built if column.removed -%}{%- do column.update({'dropped': true}) -%}{%- endfor -%}
    {%- do form.update(reconcile.stored_form(changes.built)) -%}
    {{ return(statements + [reconcile._rewrite_base(relations, settings, wider)]) }}
  {%- elif wider -%}
    {%- set stored = {} -%}
    {%- for column in adapter.get_column_schema_from_query('select * from ' ~ reconcile.qualified(relations.base) ~ ' where false') -%}
      {%- do stored.update({reconcile.identifier(column.name): column.dtype}) -%}
    {%- endfor -%}
    {%- do statements.extend(reconcile.get_widening_statements(relations.base, form.file_format)) -%}
    {%- for column in wider -%}
      {%- set name = reconcile.column_of_table(reconcile.identifier(column.name), form) -%}
      {%- set type = reconcile.stored_type(column.column.type.ddl, form.file_format) -%}
      {%- do statements.append('alter table ' ~ reconcile.qualified(relations.base) ~ ' alter column ' ~ name ~ ' type ' ~ type) if stored.get(name) != type -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return(statements + ['alter table ' ~ reconcile.qualified(relations.base) ~ ' set ' ~ reconcile.properties_clause(reconcile.properties_of_declaration(settings))]) }}
{%- endmacro %}

{#- The properties by which a base table says of which declaration it is, {name: text}. `reconcile.columns` has what was
    otherwise when the table was made (`hashed`) only where the table goes on: `settings.changes.built`. -#}
{%- macro properties_of_declaration(settings) -%}
  {{ return({
      'reconcile.declaration': settings.declaration,
      'reconcile.columns': reconcile.property_of_columns(settings.changes.built or reconcile.columns_as_built(settings.form.shown))}) }}
{%- endmacro %}

{#- The base table made anew from its own rows, where the format cannot widen a column in place. Rows and properties are
    one commit. The table then lacks the columns that the model no longer declares, and what it lacked before: the
    records of a retry that died. -#}
{%- macro _rewrite_base(relations, settings, wider) -%}
{%- set types = {} -%}
{%- for column in wider -%}{%- do types.update({reconcile.identifier(column.name): column.column.type.ddl}) -%}{%- endfor -%}
{%- set rows -%}
select
    {%- for column in reconcile.base_columns(settings.form) %}
    {{ 'cast(' ~ column ~ ' as ' ~ types[column] ~ ') as ' ~ column if column in types else column }}{{ ',' if not loop.last }}
    {%- endfor %}
from {{ reconcile.stored_rows(relations.base, settings.form) }}
{%- endset -%}
{{ reconcile.create_base(relations, dict(settings, tables=settings.built.tables), rows, settings.built.retried) }}
{%- endmacro %}

{#- Whether columns of the base table are declared otherwise than when the table was built. -#}
{%- macro _has_changed_columns(settings) -%}
  {{ return(settings.changes and 'columns' in reconcile.changed_aspects(settings.built.base, settings.declaration)) }}
{%- endmacro %}

{#- Whether the statements write rows of the base table, and not its columns and properties alone. -#}
{%- macro rewrites_base(settings) -%}
  {%- set changes, form = settings.changes, settings.form -%}
  {{ return(true if reconcile._has_changed_columns(settings) and (changes.removed and form.materialized == 'history'
      or reconcile.is_rewritten(reconcile.columns_to_widen(changes, form.file_format), form.file_format)) else false) }}
{%- endmacro %}

{#- What the run says before it follows a changed declaration: a list of sentences. -#}
{%- macro column_messages(relations, settings) -%}
  {%- set changes, base, messages = settings.changes, reconcile.ledger_name(relations.base), [] -%}
  {%- if not reconcile._has_changed_columns(settings) -%}{{ return([]) }}{%- endif -%}
  {%- set is_rewritten = reconcile.is_rewritten(reconcile.columns_to_widen(changes, settings.form.file_format), settings.form.file_format) -%}
  {%- if changes.removed -%}
    {%- do messages.append('columns removed: ' ~ changes.removed | map(attribute='name') | join(', ') ~ '; they leave the view, and '
          ~ (base if is_rewritten else 'stay in ' ~ base ~ ' until a full refresh')
          ~ ('. Its versions are compared anew without them, and those that change are written' if settings.form.materialized == 'history' else '')) -%}
  {%- endif -%}
  {%- if changes.widened -%}
    {%- set wider = [] -%}
    {%- for column in changes.widened -%}{%- do wider.append(column.name ~ ' (' ~ column.former.label ~ ' to ' ~ column.column.type.label ~ ')') -%}{%- endfor -%}
    {%- do messages.append('columns widened: ' ~ wider | join(', ')
          ~ ('. ' ~ settings.form.file_format | capitalize ~ ' cannot do so in place: ' ~ base ~ ' is written anew from its own rows'
             if is_rewritten else '')) -%}
  {%- endif -%}
  {%- do messages.append('`' ~ reconcile.retry_command() ~ '` applies records that are in quarantine because of these columns and fit now') if messages -%}
  {%- if changes.renamed -%}
    {%- set renamed = [] -%}
    {%- for column in changes.renamed -%}{%- do renamed.append(column.name ~ ' to ' ~ column.column.name) -%}{%- endfor -%}
    {%- do messages.append('columns renamed: ' ~ renamed | join(', ') ~ '; ' ~ base ~ ' keeps the former names until a full refresh') -%}
  {%- endif -%}
  {{ return(messages) }}
{%- endmacro %}

{#- The command that applies what is in quarantine and fits now. -#}
{%- macro retry_command() -%}
dbt run --select {{ model.name }} --vars '{retry_quarantine: true}'
{%- endmacro %}
