# `make run` and `make test` do all the set-up themselves; both need only Python 3.11 or newer and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: run test lint bench install-run install-dev clean docs

run: $(VENV)/.run
	$(BIN)/ardvark demo

test: $(VENV)/.dev lint
	$(BIN)/pytest -n auto --dist loadgroup

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python -m tests.bench

docs: $(VENV)/.dev
	$(BIN)/python -m config.reference

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Ardvark needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.run

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
