{#- Records of another source than the one that the model's macro reads are quarantined, each with the macro that fits. Where nothing has been applied yet and nothing can be, the macro
    is the wrong one, and the run is refused. `changes`: the change records of the range. -#}
{%- macro refuse_other_source(settings, changes) -%}
  {%- if '_change_macro' in settings.fields -%}
    {%- for meant, records in run_query(
          'select mode(_change_macro, true) as meant, count(*) as records from ' ~ changes ~ ' having count_if(_change_error is null) = 0 and count(_change_macro) > 0') -%}
      {%- do reconcile.raise_complaints([
            'no record of ' ~ settings.inputs.objects | join(', ') ~ ' in ' ~ reconcile.ledger_name(settings.inputs.relations[0]) ~ ' is one that its source macro reads; probably meant: ' ~ meant]) -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro %}

{#- A view has no range: some records of its SELECT stand for all. -#}
{%- macro refuse_other_source_of_view(settings) -%}
  {%- do reconcile.refuse_other_source(settings, '(select _change_macro, _change_error from (\n' ~ sql ~ '\n) limit 1000)') -%}
{%- endmacro %}

{#- What a run says of such records among others: a list of at most one sentence. -#}
{%- macro said_of_source(relations, settings, counts) -%}
  {%- set said = [] -%}
  {%- if counts.quarantined and '_change_macro' in settings.fields -%}
    {%- for meant, records in run_query('select mode(_change_macro, true) as meant, count(*) as records from ' ~ relations.changes_cache ~ ' where _change_macro is not null having count(*) > 0') -%}
      {%- do said.append(records ~ ' of another source; probably meant: ' ~ meant) -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return(said) }}
{%- endmacro %}
