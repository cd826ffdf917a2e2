{{ config(materialized='ephemeral' if var('as_of', none) else 'monitoring_view') }}
{{ reconcile.status_of(reconcile.built_nodes(), reconcile.reconciled_nodes()) }}
