SELECT dt, count(*) AS rows FROM days WHERE dt = DATE(:partition) GROUP BY dt
