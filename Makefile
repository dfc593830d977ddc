# `make demo` and `make test` work in a fresh clone: both make .venv first.
PYTHON ?= python3
BIN := .venv/bin
# The editable install links files one by one, so a new file needs a new install: watch the folders.
FOLDERS := $(shell find store collector credit viewer cli -type d -not -name __pycache__)

.PHONY: demo test check format clean
.DELETE_ON_ERROR:

demo: .venv/installed
	$(BIN)/graphcredit demo

test: .venv/installed
	$(BIN)/python -m pytest -n 2 -q

check: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.venv/requirements: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25" -c constraints.txt
	touch $@

.venv/installed: .venv/requirements $(FOLDERS)
	$(BIN)/python -m pip install --quiet --config-settings editable_mode=strict \
		--constraint constraints.txt --editable ".[play,er,dev]"
	touch $@

clean:
	rm -rf .venv build *.egg-info
