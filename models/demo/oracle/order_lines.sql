{{ config(materialized='current_state', unique_key=['order_id', 'line_no']) }}
{{ reconcile.datastream_oracle(source('lake', 'shop_changes'), table='SHOP.ORDER_LINES') }}
