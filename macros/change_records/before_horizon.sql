{#- Whether a record came too late: whether it is of a batch to which a horizon applies, and its place in the order is not
    after the horizon. A change that a snapshot beside the log contains, whose place begins with a dash, does not come too
    late: it loses to the snapshot. `horizons`: [{first, sequence}]. `first` and `last`: the batches that are read; `last` is none if
    all later ones are. NULL and false both mean no. -#}
{%- macro is_before_horizon(horizons, first, last) -%}
{%- set of_earlier, later = [], [] -%}
{%- for horizon in horizons -%}
  {%- do (of_earlier if horizon.first <= first else later).append(horizon) if last is none or horizon.first <= last -%}
{%- endfor -%}
{%- set cases = [] -%}
{%- for horizon in later | sort(attribute='first') -%}
  {%- do cases.insert(0, 'when _change_batch >= ' ~ horizon.first ~ ' then ' ~ reconcile.literal(
        (of_earlier + later) | selectattr('first', 'le', horizon.first) | map(attribute='sequence') | max)) -%}
{%- endfor -%}
{%- set always = reconcile.literal(of_earlier | map(attribute='sequence') | max) if of_earlier else 'null' -%}
not startswith(_change_sequence, '-') and _change_sequence <= {{ 'case ' ~ cases | join(' ') ~ ' else ' ~ always ~ ' end' if cases else always }}
{%- endmacro %}

{#- The reason for which such a record is quarantined. -#}
{%- macro reason_of_horizon() -%}
the change is not after the horizon of the table, up to which its tombstones may be deleted: it came too late
{%- endmacro %}

{#- Whether a record is in quarantine since it came too late, also if it had other faults: no declaration lets it fit.
    `error`: the column with the reasons. -#}
{%- macro is_late(error) -%}
endswith({{ error }}, {{ reconcile.literal(reconcile.reason_of_horizon()) }})
{%- endmacro %}
