{#- The versions as people read them: those that changed a column, unless the model says `meta: {fold_unchanged: false}`. -#}
{%- macro shown_versions(relations, settings) -%}
{%- set folded = (config.get('meta') or {}).get('fold_unchanged', true) -%}
{%- set valid_to = '_change_valid_to' if folded else 'valid_to' -%}
select
    {%- for column in reconcile.identifiers(settings.columns) %}
    {{ column }},
    {%- endfor %}
    valid_from,
    {{ '_change_valid_to as valid_to' if folded else 'valid_to' }},
    {{ valid_to }} is null as is_current,
    _change_type,
    _change_sequence,
    _change_id
    {%- if '_row_id' in settings.unique_key and settings.row_ids %},
    _row_id
    {%- endif %}
from {{ reconcile.qualified(relations.base) }}
where
    {{ '_change_is_known' if settings.partial_records else "_change_type <> 'delete'" }}
    {%- if folded %}
    and not _change_repeats
    {%- endif %}
{%- endmacro %}
