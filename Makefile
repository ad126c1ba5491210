# Everything needed is made on first use: the virtual environment and, in it, the locked dependencies.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: run test lint lock clean

run: $(INSTALLED) ## Ingest the sample mailbox, ask it a question, serve it
	@$(BIN)/brain demo

test: $(INSTALLED) ## Run the whole suite
	$(BIN)/python -m pytest --cov --cov-report=term

lint: $(INSTALLED) ## Check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

lock: $(INSTALLED) ## Choose the newest versions that pyproject.toml allows
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra embedded --extra dev --universal --python-version 3.11 \
		--generate-hashes --upgrade --no-header --output-file requirements.lock

clean: ## Remove what was made here; databases are kept
	rm -rf $(VENV) .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(INSTALLED): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/it."; exit 1; }
	@echo "Installing into $(VENV), once; this takes about a minute."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
