# Everything a newcomer needs: `make demo` and `make test` set themselves up in .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DATA   ?= $(or $(RANKWRIGHT_DATA),../shared/data)

.DEFAULT_GOAL := help
.PHONY: help demo docs test test-slow lint fuzz mutants bench reproduction clean-kernels clean

help:            ## what there is
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/core: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; say make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/dev: $(VENV)/core constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(VENV)/bench: $(VENV)/core constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	@touch $@

$(VENV)/docs: $(VENV)/core constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

demo: $(VENV)/core       ## the whole job on built-in data, ends with a report page
	$(BIN)/rankwright demo --out demo

test: $(VENV)/dev        ## the test suite on all cores, a few minutes
	$(BIN)/python -m pytest -n logical --maxprocesses 4 --dist worksteal

test-slow: $(VENV)/dev   ## the longer checks: published figures, an experiment killed fifty times
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/dev        ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

docs: $(VENV)/docs       ## the documentation site, into build/docs/html; warnings are errors
	$(BIN)/python -m website build/docs

fuzz: $(VENV)/dev        ## a million damaged files, an hour or so; goes on where it was, CASES=N for N of each kind
	$(BIN)/python -m fuzz $(if $(CASES),--cases $(CASES))

mutants: $(VENV)/dev     ## how many changes to the code the tests notice, an hour or more on two cores; SAMPLE=N for N changes
	RANKWRIGHT_DATA=$(abspath $(DATA)) $(BIN)/python -m mutants $(if $(SAMPLE),--sample $(SAMPLE))

bench: $(VENV)/bench     ## ratios against peers, measured side by side
	$(BIN)/python -m benchmarks

reproduction: $(VENV)/dev  ## published figures beside ours, into docs/REPRODUCTION.md (DATA names the folder of data sets)
	$(BIN)/rankwright reproduce ohsumed ohsumed-2.0 mq2008 --data $(DATA) --write docs/REPRODUCTION.md

clean-kernels:   ## forget compiled kernels
	find src -name '*.nb[ci]' -delete
	find src -path '*/__pycache__/rankwright-*' -type d -empty -delete

clean:           ## remove the environment and every cache
	rm -rf $(VENV) demo build/docs .pytest_cache .mypy_cache .ruff_cache .hypothesis .mutants
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
