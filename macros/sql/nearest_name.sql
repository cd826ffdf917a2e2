{#- The first of some names that a misspelt name may mean; none if there is no such name. The two are equal but for case
    and signs, or but for one letter that is wrong, superfluous, missing, or swapped with its neighbour. -#}
{%- macro nearest_name(name, names) -%}
  {%- set word = modules.re.sub('[^a-z0-9]', '', name | string | lower) -%}
  {%- for other in names -%}
    {%- set candidate = modules.re.sub('[^a-z0-9]', '', other | lower) -%}
    {%- if word == candidate or word | length > 3 and reconcile._one_letter_apart(word, candidate) -%}{{ return(other) }}{%- endif -%}
  {%- endfor -%}
  {{ return(none) }}
{%- endmacro %}

{%- macro _one_letter_apart(one, other) -%}
  {%- set shorter, longer = (one, other) if one | length <= other | length else (other, one) -%}
  {%- if longer | length - shorter | length > 1 -%}{{ return(false) }}{%- endif -%}
  {%- for place in range(longer | length) -%}
    {%- if shorter | length < longer | length -%}
      {%- if longer[:place] ~ longer[place + 1:] == shorter -%}{{ return(true) }}{%- endif -%}
    {%- elif one[:place] ~ one[place + 1:] == other[:place] ~ other[place + 1:] or one[:place] ~ one[place + 1:place + 2] ~ one[place:place + 1] ~ one[place + 2:] == other -%}
      {{ return(true) }}
    {%- endif -%}
  {%- endfor -%}
  {{ return(false) }}
{%- endmacro %}
