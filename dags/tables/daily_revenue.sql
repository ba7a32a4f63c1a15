SELECT
    dt,
    count(*) AS orders,
    count(DISTINCT customer_id) AS customers,
    sum(amount) AS revenue
FROM orders
WHERE status <> 'cancelled'
GROUP BY dt
