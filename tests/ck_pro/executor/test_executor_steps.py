"""Steps of code in a real worker: values, output, errors, state, limits, functions."""

from __future__ import annotations

import re
import sys
import threading
import time

import pytest

from ck_pro.exceptions import Cancelled, ConfigError, ExecutorError, LimitReached
from ck_pro.executor import CodeExecutor

pytestmark = pytest.mark.worker


class Answer(dict):
    """Crosses as a sub-agent's result does."""

    def to_worker(self):
        return dict(self)

    def __str__(self):
        return f"<answer {self['output']}>"


def add_two(x: int = 0) -> int:
    """Add two."""
    return x + 2


def stop(output, log=""):
    return "ended"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with CodeExecutor(
        functions={"add_two": add_two, "stop": stop},
        terminal={"stop"},
        workdir=tmp_path_factory.mktemp("shared"),
        timeout=60,
    ) as executor:
        yield executor


@pytest.fixture
def run(shared):
    return shared.run


def test_a_step_has_output_value_and_state(run):
    first = run("x = add_two(1)\nprint(x, 'y')\nx")
    assert (first.output, first.printed, first.value) == ("3 y\n", ["3", "y"], "3")
    assert first.error is None and not first.state_lost and first.ended_by is None
    assert run("x + 1").value == "4"
    assert run("None").value is None
    assert run("").value is None


def test_an_error_has_its_type_line_and_what_was_printed(run):
    result = run("kept = 5\nprint('before')\n\n1 / 0\nprint('after')")
    assert result.output == "before\n"
    assert (result.error.type, result.error.line) == ("ZeroDivisionError", 4)
    assert "1 / 0" in result.error.traceback and "ck_pro" not in result.error.traceback
    assert run("kept").value == "5"


def test_a_syntax_error_is_an_error(run):
    result = run("a = 1\nb = = 2")
    assert (result.error.type, result.error.line) == ("SyntaxError", 2)
    assert "b = = 2" in result.error.traceback
    assert "ast.py" not in result.error.traceback


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("x = [1]\nprint(x[5])", "    print(x[5])\n          ~^^^\n"),  # no end of line
        ("x = '\f'\nprint(x.no)", "    print(x.no)\n          ^^^^\n"),  # no line ends there
        ("x = 1\nreturn x", "    return x\n    ^^^^^^^^\n"),  # the compiler's later passes
    ],
)
def test_a_traceback_marks_the_place(run, code, told):
    traceback = run(code).error.traceback
    if sys.version_info < (3, 11):  # which marks syntax errors alone
        told = told.splitlines()[0]
    assert told in traceback


def test_the_line_is_that_of_this_step(run):
    run("def fail():\n    raise KeyError('k')")
    result = run("\n\nfail()")
    assert (result.error.type, result.error.line, result.error.message) == ("KeyError", 3, "'k'")
    assert "raise KeyError('k')" in result.error.traceback


def test_output_keeps_its_order(run):
    code = (
        "import os, sys, subprocess\n"
        "print('a'); print('b', file=sys.stderr); os.write(1, b'c\\n'); os.write(2, b'd\\n')\n"
        "subprocess.run('echo e; echo f >&2', shell=True); sys.stdout.write('g\\n'); print('h')"
    )
    result = run(code)
    assert result.output == "a\nb\nc\nd\ne\nf\ng\nh\n"
    assert result.printed == ["a", "h"]


def test_output_is_capped_and_says_so(tmp_path):
    with CodeExecutor(workdir=tmp_path, max_output=1000) as executor:
        result = executor.run("for i in range(100000): print('x' * 50)\n'done'")
    assert result.value == "'done'"
    assert result.output.startswith("x" * 50) and len(result.output) < 1100
    assert f"{5_100_000 - 1000} bytes of output omitted" in result.output
    assert result.output_cut == 5_100_000 - 1000


def test_the_end_of_long_output_is_the_programs_own(tmp_path):
    with CodeExecutor(workdir=tmp_path, max_output=1000) as executor:
        result = executor.run(
            "import sys\nprint('the head')\nsys.stdout.write('x' * 1_000_000)\n"
            "print('the tail', file=sys.stderr)\n1 / 0"
        )
    assert result.output.startswith("the head\nxxx") and result.output.endswith("xxxthe tail\n")


class Named:
    """An object that code gets as a mapping and prints by its name."""

    def __init__(self, name):
        self.name = name

    def to_worker(self):
        return {"output": self.name, "log": ""}

    def __str__(self):
        return f"<{self.name}>"


def test_beside_a_printed_object_all_other_output_is_kept_in_order(tmp_path):
    made = {}

    def agent(task):
        return made.setdefault(task, Named(task))

    with CodeExecutor(functions={"agent": agent}, workdir=tmp_path) as executor:
        result = executor.run(
            "import json, os, pprint, subprocess, sys\n"
            "a, b = agent('a'), agent('b')\n"
            "sys.stdout.write('written ')\n"
            "print('got', a, b, sep='|', end=';\\n')\n"
            "pprint.pprint({'x': 1})\njson.dump([2], sys.stdout)\n"
            "subprocess.run('echo sub; echo err >&2', shell=True)\n"
            "print(b, a, sep='', end='')\nprint([a], f'{a}')\n"
            "print(a, file=sys.stderr)\nprint(a, file=open('f', 'w'))\n"
            "os.write(1, b'end\\n')"
        )
    a, b = made["a"], made["b"]
    assert result.error is None
    assert result.output == (
        "written got|<a>|<b>;\n{'x': 1}\n[2]sub\nerr\n<b><a>[<a>] <a>\n<a>\nend\n"
    )
    assert result.pieces == [
        "written got|", a, "|", b, ";\n{'x': 1}\n[2]sub\nerr\n", b, a, "[<a>] <a>\n<a>\nend\n"
    ]  # fmt: skip


PRINTING = {
    "into a file in place of descriptor 1": (
        "import os\nold = os.dup(1)\nf = os.open('f', os.O_CREAT | os.O_RDWR)\nos.dup2(f, 1)\n"
        "print('in', a)\nos.dup2(old, 1)\nprint(open('f').read(), a)",
        ["in <a>\n ", "a", "\n"],
    ),
    "with another stdout": (
        "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as held: print(a)\n"
        "print(len(held.getvalue()), a)",
        ["4 ", "a", "\n"],
    ),
    "from a forked process": (
        "import os\nprint('1')\nif os.fork() == 0:\n    print('child', a); os._exit(0)\n"
        "os.wait(); print(a)",
        ["1\nchild ", "a", "\n", "a", "\n"],
    ),
    "from many threads": (
        "import threading\nts = [threading.Thread(target=print, args=(a, '.')) for _ in range(9)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts]",
        ["a", " .\n"] * 9,
    ),
    "by a copy of it": (
        "import copy\nprint(copy.copy(a), copy.deepcopy(a))", ["a", " ", "a", "\n"]
    ),
    "changed": ("a['output'] = 'other'\nprint(a)", ["{'output': 'other', 'log': ''}\n"]),
    "before an error": ("print(a, end='')\nprint(a, 1 / 0)", ["a"]),
    "with an argument that fails": (
        "class P:\n    def __str__(self): raise ValueError\nprint(a, P())", ["a", " "]
    ),
    "after descriptor 1 was closed": (
        "import os\nos.close(1)\ntry: print(a)\nexcept OSError: pass", []
    ),
    "in a generator": ("print(*(x for x in (a, a)), sep='')", ["a", "a", "\n"]),
    "with nothing around": ("print(a, end='')", ["a"]),
    "and read back": ("import sys\nsys.stdout.write('é'); print(a); sys.stdout.write('é')",
                      ["é", "a", "\né"]),
}  # fmt: skip


@pytest.mark.parametrize("way", PRINTING)
def test_a_printed_object_stands_where_it_was_printed(way, tmp_path):
    code, expected = PRINTING[way]
    thing = Named("a")
    with CodeExecutor(functions={"agent": lambda: thing}, workdir=tmp_path) as executor:
        result = executor.run(f"a = agent()\n{code}")
    assert [one if type(one) is str else one.name for one in result.pieces] == expected
    assert result.output == "".join(map(str, result.pieces))


def test_what_a_subprocess_prints_meanwhile_does_not_move_printed_objects(tmp_path):
    big = Named("é" * 50_000)
    with CodeExecutor(
        functions={"agent": lambda: big}, workdir=tmp_path, max_output=1 << 24
    ) as executor:
        result = executor.run(
            "import subprocess\nr = agent()\n"
            "p = subprocess.Popen(['sh', '-c', 'while echo other; do :; done'])\n"
            "for _ in range(30): print(r)\np.kill(); p.wait()\nprint(r, 'end')"
        )
    texts = [piece for piece in result.pieces if piece is not big]
    assert sum(piece is big for piece in result.pieces) == 31
    assert not re.sub("other\n|\n| end", "", "".join(texts))


def test_wrong_calls_and_errors_of_functions_are_the_codes(run):
    assert run("add_two(1, 2, 3)").error.type == "TypeError"
    result = run("try:\n    add_two('a')\nexcept TypeError as e:\n    print('caught', e)")
    assert result.output.startswith("caught") and result.error is None


def test_errors_cross_by_type_and_message(tmp_path):
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


def test_values_cross_both_ways(tmp_path):
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


def test_a_code_that_cannot_be_interrupted_ends_all_the_same(shared):
    code = (
        "import threading, signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
        "threading.Thread(target=stop, args=('a',)).start()\n"
        "while True: pass"
    )
    result = shared.run(code)
    assert result.ended_by == "stop" and result.state_lost
    assert shared.run("1").value == "1"


def test_a_timeout_kills_and_keeps_the_output(shared):
    shared.run("gone = 1")
    result = shared.run("print('begun')\nwhile True: pass", timeout=0.3)
    assert result.output == "begun\n" and result.printed == ["begun"]
    assert result.error.type == "TimeoutError" and "0.3 s" in result.error.message
    assert result.state_lost
    assert shared.run("gone").error.type == "NameError"
    assert shared.run("add_two(2)").value == "4"


def test_time_in_calls_is_apart(tmp_path):
    def wait():
        threading.Event().wait(1)

    with CodeExecutor(functions={"wait": wait}, workdir=tmp_path, timeout=0.5) as executor:
        result = executor.run("wait()")
        assert result.error is None
        assert result.call_duration > 0.9 > result.duration


def test_a_call_has_a_limit_of_its_own(tmp_path):
    release = threading.Event()
    functions = {"wait": lambda: release.wait(30), "add_two": add_two}
    with CodeExecutor(functions=functions, workdir=tmp_path, call_timeout=1) as executor:
        code = "try:\n    wait()\nexcept TimeoutError as e:\n    print(e)\nadd_two(1)"
        result = executor.run(code)
        release.set()
        assert "1 s" in result.output and result.value == "3" and not result.state_lost


def test_the_wall_bounds_everything(tmp_path):
    release = threading.Event()
    functions = {"wait": lambda: release.wait(30)}
    with CodeExecutor(functions=functions, workdir=tmp_path, wall_timeout=0.3) as executor:
        result = executor.run("wait()")
        release.set()
        assert result.error.type == "TimeoutError" and result.state_lost


def test_cancel_kills_the_step(shared):
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    result = shared.run("while True: pass", cancel=cancel)
    assert result.error.type == "Cancelled" and result.state_lost


@pytest.mark.parametrize(
    "error", [LimitReached("time", "no time"), Cancelled("stop"), KeyboardInterrupt()]
)
def test_the_limits_of_the_run_pass_through(tmp_path, error):
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


def test_threads_are_waited_for_as_at_the_end_of_a_script(run):
    code = (
        "import threading, time\n"
        "def work():\n    time.sleep(0.1)\n    print('late', add_two(1))\n"
        "threading.Thread(target=work).start()\nprint('early')"
    )
    assert run(code).output == "early\nlate 3\n"


def test_functions_can_change_between_steps(tmp_path):
    with CodeExecutor(functions={"one": lambda: 1}, workdir=tmp_path) as executor:
        assert executor.run("one()").value == "1"
        executor.functions["two"] = lambda: 2
        assert executor.run("one() + two()").value == "3"
        del executor.functions["one"]
        assert executor.run("one()").error.type == "NameError"
        assert executor.run("two = 5\ntwo").value == "5"
        assert executor.run("two").value == "5"


def test_functions_can_be_looked_at(run):
    code = "import inspect\nprint(add_two.__name__, inspect.signature(add_two), add_two.__doc__)"
    assert run(code).output == "add_two (x: int = 0) -> int Add two.\n"
    assert "add_two(x: int = 0) -> int" in run("help(add_two)").output


def test_stateless_steps_are_fresh(tmp_path):
    with CodeExecutor(functions={"add_two": add_two}, workdir=tmp_path, stateful=False) as executor:
        assert executor.run("x = add_two(1)\nx").value == "3"
        assert executor.run("x").error.type == "NameError"


def test_ends_of_the_process(shared):
    assert shared.run("print(1); exit()\nprint(2)").output == "1\n"
    assert shared.run("exit()").error is None
    assert shared.run("import sys; sys.exit('bad')").error.message == "bad"
    result = shared.run("print('last words')\nimport os; os._exit(3)")
    assert result.output == "last words\n" and result.state_lost
    assert result.error.type == "WorkerDied" and "exited with code 3" in result.error.message
    result = shared.run("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert "SIGSEGV" in result.error.message
    assert shared.run("1").value == "1"


def test_there_is_no_input(run):
    result = run("input('name? ')")
    assert result.error.type == "EOFError" and "not available" in result.error.message
    assert result.output == "name? "


def test_a_child_of_the_code_does_not_take_its_place(run):
    code = "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('parent' if pid else 'c')"
    assert run(code).output == "c\nparent\n"
    assert run("1").value == "1"


def test_closing_writes_files_out(tmp_path):
    with CodeExecutor(workdir=tmp_path) as executor:
        executor.run("f = open('left.txt', 'w'); f.write('left open')")
    assert (tmp_path / "left.txt").read_text() == "left open"


def test_executors_of_many_threads(tmp_path):
    found = []

    def one(number):
        with CodeExecutor(functions={"get": lambda: number}, workdir=tmp_path) as executor:
            found.append([executor.run("get()").value for _ in range(3)] == [str(number)] * 3)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


def test_wrong_arguments_are_told():
    with pytest.raises(ConfigError, match="timeout"):
        CodeExecutor(timeout=0)
    with pytest.raises(ConfigError, match="not a valid function name"):
        CodeExecutor(functions={"a b": print})
    executor = CodeExecutor()
    executor.close()
    with pytest.raises(ExecutorError, match="closed"):
        executor.run("1")
    assert not executor.workdir.exists()


def test_the_root_is_no_workdir():
    with pytest.raises(ConfigError, match="root"):
        CodeExecutor(workdir="/")


def test_what_a_step_says_can_be_written(run):
    result = run("raise ValueError('\\ud800')")
    assert result.error.message.encode() == b"\\ud800"
    assert run("'\\ud800'").value == "'\\ud800'"


def test_a_function_may_look_at_the_executor(tmp_path):
    with CodeExecutor(workdir=tmp_path) as executor:
        executor.functions["layers"] = lambda: executor.isolation["active"]
        assert "process" in executor.run("layers()").value


def test_a_function_cannot_run_code_in_its_own_executor(tmp_path):
    with CodeExecutor(workdir=tmp_path) as executor:
        executor.functions["again"] = lambda: executor.run("1")
        assert executor.run("again()").error.type == "ExecutorError"


def test_the_deadline_holds_for_children_too(shared):
    began = time.monotonic()
    shared.run("import subprocess; subprocess.run(['sleep', '600'])", timeout=0.3)
    assert time.monotonic() - began < 20
