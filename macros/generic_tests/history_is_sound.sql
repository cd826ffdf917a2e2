{#- Fails on every version of a `history` that overlaps the next version, ends before it begins, or is followed by a gap
    that no delete explains. It also fails on rows with several current versions, on rows with none although their
    newest record is no delete, and on records that are kept twice. The test reads the base table's records and what
    people read, without the windows that made them. -#}
{%- test history_is_sound(model) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'history_is_sound') -%}
{%- set node = reconcile.node_of(model) -%}
{%- if node.config.materialized != 'history' -%}
  {{ exceptions.raise_compiler_error('Test history_is_sound: ' ~ reconcile.ledger_name(model) ~ ' is a ' ~ node.config.materialized ~ ', and this test is only for the materialization history; remove the test from it.') }}
{%- endif -%}
{%- set keys = reconcile.keys_of(node) -%}
{%- set key = reconcile.key_columns(keys) -%}
{%- set relations = reconcile.model_relations(model) -%}
{%- set form = reconcile.form_of_table(node, relations.base) -%}
{%- set keyless = form.keyless -%}
{%- set has_keyless_deletes = keyless and reconcile.existing_relation(relations[keyless.kind]) -%}
{%- set known = '_change_is_known' if reconcile.takes_partial_records(node) else "_change_type <> 'delete'" -%}
{%- set base = reconcile.stored_rows(model.incorporate(path={'identifier': model.identifier ~ '__base'}), form) %}
with records as (
    select {{ key }}, _change_sequence, _change_time, valid_from, valid_to, {{ known }} as is_version
        {{- ', _row_id' if reconcile.keys_may_shift(keyless) }}
    from {{ base }}{{ ' as record' if reconcile.keys_may_shift(keyless) }}
    {%- if reconcile.keys_may_shift(keyless) %}
    -- without the deletes of other rows than the one that had taken the key by an update
    left anti join (
        select {{ key }}, _change_sequence as _change_of_other_row
        from (
            select {{ key }}, deletes._change_sequence, deletes._row_id, max_by(struct(writes._change_type, writes._row_id), writes._change_sequence) as _change_last_write
            from {{ base }} as deletes
            inner join {{ base }} as writes using ({{ key }}, _change_transaction)
            where deletes._change_type = 'delete' and writes._change_type <> 'delete' and not coalesce(writes._change_is_undone, false) and writes._change_sequence < deletes._change_sequence
            group by {{ key }}, deletes._change_sequence, deletes._row_id
        )
        where _change_last_write._change_type = 'update' and _change_last_write._row_id <> _row_id
    ) as deletes
        on {{ reconcile.keys_match(keys, 'deletes', 'record') }} and _change_of_other_row = _change_sequence
    where not coalesce(_change_is_undone, false)
    {%- endif %}
),

neighbours as (
    select
        *,
        lead(valid_from) over (partition by {{ key }} order by _change_sequence) as next_from,
        lead(_change_sequence) over (partition by {{ key }} order by _change_sequence) as next_sequence,
        row_number() over (partition by {{ key }} order by _change_sequence desc) = 1 as is_newest,
        count(*) over (partition by {{ key }}, _change_sequence) as copies
    from records
),

-- the versions that a keyless delete ended
ended_versions as (
    {%- if has_keyless_deletes %}
    select {{ key }}, neighbours._change_sequence, keyless._change_sequence as ended_by
    from neighbours
    inner join {{ reconcile.stored_keyless_deletes(relations, keyless, form.file_format) }} as keyless
        on
            {{ reconcile.delete_covers_row(keyless, 'keyless.' ~ keyless.place, 'neighbours') }}
            and keyless._change_sequence > neighbours._change_sequence
            and (next_sequence is null or keyless._change_sequence < next_sequence)
    where is_version
    {%- else %}
    select {{ key }}, _change_sequence, _change_sequence as ended_by
    from records
    where false
    {%- endif %}
),

versions as (
    select
        {{ key }},
        _change_sequence,
        valid_from,
        valid_to,
        is_current,
        lead(valid_from) over (partition by {{ key }} order by _change_sequence) as next_from,
        lead(_change_sequence) over (partition by {{ key }} order by _change_sequence) as next_sequence,
        count_if(is_current) over (partition by {{ key }}) as current_versions
    from {{ reconcile.qualified(model) }}
),

-- what ends a row without beginning another version
ends as (
    select {{ key }}, _change_sequence as ended_by
    from records
    where not is_version
    union all
    select {{ key }}, ended_by
    from ended_versions
),

gaps as (
    select versions.*
    from versions
    left anti join ends
        on {{ reconcile.keys_match(keys, 'versions', 'ends') }} and ended_by > _change_sequence and ended_by < next_sequence
    where valid_to < next_from
)

select {{ key }}, _change_sequence, valid_from, valid_to, 'the record is stored more than once' as finding
from neighbours
where copies > 1
union all
select {{ key }}, _change_sequence, valid_from, valid_to, 'valid_to is not the valid_from of the next version, or valid_from is NULL or later than the change'
from neighbours
left anti join ended_versions using ({{ key }}, _change_sequence)
where not valid_to <=> next_from or valid_from > _change_time or valid_from is null
union all
select {{ key }}, _change_sequence, valid_from, valid_to, 'a keyless delete ended the version, but valid_to is NULL or later than the next version'
from neighbours
left semi join ended_versions using ({{ key }}, _change_sequence)
where valid_to is null or valid_to > next_from
union all
select {{ key }}, _change_sequence, valid_from, valid_to, 'ends before it begins'
from versions
where valid_to < valid_from
union all
select {{ key }}, _change_sequence, valid_from, valid_to, 'overlaps the next version'
from versions
where next_from < valid_to or (valid_to is null and next_from is not null)
union all
select {{ key }}, _change_sequence, valid_from, valid_to, 'a gap follows the version, and no delete explains it'
from gaps
union all
select {{ key }}, _change_sequence, valid_from, valid_to, 'one of several current versions'
from versions
where is_current and current_versions > 1
union all
select {{ key }}, newest._change_sequence, newest.valid_from, newest.valid_to, 'no version is current, although the newest record is not a delete'
from neighbours as newest
left anti join (select * from versions where is_current) as current using ({{ key }})
left anti join ended_versions on {{ reconcile.keys_match(keys, 'newest', 'ended_versions') }} and newest._change_sequence = ended_versions._change_sequence
where newest.is_newest and newest.is_version
{%- endif -%}
{%- endtest %}
