"""What the DAG files beside this folder are wired from. Airflow puts the folder above on sys.path.

Whatever a DAG file loads is loaded at each of its parses: these modules load neither Spark, Great Expectations nor
Arrow. Tasks load what they need when they run.
"""
