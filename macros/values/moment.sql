{#- A time with a zone, as UTC; none if the text is no such time. The day is added to the first of the month, since
    Python would end the run at a 30th of February. -#}
{%- macro moment(text) -%}
  {%- set found = modules.re.fullmatch(
        '(19[7-9][0-9]|2[0-9]{3})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[ T]([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])([.][0-9]{1,6})?'
        ~ '(?:Z|([-+])(0[0-9]|1[0-4])(?::?([0-5][0-9]))?)', text | string) -%}
  {%- if found -%}
    {%- set month = modules.datetime.datetime(found[1] | int, found[2] | int, 1) -%}
    {%- set day = month + modules.datetime.timedelta(days=found[3] | int - 1) -%}
    {%- if day.month == month.month -%}
      {%- set ahead = modules.datetime.timedelta(hours=(found[9] or 0) | int, minutes=(found[10] or 0) | int) -%}
      {%- set wall = day + modules.datetime.timedelta(
            hours=found[4] | int, minutes=found[5] | int, seconds=found[6] | int, microseconds=((found[7] or '.') ~ '000000')[1:7] | int) -%}
      {{ return(wall + ahead if found[8] == '-' else wall - ahead) }}
    {%- endif -%}
  {%- endif -%}
  {{ return(none) }}
{%- endmacro %}
