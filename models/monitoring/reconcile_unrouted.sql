{{ config(materialized='view') }}
{{ reconcile.unrouted_records() }}
