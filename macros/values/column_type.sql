{#- One declared type, parsed: {name, ddl, label, ...}. `label` is the type's name in messages. Further keys are
    `precision` and `scale`, `length`, `element`, or `key` and `value`. -#}
{%- macro column_type(data_type) -%}
  {%- set text = data_type | string | trim -%}
  {%- set plain = text | lower -%}
  {%- set aliases = {
      'byte': 'tinyint', 'short': 'smallint', 'integer': 'int', 'long': 'bigint', 'real': 'float',
      'dec': 'decimal', 'numeric': 'decimal', 'timestamp_ltz': 'timestamp'} -%}
  {%- set simple = ['tinyint', 'smallint', 'int', 'bigint', 'float', 'double', 'boolean', 'string', 'binary',
                    'date', 'timestamp', 'timestamp_ntz', 'variant'] -%}
  {%- set name = aliases.get(plain, plain) -%}
  {%- if name in simple -%}
    {{ return({'name': name, 'ddl': name, 'label': name}) }}
  {%- endif -%}

  {%- set decimal = modules.re.match('^(?:decimal|dec|numeric)\\s*(?:\\(\\s*(\\d+)\\s*(?:,\\s*(\\d+)\\s*)?\\))?$', plain) -%}
  {%- if decimal -%}
    {%- set precision = (decimal.group(1) or 10) | int -%}
    {%- set scale = (decimal.group(2) or 0) | int -%}
    {%- if 1 <= precision <= 38 and scale <= precision -%}
      {%- set ddl = 'decimal(' ~ precision ~ ',' ~ scale ~ ')' -%}
      {{ return({'name': 'decimal', 'ddl': ddl, 'label': ddl, 'precision': precision, 'scale': scale}) }}
    {%- endif -%}
  {%- endif -%}

  {%- set characters = modules.re.match('^(char|varchar|character)\\s*\\(\\s*(\\d+)\\s*\\)$', plain) -%}
  {%- if characters -%}
    {{ return({'name': 'string', 'ddl': 'string', 'label': 'varchar(' ~ characters.group(2) ~ ')', 'length': characters.group(2) | int}) }}
  {%- endif -%}

  {%- set nested = modules.re.match('(?is)^(array|map)\\s*<(.*)>$', text) -%}
  {%- if nested and nested.group(1) | lower == 'array' -%}
    {%- set element = reconcile.column_type(nested.group(2)) -%}
    {%- if element and element.name not in ['map', 'variant'] -%}
      {{ return({'name': 'array', 'ddl': 'array<' ~ element.ddl ~ '>', 'label': 'array<' ~ element.label ~ '>', 'element': element}) }}
    {%- endif -%}
  {%- elif nested -%}
    {%- set parts = reconcile._map_parts(nested.group(2)) -%}
    {%- set key = reconcile.column_type(parts[0]) if parts else none -%}
    {%- set value = reconcile.column_type(parts[1]) if parts else none -%}
    {%- if key and value and key.name not in ['array', 'map', 'variant'] and value.name not in ['map', 'variant'] -%}
      {{ return({'name': 'map', 'ddl': 'map<' ~ key.ddl ~ ',' ~ value.ddl ~ '>', 'label': 'map<' ~ key.label ~ ',' ~ value.label ~ '>',
                 'key': key, 'value': value}) }}
    {%- endif -%}
  {%- endif -%}
  {{ return(none) }}
{%- endmacro %}

{#- 'decimal(10,2), array<int>' -> ['decimal(10,2)', 'array<int>']: split at the comma outside of all brackets. -#}
{%- macro _map_parts(text) -%}
  {%- set at = namespace(depth=0, comma=none) -%}
  {%- for character in text -%}
    {%- if character in '(<' -%}{%- set at.depth = at.depth + 1 -%}{%- endif -%}
    {%- if character in ')>' -%}{%- set at.depth = at.depth - 1 -%}{%- endif -%}
    {%- if character == ',' and at.depth == 0 and at.comma is none -%}{%- set at.comma = loop.index0 -%}{%- endif -%}
  {%- endfor -%}
  {{ return([text[:at.comma], text[at.comma + 1:]] if at.comma is not none else none) }}
{%- endmacro %}
