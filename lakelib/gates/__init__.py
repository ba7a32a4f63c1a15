"""Gates: suites of checks, what they find in rows, and the report of it.

The expectations are Great Expectations', and so is what they mean; they are carried out by kernels of our own, all of a
suite's in one pass over the rows.
"""
