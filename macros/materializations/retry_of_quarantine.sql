{#- What a run does beside its new batches so that quarantined records are applied which a corrected declaration can
    read: {whole, first, number, least, left, declares}; none if it does nothing of the kind. See
    docs/decisions/0053-retry-of-quarantine.md.

    To read a record otherwise changes its place in the order: the last section of `_change_sequence` is a hash of all
    typed values. So there are two ways. If the declaration is that of the base table, or only reads more (see
    `reads_only_more`), every record that was applied keeps its values and its place. Then quarantined records are like
    records that come late, and the run applies again all batches from `first` on, the first batch with a quarantined
    record. Otherwise `whole` is true: the run reads all staged records once and replaces the base table.

    `first` is none if nothing is quarantined but what came too late, see `is_before_horizon`. `number`: which retry of the base table it is. `least`: the first batch
    of this retry and the earlier ones. `left`: how many quarantined records are of purged batches. `declares`: whether
    the declaration is another than that of the base table. A retry that another run began is ended by the next run,
    whether it asks for one or not, and also if that run goes on with other columns, see `changed_columns`. `added`: see
    `added_columns`. `ledger_retried`: see `applied_batches`. -#}
{%- macro retry_of_quarantine(relations, settings, added, ledger_retried) -%}
  {%- set is_asked = reconcile.is_asked('retry_quarantine') -%}
  {%- set changed = reconcile.changed_aspects(settings.built.base, settings.declaration) -%}
  {%- set goes_on = changed == ['columns'] and settings.changes.built -%}
  {%- set is_filled = added and changed == ['columns'] and not added | rejectattr('added') | list -%}
  {%- set cannot_be_read_anew = changed | select('in', ['staging', 'sequence', 'materialized']) | list -%}
  {%- if flags.EMPTY or settings.built.quarantine is none or is_filled or cannot_be_read_anew -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set of_base, of_quarantine = settings.built.retried, settings.built.retried_quarantine -%}
  {#- A model without news has not asked its quarantine for its properties. -#}
  {%- if 'retried_quarantine' not in settings.built and (is_asked or reconcile._is_under_way(of_base, ledger_retried)) -%}
    {%- set of_quarantine = reconcile.table_properties(relations.quarantine).get('reconcile.retried') -%}
  {%- endif -%}
  {%- set begun = reconcile._begun_retry(of_base, of_quarantine, ledger_retried) -%}
  {%- if ledger_retried > reconcile._number_of_retry(of_base) -%}
    {%- set begun = {'number': ledger_retried, 'first': ([reconcile._first_marked(relations, of_base)] + ([begun.first] if begun else [])) | min} -%}
  {%- endif -%}
  {%- set number = reconcile._last_mark(of_base, of_quarantine, ledger_retried) + 1 -%}
  {%- if not is_asked -%}
    {{ return(dict(begun, whole=false, left=0, declares=false, least=reconcile._least_batch(begun.first, of_quarantine)) if begun and (not changed or goes_on) else none) }}
  {%- elif changed and not goes_on -%}
    {{ return({'whole': true, 'first': 1, 'number': number, 'least': 1, 'left': 0, 'declares': true}) }}
  {%- endif -%}
  {%- set purged = reconcile.last_purged(settings.inputs) -%}
  {%- set quarantined, left = run_query(
        'select min(if(_change_batch > ' ~ purged ~ ', _change_batch, null)) as first_batch, count_if(_change_batch <= ' ~ purged ~ ') as purged_records from '
        ~ reconcile.qualified(relations.quarantine) ~ (' where not ' ~ reconcile.is_late('_change_error') if reconcile.horizons_at_start(settings.declaration).taken else ''))[0].values() -%}
  {%- set firsts = [quarantined, begun.first if begun else none] | reject('none') | list -%}
  {%- if not firsts and not changed and not left -%}{{ return(none) }}{%- endif -%}
  {%- set first = firsts | min if firsts else none -%}
  {{ return({
      'whole': false, 'first': first, 'left': left | int(0), 'declares': changed | length > 0,
      'number': number,
      'least': reconcile._least_batch(first, of_quarantine) if firsts else none}) }}
{%- endmacro %}

{#- A retry that has not ended, {first, number}; none if there is none. The base table and the quarantine both have the
    property `reconcile.retried`. The base table has `3 17` from the beginning of its third retry on, which began with
    batch 17. The quarantine has the same; of several retries, it has the least batch. The ledger's row of the retry has
    the number 3. A greater number of the base table is that of a retry which has no row yet. A smaller one shows that
    somebody has restored the base table to before a retry, or that the retry had just begun; both tables may be restored,
    so the quarantine and the ledger are asked. A mark `3`, of an earlier version, is that of a retry that ended. -#}
{%- macro _begun_retry(of_base, of_quarantine, of_ledger) -%}
  {%- set of_base, of_quarantine = (of_base or '0') | string, (of_quarantine or '0 0') | string -%}
  {%- if reconcile._is_under_way(of_base, of_ledger) -%}
    {{ return({'number': reconcile._number_of_retry(of_base), 'first': of_base.split(' ')[1] | int}) }}
  {%- elif reconcile._number_of_retry(of_quarantine) > reconcile._number_of_retry(of_base) -%}
    {{ return({'number': reconcile._number_of_retry(of_quarantine), 'first': of_quarantine.split(' ')[1] | int}) }}
  {%- endif -%}
{%- endmacro %}

{%- macro _is_under_way(of_base, of_ledger) -%}
  {{ return(' ' in (of_base or '') | string and reconcile._number_of_retry(of_base) > of_ledger) }}
{%- endmacro %}

{#- The first batch of the marked ranges that a base table lacks, by the ledger. -#}
{%- macro _first_marked(relations, of_base) -%}
  {{ return(run_query(
      'select min(first_batch) as first_batch from ' ~ reconcile.qualified(reconcile.ledger()) ~ ' where relation = ' ~ reconcile.literal(reconcile.ledger_name(relations.live))
      ~ ' and retried > ' ~ reconcile._number_of_retry(of_base))[0][0] | int(1)) }}
{%- endmacro %}

{%- macro _least_batch(first, of_quarantine) -%}
  {{ return([first, of_quarantine.split(' ')[1] | int] | min if ' ' in (of_quarantine or '') else first) }}
{%- endmacro %}

{%- macro _number_of_retry(retried) -%}
  {{ return(((retried or '0') | string).split(' ')[0] | int) }}
{%- endmacro %}

{#- The greatest number of a mark, by the base table, its quarantine and the ledger; 0 without one. -#}
{%- macro _last_mark(of_base, of_quarantine, of_ledger=0) -%}
  {{ return([reconcile._number_of_retry(of_base), reconcile._number_of_retry(of_quarantine), of_ledger] | max) }}
{%- endmacro %}

{#- The number in the marks of a base table and of its quarantine once both are made anew, see `_begun_retry`; 0 without a
    mark. A rebuild counts as a retry of all batches: it may read what was not staged before, or what only its
    declaration reads, and its quarantine lacks those records. The table that was there before, if the run dies or if
    somebody restores it, is then brought up to date. So is one that was renamed or dropped, and comes back after a
    rebuild that found none: the ledger knows of it. -#}
{%- macro number_of_rebuild(settings, range) -%}
  {%- set built = settings.built -%}
  {%- set last = reconcile._last_mark(built.retried, built.retried_quarantine, range.ledger_retried or 0) -%}
  {{ return(range.retry.number if range.retry else last + 1 if built.base or range.entry else last) }}
{%- endmacro %}

{#- What a range marks as a retry does; none if it marks nothing. Beside a retry this is a range that changes rows of the
    base table and leaves it with a largest batch that it has had before, so that the batch does not show whether somebody
    restores the table to before the range. In a history, a delete without a key ends versions of earlier batches. A
    replay into a table that was restored may apply what was quarantined the first time, and the table that was there
    before the restore has the same largest batch. The marks tell such tables apart, if the range counts as a retry of
    its own batches. A rebuild is marked if there was a table before: until the ledger has its row, the accounts are those
    of that table. -#}
{%- macro marked_range(settings, range, counts) -%}
  {%- set built = settings.built -%}
  {%- if range.kind == 'rebuild' -%}
    {%- set number = reconcile.number_of_rebuild(settings, range) -%}
    {{ return({'whole': true, 'first': range.first, 'number': number, 'least': range.first, 'left': 0, 'declares': false} if number and not settings.as_of else none) }}
  {%- endif -%}
  {%- set is_marked = counts.merged and (range.kind == 'replay' or (counts.base_batch or 0) <= range.base_batch) -%}
  {%- if range.retry or not is_marked -%}{{ return(range.retry) }}{%- endif -%}
  {{ return({
      'whole': false, 'first': range.first, 'left': 0, 'declares': false,
      'number': reconcile._last_mark(built.retried, built.retried_quarantine, range.ledger_retried) + 1,
      'least': reconcile._least_batch(range.first, built.retried_quarantine)}) }}
{%- endmacro %}

{#- The statements before a retry writes rows. The mark of the quarantine comes first: if the base table is restored
    later, the mark tells what it lacks. The base table takes the declaration and its mark in one commit. From then on,
    whoever runs the model next ends the retry, and a run with the earlier declaration is refused. Where all records are
    read, the tables get all of it when they are replaced: see `get_rebuild_statements`. -#}
{%- macro get_begin_retry_statements(relations, settings, retry) -%}
  {%- if not retry or retry.whole -%}{{ return([]) }}{%- endif -%}
  {%- set of_base = reconcile.properties_of_declaration(settings) if retry.declares else {} -%}
  {%- set statements = [] -%}
  {%- if retry.first is not none -%}
    {%- do statements.append(reconcile._set_property(relations.quarantine, {'reconcile.retried': retry.number ~ ' ' ~ retry.least})) -%}
    {%- do of_base.update({'reconcile.retried': retry.number ~ ' ' ~ retry.first}) -%}
  {%- endif -%}
  {{ return(statements + ([reconcile._set_property(relations.base, of_base)] if of_base else [])) }}
{%- endmacro %}

{#- The statement that ends a retry of which the ledger gets no row, since no batch is left for it. -#}
{%- macro get_end_retry_statements(relations, retry) -%}
  {{ return([reconcile._set_property(relations.base, {'reconcile.retried': retry.number})]
      if retry and retry.first is not none else []) }}
{%- endmacro %}

{%- macro _set_property(relation, properties) -%}
alter table {{ reconcile.qualified(relation) }} set {{ reconcile.properties_clause(properties) }}
{%- endmacro %}

{#- A retry replaces the quarantine's records by those that staging has, and the whole way replaces the base table too.
    Nobody has asked for a rebuild, so the run is refused if staging no longer has all records. `retry`: see
    `retry_of_quarantine`. `applied`: see `applied_batches`. -#}
{%- macro refuse_retry(relations, inputs, retry, applied) -%}
  {%- set beginning = 'a retry of the quarantine reads ' ~ ('all records in staging, since the declaration reads records otherwise than before,' if retry.whole else 'the records in staging from batch ' ~ retry.first ~ ' on,') -%}
  {%- set purged = reconcile.purged_through(inputs.relations[0], inputs.objects) if inputs.objects else {} -%}
  {%- set complaints = [] -%}
  {%- if retry.whole and config.get('full_refresh') is false -%}
    {%- do complaints.append(beginning ~ ' as a full refresh does, which `full_refresh: false` in its config forbids; remove that for one run, or declare the model as before') -%}
  {%- endif -%}
  {%- for object, batch in purged.items() if retry.whole -%}
    {%- do complaints.append(beginning ~ ' but the records of ' ~ object ~ ' up to batch ' ~ batch ~ ' were purged from ' ~ reconcile.ledger_name(inputs.relations[0])
          ~ '; rebuild with `' ~ reconcile._rebuild_command() ~ '`, which begins with a base snapshot, or declare the model as before') -%}
  {%- endfor -%}
  {%- set lost = reconcile.lost_range(relations, inputs, sql, purged.values() | max | default(0, true) + 1) -%}
  {%- if lost -%}
    {%- do complaints.append(beginning ~ ' but ' ~ lost.said ~ ' in batches ' ~ lost.first ~ ' to ' ~ lost.last
          ~ '; restore the records, or build the table from what is left with `' ~ reconcile._rebuild_command() ~ '`') -%}
  {%- elif retry.whole and applied.base_batch and not applied.ledger_batch -%}
    {%- do complaints.append(beginning ~ ' but the ledger has nothing of ' ~ reconcile.ledger_name(relations.base) ~ ', so nothing shows whether staging still has them; build the table from what staging has with `' ~ reconcile._rebuild_command() ~ '`') -%}
  {%- endif -%}
  {%- do reconcile.raise_complaints(complaints) -%}
{%- endmacro %}

{#- A correction takes no record away that was applied. A declaration that reads less, such as a shorter text, would move
    applied records into the quarantine, and their rows would go or become older. Only a rebuild that somebody asks for
    does that. The records are known by batch, id and origin. -#}
{%- macro refuse_records_that_no_longer_fit(relations, range) -%}
  {%- set rows = run_query(reconcile._records_that_no_longer_fit(relations, range.retry.applied)) -%}
  {%- if rows | length -%}
    {%- set records, reason = rows[0].values() -%}
    {%- do reconcile.raise_complaints(['a retry of the quarantine takes no record away, but with this declaration ' ~ records | int ~ ' records that were applied would be quarantined ('
          ~ modules.re.sub("'[^']*'", "'...'", reason) ~ '); correct the declaration, or rebuild with `' ~ reconcile._rebuild_command() ~ '`']) -%}
  {%- endif -%}
{%- endmacro %}

{#- `applied`: the last batch that was applied. -#}
{%- macro _records_that_no_longer_fit(relations, applied) -%}
select count(*) as records, min(no_longer._change_error) as reason
from (
    select _change_batch, _change_id, _change_origin, _change_error
    from {{ relations.changes_cache }}
    where _change_error is not null and _change_batch <= {{ applied }}
) as no_longer
left anti join {{ reconcile.qualified(relations.quarantine) }} as quarantined
    on
        no_longer._change_batch = quarantined._change_batch and no_longer._change_id <=> quarantined._change_id
        and no_longer._change_origin <=> quarantined.origin
having count(*) > 0
{%- endmacro %}

{#- A list of at most one sentence: from where on the quarantine was retried. `retry`: see `retry_of_quarantine`. -#}
{%- macro retry_messages(retry) -%}
  {%- if not retry -%}{{ return([]) }}{%- endif -%}
  {%- set left = ', but ' ~ retry.left ~ ' of purged batches stay' if retry.left -%}
  {%- set sentences = [] -%}
  {%- if retry.first is not none -%}
    {%- do sentences.append('quarantine retried ' ~ ('with all records in staging' if retry.whole else 'from batch ' ~ retry.first ~ ' on') ~ left) -%}
  {%- elif retry.left -%}
    {%- do sentences.append('quarantine not retried: all ' ~ retry.left ~ ' records are of purged batches') -%}
  {%- endif -%}
  {{ return(sentences) }}
{%- endmacro %}
