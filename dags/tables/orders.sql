-- The order service has written a status in several ways over the years.
SELECT order_id, dt, customer_id, lower(trim(status)) AS status, amount, updated_at FROM source
