"""Steps of code in a real worker: values, output, errors, state, limits, functions."""

from __future__ import annotations

import re
import sys
import threading
import time

import pytest
from executor_tools import add_two

from ck_pro.exceptions import ConfigError, ExecutorError
from ck_pro.executor import CodeExecutor

pytestmark = pytest.mark.worker


def test_a_step_has_output_value_and_state(run):
    first = run("x = add_two(1)\nprint(x, 'y')\nx")
    assert (first.output, first.printed, first.value) == ("3 y\n", ["3", "y"], "3")
    assert first.error is None and not first.state_lost and first.ended_by is None
    assert run("x + 1").value == "4"
    assert run("None").value is None
    assert run("").value is None


def test_an_error_has_type_line_and_earlier_output(run):
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
    ("code", "marked"),
    [
        ("x = [1]\nprint(x[5])", "    print(x[5])\n          ~^^^\n"),  # no end of line
        ("x = '\f'\nprint(x.no)", "    print(x.no)\n          ^^^^\n"),  # no line ends there
        ("x = 1\nreturn x", "    return x\n    ^^^^^^^^\n"),  # the compiler's later passes
    ],
)
def test_a_traceback_marks_the_place(run, code, marked):
    traceback = run(code).error.traceback
    if sys.version_info < (3, 11):  # which marks syntax errors alone
        marked = marked.splitlines()[0]
    assert marked in traceback


def test_the_line_counts_in_the_current_step(run):
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


def test_long_output_is_shortened_with_a_notice(tmp_path):
    with CodeExecutor(workdir=tmp_path, max_output=1000) as executor:
        result = executor.run("for i in range(100000): print('x' * 50)\n'done'")
    assert result.value == "'done'"
    assert result.output.startswith("x" * 50) and len(result.output) < 1100
    assert f"{5_100_000 - 1000} bytes of output omitted" in result.output
    assert result.output_cut == 5_100_000 - 1000


def test_long_output_keeps_its_end(tmp_path):
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


def test_a_timeout_kills_and_keeps_the_output(shared):
    shared.run("gone = 1")
    result = shared.run("print('started')\nwhile True: pass", timeout=0.3)
    assert result.output == "started\n" and result.printed == ["started"]
    assert result.error.type == "TimeoutError" and "0.3 s" in result.error.message
    assert result.state_lost
    assert shared.run("gone").error.type == "NameError"
    assert shared.run("add_two(2)").value == "4"


def test_cancel_kills_the_step(shared):
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    result = shared.run("while True: pass", cancel=cancel)
    assert result.error.type == "Cancelled" and result.state_lost


def test_threads_are_joined_as_at_the_end_of_a_script(run):
    code = (
        "import threading, time\n"
        "def work():\n    time.sleep(0.1)\n    print('late', add_two(1))\n"
        "threading.Thread(target=work).start()\nprint('early')"
    )
    assert run(code).output == "early\nlate 3\n"


def test_stateless_steps_are_fresh(tmp_path):
    with CodeExecutor(functions={"add_two": add_two}, workdir=tmp_path, stateful=False) as executor:
        assert executor.run("x = add_two(1)\nx").value == "3"
        assert executor.run("x").error.type == "NameError"


def test_exits_and_crashes_of_the_process(shared):
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


def test_a_forked_child_does_not_continue_the_session(run):
    code = "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('parent' if pid else 'c')"
    assert run(code).output == "c\nparent\n"
    assert run("1").value == "1"


def test_close_flushes_files(tmp_path):
    with CodeExecutor(workdir=tmp_path) as executor:
        executor.run("f = open('left.txt', 'w'); f.write('left open')")
    assert (tmp_path / "left.txt").read_text() == "left open"


def test_many_threads_use_executors(tmp_path):
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


def test_wrong_arguments_are_refused():
    with pytest.raises(ConfigError, match="timeout"):
        CodeExecutor(timeout=0)
    with pytest.raises(ConfigError, match="not a valid function name"):
        CodeExecutor(functions={"a b": print})
    with pytest.raises(ConfigError, match="there is no function 'stpo'"):
        CodeExecutor(functions={"stop": print}, terminal={"stpo"})
    executor = CodeExecutor()
    executor.close()
    with pytest.raises(ExecutorError, match="closed"):
        executor.run("1")
    assert not executor.workdir.exists()


def test_the_root_cannot_be_the_workdir():
    with pytest.raises(ConfigError, match="root"):
        CodeExecutor(workdir="/")


def test_texts_of_a_result_are_valid_utf8(run):
    result = run("raise ValueError('\\ud800')")
    assert result.error.message.encode() == b"\\ud800"
    assert run("'\\ud800'").value == "'\\ud800'"


def test_the_timeout_kills_child_processes(shared):
    began = time.monotonic()
    shared.run("import subprocess; subprocess.run(['sleep', '600'])", timeout=0.3)
    assert time.monotonic() - began < 20
