{{ config(materialized='ephemeral' if var('as_of', none) else 'view') }}
{{ reconcile.unrouted_records() }}
