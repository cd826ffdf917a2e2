{{ config(materialized='table', file_format='delta') }}
select orders.id, customers.name, orders.total
from {{ ref('orders') }}
join {{ ref('customers') }} on customers.id = orders.customer_id
where orders.total > 1000
