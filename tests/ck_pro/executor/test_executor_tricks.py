"""Tricks that try to break the worker or the parent. Each step has a result and does no harm."""

from __future__ import annotations

import sys

import pytest

from ck_pro.executor import CodeExecutor

pytestmark = pytest.mark.worker

NASTY = """
class Nasty(str):
    def __getitem__(self, _): raise SystemExit('getitem')
    def __len__(self): raise SystemExit('len')
    def __eq__(self, _): raise KeyboardInterrupt
    __hash__ = str.__hash__
    def __str__(self): return self
    __repr__ = __str__
    def encode(self, *_): raise SystemExit('encode')
"""
META = """
class Meta(type):
    def __getattribute__(self, name):
        if name in ('__name__', '__qualname__', '__module__', '__mro__'): raise SystemExit(name)
        return type.__getattribute__(self, name)
    def __instancecheck__(self, other): raise SystemExit
"""
CASES = {
    "a forged header on fd 1": (
        "import os\ncells = [cell.cell_contents for cell in print.__closure__]\n"
        "mark = next(one._mark for one in cells if hasattr(one, '_mark'))\n"
        "for data in (b'[[0.0,1.0]]', b'[[[]]]', b'{}', b'\\xff' * 50, b'\\0' * 50):\n"
        "    for lengths in (b'', b'\\0\\1', b'\\0\\1\\0\\1', b'\\0\\0\\0\\1\\0\\0\\0\\1'):\n"
        "        os.write(1, mark + lengths + data)\n",
        None,
    ),
    "a chain of causes": (
        "error = None\nfor n in range(5000):\n    new = ValueError(n)\n"
        "    new.__cause__ = error\n    error = new\nraise error",
        "ValueError",
    ),
    "a chain of contexts": (
        "def go(n):\n    try: raise KeyError(n)\n    except KeyError:\n"
        "        if n: go(n - 1)\n        raise ValueError(n)\n"
        "import sys\nsys.setrecursionlimit(10_000)\ngo(3000)",
        "ValueError",
    ),
    "a cycle of causes": (
        "a, b = ValueError('a'), ValueError('b')\na.__cause__ = b; b.__cause__ = a\nraise a",
        "ValueError",
    ),
    "nested groups": (
        "import sys\nerror = ValueError('x')\n"
        "for n in range(3000): error = ExceptionGroup('g', [error])\nraise error",
        "ExceptionGroup",
    ),
    "endless causes by a property": (
        "class E(Exception):\n    @property\n    def __cause__(self): return E()\nraise E('x')",
        "E",
    ),
    "an exit code that compares": (
        "class Code:\n    def __eq__(self, _): raise RuntimeError\n    def __hash__(self): 1 / 0\n"
        "    def __str__(self): raise SystemExit(Code())\nraise SystemExit(Code())",
        "SystemExit",
    ),
    "an exit code by a property": (
        "class E(SystemExit):\n    @property\n    def code(self): raise E\nraise E(3)",
        "E",
    ),
    "an exit code of a subclass of int": (
        "class N(int):\n    def __and__(self, _): raise SystemExit\n    __eq__ = __and__\n"
        "raise SystemExit(N(0))",
        None,
    ),
    "an error whose text raises": (
        "class E(Exception):\n    def __str__(self): raise SystemExit('no')\n"
        "    __repr__ = __str__\nraise E",
        "E",
    ),
    "an error whose text is of another class": (
        NASTY + "class E(Exception):\n    def __str__(self): return Nasty('text')\nraise E",
        "E",
    ),
    "a last value whose text is of another class": (NASTY + "Nasty('value')", None),
    "a last value whose text raises": (
        "class V:\n    def __repr__(self): raise SystemExit(self)\n    __str__ = __repr__\nV()",
        "SystemExit",
    ),
    "an error of a class with a metaclass": (
        META + "class E(Exception, metaclass=Meta): pass\nraise E('x')",
        "E",
    ),
    "an error that says it is of another class": (
        "class E(Exception):\n    @property\n    def __class__(self): raise SystemExit\nraise E",
        "E",
    ),
    "an error with a giant name": ("raise type('E' * 10_000_000, (Exception,), {})", "E" * 200),
    "an error with notes that raise": (
        "class E(Exception):\n    @property\n    def __notes__(self): raise SystemExit\nraise E",
        "E",
    ),
    "a syntax error with fields of any kind": (
        "class T(str):\n    def rstrip(self, *_): raise SystemExit\n    __eq__ = rstrip\n"
        "    __hash__ = None\ne = SyntaxError('x')\ne.filename = T('<step 2>')\n"
        "e.text = T('y'); e.lineno = T('z'); e.offset = {}\nraise e",
        "SyntaxError",
    ),
    "globals with keys that compare": (
        "class K(str):\n    def __eq__(self, _): raise SystemExit('eq')\n"
        "    __hash__ = str.__hash__\nglobals()[K('f')] = 1\nglobals()[K('__builtins__')] = 1",
        "SystemExit",
    ),
    "no standard modules any more": (
        "import os, sys, threading, time, traceback, linecache, inspect\n"
        "threading.active_count = threading.enumerate = threading.current_thread = None\n"
        "os.getpid = time.monotonic = None\ntraceback.TracebackException = None\n"
        "linecache.cache.clear(); linecache.getline = None\nsys.modules = None\n1 / 0",
        "ZeroDivisionError",
    ),
    "a custom loader": (
        "class L:\n    def __getattr__(self, name): raise SystemExit(name)\n"
        "__loader__ = __spec__ = L()\n1 / 0",
        "ZeroDivisionError",
    ),
    "printing what raises in between": (
        "class P:\n    def __str__(self): raise SystemExit(7)\nprint('a', P(), 'b')",
        "SystemExit",
    ),
    "printing text of another class": (NASTY + "print(Nasty('x'), sep=Nasty(','))", "any"),
    "a name that is giant": ("f(**{'k' * 5_000_000: 1})", None),
    "arguments in themselves": ("x = []; x.append(x); y = {'x': x}; y['y'] = y; f(y, z=y)", None),
    "arguments that are too deep": (
        "x = []\nfor _ in range(100_000): x = [x]\nf(x)",
        "any",
    ),
    "a number of a million digits": ("f(10 ** 1_000_000)", None),
    "a generator as an argument": ("f(n for n in iter(int, 1))", None),
    "an argument whose items never end": (
        "class D(dict):\n    def items(self): return iter(lambda: ('k', 1), None)\n"
        "    def __iter__(self): raise SystemExit('iter')\nf(D(a=1))",
        "any",
    ),
    "a thread that ends the process": (
        "import threading, _thread\nthreading.Thread(target=_thread.interrupt_main).start()\n"
        "import time; time.sleep(30)",
        "KeyboardInterrupt",
    ),
    "an alarm that raises after the end": (
        "import signal\ndef late(*_): raise ValueError('late')\n"
        "signal.signal(signal.SIGALRM, late)\nimport threading, time\n"
        "threading.Thread(target=time.sleep, args=(.3,)).start()\n"
        "signal.setitimer(signal.ITIMER_REAL, .05)",
        "ValueError",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_tricks_give_a_result_and_keep_the_variables(name, tmp_path):
    code, error = CASES[name]
    if "Group" in code and sys.version_info < (3, 11):
        pytest.skip("groups came with Python 3.11")
    with CodeExecutor(functions={"f": lambda *a, **k: None}, workdir=tmp_path) as executor:
        executor.run("kept = 1")
        result = executor.run(code, timeout=60)
        assert not result.state_lost, result.error
        assert error == "any" or (result.error.type if result.error else None) == error
        for text in (result.output, result.value, result.error):
            str(text).encode()
        assert len(str(result.error)) < 200_000
        assert executor.run("kept").value == "1"


@pytest.mark.parametrize(
    "breaks",
    [
        "import gc\nfor one in gc.get_objects():\n    if isinstance(one, dict): one.clear()",
        "import resource\nresource.setrlimit = None",
        "import sys\nsys.path_importer_cache = None",
        "import linecache\nlinecache.cache = None",
    ],
)
def test_a_process_that_the_code_has_broken_is_replaced(breaks):
    with CodeExecutor(functions={"add_two": lambda x: x + 2}) as executor:
        broken = executor.run(breaks)
        if not broken.state_lost:
            broken = executor.run("print(add_two(1))")
        assert broken.error.type == "WorkerDied" and broken.state_lost
        assert executor.run("print(add_two(1))").output == "3\n"


def test_functions_work_after_the_code_replaced_the_standard_library():
    replaces = (
        "import os, threading, time\nos.write = os._exit = threading.Lock = None\n"
        "threading.Condition = None\ntime.monotonic = lambda: 0.0  # a frozen clock"
    )
    with CodeExecutor(functions={"add_two": lambda x: x + 2}) as executor:
        executor.run(replaces)
        result = executor.run("print([add_two(n) for n in range(3)])")
        assert (result.output, result.error) == ("[2, 3, 4]\n", None)
