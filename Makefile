# make demo: install everything and run the main job. make test: install everything and pass the tests.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/pip --disable-pip-version-check --quiet
WORKERS ?= 2

.PHONY: demo test test-gpu lint soak bench install install-dev clean

demo: install
	PATH="$(abspath $(BIN)):$$PATH" examples/digits/demo.sh

test: install-dev lint
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not gpu" tests

test-gpu: install-dev
	$(BIN)/pytest -m gpu tests

lint: install-dev
	$(BIN)/ruff format --check src tests examples bench
	$(BIN)/ruff check src tests examples bench
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

soak: install-dev
	$(BIN)/python -m bench.soak

bench: install-dev
	$(BIN)/python -m bench

install: $(VENV)/.installed

install-dev: $(VENV)/.installed-dev

# torch comes through the constraints file only; the product itself never depends on it.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint constraints.txt --editable . torch scikit-learn numpy
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
