-- The rows of the source are the view `source`; the day of the run is :partition.
SELECT visit_id, DATE(:partition) AS dt, lower(page) AS page, CAST(milliseconds / 1000 AS INT) AS seconds
FROM source
