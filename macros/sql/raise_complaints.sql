{#- Ends the run with all that is wrong with a model, at once. -#}
{%- macro raise_complaints(complaints) -%}
  {%- if complaints -%}
    {%- set shown = [] -%}
    {%- for complaint in complaints -%}{%- do shown.append(reconcile.printable(complaint)) -%}{%- endfor -%}
    {{ exceptions.raise_compiler_error('Model ' ~ model.name ~ ':\n  - ' ~ shown | join('\n  - ')) }}
  {%- endif -%}
{%- endmacro %}
