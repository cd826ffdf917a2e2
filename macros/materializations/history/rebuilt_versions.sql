{#- All rows of the rebuilt base table: every record of the keys in the range. From a base snapshot, also the snapshot's
    records of the keys that the range does not touch. `columns`: the columns of the base table, as SQL. -#}
{%- macro rebuilt_versions(relations, form, range, columns) -%}
select {{ columns | join(', ') }}
from {{ relations.fold_cache }}
{%- if range.snapshot %}
union all
select {{ columns | join(', ') }}
from {{ reconcile.stored_rows(range.snapshot, form) }} as known
left anti join {{ relations.fold_cache }} as touched
    on {{ reconcile.keys_match(form.unique_key, 'touched', 'known') }}
{%- endif %}
{%- endmacro %}
