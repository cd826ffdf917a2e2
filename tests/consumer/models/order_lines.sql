{{ config(unique_key=['order_id', 'line_no']) }}
{{ reconcile.datastream_mysql(source('lake', 'shop_changes'), table='shop.order_lines') }}
