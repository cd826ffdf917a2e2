{#- Refuses options of columns that say how Datastream writes a type. `writer`: who writes the records, in one form for each type. -#}
{%- macro refuse_options_of_datastream(columns, writer) -%}
  {%- set complaints = [] -%}
  {%- for option in ['encoding', 'infinity_is_null'] -%}
    {%- for column in columns if column[option] -%}
      {%- do complaints.append('column ' ~ column.name ~ ': its meta has ' ~ option ~ ', which applies only to files of Datastream; ' ~ writer ~ ' writes each type in only one form; remove the option') -%}
    {%- endfor -%}
  {%- endfor -%}
  {%- do reconcile.raise_complaints(complaints) -%}
{%- endmacro %}
