#!/bin/sh
# Runs pytest in .venv. Its exit code is kept in .venv/pytest.exit, because make gives 2 for any.
set -u
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}
rm -f "$venv/pytest.exit"
# the tests wait for browsers and workers about half of their time: one process more than processors
processors=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
export PYTEST_XDIST_AUTO_NUM_WORKERS="${PYTEST_XDIST_AUTO_NUM_WORKERS:-$((processors + 1))}"
CK_TEST_PROFILE=${CK_TEST_PROFILE:-full} "$venv/bin/python" -m pytest -n auto --dist loadfile "$@"
code=$?
echo "$code" >"$venv/pytest.exit"
exit "$code"
