{#- Ends the run with all that is wrong with a model, at once. -#}
{%- macro raise_complaints(complaints) -%}
  {%- if complaints -%}
    {{ exceptions.raise_compiler_error('Model ' ~ model.name ~ ':\n  - ' ~ complaints | join('\n  - ')) }}
  {%- endif -%}
{%- endmacro %}
