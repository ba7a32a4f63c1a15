"""Spark distributes the kernels: the tasks that it runs, and the data frames that they make and take. Needs pyspark."""
