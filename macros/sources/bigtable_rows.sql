{#- The rows of a Bigtable table, from a relation of its cells: `row_key`, the newest visible cell of each declared
    column, and `undecoded`. `undecoded` names the columns whose newest cell is not exactly what was declared. Such
    columns are NULL, and no older cell replaces the newest one. A row exists as long as it has any visible cell. -#}
{%- macro bigtable_rows(relation, columns) -%}
{%- set columns = reconcile._columns_of_rows(columns) -%}
{%- set cells -%}
select
    row_key
    {%- for column in columns %},
    max_by(value, cell_time) filter (where family = {{ reconcile.literal(column.family) }} and qualifier = X'{{ column.qualifier }}') as {{ reconcile.identifier('cell ' ~ column.name) }}
    {%- endfor %}
from {{ reconcile.qualified(relation) }}
group by row_key
{%- endset -%}
{%- set texts -%}
select
    *
    {%- for column in columns if column.encoding == 'text' %},
    try_validate_utf8(cast({{ reconcile.identifier('cell ' ~ column.name) }} as string)) as {{ reconcile.identifier('text ' ~ column.name) }}
    {%- endfor %}
from (
{{ cells }}
) as cells
{%- endset -%}
{%- set decoded -%}
select
    *
    {%- for column in columns %},
    {{ reconcile._decoded_cell(column) }} as {{ reconcile.identifier('value ' ~ column.name) }}
    {%- endfor %}
from (
{{ texts }}
) as texts
{%- endset -%}
select
    row_key,
    {%- for column in columns %}
    {{ reconcile.identifier('value ' ~ column.name) }} as {{ reconcile.identifier(column.name) }},
    {%- endfor %}
    nullif(array_compact(array(
        {%- for column in columns %}
        if({{ reconcile.identifier('cell ' ~ column.name) }} is not null and {{ reconcile.identifier('value ' ~ column.name) }} is null, {{ reconcile.literal(column.name) }}, null){{ ',' if not loop.last }}
        {%- endfor %}
    )), array()) as undecoded
from (
{{ decoded }}
) as decoded
{%- endmacro %}

{#- The bytes of a cell as a value of its column's type; NULL if the bytes are not exactly such a value. -#}
{%- macro _decoded_cell(column) -%}
{%- set cell = reconcile.identifier('cell ' ~ column.name) -%}
{%- if column.encoding == 'text' -%}
{{ reconcile.typed_value(reconcile.identifier('text ' ~ column.name), column.type, column.round) }}
{%- elif column.encoding == 'big_endian' -%}
{%- set bytes = reconcile._bytes_of_integers()[column.type.name] -%}
if(octet_length({{ cell }}) = {{ bytes }}, cast(conv(lpad(hex({{ cell }}), 16, if(substr(hex({{ cell }}), 1, 1) < '8', '0', 'F')), 16, -10) as {{ column.type.ddl }}), null)
{%- else -%}
{{ cell }}
{%- endif -%}
{%- endmacro %}

{%- macro _bytes_of_integers() -%}
  {{ return({'tinyint': 1, 'smallint': 2, 'int': 4, 'bigint': 8}) }}
{%- endmacro %}

{#- The declared columns, parsed: [{name, family, qualifier, type, encoding, round}], with the qualifier as hex. All
    that is wrong with them ends the run. -#}
{%- macro _columns_of_rows(columns) -%}
  {%- set complaints, parsed, names = [], [], ['row_key', 'undecoded'] -%}
  {%- if columns is string or columns is mapping or columns is not sequence or not columns -%}
    {%- do reconcile.raise_complaints(["bigtable_rows needs a list of columns, for example [{'name': 'count', 'cell': 'stats:count', 'data_type': 'bigint', 'encoding': 'big_endian'}]"]) -%}
  {%- endif -%}
  {%- for column in columns -%}
    {%- set prefix = 'column ' ~ (column.name or loop.index) ~ ': ' -%}
    {%- set type = reconcile.column_type(column.data_type) if column.data_type else none -%}
    {%- set encoding, hex = column.encoding, column.qualifier_hex -%}
    {%- set cell = modules.re.fullmatch('(?s)([-_.a-zA-Z0-9]+):(.*)', column.cell | string) -%}
    {%- if not column.name -%}
      {%- do complaints.append(prefix ~ "it has no name; write {'name': 'count', ...}") -%}
    {%- elif column.name | lower in names -%}
      {%- do complaints.append(prefix ~ 'another column has the same name; rename one of them') -%}
    {%- endif -%}
    {%- if not cell -%}
      {%- do complaints.append(prefix ~ "cell '" ~ column.cell ~ "' is not a family and a qualifier; write it as 'stats:count'") -%}
    {%- elif hex and (cell[2] or not modules.re.fullmatch('([0-9a-fA-F]{2})+', hex | string)) -%}
      {%- do complaints.append(prefix ~ "qualifier_hex '" ~ hex ~ "' must be hexadecimal and replaces the qualifier in cell; write {'cell': '" ~ cell[1] ~ ":', 'qualifier_hex': '00ff'}") -%}
    {%- endif -%}
    {%- if not type or type.name in ['array', 'map', 'variant'] -%}
      {%- do complaints.append(prefix ~ "data_type '" ~ column.data_type ~ "' is not supported; use a scalar type of Spark except interval and time") -%}
    {%- elif encoding not in ['text', 'big_endian', 'raw'] -%}
      {%- do complaints.append(prefix ~ "encoding '" ~ encoding ~ "' is unknown; use text, big_endian or raw") -%}
    {%- elif (encoding == 'raw') != (type.name == 'binary') -%}
      {%- do complaints.append(prefix ~ 'the encoding raw and the type binary belong together, and it is declared as ' ~ type.label ~ ' with the encoding ' ~ encoding ~ '; change one of them') -%}
    {%- elif encoding == 'big_endian' and type.name not in reconcile._bytes_of_integers() -%}
      {%- do complaints.append(prefix ~ 'the encoding big_endian needs the type tinyint, smallint, int or bigint, and it is declared as ' ~ type.label ~ '; change one of them') -%}
    {%- endif -%}
    {%- if column.round is defined and column.round is not boolean -%}
      {%- do complaints.append(prefix ~ "round is '" ~ column.round ~ "'; write true or false") -%}
    {%- endif -%}
    {%- do names.append(column.name | lower) -%}
    {%- if cell and type -%}
      {%- do parsed.append({
            'name': column.name, 'family': cell[1], 'qualifier': hex or cell[2].encode('utf-8').hex(), 'type': type,
            'encoding': encoding, 'round': column.get('round', false)}) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do reconcile.raise_complaints(complaints) -%}
  {{ return(parsed) }}
{%- endmacro %}
