# `make demo`, `make test` and `make test-slow` work in a fresh clone: all make .venv first.
PYTHON ?= python3
BIN := .venv/bin
COMMA := ,
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
# Setuptools warns of every strict editable install. Most of what is installed is never loaded, and to compile it takes a minute.
PIP := PYTHONWARNINGS="ignore:Editable installation" $(BIN)/python -m pip install --no-compile --constraint constraints.txt
# Of what pip says, the name of each package that it collects shows how far it is.
NAMES := | sed -un 's/^Collecting \([^ ]*\).*/  \1/p'
# The editable install links files one by one, so a new file needs a new install: watch the folders.
FOLDERS := $(shell find api store collector credit trainer viewer loop cli -type d -not -name __pycache__)
PYTEST := $(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder -q
# Hundreds of processes load the same files: none may be told to compile them anew.
export PYTHONDONTWRITEBYTECODE :=
# The workers fill the cores: a second thread of torch would wait for a core, and burn it meanwhile.
test test-slow test-nightly test-experiments: export OMP_NUM_THREADS := 1
# ALFWorld's planner is built from source, in a minute, for those who have the games. Its build calls `python`.
EXTRAS := play,er,ray,train,vision,view,integrations,docs,dev$(if $(ALFWORLD_DATA),$(COMMA)alfworld)
EDITABLE := --config-settings editable_mode=strict --editable

.PHONY: demo test test-slow test-nightly test-experiments gpu check format docs clean
.DELETE_ON_ERROR:

# The whole job on the example log: why, a store, credit, a table, SQL, a picture. Text games are `graphcredit demo`.
demo: .venv/usable
	$(BIN)/graphcredit why examples/orders.jsonl --keep demo/orders --picture demo/why.svg
	$(BIN)/graphcredit credit demo/orders -e grpo,reach
	$(BIN)/graphcredit sql demo/orders "$$(cat examples/orders.sql)"
	@echo "demo/why.svg is the picture; $(BIN)/graphcredit view demo/orders shows the rest"

test: .venv/installed
	$(PYTEST) -m "not slow and not nightly"

test-slow: .venv/installed
	$(PYTEST) -m "slow and not nightly"

# Every property on many more examples than `make test` draws, long series of kills, and the
# experiments. Not for CI: a night is.
test-nightly: .venv/installed
	$(PYTEST) -m "hypothesis or nightly" --hypothesis-profile=thorough

# For who changes an experiment: CI runs one smoke test of them.
test-experiments: .venv/installed
	$(PYTEST) experiments/tests

# What CI cannot run. Torch for CUDA must be in .venv, see docs/install.md.
gpu: .venv/installed
	$(BIN)/python -m pytest -m gpu tests/trainer tests/collector/test_batches.py
	$(BIN)/python -m benchmarks.train --device cuda

check: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

# The documents as a site with search, without a network: open site/index.html.
docs: .venv/usable
	@$(PIP) $(EDITABLE) ".[docs]" $(NAMES)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.venv/requirements: pyproject.toml constraints.txt
	@echo "making .venv"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) --upgrade "pip>=25" $(NAMES)
	@touch $@

.venv/usable: .venv/requirements $(FOLDERS)
	@echo "installing graphcredit and its viewer into .venv: some minutes the first time"
	@$(PIP) $(EDITABLE) ".[view]" $(NAMES)
	@touch $@

# Everything, torch too: what the tests need and the demo does not.
.venv/installed: .venv/requirements $(FOLDERS)
	@echo "installing graphcredit with what all tests need into .venv: some minutes the first time"
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) $(EDITABLE) ".[$(EXTRAS)]" $(NAMES)
	@touch $@ .venv/usable

clean:
	rm -rf .venv build site *.egg-info
