{#- The columns that a source macro reads: those of its argument `columns`, which replaces the YAML in dbt's unit tests,
    or those of the model. A mask of the model is never left out: the records would be read in clear. -#}
{%- macro columns_of_source(columns) -%}
  {%- set of_model = reconcile.declared_columns(model.columns.values() | list) if model.columns or columns is none else [] -%}
  {%- if columns is none -%}
    {{ return(reconcile.columns_to_read(of_model, reconcile.known_columns())) }}
  {%- endif -%}
  {%- set given, masks, complaints = reconcile.declared_columns(columns), {}, [] -%}
  {%- for column in given -%}{%- do masks.update({column.name | lower: column.mask}) -%}{%- endfor -%}
  {%- for column in of_model if column.mask and column.name | lower in masks and masks[column.name | lower] != column.mask -%}
    {%- do complaints.append('column ' ~ column.name ~ ': the model masks it by ' ~ column.mask ~ ', and the argument `columns` of the source macro does not; give the mask there too, or remove the argument') -%}
  {%- endfor -%}
  {%- do reconcile.raise_complaints(complaints) -%}
  {{ return(given) }}
{%- endmacro %}

{#- Declarations of columns as the package uses them: [{name, type, round, encoding, infinity_is_null, zero_date, was, added, mask}],
    with the type as `column_type` reads it. -#}
{%- macro declared_columns(columns) -%}
  {%- set complaints = [] -%}
  {%- set declared = [] -%}
  {%- set names = [] -%}
  {%- for column in columns -%}
    {%- set type = reconcile.column_type(column.data_type) if column.data_type else none -%}
    {%- set meta = reconcile.meta_of_column(column) -%}
    {%- if column.name | lower == '_deleted' or (column.name | lower).startswith('_change_') -%}
      {%- do complaints.append("column " ~ column.name ~ ": the package reserves _deleted and names that begin with _change_; rename the column") -%}
    {%- elif column.name | lower in names -%}
      {%- do complaints.append("column " ~ column.name ~ ": it is declared twice (Spark ignores upper and lower case); remove one declaration") -%}
    {%- elif not column.data_type -%}
      {%- do complaints.append("column " ~ column.name ~ ": it has no data_type; declare one, for example `data_type: bigint`") -%}
    {%- elif not type -%}
      {%- do complaints.append("column " ~ column.name ~ ": data_type '" ~ column.data_type ~ "' is not supported; "
            ~ "use a scalar type of Spark except interval and time, or an array or a map of such types") -%}
    {%- endif -%}
    {%- if type -%}{%- do complaints.extend(reconcile._complaints_of_reading(column.name, type, meta)) -%}{%- endif -%}
    {%- do names.append(column.name | lower) -%}
    {%- do declared.append({'name': column.name, 'type': type, 'round': meta.get('round', false), 'encoding': meta.get('encoding'), 'infinity_is_null': meta.get('infinity_is_null', false),
          'zero_date': meta.get('zero_date') == 'null', 'was': reconcile._former_names(meta), 'added': meta.get('added', false), 'mask': meta.get('mask')}) -%}
  {%- endfor -%}
  {%- do complaints.extend(reconcile._complaints_of_former_names(declared)) -%}
  {%- if not columns -%}
    {%- do complaints.append("no columns are declared; add `columns: [{name: id, data_type: bigint}, ...]` to the model's YAML") -%}
  {%- endif -%}
  {%- do reconcile.raise_complaints(complaints) -%}
  {{ return(declared) }}
{%- endmacro %}

{#- The names that a column had at its source before, the newest first. -#}
{%- macro _former_names(meta) -%}
  {%- set was = meta.get('was') or [] -%}
  {{ return([was] if was is string else was | list if was is sequence and was is not mapping else []) }}
{%- endmacro %}

{#- What is wrong with the former names of columns: each name of a field is of one column. -#}
{%- macro _complaints_of_former_names(columns) -%}
  {%- set complaints = [] -%}
  {%- set taken = columns | map(attribute='name') | map('lower') | list -%}
  {%- for column in columns -%}
    {%- for name in column.was -%}
      {%- if name | lower in taken -%}
        {%- do complaints.append("column " ~ column.name ~ ": was names " ~ name ~ ", which is the name of a column of this model, or a former name that stands twice; remove it") -%}
      {%- endif -%}
      {%- do taken.append(name | lower) -%}
    {%- endfor -%}
  {%- endfor -%}
  {{ return(complaints) }}
{%- endmacro %}

{#- What is wrong with how a column declares the reading of its texts. -#}
{%- macro _complaints_of_reading(name, type, meta) -%}
  {%- set complaints = [] -%}
  {%- set of_type = {'hex': 'binary', 'base64': 'binary', 'json': 'string', 'microseconds': 'string', 'interval': 'string', 'time': 'string'} -%}
  {%- if 'encoding' in meta and meta.encoding not in of_type -%}
    {%- do complaints.append("column " ~ name ~ ": encoding '" ~ meta.encoding ~ "' is unknown; use one of " ~ of_type | join(', ')) -%}
  {%- elif 'encoding' in meta and not (type.ddl == 'string' if of_type[meta.encoding] == 'string' else 'binary' in type.ddl) -%}
    {%- do complaints.append("column " ~ name ~ ": encoding " ~ meta.encoding ~ " applies only to columns of type " ~ of_type[meta.encoding] ~ (", or of an array or a map of binary" if of_type[meta.encoding] == 'binary') ~ ", and this column is a " ~ type.label ~ "; remove the encoding") -%}
  {%- endif -%}
  {%- if 'round' in meta and meta.round is not boolean -%}
    {%- do complaints.append("column " ~ name ~ ": round is '" ~ meta.round ~ "'; write true or false") -%}
  {%- endif -%}
  {%- if 'added' in meta and meta.added is not boolean -%}
    {%- do complaints.append("column " ~ name ~ ": added is '" ~ meta.added ~ "'; write true or false") -%}
  {%- endif -%}
  {%- if 'was' in meta and (not meta.was or meta.was is mapping or meta.was is not iterable or reconcile._former_names(meta) | reject('string') | list) -%}
    {%- do complaints.append("column " ~ name ~ ": was is '" ~ meta.was ~ "'; write the name that the column had at its source, or a list of names, the newest first") -%}
  {%- endif -%}
  {%- if 'infinity_is_null' in meta and (meta.infinity_is_null is not boolean or type.name not in ['timestamp', 'timestamp_ntz']) -%}
    {%- do complaints.append("column " ~ name ~ ": infinity_is_null must be true or false, and applies only to timestamp and timestamp_ntz; a string column keeps infinity as text") -%}
  {%- endif -%}
  {%- if 'zero_date' in meta and (meta.zero_date != 'null' or type.name not in ['date', 'timestamp', 'timestamp_ntz']) -%}
    {%- do complaints.append("column " ~ name ~ ": zero_date must be 'null', in quotation marks, and applies only to date, timestamp and timestamp_ntz; a string column keeps a zero date as text") -%}
  {%- endif -%}
  {%- if 'mask' in meta and meta.mask not in ['sha256', 'drop'] -%}
    {%- do complaints.append("column " ~ name ~ ": mask is '" ~ meta.mask ~ "'; write sha256 or drop, as the file of append.py --masks has it") -%}
  {%- elif meta.get('mask') == 'sha256' and type.ddl != 'string' -%}
    {%- do complaints.append("column " ~ name ~ ": what stands for a masked value is a text of hex digits, and this column is a " ~ type.label ~ "; declare `data_type: string`") -%}
  {%- endif -%}
  {%- for option in ['round', 'encoding', 'infinity_is_null', 'zero_date'] if 'mask' in meta and option in meta -%}
    {%- do complaints.append("column " ~ name ~ ": " ~ option ~ " says how a value is read, and a masked column has none; remove " ~ option) -%}
  {%- endfor -%}
  {%- if 'mask' in meta and 'was' in meta -%}
    {%- do complaints.append("column " ~ name ~ ": it has a mask, and its former names have none, so records with such a name would be in clear; remove was, and rebuild the table if the column was renamed") -%}
  {%- endif -%}
  {%- set options = ['round', 'encoding', 'infinity_is_null', 'zero_date', 'was', 'added', 'mask'] -%}
  {%- for option in meta if option not in options -%}
    {%- set nearest = reconcile.nearest_name(option, options) -%}
    {%- do complaints.append("column " ~ name ~ ": its meta has " ~ option ~ ", which is not an option of this package; write " ~ nearest ~ ", or rename the entry if it is your own") if nearest -%}
  {%- endfor -%}
  {{ return(complaints) }}
{%- endmacro %}

{#- The meta of a column, as its YAML says it. -#}
{%- macro meta_of_column(column) -%}
  {{ return((column.get('config') or {}).get('meta') or column.get('meta') or {}) }}
{%- endmacro %}
