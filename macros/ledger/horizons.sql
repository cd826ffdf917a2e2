{#- Horizons of base tables: places in the order up to which the tombstones of a base table may be deleted, since later
    batches cannot change a row with a change of before them. `maintain.py --tombstones` makes this table, and proposes
    horizons. The run of a model takes a horizon with the first batch of its range: from this batch on, records up to the
    horizon are quarantined. See docs/decisions/0074-horizons.md. -#}
{%- macro horizons() -%}
  {{ return(reconcile.own_table('reconcile_horizons')) }}
{%- endmacro %}

{#- What the table of horizons has of models: {name in the ledger: [{kind, first, sequence, declaration}]}; without
    models of which it has nothing. `kind`: taken or proposed. `first`: the first batch to which a run has applied the
    horizon, or may. What was proposed before the last rebuild of a model does not count: the records may have other
    places since. See `horizons_in`. -#}
{%- macro horizons_of_models(names) -%}
  {%- set found = {} -%}
  {%- if names and reconcile.existing_relation(reconcile.horizons()) -%}
    {%- for relation, kind, first, declaration, sequence in run_query(reconcile._known_horizons(names)) -%}
      {%- do found.setdefault(relation, []).append(
            {'kind': kind, 'first': first | int, 'sequence': sequence, 'declaration': declaration}) -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return(found) }}
{%- endmacro %}

{%- macro _known_horizons(names) -%}
select relation, kind, first_batch, declaration, max(sequence) as sequence
from {{ reconcile.qualified(reconcile.horizons()) }}
left join (
    select relation, max(entry) as rebuilt
    from {{ reconcile.qualified(reconcile.ledger()) }}
    where relation in ({{ reconcile.literals(names) }}) and kind = 'rebuild'
    group by relation
) using (relation)
where relation in ({{ reconcile.literals(names) }}) and (kind = 'taken' or kind = 'proposed' and entry >= coalesce(rebuilt, 0))
group by relation, kind, first_batch, declaration
order by relation, kind, first_batch, declaration
{%- endmacro %}

{#- Of the horizons of a model, {taken, proposed}, each a list of {first, sequence}: those that hold for its declaration.
    `proposed`: those that are farther than all that were taken. Another staging table has other batches and perhaps
    another log, other sources have other places, and another form of the order has other texts. A model of another
    declaration is rebuilt from all its records, deletes among them: a copy of before is refused. -#}
{%- macro horizons_in(rows, declaration) -%}
  {%- set now, taken, proposed = reconcile.declaration_of_order(declaration), [], [] -%}
  {%- for row in rows if row.declaration == now -%}
    {%- do (taken if row.kind == 'taken' else proposed).append({'first': row.first, 'sequence': row.sequence}) -%}
  {%- endfor -%}
  {%- set farthest = taken | map(attribute='sequence') | max | default('', true) -%}
  {{ return({'taken': taken, 'proposed': proposed | selectattr('sequence', 'gt', farthest) | list}) }}
{%- endmacro %}

{#- What of a model's declaration makes its order: the digests of its staging table, its sources and the form of the order.
    ingestion/reconcile_jobs/retention/tombstones.py takes them from the base table. -#}
{%- macro declaration_of_order(declaration) -%}
  {%- set digests = fromjson(declaration) -%}
  {{ return([digests.staging, digests.sources, digests.sequence] | join(' ')) }}
{%- endmacro %}

{#- The statement by which a run takes a horizon, before it reads its records. `name`: that of the model in the ledger.
    `first`: the first batch of the range. -#}
{%- macro take_horizon_statement(name, sequence, first, declaration) -%}
insert into {{ reconcile.qualified(reconcile.horizons()) }} by name
select
    {{ reconcile.literal(name) }} as relation,
    'taken' as kind,
    {{ reconcile.literal(sequence) }} as sequence,
    cast({{ first }} as bigint) as first_batch,
    {{ reconcile.literal(reconcile.declaration_of_order(declaration)) }} as declaration,
    '{{ invocation_id }}' as invocation_id,
    current_timestamp() as recorded_at
{%- endmacro %}

{#- The horizons of the model that is built, as this run found them when it began: see `horizons_in`. -#}
{%- macro horizons_at_start(declaration) -%}
  {{ return(reconcile.horizons_in(graph.get('reconcile_horizons', {}).get(reconcile.ledger_name(reconcile.relation_of(model)), []), declaration)) }}
{%- endmacro %}

{#- Lets a form of a table that a test or an operation reads have the horizons of its model. `relation`: the model. -#}
{%- macro add_horizons(form, relation, declaration) -%}
  {%- set name = reconcile.ledger_name(relation) -%}
  {%- set known = reconcile.horizons_of_models([name] if form.materialized == 'current_state' else []) -%}
  {%- do form.update({'horizons': reconcile.horizons_in(known[name], declaration).taken}) if name in known -%}
{%- endmacro %}
