{#- The complaint about a record that was too long to be staged, as a branch of a CASE. Staging has a note in the
    record's place (ingestion/reconcile_jobs/long_records.py). -#}
{%- macro long_record_complaint() -%}
when startswith(record, '{"long_record":{"bytes":') then concat('the record was too long for staging (\'', get_json_object(record, '$.long_record.bytes'), ' bytes', coalesce(concat(' at ', get_json_object(record, '$.long_record.place')), ''), '\'); staging has a note in its place, and append.py --longest-record accepts longer records')
{%- endmacro %}
