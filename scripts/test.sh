#!/bin/sh
# Runs pytest in .venv. Its exit code is kept in .venv/pytest.exit, because make gives 2 for any.
set -u
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}
rm -f "$venv/pytest.exit"
CK_TEST_PROFILE=${CK_TEST_PROFILE:-full} "$venv/bin/python" -m pytest -n auto --dist loadfile "$@"
code=$?
echo "$code" >"$venv/pytest.exit"
exit "$code"
