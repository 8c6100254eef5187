PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check lint types layers coverage docs docs-serve everything bench interop sdk reliability load soak worlds fuzz clean

demo: .venv/package  ## Install, and make the paper's Table 1, shortened, from data that ship with the package
	@echo "Kernels are compiled on the first run, which takes a minute or two, and kept for the next."
	$(BIN)/rbmle reproduce table-1 --quick

test: .venv/dev  ## Install, and run the tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: lint types layers test  ## Format, lint, types, layers and tests; CI also builds the docs

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/dev
	$(BIN)/mypy

layers: .venv/dev
	$(BIN)/lint-imports

coverage: .venv/everything  ## Run the tests, and show which lines and branches of src they do not reach
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term:skip-covered --cov-report=html:results/coverage

docs: .venv-docs/ready  ## Build the documentation site into docs/_build/html
	PATH="$(CURDIR)/.venv-docs/bin:$$PATH" .venv-docs/bin/python -m sphinx -W --keep-going -q -j 2 docs docs/_build/html
	@echo "Open docs/_build/html/index.html, or run make docs-serve."

docs-serve: docs  ## Show the site at http://127.0.0.1:8000
	.venv-docs/bin/python -m http.server --bind 127.0.0.1 --directory docs/_build/html 8000

everything: .venv/everything tests/sdk/js/node_modules/.package-lock.json  ## Install every library that some test needs

bench: .venv/dev  ## Measure speed, side by side with C
	$(BIN)/python -m benchmarks

interop: .venv/interop  ## Test the adapters with the libraries that they adapt
	$(BIN)/python -m pytest tests/interop tests/test_examples.py src/rbmle/interop -rs

sdk: .venv/dev tests/sdk/js/node_modules/.package-lock.json  ## Let Personalizer's four clients make every call
	$(BIN)/python -m pytest tests/sdk -rs

reliability: .venv/dev  ## Kill, stop, pause, starve and repeat the service, for about half an hour
	$(BIN)/python -m tests.reliability.killing --kills 100 --events 100000
	$(BIN)/python -m tests.reliability.killing --kills 20 --events 10000 --wait PT5S
	$(BIN)/python -m tests.reliability.killing --kills 20 --events 10000 --wait PT5S --settle deadline
	$(BIN)/python -m tests.reliability.killing --kills 20 --events 10000 --wait PT5S --settle delayed
	$(BIN)/python -m tests.reliability.parts --kills 12 --events 10000 --wait PT5S --settle deadline
	$(BIN)/python -m tests.reliability.parts --kills 12 --events 10000 --wait PT5S --settle delayed
	$(BIN)/python -m tests.reliability.parts --kills 100 --events 100000
	$(BIN)/python -m tests.reliability.pausing --pauses 12
	$(BIN)/python -m tests.reliability.databases --kills 50 --events 50000
	$(BIN)/python -m tests.reliability.disks --times 20
	$(BIN)/python -m tests.reliability.repeating --rounds 20 --events 50
	$(BIN)/python -m tests.reliability.stopping --stops 50
	$(BIN)/python -m tests.reliability.starting --events 1000000
	$(BIN)/python -m tests.reliability.trickling --connections 300
	$(BIN)/python -m tests.contract.log_power_cut 1000

load: .venv/dev  ## Load the service for 30 minutes, side by side with an echo
	$(BIN)/python -m benchmarks.service --minutes 30

soak: .venv/dev  ## Follow the memory of each process at 10 and at 400 events a second, for 40 minutes
	$(BIN)/python -m benchmarks.service.soak --rate 10 --minutes 30 --picture results/soak-10.png
	$(BIN)/python -m benchmarks.service.soak --rate 400 --minutes 10 --picture results/soak-400.png

worlds: .venv/vw  ## Mean reward in eight worlds, side by side with Vowpal Wabbit, for about an hour
	$(BIN)/python -m benchmarks.worlds

fuzz: .venv/fuzz  ## Send what nobody would send, and compare choices with the logged probabilities
	$(BIN)/python -m tests.fuzz

clean:
	rm -rf .venv .venv-docs docs/_build docs/gallery docs/sg_execution_times.rst build dist results .mypy_cache .ruff_cache .hypothesis

.venv/package: pyproject.toml
	test -d .venv || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[experiments]'
	touch $@

.venv/dev: .venv/package
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

.venv/vw: .venv/dev
	$(BIN)/python -m pip install --quiet --editable '.[vw]'
	touch $@

.venv/interop: .venv/dev
	$(BIN)/python -m pip install --quiet torch==2.13.0  # the version that they were tested with
	$(BIN)/python -m pip install --quiet --editable '.[sklearn,gymnasium,coba,torch,river,mabwiser,vw]'
	touch $@

.venv/everything: .venv/interop .venv/fuzz
	$(BIN)/python -m pip install --quiet --editable '.[judges,pmlb,ray]'
	touch $@

.venv-docs/ready: pyproject.toml
	test -d .venv-docs || $(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet torch==2.13.0  # without CUDA; an example has a PyTorch network
	.venv-docs/bin/python -m pip install --quiet --editable '.[docs]'
	touch $@

.venv/fuzz: .venv/dev
	$(BIN)/python -m pip install --quiet 'schemathesis>=4.32,<5'
	touch $@

tests/sdk/js/node_modules/.package-lock.json: tests/sdk/js/package-lock.json
	npm --prefix tests/sdk/js ci --no-audit --no-fund
