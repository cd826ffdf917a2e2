{#- Writes into the model's meta, while dbt parses, which objects a source macro takes: {object: order}. So the objects
    of every model are known, whichever models run (see `model_inputs`). -#}
{%- macro note_objects(relation, objects) -%}
  {%- if not relation or relation is string or not relation.identifier -%}
    {%- do reconcile.raise_complaints(["its source macro reads " ~ ("the text '" ~ relation ~ "', which is not a relation" if relation and relation is string else 'nothing that is a relation')
          ~ "; write source('lake', 'shop_changes'), with the names of the staging table that a YAML file declares"]) -%}
  {%- endif -%}
  {%- set meta = {} -%}
  {%- for name, order in objects.items() -%}{%- do meta.update({'reconcile reads ' ~ name: order}) -%}{%- endfor -%}
  {%- do config(meta=meta) -%}
  {%- if execute and flags.WHICH in ['run', 'build'] and config.get('materialized') in ['table', 'view', 'materialized_view', 'incremental'] -%}
    {%- do reconcile.raise_complaints(["materialized='" ~ config.get('materialized') ~ "' would store every change record instead of the current rows; use current_state, history or current_view"]) -%}
  {%- endif -%}
{%- endmacro %}
