{#- The newest snapshot beside the log, if the range has it: {snapshot, oldest, first}. `oldest`: the first snapshot of the
    range; of a current row only the newest one counts. `first` is the first batch that may hold
    changes that the snapshot does not contain: they were committed after the snapshot was taken, and so appended after
    it; or changes of which its position does not show whether it contains them, see `position_of_staged`. The clocks of
    the source and of the appending job may differ by an hour. Of the batches from `first` on that were applied before,
    these changes are read again, since the snapshot gives them another place in the order; of Spanner it gives none, see
    `records_beside_snapshot`. `snapshot`: the newest one,
    none if there is none. `kind`: that of the range. `base_snapshot`: see `purged_staging`. -#}
{%- macro repair_of_range(inputs, snapshot, first, last, kind, base_snapshot) -%}
  {%- if not snapshot -%}{{ return(none) }}{%- endif -%}
  {%- set staging = inputs.relations[0] -%}
  {%- do reconcile.refuse_two_snapshots(staging, snapshot, base_snapshot) -%}
  {%- if not first <= snapshot.batch <= last -%}{{ return(none) }}{%- endif -%}
  {%- set of_range = reconcile.snapshots_in_order(snapshot) | selectattr('batch', 'ge', first) | list -%}
  {%- for one in of_range -%}{%- do reconcile.refuse_missing_rows_of_snapshot(staging, one) -%}{%- endfor -%}
  {%- if kind == 'rebuild' or first == 1 or reconcile.is_in_order_of_log(snapshot) -%}{{ return({'snapshot': snapshot, 'oldest': of_range[0], 'first': first}) }}{%- endif -%}
  {%- set position = reconcile.position_of_staged(of_range[0]) -%}
  {%- set begun = run_query(
        'select min(batch) from ' ~ reconcile.qualified(staging) ~ ' where appended_at >= ' ~ (position.from or position.taken_at) ~ " - interval '1 hour'")[0][0] | int(first) -%}
  {%- set purged = reconcile.last_purged(inputs) -%}
  {%- if begun <= purged -%}
    {%- do reconcile.raise_complaints(['the snapshot of ' ~ snapshot.object ~ ' in batch ' ~ snapshot.batch ~ ' of ' ~ reconcile.ledger_name(staging) ~ ' perhaps lacks changes of batch ' ~ purged
          ~ ', which was purged; take a new snapshot ' ~ {'pg_snapshot': 'an hour', 'lsn': 'two hours'}.get(snapshot.position_kind, 'a day and an hour') ~ ' or more after that batch was appended, and stage that']) -%}
  {%- endif -%}
  {{ return({'snapshot': snapshot, 'oldest': of_range[0], 'first': [begun, first] | min}) }}
{%- endmacro %}

{#- The snapshot that a base table has applied, as its property says it: its place, and its id; and a digest of the ids
    of earlier ones that count, too. -#}
{%- macro name_of_applied(snapshot) -%}
  {%- set earlier = reconcile.snapshots_in_order(snapshot)[:-1] | map(attribute='snapshot') | list -%}
  {{ return(snapshot.place ~ ' ' ~ snapshot.snapshot ~ (' ' ~ local_md5(earlier | join(' ')) if earlier else '')) }}
{%- endmacro %}

{#- The order of a base table's rows depends on the newest snapshot that it has applied. Staging may have lost that one,
    by a restore or a delete, and perhaps has another one in its place since, whose generation then is that of rows which
    the other one gave. And an earlier version of this package applied batches without regard to snapshots. `of_base`: the
    one that the base table has applied, see `name_of_applied`. `newest`: the newest one of staging. `first`: the first
    batch of the range. -#}
{%- macro refuse_lost_snapshot(relations, inputs, of_base, newest, first) -%}
  {%- set of_base = (of_base or '0') | string -%}
  {%- set applied, staged = of_base.split(' ')[0] | int(0), newest.place if newest else 0 -%}
  {%- set known = reconcile.snapshots_in_order(newest) | selectattr('place', 'le', applied) | list -%}
  {%- set is_history = config.get('materialized') == 'history' -%}
  {%- if flags.EMPTY -%}{{ return(none) }}{%- endif -%}
  {%- if applied > staged -%}
    {%- do reconcile.raise_complaints([reconcile.ledger_name(relations.base) ~ ' has applied snapshot ' ~ applied ~ ' beside the log, and ' ~ reconcile.ledger_name(inputs.relations[0]) ~ ' has '
          ~ (staged or 'none') ~ '; restore the staging table, or rebuild with `' ~ reconcile._rebuild_command() ~ '`']) -%}
  {%- elif known and of_base not in [applied | string, reconcile.name_of_applied(dict(known[-1], earlier=known[:-1]))] or applied and is_history and not known -%}
    {%- do reconcile.raise_complaints([reconcile.ledger_name(relations.base) ~ ' has applied '
          ~ ('other snapshots up to ' ~ applied ~ ' beside the log than those of ' ~ reconcile.ledger_name(inputs.relations[0]) ~ ', of which one was taken back or staged since' if is_history
             else 'another snapshot ' ~ applied ~ ' beside the log than the one in batch ' ~ newest.batch ~ ' of ' ~ reconcile.ledger_name(inputs.relations[0]) ~ ', which was staged after that one was taken back')
          ~ '; rebuild with `' ~ reconcile._rebuild_command() ~ '`']) -%}
  {%- elif applied < staged and newest.batch < first -%}
    {%- do reconcile.raise_complaints([reconcile.ledger_name(relations.base) ~ ' has batch ' ~ newest.batch ~ ' without the snapshot in it, as an earlier version of this package applied it; rebuild with `'
          ~ reconcile._rebuild_command() ~ '`']) -%}
  {%- endif -%}
{%- endmacro %}

{#- What begins with a base snapshot does not read the batches before it, and the snapshot beside the log may be in one
    of them. -#}
{%- macro refuse_two_snapshots(staging, snapshot, base_snapshot) -%}
  {%- if base_snapshot -%}
    {%- do reconcile.raise_complaints([reconcile.ledger_name(staging) ~ ' was purged and has a snapshot beside the log, batch ' ~ snapshot.batch ~ ', and a rebuild cannot begin with a base snapshot and that one both; restore the purged records, or stage the source into a new staging table']) -%}
  {%- endif -%}
{%- endmacro %}

{#- The rows of a snapshot are staged together with what says how many they are. Where some are gone, what is absent was
    perhaps only deleted in staging. -#}
{%- macro refuse_missing_rows_of_snapshot(staging, snapshot) -%}
  {%- set rows = run_query(
        'select count(*) from ' ~ reconcile.qualified(staging) ~ ' where object = ' ~ reconcile.literal(reconcile.snapshot_rows_object(snapshot.object)) ~ " and source = 'snapshot' and batch = " ~ snapshot.batch)[0][0] | int(0) -%}
  {%- if rows != snapshot.rows -%}
    {%- do reconcile.raise_complaints([reconcile.ledger_name(staging) ~ ' has ' ~ rows ~ ' of the ' ~ snapshot.rows ~ ' rows of the snapshot of ' ~ snapshot.object ~ ' in batch ' ~ snapshot.batch
          ~ ', and the others would count as deleted; stage a new snapshot with append.py snapshot, or restore the rows']) -%}
  {%- endif -%}
{%- endmacro %}

{#- Increments could leave the row that the base table has in place of a row of the snapshot that cannot be read; a
    rebuild and a view have no such row (laws 1 and 5). `changes`: checked records, a relation or a SELECT in
    parentheses. What depends on the one value is left out of the reason. -#}
{%- macro refuse_unreadable_rows(changes, snapshot) -%}
  {%- set row = run_query("select count(*) as unreadable, min(_change_error) as reason from " ~ changes ~ " where _change_snapshot = 'row' and _change_error is not null")[0] -%}
  {%- if row[0] -%}
    {%- do reconcile.raise_complaints([row[0] ~ ' rows of the snapshot of ' ~ snapshot.object ~ ' in batch ' ~ snapshot.batch
          ~ ' cannot be read as the model declares them (' ~ modules.re.sub("'[^']*'", "'...'", row[1]) ~ '), and a rebuild would have none of them; correct the types, or take the snapshot back and stage a new one']) -%}
  {%- endif -%}
{%- endmacro %}
