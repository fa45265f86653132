# make demo     the demo: no key, no network; MODEL=gpt:NAME or MODEL=http://... for a real model
# make test     all tests; ARGS="-m 'not browser'" chooses
# make unit     the unit tests: no browser, worker process or HTTP; in a few seconds
# make setup    .venv with the package in it; PYTHON=python3.12 chooses the Python
# make lint     ruff and mypy
VENV ?= .venv
PY := $(VENV)/bin/python
SOURCES := pyproject.toml setup.py scripts/setup.sh
EXTRAS := all
# a fast start: the unit tests use none of these plugins; their files are in memory where they can be
MEMORY := $(shell test -w /dev/shm && echo TMPDIR=/dev/shm)
UNIT := $(addprefix -p no:,xdist logging junitxml doctest pastebin cacheprovider faulthandler)
DEMO_ARGS := $(if $(MODEL),--model '$(MODEL)') $(ARGS)
export VENV

.DEFAULT_GOAL := help
.PHONY: help setup demo test unit lint chromium chromium-test clean

help:
	@sed -n 's/^# make /make /p' Makefile

setup: $(VENV)/.stamp-run
	@echo "setup: $(VENV) is ready"

# a Python that is named is used, whatever the environment was made with before
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
	@unset PYTHONDONTWRITEBYTECODE; $(MEMORY) $(PY) -m pytest -q $(UNIT) -m "not browser and not worker and not integration and not slow" $(ARGS)

lint: $(VENV)/.stamp-test
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check
	@$(PY) -m mypy

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
