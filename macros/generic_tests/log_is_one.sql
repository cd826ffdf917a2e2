{#- Fails if the log of a Datastream source seems to have begun anew without a generation that says so: all changes of
    some hour are later in time, but earlier in the log, than the place that an earlier hour had reached. The hour in
    between is left out, since statements of one hour may be logged in the next. The test does not change the order. The log
    began anew at the time in the finding or earlier: find the exact time, and add it to `generations`. Each source of a
    model with source columns has a log of its own. -#}
{%- test log_is_one(model) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'log_is_one') -%}
{%- do reconcile.refuse_other_sources(model, 'log_is_one') -%}
{%- set source_columns = reconcile.source_columns_of(reconcile.model_inputs(reconcile.node_of(model)).objects) | list -%}
{%- set of_source = '_change_source, ' if source_columns -%}
with changes as (
    select {{ 'to_json(struct(' ~ reconcile.key_columns(source_columns) ~ ')) as ' ~ of_source if source_columns }}{{ reconcile.generation_in_log() }} as generation, {{ reconcile.log_coordinates() }} as place, _change_time
    from {{ reconcile.qualified(model.incorporate(path={'identifier': model.identifier ~ '__changes'})) }}
    where _change_error is null and {{ reconcile.is_in_log() }} and _change_time is not null
),

hours as (
    select {{ of_source }}generation, date_trunc('HOUR', _change_time) as hour, min(_change_time) as began, max(place) as last_position, count(*) as changes
    from changes
    group by {{ of_source }}generation, date_trunc('HOUR', _change_time)
),

compared as (
    select *, max(last_position) over (partition by {{ of_source }}generation order by hour range between unbounded preceding and interval '2' hour preceding) as position_before
    from hours
)

select
    {%- if source_columns %}
    _change_source as source,
    {%- endif %}
    min(began) as first_change_time,
    sum(changes) as changes,
    max(position_before) as position_before,
    max(last_position) as position_since,
    concat('changes from ', date_format(min(began), "yyyy-MM-dd HH:mm:ssXXX"), ' on are later in time, but earlier in the log: the log seems to have begun anew at this time or earlier; if it did, {{ 'give this source a model of its own, with generations' if source_columns else 'find the time and add it to generations' }}') as finding
from compared
where last_position < position_before
group by {{ of_source }}generation
{%- endif -%}
{%- endtest %}

{#- These tests are for models of Datastream's sources, whose log has positions. -#}
{%- macro refuse_other_sources(model, test) -%}
  {%- if not reconcile.have_log(reconcile.model_inputs(reconcile.node_of(model)).objects) -%}
    {{ exceptions.raise_compiler_error('Test ' ~ test ~ ': ' ~ reconcile.ledger_name(model) ~ ' has no source macro of Datastream, and this test is only for models with one; remove the test from it.') }}
  {%- endif -%}
{%- endmacro %}
