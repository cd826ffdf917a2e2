{#- What a run has to know of its change records before it folds them, asked in one statement: {readable, of_other_source, meant, tables, zero_dates}, each where the records can tell it.
    `readable`: records without an error; `of_other_source`: those for another source macro, and `meant`, the macro that most of them are for; `tables`, where the model names objects: the names of their tables in hex,
    since Spark hides values that speak of a token or a url; `zero_dates`: records with some. -#}
{%- macro facts_of_changes(relations, settings) -%}
  {%- set asked = [] -%}
  {%- if '_change_macro' in settings.fields -%}{%- do asked.append(reconcile.facts_of_source()) -%}{%- endif -%}
  {%- if '_change_table' in settings.fields and settings.inputs.objects.values() | rejectattr('tables', 'defined') | list -%}{%- do asked.append("array_join(array_sort(collect_set(hex(_change_table))), ',') as tables") -%}{%- endif -%}
  {%- if '_change_zero_dates' in settings.fields -%}{%- do asked.append('count_if(_change_error is null and cardinality(_change_zero_dates) > 0) as zero_dates') -%}{%- endif -%}
  {{ return(reconcile.one_row('select\n    ' ~ asked | join(',\n    ') ~ '\nfrom ' ~ relations.changes_cache) if asked else {}) }}
{%- endmacro %}

{#- Those of them that tell whether the model has the macro of another source. -#}
{%- macro facts_of_source() -%}
count_if(_change_error is null) as readable,
    count(_change_macro) as of_other_source,
    mode(_change_macro, true) as meant
{%- endmacro %}
