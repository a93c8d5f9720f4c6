# make help lists what there is to make; all of it works on a fresh checkout.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ZIG := $(CURDIR)/$(BIN)/python -m ziglang
STAMP := $(VENV)/.installed
# Two workers by default: the tests start servers of their own and the smallest machine has two cores.
TEST_WORKERS ?= 2

# helm is a folder as well.
.PHONY: help helm chart-readme setup run serve test test-torch native programs torture lint bench fuzz fmt clean
setup: $(STAMP) ## make .venv with everything in it

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/pip install --quiet --editable '.[cli,node]' --group dev
	touch $@

help: ## this list
	@awk -F ':.* ## ' '/^[a-z-]+:.* ## / {printf "%-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

run: setup ## the main job on this machine, without a cluster
	$(BIN)/python -m webhook.demo docs/examples
	$(BIN)/python -m tests.demo docs/examples

serve: setup ## the webhook on 127.0.0.1:8443, with certificates of its own making
	$(BIN)/python -m webhook --host 127.0.0.1 --port 8443

test: setup programs helm ## all tests; PYTEST_ARGS=... goes to pytest
	$(BIN)/python -m pytest -n $(TEST_WORKERS) $(PYTEST_ARGS)

# Helm 3 and 4 for the tests of the chart; without a network those are skipped, though not in CI.
helm: setup ## Helm 3 and 4, for the tests of the chart
	$(BIN)/python -m tests.support.helm || [ -z "$$CI" ]

chart-readme: setup ## write the chart's table of values
	$(BIN)/python -m tests.support.chart_readme

# The steps of Containerfile, run for real without a container engine, and the programs in what comes out. Needs root.
.PHONY: image-check
image-check: setup ## the steps of Containerfile, run for real (root)
	$(BIN)/python -m tests.support.image

# Against a real API server: the one that KUBECONFIG names, else etcd and kube-apiserver from KUBEBUILDER_ASSETS.
.PHONY: test-cluster
test-cluster: setup ## the tests that need a real API server
	VNPU_TEST_CLUSTER=1 $(BIN)/python -m pytest -m cluster $(PYTEST_ARGS)

# The wheel of torch_npu on the simulated NPU, in a virtual environment of its own or by a Python that has it. Some 2 GB
# are downloaded, and more where PIP_EXTRA_INDEX_URL does not name an index with torch for the processor alone.
TORCH_VENV := build/torch
TORCH_PYTHON ?= $(TORCH_VENV)/bin/python

test-torch: setup programs $(filter $(TORCH_VENV)/bin/python,$(TORCH_PYTHON)) ## torch_npu on the simulated NPU (2 GB)
	$(MAKE) -C tests/npu_sim torch ZIG='$(ZIG)' \
	  TORCH_NPU="$$($(TORCH_PYTHON) -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/torch_npu"
	$(BIN)/python -m tests.torch.judge $(TORCH_PYTHON)

$(TORCH_VENV)/bin/python:
	$(PYTHON) -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/pip install --quiet torch==2.13.0 torch-npu==2.13.0 numpy PyYAML || { rm -rf $(TORCH_VENV); exit 1; }

native: setup ## libvnpu.so, limiter and the rest, for both machines
	$(MAKE) -C interceptor -j2 $@ ZIG='$(ZIG)'

# With it come the runtimes of the sanitizers; tests with them are skipped without.
SYSTEM_COMPILER := $(shell command -v cc)

# All that the tests run. Built here and not by the first test that asks: a cold compiler takes longer than a test may.
programs: setup ## all that the tests run
	$(MAKE) -C interceptor -j2 native testing units $(if $(SYSTEM_COMPILER),sanitized) ZIG='$(ZIG)'
	$(MAKE) -C tests/npu_sim -j2 all aarch64 $(if $(SYSTEM_COMPILER),sanitize) ZIG='$(ZIG)'

torture: setup native ## limiters and workloads that die; SECONDS=60 PROCESSES=64
	$(BIN)/python -m tests.support.torture $(or $(SECONDS),60) $(or $(PROCESSES),64)

lint: setup ## ruff, mypy, import contracts, clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h')

bench: setup programs ## figures against their ranges; FIGURES=... for some
	$(BIN)/python -m tests.bench.run $(FIGURES)

fuzz: setup ## random bytes into the webhook; SECONDS=600
	$(BIN)/pip install --quiet 'atheris>=3.0'
	$(BIN)/python tests/fuzz/fuzz_review.py -max_total_time=$(or $(SECONDS),600)

fmt: setup ## format and fix what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove what was made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
