"""Differences from CPython that the executor once had."""

from __future__ import annotations

import collections
import datetime
import decimal
import sys

import pytest

from ck_pro.exceptions import ConfigError
from ck_pro.executor import CodeExecutor

pytestmark = pytest.mark.worker


class Odd(ValueError):
    def __init__(self, what, number):
        super().__init__(what, number)


def fail():
    raise Odd("boo", 3)


def give(kind):
    return {
        "timedelta": datetime.timedelta(days=-1, microseconds=5),
        "decimal": decimal.Decimal("1.50"),
        "range": range(3),
        "deque": collections.deque([1, (2,)]),
        "keys": {"a": 1}.keys(),
        "items": {"a": 1}.items(),
        "memory": memoryview(b"x"),
    }[kind]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    functions = {"fail": fail, "give": give}
    with CodeExecutor(functions=functions, workdir=tmp_path_factory.mktemp("work")) as executor:
        yield executor.run


def test_the_command_line_is_that_of_an_interactive_session(run):
    assert run("import sys\nsys.argv, sys.orig_argv == [sys.executable]").value == "([''], True)"
    code = "import argparse\nargparse.ArgumentParser().parse_args()"
    assert run(code).value == "Namespace()"


def test_a_warning_is_shown_in_every_step(run):
    for _ in range(2):
        assert "careful" in run("import warnings\nwarnings.warn('careful')").output


def test_imports_from_future_apply_to_later_steps(run):
    run("from __future__ import annotations")
    assert run("def f(x: Unknown): pass\nf.__annotations__").value == "{'x': 'Unknown'}"
    assert run("from __future__ import nonsense").error.type == "SyntaxError"


def test_stateless_steps_forget_imports_from_future(tmp_path):
    with CodeExecutor(workdir=tmp_path, stateful=False) as executor:
        assert executor.run("from __future__ import annotations").error is None
        assert executor.run("def f(x: Unknown): pass").error.type == "NameError"


@pytest.mark.parametrize("code", ["1 + 1", "x = 2\nx"])
def test_a_byte_order_mark_is_ignored(run, code):
    assert run("\ufeff" + code).value == "2"


@pytest.mark.parametrize(
    "code, error",
    [
        (" 1", "IndentationError"),
        ("1 +", "SyntaxError"),
        ("x = = 1", "SyntaxError"),
        ("a b", "SyntaxError"),
        ("\x00", "SyntaxError" if sys.version_info >= (3, 11, 4) else "ValueError"),
        ("lambda: (yield)", None),
        ("x = 1; x", None),
        ("'\\N{bad name}'", "SyntaxError"),
    ],
)
def test_one_line_is_compiled_like_many(run, code, error):
    alone = run(code).error
    among = run("\n" + code).error
    if error is None:
        assert alone is among is None
    else:
        assert (alone.type, among.type) == (error, error)


@pytest.mark.parametrize(
    "code",
    [
        "del builtins.len",
        "builtins.BaseException = builtins.isinstance = builtins.Exception = None",
        "vars(builtins).clear()",
        "builtins.len = lambda x: 1 / 0\nraise ValueError",
    ],
)
def test_broken_builtins_break_at_most_the_step(run, code):
    run("kept = 5")
    result = run("import builtins\n" + code)
    assert not result.state_lost, result
    assert run("len([kept])").value == "1"


def test_a_deleted_main_module_is_restored(run):
    run("import sys\ndel sys.modules['__main__']")
    assert run("kept = 7\nimport __main__\n__main__.kept").value == "7"
    run("import sys\nsys.modules['__main__'] = sys")
    assert run("import __main__\n__main__.kept").value == "7"


def test_nonblocking_descriptors_are_reset(run):
    code = "kept = 5\nimport os\nfor fd in range(64):\n"
    result = run(code + "    try: os.set_blocking(fd, False)\n    except OSError: pass")
    assert result.error is None
    assert run("print('x' * 50_000)\nkept").value == "5"


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_an_invalid_timeout_is_refused(run, timeout):
    with pytest.raises(ConfigError, match="timeout"):
        run("1", timeout=timeout)


def test_the_arguments_of_an_error_are_kept(run):
    code = "try:\n    fail()\nexcept ValueError as error:\n    print(error.args)"
    assert run(code).output == "('boo', 3)\n"


@pytest.mark.parametrize(
    "kind, shown",
    [
        ("timedelta", repr(datetime.timedelta(days=-1, microseconds=5))),
        ("decimal", "Decimal('1.50')"),
        ("range", "[0, 1, 2]"),
        ("deque", "[1, (2,)]"),
        ("keys", "['a']"),
        ("items", "[('a', 1)]"),
        ("memory", "b'x'"),
    ],
)
def test_more_types_of_values_are_passed(run, kind, shown):
    assert run(f"give({kind!r})").value == shown


def test_atexit_functions_run(tmp_path):
    with CodeExecutor(workdir=tmp_path) as executor:
        executor.run("import atexit\natexit.register(lambda: open('left', 'w').write('bye'))")
    assert (tmp_path / "left").read_text() == "bye"
    with CodeExecutor(workdir=tmp_path) as executor:  # `close` does not wait for long
        executor.run("import atexit, time\natexit.register(time.sleep, 600)")


def test_a_forked_process_ends_like_a_script(run):
    code = """
import os, sys
def ends(how):
    if os.fork() == 0:
        exec(how)
        sys.exit({})
    return os.waitstatus_to_exitcode(os.wait()[1])
"""
    for end, status in (("4", 4), ("None", 0), ("'a reason'", 1)):
        seen = run(code.format(end) + "ends('')")
        assert seen.value == str(status), seen
        assert seen.output == ("a reason\n" if status == 1 else "")
    seen = run(code.format("0") + "ends('1 / 0')")
    assert seen.value == "1" and seen.output.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize("name", ["str", "isinstance", "list", "set", "enumerate", "bytearray"])
def test_replaced_builtins_affect_only_the_code(run, name):
    code = f"""
import builtins
kept, builtins.{name} = builtins.{name}, lambda *_: 7
try:
    print({name}(), "shown")
    got = give("range")
finally:
    builtins.{name} = kept
got
"""
    seen = run(code)
    assert (seen.value, seen.printed) == ("[0, 1, 2]", ["7", "shown"]), seen


def test_a_deleted_function_is_restored(run):
    run("give = 3")
    assert run("give").value == "3"
    assert "a variable hides the function give" in run("give('range')").error.traceback
    run("del give")
    assert "hidden" not in run("3()").error.traceback
    assert run("give('range')").value == "[0, 1, 2]"


def test_the_streams_have_a_mode(run):
    assert run("import sys\nsys.stdout.mode + sys.stderr.mode").value == "'ww'"


def test_a_worker_that_reads_nothing_is_replaced(tmp_path):
    def hang_up():
        executor._worker.hung_up = True  # as after a send that timed out

    with CodeExecutor(functions={"hang_up": hang_up}, workdir=tmp_path) as executor:
        assert executor.run("hang_up()").state_lost
        assert executor.run("1").value == "1"


@pytest.mark.parametrize("kind", ["AS", "CPU"])
def test_the_code_may_narrow_its_own_limits(tmp_path, kind):
    code = f"""
import resource
hard = resource.getrlimit(resource.RLIMIT_AS)[1] - 1 if "{kind}" == "AS" else 1000
resource.setrlimit(resource.RLIMIT_{kind}, (hard, hard))
"""
    with CodeExecutor(workdir=tmp_path) as executor:
        assert executor.run(code).error is None
        assert executor.run("resource.__name__").value == "'resource'"


def test_a_replaced_exit_does_not_keep_a_process(tmp_path):
    with CodeExecutor(workdir=tmp_path) as executor:
        executor.run("import os\nos._exit = lambda *_: 5\nos.dup2 = None")
        lost = executor.run("1")
        assert lost.state_lost and "Traceback" not in lost.output
        assert executor.run("1").value == "1"
