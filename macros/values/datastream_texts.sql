{#- Values that Datastream does not write as the text of a column's type: Avro's records, JSON, numbers that are lengths
    of time, PostgreSQL's infinity. The SQL is over the columns of `typed_payload`: `texts` are as delivered, and
    `fields` are their variants. `kinds` is what the append job noted about the fields of an Avro record, `avro_types`
    (see ingestion/reconcile_jobs/avro_json.py). `kinds` is NULL for a record of a JSON file, where only the declaration
    shows the type. -#}

{#- The columns, each with the encoding of bytes that arrive as text: the encoding that the column declares, or else the
    one that the source writes, or else 'unknown'. -#}
{%- macro datastream_columns(columns, encoding=none) -%}
  {%- set known = [] -%}
  {%- for column in columns -%}
    {%- if 'binary' in column.type.ddl -%}
      {%- set encoding_here = column.encoding or encoding or 'unknown' -%}
      {%- set label = column.type.label ~ (', and the column does not declare how text encodes bytes; declare `meta: {encoding: hex}` or `meta: {encoding: base64}`' if encoding_here == 'unknown' else ' in ' ~ encoding_here) -%}
      {%- do known.append(dict(column, type=dict(reconcile._encoded_type(column.type, encoding_here), label=label))) -%}
    {%- else -%}
      {%- do known.append(column) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(known) }}
{%- endmacro %}

{#- A type with the encoding of its bytes, at every depth of its arrays and maps. -#}
{%- macro _encoded_type(type, encoding) -%}
  {%- set parts = {} -%}
  {%- for part in ['element', 'key', 'value'] if part in type -%}
    {%- do parts.update({part: reconcile._encoded_type(type[part], encoding)}) -%}
  {%- endfor -%}
  {{ return(dict(type, encoding=encoding, **parts)) }}
{%- endmacro %}

{#- What is known about each column's field in an Avro record. The name in `avro_types` has the case of the field, not
    that of the column. -#}
{%- macro datastream_kinds() -%}
if(avro_types is null, null, transform(names, name -> coalesce(avro_types[name], get(map_values(avro_types), int(array_position(transform(map_keys(avro_types), key -> lower(key)), lower(name))) - 1))))
{%- endmacro %}

{#- The texts from which the columns' types are read; NULL for a value that has none. Only few records of few tables
    need another text than the one that was delivered. -#}
{%- macro datastream_texts(columns) -%}
{%- set numbers, unusual = {}, [] -%}
{%- for column in columns -%}
  {%- set reading = column.encoding if column.encoding in ['json', 'microseconds', 'interval', 'time'] else column.type.name -%}
  {%- do numbers.setdefault(reading, []).append(loop.index0) -%}
  {%- if reading in ['string', 'timestamp', 'timestamp_ntz'] -%}
    {%- do unusual.append('left(texts[' ~ loop.index0 ~ "], 1) in ('{', '[', '+', '-')") -%}
  {%- elif reading in ['json', 'microseconds', 'interval', 'time'] -%}
    {%- do unusual.append('texts[' ~ loop.index0 ~ '] is not null') -%}
  {%- endif -%}
{%- endfor -%}
{%- set readings = {
    'string': reconcile._text_of_any_kind('text', 'fields[i]', 'get(kinds, i)'),
    'json': 'to_json(' ~ reconcile._variant('text', 'fields[i]', 'get(kinds, i)') ~ ')',
    'microseconds': reconcile._text_of_microseconds('text'),
    'interval': "if(get(kinds, i) = 'interval' or schema_of_variant(fields[i]) = 'OBJECT<hours: BIGINT, micros: BIGINT, months: BIGINT>', " ~ reconcile._text_of_interval('fields[i]') ~ ', ' ~ reconcile._text_of_iso_interval('text') ~ ')',
    'time': "if(get(kinds, i) = 'timeTz', " ~ reconcile._text_of_time_and_offset('fields[i]') ~ ', ' ~ reconcile._text_of_time('text') ~ ')',
    'timestamp': reconcile._infinity("coalesce(try_variant_get(fields[i], '$.timestamp', 'string'), text)"),
    'timestamp_ntz': reconcile._infinity("coalesce(" ~ reconcile._text_of_datetime('fields[i]') ~ ', text)')} -%}
{%- if not unusual -%}
texts
{%- else -%}
if(
    kinds is not null or {{ unusual | join(' or ') }},
    transform(texts, (text, i) -> case
        {%- for reading, sql in readings.items() if reading in numbers %}
        when i in ({{ numbers[reading] | join(', ') }}) then {{ sql }}
        {%- endfor %}
        else text
    end),
    texts
)
{%- endif -%}
{%- endmacro %}

{#- For a column of text: JSON in one form, whatever form the file has, and each of Avro's records as the text that says
    the same. Only `meta: {encoding: json}` distinguishes JSON that is neither an object nor a list from other text. A
    value without such a text gives NULL; a check of lost values then puts the record into quarantine. -#}
{%- macro _text_of_any_kind(text, field, kind) -%}
case
            when {{ kind }} is null or {{ kind }} = 'bytes' then case
                when left({{ text }}, 1) not in ('{', '[') or schema_of_variant({{ field }}) = 'STRING' then {{ reconcile._infinity(text) }}
                when schema_of_variant({{ field }}) rlike '^(OBJECT|ARRAY)' then {{ reconcile._canonical_json(field, 'record') }}
            end
            when {{ kind }} = 'json' then if(ltrim({{ text }}) rlike {{ reconcile.literal('^[{\\[]') }}, {{ reconcile._canonical_json('try_parse_json(' ~ text ~ ')', text) }}, null)
            when {{ kind }} = 'varchar' then try_variant_get({{ field }}, '$.value', 'string')
            when {{ kind }} = 'time-interval-micros' then {{ reconcile._text_of_microseconds(text) }}
            when {{ kind }} = 'timestampTz' then {{ reconcile._infinity("try_variant_get(" ~ field ~ ", '$.timestamp', 'string')") }}
            when {{ kind }} = 'datetime' then {{ reconcile._text_of_datetime(field) }}
            when {{ kind }} = 'timeTz' then {{ reconcile._text_of_time_and_offset(field) }}
            when {{ kind }} = 'interval' then {{ reconcile._text_of_interval(field) }}
        end
{%- endmacro %}

{#- JSON as a variant prints it: without blanks, and with the names of an object in order. A text alone keeps its
    quotes. -#}
{%- macro _canonical_json(json, source) -%}
if({{ reconcile._may_have_rounded(json, source) }}, null, to_json({{ json }}))
{%- endmacro %}

{#- Whether JSON may have lost digits as a variant, which keeps a number of more than 38 digits, or with an exponent, as
    the nearest double, as infinity or as zero. Few values have a double; values of several types in one list show as
    VARIANT, and may have one too. Then each such number in the text is compared with the digits that a variant prints
    of it. `source` is the text, or the record that holds the JSON: a number elsewhere in the record counts too. After
    a number comes a comma, a bracket, a brace, the end, or within a text a backslash; so the digits of a digest or of a
    UUID are no number. Java's
    regular expressions follow a repeated group on the stack, and a number may have 150,000 digits: the pattern repeats
    no group. -#}
{%- macro _may_have_rounded(json, source) -%}
{%- set numbers = 'regexp_extract_all(' ~ source ~ ', ' ~ reconcile.literal('(?:^|[:\\[,])\\s*(-?[0-9](?:[0-9.]*+[eE][-+0-9]+|[0-9.]{38,}))(?=\\s*(?:[,\\]}\\\\]|$))') ~ ')' -%}
schema_of_variant({{ json }}) rlike 'DOUBLE|VARIANT' and exists({{ numbers }}, number -> not ({{ reconcile._significant_digits('number') }} <=> {{ reconcile._significant_digits('to_json(try_parse_json(number))') }}))
{%- endmacro %}

{#- MySQL's TIME, from -838:59:59 to 838:59:59. The least bigint has no positive: `abs` comes after the divisions. -#}
{%- macro _text_of_microseconds(text) -%}
{%- set micros = 'try_cast(' ~ text ~ ' as bigint)' -%}
concat(if({{ micros }} < 0, '-', ''), if({{ micros }} div 36000000000 = 0, '0', ''), abs({{ micros }} div 3600000000), ':', lpad(abs({{ micros }} div 60000000 % 60), 2, '0'), ':', lpad(abs({{ micros }} div 1000000 % 60), 2, '0'), '.', lpad(abs({{ micros }} % 1000000), 6, '0'))
{%- endmacro %}

{%- macro _text_of_datetime(field) -%}
concat(try_variant_get({{ field }}, '$.date', 'string'), 'T', try_variant_get({{ field }}, '$.time', 'string'))
{%- endmacro %}

{#- A time of day and its offset: 08:15:30.000000-05:00. -#}
{%- macro _text_of_time_and_offset(field) -%}
{%- set offset = "try_variant_get(" ~ field ~ ", '$.offset', 'string')" -%}
concat(try_variant_get({{ field }}, '$.time', 'string'), if({{ offset }} like '-%', '', '+'), regexp_replace({{ offset }}, {{ reconcile.literal('(:00)?([.]0*)?$') }}, ''))
{%- endmacro %}

{#- Months, hours and seconds, each with its sign: P14MT76H306.789000S. In Datastream, PostgreSQL's days are 24
    hours. -#}
{%- macro _text_of_interval(field) -%}
concat('P', try_variant_get({{ field }}, '$.months', 'bigint'), 'MT', try_variant_get({{ field }}, '$.hours', 'bigint'), 'H', cast(try_variant_get({{ field }}, '$.micros', 'bigint') / 1000000bd as decimal(25,6)), 'S')
{%- endmacro %}

{#- The same from a text of ISO 8601, as P1Y2M3DT4H5M6.789S; NULL if a part has more than 20 digits. -#}
{%- macro _text_of_iso_interval(text) -%}
{%- set part = {} -%}
{%- for name, unit in [('years', 'Y'), ('months', 'M'), ('weeks', 'W'), ('days', 'D')] -%}
  {%- do part.update({name: "try_cast(coalesce(nullif(regexp_extract(" ~ text ~ ", '^P[^T]*?([-+]?[0-9]+)" ~ unit ~ "', 1), ''), '0') as decimal(20,0))"}) -%}
{%- endfor -%}
{%- for name, unit in [('hours', 'H'), ('minutes', 'M'), ('seconds', 'S')] -%}
  {%- do part.update({name: "try_cast(coalesce(nullif(regexp_extract(" ~ text ~ ", 'T.*?([-+]?[0-9.]+)" ~ unit ~ "', 1), ''), '0') as decimal(" ~ ('26,6' if unit == 'S' else '20,0') ~ "))"}) -%}
{%- endfor -%}
if(
            {{ text }} rlike {{ reconcile.literal('^P(?=[-+0-9T])([-+]?[0-9]+Y)?([-+]?[0-9]+M)?([-+]?[0-9]+W)?([-+]?[0-9]+D)?(T(?=[-+0-9])([-+]?[0-9]+H)?([-+]?[0-9]+M)?([-+]?[0-9]+([.][0-9]{1,6})?S)?)?$') }},
            concat('P', 12 * {{ part.years }} + {{ part.months }}, 'MT', 168 * {{ part.weeks }} + 24 * {{ part.days }} + {{ part.hours }}, 'H', cast(60 * {{ part.minutes }} + {{ part.seconds }} as decimal(30,6)), 'S'),
            null
        )
{%- endmacro %}

{#- A time of day, with or without an offset, with six digits after the second, as from Avro: a JSON file may leave out
    zeros. -#}
{%- macro _text_of_time(text) -%}
{%- set pattern = '^(\\d\\d:\\d\\d)(?::(\\d\\d)(?:[.](\\d{1,6})0*)?)?(?:(Z)|([-+]\\d\\d)(?::?(\\d\\d)(?::?(\\d\\d))?)?)?$' -%}
{%- set group = [] -%}
{%- for number in range(8) -%}{%- do group.append('regexp_extract(' ~ text ~ ', ' ~ reconcile.literal(pattern) ~ ', ' ~ number ~ ')') -%}{%- endfor -%}
if(
            {{ text }} rlike {{ reconcile.literal(pattern) }},
            concat({{ group[1] }}, ':', lpad({{ group[2] }}, 2, '0'), '.', rpad({{ group[3] }}, 6, '0'), case when {{ group[4] }} = 'Z' then '+00:00' when {{ group[5] }} = '' then '' else concat({{ group[5] }}, ':', lpad({{ group[6] }}, 2, '0'), if({{ group[7] }} in ('', '00'), '', concat(':', {{ group[7] }}))) end),
            null
        )
{%- endmacro %}

{#- PostgreSQL's infinity arrives as a moment of the year 294247, and -infinity as a moment of the year -290308. These
    are the last and the first year that microseconds in 64 bits can count. -#}
{%- macro _infinity(text) -%}
case when left({{ text }}, 8) = '+294247-' then 'infinity' when left({{ text }}, 8) = '-290308-' then '-infinity' else {{ text }} end
{%- endmacro %}
