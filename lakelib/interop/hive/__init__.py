"""Interop. What a Hive metastore is told of tables, so that those who look there find them."""
