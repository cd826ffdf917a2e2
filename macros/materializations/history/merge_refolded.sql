{#- A column that is no longer declared makes no version. So the versions in the base table are compared once more, with
    the columns that are left: a MERGE of the table with itself, which reads all of it and writes the versions that
    repeat the version before them now, and the chains that end there. To do it twice changes nothing. -#}
{%- macro merge_refolded(relations, form) -%}
{%- set derived = reconcile.derived_columns(form.partial_records, form.keyless) -%}
merge into {{ reconcile.qualified(relations.base) }} as base
using (
    select *
    from (
        {{ reconcile.recomputed_versions(relations, form, none, 0, reconcile._known_records(relations, form)) | indent(8) }}
    )
    where _change_is_revised
) as version
on {{ reconcile.keys_match(form.unique_key, 'version', 'base', form.file_format) }} and version._change_sequence = base._change_sequence
when matched then update set
    {%- for column in derived %}
    {{ reconcile.stored_column(column, form.file_format) }} = version.{{ column }}{{ ',' if not loop.last }}
    {%- endfor %}
{%- endmacro %}

{#- All records of the base table, as `_distinct_records` gives those of a range. -#}
{%- macro _known_records(relations, form) -%}
{%- set values = reconcile.identifiers(form.columns | rejectattr('name', 'in', form.unique_key)) -%}
{%- set known = reconcile.derived_columns(form.partial_records, form.keyless) + reconcile.columns_of_copies(form.keyless) -%}
select
    {{ reconcile.key_columns(form.unique_key) }},
    _change_sequence,
    _change_type,
    _change_time,
    _change_id,
    _change_batch,
    struct({{ (values or ['null as nothing']) | join(', ') }}) as _change_carried,
    struct({{ known | join(', ') }}) as _change_known
from {{ reconcile.stored_rows(relations.base, form) }}
{%- endmacro %}
