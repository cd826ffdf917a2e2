{#- What is wrong with the generations that a model declares ends the run, all of it at once. They stand in the order in which they began:
    what is counted for a change and for a backfill row is then the same generation. -#}
{%- macro validate_generations(generations, coordinates) -%}
  {%- set complaints = [] -%}
  {%- set told_by = reconcile._position_told_by(coordinates) -%}
  {%- set examples = {'scn': 15869128507100, 'log_file': 'mysql-bin.000017', 'log_position': 4, 'source_timestamp': '2026-11-22 09:59:00+00'} -%}
  {%- set example = {} -%}
  {%- for name in told_by -%}{%- do example.update({name: examples[name]}) -%}{%- endfor -%}
  {%- do example.update({'read_timestamp': '2026-11-22 10:00:00+00'}) -%}
  {%- if generations is string or generations is mapping or generations is not sequence -%}
    {%- do complaints.append("generations is no list; write it as ['2026-11-21 00:00:00+00'], or as [" ~ example ~ ']') -%}
  {%- else -%}
    {%- set last = {'moment': none, 'place': none} -%}
    {%- for beginning in generations -%}
      {%- set wrong = reconcile._wrong_with_position(beginning, told_by, example) if beginning is mapping
            else [] if reconcile.moment(beginning)
            else ["is no time with a zone; write it as '2026-11-21 00:00:00+00'"] if beginning is string
            else ["is neither a time nor a position; write it as '2026-11-21 00:00:00+00', or as " ~ example] -%}
      {%- if not wrong -%}
        {%- set moment = reconcile.moment(beginning.read_timestamp if beginning is mapping else beginning) -%}
        {%- set place = reconcile._place(beginning, told_by) if beginning is mapping -%}
        {%- if last.moment and moment < last.moment -%}
          {%- do wrong.append('begins before the one that it stands behind; write generations in the order in which they began') -%}
        {%- elif place and last.place and place < last.place -%}
          {%- do wrong.append('lies before the position that it stands behind; write generations in the order in which they began, '
                ~ 'and where the log began anew in between, the time when it did') -%}
        {%- endif -%}
        {%- do last.update({'moment': moment, 'place': place}) -%}
      {%- endif -%}
      {%- for said in wrong -%}
        {%- do complaints.append('generation ' ~ ("'" ~ beginning ~ "'" if beginning is string else beginning) ~ ' ' ~ said) -%}
      {%- endfor -%}
    {%- endfor -%}
  {%- endif -%}
  {%- do reconcile.raise_complaints(complaints) -%}
{%- endmacro %}

{#- The coordinates that a position may give, which are the first: name -> how a value is found to be one, and what it is otherwise. -#}
{%- macro _position_told_by(coordinates) -%}
  {%- set forms = {
      'scn': ('[0-9]{1,18}', 'no whole number'),
      'log_file': ('(?:.*[^0-9])?([0-9]{1,18})', 'no file whose name ends with its number'),
      'log_position': ('[0-9]{1,18}', 'no whole number'),
      'source_timestamp': (none, 'no time with a zone')} -%}
  {%- set told_by = {} -%}
  {%- for name in coordinates if name in forms -%}
    {%- do told_by.update({name: forms[name]}) -%}
  {%- endfor -%}
  {{ return(told_by) }}
{%- endmacro %}

{%- macro _wrong_with_position(position, told_by, example) -%}
  {%- set wrong = [] -%}
  {%- set first = told_by | first -%}
  {%- for name in position if name not in told_by and name != 'read_timestamp' -%}
    {%- do wrong.append('has ' ~ name ~ ', which tells no position: changes are ordered by ' ~ first
          ~ (', the time of their commit,' if first == 'source_timestamp' else '') ~ ' first; write it as ' ~ example) -%}
  {%- endfor -%}
  {%- for name in told_by -%}
    {%- if name in position and not loop.first and loop.previtem not in position -%}
      {%- do wrong.append('has ' ~ name ~ ', which says nothing without ' ~ loop.previtem ~ '; write it as ' ~ example) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if not wrong and first not in position -%}
    {%- do wrong.append('has no ' ~ first ~ ', so no position; write it as ' ~ example) -%}
  {%- endif -%}
  {%- for name, form in told_by.items() if name in position and not reconcile._value_of(position[name], form[0]) -%}
    {%- do wrong.append('has ' ~ name ~ " '" ~ position[name] ~ "', which is " ~ form[1] ~ '; write it as ' ~ example) -%}
  {%- endfor -%}
  {%- if 'read_timestamp' not in position -%}
    {%- do wrong.append('has no read_timestamp, from which on backfill rows belong to it; write it as ' ~ example) -%}
  {%- elif not reconcile.moment(position.read_timestamp) -%}
    {%- do wrong.append("has read_timestamp '" ~ position.read_timestamp ~ "', which is no time with a zone; write it as " ~ example) -%}
  {%- endif -%}
  {{ return(wrong) }}
{%- endmacro %}

{#- A position, to be compared with others. -#}
{%- macro _place(position, told_by) -%}
  {%- set place = [] -%}
  {%- for name, form in told_by.items() if name in position -%}
    {%- do place.append(reconcile._value_of(position[name], form[0])[0]) -%}
  {%- endfor -%}
  {{ return(place) }}
{%- endmacro %}

{#- The value of a coordinate, in a list; none if it has not the form. -#}
{%- macro _value_of(said, form) -%}
  {%- if not form -%}
    {%- set moment = reconcile.moment(said) -%}
    {{ return([moment] if moment else none) }}
  {%- endif -%}
  {%- set found = modules.re.fullmatch(form, said | string) -%}
  {{ return([(found[1] if found.re.groups else found[0]) | int] if found else none) }}
{%- endmacro %}
