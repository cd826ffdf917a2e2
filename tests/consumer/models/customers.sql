{{ config(unique_key='id') }}
{{ reconcile.datastream_mysql(source('lake', 'shop_changes'), table='shop.customers') }}
