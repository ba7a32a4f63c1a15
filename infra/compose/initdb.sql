-- Run once, when the PostgreSQL container has no data yet: one database for the catalog, one for Airflow. Who may do what
-- in them: make_roles.py.
CREATE DATABASE lake;
CREATE DATABASE airflow;
