{#- The batch to which `dbt run --vars '{restore: {batch: 17}}'` puts models back, or none. -#}
{%- macro restored_batch() -%}
  {%- set restore = reconcile.named_position(var('restore', none), 'The variable restore') -%}
  {%- if restore and restore.position != 'batch' -%}
    {{ exceptions.raise_compiler_error('The variable restore is {' ~ restore.position ~ ': ...}, and tables are put back to a batch; write {batch: 17}, or build the rows of another position beside the present ones with as_of.') }}
  {%- endif -%}
  {{ return(restore.value | int if restore else none) }}
{%- endmacro %}

{#- Whether the run makes the base table of a model anew from all records up to its cut. -#}
{%- macro is_made_anew() -%}
  {{ return(should_full_refresh() or reconcile.restored_batch() is not none) }}
{%- endmacro %}
