{{ config(materialized='ephemeral' if var('as_of', none) else 'monitoring_view') }}
{{ reconcile.quarantine_reasons(reconcile.built_nodes()) }}
