{#- The earlier moment as of which `dbt run --vars '{as_of: {batch: 17}}'` builds the models, or none: {position, value,
    label}. -#}
{%- macro as_of() -%}
  {%- if var('as_of', none) is not none and not modules.re.fullmatch('([A-Za-z0-9_-]+[.])?[A-Za-z0-9_]+', var('as_of_schema', none) or '_') -%}
    {{ exceptions.raise_compiler_error("as_of_schema: '" ~ var('as_of_schema') ~ "' is not a schema name that Spark's catalog accepts; use only ASCII letters, digits and _, and write a catalog before it as catalog.schema.") }}
  {%- endif -%}
  {{ return(reconcile.named_position(var('as_of', none), 'The variable as_of')) }}
{%- endmacro %}

{#- A position that a user names, as {batch: 17}: {position, value, label}, or none. `where`: what names the position,
    for the message. -#}
{%- macro named_position(given, where) -%}
  {%- if given is none -%}{{ return(none) }}{%- endif -%}
  {%- set forms = {
      'batch': ['[1-9][0-9]{0,17}', 'a batch number, for example 17'],
      'appended_at': [none, "a time with a zone, for example '2026-11-21 11:33:14+00'"],
      'commit_time': [none, "a time with a zone, for example '2026-11-21 11:33:14+00'"],
      'sequence': ['[0-9A-F]+(/[0-9A-F]+)*', 'a value of _change_sequence, or its first sections'],
      'pg_snapshot': ['[0-9]+:[0-9]+:([0-9]+(,[0-9]+)*)?', "a result of PostgreSQL's pg_current_snapshot(), for example '18642:18650:18644'"]} -%}
  {%- if given is not mapping or given | length != 1 or given.keys() | list | first not in forms -%}
    {{ exceptions.raise_compiler_error(where ~ " is '" ~ given ~ "', which is not a position; write one of " ~ forms.keys() | join(', ') ~ " with its value, for example {batch: 17}.") }}
  {%- endif -%}
  {%- set position, value = given.items() | list | first -%}
  {%- set pattern, form = forms[position] -%}
  {%- if not (modules.re.fullmatch(pattern, value | string) if pattern else reconcile.moment(value | string)) -%}
    {{ exceptions.raise_compiler_error(where ~ ": {" ~ position ~ ": " ~ value ~ "} is not " ~ form ~ ".") }}
  {%- endif -%}
  {{ return({'position': position, 'value': value | string, 'label': position ~ ' ' ~ value}) }}
{%- endmacro %}

{#- The property that marks what was built as of an earlier moment, as SQL to go after other properties. `as_of`:
    {position, value, label}, or none. -#}
{%- macro as_of_property(as_of) -%}
{{ ", 'reconcile.as_of' = " ~ reconcile.literal(as_of.label) if as_of }}
{%- endmacro %}
