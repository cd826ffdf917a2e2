{#- The position at which two sides are compared: {kind, value, label, taken_at, from, to}; none if they are compared as
    they are. `as_of`: the test's argument, which is a position, the word now, or nothing, for the snapshot's own
    position. `snapshot`: the relation with the source's own rows. `uncertainty`: a length of time, such as 1 hour.
    Times are SQL. `from` and `to` bound the time in which a change may be in the snapshot or not. They are none if the
    position shows it exactly for every change. A position that a user names has no time of its own, and everything up
    to it counts as delivered. -#}
{%- macro position_of_snapshot(snapshot, as_of, uncertainty) -%}
  {%- if as_of is mapping -%}
    {%- set named = reconcile.named_position(as_of, 'Test parity: as_of') -%}
    {{ return({'kind': named.position, 'value': named.value, 'label': named.label, 'taken_at': none, 'from': none, 'to': none}) }}
  {%- elif as_of not in [none, 'now'] -%}
    {{ exceptions.raise_compiler_error("Test parity: as_of: '" ~ as_of ~ "' is not a position; write for example {batch: 17}, or now to compare both sides as they are.") }}
  {%- endif -%}
  {%- set properties = {} if as_of == 'now' else reconcile.table_properties(snapshot) -%}
  {%- set kind = properties.get('reconcile.snapshot.position_kind') -%}
  {%- set value = properties.get('reconcile.snapshot.position') -%}
  {%- if properties.get('reconcile.snapshot') in ['jdbc', 'spanner'] and not value -%}
    {{ exceptions.raise_compiler_error('Test parity: ' ~ reconcile.ledger_name(snapshot) ~ ' has no position, because the job that took it did not finish; take the snapshot again.') }}
  {%- elif not value -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set taken_at = value if kind == 'read_timestamp' else properties.get('reconcile.snapshot.taken_at') -%}
  {%- if not taken_at or kind != 'read_timestamp' and not reconcile.moment(taken_at) -%}
    {{ exceptions.raise_compiler_error('Test parity: ' ~ reconcile.ledger_name(snapshot) ~ ' does not have the time when it was taken (table property reconcile.snapshot.taken_at); take the snapshot again.') }}
  {%- endif -%}
  {{ return(reconcile.position_in_log(kind, value, taken_at, uncertainty)) }}
{%- endmacro %}

{#- The position at which the source's rows were read, in the same form. `taken_at`: when, as a text. -#}
{%- macro position_in_log(kind, value, taken_at, uncertainty) -%}
  {%- set taken_at = 'to_timestamp(' ~ reconcile.literal(taken_at) ~ ')' -%}
  {%- set exact = kind in ['pg_snapshot', 'read_timestamp'] -%}
  {%- set interval = "interval '" ~ uncertainty ~ "'" -%}
  {{ return({
      'kind': kind, 'value': value, 'label': kind ~ ' ' ~ value, 'taken_at': taken_at,
      'from': none if exact else taken_at ~ ' - ' ~ interval, 'to': none if exact else taken_at ~ ' + ' ~ interval}) }}
{%- endmacro %}
