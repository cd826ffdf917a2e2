{{ config(materialized='ephemeral' if var('as_of', none) else 'monitoring_view') }}
{{ reconcile.unrouted_records() }}
