# `make run` and `make test` do all the set-up themselves; both need only Python 3.11 or newer and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: run test exam lint bench install-run install-dev clean docs

run: $(VENV)/.run
	$(BIN)/ardvark demo

test: $(VENV)/.dev lint
	$(BIN)/pytest -n auto --dist loadgroup

# The long form of what `make test` tries in short: crashes, faults, sharing, ranking, and a hundred thousand visits.
exam: $(VENV)/.dev
	$(BIN)/pytest -n 0 --exam --exam-write tests/system/test_crash.py tests/system/test_faults.py \
	  tests/system/test_scale_out.py tests/integration/test_ranking_engines.py
	$(BIN)/python -m tests.bench steady

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
