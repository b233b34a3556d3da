# `make` alone lists what there is. Everything is installed into .venv beside this file, from locks with hashes.
# Paths are relative throughout, so that a checkout in a folder with a space in its name works.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
# Recipes of one goal rely on one another's order, and Spark wants the machine for itself.
.NOTPARALLEL:

# What pip, Spark and our tests must not take over from the shell that calls make. Tests start hundreds of processes, each of
# which would compile this package again without its bytecode.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONDONTWRITEBYTECODE

ARGS ?=
VENV := .venv
IN_VENV := $(VENV)/bin/python
# The sdist of pyspark is built with the setuptools of the lock: an isolated build would fetch one without a hash. The locks
# are whole, so that nothing has to be resolved.
INSTALL := -m pip install --quiet --disable-pip-version-check --no-input --require-hashes --no-build-isolation --use-pep517 --no-deps
# A virtual environment holds absolute paths, so one that was moved or copied with its checkout is made anew.
HERE := $(shell pwd | cksum | cut -d' ' -f1)

.PHONY: help setup setup-test demo doctor zip cluster-env dist test test-version test-versions test-cluster test-faults test-stores test-peers test-peers-torch test-versions lint types quick unit pytest format docs site notebooks bench bench-scale bench-peers published lock clean

help:  ## List the goals
	@echo "rankeval-spark: make GOAL"
	@sed -nE 's/^([a-z-]+):[^#]*## (.+)$$/  \1	\2/p' Makefile | expand -t 20
	@echo
	@echo "  PYTHON=/path/to/python3.12  picks the Python of a new .venv;  ARGS='...'  goes to the command of the goal."

# ---- the environment; each step leaves a stamp and is instant when repeated ------------------------------------

setup: $(VENV)/.has-project  ## Make .venv with what a run needs
	@:

setup-test: $(VENV)/.has-test  ## The same, with what the tests need
	@:

$(VENV)/.made-at-$(HERE):
	@echo "==> making $(VENV)"
	@python=$$(PYTHON="$(PYTHON)" bash requirements/find-python); echo "    with $$python"; rm -rf $(VENV); "$$python" -m venv $(VENV)
	@touch $@

$(VENV)/.has-build: requirements/build.txt $(VENV)/.made-at-$(HERE)
	@echo "==> installing the build tools (requirements/build.txt)"
	@$(IN_VENV) $(INSTALL) -r requirements/build.txt
	@touch $@

$(VENV)/.has-run: requirements/run.txt $(VENV)/.has-build
	@echo "==> installing what a run needs (requirements/run.txt; pyspark is 450 MB, the first time takes a minute or two)"
	@$(IN_VENV) $(INSTALL) -r requirements/run.txt
	@touch $@

$(VENV)/.has-project: pyproject.toml $(VENV)/.has-run
	@echo "==> installing rankeval-spark, editable"
	@$(IN_VENV) -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.has-test: requirements/test.txt $(VENV)/.has-project
	@echo "==> installing what the tests need (requirements/test.txt)"
	@$(IN_VENV) $(INSTALL) -r requirements/test.txt
	@touch $@

# ---- to use it -------------------------------------------------------------------------------------------------

demo: setup  ## Evaluate three models on MovieLens 100K and show the result
	@$(IN_VENV) -m rankeval_spark demo $(ARGS)

doctor: setup  ## Check Java, the jars, Python and the disk of this machine
	@$(IN_VENV) -m rankeval_spark doctor $(ARGS)

zip:  ## Make dist/rankeval_spark.zip, for spark-submit --py-files; any Python will do
	@mkdir -p dist && rm -f dist/rankeval_spark.zip
	@find rankeval_spark -name __pycache__ -type d -prune -exec rm -rf {} +
	@"$$(PYTHON="$(PYTHON)" bash requirements/find-python)" -m zipfile -c dist/rankeval_spark.zip rankeval_spark && echo "==> dist/rankeval_spark.zip"

# The environment is made anew: packed is what is in it. It holds no Spark and no Java, which the cluster has.
cluster-env: zip  ## Make dist/environment.tar.gz too, the Python packages of workers that have none, for spark-submit --archives
	@rm -rf build/workers dist/environment.tar.gz && mkdir -p build
	@"$$(PYTHON="$(PYTHON)" bash requirements/find-python)" -m venv build/workers
	@build/workers/bin/python $(INSTALL) -r requirements/build.txt
	@build/workers/bin/python $(INSTALL) -r requirements/workers.txt
	@build/workers/bin/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation .
	@build/workers/bin/venv-pack --quiet --force --prefix build/workers --output dist/environment.tar.gz
	@echo "==> dist/environment.tar.gz"

# ---- to work on it ---------------------------------------------------------------------------------------------

test: setup-test  ## Lint, types and all tests but those of test-faults and test-stores
	@$(MAKE) --no-print-directory lint types pytest

lint: setup-test  ## ruff: rules and format
	@echo "==> ruff"
	@$(IN_VENV) -m ruff check .
	@$(IN_VENV) -m ruff format --check .

types: setup-test  ## mypy --strict
	@echo "==> mypy"
	@$(IN_VENV) -m mypy

# Two processes at a time, each with a Spark session of its own where a test asks for one (some 3 GB). Each begins with its
# half of the tests in their order; the one that has ended takes half of what is left to the other.
WORKERS ?= 2
IN_PARALLEL := -n $(WORKERS) --dist worksteal

# What publishes nights, calls commands or starts processes, and the many random cases, take the minutes.
NOT_QUICK := results night cli session measures/test_thousand_cases.py

quick: setup-test  ## Rules, and the tests of numbers, policies, inputs and configs without drawn examples, in a minute
	@$(MAKE) --no-print-directory lint
	@echo "==> pytest, what is quick"
	@$(IN_VENV) -m pytest -q tests/unit tests/evaluate tests/meta $(addprefix --ignore=tests/unit/,$(NOT_QUICK)) -m "not slow and not hypothesis" $(IN_PARALLEL) $(ARGS)

unit: setup-test  ## The tests that start no JVM, in minutes
	@echo "==> pytest, without Spark"
	@$(IN_VENV) -m pytest tests/unit tests/evaluate tests/meta rankeval_spark $(IN_PARALLEL) $(ARGS)

pytest: setup-test  ## All tests but those of test-faults and test-stores; ARGS="tests/spark/session/test_session.py -k delta" for some
	@echo "==> pytest"
	@$(IN_VENV) -m pytest $(or $(ARGS),-m "not faults and not stores" $(IN_PARALLEL))

test-faults: setup-test  ## The tests that kill, stop and starve runs, and 10,000 schedules, 45 minutes; ARGS="-m in_ci" for one of each kind
	@echo "==> pytest, with faults"
	@$(IN_VENV) -m pytest tests/faults -n $(WORKERS) --dist loadfile $(ARGS)

# Azurite needs node; its tests are skipped where there is none.
AZURITE := build/node_modules/.bin/azurite-blob

test-stores: setup-test $(VENV)-store-servers/.has-peers  ## The tests on servers of object stores; ARGS="-m in_ci" for one fault of each kind
	@if command -v npm >/dev/null && [ ! -e $(AZURITE) ]; then echo "==> installing azurite into build"; \
	  npm install --silent --fetch-timeout=20000 --fetch-retries=1 --no-audit --no-fund --no-save --prefix build azurite@3.37.0 || echo "    without it: npm could not"; fi
	@echo "==> pytest, on servers of object stores"
	@$(IN_VENV) -m pytest tests/stores -n $(WORKERS) --dist worksteal $(ARGS)

test-cluster: setup-test  ## Only the tests on a standalone cluster of their own
	@echo "==> pytest, on a cluster"
	@$(IN_VENV) -m pytest -m cluster tests/cluster $(ARGS)

# From their own folder on: the settings and fixtures of the other tests belong to the other environment.
AGAINST_PEERS := -m pytest -c /dev/null --rootdir=. --import-mode=importlib -p no:cacheprovider -ra

test-peers: $(VENV)-test-peers/.has-peers $(VENV)-peers/.has-peers  ## Presets and docs/other-tools.md against the tools, in two environments (2 GB)
	@echo "==> pytest, against other tools"
	@PYTHONPATH=. $(VENV)-test-peers/bin/python $(AGAINST_PEERS) --confcutdir=tests/peers tests/peers $(ARGS)
	@echo "==> pytest, against the tools that bench-peers times"
	@PYTHONPATH=. $(VENV)-peers/bin/python $(AGAINST_PEERS) --confcutdir=tests/peers_timed tests/peers_timed $(ARGS)

test-peers-torch: $(VENV)-test-peers-torch/.has-peers  ## The same for tools that bring torch, in one more (7 GB)
	@echo "==> pytest, against other tools, with torch"
	@PYTHONPATH=. $(VENV)-test-peers-torch/bin/python $(AGAINST_PEERS) --confcutdir=tests/peers_torch tests/peers_torch $(ARGS)

# The Sparks that are supported: once with the driver in the process, once on a Spark Connect server.
SPARKS ?= 4.0 4.1 4.2
# 0: the driver in the process; 1: a Spark Connect server.
DRIVERS ?= 0 1

# With the driver in the process, the other tests show the same on this Spark.
test-version: setup-test  ## The set of test-versions on the Spark of .venv alone, through Spark Connect
	@echo "==> pytest, the set of test-versions, through Spark Connect"
	@PYTHONPATH=. RANKEVAL_TEST_CONNECT=1 $(IN_VENV) $(AGAINST_PEERS) --confcutdir=tests/versions tests/versions $(ARGS)

test-versions: $(SPARKS:%=$(VENV)-spark-%/.has-peers)  ## What users do, on each supported Spark; SPARKS=4.0 for one (1.3 GB each)
	@for spark in $(SPARKS); do for connect in $(DRIVERS); do \
	  echo "==> pytest, on Spark $$spark$$([ $$connect = 0 ] || echo ', through Spark Connect')"; \
	  PYTHONPATH=. RANKEVAL_TEST_CONNECT=$$connect $(VENV)-spark-$$spark/bin/python $(AGAINST_PEERS) --confcutdir=tests/versions tests/versions $(ARGS); \
	done; done

# numpy below 2, for which some of the tools ask, has no wheels for a newer Python.
$(VENV)-test-peers/.has-peers $(VENV)-test-peers-torch/.has-peers $(VENV)-peers/.has-peers: export NEWEST := 12

$(VENV)-%/.has-peers: requirements/%.txt requirements/build.txt
	@echo "==> making $(@D) ($<)"
	@rm -rf $(@D); "$$(PYTHON="$(PYTHON)" bash requirements/find-python)" -m venv $(@D)
	@$(@D)/bin/python $(INSTALL) -r requirements/build.txt
	@$(@D)/bin/python $(INSTALL) -r $<
	@touch $@

format: setup-test  ## Let ruff rewrite what it can
	@$(IN_VENV) -m ruff check --fix .
	@$(IN_VENV) -m ruff format .

docs: setup-test  ## Regenerate the pages that are made from the code
	@$(IN_VENV) docs/generate.py $(ARGS)

site: $(VENV)-docs/.has-peers  ## Build the documentation as a site into build/site; warnings are errors
	@echo "==> mkdocs"
	@NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict $(ARGS) && echo "==> build/site/index.html"

notebooks: setup-test  ## Run the notebooks of docs, and store what they show; ARGS=quickstart for one
	@$(IN_VENV) -m tests.support.notebooks $(ARGS)

bench: setup-test  ## Time the whole evaluation against its floor, on 10 million rows
	@$(IN_VENV) -m benchmarks.bench $(ARGS)

bench-scale: setup-test  ## Time rows that are made on the fly; ARGS="rows --rows 1e9" for a billion (docs/scale.md)
	@$(IN_VENV) -m benchmarks.scale $(ARGS)

bench-peers: $(VENV)-peers/.has-peers  ## Time other libraries on the same rows, in an environment of their own
	@$(VENV)-peers/bin/python -m benchmarks.peers $(ARGS)

published: $(VENV)-published/.has-peers  ## Make published tables of other tools again (docs/reproduced.md); ARGS=cornac for one
	@PYTHONPATH=. $(VENV)-published/bin/python -m benchmarks.published $(ARGS)

$(VENV)-peers/.has-peers: requirements/peers.txt requirements/build.txt
	@echo "==> making $(VENV)-peers (requirements/peers.txt)"
	@rm -rf $(VENV)-peers; "$$(PYTHON="$(PYTHON)" bash requirements/find-python)" -m venv $(VENV)-peers
	@$(VENV)-peers/bin/python $(INSTALL) -r requirements/build.txt
	@$(VENV)-peers/bin/python $(INSTALL) -r requirements/peers.txt
	@$(VENV)-peers/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# ---- to maintain it --------------------------------------------------------------------------------------------

# One file serves Python 3.11 to 3.13 on every platform and names no index. Versions that still fit are kept.
COMPILE := UV_PYTHON_DOWNLOADS=never $(VENV)-lock/bin/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-header --no-annotate

lock: $(VENV)-lock/.made  ## Bring requirements/*.txt up to pyproject.toml; ARGS=--upgrade for newer versions
	@echo "==> locking"
	@printf '%s\n' pip setuptools wheel hatchling hatch-fancy-pypi-readme | $(COMPILE) $(ARGS) --output-file requirements/build.txt -
	@$(COMPILE) $(ARGS) --extra java --extra spark --extra report --extra stores --output-file requirements/run.txt pyproject.toml
	@echo venv-pack | $(COMPILE) $(ARGS) --extra stores --constraint requirements/run.txt --output-file requirements/workers.txt pyproject.toml -
	@$(COMPILE) $(ARGS) --extra java --extra test --constraint requirements/run.txt --output-file requirements/test.txt pyproject.toml
	@$(COMPILE) $(ARGS) --extra java --extra spark --override requirements/peers-overrides.in --output-file requirements/peers.txt pyproject.toml requirements/peers.in
	@for spark in $(SPARKS); do \
	  $(COMPILE) $(ARGS) --extra java --extra spark --output-file requirements/spark-$$spark.txt pyproject.toml requirements/spark-$$spark.in; \
	done
	@$(COMPILE) $(ARGS) --override requirements/test-peers-overrides.in --output-file requirements/test-peers.txt requirements/test-peers.in
	@$(COMPILE) $(ARGS) --output-file requirements/docs.txt requirements/docs.in
	@$(COMPILE) $(ARGS) --constraint requirements/build.txt --output-file requirements/dist.txt requirements/dist.in
	@$(COMPILE) $(ARGS) --output-file requirements/store-servers.txt requirements/store-servers.in
	@$(COMPILE) $(ARGS) --constraint requirements/run.txt --output-file requirements/published.txt pyproject.toml requirements/published.in
	@$(COMPILE) $(ARGS) --override requirements/test-peers-torch-overrides.in --output-file requirements/test-peers-torch.txt requirements/test-peers-torch.in

$(VENV)-lock/.made:
	@"$$(PYTHON="$(PYTHON)" bash requirements/find-python)" -m venv $(VENV)-lock
	@$(VENV)-lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	@touch $@

# Two builds of one commit have the same bytes: hatchling writes its own time, or SOURCE_DATE_EPOCH, on every file.
dist: $(VENV)-dist/.has-peers  ## Make the wheel and the source distribution in dist, ready for an index
	@rm -f dist/rankeval_spark-*
	@$(VENV)-dist/bin/python -m build --quiet --no-isolation --outdir dist .
	@$(VENV)-dist/bin/python -m twine --no-color check --strict dist/rankeval_spark-*
	@$(VENV)-dist/bin/check-wheel-contents dist/rankeval_spark-*.whl

clean:  ## Remove the environments and everything that was generated; fetched files stay in the cache
	rm -rf $(VENV) $(VENV)-peers $(VENV)-test-peers $(VENV)-test-peers-torch $(VENV)-docs $(VENV)-dist $(VENV)-store-servers $(VENV)-published $(SPARKS:%=$(VENV)-spark-%) $(VENV)-lock build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
