{#- The end of a materialization, and what it returns: {relations}. `live`: the relation of the view that people read;
    grants are of it alone. `message`: what dbt prints about the model. `others`: the model's other relations. `hooks`:
    the post-hooks to run. -#}
{%- macro finish_model(live, message, others, hooks) -%}
  {%- call noop_statement('main', message) -%}{%- endcall -%}
  {%- set target_relation = live.incorporate(type='view') -%}
  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=false) -%}
  {{ run_hooks(hooks) }}
  {%- do reconcile.note_relations([target_relation] + others) -%}
  {{ return({'relations': [target_relation] + others}) }}
{%- endmacro %}

{#- The whole run of a model that is left as it is (`only_new_records`): it reads and writes nothing, and hooks and
    grants are as the last run left them. -#}
{%- macro leave_model() -%}
  {%- call noop_statement('main', 'no new records, left as it is') -%}{%- endcall -%}
  {{ return({'relations': [this.incorporate(type='view')]}) }}
{%- endmacro %}
