{#- A digest of columns as a model declares them: names, types, and the options by which their values are read. The order
    of the columns is no part of it, nor whether one was added later. Bytes within maps and nested arrays had no encoding in
    earlier versions, so that tables with them must be rebuilt. -#}
{%- macro digest_of_columns(columns) -%}
  {%- set types = {} -%}
  {%- for column in columns -%}
    {%- do types.update({column.name: column.type.label ~ (', rounded' if column.round else '') ~ (', ' ~ column.encoding if column.encoding else '') ~ (', infinity is null' if column.infinity_is_null else '') ~ (', zero date is null' if column.zero_date else '') ~ (', masked: ' ~ column.mask if column.mask else '') ~ (', bytes at every depth' if 'binary' in column.type.ddl and column.type.ddl not in ['binary', 'array<binary>'] else '') ~ (', was ' ~ tojson(column.was) if column.was else '')}) -%}
  {%- endfor -%}
  {{ return(local_md5(tojson(types, sort_keys=true))) }}
{%- endmacro %}
