# `make test` and `make demo` do all the set-up that they need.

PYTHON := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup lint test demo bench golden requirements clean

help:  ## show the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  \1	\2/' | expand -t 16

setup:  ## install everything into .venv, unless nothing has changed
	@sh infra/setup_env.sh

lint: setup  ## ruff, mypy and the layers
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	.venv/bin/lint-imports

test: lint  ## set-up, lint and all tests
	$(PYTHON) -m pytest -n 2 --dist worksteal

demo: setup  ## a tour: create a table, upsert twice, read, travel in time
	$(PYTHON) -m jobs.demo

bench: setup  ## measure against plain Parquet and the peer, and say which bar is missed
	$(PYTHON) -m tests.bench

golden: setup  ## compute the golden key hashes with real Spark
	$(PYTHON) tests/golden/generate_xxhash64.py

requirements: setup  ## pin the newest packages that setup.cfg allows; needs uv
	uv pip compile --quiet --upgrade --python-version 3.11 --extra spark --extra gates --extra airflow --extra test --extra dev \
		--extra bench \
		--custom-compile-command "make requirements" --output-file requirements.txt setup.cfg

clean:  ## remove what was built, the environment included
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info
	find lakelib tests jobs dags -name __pycache__ -prune -exec rm -rf {} +
