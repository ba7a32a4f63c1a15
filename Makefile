# `make test` and `make demo` do all the set-up that they need.

PYTHON := .venv/bin/python

THINNED := $(addprefix tests/,acceptance cli connect dags integration jobs spark)

.DEFAULT_GOAL := help
.PHONY: help setup lint layers types-of-dags spark-classes test demo tour up down status e2e pictures bench soak golden schemas reference requirements clean

help:  ## show the targets
	@grep -hE '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9]+):.*## (.*)/  \1	\2/' | expand -t 16

setup:  ## install everything into .venv, unless nothing has changed
	@sh infra/setup_env.sh

lint: layers types-of-dags  ## ruff, mypy and the layers

layers: setup
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	PYTHONPATH=dags .venv/bin/lint-imports
	$(PYTHON) -m mypy

types-of-dags: setup
	MYPYPATH=dags $(PYTHON) -m mypy --cache-dir .mypy_cache/dags dags

spark-classes: setup
	$(PYTHON) -m tests.spark_classes

test: setup  ## set-up, lint and the tests; of many combinations some, make soak has all
	@$(MAKE) --no-print-directory -j 2 spark-classes lint
	LAKE_MATRICES=some LAKE_EXAMPLES=50 PYTHONDONTWRITEBYTECODE= $(PYTHON) -m pytest -n 4 --dist loadfile --no-loadscope-reorder

demo: setup  ## a shop's days through Airflow: gate, decision, correction, backfill, compaction; KEEP=1 leaves it running
	$(PYTHON) -m infra.demo

tour: setup  ## a tour in one process: create a table, upsert twice, read, travel in time
	$(PYTHON) -m jobs.demo

up: setup  ## start PostgreSQL, Spark and Airflow on this machine, and say how to use them
	@$(PYTHON) -m infra.airflow up

down:  ## end what `make up` started; data stays
	@test ! -x $(PYTHON) || $(PYTHON) -m infra.airflow down

status: setup  ## what of `make up` is running
	@$(PYTHON) -m infra.airflow status

e2e: setup  ## a live Airflow, driven by its REST API and in a headless Chromium; kills what it must survive
	@sh infra/setup_browser.sh
	$(PYTHON) -m pytest tests/e2e
	LAKE_RECOVERIES=all $(PYTHON) -m pytest tests/dags/test_recovery.py

pictures: setup  ## take the pictures of docs/tutorial.md anew, from a live Airflow
	@sh infra/setup_browser.sh
	mkdir -p docs/pictures
	LAKE_PICTURES=docs/pictures $(PYTHON) -m pytest tests/e2e/test_tutorial.py

bench: setup  ## measure against plain Parquet and the peer, and say which bar is missed
	$(PYTHON) -m tests.bench

soak: setup  ## writers, compaction, readers, expiry and vacuum on one lake at once; crowds of writers; the lake machines and all properties at length; all combinations of which make test takes some; what Spark loses while it writes; streams that are killed
	$(PYTHON) -m tests.soak
	$(PYTHON) -m tests.soak --crowd 32 --seconds 60
	$(PYTHON) -m tests.soak --following 20
	LAKE_EXAMPLES=2000 LAKE_MACHINE_RUNS=160 LAKE_MACHINE_SPARK_RUNS=120 LAKE_CHANGES_RUNS=60 $(PYTHON) -m pytest -s --timeout 3600 \
		tests/property tests/unit tests/spark/test_cutting.py tests/spark/test_filters.py tests/integration/gates/test_engines.py
	LAKE_SQL_STATEMENTS=10000 $(PYTHON) -m pytest -s --timeout 3600 tests/property/test_sql.py tests/property/test_sql_changes.py
	LAKE_SQL_WRITES=5000 $(PYTHON) -m pytest -s --timeout 3600 tests/property/test_sql_inserts.py
	LAKE_SQL_SPARK_STATEMENTS=1000 $(PYTHON) -m pytest -s --timeout 3600 tests/property/test_sql_on_spark.py \
		tests/property/test_sql_changes_on_spark.py
	LAKE_MATRICES=all $(PYTHON) -m pytest -n 2 --dist loadfile $(THINNED)
	$(PYTHON) -m pytest tests/integration/spark/test_lost_executors.py
	$(PYTHON) -m pip install --quiet --no-deps --upgrade --target build/clickhouse --requirement tests/soak/clickhouse.txt
	PYTHONPATH=build/clickhouse LAKE_DELTA_RUNS=60 LAKE_DELTA_VERSIONS=10000 LAKE_EXPORT_STRIDE=1 $(PYTHON) -m pytest tests/integration/delta \
		tests/integration/faults/test_killed_exports.py tests/integration/faults/test_killed_shows.py \
		tests/integration/faults/test_s3_exports.py
	LAKE_MOVING_ROUNDS=15 LAKE_MOVING_COMMITS=20 $(PYTHON) -m pytest --timeout 1800 tests/integration/faults/test_moving_keys.py
	LAKE_STREAM_ROUNDS=20 $(PYTHON) -m pytest tests/integration/spark/test_killed_streams.py
	LAKE_STREAM_COMMITS=200 $(PYTHON) -m pytest tests/spark/test_stream_write.py -k ends_equal

golden: setup  ## compute the golden key hashes with real Spark
	$(PYTHON) tests/golden/generate_xxhash64.py

schemas: setup  ## write the JSON schemas of table specs and gate suites, for editors
	$(PYTHON) -m lakelib.specs.schemas docs/schemas

reference: setup  ## write docs/api.md from the docstrings
	$(PYTHON) -m infra.reference docs/api.md

requirements: setup  ## pin the newest packages that setup.cfg allows; needs uv
	uv pip compile --quiet --upgrade --python-version 3.11 --extra spark --extra local --extra gates --extra airflow --extra test --extra dev \
		--extra delta --extra hive --extra sketches \
		--custom-compile-command "make requirements" --output-file requirements.txt setup.cfg

clean:  ## remove what was built, the environment included
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info
	find lakelib tests jobs dags -name __pycache__ -prune -exec rm -rf {} +
