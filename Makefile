# Two commands for a fresh machine with Python 3.11 and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= auto
# Long tests mostly wait for clocks and for other programs.
LONG_WORKERS ?= $(shell echo $$((2 * $$(nproc))))
LOCK := uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
  --no-emit-index-url
# Tests start odcd and odcctl thousands of times; without compiled files each start would compile again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup clients demo test test-long test-soak lint bench pictures docs lock release clean

setup: $(STAMP)

$(STAMP): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "odc needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

# Programs that drive Slurm, which tests/clients runs unmodified.
clients: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/clients.lock

demo: $(STAMP)
	$(BIN)/odcd demo

test: $(STAMP)
	$(BIN)/python -m pytest -q -n $(WORKERS)

# What takes minutes; and beside it all that is SQL once more, on the oldest PostgreSQL that odc runs
# on. Five tests of programs of others may fail once (tests/support/harness/workers.py); how is
# printed.
test-long: $(STAMP)
	@log=$$(mktemp); \
	ODC_TEST_PG=16 nice $(BIN)/python -m pytest -q -n 1 tests/sql >"$$log" 2>&1 & oldest=$$!; \
	trap 'kill $$oldest; rm -f "$$log"; exit 130' INT TERM; \
	status=0; $(BIN)/python -m pytest -q -n $(LONG_WORKERS) --dist loadgroup -m long \
	  --max-suite-reruns 5 --rerun-show-tracebacks --durations=60 || status=$$?; \
	wait $$oldest || status=$$?; \
	echo 'tests/sql on PostgreSQL 16:'; cat "$$log"; rm "$$log"; exit $$status

# Jobs whose processes are killed; many simulated days and states of the queue; 20,000 requests made
# from the API's document; ten minutes of random texts for every parser; half an hour of faults under
# two daemons and one PostgreSQL; 10,000 jobs on 1,000 nodes while everything fails now and then.
# test-long has small ones.
test-soak: $(STAMP)
	ODC_CHAOS_JOBS=100 $(BIN)/python -m pytest -q -n0 -m long tests/e2e/test_chaos.py
	ODC_DEPTH=3 ODC_SIM_SEEDS=20 $(BIN)/python -m pytest -q -n $(WORKERS) -m long tests/sql tests/sim tests/odcd
	ODC_SCHEMA_CASES=20000 $(BIN)/python -m pytest -q -s -n0 -m long tests/attack/test_schema.py
	ODC_FUZZ_S=600 ODC_HUNT=1 $(BIN)/python -m pytest -q -s -n0 -m long tests/attack/test_parsers.py
	ODC_NEMESIS_S=1800 ODC_NEMESIS_LEASE_S=10 $(BIN)/python -m pytest -q -s -m long tests/e2e/test_nemesis.py
	ODC_MAILS=10000 $(BIN)/python -m pytest -q -s -n0 -m long tests/odcd/loops/test_mails.py
	ODC_SOAK_JOBS=10000 ODC_SOAK_NODES=1000 $(BIN)/python -m pytest -q -s -m long tests/kubernetes/test_soak.py

$(VENV)/.lint: $(STAMP) requirements/lint.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/lint.lock
	@touch $(VENV)/.lint

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python .ci/language.py

bench: $(STAMP)
	$(BIN)/python -m benchmarks --write

# The pictures of docs/operating/tour.md, taken by a test in a real Chromium.
pictures: $(STAMP)
	ODC_TEST_PICTURES=docs/images $(BIN)/python -m pytest -q -n0 -m long tests/odcd/page/test_browser.py -k tour

# The pages of docs/reference that are read off the code.
docs: $(STAMP)
	$(BIN)/python -m odcd.reference docs/reference
	$(BIN)/python -m odcd.slurm.reference docs/reference/submit-options.md
	$(BIN)/python -m odcd.slurm.commands.reference docs/reference/slurm-options.md
	$(BIN)/python -m odcctl.reference docs/reference/odcctl.md
	$(BIN)/python -m tests.support.harness.inventory docs/reference/gpu-dev.md

# The lock files: exact versions with hashes. Needs uv (pip install uv).
lock:
	$(LOCK) --python-version 3.11 --group build -o requirements/build.lock
	$(LOCK) --python-version 3.11 --group dev pyproject.toml -o requirements/dev.lock
	$(LOCK) --python-version 3.11 --group lint pyproject.toml -o requirements/lint.lock
	cp requirements/dev.lock requirements/clients.lock  # keeps the versions that fit
	$(LOCK) --python-version 3.11 --group clients pyproject.toml -o requirements/clients.lock
	$(LOCK) --python-version 3.11 --extra k8s --extra aws pyproject.toml -o requirements/image.lock
	$(LOCK) --no-config --python-version 3.12 k8s/images/dev/python.in -o k8s/images/dev/python.lock

# Wheel, sdist, container image, SBOM and SHA256SUMS of the commit's tag, into dist/. For a commit
# without a tag: VERSION=1.2.3. For any working tree: SNAPSHOT=1.
release: $(STAMP)
	$(BIN)/python .ci/release.py $(if $(VERSION),--version '$(VERSION)') $(if $(SNAPSHOT),--snapshot)

clean:
	rm -rf $(VENV) dist build .pytest_cache .ruff_cache .hypothesis
