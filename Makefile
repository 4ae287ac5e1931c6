# Everything here works on a machine that has only Python >= 3.11 and make.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
WORKERS ?= 2

.PHONY: demo test lint bench bench-quick bench-compare clean

$(VENV)/.run: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) CI/make_venv.py $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(VENV)/.run
	$(BIN)/python -m pyfinch demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/.bench: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

bench-quick: $(VENV)/.bench
	$(BIN)/python -m benchmarks --quick

bench-compare: $(VENV)/.run
	$(BIN)/python -m benchmarks.compare $(BASE) $(NEW)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
