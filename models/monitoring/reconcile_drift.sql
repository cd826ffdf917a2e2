{{ config(materialized='ephemeral' if var('as_of', none) else 'monitoring_view') }}
{{ reconcile.drift_of(reconcile.reconciled_nodes()) }}
