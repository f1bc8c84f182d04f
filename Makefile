# Everything a person needs: make demo, make test. The rest is for developers.
PYTHON ?= python3
BIN := .venv/bin
export PIP_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint contract bench faults fuzz load docs figures bundle check-bundle check-wheel clean

demo: .venv/run.stamp  ## measure the embedded model on the embedded corpus, and write a report page
	$(BIN)/headscope run --measures positions,tokens,entropy,saliency,relations,coreference,distances --out demo/run --overwrite
	$(BIN)/headscope flow --measures A,G --norm sum --limit 150 --items 150 --out demo/flow --overwrite
	$(BIN)/headscope report demo/run demo/flow

test: .venv/dev.stamp  ## run all tests, one worker a core
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto --maxprocesses 8 --dist worksteal

lint: .venv/dev.stamp  ## style, types, the direction of imports, and the word list of the texts
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python docs/tools/words.py

contract: .venv/dev.stamp  ## compare captured attention with eager for every architecture of the installed transformers; writes the table of docs/models.md
	$(BIN)/python tests/contract/run_contract.py $(CONTRACT)

bench: .venv/dev.stamp  ## speed and memory as one table of ratios, also in benchmarks/results; BENCH="--quick" for a try
	$(BIN)/python benchmarks/bench.py $(BENCH)

docs: .venv/docs.stamp  ## build the documentation site, which works offline; a broken link fails. The pages to try need a run, kept in demo/try
	OMP_NUM_THREADS=1 $(BIN)/python docs/tools/try_it.py
	$(BIN)/zensical build --strict --clean
	$(BIN)/python docs/tools/check.py site
	@echo "$(CURDIR)/site/index.html"

figures: .venv/dev.stamp  ## make the documentation's figures of the embedded model again; with HEADSCOPE_DATA some more
	$(BIN)/python docs/tools/figures.py
	$(BIN)/python docs/tools/papers.py --thumbnails

faults: .venv/dev.stamp  ## kills, full disks, damage, changes, signals: an hour or more, best as root; FAULTS="--quick" for a try
	OMP_NUM_THREADS=1 $(BIN)/python tests/faults/run_faults.py $(FAULTS)

fuzz: .venv/dev.stamp  ## damaged and hostile input for every reader, 200,000 times or N=...; goes on where it stopped
	OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz --inputs $(or $(N),200000) $(FUZZ)

load: .venv/dev.stamp  ## fifty users of the web app at once, among others who mean no good
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/serve_load.py $(LOAD)

bundle: frontend/node_modules/.stamp  ## build the pages' JavaScript into the package; needs Node 20 and npm
	cd frontend && npm run --silent check && npm run --silent build

check-bundle: frontend/node_modules/.stamp  ## fail if the committed JavaScript is not what its sources give
	cd frontend && npm run --silent check && npm run --silent build -- --out node_modules/.rebuilt.js
	cmp frontend/node_modules/.rebuilt.js src/headscope/views/headscope.js

check-wheel: .venv/dev.stamp  ## build the wheel, install it away from the sources, and run the README's commands with it
	$(BIN)/python tests/distribution/check_wheel.py

frontend/node_modules/.stamp: frontend/package.json frontend/package-lock.json
	cd frontend && npm ci --no-audit --no-fund --silent
	touch $@

.venv/run.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/dev.stamp: .venv/run.stamp
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

.venv/docs.stamp: .venv/run.stamp
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

clean:
	rm -rf .venv demo docs/try site .cache frontend/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
