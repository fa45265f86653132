# make demo     run the demo without a key; MODEL=gpt:NAME or MODEL=http://... uses a real model
# make test     run all tests; ARGS="-m 'not browser'" selects, CK_LONG=1 adds the long ones
# make unit     run the unit tests (no browser, worker process or HTTP) in a few seconds
# make setup    create .venv with the package; PYTHON=python3.12 selects the Python
# make lint     run ruff and mypy, and ESLint if it is installed (npm install)
# make clean    remove .venv and caches
VENV ?= .venv
PY := $(VENV)/bin/python
SOURCES := pyproject.toml setup.py scripts/setup.sh
EXTRAS := all
# For a fast start: no plugins that the unit tests do not use, and temporary files in memory.
MEMORY := $(shell test -w /dev/shm && echo TMPDIR=/dev/shm)
ESLINT := node_modules/.bin/eslint
UNIT := --two-processes $(addprefix -p ,pytest_timeout _hypothesis_pytestplugin)
UNIT += $(addprefix -p no:,logging junitxml doctest pastebin cacheprovider faulthandler)
DEMO_ARGS := $(if $(MODEL),--model '$(MODEL)') $(ARGS)
export VENV

.DEFAULT_GOAL := help
.PHONY: help setup setup-test demo test unit lint chromium chromium-test clean

help:
	@sed -n 's/^# make /make /p' Makefile

setup: $(VENV)/.stamp-run
	@echo "setup: $(VENV) is ready"

setup-test: $(VENV)/.stamp-test

# With PYTHON=..., rebuild an environment that another Python created.
ifneq ($(PYTHON),)
ifneq ($(shell $(PYTHON) -V 2>&1),$(shell $(PY) -V 2>&1))
$(VENV)/.stamp-run $(VENV)/.stamp-test: FORCE
endif
endif
FORCE:

$(VENV)/.stamp-run: $(SOURCES)
	@sh scripts/setup.sh $(EXTRAS)
	@touch $@

$(VENV)/.stamp-test: $(SOURCES)
	@sh scripts/setup.sh $(EXTRAS),test
	@touch $(VENV)/.stamp-run $@

chromium: $(VENV)/.stamp-run
	@$(PY) -m web_server.install_chromium >/dev/null

chromium-test: $(VENV)/.stamp-test
	@$(PY) -m web_server.install_chromium >/dev/null

demo: chromium
	@$(PY) -m ck_main.demo $(DEMO_ARGS)

test: chromium-test
	@sh scripts/test.sh $(ARGS)

unit: $(VENV)/.stamp-test
	@unset PYTHONDONTWRITEBYTECODE; $(MEMORY) PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(PY) -m pytest -q $(UNIT) -m "not browser and not worker and not integration and not slow" $(ARGS)

lint: $(VENV)/.stamp-test
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check
	@$(PY) -m mypy
	@if [ -x $(ESLINT) ]; then $(ESLINT) .; else echo "eslint: not installed, skipped (npm install)"; fi

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
