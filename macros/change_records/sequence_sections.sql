{#- Sections of `_change_sequence`: fixed-width hex, so that the order of the texts is the order of the numbers. Each
    macro gives NULL for a text that does not have its form, and the record is quarantined. -#}

{#- A whole number, as Oracle's scn or MySQL's log_position. -#}
{%- macro hex_of_number(text) -%}
if({{ text }} rlike {{ reconcile.literal('^\\s*\\d{1,18}\\s*$') }}, lpad(hex(try_cast({{ text }} as bigint)), 16, '0'), null)
{%- endmacro %}

{#- Hex fields between separators, as PostgreSQL's 0/23E8430 or Oracle's ` 0x0073cb.00001c24.01a8 `. The prefix of the
    first field is cut off together with leading zeros; padding restores these zeros. -#}
{%- macro hex_of_fields(text, separator, fields) -%}
{%- set digits = "trim(leading ' 0xX' from rtrim(" ~ text ~ "))" -%}
{%- set parts = [] -%}
{%- for field in range(1, fields + 1) -%}
  {%- set up_to = "substring_index(" ~ digits ~ ", '" ~ separator ~ "', " ~ field ~ ")" -%}
  {%- do parts.append("lpad(" ~ (up_to if loop.first else "substring_index(" ~ up_to ~ ", '" ~ separator ~ "', -1)") ~ ", 8, '0')") -%}
{%- endfor -%}
if({{ text }} rlike {{ reconcile.literal('^ *(0[xX])?[0-9a-fA-F]{1,8}([' ~ separator ~ '][0-9a-fA-F]{1,8}){' ~ (fields - 1) ~ '} *$') }}, upper(concat_ws('/', {{ parts | join(', ') }})), null)
{%- endmacro %}

{#- A moment in milliseconds, the precision that Datastream documents and that its Avro files have. Its JSON files have
    microseconds; with microseconds, the place of a change would depend on the format of its file. A moment before 1970
    gives NULL. -#}
{%- macro hex_of_time(timestamp) -%}
if(unix_millis({{ timestamp }}) >= 0, lpad(hex(unix_millis({{ timestamp }})), 16, '0'), null)
{%- endmacro %}

{#- A moment to the nanosecond. `timestamp` holds only microseconds, so the fraction of a second comes from `text`,
    which has all digits. -#}
{%- macro hex_of_nanoseconds(timestamp, text) -%}
if(unix_seconds({{ timestamp }}) between 0 and 9223372035, lpad(hex(unix_seconds({{ timestamp }}) * 1000000000 + bigint(rpad(regexp_extract({{ text }}, '[.]([0-9]{1,9})', 1), 9, '0'))), 16, '0'), null)
{%- endmacro %}

{#- As `hex_of_nanoseconds`, of a moment that a job wrote as text in UTC, `2026-11-21T11:33:12.123456789Z`: the digits
    themselves, without quotes. -#}
{%- macro hex_of_moment(text) -%}
{%- set datetime = modules.datetime.datetime -%}
{%- set seconds = (datetime.strptime(text[:19], '%Y-%m-%dT%H:%M:%S') - datetime(1970, 1, 1)).total_seconds() | int -%}
{{ '%016X' % (seconds * 1000000000 + ((text[20:] | replace('Z', '')) ~ '000000000')[:9] | int) }}
{%- endmacro %}

{#- Digits of a number that is compared as text, decimal or hex, as Spanner's record_sequence. -#}
{%- macro hex_of_digits(text) -%}
if({{ text }} rlike '^[0-9a-fA-F]{1,16}$', lpad(upper({{ text }}), 16, '0'), null)
{%- endmacro %}

{#- A whole number that may be negative, as Bigtable's tiebreaker: shifted so that the least number of 64 bits becomes
    0. -#}
{%- macro hex_of_signed(text) -%}
if({{ text }} rlike '^-?[0-9]{1,19}$', lpad(hex(try_cast({{ text }} as bigint) ^ bigint('-9223372036854775808')), 16, '0'), null)
{%- endmacro %}

{#- A token that distinguishes records, but does not order them. -#}
{%- macro hex_of_token(text) -%}
if({{ text }} <> '', lpad(hex(xxhash64({{ text }})), 16, '0'), null)
{%- endmacro %}

{#- A change_sequence_number of BigQuery's: one to four sections, of which those that are missing are 0. -#}
{%- macro hex_of_change_sequence_number(text) -%}
{%- set sections = [] -%}
{%- for place in range(1, 5) -%}
  {%- do sections.append('lpad(upper(split_part(' ~ text ~ ", '/', " ~ place ~ ")), 16, '0')") -%}
{%- endfor -%}
if({{ text }} rlike {{ reconcile.literal('^[0-9a-fA-F]{1,16}(/[0-9a-fA-F]{1,16}){0,3}\\z') }}, concat_ws('/', {{ sections | join(', ') }}), null)
{%- endmacro %}

{#- A place in a list, counted from 0. -#}
{%- macro hex_of_index(number) -%}
lpad(hex({{ number }}), 8, '0')
{%- endmacro %}

{#- The last two sections settle ties without chance: a delete lies below an insert or update, and then a hash of the
    type of change and the values decides. NULLs are hashed as flags, since a hash of (NULL, 'a') equals that of ('a',
    NULL). Floating-point values are hashed as text, since 0.0 and -0.0 hash alike. Maps are hashed as sorted entries
    and variants as text, since Spark does not hash them at all. The columns are in the order of their names, since the
    order of their declaration may change: of the names and types that they had when the base table was made, where
    these have changed (`hashed`, see `columns_to_read`). `carried`: the columns that a record carries, if the source
    has partial records. -#}
{%- macro tie_sections(change_type, columns, prefix='', carried=none) -%}
{%- set values = ['coalesce(to_json(array_sort(' ~ carried ~ ")), '')"] if carried else [] -%}
{%- set ordered = [] -%}
{%- for column in columns -%}{%- do ordered.append(dict(column, place=(column.hashed or column).name)) -%}{%- endfor -%}
{%- for column in ordered | sort(attribute='place') -%}
  {%- set value = reconcile.identifier(prefix ~ column.name) -%}
  {%- set former = reconcile.column_type(column.hashed.type) if column.hashed else column.type -%}
  {%- do values.extend(reconcile.values_to_hash(value, column.type.name) if former.ddl == column.type.ddl
        else reconcile._widened_to_hash(value, former)) -%}
{%- endfor -%}
concat(if({{ change_type }} = 'delete', '0', '1'), '/', lpad(hex(xxhash64({{ change_type }}, {{ values | join(', ') }})), 16, '0'))
{%- endmacro %}

{#- What to hash of a value: two SQL expressions. -#}
{%- macro values_to_hash(value, type) -%}
  {{ return([
      value ~ ' is null',
      'cast(' ~ value ~ ' as string)' if type in ['float', 'double']
      else 'to_json(' ~ value ~ ')' if type == 'variant'
      else 'to_json(' ~ value ~ ', ' ~ reconcile._to_the_microsecond() ~ ')' if type.startswith('array')
      else 'to_json(array_sort(map_entries(' ~ value ~ ')), ' ~ reconcile._to_the_microsecond() ~ ')' if type.startswith('map')
      else value]) }}
{%- endmacro %}

{#- The same of a whole number or a decimal that had a narrower type when the base table was made: a value that the
    narrow type holds has the hash that it had, since a NULL leaves a hash as it is. The text of any other value is the
    same however wide the type is now: a decimal may get more digits behind the point more than once. -#}
{%- macro _widened_to_hash(value, former) -%}
  {%- set narrow = 'try_cast(' ~ value ~ ' as ' ~ former.ddl ~ ')' -%}
  {%- set text = 'format_number(' ~ value ~ ', 38)' if former.name == 'decimal' else 'cast(' ~ value ~ ' as string)' -%}
  {{ return(['isnull(' ~ value ~ ')', 'if(' ~ narrow ~ ' = ' ~ value ~ ', ' ~ narrow ~ ', null)', 'if(' ~ narrow ~ ' = ' ~ value ~ ', null, ' ~ text ~ ')']) }}
{%- endmacro %}

{#- Without these options, JSON would have milliseconds and the session's time zone. A record would then have another
    place in the order in another session. -#}
{%- macro _to_the_microsecond() -%}
map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSX', 'timeZone', 'UTC', 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')
{%- endmacro %}
