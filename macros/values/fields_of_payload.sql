{#- Which fields a payload has, as one text; a batch has few distinct texts. First come two letters for the form of each
    value, as a variant's schema begins. Then come the fields' names. If the names are those of the columns in their
    order, only the first name comes, which shows whether the names are in capitals. NULL without a payload. -#}
{%- macro fields_of_payload() -%}
concat(
    array_join(transform(map_values(payload), value -> coalesce(left(schema_of_variant(value), 2), 'VO')), ''),
    if(field_names is null, concat(':', coalesce(map_keys(payload)[0], '')), concat('=', to_json(field_names)))
)
{%- endmacro %}

{#- The names of the fields, from the text of `fields_of_payload` and its `letters`. -#}
{%- macro names_of_fields(fields, letters, columns) -%}
{%- set names_text = 'substring(' ~ fields ~ ', length(' ~ letters ~ ') + 2)' -%}
{%- set names = reconcile._array_of_texts(columns | map(attribute='name')) -%}
case
    when {{ fields }} is null then cast(array() as array<string>)
    when substring({{ fields }}, length({{ letters }}) + 1, 1) = '=' then from_json({{ names_text }}, 'array<string>')
    when {{ names_text }} = {{ reconcile.literal(columns[0].name) }} then {{ names }}
    else transform({{ names }}, name -> upper(name))
end
{%- endmacro %}

{%- macro letters_of_fields(fields) -%}
regexp_extract({{ fields }}, '^[A-Z]*', 0)
{%- endmacro %}

{#- The form of a field, from its two letters. If a declaration takes any form, the form is 'any'. -#}
{%- macro form_of_field(letters, name, columns) -%}
{%- set any_form = [] -%}
{%- for column in columns if column.type.name == 'variant' or column.encoding == 'json' -%}{%- do any_form.append(reconcile.literal(column.name | lower)) -%}{%- endfor -%}
case
    {%- if any_form %}
    when {{ name }} in ({{ any_form | join(', ') }}) then 'any'
    {%- endif %}
    when {{ letters }} = 'VO' then 'null'
    when {{ letters }} = 'ST' then 'text'
    when {{ letters }} = 'BI' then 'whole number'
    when {{ letters }} in ('DE', 'DO', 'FL') then 'number'
    when {{ letters }} = 'BO' then 'boolean'
    else 'json'
end
{%- endmacro %}
