{#- For a record of another source, the name of the source macro that should read it, as SQL over the columns of staging.
    NULL if the record is of `source`, the source of the macro that reads it, or if nothing shows the macro. `of_event`:
    SQL for the source of a Datastream event, if that is another one. -#}
{%- macro fitting_macro(source, of_event=none) -%}
case source
            {%- for other, name in reconcile.source_macros().items() if other != source %}
            when '{{ other }}' then {{ reconcile.literal(name) }}
            {%- endfor %}
            when 'datastream' then {{ "concat('datastream_', " ~ of_event ~ ")" if source == 'datastream' else reconcile._macro_of_event() }}
        end
{%- endmacro %}

{#- The complaint about a record that the macro for `source` does not read, as SQL; NULL if the macro reads it. -#}
{%- macro complaint_of_source(source, fitting_macro='fitting_macro') -%}
case
                when {{ fitting_macro }} is not null then concat('the record is of another source; the macro that fits is ', {{ fitting_macro }})
                when not source <=> '{{ source }}' then concat('source ', coalesce(concat('\'', source, '\' of the staging table is unknown'), 'of the staging table is NULL'))
            end
{%- endmacro %}

{#- The source macro for each `source` of staging that has only one. -#}
{%- macro source_macros() -%}
  {{ return({'spanner': 'spanner_change_stream', 'bigtable': 'bigtable_change_stream', 'snapshot': 'snapshots', 'append table': 'datastream_append'}) }}
{%- endmacro %}

{%- macro _macro_of_event() -%}
{%- set parsed = reconcile.parsed_record('read_method string, source_metadata struct<' ~ reconcile.identifying_fields() | join(' string, ') ~ ' string>') -%}
coalesce(concat('datastream_', transform(array({{ parsed }}), parsed -> {{ reconcile.source_of_event('parsed.read_method', 'parsed.source_metadata') }})[0]), 'one that begins with datastream_')
{%- endmacro %}
