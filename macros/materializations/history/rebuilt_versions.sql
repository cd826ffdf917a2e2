{#- All rows of the base table, rebuilt: every record of the keys that the range has, and of a base snapshot the keys that it does not touch. -#}
{%- macro rebuilt_versions(relations, settings, range, columns) -%}
select {{ columns | join(', ') }}
from {{ relations.fold_cache }}
{%- if range.snapshot %}
union all
select {{ columns | join(', ') }}
from {{ reconcile.stored_rows(range.snapshot, settings) }} as known
left anti join {{ relations.fold_cache }} as touched
    on {{ reconcile.keys_match(settings.unique_key, 'touched', 'known') }}
{%- endif %}
{%- endmacro %}
