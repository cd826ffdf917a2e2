{{ config(materialized='current_state', unique_key='id') }}
{{ reconcile.datastream_oracle(source('lake', 'shop_changes'), table='SHOP.ORDERS') }}
