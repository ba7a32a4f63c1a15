SELECT
    dt,
    count(*) AS orders,
    count(DISTINCT customer_id) AS customers,
    sum(amount) AS revenue
FROM orders
WHERE dt = DATE(:partition) AND status <> 'cancelled'
GROUP BY dt
