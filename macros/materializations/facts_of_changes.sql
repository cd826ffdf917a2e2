{#- What a run must know about its change records before it folds them, asked in one statement: {readable,
    of_other_source, fitting_macro, tables, zero_dates, unmasked, unmasked_batch}. A fact is missing if the model's records cannot show it.
    `readable`: how many records have no error. `of_other_source`: how many records are for another source macro.
    `fitting_macro`: the macro that most of those are for. `tables`: the names of the records' tables, if the model
    names objects. The names are in hex, because Spark hides values that contain words such as token or url.
    `zero_dates`: how many records without an error have zero dates. `unmasked`: how many records were not masked as the
    model declares, the first of them in the batch `unmasked_batch`. `columns`: those that the model declares. `changes`: the checked records, which have the
    columns `fields`. `objects`: what the model reads, as `model_inputs` has it. -#}
{%- macro facts_of_changes(changes, fields, objects, columns) -%}
  {%- set facts = [] -%}
  {%- if '_change_macro' in fields -%}{%- do facts.append(reconcile.facts_of_source()) -%}{%- endif -%}
  {%- if '_change_table' in fields and objects.values() | rejectattr('tables', 'defined') | list -%}
    {%- do facts.append("array_join(array_sort(collect_set(hex(_change_table))), ',') as tables") -%}
  {%- endif -%}
  {%- if '_change_zero_dates' in fields -%}
    {%- do facts.append('count_if(_change_error is null and cardinality(_change_zero_dates) > 0) as zero_dates') -%}
  {%- endif -%}
  {%- if reconcile.masked_names(columns) -%}{%- do facts.append(reconcile.facts_of_masks()) -%}{%- endif -%}
  {{ return(reconcile.one_row('select\n    ' ~ facts | join(',\n    ') ~ '\nfrom ' ~ changes) if facts else {}) }}
{%- endmacro %}

{#- The facts that show whether the model has the macro of another source, as SQL. The column `_change_macro` is the
    name of the source macro that a record is for. It is NULL if that is the macro of the model, or if nothing shows the
    macro. So `of_other_source` counts the records that are for another macro, and `fitting_macro` is the most frequent
    of these macros. -#}
{%- macro facts_of_source() -%}
count_if(_change_error is null) as readable,
    count(_change_macro) as of_other_source,
    mode(_change_macro, true) as fitting_macro
{%- endmacro %}

{#- How many change records have a note in place of a record that was not masked, as SQL: see `masked_record`. -#}
{%- macro facts_of_masks() -%}
count_if({{ reconcile.is_unmasked('_change_record') }}) as unmasked,
    min(if({{ reconcile.is_unmasked('_change_record') }}, _change_batch, null)) as unmasked_batch
{%- endmacro %}
