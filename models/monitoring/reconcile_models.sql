{{ config(materialized='ephemeral' if var('as_of', none) else 'monitoring_view') }}
{{ reconcile.states_of_models(reconcile.built_nodes(), reconcile.reconciled_nodes(), ref('reconcile_status')) }}
