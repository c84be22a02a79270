# Every target sets up what it needs: a fresh machine has to have Python 3.11 or later, pip and make.
# All paths are relative, so that the project may lie in a folder with a space in its name.

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
DEMO := $(VENV)/.installed-demo
DEV := $(VENV)/.installed-dev
HEAVY := $(VENV)/.installed-heavy
# What keeps time does so only where nothing else runs beside it.
ALONE := $(addprefix tests/faults/test_,cancellation.py deadlines.py matrix.py processes.py random_servers.py sizes.py) \
	$(addprefix tests/benchmarks/test_,bench_growth.py bench_quick.py load.py map_peers.py) tests/interface/attempts/test_circuit.py tests/test_loop_stays_free.py

# Every worker and every process of a test reads the same modules: what is compiled is kept.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
# An environment that was only half made is made again.
.DELETE_ON_ERROR:
.PHONY: help demo test test-all check format bench bench-quick bench-engine bench-journal bench-load bench-map league growth ecosystem faults faults-clients faults-long map-long docs screenshots release-check clean

help: ## what can be made
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(DEMO) ## a typed answer and a chat from a real model inside the process, no key needed
	$(PY) examples/01_first_function.py

# Most tests wait for something: four of them at a time keep two cores busy.
test: $(DEV) ## the test suite
	$(PY) -m pytest -m "not heavy" -n 4 --dist worksteal

test-all: $(HEAVY) ## what is heavy or needs an outside part: packaging, every fault of a service
	$(PY) -m pytest -m heavy -n auto --dist worksteal $(ALONE:%=--ignore=%)
	$(PY) -m pytest -m heavy $(ALONE)

check: $(DEV) ## lint, types, import contracts
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m pyright
	$(PY) -c "from importlinter.cli import lint_imports_command as check; check()"

format: $(DEV) ## let ruff set the code
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: $(DEV) ## ours beside the others, each in an environment of its own; half an hour
	$(PY) -m benchmarks.bench

bench-quick: $(DEV) ## ours, the openai package and aiohttp, against the recorded ratios, and the wires side by side; two minutes
	$(PY) -m benchmarks.quick
	$(PY) -m benchmarks.wires

bench-engine: $(DEV) ## what reading an answer costs
	$(PY) -m benchmarks.output_engine

bench-load: $(DEV) ## 10,000 calls in flight and a soak of 15 minutes; writes docs/reference/load.md
	$(PY) -m benchmarks.load --write

bench-journal: $(DEV) ## what a step of a durable block costs; writes benchmarks/RESULTS-journal.md
	$(PY) -m benchmarks.journal --write

bench-map: $(DEV) ## ten minutes: the map beside three others, and what a kill pays again; writes benchmarks/RESULTS-map.md
	$(PY) -m benchmarks.map_peers

league: $(DEV) ## how right the answers of small models are, ours beside nine others; goes on where it broke off; an hour or two
	$(PY) -m benchmarks.league

growth: $(DEV) ## what grows with messages, tools, chunks, calls in flight
	$(PY) -m benchmarks.growth

ecosystem: $(DEV) ## packages of others beside ours, each in an environment made for it; writes docs/reference/ecosystem.md
	$(PY) -m tests.ecosystem.run --write

faults: $(DEV) ## every fault a service can have, against the four kinds of functions; writes docs/reference/faults.md
	$(PY) -m tests.faults.matrix --write

faults-clients: $(DEV) ## the same through clients of the openai package 2 and 3, each in an environment of its own
	$(PY) -m venv $(VENV)-openai-2 && $(VENV)-openai-2/bin/python -m pip install --quiet --disable-pip-version-check -e ".[dev,all]" "openai<3"
	$(VENV)-openai-2/bin/python -m tests.faults.matrix --client --write
	$(PY) -m tests.faults.matrix --client --write

faults-long: $(DEV) ## 5,000 random servers, 10,000 random conversations per wire
	$(PY) -m pytest tests/faults/test_random_servers.py tests/interface/wires/test_round_trips.py --hypothesis-profile=faults-long

map-long: $(DEV) ## 100,000 rows, and 500 kills in the middle of them
	$(PY) -m tests.batch.checkpoint.kill --rows 100000 --kills 500 --concurrency 100

docs: $(HEAVY) ## the documentation site, in site/
	$(PY) docs/build.py

screenshots: $(HEAVY) ## pictures of the page, in docs/images/
	$(PY) -m tests.viewer.screenshots

release-check: $(DEV) ## what has to hold before a release; an hour
	$(PY) -m tests.release.check

clean: ## remove the environment and all caches of the tools
	rm -rf $(VENV) $(VENV)-openai-2 .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .bench .site site build dist

$(PY):
	"$(PYTHON)" -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or later is needed; say make PYTHON=...")'
	"$(PYTHON)" -m venv $(VENV)

$(DEMO): $(PY) pyproject.toml
	$(PIP) install --quiet -e ".[local]"
	@touch $(DEMO)

# What is installed has to say the version that stands in the package.
$(DEV): $(PY) pyproject.toml SimpleLLMFunc/_version.py
	$(PIP) install --quiet -e ".[dev,all]"
	@touch $(DEV) $(DEMO)

$(HEAVY): $(DEV)
	$(PIP) install --quiet -e ".[dev-heavy]"
	@touch $(HEAVY)
