{#- Whether the command asks for a retry. -#}
{%- macro is_retry_asked() -%}
  {%- set asked = var('retry_quarantine', false) -%}
  {%- if asked is not boolean -%}
    {{ exceptions.raise_compiler_error("The variable retry_quarantine is '" ~ asked ~ "', which is neither true nor false; write --vars '{retry_quarantine: true}'.") }}
  {%- endif -%}
  {{ return(asked) }}
{%- endmacro %}
