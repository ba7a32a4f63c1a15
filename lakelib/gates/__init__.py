"""Gates: suites of checks, carried out by Great Expectations, and the report of what they found.

Importing Great Expectations takes seconds: only `lint` and `run` do, and only those who judge import them.
"""
