{#- What `ingestion/prove.py` asks of a project: `dbt run-operation reconcile.answer_proof`. Only the job hears the
    answer, one line in dbt's log on the level debug.

    The job compares checksums. It computes those of the model over the very SELECT that the test `parity` compares,
    and gives the rows that differ to the very SELECT of verdicts.

    `question`: models, rows, verdicts or records. `requests`: one for each model, all with its `unique_id`: see the
    macro of the question. -#}
{%- macro answer_proof(question, requests) -%}
  {%- do graph.update({'reconcile_listed': {}, 'reconcile_found': {}, 'reconcile_settings_of_catalogs': {}}) -%}
  {%- set file_format = reconcile.file_format_of_own_tables() -%}
  {%- if question == 'records' -%}
    {%- do reconcile.create_parity_tables(file_format) -%}
  {%- else -%}
    {%- do reconcile.run_statements(reconcile.get_session_statements()) -%}
  {%- endif -%}
  {%- set answers = [] -%}
  {%- for request in requests -%}
    {%- if question == 'models' -%}
      {%- do answers.append(reconcile.model_to_prove(graph.nodes[request.unique_id])) -%}
    {%- elif question == 'rows' -%}
      {%- do answers.append(reconcile.rows_to_prove(request, file_format)) -%}
    {%- elif question == 'verdicts' -%}
      {%- do answers.append(reconcile.verdicts_to_prove(request)) -%}
    {%- else -%}
      {%- do reconcile.run_statements(reconcile.get_proof_statements(request)) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do log('reconcile_proof ' ~ tojson(answers), info=false) -%}
{%- endmacro %}

{#- A model: {unique_id, name, relation, complaints}, and if there are no complaints: key, columns with types and
    tolerances, left_out, objects, allowance, uncertainty, allow_empty. What the model's test of parity declares holds
    here too; of several tests, the first by name. -#}
{%- macro model_to_prove(node) -%}
  {%- set relation = reconcile.relation_of(node) -%}
  {%- set reasons = [] -%}
  {%- set found = {'unique_id': node.unique_id, 'name': node.name, 'relation': reconcile.ledger_name(relation), 'complaints': reasons} -%}
  {%- if node.config.materialized not in ['current_state', 'current_view'] -%}
    {%- do reasons.append('a proof compares a current_state or a current_view, and the model is a ' ~ node.config.materialized) -%}
  {%- elif not reconcile.existing_relation(relation) -%}
    {%- do reasons.append(reconcile.ledger_name(relation) ~ ' does not exist; build it first') -%}
  {%- elif reconcile._is_kept_by_snapshots(relation) -%}
    {%- do reasons.append('the model has no log, so its rows have no position; compare it by the test reconcile.parity') -%}
  {%- endif -%}
  {%- if reasons -%}{{ return(found) }}{%- endif -%}
  {%- set said = reconcile._said_of_parity(node) -%}
  {%- set keys = said.get('key') or reconcile.keys_of(node) -%}
  {%- set keys = [keys] if keys is string else keys -%}
  {%- set compared = reconcile.compared_columns(relation, relation, keys, said.get('columns'), said.get('tolerances') or {}).columns -%}
  {%- set masks = reconcile._masks_of_model(relation, compared) -%}
  {%- if masks -%}
    {%- do reasons.append('the model has masked values of ' ~ masks | join(', ') ~ ', and its source has the values themselves; compare it with a snapshot of snapshot.py --masks by the test reconcile.parity, or leave the columns out in `columns` of that test') -%}
    {{ return(found) }}
  {%- endif -%}
  {%- set left_out = [] -%}
  {%- for column in reconcile.form_of_node(node).shown if column.name | lower not in compared | map(attribute='name') | map('lower') | list -%}
    {%- do left_out.append(column.name) -%}
  {%- endfor -%}
  {%- do found.update({
      'key': keys, 'columns': compared, 'left_out': left_out, 'objects': reconcile.model_inputs(node).objects | list,
      'allowance': said.get('allowance', '10 minutes'), 'uncertainty': said.get('uncertainty', '1 hour'),
      'allow_empty': said.get('allow_empty', false)}) -%}
  {{ return(found) }}
{%- endmacro %}

{#- The arguments of the model's test of parity; none if it has no such test. -#}
{%- macro _said_of_parity(node) -%}
  {%- set tests = {} -%}
  {%- for test in graph.nodes.values() | selectattr('resource_type', 'equalto', 'test')
        if (test.get('test_metadata') or {}).get('name') == 'parity' and test.get('attached_node') == node.unique_id -%}
    {%- do tests.update({test.name: test.test_metadata.kwargs}) -%}
  {%- endfor -%}
  {{ return(tests[tests | list | sort | first] if tests else {}) }}
{%- endmacro %}

{#- The comparison of a proof, in the form of `comparison`. `request`: {unique_id, key, columns, tolerances, allowance,
    uncertainty, position: {kind, value, taken_at}, compared_to, source_rows, store_values}. `columns`: their names.
    `source_rows`: the temporary view of the job with the rows of the source. `form_columns`: those that the model had
    when it was proven before; none for those that it has. -#}
{%- macro _comparison_of_proof(request) -%}
  {%- set node = graph.nodes[request.unique_id] -%}
  {%- set relation, form = reconcile.relation_of(node), reconcile.form_of_node(node) -%}
  {%- do reconcile.add_horizons(form, relation, tojson(reconcile.declaration_of(form, reconcile.model_inputs(node)))) -%}
  {%- set columns = reconcile.compared_columns(relation, relation, request.key, request.columns, request.tolerances).columns -%}
  {%- if request.get('form_columns') -%}
    {%- do form.update({
        'columns': form.columns | selectattr('name', 'in', request.form_columns) | list,
        'shown': form.shown | selectattr('name', 'in', request.form_columns) | list}) -%}
  {%- endif -%}
  {%- set at = request.position -%}
  {{ return({
      'model': relation, 'compare_to': reconcile.relation_of_name('global_temp.' ~ request.source_rows), 'compared_to': request.compared_to,
      'key': request.key, 'columns': columns, 'incomparable': [],
      'position': reconcile.position_in_log(at.kind, at.value, at.taken_at, request.uncertainty),
      'allowance': request.allowance, 'recheck': 0, 'store_values': request.store_values, 'allow_empty': false,
      'relations': reconcile.model_relations(relation), 'form': form, 'inputs': reconcile.model_inputs(node), 'test': 'prove',
      'recent_cache': reconcile.comparison_cache('recent', relation), 'touched_cache': reconcile.comparison_cache('touched', relation),
      'verdicts_cache': reconcile.comparison_cache('verdicts', relation)}) }}
{%- endmacro %}

{#- The model's rows at the position: {unique_id, complaints}, and if there are no complaints: `sql`, a SELECT;
    `key_text`, a key as JSON, as SQL; versions, staged, delivered, form_columns, columns; how many records are in quarantine and
    how many rows are pending; `gaps`: what is wrong with the account; `batches`: the first and the last that the ledger
    has. A request that has versions and staged of an earlier answer gets the rows that were there then;
    a complaint says so if they were folded from change records that have been purged since. -#}
{%- macro rows_to_prove(request, file_format) -%}
  {%- set comparison = reconcile._comparison_of_proof(request) -%}
  {%- set complaints = reconcile._complaints_of_position(comparison) -%}
  {%- if complaints -%}{{ return({'unique_id': request.unique_id, 'complaints': complaints}) }}{%- endif -%}
  {%- set base, is_again = comparison.relations.base, request.get('staged') is not none -%}
  {%- set purged = reconcile.last_purged(comparison.inputs) if is_again and request.staged.folds else 0 -%}
  {%- if purged > (request.staged.purged if is_again else 0) -%}
    {{ return({'unique_id': request.unique_id, 'complaints': ['rows were folded from change records, of which those up to batch ' ~ purged ~ ' have been purged from ' ~ reconcile.ledger_name(comparison.inputs.relations[0])]}) }}
  {%- endif -%}
  {%- do reconcile.run_statements(reconcile.get_drop_comparison_statements(comparison)) -%}
  {%- set versions = request.versions if is_again else {'model': reconcile.table_version(base, file_format) if reconcile.existing_relation(base) else none, 'source': none} -%}
  {%- set staged = request.staged if is_again else reconcile.staged_at(comparison, versions.model) -%}
  {%- set delivered = {'is_complete': true, 'reason': none} if is_again else reconcile.delivery_at(comparison, staged) -%}
  {%- do reconcile.run_statements([reconcile.cache_recent_records(comparison, staged, versions.model)]) -%}
  {%- do staged.update(reconcile.one_row(reconcile.count_recent_records(comparison))) -%}
  {%- do staged.update({'folds': staged.touched > 0 or not staged.has_base}) -%}
  {%- do reconcile.run_statements([reconcile.cache_touched_records(comparison, staged)] if staged.folds else []) -%}
  {%- set form_columns = [] -%}
  {%- for column in comparison.form.columns -%}{%- do form_columns.append(column.name) -%}{%- endfor -%}
  {%- set found = {
      'unique_id': request.unique_id, 'complaints': [], 'sql': reconcile.rows_at_position(comparison, versions, staged),
      'key_text': reconcile._key_text(comparison.columns, comparison.key), 'versions': reconcile._as_numbers(versions),
      'staged': reconcile._as_numbers(staged), 'delivered': delivered, 'form_columns': form_columns, 'columns': comparison.columns} -%}
  {%- do found.update({} if is_again else reconcile._state_of_account(comparison, graph.nodes[request.unique_id])) -%}
  {{ return(found) }}
{%- endmacro %}

{%- macro _state_of_account(comparison, node) -%}
  {%- set relations = comparison.relations -%}
  {%- set found = {'gaps': [], 'batches': [none, none],
        'quarantined': run_query('select count(*) from ' ~ reconcile.qualified(relations.quarantine))[0][0] | int,
        'pending': run_query(reconcile._number_of_pending_rows(node))[0][0] | int
                   if comparison.form.partial_records or comparison.form.keyless.kind == 'row_deletes' else 0} -%}
  {%- if node.config.materialized != 'current_view' -%}
    {%- for row in run_query(reconcile._findings_of_account(node)) -%}{%- do found.gaps.append(row[0]) -%}{%- endfor -%}
    {%- set batches = run_query(reconcile._batches_of_account(comparison))[0] -%}
    {%- do found.update({'batches': [batches[0] | int(0), batches[1] | int(0)]}) -%}
  {%- endif -%}
  {{ return(found) }}
{%- endmacro %}

{%- macro _number_of_pending_rows(node) -%}
select count(*)
from (
    {{ reconcile.pending_rows_of(node) | indent(4) }}
)
{%- endmacro %}

{%- macro _findings_of_account(node) -%}
select finding, count(*) as ranges
from (
    {{ reconcile.account_findings([node]) | indent(4) }}
)
group by finding
{%- endmacro %}

{%- macro _batches_of_account(comparison) -%}
select min(first_batch) as first_batch, max(last_batch) as last_batch
from {{ reconcile.qualified(reconcile.ledger()) }}
where relation = {{ reconcile.literal(reconcile.ledger_name(comparison.model)) }} and kind not in ('purge', 'snapshot', 'erasure')
{%- endmacro %}

{#- The verdicts of the rows that differ: {unique_id, verdicts, counts}. `verdicts` is the view of the session that has
    them. `request`: also versions, staged and delivered, as `rows_to_prove` gave them last, and `differing_keys`, the temporary
    view of the job with the keys of these rows. -#}
{%- macro verdicts_to_prove(request) -%}
  {%- set comparison = reconcile._comparison_of_proof(request) -%}
  {%- set scope = {'rows': 'select key from ' ~ reconcile.qualified(reconcile.relation_of_name('global_temp.' ~ request.differing_keys))} -%}
  {%- do reconcile.run_statements(['drop view if exists ' ~ comparison.verdicts_cache, reconcile.cache_verdicts(comparison, request.versions, request.staged, request.delivered, scope)]) -%}
  {%- set counts = reconcile.one_row(reconcile.count_verdicts(comparison)) -%}
  {{ return({'unique_id': request.unique_id, 'verdicts': comparison.verdicts_cache, 'counts': reconcile._as_numbers(counts)}) }}
{%- endmacro %}

{#- Statements that write the result of a proof to the tables of parity. `request`: also `counts` of all rows, `verdict`,
    `reasons` why nothing is proven, `seconds`, and `has_differences`: whether the view of verdicts is there. -#}
{%- macro get_proof_statements(request) -%}
  {%- set comparison = reconcile._comparison_of_proof(request) -%}
  {%- set started = modules.datetime.datetime.now() - modules.datetime.timedelta(seconds=request.seconds) -%}
  {{ return(([reconcile._insert_differences(comparison)] if request.has_differences else [])
      + ([reconcile._insert_reasons(comparison, request.reasons)] if request.reasons else [])
      + [reconcile._insert_parity(comparison, request.versions, request.delivered, none, request.counts, request.verdict, started)]) }}
{%- endmacro %}

{%- macro _insert_reasons(comparison, reasons) -%}
insert into {{ reconcile.qualified(reconcile.parity_differences()) }} by name
select
    {{ reconcile._names_of_comparison(comparison) }},
    cast(null as string) as key,
    'unprovable' as verdict,
    cast(null as string) as difference,
    {{ reconcile.literal(reasons | join('; ')) }} as reason,
    cast(null as array<struct<column: string, model: string, source: string>>) as columns
{%- endmacro %}

{#- A dict whose numbers JSON can hold, as dbt gives some of them as decimals. -#}
{%- macro _as_numbers(values) -%}
  {%- set found = {} -%}
  {%- for name, value in values.items() -%}
    {%- if value is sequence and value is not string -%}
      {%- set numbers = [] -%}
      {%- for each in value -%}{%- do numbers.append(each | int) -%}{%- endfor -%}
      {%- do found.update({name: numbers}) -%}
    {%- else -%}
      {%- do found.update({name: value | int if value is number and value is not boolean else value}) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(found) }}
{%- endmacro %}
