SELECT
    l.dt,
    count(DISTINCT o.order_key) AS orders,
    count(*) AS lines,
    sum(l.quantity * l.price * (1 - l.discount)) AS revenue
FROM line_items l
JOIN orders o ON o.order_key = l.order_key AND o.dt = l.dt
WHERE l.dt = DATE(:partition) AND o.status <> 'CANCELLED'
GROUP BY l.dt
