-- Run once, when the PostgreSQL container has no data yet: one database for the catalog, one for Airflow.
CREATE DATABASE lake;
CREATE DATABASE airflow;
