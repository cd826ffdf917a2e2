{{ config(materialized='current_state', unique_key='COL1') }}
{{ reconcile.datastream_oracle(source('experiment', 'table1_changes'), object='USER1.TABLE1') }}
