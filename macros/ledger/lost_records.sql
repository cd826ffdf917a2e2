{#- A SELECT of {first_batch, last_batch, delivered, staged}: the first range of a model's account, since its last rebuild,
    of which staging has fewer records than the ledger counted when the range was applied. No row if staging has them
    all. Records that were erased since (rows of kind `erasure`) are not lost: they count as if they were there. `inputs`:
    as `model_inputs` gives them. `sql`: the model's SELECT, whose records are counted if the model reads no staging table
    by a source macro of this package. `first`: of ranges that begin with this batch or later. -#}
{%- macro lost_records(relations, inputs, sql, first=1) -%}
select first_batch, last_batch, delivered, records as staged
from (
    select account.first_batch, account.last_batch, account.delivered, coalesce(sum(staged.records), 0) as records
    from (
        select *, max(if(kind = 'rebuild', place, null)) over () as rebuilt
        from (
            select kind, first_batch, last_batch, delivered, {{ reconcile.ledger_order() }} as place
            from {{ reconcile.qualified(reconcile.ledger()) }}
            where relation = {{ reconcile.literal(reconcile.ledger_name(relations.live)) }} and kind not in ('snapshot', 'erasure')
        )
    ) as account
    left join (
        {%- if inputs.objects %}
        select batch, {{ reconcile.delivered_records(inputs.objects) | indent(8) }} as records, null as erased_at
        from {{ reconcile.qualified(inputs.relations[0]) }}
        where {{ reconcile.is_of_objects(inputs.objects) }}{{ ' and batch >= ' ~ first if first > 1 }}
        group by batch
        {%- else %}
        select _change_batch as batch, count(*) as records, null as erased_at
        from (
{{ sql }}
        )
        group by _change_batch
        {%- endif %}
        union all
        select first_batch, delivered, {{ reconcile.ledger_order() }}
        from {{ reconcile.qualified(reconcile.ledger()) }}
        where relation = {{ reconcile.literal(reconcile.ledger_name(relations.live)) }} and kind = 'erasure'
    ) as staged
        on staged.batch between account.first_batch and account.last_batch and coalesce(staged.erased_at > account.place, true)
    where (account.rebuilt is null or account.place >= account.rebuilt){{ ' and account.first_batch >= ' ~ first if first > 1 }}
    group by account.place, account.first_batch, account.last_batch, account.delivered
)
where records < delivered
order by first_batch
limit 1
{%- endmacro %}

{#- The range that `lost_records` finds, {first, last, said}; none if staging has all records. `said`: the beginning of a
    sentence, which says how many of its records are left. -#}
{%- macro lost_range(relations, inputs, sql, first=1) -%}
  {%- set lost = run_query(reconcile.lost_records(relations, inputs, sql, first)) -%}
  {%- if not lost | length -%}{{ return(none) }}{%- endif -%}
  {%- set of_range, last, delivered, staged = lost[0].values() -%}
  {{ return({
      'first': of_range, 'last': last,
      'said': (reconcile.ledger_name(inputs.relations[0]) if inputs.objects else 'its SELECT') ~ ' has ' ~ staged | int ~ ' of the ' ~ delivered | int ~ ' records that were delivered'}) }}
{%- endmacro %}
