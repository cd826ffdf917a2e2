{#- The relations of a model. The caches are temporary views of the session, a set of them for each model.
    `fold_cache` has the fold of the range; of a history, the versions from `recomputed_versions`. -#}
{%- macro model_relations(this) -%}
  {%- set this = reconcile.destination(this) -%}
  {%- set name = local_md5(reconcile.ledger_name(this))[:12] -%}
  {{ return({
      'live': this,
      'base': this.incorporate(path={'identifier': this.identifier ~ '__base'}, type='table'),
      'changes': this.incorporate(path={'identifier': this.identifier ~ '__changes'}, type='view'),
      'quarantine': this.incorporate(path={'identifier': this.identifier ~ '__quarantine'}, type='table'),
      'row_deletes': this.incorporate(path={'identifier': this.identifier ~ '__row_deletes'}, type='table'),
      'range_deletes': this.incorporate(path={'identifier': this.identifier ~ '__range_deletes'}, type='table'),
      'changes_cache': 'reconcile_changes_' ~ name,
      'notes_cache': 'reconcile_notes_' ~ name,
      'fold_cache': 'reconcile_fold_' ~ name,
      'buckets_cache': 'reconcile_buckets_' ~ name,
      'rows_cache': 'reconcile_rows_' ~ name,
      'keys_cache': 'reconcile_keys_' ~ name,
      'records_cache': 'reconcile_records_' ~ name,
      'removed_cache': 'reconcile_removed_' ~ name,
  }) }}
{%- endmacro %}

{#- The relation that a model builds: its own or, at an earlier moment, the relation of the same name in a schema for
    that moment. -#}
{%- macro destination(relation) -%}
  {%- if not reconcile.as_of() -%}{{ return(relation) }}{%- endif -%}
  {{ return(reconcile.in_schema(relation, var('as_of_schema', none) or relation.schema ~ '_as_of')) }}
{%- endmacro %}
