# `make run` and `make test` need Linux, Python 3.11 or newer, and nothing else.
PYTHON ?= python3
BIN := .venv/bin
PORT ?= 8000
SEEDS ?= 10
SEED_FROM ?= 1
DATABASE ?= sqlite

# Half of the suite waits for processes, so two tests at once take little longer than one.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

.PHONY: run test test-all test-gpu check bench chaos clean

run: .venv/run
	@PORT=$(PORT) exec $(BIN)/python manage.py run

test: .venv/dev
	$(PYTEST) -m "not gpu and not slow"

test-all: .venv/dev
	$(PYTEST) -m "not gpu"

# Runs without Django, on a machine that has only torch, numpy, pydantic and pytest too; tests that need more say what.
test-gpu:
	$(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON)) -m pytest -p no:django -o addopts= -o DJANGO_SETTINGS_MODULE= --rootdir=tests/gpu --confcutdir=tests/gpu tests/gpu

check: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy jobs workers webapp
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(MAKE) test

# The last line sums it up; exit 0 only if all is well. DATABASE=postgresql for the other one.
chaos: .venv/dev
	$(BIN)/python -m tests.chaos --seeds $(SEEDS) --seed-from $(SEED_FROM) --database $(DATABASE)

# ONLY="loop peers" measures these parts alone; QUICK=1 is for a look, not for a claim. See benchmarks/README.md.
bench: .venv/bench
	$(BIN)/python -m benchmarks $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

.venv/made:
	@[ "$$(uname -s)" = Linux ] || { echo "Pitwall runs on Linux only; on another system use a virtual machine or a container."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Pitwall needs Python 3.11 or newer; point PYTHON at one: make run PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@

.venv/run: .venv/made requirements.txt requirements-engine.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.txt
	@touch $@

.venv/dev: .venv/run requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-dev.txt
	@touch $@

.venv/bench: .venv/dev requirements-bench.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-bench.txt
	@touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
