"""Rows in and out of files, in this process and in Spark's tasks."""
