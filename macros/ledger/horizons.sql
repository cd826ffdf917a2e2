{#- Horizons of base tables: places in the order up to which the tombstones of a base table may be deleted, since later
    batches cannot change a row with a change of before them. `maintain.py --tombstones` makes this table, and proposes
    horizons. The run of a model takes a horizon with the first batch of its range: from this batch on, records up to the
    horizon are quarantined. See docs/decisions/0074-horizons.md. -#}
{%- macro horizons() -%}
  {{ return(reconcile.own_table('reconcile_horizons')) }}
{%- endmacro %}

{#- What the table of horizons has of models: {name in the ledger: [{first, sequence, declaration}]}; without models of
    which it has nothing. `first`: the first batch to which a run has applied the horizon; none for one that is
    proposed. See `horizons_in`. -#}
{%- macro horizons_of_models(names) -%}
  {%- set found = {} -%}
  {%- if names and reconcile.existing_relation(reconcile.horizons()) -%}
    {%- for relation, first, declaration, sequence in run_query(reconcile._known_horizons(names)) -%}
      {%- do found.setdefault(relation, []).append(
            {'first': first | int if first is not none else none, 'sequence': sequence, 'declaration': declaration}) -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return(found) }}
{%- endmacro %}

{%- macro _known_horizons(names) -%}
select relation, first_batch, declaration, max(sequence) as sequence
from {{ reconcile.qualified(reconcile.horizons()) }}
where relation in ({{ reconcile.literals(names) }}) and kind in ('proposed', 'taken')
group by relation, first_batch, declaration
order by relation, first_batch, declaration
{%- endmacro %}

{#- Of the horizons of a model, {taken: [{first, sequence}], proposed}: those that hold for its declaration. `proposed`:
    the farthest one that a run may take, none if no run has to. Another staging table has other batches and perhaps
    another log, and another form of the order has other texts. A horizon is proposed for the very sources of the base
    table. One that was taken goes on with other ones: a generation that is added at the end changes no place. -#}
{%- macro horizons_in(rows, declaration) -%}
  {%- set now, taken, proposed = reconcile.declaration_of_order(declaration), [], [] -%}
  {%- for row in rows -%}
    {%- set staging, sources, sequence = row.declaration.split(' ') -%}
    {%- if row.first is none -%}
      {%- do proposed.append(row.sequence) if row.declaration == now -%}
    {%- elif [staging, sequence] == [now.split(' ')[0], now.split(' ')[2]] -%}
      {%- do taken.append({'first': row.first, 'sequence': row.sequence}) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- set farthest = taken | map(attribute='sequence') | max | default('', true) -%}
  {{ return({'taken': taken, 'proposed': proposed | select('gt', farthest) | max | default(none, true)}) }}
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
  {%- set rows = reconcile.horizons_of_models([reconcile.ledger_name(relation)]).values() | list -%}
  {%- do form.update({'horizons': reconcile.horizons_in(rows[0], declaration).taken}) if rows -%}
{%- endmacro %}
