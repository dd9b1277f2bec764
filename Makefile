# `make help` lists what there is. Everything runs in the environment that is active.

PYTHON ?= python
CODE = src tests benchmarks docs examples tools

.DEFAULT_GOAL := help
.PHONY: help install check format lint types imports docs test test-slow test-long test-docs test-models test-vllm test-llama test-clients test-beside test-exports coverage mutate bench build release clean ready ci

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

install: ## Install for development, with the versions we develop with
	$(PYTHON) -m pip install -c constraints.txt -e '.[dev]'

check: format lint types imports test ## Everything a change must pass, but the slow tests

ready: lint imports types docs ## What a change needs before it is pushed, in at most six minutes: the checks, and the fast tests of what it touches
	$(PYTHON) -m tools.ready

format: ## Lay out the code
	$(PYTHON) -m ruff format $(CODE)

lint: ## Find mistakes and layout that `make format` would change
	$(PYTHON) -m ruff check $(CODE)
	$(PYTHON) -m ruff format --check $(CODE)

types: ## Check types, strictly
	$(PYTHON) -m mypy

imports: ## Check that imports point one way
	lint-imports

docs: ## Build the site of the docs into build/site/; any broken link fails
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict --quiet

test: ## Run the tests that take seconds
	$(PYTHON) -m pytest -n auto

test-slow: ## Run the tests that take longer
	$(PYTHON) -m pytest -m 'slow and not long and not vllm and not llama' -n auto --dist worksteal

test-long: ## Run fast and slow tests with random examples and faults that differ from run to run, and more of them (nightly)
	$(PYTHON) -m pytest -m 'not vllm and not llama' -n auto --dist worksteal --hypothesis-profile=long

test-docs: ## Run the examples of README and docs
	$(PYTHON) -m pytest -m 'slow or not slow' tests/test_docs.py

test-models: ## Compare every causal family of transformers, made tiny, with plain passes of the library (takes ten minutes)
	$(PYTHON) -m benchmarks models --page

test-vllm: ## Run the tests of the vLLM backend, in an environment of their own that this makes once
	.ci/vllm .venv-vllm

test-llama: ## Run the tests against a llama.cpp server, in an environment of its own that this compiles once
	.ci/llama .venv-llama

test-clients: ## Run the tests of other clients (openai-js, MCP's JS SDK, LangChain), in environments of their own that this makes once
	.ci/clients .clients

test-beside: ## Run the tests of LangChain, Haystack, LlamaIndex, search servers and Ray, in an environment on top of this one that this makes once (ONLY="adapters servers ray")
	.ci/beside .venv-beside $(ONLY)

test-exports: ## Open what we export in Inspect and RAGAS, in environments of their own that this makes once
	.ci/exports .exports

coverage: ## Run the tests that take seconds, and say which lines none of them runs
	$(PYTHON) -m pytest -n auto --cov --cov-report=term

mutate: ## Say which small mistakes no test notices (takes an hour): see tools/mutate.py
	$(PYTHON) -m tools.mutate --out mutations.json
	$(PYTHON) -m tools.mutate --report mutations.json

bench: ## List the benchmarks, or run some: make bench ONLY='NAME ...'
	$(PYTHON) -m benchmarks $(ONLY)

build: ## Build wheel, source distribution, bill of materials, notes and checksums of the last commit into dist/
	$(PYTHON) -m tools.release --artefacts dist

release: ## Make a version of the last commit: make release VERSION=0.2.0; with DRY=1 nothing changes
	$(PYTHON) -m tools.release $(VERSION) $(if $(DRY),--dry-run)

clean: ## Remove what tools leave behind
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage mutations.json src/*.egg-info

ci: ## What CI does: .ci/run in a clone of the last commit; the commit's hash stands in .git/ci-passed once it passes
	.ci/clone
