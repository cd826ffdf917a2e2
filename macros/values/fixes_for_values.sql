{#- What usually helps if a column's type cannot hold a value, as SQL for the column numbered `i`, within a lambda; NULL
    if nothing usual helps. The SQL runs only for values that are lost. Text that depends on the single value stands in
    quotes, and reasons are counted without their quoted text (see `quarantine_reasons`). `readable` is set for
    Datastream's columns and names their texts; `zero_dates` is set for MySQL's. -#}
{%- macro fixes_for_values(columns, readable=none, zero_dates=false) -%}
{%- set numbers = {} -%}
{%- for column in columns -%}
  {%- do numbers.setdefault(reconcile._fix_for_column(column, (readable or 'texts') ~ '[i]', readable, zero_dates), []).append(loop.index0) -%}
{%- endfor -%}
case
    {%- if readable %}
    when texts[i] = {{ reconcile.digits_not_found() }} then cast(null as string)
    {%- endif %}
    {%- for fix, column_numbers in numbers.items() if fix %}
    when i in ({{ column_numbers | join(', ') }}) then {{ fix | indent(4) }}
    {%- endfor %}
    else cast(null as string)
end
{%- endmacro %}

{%- macro _fix_for_column(column, text, datastream, zero_dates) -%}
{%- set type = column.type -%}
{%- if type.name == 'string' and datastream -%}
{{ reconcile._fix_for_text(column) }}
{%- elif type.name == 'string' -%}
case{{ ' when char_length(texts[i]) > ' ~ type.length ~ " then 'declare string'" if type.length is defined }} when left(texts[i], 1) = '[' then 'declare array<string>' end
{%- elif type.name == 'binary' -%}
{{ reconcile._fix_for_bytes(type, text, datastream) }}
{%- elif type.name == 'variant' -%}
{%- if datastream -%}
case when get(kinds, i) = 'json' and {{ reconcile.has_a_name_twice('texts[i]') }} then {{ reconcile.literal(reconcile.fix_for_a_name_twice()) }} when get(kinds, i) = 'json' and try_parse_json(texts[i]) is null then 'declare string' end
{%- endif -%}
{%- elif type.encoding == 'unknown' or type.name == 'array' and type.element.name == 'binary' -%}
{%- elif type.name in ['array', 'map'] -%}
{%- set whole = 'try_cast(' ~ (reconcile._list('fields[i]') ~ ' as array<variant>)' if type.name == 'array' else reconcile._container('fields[i]') ~ ' as map<string, variant>)') -%}
if({{ whole }} is null, 'declare string', 'declare {{ "another type for its elements" if type.name == "array" else "other types for its keys or values" }}')
{%- else -%}
{%- set fixes = reconcile._fixes_for_scalar(column, text, datastream, zero_dates) -%}
{%- if fixes -%}
case
    {%- for condition, fix in fixes %}
    when {{ condition }} then {{ fix }}
    {%- endfor %}
    else 'declare string'
end
{%- else -%}
'declare string'
{%- endif -%}
{%- endif -%}
{%- endmacro %}

{#- A list of [condition, fix], both SQL over `text`, a text that the column's type cannot hold. The first condition
    that is true gives the fix. `zero_dates`: the column is MySQL's, which writes a TIME as a number. -#}
{%- macro _fixes_for_scalar(column, text, datastream, zero_dates) -%}
  {%- set name, fixes = column.type.name, [] -%}
  {%- set is_moment = name in ['timestamp', 'timestamp_ntz'] -%}
  {%- if zero_dates and (is_moment or name == 'date') -%}
    {%- do fixes.append([reconcile.is_zero_date(text), reconcile.literal("it is a zero date: declare string to keep it, or `meta: {zero_date: 'null'}` to make it NULL")]) -%}
  {%- endif -%}
  {%- if is_moment and datastream -%}
    {%- do fixes.append([text ~ " in ('infinity', '-infinity')", "'it is infinity: declare string to keep it, or `meta: {infinity_is_null: true}` to make it NULL'"]) -%}
    {#- Avro has a moment without a zone, and one with a zone, as records. -#}
    {%- do fixes.append([text ~ " like '{\"date\":%'", "'declare timestamp_ntz'"] if name == 'timestamp' else [text ~ " like '{\"offset\":%'", "'declare timestamp'"]) -%}
  {%- endif -%}
  {%- if name in ['tinyint', 'smallint', 'int'] -%}
    {%- do fixes.append(['try_cast(' ~ text ~ ' as bigint) is not null', "'declare bigint'"]) -%}
  {%- elif is_moment and zero_dates -%}
    {%- do fixes.append(['try_cast(' ~ text ~ ' as bigint) is not null', "'declare bigint, or for a TIME string with `meta: {encoding: microseconds}`'"]) -%}
  {%- elif is_moment or name in ['boolean', 'date'] -%}
    {%- do fixes.append(['try_cast(' ~ text ~ ' as bigint) is not null', "'declare bigint'"]) -%}
  {%- endif -%}
  {%- if name in ['tinyint', 'smallint', 'int', 'bigint'] -%}
    {%- for digits in [20, 38] -%}
      {%- do fixes.append([text ~ ' rlike ' ~ reconcile.literal('^[-+]?\\d{1,' ~ digits ~ '}$'), "'declare decimal(" ~ digits ~ ",0)'"]) -%}
    {%- endfor -%}
    {%- do fixes.append(['lower(' ~ text ~ ") in ('true', 'false')", "'declare boolean'"]) -%}
  {%- endif -%}
  {%- if name in ['tinyint', 'smallint', 'int', 'bigint', 'decimal'] -%}
    {%- do fixes.append([text ~ ' rlike ' ~ reconcile.literal('^[-+]?\\d*[.]?\\d+$'), reconcile._fix_for_digits(column, text)]) -%}
  {%- elif is_moment or name == 'date' -%}
    {#- Spark's casts accept a bare year as a date, and cut digits beyond a microsecond. -#}
    {%- if name != 'timestamp' -%}
      {%- do fixes.append([text ~ ' rlike ' ~ reconcile.literal(':.*[-+]\\d\\d(:?\\d\\d)?$') ~ ' and try_cast(' ~ text ~ ' as timestamp) is not null', "'it has a zone: declare timestamp'"]) -%}
    {%- endif -%}
    {%- if name == 'date' -%}
      {%- do fixes.append([text ~ " like '%:%' and try_cast(" ~ text ~ ' as timestamp) is not null', "'it has a time of day: declare timestamp or timestamp_ntz, or `meta: {round: true}`'"]) -%}
    {%- else -%}
      {%- do fixes.append([text ~ ' rlike ' ~ reconcile.literal('[.]\\d{6}\\d*[1-9]') ~ ' and try_cast(' ~ text ~ ' as timestamp) is not null', "'it is finer than a microsecond: declare string for all digits, or `meta: {round: true}`'"]) -%}
    {%- endif -%}
  {%- endif -%}
  {{ return(fixes) }}
{%- endmacro %}

{#- The decimal that holds a number, with at least as many digits on either side of the point as are declared. And what
    else holds a number with too many decimal places. -#}
{%- macro _fix_for_digits(column, text) -%}
{%- set integer_digits = 'length(regexp_extract(' ~ text ~ ', ' ~ reconcile.literal('^[-+]?0*(\\d*)') ~ ', 1))' -%}
{%- set decimals = 'length(regexp_extract(' ~ text ~ ', ' ~ reconcile.literal('[.](\\d*?)0*$') ~ ', 1))' -%}
{%- set whole, places = (column.type.precision - column.type.scale, column.type.scale) if column.type.name == 'decimal' else (19, 0) -%}
{%- set scale = places if column.round else 'greatest(' ~ places ~ ', ' ~ decimals ~ ')' if places else decimals -%}
concat(
        'declare ', if({{ integer_digits }} + {{ scale }} > 38, 'string for all digits', concat('\'decimal(', least(38, greatest({{ whole }}, {{ integer_digits }}) + {{ scale }}), ',', {{ scale }}, ')\''))
        {%- if not column.round %},
        if({{ decimals }} > {{ places }}, ', or double if it is a float at the source', ''),
        if({{ reconcile.typed_value(text, column.type, round=true) }} is null, '', ', or `meta: {round: true}`')
        {%- endif %}
    )
{%- endmacro %}

{#- For a string column of Datastream's, for which `typed_payload` always has `readable` and `kinds`. NULL if nothing
    usual helps. -#}
{%- macro _fix_for_text(column) -%}
{%- set too_long = 'char_length(readable[i]) > ' ~ column.type.length if column.type.length is defined -%}
{%- if column.encoding in ['microseconds', 'interval', 'time'] -%}
{{ 'if(' ~ too_long ~ ", 'declare string', " if too_long }}'remove `encoding: {{ column.encoding }}` from its meta'{{ ')' if too_long }}
{%- elif column.encoding == 'json' -%}
case{{ ' when ' ~ too_long ~ " then 'declare string'" if too_long }} when {{ reconcile.has_a_name_twice('texts[i]') }} then {{ reconcile.literal(reconcile.fix_for_a_name_twice()) }} when try_parse_json(texts[i]) is null then 'remove `encoding: json` from its meta' end
{%- else -%}
case
    {%- if too_long %}
    when {{ too_long }} then 'declare string'
    {%- endif %}
    when get(kinds, i) = 'json' and {{ reconcile.has_a_name_twice('texts[i]') }} then {{ reconcile.literal(reconcile.fix_for_a_name_twice()) }}
    when get(kinds, i) = 'json' and left(texts[i], 1) not in ('{', '[') and try_parse_json(texts[i]) is not null then 'declare it with `meta: {encoding: json}`'
    when texts[i] like '%"nestedArray":%' then 'declare an array, for example array<string>'
    when texts[i] like '{"srid":%' then 'declare variant, or keep string with `meta: {encoding: json}`'
end
{%- endif -%}
{%- endmacro %}

{#- If the encoding is unknown, the complaint itself says what to declare. -#}
{%- macro _fix_for_bytes(type, text, datastream) -%}
case
    when schema_of_variant(fields[i]) <> 'STRING' then if(try_cast(texts[i] as bigint) is null, 'declare string', 'declare bigint')
    {%- if not datastream or type.encoding != 'unknown' %}
    {%- for other in ['hex', 'base64'] if datastream and other != type.encoding %}
    when {{ reconcile._binary(text, none, other, 'get(kinds, i)') }} is not null then 'if it is {{ other }}, declare it with `meta: {encoding: {{ other }}}`'
    {%- endfor %}
    else 'declare string'
    {%- endif %}
end
{%- endmacro %}
