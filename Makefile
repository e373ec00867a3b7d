# make demo   raw data to two reports, molecules and images      make test   format, lint and all tests
# Both set up .venv by themselves, from the pinned envs/requirements.txt.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format lock clean

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2> /dev/null && { echo $$p; break; }; done)
CORES ?= $(shell nproc)
READY := .venv/.ready
DEMO := results/demo/report.html results/digits/report.html
export PATH := $(CURDIR)/.venv/bin:$(PATH)

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## ?/  make \1\t/' | expand -t 14

setup: $(READY)  ## make the environment in .venv

demo: $(READY)  ## run "demo" (molecules) and "digits" (images) through Snakemake; ends with the paths of their reports
	snakemake --cores $(CORES) $(DEMO)
	@echo "reports: $(DEMO)"

test: lint  ## check format, lint, run all tests
	OMP_NUM_THREADS=1 python -m pytest -n $(CORES) --maxprocesses 8 --dist worksteal

lint: $(READY)  ## check format and lint of package, tests and workflow
	ruff format --check .
	ruff check .
	mypy
	snakefmt --check Snakefile rules
	snakemake --lint

format: $(READY)  ## format everything
	ruff check --fix .
	ruff format .
	snakefmt Snakefile rules

lock: $(READY)  ## renew envs/requirements.txt from the bounds in pyproject.toml
	pip install -q uv
	uv pip compile -q --upgrade --universal --generate-hashes --no-header --no-emit-index-url --no-annotate \
	  --python-version 3.11 --extra workflow --group dev pyproject.toml -o envs/requirements.txt

clean:  ## remove the environment; results stay
	rm -rf .venv

$(READY): envs/requirements.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: needs Python 3.11, 3.12 or 3.13 (python3 is $$(python3 -V 2>&1))" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { echo "make: $(PYTHON) has no venv module: installing Debian's"; \
	  if [ $$(id -u) = 0 ]; then as=; else as=sudo; fi; $$as apt-get update -q && $$as apt-get install -qy python3-venv; }
	rm -rf .venv && $(PYTHON) -m venv .venv
	pip install -q --disable-pip-version-check --require-hashes --no-deps -r envs/requirements.txt
	pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@
