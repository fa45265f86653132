"""What snippets do under the executor is what they do under CPython, run beside it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from executor_conformance_cases import split_cases

from ck_pro.executor import CodeExecutor

pytestmark = [pytest.mark.worker, pytest.mark.slow]
CASES = split_cases()

REFERENCE = r"""
import ast, json, os, runpy, sys, tempfile, traceback
def prepare(code):
    try:
        last = ast.parse(code).body[-1]
    except (SyntaxError, ValueError, IndexError):
        return code
    if not isinstance(last, ast.Expr) or last.value.col_offset != last.col_offset:
        return code
    lines = code.encode().split(b"\n")
    end, start = last.end_lineno - 1, last.lineno - 1
    lines[end] = lines[end][:last.end_col_offset] + b")" + lines[end][last.end_col_offset:]
    at = last.col_offset
    lines[start] = lines[start][:at] + b"__value__ = (" + lines[start][at:]
    return b"\n".join(lines).decode()
def run(code, out):
    os.chdir(tempfile.mkdtemp(dir=os.getcwd()))
    sys.path[:0] = [""]
    value = error = line = None
    path = "../script.py"
    # a last expression alone would be a docstring, or the other way round
    with open(path, "w") as file: file.write(prepare(code))
    try:
        names = runpy.run_path(path, run_name="__main__")
        value = names.get("__value__")
        value = None if value is None else repr(value)
    except SystemExit as e:
        error = None if e.code in (None, 0) else "SystemExit"
    except BaseException as e:
        error = type(e).__name__
        frames = [f for f in traceback.extract_tb(e.__traceback__) if f.filename == path]
        line = frames[-1].lineno if frames else getattr(e, "lineno", None)
    import threading
    for t in threading.enumerate():
        if t is not threading.current_thread() and not t.daemon: t.join()
    sys.stdout.flush()
    with open(out, "w") as file: json.dump([value, error, line], file)
found = []
for number, code in enumerate(json.load(sys.stdin)):
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(w, 1); os.close(r); os.close(w)
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(0, 2)
            sys.stdin = open(0, closefd=False)
            sys.stdout = sys.__stdout__ = open(1, "w", buffering=1, encoding="utf-8", closefd=False)
            sys.stdout.reconfigure(write_through=True)
            run(code, os.path.abspath("result%d" % number))
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.close(w)
    with open(r, "rb") as pipe: output = pipe.read().decode("utf-8", "replace")
    os.waitpid(pid, 0)
    with open("result%d" % number) as file: found.append([output, *json.load(file)])
json.dump(found, sys.stdout)
"""


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """What CPython does, in one process for all cases: output, value, error's type and line."""
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", REFERENCE],
        input=json.dumps(CASES),
        cwd=tmp_path_factory.mktemp("reference"),
        capture_output=True,
        text=True,
        check=True,
        timeout=150,
    )
    return json.loads(done.stdout)


def test_there_are_enough_cases():
    assert len(CASES) >= 150 and len(set(CASES)) == len(CASES)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_code_behaves_as_in_cpython(number, reference, tmp_path):
    output, value, error, line = reference[number]
    with CodeExecutor(workdir=tmp_path) as executor:
        result = executor.run(CASES[number])
    found = result.error
    assert (found.type if found else None) == error, (result, reference[number])
    assert result.output == output
    assert result.value == value
    if error is not None and error != "SystemExit":
        assert found.line == line
    assert not result.state_lost
