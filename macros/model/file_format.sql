{#- The file format of a model's tables: its config file_format. -#}
{%- macro file_format(node) -%}
  {{ return(node.config.get('file_format') or 'delta') }}
{%- endmacro %}

{#- The one file format of all models: a session knows only one format, and the models share the ledger. Delta if there
    are no models. -#}
{%- macro file_format_of_all() -%}
  {%- set names = {} -%}
  {%- for node in reconcile.reconciled_nodes() -%}
    {%- do names.setdefault(reconcile.file_format(node), []).append(node.name) -%}
  {%- endfor -%}
  {%- for format in names if format not in ['delta', 'iceberg'] -%}
    {{ exceptions.raise_compiler_error(
        'The file_format ' ~ format ~ ' of ' ~ names[format] | sort | join(', ') ~ ' is not supported; use delta or iceberg.') }}
  {%- endfor -%}
  {%- if names | length > 1 -%}
    {%- set shown = [] -%}
    {%- for format, models in names | dictsort -%}{%- do shown.append(format ~ ' (' ~ models | sort | join(', ') ~ ')') -%}{%- endfor -%}
    {{ exceptions.raise_compiler_error(
        'The models of this project have several file formats: ' ~ shown | join(' and ') ~ '. A Spark session supports only one format, and the models share a ledger: '
        ~ 'set the same format for all of them, by `+file_format` in dbt_project.yml.') }}
  {%- endif -%}
  {{ return(names | first | default('delta', true)) }}
{%- endmacro %}
