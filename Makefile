# `make demo` runs the workflow on embedded data; `make test` runs all checks. Every target first makes the
# environment .venv from envs/requirements.txt, where it does not exist yet or is out of date.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast slow-tests check lint style types graph kernels format docs release-check lock clean

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2> /dev/null && { echo $$p; break; }; done)
CORES ?= $(shell nproc)
READY := .venv/.ready
PIP := pip install -q --disable-pip-version-check --no-deps
UV := uv pip install -q --python .venv/bin/python --require-hashes --no-deps
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Every step of the workflow starts faster if Python may keep its bytecode.
unexport PYTHONDONTWRITEBYTECODE

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## ?/  make \1\t/' | expand -t 22

setup: $(READY)  ## install the pinned packages and pairflow into .venv

demo: $(READY)  ## run the experiments "demo" (molecules) and "digits" (images)
	pairflow run demo --cores $(CORES)
	pairflow run digits --cores $(CORES)

# One process more than cores, because some tests wait for a scheduler or a browser. Threads that wait for one another
# sleep (passive): on a machine with more processes than cores they would waste most of the time.
test: $(READY)  ## run all checks of `make lint`, then all tests
	@$(MAKE) --no-print-directory -j$(CORES) lint kernels
	OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive python -m pytest -n $$(($(CORES) + 1)) --maxprocesses 8 --dist worksteal

FAST := not (workflow or slurm or data or slow)
test-fast: $(READY) kernels  ## run the tests that take moments, for use while you work
	OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive python -m pytest -q -n $(CORES) -m "$(FAST)"

# Lists in tests/slow.txt what `make test-fast` leaves out: tests of 0.2 s, and files with a fixture of 0.5 s. In the
# second and third run, without the tests that are listed already, others are the first to need a fixture.
LIST := {sub(/\[.*/, "", $$3)} $$2 == "call" {print $$3} $$2 == "setup" && $$1 + 0 >= 0.5 {sub(/::.*/, "", $$3); print $$3}
slow-tests: $(READY) kernels
	rm -f build/slow.log && mkdir -p build
	for tests in "" "$(FAST)" "$(FAST)"; do OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive python -m pytest -q -n $(CORES) \
	  -m "$$tests" --durations=0 --durations-min=0.2 >> build/slow.log || exit; \
	  awk '$(LIST)' build/slow.log | sort -u > tests/slow.txt; done

check: $(READY)  ## run `make lint` and `make test-fast`, before you commit
	@$(MAKE) --no-print-directory -j$(CORES) lint test-fast

lint: style types graph  ## check the format and the style of the package, the tests and the workflow

style: $(READY)
	ruff format --check .
	ruff check .

types: $(READY)
	mypy

graph: $(READY)
	snakefmt --check Snakefile workflow/Snakefile rules
	snakemake --lint

# Compiled before all processes of the tests do so at once.
kernels: $(READY)
	python -m pairflow.pairing.compile_ahead

format: $(READY)  ## format the code and fix what ruff can fix
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow/Snakefile rules

docs: $(READY)  ## build the documentation site in site/; a warning is an error
	mkdocs build --strict

# The wheel is unpacked into a folder, from which a project is made and its data are prepared, as by a user of the package.
RELEASE := $(CURDIR)/build/release
release-check: $(READY) docs  ## check what a release needs: documentation, links, licences, and a project from the wheel
	python -m pytest -q tests/docs tests/test_published.py tests/test_packaging.py tests/test_environment.py
	rm -rf $(RELEASE) && pip wheel -q --disable-pip-version-check --no-deps . --no-build-isolation -w $(RELEASE)
	$(PIP) --target $(RELEASE)/site $(RELEASE)/*.whl
	cd $(RELEASE) && export PYTHONPATH=$(RELEASE)/site && python -m pairflow init project && cd project && \
	  python -m snakemake --cores $(CORES) --quiet all -- results/demo/data/train.parquet
	python benchmarks/release_check.py

LOCK := uv pip compile -q --upgrade --universal --generate-hashes --no-header --no-emit-index-url --no-annotate

lock: $(READY)  ## update the locked requirements to the newest versions that pyproject.toml allows
	$(LOCK) --python-version 3.11 --group dev --extra all pyproject.toml -o envs/requirements.txt
	$(LOCK) --python-version 3.13 --group publish -o .github/publish.txt

clean:  ## remove .venv and built files; results stay
	rm -rf .venv build dist site *.egg-info

# With TORCH_INDEX, an index that has torch without CUDA, both packages of the locked versions come from there.
TORCH_INDEX ?=
CUDA := $(if $(TORCH_INDEX),torch==|torchvision==|triton==|nvidia-(cub|cudnn|cuf|cus|n),none==)
TORCH := $(if $(TORCH_INDEX), && $(PIP) -i "$(TORCH_INDEX)" $$(grep -oE '^(torch|torchvision)==[^ ]+' envs/requirements.txt) 2>> .venv/install.log)

# uv installs in a third of pip's time. Where it cannot reach the packages (pip may know of a mirror), pip does. The
# pairing engine needs four of them and compiles while the others are downloaded. Without that the first pairing does.
$(READY): envs/requirements.txt pyproject.toml setup.py
	@test -n "$(PYTHON)" || { echo "make: expected Python 3.11, 3.12 or 3.13, found no such Python (python3 is $$(python3 -V 2>&1))" >&2; exit 2; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2> /dev/null || { echo "make: $(PYTHON) has no venv module; installing Debian's package python3-venv"; \
	  if [ $$(id -u) = 0 ]; then as=; else as=sudo; fi; $$as apt-get update -q && $$as apt-get install -qy python3-venv; }
	@rm -rf .venv && "$(PYTHON)" -m venv .venv
	@echo "make: installing the packages into .venv, which takes a minute or two"
	@awk '/^[a-z0-9]/ {own = /^uv==/} own' envs/requirements.txt > .venv/uv.txt
	@awk '/^[a-z0-9]/ {own = !/^($(CUDA))/} own' envs/requirements.txt > .venv/packages.txt
	@awk '/^[a-z0-9]/ {own = /^(llvmlite|numba|numpy|tqdm)==/} own' envs/requirements.txt > .venv/engine.txt
	@{ $(PIP) --require-hashes -r .venv/uv.txt && \
	  $(UV) -r .venv/engine.txt && { python -m pairflow.pairing.compile_ahead & $(UV) -r .venv/packages.txt && wait; } || \
	  $(PIP) --no-compile --require-hashes -r .venv/packages.txt; } 2> .venv/install.log$(TORCH) || \
	  { echo "make: the packages could not be installed ($$(grep ERROR .venv/install.log | tail -1), see .venv/install.log); check the network, then run make again" >&2; exit 2; }
	@$(PIP) --no-build-isolation -e .
	@touch $@
	@echo "make: the environment is ready; activate it with: source .venv/bin/activate"
