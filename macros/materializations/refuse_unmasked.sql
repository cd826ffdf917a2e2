{#- A model with masks takes no record that was not masked, and is refused before anything of the range is written.
    `facts`: the facts of the range's change records, see `facts_of_changes`. -#}
{%- macro refuse_unmasked(inputs, columns, facts) -%}
  {%- if facts.unmasked -%}
    {%- set staging = reconcile.ledger_name(inputs.relations[0]) -%}
    {%- do reconcile.raise_complaints([
          'the model masks ' ~ reconcile.masked_names(columns) ~ ', and ' ~ facts.unmasked ~ (' record' if facts.unmasked == 1 else ' records') ~ ' of ' ~ inputs.objects | join(', ') ~ ' in ' ~ staging
          ~ ', the first in batch ' ~ facts.unmasked_batch ~ ', ' ~ ('was' if facts.unmasked == 1 else 'were') ~ ' staged without these masks, so nothing was built; stage the records again with --masks, into a new staging table, and drop ' ~ staging]) -%}
  {%- endif -%}
{%- endmacro %}

{#- A view has no range: all records of its SELECT are asked, when the view is made anew. A record that is staged later
    without a mask is not shown: see `masked_record`. -#}
{%- macro refuse_unmasked_of_view(inputs, columns) -%}
  {%- if reconcile.masked_names(columns) -%}
    {%- do reconcile.refuse_unmasked(inputs, columns, reconcile.one_row(
          'select\n    ' ~ reconcile.facts_of_masks() ~ '\nfrom (\n' ~ sql ~ '\n)')) -%}
  {%- endif -%}
{%- endmacro %}
