{{ config(enabled=var('as_of', none) is none, materialized='view') }}
{{ reconcile.unrouted_records() }}
