SELECT order_key, dt, customer, upper(trim(status)) AS status, total, updated_at FROM source
