{#- Ends the run if a model's declared generations are wrong, and names everything that is wrong at once. The
    generations stand in the order in which they began. So what is counted for a change and for a backfill row is the
    same generation. `positions`: the coordinates that a position may give, which are the first ones of the source's
    order. It is {name: {form, base, description, example}}: `form` is the form of a value with its numbers in groups
    (of `base` 16, if that is given), `description` says what the value is, and `example` is one. -#}
{%- macro validate_generations(generations, positions) -%}
  {%- set complaints = [] -%}
  {%- set example = {} -%}
  {%- for name, spec in positions.items() -%}{%- do example.update({name: spec.example}) -%}{%- endfor -%}
  {%- do example.update({'read_timestamp': '2026-11-22 10:00:00+00'}) -%}
  {%- if generations is string or generations is mapping or generations is not sequence -%}
    {%- do complaints.append("generations is not a list; write it as ['2026-11-21 00:00:00+00'], or as [" ~ example ~ ']') -%}
  {%- else -%}
    {%- set last = {'moment': none, 'place': none} -%}
    {%- for generation in generations -%}
      {%- set wrong = reconcile._wrong_with_position(generation, positions, example) if generation is mapping
            else [] if reconcile.moment(generation)
            else ["is not a time with a zone; write it as '2026-11-21 00:00:00+00'"] if generation is string
            else ["is neither a time nor a position; write it as '2026-11-21 00:00:00+00', or as " ~ example] -%}
      {%- if not wrong -%}
        {%- set moment = reconcile.moment(generation.read_timestamp if generation is mapping else generation) -%}
        {%- set place = reconcile._numbers_of_position(generation, positions) if generation is mapping -%}
        {%- if last.moment and moment < last.moment -%}
          {%- do wrong.append('begins earlier than the generation before it in the list; list the generations in the order in which they began') -%}
        {%- elif place and last.place and place < last.place -%}
          {%- do wrong.append('has a smaller position than the generation before it in the list; list the generations in the order in which they began. '
                ~ 'If the log began anew between the two, list the time of this as a generation between them') -%}
        {%- endif -%}
        {%- do last.update({'moment': moment, 'place': place}) -%}
      {%- endif -%}
      {%- for complaint in wrong -%}
        {%- do complaints.append('generation ' ~ ("'" ~ generation ~ "'" if generation is string else generation) ~ ' ' ~ complaint) -%}
      {%- endfor -%}
    {%- endfor -%}
  {%- endif -%}
  {%- do reconcile.raise_complaints(complaints) -%}
{%- endmacro %}

{%- macro _wrong_with_position(position, positions, example) -%}
  {%- set wrong = [] -%}
  {%- set first = positions | first -%}
  {%- for name in position if name not in positions and name != 'read_timestamp' -%}
    {%- do wrong.append('has ' ~ name ~ ', which is not part of a position: changes are ordered first by ' ~ first
          ~ '; write the generation as ' ~ example) -%}
  {%- endfor -%}
  {%- for name in positions -%}
    {%- if name in position and not loop.first and loop.previtem not in position -%}
      {%- do wrong.append('has ' ~ name ~ ', which needs ' ~ loop.previtem ~ ' too; write the generation as ' ~ example) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if not wrong and first not in position -%}
    {%- do wrong.append('has no ' ~ first ~ ', so it has no position; write the generation as ' ~ example) -%}
  {%- endif -%}
  {%- for name, spec in positions.items() if name in position and not reconcile._numbers_of(position[name], spec) -%}
    {%- do wrong.append('has ' ~ name ~ " '" ~ position[name] ~ "', which is not a valid " ~ spec.description ~ '; write the generation as ' ~ example) -%}
  {%- endfor -%}
  {%- if 'read_timestamp' not in position -%}
    {%- do wrong.append('has no read_timestamp, the time from which backfill rows belong to it; write the generation as ' ~ example) -%}
  {%- elif not reconcile.moment(position.read_timestamp) -%}
    {%- do wrong.append("has read_timestamp '" ~ position.read_timestamp ~ "', which is not a time with a zone; write the generation as " ~ example) -%}
  {%- endif -%}
  {{ return(wrong) }}
{%- endmacro %}

{#- A position as lists of numbers, which can be compared. -#}
{%- macro _numbers_of_position(position, positions) -%}
  {%- set place = [] -%}
  {%- for name, spec in positions.items() if name in position -%}
    {%- do place.append(reconcile._numbers_of(position[name], spec)) -%}
  {%- endfor -%}
  {{ return(place) }}
{%- endmacro %}

{#- The numbers of a coordinate; none if the coordinate does not have the form. -#}
{%- macro _numbers_of(value, spec) -%}
  {%- set found = modules.re.fullmatch(spec.form, value | string) -%}
  {%- if not found -%}{{ return(none) }}{%- endif -%}
  {%- set numbers = [] -%}
  {%- for digits in found.groups() -%}{%- do numbers.append(digits | int(base=spec.base or 10)) -%}{%- endfor -%}
  {{ return(numbers) }}
{%- endmacro %}
