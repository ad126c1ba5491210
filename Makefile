# Everything needed is made on first use: the virtual environment and, in it, the locked dependencies.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
BROWSER := $(VENV)/.browser
apt = { $(if $(filter 0,$(shell id -u)),,sudo) sh -c \
	'apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $(1)'; }

LOWEST := .venv-lowest

.PHONY: run test test-browser test-lowest bench bench-quick profile soak audit lint lock clean

run: $(INSTALLED) ## Ingest the sample mailbox, ask it a question, serve it
	@$(BIN)/brain demo

test: $(INSTALLED) ## Run the whole suite
	$(BIN)/python -m pytest --cov --cov-report=term

test-browser: $(BROWSER) ## Drive the page in Chromium; its pictures land in tests/browser/screenshots
	$(BIN)/python -m pytest tests/browser

test-lowest: $(INSTALLED) ## Run the whole suite with the oldest versions that pyproject.toml allows
	$(BIN)/pip install --quiet uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[embedded,dev]'
	$(LOWEST)/bin/python -m pytest --ignore tests/test_promises.py # which tells the licences of the locked versions

bench: $(INSTALLED) ## Measure against the floor and the peers, about 25 minutes; ROWS="query-small load" for some of it
	PYTHONPATH=tests $(BIN)/python -m bench --cache .bench $(ROWS)

bench-quick: $(INSTALLED) ## The same with tiny sizes, to see that it works
	PYTHONPATH=tests $(BIN)/python -m bench --quick

profile: $(INSTALLED) ## Draw flame graphs of questions and of an ingestion: .bench/query.svg, .bench/ingest.svg
	$(BIN)/pip install --quiet --requirement tests/bench/requirements.txt
	PYTHONPATH=tests $(BIN)/python -m bench.profile .bench

soak: $(INSTALLED) ## Ten minutes of many clients, with the model server and the service killed every 30 seconds
	$(BIN)/python tests/soak/soak.py

audit: $(INSTALLED) ## Ask the advisory database about every locked package (pypi.org learns their names)
	$(BIN)/pip install --quiet pip-audit
	$(BIN)/pip-audit --requirement requirements.lock --disable-pip --require-hashes

lint: $(INSTALLED) ## Check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

lock: $(INSTALLED) ## Choose the newest versions that pyproject.toml allows
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra embedded --extra dev --universal --python-version 3.11 \
		--generate-hashes --upgrade --no-header --output-file requirements.lock

clean: ## Remove what was made here; databases are kept
	rm -rf $(VENV) $(LOWEST) tests/browser/node_modules .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(INSTALLED): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/it."; exit 1; }
	@echo "Installing into $(VENV), once; this takes about a minute."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(BROWSER): $(INSTALLED) tests/browser/requirements.txt tests/browser/package-lock.json
	@command -v chromium >/dev/null || $(call apt,chromium fonts-noto-core fonts-noto-color-emoji)
	@command -v npm >/dev/null || $(call apt,npm)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement tests/browser/requirements.txt
	@npm ci --silent --prefix tests/browser
	@touch $@
