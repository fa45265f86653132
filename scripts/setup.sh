#!/bin/sh
# Create .venv with an editable install of the package. Usage: scripts/setup.sh EXTRA,EXTRA
# Works with Python 3.10 or later, with or without ensurepip, as root or not. PYTHON=... selects.
set -eu
cd "$(dirname "$0")/.."
extras=${1:-all}
venv=${VENV:-.venv}
log=$venv/setup.log

say() { printf '%s\n' "setup: $*" >&2; }
fail() { printf '%s\n' "setup: error: $*" >&2; exit 1; }

new_enough() {
    "$1" -c 'import sys; raise SystemExit(sys.version_info < (3, 10))' 2>/dev/null
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        new_enough "$PYTHON" || fail "PYTHON=$PYTHON is not a Python 3.10 or later"
        echo "$PYTHON"
        return
    fi
    for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do
        if command -v "$name" >/dev/null 2>&1 && new_enough "$name"; then
            command -v "$name"
            return
        fi
    done
    fail "no Python 3.10 or later found: install one, or name it with PYTHON=/path/to/python3"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then sudo -n "$@"
    else return 1
    fi
}

# Debian and Ubuntu have ensurepip in a separate package.
install_venv_package() {
    command -v apt-get >/dev/null 2>&1 || return 1
    version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    say "installing python$version-venv (this Python has no ensurepip)"
    # .ci/run installs other packages at the same time
    install="apt-get install -y -q -o DPkg::Lock::Timeout=600"
    as_root apt-get update -q >/dev/null 2>&1 || true
    # shellcheck disable=SC2086 # words
    as_root env DEBIAN_FRONTEND=noninteractive $install "python$version-venv" >/dev/null 2>&1 ||
        as_root env DEBIAN_FRONTEND=noninteractive $install python3-venv >/dev/null 2>&1
}

has_pip() { [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1; }

make_venv() {
    say "creating $venv with $("$python" --version 2>&1) ($python)"
    "$python" -m venv --clear "$venv" >/dev/null 2>&1 && has_pip && return
    "$python" -m virtualenv --clear "$venv" >/dev/null 2>&1 && has_pip && return
    if command -v uv >/dev/null 2>&1; then
        uv venv --clear --seed --python "$python" "$venv" >/dev/null 2>&1 && has_pip && return
    fi
    # a pip outside of the environment can install pip into it
    "$python" -m venv --clear --without-pip "$venv" >/dev/null 2>&1 &&
        "$python" -m pip --python "$venv/bin/python" install --quiet pip >/dev/null 2>&1 &&
        has_pip && return
    install_venv_package "$python" && "$python" -m venv --clear "$venv" >/dev/null 2>&1 &&
        has_pip && return
    fail "$python cannot create a virtual environment: install python3-venv or virtualenv"
}

# Whether the environment has the Python that PYTHON names, if set.
has_requested_python() {
    [ -z "${PYTHON:-}" ] || [ "$("$PYTHON" -V 2>&1)" = "$("$venv/bin/python" -V 2>&1)" ]
}

if has_pip && new_enough "$venv/bin/python" && has_requested_python; then
    say "using the existing $venv ($("$venv/bin/python" --version 2>&1))"
else
    python=$(find_python)
    make_venv "$python"
fi
say "installing ck-pro[$extras] into $venv"
if ! "$venv/bin/python" -m pip install --disable-pip-version-check --editable ".[$extras]" \
    >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    fail "pip could not install the packages; the full log is in $log; is there a network?"
fi
case ",$extras," in
*,test,*)
    # loaders for tests of the exports; without their dependencies, which include torch
    loaders() {
        "$venv/bin/python" -m pip install --disable-pip-version-check --no-deps "$@" >>"$log" 2>&1
    }
    if ! loaders trl llamafactory axolotl colorama addict verl; then
        for loader in trl llamafactory "axolotl colorama addict" verl; do
            # shellcheck disable=SC2086 # one loader may need other small packages
            loaders $loader || say "${loader%% *} cannot be installed; its tests are skipped"
        done
    fi
    ;;
esac
say "done: $venv/bin/python"
