"""Rows in and out of files: the same code in the calling process and in Spark's tasks, which `work.spark` makes."""
