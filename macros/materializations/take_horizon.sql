{#- Lets a run read its records beside the horizons of the model: they are put into `settings.form.horizons`. A run that
    applies new batches first takes the farthest horizon that was proposed, with the first batch of its range. It does so
    before it reads a record, so that a run that dies has taken the horizon for the same batches as the run that goes on.
    A replay takes none: a run that died may have applied its batches without the horizon. Nor does a run that begins
    with a batch that had been applied when the horizon was proposed: the model was put back to before it. -#}
{%- macro take_horizon(settings, range) -%}
  {%- set name = reconcile.ledger_name(reconcile.relation_of(model)) -%}
  {%- set known = reconcile.horizons_at_start(settings.declaration) -%}
  {%- set of_base = reconcile.horizon_of_base(range.horizon) -%}
  {%- do settings.update({'horizon': range.horizon}) if of_base -%}
  {%- set taken = known.taken + (of_base if of_base and of_base[0] not in known.taken else []) -%}
  {%- set proposed = known.proposed | selectattr('first', 'le', range.first) | map(attribute='sequence') | max -%}
  {%- if proposed and range.kind == 'apply' and range.delivered and not range.retry and not settings.as_of -%}
    {%- set why = reconcile.why_no_horizon(settings) -%}
    {%- if why -%}
      {%- do log(name ~ ': its tombstones stay, since ' ~ why, info=true) -%}
    {%- else -%}
      {%- do run_query(reconcile.take_horizon_statement(name, proposed, range.first, settings.declaration)) -%}
      {%- set taken = taken + [{'first': range.first, 'sequence': proposed}] -%}
    {%- endif -%}
  {%- endif -%}
  {%- do settings.form.update({'horizons': taken}) if taken -%}
{%- endmacro %}

{#- The horizon up to which tombstones of a base table are gone, as a list of at most one {first, sequence}. The base
    table says it, too, in case somebody drops or restores the table of horizons, and so does a copy of it, with which
    another model may begin. `said`: the property, `<first batch> <sequence>`. -#}
{%- macro horizon_of_base(said) -%}
  {%- if not said -%}{{ return([]) }}{%- endif -%}
  {%- set first, sequence = said.split(' ') -%}
  {{ return([{'first': first | int, 'sequence': sequence}]) }}
{%- endmacro %}

{#- Why a model's tombstones cannot be deleted up to a place in the order; '' if they can. Of histories and cells no
    horizon is proposed. -#}
{%- macro why_no_horizon(settings) -%}
{%- if settings.form.source_columns -%}
several sources in one table have several orders
{%- elif settings.snapshot or settings.is_restated -%}
a snapshot beside the log gives records another place in the order
{%- elif settings.form.materialized != 'current_state' or settings.form.keyless.kind == 'range_deletes' -%}
its deletes are kept otherwise
{%- endif -%}
{%- endmacro %}
