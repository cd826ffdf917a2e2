{#- The text of a value as its declared type: NULL if the type cannot hold the value exactly. `text` is SQL for the
    text. `field` is SQL for the variant that it came from, from which arrays and maps are read. Nothing here rounds,
    truncates or guesses, as Spark's own casts do: '12.5' to 13, '2026' to a date, nanoseconds to microseconds, 1e400 to
    infinity. With `round`, decimals, whole numbers and times are rounded, because the model says so (`meta: {round:
    true}`). `kind` is SQL for what is known about an Avro field beside its text (see `datastream_texts`). -#}
{%- macro typed_value(text, type, round=false, field=none, kind=none) -%}
{%- if type.name == 'string' and type.length is defined -%}
if(char_length({{ text }}) <= {{ type.length }}, {{ reconcile._string(text, field) }}, null)
{%- elif type.name == 'string' -%}
{{ reconcile._string(text, field) }}
{%- elif type.name == 'boolean' -%}
case lower({{ text }}) when 'true' then true when 't' then true when '1' then true when 'false' then false when 'f' then false when '0' then false end
{%- elif type.name in ['tinyint', 'smallint', 'int', 'bigint'] -%}
coalesce(try_cast({{ text }} as {{ type.ddl }}), try_cast(if({{ reconcile._keeps_digits(text, 38, 0, round) }}, try_cast({{ text }} as decimal(38,0)), null) as {{ type.ddl }}))
{%- elif type.name == 'decimal' -%}
{{ reconcile._decimal(text, type.precision, type.scale, round) }}
{%- elif type.name in ['float', 'double'] -%}
if({{ text }} rlike {{ reconcile.literal('^[-+.0-9eE\\s]+$') }}, nullif(nullif(try_cast({{ text }} as {{ type.ddl }}), {{ type.ddl }}('Infinity')), {{ type.ddl }}('-Infinity')), if(lower({{ text }}) in ('nan', 'infinity', '-infinity', 'inf', '-inf'), try_cast({{ text }} as {{ type.ddl }}), null))
{%- elif type.name == 'binary' -%}
{{ reconcile._binary(text, field, type.encoding, kind) }}
{%- elif type.name == 'date' -%}
if({{ text }} rlike {{ reconcile.literal('^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]' ~ ('\\d\\d:\\d\\d(:\\d\\d(\\.\\d*)?)?' if round else '00:00(:00(\\.0*)?)?') ~ '(Z|[-+]00(:?00)?)?)?$') }}, try_cast({{ text }} as date), null)
{%- elif type.name in ['timestamp', 'timestamp_ntz'] -%}
{{ reconcile._timestamp(text, type.name, round) }}
{%- elif type.name == 'array' -%}
{{ reconcile._array(field, type, round, kind) }}
{%- elif type.name == 'map' -%}
{{ reconcile._map(field, type, round, kind) }}
{%- elif type.name == 'variant' -%}
{{ reconcile._variant(text, field, kind) }}
{%- endif -%}
{%- endmacro %}

{#- An object or a list in a column of text is refused: its own text, with the order of its fields, is not
    available. -#}
{%- macro _string(text, field) -%}
{%- if field -%}
if(left({{ text }}, 1) in ('{', '[') and schema_of_variant({{ field }}) <> 'STRING', null, {{ text }})
{%- else -%}
{{ text }}
{%- endif -%}
{%- endmacro %}

{#- Bytes are read only from a text, since a number or true may look like base64. Without an encoding the text is
    base64, as Spanner and this package's own jobs write it. If the encoding is unknown, only values that Avro had as
    bytes are bytes. No encoding is ever tried out: much hex is also base64, of other bytes. Declared base64 has whole
    groups of four characters: Spark would also take a text without its padding, as the hex of an odd number of bytes.
    The keys of a map have no `kind`, since they are texts in Avro too. -#}
{%- macro _binary(text, field, encoding=none, kind=none) -%}
{%- set decoded = 'try_to_binary(' ~ text ~ ", 'base64')" -%}
{%- set base64 = 'if(length(' ~ text ~ ') % 4 = 0 or ' ~ text ~ ' rlike ' ~ reconcile.literal('\\s') ~ ', ' ~ decoded ~ ', null)' if encoding == 'base64' else decoded -%}
{%- set hex = 'if(' ~ text ~ ' rlike ' ~ reconcile.literal('^[0-9a-fA-F]*$') ~ ' and length(' ~ text ~ ') % 2 = 0, try_to_binary(' ~ text ~ ", 'hex'), null)" -%}
{%- set of_text = hex if encoding == 'hex' else 'cast(null as binary)' -%}
{%- set bytes = base64 if (encoding or 'base64') == 'base64' else 'if(' ~ kind ~ " in ('bytes', 'bytes[]'), " ~ base64 ~ ', ' ~ of_text ~ ')' if kind else of_text -%}
{{ 'if(schema_of_variant(' ~ field ~ ") = 'STRING', " ~ bytes ~ ', null)' if field else bytes }}
{%- endmacro %}

{#- JSON that Avro has as a text is parsed. A number that a variant does not keep is refused, as in `_canonical_json`: by
    the record, since the text of an object is what the variant prints. A null in the record is NULL: only a text of its
    own can hold a JSON null that differs from no value. -#}
{%- macro _variant(text, field, kind) -%}
{%- set json = 'if(' ~ kind ~ " = 'json', try_parse_json(" ~ text ~ '), ' ~ field ~ ')' if kind else field -%}
if({{ text }} is null or {{ reconcile._may_have_rounded(json, 'if(' ~ kind ~ " = 'json', " ~ text ~ ', record)' if kind else 'record') }}, null, {{ json }})
{%- endmacro %}

{#- A plain number with no more fraction digits than the scale, as nearly all are, cannot have been rounded. -#}
{%- macro _decimal(text, precision, scale, round) -%}
{%- set plain = '^\\s*[-+]?\\d*\\.?\\d{0,' ~ scale ~ '}\\s*$' -%}
if({{ text ~ ' rlike ' ~ reconcile.literal(plain) ~ ' or ' if not round }}{{ reconcile._keeps_digits(text, precision, scale, round) }}, try_cast({{ text }} as decimal({{ precision }},{{ scale }})), null)
{%- endmacro %}

{#- Whether a text is a number that the decimal holds exactly. With `round`, any number passes. Spark's cast rounds half
    up to the scale: if it rounded, the result has other significant digits than the text. With exponents of four
    digits, Spark would work for hours and then fail the query. -#}
{%- macro _keeps_digits(text, precision, scale, round) -%}
{{ text }} rlike {{ reconcile.literal('^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$') }}
{%- if not round %} and {{ reconcile._significant_digits(text) }} = {{ reconcile._significant_digits('cast(try_cast(' ~ text ~ ' as decimal(' ~ precision ~ ',' ~ scale ~ ')) as string)') }}{% endif %}
{%- endmacro %}

{%- macro _significant_digits(text) -%}
trim('0' from translate(substring_index(upper({{ text }}), 'E', 1), '+-. ', ''))
{%- endmacro %}

{#- A text without a zone is UTC. Spark would accept a bare year as a date, and cut digits beyond a microsecond. `usual`
    is a simpler pattern, which nearly all texts match. It changes no result; it only makes them faster to read. -#}
{%- macro _timestamp(text, type, round) -%}
{%- set fraction = '\\d*' if round else '\\d{0,6}0*' -%}
{%- set zone = '\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)' if type == 'timestamp' else '(Z|[-+]00(:?00)?)' -%}
{%- set pattern = '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.' ~ fraction ~ ')?)?' ~ zone ~ '?)?$' -%}
{%- set usual = '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' -%}
{%- if type == 'timestamp_ntz' -%}
if({{ text }} rlike {{ reconcile.literal(pattern) }}, try_cast(regexp_replace({{ text }}, {{ reconcile.literal('(:\\d\\d(\\.\\d*)?)(Z|[-+]00(:?00)?)$') }}, '$1') as timestamp_ntz), null)
{%- else -%}
case when {{ text }} rlike {{ reconcile.literal(usual) }} then try_cast({{ text }} as timestamp) when {{ text }} rlike {{ reconcile.literal(pattern) }} then try_cast(if({{ text }} rlike {{ reconcile.literal('\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$') }}, {{ text }}, concat({{ text }}, if({{ text }} like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end
{%- endif -%}
{%- endmacro %}

{#- A list that arrives as text is read as JSON, and one of Avro's multidimensionalArray from its records. The whole
    array is NULL if its type cannot hold one of the elements. -#}
{%- macro _array(field, type, round, kind=none) -%}
{%- set list = 'transform(try_cast(' ~ reconcile._list(field) ~ ' as array<variant>), x -> ' ~ reconcile._list_element('x') ~ ')' -%}
{%- set element = reconcile._element_value('x', type.element, round, kind) -%}
if(exists({{ list }}, x -> {{ reconcile._element_text('x') }} is not null and {{ element }} is null), null, transform({{ list }}, x -> {{ element }}))
{%- endmacro %}

{#- NULL if the types cannot hold one of the keys or values, or if two keys become equal. -#}
{%- macro _map(field, type, round, kind=none) -%}
{%- set map = 'try_cast(' ~ reconcile._container(field) ~ ' as map<string, variant>)' -%}
{%- set key = reconcile.typed_value('k', type.key, round) -%}
{%- set element = reconcile._element_value('x', type.value, round, kind) -%}
if(exists(map_keys({{ map }}), k -> {{ key }} is null) or exists(map_values({{ map }}), x -> {{ reconcile._element_text('x') }} is not null and {{ element }} is null) or cardinality(array_distinct(transform(map_keys({{ map }}), k -> {{ key }}))) < cardinality({{ map }}), null, map_from_arrays(transform(map_keys({{ map }}), k -> {{ key }}), transform(map_values({{ map }}), x -> {{ element }})))
{%- endmacro %}

{#- {nestedArray: [...], elementValue: null} is a list, and its members are {nestedArray: null, elementValue: 7}. -#}
{%- macro _list(field) -%}
if(schema_of_variant({{ field }}) like '%nestedArray%', try_variant_get({{ field }}, '$.nestedArray', 'variant'), {{ reconcile._container(field) }})
{%- endmacro %}

{%- macro _list_element(element) -%}
if(schema_of_variant({{ element }}) like '%elementValue%' and try_variant_get({{ element }}, '$.nestedArray', 'array<variant>') is null, try_variant_get({{ element }}, '$.elementValue', 'variant'), {{ element }})
{%- endmacro %}

{%- macro _container(field) -%}
if(schema_of_variant({{ field }}) = 'STRING', try_parse_json(cast({{ field }} as string)), {{ field }})
{%- endmacro %}

{#- Inside an array or a map, a number's own text is not available. A number that has become a double cannot be an exact
    number, and a number that has become infinity was too large for a double. -#}
{%- macro _element_text(element) -%}
cast({{ element }} as string)
{%- endmacro %}

{%- macro _element_value(element, type, round, kind=none) -%}
{%- if type.name in ['array', 'map'] -%}
{{ reconcile.typed_value(none, type, round, element, kind) }}
{%- elif type.name in ['string', 'decimal', 'tinyint', 'smallint', 'int', 'bigint'] -%}
if(schema_of_variant({{ element }}) rlike {{ reconcile.literal('^(DOUBLE|OBJECT|ARRAY' ~ ('|DECIMAL' if type.name == 'string' else '') ~ ')') }}, null, {{ reconcile.typed_value(reconcile._element_text(element), type, round) }})
{%- elif type.name in ['float', 'double'] -%}
if(schema_of_variant({{ element }}) = 'DOUBLE' and {{ reconcile._element_text(element) }} like '%Infinity', null, {{ reconcile.typed_value(reconcile._element_text(element), type, round) }})
{%- else -%}
{{ reconcile.typed_value(reconcile._element_text(element), type, round, element, kind) }}
{%- endif -%}
{%- endmacro %}
