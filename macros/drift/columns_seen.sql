{#- What the records of the models show about their columns, keys and schemas, where it is new or differs from the
    declaration: see "Columns seen" in docs/design.md. Everything in this table follows from staging, batch by batch. So
    a replay replaces the rows of its range by the same rows, and a rebuild replaces all rows. -#}
{%- macro columns_seen() -%}
  {{ return(reconcile.own_table('reconcile_columns_seen')) }}
{%- endmacro %}

{%- macro get_create_columns_seen_statement(file_format) -%}
{{ reconcile.create_table_statement(
      reconcile.columns_seen(), reconcile._columns_of_columns_seen(), file_format, ['relation'] + (['batch'] if file_format == 'iceberg' else [])) }}
{%- endmacro %}

{%- macro _columns_of_columns_seen() %}
relation string comment 'schema.name of the model',
batch bigint,
kind string comment 'column: a field of the payload; key: the key columns that a record names; schema: its schema_key',
name string comment 'for a column, its name in lower case; for a key, its columns as a JSON list',
spelled string comment 'the column as the records spell it; NULL if they lack it',
form string comment 'the form of the values: text, whole number, number, boolean, json, null; any, if the declaration accepts any form; missing, if records lack a declared column',
is_declared boolean,
records bigint comment 'the number of records in the batch; for missing, of records that set a whole row'
{%- endmacro %}

{#- Compares the range's records with the records before them, and returns {statements, messages}: the statements that
    record what is new, an empty list if nothing is (a rebuild always replaces the rows); and the sentences that the run
    reports about it. A declared column that no record has ever had ends the run: otherwise every row would have NULL
    there, and nobody would notice. -#}
{%- macro note_columns(relations, form, fields, range) -%}
  {%- if '_change_fields' not in fields -%}
    {{ return({'statements': [], 'messages': []}) }}
  {%- endif -%}
  {%- set rows = reconcile._rows_to_note(relations, form.read, form.partial_records, range) -%}
  {%- do run_query(reconcile.cached(relations.notes_cache, rows, lazy=true)) -%}
  {%- set new, lacking, never_present, keys = [], [], [], [] -%}
  {%- set key_of_payload = reconcile.keys_of_payload(form.unique_key, form.source_columns) -%}
  {%- set noted = run_query(reconcile._summary_of_notes(relations)) -%}
  {%- for kind, name, is_declared, is_missing, was_present in noted -%}
    {%- if kind == 'key' -%}
      {%- do keys.append(name) if reconcile.is_other_key(name, key_of_payload) -%}
    {%- elif kind == 'column' and name not in reconcile.ignored_columns(model) -%}
      {%- do new.append(name) if not is_declared -%}
      {%- do (lacking if was_present or range.snapshot else never_present).append(name) if is_missing -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if never_present -%}
    {%- do reconcile.raise_complaints([
          'no record has the declared column ' ~ never_present | join(', ') ~ ('; columns of the records that are not declared: ' ~ new | join(', ') if new else '')
          ~ '; correct the name in the YAML, or remove the column, or, if records with it will arrive later, add it to `meta: {ignored_columns: [...]}`']) -%}
  {%- endif -%}
  {%- set messages = [] -%}
  {%- if new -%}{%- do messages.append('columns that are not declared: ' ~ new | join(', ')) -%}{%- endif -%}
  {%- if lacking -%}{%- do messages.append('columns that are no longer in every record: ' ~ lacking | join(', ')) -%}{%- endif -%}
  {%- for key in keys -%}
    {%- do messages.append('the key of the source is ' ~ fromjson(key) | join(', ') ~ ', not ' ~ key_of_payload | join(', ')) -%}
  {%- endfor -%}
  {%- set statements = [reconcile._write_notes(relations, range)] if noted or range.kind == 'rebuild' else [] -%}
  {{ return({'messages': messages, 'statements': statements}) }}
{%- endmacro %}

{%- macro _write_notes(relations, range) -%}
insert into {{ reconcile.qualified(reconcile.columns_seen()) }}
replace where {{ reconcile._is_of_relation(relations) }}
{%- if range.kind != 'rebuild' %} and batch between {{ range.first }} and {{ range.last }}
{%- elif range.snapshot %} and batch >= {{ range.first }}
{%- endif %}
select {{ reconcile.literal(reconcile.ledger_name(relations.live)) }} as relation, batch, kind, name, spelled, form, is_declared, records
from {{ relations.notes_cache }}
{%- endmacro %}

{%- macro _summary_of_notes(relations) -%}
select kind, name, is_declared, bool_or(form <=> 'missing') as is_missing, bool_or(was_present) as was_present
from {{ relations.notes_cache }}
group by kind, name, is_declared
order by kind, name
{%- endmacro %}

{%- macro _is_of_relation(relations) -%}
relation = {{ reconcile.literal(reconcile.ledger_name(relations.live)) }}
{%- endmacro %}

{#- The rows to write for a range: whatever appears for the first time, each batch that differs from the declaration,
    and the first batch after such a batch that does not. Of keys and schemas: each batch whose records name others than
    the records of the batch before, so that a key that the source takes up again is the newest once more. `was_present`: some record has had the column, in the range or before. `columns`: those that the source macro reads. -#}
{%- macro _rows_to_note(relations, columns, partial_records, range) -%}
{%- set table = reconcile.qualified(reconcile.columns_seen()) -%}
{%- set before = 'over (partition by kind, subject order by batch range between unbounded preceding and 1 preceding)' -%}
select *
from (
    select
        *,
        min(batch) over (partition by kind, subject, name, spelled, replace(form, 'whole ', '')) as first_batch,
        bool_or(not is_missing) over (partition by kind, subject) as was_present,
        max(if(is_missing, batch, null)) {{ before }}
            >= coalesce(max(if(is_missing, null, batch)) {{ before }}, 0) as is_back,
        names_of_batch <> coalesce(max(struct(batch, names_of_batch)) {{ before }}.names_of_batch, array()) as is_switch
    from (
        select *, array_sort(collect_set(name) over (partition by kind, subject, batch)) as names_of_batch
        from (
            select batch, kind, name, spelled, form, is_declared, records, form <=> 'missing' as is_missing, if(kind = 'column', name, kind) as subject, true as is_of_range
            from (
                {{ reconcile._observed_columns(relations.changes_cache, columns, partial_records) | indent(16) }}
            )
            {%- if range.kind != 'rebuild' or range.snapshot %}
            union all
            {%- set declared = "if(kind = 'column', " ~ reconcile._declared_name('name', columns) ~ ', name)' if reconcile._has_former_names(columns) else 'name' %}
            select batch, kind, {{ declared }}, spelled, form, is_declared, records, form <=> 'missing', if(kind = 'column', {{ declared }}, kind), false
            from {{ table }}
            where {{ reconcile._is_of_relation(relations) }} and batch < {{ range.first }}
            {%- endif %}
        )
    )
)
where is_of_range and (is_missing or kind = 'column' and not is_declared or kind = 'column' and batch = first_batch or is_back or kind <> 'column' and is_switch)
{%- endmacro %}

{#- What the records of the range show, each fact once for each batch. Records have few distinct sets of fields, so each
    set is decoded once for all records that have it. `changes`: checked records; `columns`: those that the source macro reads. -#}
{%- macro _observed_columns(changes, columns, partial_records) -%}
{%- set declared = reconcile._array_of_texts(columns | rejectattr('removed') | map(attribute='name') | map('lower')) -%}
{%- set nothing = 'cast(null as string)' -%}
select batch, kind, name, spelled, form, is_declared, sum(if(form <=> 'missing', whole_records, records)) as records
from (
    select *, {{ reconcile.names_of_fields('_change_fields', 'letters', columns) | indent(4) }} as names
    from (
        select
            _change_batch as batch,
            _change_fields,
            _change_key,
            _change_schema,
            {{ reconcile.letters_of_fields('_change_fields') }} as letters,
            count(*) as records,
            count_if(_change_type <> 'delete'{{ ' and _change_columns is null' if partial_records }}) as whole_records
        from {{ changes }}
        group by _change_batch, _change_fields, _change_key, _change_schema
    )
)
lateral view inline(concat(
    transform(names, (name, i) -> struct(
        'column' as kind,
        {{ reconcile._declared_name('lower(name)', columns) }} as name,
        name as spelled,
        {{ reconcile.form_of_field('substring(letters, 2 * i + 1, 2)', reconcile._declared_name('lower(name)', columns), columns) | indent(8) }} as form,
        array_contains({{ declared }}, {{ reconcile._declared_name('lower(name)', columns) }}) as is_declared
    )),
    transform(
        if(_change_fields is null, array(), array_except({{ declared }}, transform(names, name -> {{ reconcile._declared_name('lower(name)', columns) }}))),
        name -> struct('column' as kind, name as name, {{ nothing }} as spelled, 'missing' as form, true as is_declared)
    ),
    filter(
        array(
            struct('key' as kind, _change_key as name, {{ nothing }} as spelled, {{ nothing }} as form, true as is_declared),
            struct('schema' as kind, _change_schema as name, {{ nothing }} as spelled, {{ nothing }} as form, true as is_declared)
        ),
        fact -> fact.name is not null
    )
)) fact as kind, name, spelled, form, is_declared
where form is null or form <> 'missing' or whole_records > 0
group by batch, kind, name, spelled, form, is_declared
{%- endmacro %}

{#- The name of the column that a field is of, in lower case: a field may have a former name of the column. `name`: the
    name of the field in lower case, as SQL. -#}
{%- macro _declared_name(name, columns) -%}
{%- if reconcile._has_former_names(columns) -%}
case {{ name }}
{%- for column in columns -%}
  {%- for former in column.was or [] %} when {{ reconcile.literal(former | lower) }} then {{ reconcile.literal(column.name | lower) }}{% endfor -%}
{%- endfor %} else {{ name }} end
{%- else -%}
{{ name }}
{%- endif -%}
{%- endmacro %}

{%- macro _has_former_names(columns) -%}
  {{ return(columns | selectattr('was', 'defined') | selectattr('was') | list | length > 0) }}
{%- endmacro %}

{#- The batches in which fields first came whose names no column had then: {name in lower case: batch}. -#}
{%- macro first_batches_of_fields(relations, names) -%}
  {%- set found = {} -%}
  {%- if names and reconcile.existing_relation(reconcile.columns_seen()) -%}
    {%- for row in run_query(
          'select name, min(batch) as first_batch from ' ~ reconcile.qualified(reconcile.columns_seen()) ~ ' where '
          ~ reconcile._is_of_relation(relations) ~ " and kind = 'column' and spelled is not null and name in (" ~ reconcile.literals(names | map('lower')) ~ ') group by name') -%}
      {%- do found.update({row[0]: row[1]}) -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return(found) }}
{%- endmacro %}

{#- The columns that a model names because their drift is known, in lower case. -#}
{%- macro ignored_columns(node) -%}
  {%- set dropped = [] -%}
  {%- for column in node.columns.values() if reconcile.meta_of_column(column).get('mask') == 'drop' -%}
    {%- do dropped.append(column.name | lower) -%}
  {%- endfor -%}
  {{ return(((node.config.get('meta') or {}).get('ignored_columns') or []) | map('string') | map('lower') | list + dropped) }}
{%- endmacro %}

{#- Whether a key of the source, a list in JSON, differs from the model's key. If the table has no key, the model may
    name any key. A row's address also identifies rows, beside any key. MySQL's records have the columns in alphabetical
    order. -#}
{%- macro is_other_key(key, unique_key) -%}
  {%- set named = fromjson(key) | map('lower') | sort -%}
  {{ return(named != [] and unique_key != ['_row_id'] and named != unique_key | map('lower') | sort) }}
{%- endmacro %}

{#- The node of a model whose runs note what its records show. A test of such models passes its own name. -#}
{%- macro noted_node(relation, test) -%}
  {%- set node = reconcile.node_of(relation) -%}
  {%- if node.config.materialized == 'current_view' -%}
    {{ exceptions.raise_compiler_error(reconcile.ledger_name(relation) ~ ' is a current_view, and runs do not record the columns of its records; remove the test ' ~ test ~ ' from it.') }}
  {%- endif -%}
  {{ return(node) }}
{%- endmacro %}
