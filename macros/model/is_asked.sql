{#- Whether a variable that is true or false, such as `retry_quarantine`, is true. -#}
{%- macro is_asked(variable) -%}
  {%- set asked = var(variable, false) -%}
  {%- if asked is not boolean -%}
    {{ exceptions.raise_compiler_error("The variable " ~ variable ~ " is '" ~ asked ~ "', which is neither true nor false; write --vars '{" ~ variable ~ ": true}'.") }}
  {%- endif -%}
  {{ return(asked) }}
{%- endmacro %}
