{#- The staged record for the SELECT that a source macro reads: the record itself if it was masked as the columns declare,
    and else a note in its place. So a value that ought to be masked, and is not, gets no further than this SELECT: not
    into a base table, not into a quarantine, not into a view. The job writes what it masked as the first member of each
    record (ingestion/reconcile_jobs/masks.py). `metadata`: whether the note has the names of the record's table, by
    which a model that names a table finds its records. -#}
{%- macro masked_record(columns, metadata=false) -%}
{%- if not reconcile.masked_names(columns) -%}
record
{%- else -%}
if({{ reconcile._is_masked(columns) }}, record, concat('{"unmasked_record":{"bytes":', octet_length(record), '}'{{ ", ',\"source_metadata\":', coalesce(to_json(" ~ reconcile.parsed_record('source_metadata struct<database string, schema string, table string>') ~ ".source_metadata), 'null')" if metadata }}, '}')) as record
{%- endif -%}
{%- endmacro %}

{#- Only the beginning of a record is parsed. In it, `}}` first ends what the record says of its masks; if the name of a
    field has this text, the record counts as one that was not masked. A note of a long record has the member at
    another place. -#}
{%- macro _is_masked(columns) -%}
{%- set conditions = [] -%}
{%- for column in columns if column.mask -%}
  {%- do conditions.append('masks[' ~ reconcile.literal(column.name | lower) ~ "] = '" ~ column.mask ~ "'") -%}
{%- endfor -%}
coalesce(transform(array(from_json(case when startswith(record, '{"masked":{"by":') then concat(substring_index(record, '}}', 1), '}}}') when startswith(record, '{"long_record":') then record end, 'masked struct<fields map<string, string>>').masked.fields), masks -> {{ conditions | join(' and ') }})[0], false)
{%- endmacro %}

{#- The complaints about a record that was not masked, and about one that the job staged without its text, as branches of
    a CASE. -#}
{%- macro mask_complaints(columns) -%}
when {{ reconcile.is_unmasked('record') }} then {{ reconcile.literal('the record was not masked for ' ~ reconcile.masked_names(columns) ~ ', and is not shown') }}
                when contains(record, '}},"withheld_record":{') and get_json_object(record, '$.withheld_record.why') is not null then concat('the record could not be masked, and staging has no text of it (', get_json_object(record, '$.withheld_record.why'), ')')
{%- endmacro %}

{#- Whether a record is the note in place of one that was not masked. -#}
{%- macro is_unmasked(record) -%}
startswith({{ record }}, '{"unmasked_record":')
{%- endmacro %}

{#- The names of the masked columns, for a message; '' if no column has a mask. -#}
{%- macro masked_names(columns) -%}
{{ columns | selectattr('mask') | map(attribute='name') | join(', ') }}
{%- endmacro %}
