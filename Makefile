# Only Python 3.11 (or newer) and make are needed: `make demo`, `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
INSTALLED := .venv/installed
DEMO := runs/demo
# Without the checks of tensor shapes, which slow down training; unit and property tests have them.
UNHOOKED := -o addopts="--import-mode=importlib --strict-markers --strict-config -ra"

.PHONY: demo test check quick lint coverage docs format dist clean
.DELETE_ON_ERROR:

demo: export OMP_NUM_THREADS ?= 1  # more threads are slower with such small tensors
demo: $(INSTALLED)  ## install, run the bundled model, then train and score a small one
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	$(BIN)/spandet predict bio-en recipes/demo/abstract.txt -o $(DEMO)/abstract.jsonl
	$(BIN)/spandet view $(DEMO)/abstract.jsonl
	$(BIN)/spandet generate --sentences 1200 --seed 1 --domain bio -o $(DEMO)/train.jsonl
	$(BIN)/spandet generate --sentences 200 --seed 2 --domain bio -o $(DEMO)/dev.jsonl
	$(BIN)/spandet stats $(DEMO)/train.jsonl
	$(BIN)/spandet train recipes/demo/locate-and-label.toml --train $(DEMO)/train.jsonl --dev $(DEMO)/dev.jsonl --out $(DEMO)/model
	@echo "The transcript of the bovine IL-9 gene was detected in activated B cells expressing CD28." > $(DEMO)/text.txt
	$(BIN)/spandet predict $(DEMO)/model $(DEMO)/text.txt | $(BIN)/spandet view -
	$(BIN)/spandet generate --sentences 200 --seed 3 --domain bio -o $(DEMO)/test.jsonl
	$(BIN)/spandet predict $(DEMO)/model $(DEMO)/test.jsonl -o $(DEMO)/predicted.jsonl
	$(BIN)/spandet view $(DEMO)/test.jsonl $(DEMO)/predicted.jsonl --limit 2
	$(BIN)/spandet view $(DEMO)/test.jsonl $(DEMO)/predicted.jsonl -o $(DEMO)/view.html
	$(BIN)/spandet evaluate $(DEMO)/test.jsonl $(DEMO)/predicted.jsonl
	@echo && echo "Open $(DEMO)/model/report.html and $(DEMO)/view.html in a browser."

# One thread per process: two test processes already use both cores.
check test quick coverage: export OMP_NUM_THREADS = 1

test: check  ## install, then every check and test
	$(BIN)/pytest -q -n 2 --dist loadfile -m slow $(UNHOOKED)

check: $(INSTALLED)  ## lint and quick tests in parallel, because lint uses one core
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint quick

quick: $(INSTALLED)  ## all tests that are not marked slow
	$(BIN)/pytest -q -n 2 -m "not slow"

lint: $(INSTALLED)  ## formatter, linter, types, dependency rule
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

coverage: $(INSTALLED)  ## branch coverage of what `make check` runs
	$(BIN)/pytest -q -n 2 -m "not slow" --cov --cov-report=term

docs: export NO_MKDOCS_2_WARNING = 1
docs: $(INSTALLED)  ## the documentation as a site in site/
	$(BIN)/mkdocs build --strict

format: $(INSTALLED)  ## format the code and fix lint errors
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

dist: $(INSTALLED)  ## a wheel and a source archive in dist/
	$(BIN)/python -m build --no-isolation --outdir dist .

clean:
	rm -rf .venv dist site runs/demo .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis

# PIP_CONSTRAINT also pins the versions in isolated builds.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "spandet needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,docs,onnx,ray,serve,spacy]'
	touch $@
