#!/bin/sh
# Run pytest in .venv. Without arguments: first the unit tests, which need no xdist, then the
# others; the last line has the sums. Store the exit code in .venv/pytest.exit, because make always
# exits with 2.
set -u
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}
log=$venv/pytest.log
rm -f "$venv/pytest.exit" "$log"
unset PYTHONDONTWRITEBYTECODE # every command that a test starts would compile all modules again
export CK_TEST_PROFILE="${CK_TEST_PROFILE:-full}"
workers=$(($(getconf _NPROCESSORS_ONLN) + 1)) # one more than cores: many tests wait for a browser
color=auto
[ -t 1 ] && color=yes # the output goes through tee
highest=0

run() {
    { "$venv/bin/python" -m pytest "--color=$color" "$@"; echo $? >"$venv/pytest.exit"; } 2>&1 |
        tee -a "$log"
    read -r code <"$venv/pytest.exit"
    [ "$code" -le "$highest" ] || highest=$code
}

if [ $# -gt 0 ]; then
    run -n "$workers" --dist loadfile "$@"
else
    run --two-processes -m "not browser and not worker and not integration and not slow"
    run -n "$workers" --dist loadfile -m "browser or worker or integration or slow"
    "$venv/bin/python" scripts/sum_of_runs.py "$log"
fi
echo "$highest" >"$venv/pytest.exit"
exit "$highest"
