"""Carries queries out in this process. The only place with DuckDB, which is imported when a query is there."""
