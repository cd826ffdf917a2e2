{#- Fails if records of one key have equal coordinates and different payloads. A hash then decides which record is
    newer: always in the same way, but not as the source did. The delete and the insert of one update share their
    coordinates, and are no finding. -#}
{%- test one_payload_per_sequence(model, key=none) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'one_payload_per_sequence') -%}
{%- set key = key or reconcile.node_of(model).config.unique_key -%}
{%- set keys = [key] if key is string else key -%}
{%- set columns = reconcile.key_columns(keys) -%}
select {{ columns }}, _change_coordinates as coordinates, count(distinct _change_sequence) as payloads, sort_array(collect_set(_change_id)) as change_ids
from (
    select {{ columns }}, _change_sequence, _change_id, left(_change_sequence, char_length(_change_sequence) - 17) as _change_coordinates
    from {{ reconcile.qualified(model.incorporate(path={'identifier': model.identifier ~ '__changes'})) }}
    where _change_error is null
)
group by {{ columns }}, _change_coordinates
{#- A record without its key does not count. The condition is on the group: a filter on a column would pull the whole
    parsing of a record into the filter, once for each mention of the column. #}
having count(distinct _change_sequence) > 1{% for name in keys %} and count({{ reconcile.identifier(name) }}) > 0{% endfor %}
{%- endif -%}
{%- endtest %}
