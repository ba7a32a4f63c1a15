SELECT dt, sum(amount) AS amount FROM feed WHERE dt = DATE(:partition) GROUP BY dt
