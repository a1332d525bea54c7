# `make demo` and `make test` set everything up by themselves; `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS := $(VENV)/.docs

.PHONY: help demo browser test check docs workflows format bench chaos fuzz hostile audit clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "bangs needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

$(DOCS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $(DOCS)

demo: $(READY) ## watch soft labels lift a graph neural network on a graph with few labels
	$(BIN)/bangs demo

browser: ## Chromium for the tests of the page, where it is missing and may be installed
	@.ci/browser

test: $(READY) browser ## the whole test run, with coverage
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --cov --cov-report=term --cov-fail-under=90

check: $(READY) ## format, lint, types, import contracts, workflow files, documentation, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) workflows docs
	$(MAKE) test

docs: $(DOCS) ## the documentation as a site, in site/; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

workflows: $(READY) ## the files of GitHub and of the citation, held to their schemas
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema custom.github-workflows-require-timeout .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/idea.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

format: $(READY) ## put every file into the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## ratios against plain implementations, side by side; docs/results/benchmarks.md has the whole list
	$(BIN)/python benchmarks/training.py --presets paper
	$(BIN)/python benchmarks/selection.py --cases cora lastfm
	$(BIN)/python benchmarks/estimators.py --reference 40
	$(BIN)/python benchmarks/end_to_end.py --rounds 2 --every 50

chaos: $(READY) ## 200 kills at random moments: nothing lost, nothing different (ten minutes)
	CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 $(BIN)/python -m tests.integration.chaos --kills 200

fuzz: $(READY) ## 20,000 damaged inputs: each is read or refused in a sentence (ten minutes)
	CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --inputs 20000

hostile: $(READY) ## 3,000 attacks by signals, full disks, strangers' files and misuse: nothing lost, nobody deceived (an hour)
	CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 $(BIN)/python -m tests.hostile --cases 3000 --seed 0

audit: $(READY) ## what bandit says of the code, and the package index of the packages it is pinned to
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml src
	$(BIN)/python -m tests.project.audit constraints.txt

clean: ## remove what the build left
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
