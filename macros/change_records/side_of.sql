{#- On which side of the position a change record lies, as SQL: `before` (the position includes it), `after` (it is
    later than the position) or `uncertain`. `position`: {kind, value, taken_at, from, to}, as `position_of_snapshot` and
    `position_of_staged` give it. `_change_place` is a copy of `_change_sequence` (see `records_as_of`). A backfill row
    shows the row at the time when it was read. So a backfill row that was read after the position is uncertain. A
    staged snapshot contains those up to `position.contains_backfills_until`, see `position_of_staged`. Where the model
    has a snapshot beside its log, `position.contains_snapshot` is the id of that snapshot: its rows, and what it
    contains, lie before the position.

    PostgreSQL's log has 32 bits of a transaction's id. Once the server has had half of these ids, the id of a very old
    transaction may be that of a later one. But a transaction that a position does not see is committed after the
    position; so a change that was committed a day or more before it is included, whatever its id.

    MySQL's snapshot lies between two places of its binary log. The very place may be the end of a change that it
    contains, or the beginning of the first one that it does not contain, so such a change is uncertain. A staged
    snapshot contains it if its time is before `position.from`.

    Oracle's scn says when a row was changed, and not when that was committed. So a change up to the scn of a snapshot is
    contained only if its time is before `position.from`. -#}
{%- macro side_of(position, inputs) -%}
{%- set backfill = "split_part(_change_place, '/', 2) = '0'" -%}
{%- set generations = inputs.objects.values() | map(attribute='generations', default=[]) | select | list -%}
{%- if position.kind == 'batch' -%}
  {%- set before = '_change_batch <= ' ~ position.value -%}
  {%- set after = 'true' -%}
{%- elif position.kind == 'commit_time' -%}
  {%- set before = '_change_time <= to_timestamp(' ~ reconcile.literal(position.value) ~ ')' -%}
  {%- set after = '_change_time > to_timestamp(' ~ reconcile.literal(position.value) ~ ')' -%}
{%- elif position.kind == 'sequence' -%}
  {%- set before = 'left(_change_place, ' ~ position.value | length ~ ') <= ' ~ reconcile.literal(position.value) -%}
  {%- set after = 'true' -%}
{%- elif position.kind == 'pg_snapshot' -%}
  {%- set seen = reconcile.is_seen(position.value) -%}
  {%- set read_until = position.contains_backfills_until or position.taken_at -%}
  {%- set ids_repeat = position.value.split(':')[1] | int >= 2147483648 -%}
  {%- set is_old = ' or _change_time < ' ~ position.taken_at ~ " - interval '1 day'" if position.taken_at and ids_repeat else '' -%}
  {%- set before = 'if(' ~ backfill ~ ', ' ~ ('_change_time <= ' ~ read_until if read_until else 'true') ~ ', ' ~ seen ~ is_old ~ ')' -%}
  {%- set after = 'not ' ~ backfill ~ ' and not ' ~ seen -%}
{%- elif position.kind == 'read_timestamp' -%}
  {%- set bound = reconcile.hex_of_nanoseconds(position.taken_at, reconcile.literal(position.value)) -%}
  {%- set before = 'left(_change_place, 16) <= ' ~ bound -%}
  {#- In Spanner's sequences section 2 is 0 for a change, and 1 for a backfill row. A staged snapshot lacks both. -#}
  {%- set after = (backfill ~ ' and ' if not position.contains_backfills_until) ~ 'left(_change_place, 16) > ' ~ bound -%}
{%- else -%}
  {%- set bound = reconcile.coordinates_of(position) if not generations else none -%}
  {%- set place = "array_join(slice(split(_change_place, '/'), 3, " ~ (bound or '').split('/') | length ~ "), '/')" -%}
  {%- set early, late = '_change_time < ' ~ position.from, 'not ' ~ backfill ~ ' and _change_time > ' ~ position.to -%}
  {%- set early_read = '_change_time <= ' ~ position.contains_backfills_until if position.contains_backfills_until else early -%}
  {%- if not bound -%}
    {%- set before, after = early, late -%}
  {%- elif position.kind == 'scn' -%}
    {%- set bound = reconcile.literal(bound) -%}
    {%- set before = 'if(' ~ backfill ~ ', ' ~ early_read ~ ', ' ~ early ~ ' and ' ~ place ~ ' <= ' ~ bound ~ ')' -%}
    {%- set after = 'not ' ~ backfill ~ ' and ' ~ place ~ ' > ' ~ bound -%}
  {%- elif position.kind == 'binlog' -%}
    {%- set bound = reconcile.literal(bound) -%}
    {%- set before = 'if(' ~ backfill ~ ', ' ~ early_read ~ ', ' ~ place ~ ' < ' ~ bound ~ (' or ' ~ place ~ ' = ' ~ bound ~ ' and ' ~ early if position.contains_backfills_until else '') ~ ')' -%}
    {%- set after = 'not ' ~ backfill ~ ' and ' ~ place ~ ' > ' ~ bound -%}
  {%- else -%}
    {%- set before = 'if(' ~ backfill ~ ', ' ~ early_read ~ ', ' ~ early ~ ' or ' ~ place ~ ' <= ' ~ reconcile.literal(bound) ~ ')' -%}
    {%- set after = late -%}
  {%- endif -%}
{%- endif -%}
{%- set contained = "_change_id = " ~ reconcile.literal(position.contains_snapshot) ~ " or left(_change_place, 1) = '-' or " if position.contains_snapshot -%}
case when {{ contained }}{{ before }} then 'before' when {{ after }} then 'after' else 'uncertain' end
{%- endmacro %}

{#- A position of the log as text, in the form of its sections of `_change_sequence`: {kind, value}. The order of such
    texts is the order of the numbers in them. -#}
{%- macro coordinates_of(position) -%}
  {%- set sections = [] -%}
  {%- if position.kind == 'scn' -%}
    {%- do sections.append('%016X' % (position.value | int)) -%}
  {%- elif position.kind == 'binlog' -%}
    {%- set file, place = position.value.rsplit(':', 1) -%}
    {%- set number = modules.re.search('([0-9]+)$', file) -%}
    {%- do sections.extend(['%016X' % (number[1] | int), '%016X' % (place | int)]) -%}
  {%- else -%}
    {%- set digits = modules.re.sub('^0[xX]', '', position.value).upper() -%}
    {%- do sections.extend([digits[:8], digits[8:16], '0000' ~ digits[16:]]) -%}
  {%- endif -%}
  {{ return(sections | join('/')) }}
{%- endmacro %}
