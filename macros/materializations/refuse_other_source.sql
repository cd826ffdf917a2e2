{#- Records of another source than the one that the model's macro reads are quarantined, each with the name of the macro
    that fits. If nothing has been applied yet and no record can be applied, the model has the wrong macro, and the run
    is refused. `facts`: the facts of the range's change records, see `facts_of_changes`. -#}
{%- macro refuse_other_source(inputs, facts) -%}
  {%- if facts.of_other_source and not facts.readable -%}
    {%- do reconcile.raise_complaints([
          'the source macro of the model can read no record of ' ~ inputs.objects | join(', ') ~ ' in ' ~ reconcile.ledger_name(inputs.relations[0])
          ~ '; the macro that fits is ' ~ facts.fitting_macro]) -%}
  {%- endif -%}
{%- endmacro %}

{#- A view has no range: at most 1,000 records of its SELECT stand for all. `fields`: the columns of the SELECT. -#}
{%- macro refuse_other_source_of_view(inputs, fields) -%}
  {%- if '_change_macro' in fields -%}
    {%- set facts = reconcile.one_row(
          'select\n    ' ~ reconcile.facts_of_source()
          ~ '\nfrom (select _change_macro, _change_error from (\n' ~ sql ~ '\n) limit 1000)') -%}
    {%- do reconcile.refuse_other_source(inputs, facts) -%}
  {%- endif -%}
{%- endmacro %}
