{#- The records that go into quarantine. `changes`: a table or a subquery of checked records. -#}
{%- macro quarantined_records(changes) -%}
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
from {{ changes }}
where _change_error is not null
{%- endmacro %}
