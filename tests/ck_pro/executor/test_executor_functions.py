"""Functions that code calls: values, errors, terminal calls and time limits."""

from __future__ import annotations

import threading

import pytest
from executor_tools import add_two

from ck_pro.exceptions import Cancelled, LimitReached
from ck_pro.executor import CodeExecutor

pytestmark = pytest.mark.worker


class Answer(dict):
    """Crosses as a sub-agent's result does."""

    def to_worker(self):
        return dict(self)

    def __str__(self):
        return f"<answer {self['output']}>"


def test_wrong_calls_and_errors_of_functions_reach_the_code(run):
    assert run("add_two(1, 2, 3)").error.type == "TypeError"
    result = run("try:\n    add_two('a')\nexcept TypeError as e:\n    print('caught', e)")
    assert result.output.startswith("caught") and result.error is None


def test_errors_keep_type_and_message(tmp_path):
    class Odd(ValueError):
        pass

    def fail(kind):
        kinds = {
            "key": KeyError("k"),
            "os": FileNotFoundError(2, "No such file", "x.txt"),
            "odd": Odd("so odd"),
            "exit": SystemExit(3),
            "unicode": UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"),
        }
        raise kinds[kind]

    with CodeExecutor(functions={"fail": fail}, workdir=tmp_path) as executor:
        assert executor.run("fail('key')").error.message == "'k'"
        result = executor.run("try: fail('os')\nexcept OSError as e: print(e.errno, e.filename)")
        assert result.output == "2 x.txt\n"
        result = executor.run("fail('odd')")
        assert (result.error.type, result.error.message) == ("Odd", "so odd")
        assert executor.run("try: fail('odd')\nexcept RuntimeError: print(1)").output == "1\n"
        assert executor.run("try: fail('odd')\nexcept ValueError: print(1)").output == "1\n"
        assert executor.run("try: fail('exit')\nexcept RuntimeError: print(1)").output == "1\n"
        assert executor.run("fail('unicode')").error.type == "UnicodeDecodeError"


VALUES = (
    "[1, 2.5, None, True, 'x', float('inf'), 2**100, -1, '\\ud800', "
    "b'\\x00\\xff', (1, (2,)), {1, 2}, frozenset('a'), {1: 2, 'a': [()], (1, 2): {}}, {'$': 1}, "
    "1 + 2j, datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, 4, 5, 6), "
    "datetime.time(1, 2)]"
)


def test_values_are_passed_both_ways(tmp_path):
    seen = []

    def echo(*args, **kwargs):
        seen.append((args, kwargs))
        return args[0]

    with CodeExecutor(functions={"echo": echo}, workdir=tmp_path) as executor:
        result = executor.run(f"import datetime\nv = {VALUES}\necho(v, key=(1,)) == v")
        assert result.value == "True", result.error
        import datetime

        expected = eval(VALUES, {"datetime": datetime})
        assert seen == [((expected,), {"key": (1,)})]
        assert executor.run("x = []; x.append(x); echo(x)").error is None
        assert executor.run("echo(object)").value == "\"<class 'object'>\""
        assert executor.run("str(echo(float('nan')))").value == "'nan'"


def test_a_result_keeps_its_identity(tmp_path):
    given = []
    answer = Answer(output="42", log="found")

    def agent(task):
        return answer

    def take(value):
        given.append(value)

    with CodeExecutor(functions={"agent": agent, "take": take}, workdir=tmp_path) as executor:
        result = executor.run(
            "r = agent('q')\nprint('it is', r, 3)\ntake(r)\ntake([r])\n"
            "print(r['output'], 'log' in r, r.log, sorted(r), isinstance(r, dict))\nr"
        )
        assert result.error is None
        assert result.printed[0] == "it is" and result.printed[2] == "3"
        assert result.printed[1] is answer
        assert result.output == "it is <answer 42> 3\n42 True found ['log', 'output'] True\n"
        assert result.value == "<answer 42>"
        assert given[0] is answer and given[1][0] is answer
        executor.run("r['output'] = 'other'\ntake(r)")
        assert given[2] == {"output": "other", "log": "found"}


@pytest.mark.parametrize(
    "code",
    [
        "stop('a', log='b')\nprint('after')",
        "try:\n    stop('a', log='b')\nexcept BaseException:\n    print('after')\nprint('after')",
        "try:\n    stop('a', log='b')\nfinally:\n    print('after')\n    while True: pass",
        "while True:\n    try: stop('a', log='b')\n    except BaseException: print('after')",
        "import threading\nt = threading.Thread(target=stop, args=('a', 'b'))\n"
        "t.start(); t.join(); print('after')",
        "import threading, time\nthreading.Thread(target=stop, args=('a', 'b')).start()\n"
        "while True:\n    try: time.sleep(9)\n    except BaseException: print('after')",
        "import asyncio\nasync def main():\n    stop('a', log='b')\nasyncio.run(main())\n"
        "print('after')",
        "with open('held.txt', 'w') as f:\n    f.write('held back')\n    stop('a', log='b')",
    ],
)
def test_a_terminal_function_ends_the_step(shared, code):
    shared.run("before = 7")
    result = shared.run(code)
    assert (result.ended_by, result.ended_with) == ("stop", {"output": "a", "log": "b"})
    assert result.error is None and result.output == ""
    assert not result.state_lost
    assert shared.run("before").value == "7"
    assert shared.run("import asyncio\nasync def f(): return 3\nasyncio.run(f())").value == "3"
    if "held" in code:
        assert (shared.workdir / "held.txt").read_text() == "held back"


def test_a_wrong_call_of_a_terminal_function_does_not_end(run):
    result = run("try:\n    stop()\nexcept TypeError as e:\n    print('wrong')\n1")
    assert (result.ended_by, result.output, result.value) == (None, "wrong\n", "1")


def test_uninterruptible_code_ends_too(shared):
    code = (
        "import threading, signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
        "threading.Thread(target=stop, args=('a',)).start()\n"
        "while True: pass"
    )
    result = shared.run(code)
    assert result.ended_by == "stop" and result.state_lost
    assert shared.run("1").value == "1"


def test_time_in_calls_is_measured_separately(tmp_path):
    def wait():
        threading.Event().wait(1)

    with CodeExecutor(functions={"wait": wait}, workdir=tmp_path, timeout=0.5) as executor:
        result = executor.run("wait()")
        assert result.error is None
        assert result.call_duration > 0.9 > result.duration


def test_a_call_has_a_separate_limit(tmp_path):
    release = threading.Event()
    functions = {"wait": lambda: release.wait(30), "add_two": add_two}
    with CodeExecutor(functions=functions, workdir=tmp_path, call_timeout=1) as executor:
        code = "try:\n    wait()\nexcept TimeoutError as e:\n    print(e)\nadd_two(1)"
        result = executor.run(code)
        release.set()
        assert "1 s" in result.output and result.value == "3" and not result.state_lost


def test_the_wall_timeout_limits_everything(tmp_path):
    release = threading.Event()
    functions = {"wait": lambda: release.wait(30)}
    with CodeExecutor(functions=functions, workdir=tmp_path, wall_timeout=0.3) as executor:
        result = executor.run("wait()")
        release.set()
        assert result.error.type == "TimeoutError" and result.state_lost


@pytest.mark.parametrize(
    "error", [LimitReached("time", "no time"), Cancelled("stop"), KeyboardInterrupt()]
)
def test_errors_that_end_the_run_propagate(tmp_path, error):
    def fail():
        raise error

    with CodeExecutor(functions={"fail": fail}, workdir=tmp_path) as executor:
        with pytest.raises(type(error)) as caught:
            executor.run("try:\n    fail()\nexcept BaseException:\n    while True: pass")
        assert caught.value is error
        assert executor.run("1").value == "1"


def test_calls_from_threads_run_at_once(tmp_path):
    barrier = threading.Barrier(4)

    def meet(x):
        barrier.wait(30)
        return x * 2

    with CodeExecutor(functions={"meet": meet}, workdir=tmp_path) as executor:
        result = executor.run(
            "from concurrent.futures import ThreadPoolExecutor\n"
            "with ThreadPoolExecutor(4) as pool: found = list(pool.map(meet, range(4)))\nfound"
        )
        assert result.value == "[0, 2, 4, 6]", result.error


def test_functions_can_change_between_steps(tmp_path):
    with CodeExecutor(functions={"one": lambda: 1}, workdir=tmp_path) as executor:
        assert executor.run("one()").value == "1"
        executor.functions["two"] = lambda: 2
        assert executor.run("one() + two()").value == "3"
        del executor.functions["one"]
        assert executor.run("one()").error.type == "NameError"
        assert executor.run("two = 5\ntwo").value == "5"
        assert executor.run("two").value == "5"


def test_functions_can_be_inspected(run):
    code = "import inspect\nprint(add_two.__name__, inspect.signature(add_two), add_two.__doc__)"
    assert run(code).output == "add_two (x: int = 0) -> int Add two.\n"
    assert "add_two(x: int = 0) -> int" in run("help(add_two)").output


def test_a_function_can_read_the_isolation_of_its_executor(tmp_path):
    with CodeExecutor(workdir=tmp_path) as executor:
        executor.functions["layers"] = lambda: executor.isolation["active"]
        assert "process" in executor.run("layers()").value


def test_a_function_cannot_run_code_in_its_own_executor(tmp_path):
    with CodeExecutor(workdir=tmp_path) as executor:
        executor.functions["again"] = lambda: executor.run("1")
        assert executor.run("again()").error.type == "ExecutorError"
