{#- Fails on every transaction for which staging has another number of records, or of partitions, than the transaction's
    own records say. The test is for staging tables of Spanner change streams, and for models that read one. It counts
    in staging, so tables that no model reads count too. Each partition marks its last record of a transaction. A record
    that was delivered twice counts once. -#}
{%- test transactions_complete(model) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'transactions_complete') -%}
with data_change_records as (
    select object, batch, data_change_record.*
    from {{ reconcile.qualified(reconcile.staging_of(model)) }}
    lateral view explode(array(
        {{ reconcile.parsed_record('commit_timestamp string, server_transaction_id string, record_sequence string, is_last_record_in_transaction_in_partition string, number_of_records_in_transaction string, number_of_partitions_in_transaction string, transaction_tag string, backfill string') }}
    )) as data_change_record
    where source = 'spanner' and not object <=> {{ reconcile.literal(reconcile.cut_object()) }}
),

transactions as (
    select
        commit_timestamp,
        server_transaction_id,
        count(distinct record_sequence) as records,
        count(distinct if(is_last_record_in_transaction_in_partition = 'true', record_sequence, null)) as partitions,
        sort_array(collect_set(try_cast(number_of_records_in_transaction as bigint))) as expected_records,
        sort_array(collect_set(try_cast(number_of_partitions_in_transaction as bigint))) as expected_partitions,
        max(transaction_tag) as transaction_tag,
        sort_array(collect_set(object)) as objects,
        sort_array(collect_set(batch)) as batches
    from data_change_records
    where not backfill <=> 'true'
    group by commit_timestamp, server_transaction_id
)

select *
from transactions
where not (
    server_transaction_id is not null
    and expected_records = array(records)
    and expected_partitions = array(partitions)
)
{%- endif -%}
{%- endtest %}
