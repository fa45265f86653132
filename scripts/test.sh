#!/bin/sh
# Run pytest in .venv. Store its exit code in .venv/pytest.exit, because make always exits with 2.
set -u
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}
rm -f "$venv/pytest.exit"
workers=$(($(getconf _NPROCESSORS_ONLN) + 1)) # one more than cores: many tests wait for a browser
CK_TEST_PROFILE=${CK_TEST_PROFILE:-full} "$venv/bin/python" -m pytest -n $workers --dist loadfile "$@"
code=$?
echo "$code" >"$venv/pytest.exit"
exit "$code"
