{{ config(materialized='ephemeral' if var('as_of', none) else 'view') }}
{{ reconcile.source_lag() }}
