# make demo   the main job: train with DDP on this machine, record, analyse, report
# make test   everything that must hold
# make check  lint, types, architecture
# make fuzz   many mutations of real files through the reader
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check

.PHONY: setup demo test check fuzz format wheel clean

setup: $(VENV)/.installed

# torch first and pinned: resolved beside the rest it would be a download of several GB.
$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade pip
	$(PIP) install --quiet -c constraints.txt torch
	$(PIP) install --quiet -c constraints.txt -e ".[dashboard,hta,s3,dev]"
	touch $@

demo: setup
	$(BIN)/rankscope demo --output rankscope-demo --force

# Real training is timed by what it records, so it runs alone; all other tests share the cores.
test: setup
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile -m "not distributed"
	$(BIN)/python -m pytest -m distributed

fuzz: setup
	PYTHONPATH=tests $(BIN)/python tests/support/fuzzing.py --count 20000

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheel: setup
	rm -rf dist
	$(BIN)/python -m build --wheel --sdist

clean:
	rm -rf $(VENV) dist build rankscope-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
