"""Snippets that must do under the executor what they do under CPython itself."""

CASES = r'''
print("hello", 1, 2.5, None, True)
---
print("a", "b", sep="-", end="!\n")
---
print(*range(5), sep=", ")
---
print()
---
print("x", end="")
---
print("no newline", end="", flush=True)
---
print("a", sep=None, end=None)
---
print(1, sep=2)
---
print("b", end=3)
---
import io
f = io.StringIO()
print("hidden", file=f)
f.getvalue()
---
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()) as out:
    print("captured")
print("outside", repr(out.getvalue()))
---
import sys
sys.stdout.write("direct\n")
---
import sys
print(sys.stdout.encoding, sys.stdout.fileno())
---
import sys
sys.stdout.buffer.write(b"bytes\n")
sys.stdout.flush()
---
print("\u00e9\u4e2d\U0001f600")
---
print("\udc80")
---
class A:
    def __str__(self): raise ValueError("no text")
print("before", A(), "after")
---
1 + 1
---
"text"
---
None
---
x = 5
x
---
x = 5
---
[1, 2, 3][1]
---
(lambda: 7)()
---
x = 1; x + 1
---
if True:
    5
---
"""only a docstring"""
---
"""docstring"""
__doc__
---
...
---
5;
---
# only a comment
---
x = 3  # comment
x * 2  # value
---
(1,
 2,
 3)
---
{"a": [1, {"b": (2,)}]}
---
{3, 1, 2} == {1, 2, 3}
---
b"bytes\x00"
---
1e308 * 10, float("nan")
---
10 ** 50
---
1_000_000
---
0.1 + 0.2
---
f"{3.14159:.2f} {'x':>5} {42!r:^6} {10:#x}"
---
name = "w"; f"{name=}"
---
"%s-%05d" % ("a", 42)
---
"{:,}".format(1234567)
---
1 / 0
---
x = 1

y = x / 0
---
def f():
    return g()
def g():
    raise KeyError("k")
f()
---
[][1]
---
{}["missing"]
---
undefined_name
---
"a" + 1
---
int("x")
---
None.attr
---
import no_such_module
---
from math import no_such_name
---
open("no such file")
---
assert 1 == 2, "unequal"
---
raise Exception
---
raise ValueError("a", "b")
---
class MyError(Exception): pass
raise MyError("mine")
---
class MyError(Exception):
    def __str__(self): return "custom"
raise MyError
---
try:
    1 / 0
except ZeroDivisionError as e:
    raise RuntimeError("chained") from e
---
try:
    1 / 0
except ZeroDivisionError:
    {}["during"]
---
try:
    raise ValueError("v")
except ValueError as e:
    print("caught", e)
else:
    print("else")
finally:
    print("finally")
---
def f():
    try:
        return 1
    finally:
        print("cleanup")
f()
---
try:
    raise SystemError("s")
except (TypeError, SystemError) as e:
    print(type(e).__name__)
e
---
raise KeyboardInterrupt
---
raise GeneratorExit
---
raise StopIteration(3)
---
raise UnicodeDecodeError("utf-8", b"x", 0, 1, "bad")
---
b"\xff".decode()
---
"\ud800".encode()
---
def f(n): return f(n + 1)
f(0)
---
import sys
sys.getrecursionlimit() >= 1000
---
x = = 1
---
def f(:
    pass
---
if True:
print("indent")
---
  x = 1
---
print("unclosed
---
x = (1, 2
---
for i in range(3) print(i)
---
return 5
---
break
---
await x
---
yield 1
---
nonlocal x
---
def f():
    x = 1
    def g():
        nonlocal y
---
a, b = 1
---
a, b = 1, 2, 3
---
f() = 1
---
x: int = 3
__annotations__
---
from __future__ import annotations
def f(x: undefined_thing) -> other: pass
f.__annotations__
---
x = 1
from __future__ import annotations
---
import math
math.sqrt(2), math.pi
---
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
Counter("hello").most_common(2)
---
from collections import namedtuple
P = namedtuple("P", "x y")
P(1, 2)
---
from dataclasses import dataclass, field
@dataclass(order=True)
class P:
    x: int
    y: list = field(default_factory=list)
P(1), P(1) < P(2)
---
from dataclasses import dataclass
@dataclass(frozen=True)
class P:
    x: int
P(1).x = 2
---
from enum import Enum, IntFlag
class C(Enum):
    RED = 1
    BLUE = 2
list(C), C.RED.name, C(2)
---
from typing import NamedTuple, TypedDict, Generic, TypeVar
class N(NamedTuple):
    a: int = 5
N()
---
from abc import ABC, abstractmethod
class B(ABC):
    @abstractmethod
    def f(self): ...
B()
---
class A:
    def __init__(self): self.x = 1
    def __repr__(self): return f"A({self.x})"
A()
---
class A: pass
A.__module__, A.__qualname__
---
class A: pass
repr(A)
---
class Meta(type):
    def __new__(m, n, b, d): d["added"] = 1; return super().__new__(m, n, b, d)
class A(metaclass=Meta): pass
A.added
---
class A:
    @property
    def p(self): return self._p
    @p.setter
    def p(self, v): self._p = v * 2
a = A(); a.p = 4; a.p
---
class A:
    @staticmethod
    def s(): return "s"
    @classmethod
    def c(cls): return cls.__name__
A.s(), A.c()
---
class A:
    def f(self): return "A"
class B(A):
    def f(self): return super().f() + "B"
B().f()
---
class A:
    __slots__ = ("x",)
A().y = 1
---
class A:
    def __getattr__(self, n): return n.upper()
A().hello
---
class A:
    def __enter__(self): print("in"); return self
    def __exit__(self, *a): print("out", a[0]); return True
with A():
    raise ValueError
print("after")
---
def deco(f):
    def g(*a, **k):
        print("call", f.__name__, a, k)
        return f(*a, **k)
    return g
@deco
def add(a, b=2): return a + b
add(1, b=3)
---
import functools
@functools.lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(80)
---
def gen():
    x = yield 1
    print("got", x)
    yield 2
g = gen()
next(g), g.send("s")
---
def gen():
    yield from range(3)
    return "end"
g = gen()
list(g)
---
def gen():
    try: yield 1
    finally: print("closed")
g = gen(); next(g); g.close()
---
next(iter([]))
---
[x * y for x in range(3) for y in range(3) if x != y]
---
{k: v for k, v in zip("abc", range(3))}
---
n = 3
[n * i for i in range(n)], {i for i in "aa"}, list(i for i in "ab")
---
class A:
    xs = [1, 2]
    ys = [x for x in xs]
A.ys
---
total = 0
for i in range(10):
    if i == 3: continue
    if i == 6: break
    total += i
else:
    total = -1
total
---
i = 0
while i < 3:
    i += 1
else:
    print("done")
i
---
match {"kind": "point", "at": [1, 2]}:
    case {"kind": "point", "at": [x, y]} if x < y:
        print("point", x, y)
    case _:
        print("other")
---
class P:
    __match_args__ = ("x", "y")
    def __init__(self, x, y): self.x, self.y = x, y
match P(1, 2):
    case P(1, y): print(y)
---
match 5:
    case 1 | 2: print("small")
    case int() as n: print("int", n)
---
if (n := 10) > 5: print(n)
---
a, *b, c = range(5)
b
---
a = b = []
a.append(1)
b
---
x = [1, 2, 3]
del x[0]
x[-1:] = [9, 9]
x
---
def f(a, /, b, *args, c=3, **kw): return a, b, args, c, kw
f(1, 2, 3, c=4, d=5)
---
def f(a, /): pass
f(a=1)
---
def f(*, a): pass
f()
---
counter = 0
def inc():
    global counter
    counter += 1
inc(); inc()
counter
---
def outer():
    n = 0
    def inner():
        nonlocal n
        n += 1
        return n
    inner()
    return inner()
outer()
---
def f():
    print(x)
    x = 1
f()
---
fs = [lambda i=i: i for i in range(3)]
[f() for f in fs]
---
import asyncio
async def main():
    await asyncio.sleep(0)
    return "async"
asyncio.run(main())
---
import asyncio
async def w(n):
    await asyncio.sleep(0.2 * (3 - n))
    print("w", n)
    return n
async def main(): return await asyncio.gather(*(w(i) for i in range(3)))
asyncio.run(main())
---
import asyncio
async def agen():
    for i in range(3): yield i
async def main(): return [i async for i in agen()]
asyncio.run(main())
---
import asyncio
async def main():
    await asyncio.wait_for(asyncio.sleep(10), 0.01)
asyncio.run(main())
---
import asyncio
async def main():
    p = await asyncio.create_subprocess_exec("echo", "sub", stdout=asyncio.subprocess.PIPE)
    return (await p.communicate())[0]
asyncio.run(main())
---
import threading
out = []
ts = [threading.Thread(target=out.append, args=(i,)) for i in range(5)]
[t.start() for t in ts]; [t.join() for t in ts]
sorted(out)
---
import threading
def late():
    import time; time.sleep(0.05); print("late")
threading.Thread(target=late).start()
print("early")
---
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as p:
    print(list(p.map(lambda x: x * x, range(4))))
---
import multiprocessing as m
def f(x): return x * x
if __name__ == "__main__":
    with m.get_context("fork").Pool(2) as p:
        print(p.map(f, [1, 2, 3]))
---
import os
r, w = os.pipe()
if os.fork() == 0:
    os.write(w, b"child"); os._exit(0)
os.wait()
os.read(r, 10)
---
import subprocess
subprocess.run(["echo", "hi"], capture_output=True, text=True).stdout
---
import subprocess
print("first")
subprocess.run(["echo", "second"])
print("third")
---
import subprocess, sys
subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True).stdout
---
import subprocess
subprocess.run("exit 3", shell=True, check=True)
---
import os
os.system("echo from the shell")
---
with open("f.txt", "w") as f: f.write("one\ntwo\n")
[line.strip() for line in open("f.txt")]
---
import pathlib
p = pathlib.Path("sub/dir"); p.mkdir(parents=True)
(p / "x.txt").write_text("x")
sorted(str(q) for q in pathlib.Path("sub").rglob("*"))
---
import tempfile, os
with tempfile.TemporaryDirectory() as d:
    open(os.path.join(d, "a"), "w").close()
    print(os.listdir(d))
os.path.exists(d)
---
import json
json.loads(json.dumps({"a": [1, None, True, 2.5, "x"]}))
---
import re
re.findall(r"(\w)(\d+)", "a1 b22 c333")
---
import datetime as d
d.date(2024, 2, 29) + d.timedelta(days=366)
---
import decimal, fractions
decimal.Decimal("0.1") + decimal.Decimal("0.2"), fractions.Fraction(1, 3) + 1
---
import itertools as it
list(it.permutations("abc", 2))[:3], list(it.accumulate([1, 2, 3]))
---
import random
random.seed(42)
[random.randint(0, 100) for _ in range(5)]
---
import hashlib, base64
hashlib.sha256(b"x").hexdigest()[:16], base64.b64encode(b"hello")
---
import statistics
statistics.mean([1, 2, 3, 4]), statistics.median([5, 1, 3])
---
import csv, io
list(csv.DictReader(io.StringIO("a,b\n1,2\n3,4")))
---
import sqlite3
c = sqlite3.connect(":memory:")
c.execute("create table t (a)"); c.executemany("insert into t values (?)", [(1,), (2,)])
c.execute("select sum(a) from t").fetchone()
---
import pickle
class P:
    def __init__(self, x): self.x = x
pickle.loads(pickle.dumps(P(3))).x
---
import copy
class P: pass
p = P(); p.items = [1, [2]]
q = copy.deepcopy(p)
q.items[1].append(3)
p.items, q.items
---
import inspect
def f(a, b=2):
    return a + b
print(inspect.getsource(f), inspect.signature(f))
---
import inspect
class K:
    """Doc."""
    def m(self):
        return 1
inspect.getsource(K)
---
import textwrap, string
textwrap.shorten("hello wide world", 12), string.ascii_lowercase[:3]
---
import struct, array
struct.pack(">IH", 1, 2), array.array("i", [1, 2])
---
import operator, heapq, bisect
h = [3, 1, 2]; heapq.heapify(h)
operator.itemgetter(1)("ab"), heapq.heappop(h), bisect.bisect([1, 3], 2)
---
import weakref, gc
class A: pass
a = A(); r = weakref.ref(a)
del a; gc.collect()
r() is None
---
import warnings
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("always")
    warnings.warn("careful")
str(w[0].message)
---
import warnings
warnings.simplefilter("error")
warnings.warn("now an error", DeprecationWarning)
---
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(levelname)s:%(message)s")
logging.warning("logged")
---
import signal
def handler(*a): raise TimeoutError("alarm")
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.05)
while True: pass
---
import time
a = time.perf_counter(); time.sleep(0.01)
time.perf_counter() - a >= 0.01
---
import contextvars
v = contextvars.ContextVar("v", default=1)
v.set(2)
v.get()
---
__name__
---
if __name__ == "__main__":
    print("main")
---
import sys
sys.modules["__main__"].__dict__ is globals()
---
x = 1
globals()["x"], "x" in dir(), "nothing" in vars()
---
exec("y = 3")
eval("y + 1")
---
code = compile("1 +", "<s>", "eval")
---
eval("1 / 0")
---
type("T", (), {"a": 1}).a
---
isinstance(True, int), issubclass(bool, int), callable(print)
---
sorted([3, 1, 2], key=lambda x: -x), max("abc"), sum([[1], [2]], [])
---
list(zip([1, 2], "ab", strict=True)), list(enumerate("ab", 1)), list(reversed([1, 2]))
---
list(zip([1], "ab", strict=True))
---
bytes(range(3)), bytearray(b"x"), memoryview(b"abc")[1]
---
hex(255), oct(8), bin(5), chr(97), ord("a"), round(2.5), divmod(7, 2), pow(2, 10, 1000)
---
int("ff", 16), float("1e3"), complex("1+2j"), bool([])
---
"a,b,,c".split(","), " x ".strip(), "abc"[::-1], "x".join("abc"), "Abc".swapcase()
---
"aXbX".replace("X", "-", 1), "abc".find("z"), "abc".index("c"), "a\tb".expandtabs(4)
---
"abc".index("z")
---
input()
---
import sys
sys.stdin.read()
---
exit()
---
print("before"); exit(); print("after")
---
import sys
sys.exit(0)
---
import sys
sys.exit(3)
---
import sys
sys.exit("message")
---
raise SystemExit
---
quit()
---
import os
sorted(os.listdir("."))
---
import sys
print("to stdout"); sys.stdout.flush(); sys.__stdout__.write("raw\n")
---
import string
class T(string.Template): delimiter = "%"
T("%x").substitute(x=1)
---
class V:
    def __add__(self, o): return NotImplemented
V() + 1
---
class It:
    def __iter__(self): return iter([1, 2])
    def __len__(self): return 2
    def __contains__(self, x): return x == 1
list(It()), len(It()), 1 in It(), [*It()]
---
class C:
    def __call__(self, *a): return a
    def __getitem__(self, k): return k
C()(1, 2), C()[1:2, ...]
---
class D:
    def __set_name__(self, o, n): self.n = n
    def __get__(self, i, o): return self.n
class A: field = D()
A().field
---
class A:
    def __init_subclass__(cls, tag=None): cls.tag = tag
class B(A, tag="t"): pass
B.tag
---
def f(): pass
f.attr = 1
f.attr, f.__name__, f.__module__
---
import types
m = types.ModuleType("m"); m.x = 1
types.SimpleNamespace(a=1), m.x
---
raise BaseException("base")
---
import ast
ast.literal_eval("{'a': [1, (2, 3)]}")
---
import traceback
try: 1 / 0
except ZeroDivisionError: print(traceback.format_exc().splitlines()[-1])
---
import os
os.environ["NEW"] = "v"
os.getenv("NEW"), os.getenv("MISSING")
---
with open("mod_x.py", "w") as f: f.write("VALUE = 42\ndef f(): return VALUE")
import mod_x
mod_x.f()
---
import platform, sys
sys.version_info[0], platform.python_implementation()
---
import shutil
open("a", "w").write("x"); shutil.copy("a", "b"); open("b").read()
---
import glob
for n in ("g1.t", "g2.t"): open(n, "w").close()
sorted(glob.glob("g*.t"))
---
import zipfile, io
b = io.BytesIO()
with zipfile.ZipFile(b, "w") as z: z.writestr("x", "data")
zipfile.ZipFile(b).read("x")
---
import urllib.parse as u
u.urlencode({"a": "b c"}), u.urlparse("http://x/y?z=1").query
---
import html, xml.etree.ElementTree as E
html.escape("<a>"), E.fromstring("<a><b>t</b></a>").find("b").text
---
import socket
a, b = socket.socketpair(); a.send(b"ping")
b.recv(10)
---
def f():
    """Doc."""
help(f)
---
x = [1]
x.append(x)
x
---
d = {}
d[d] = 1
---
frozenset([1]) | {2}, {1, 2} - {1}, {1} ^ {2}
---
"""multi
line""" + 'x' \
    'y'
---
print(r"raw\n", b"b", u"u", rb"\x")
---
(lambda: (yield))().send(None)
---
x = 5 if False else 6; not x, x and 0, 0 or "d", 1 < x < 10
---
import numbers
isinstance(1, numbers.Number), (5).bit_length(), (2.5).as_integer_ratio(), -7 // 2, -7 % 3
'''


def split_cases() -> list[str]:
    return [case.strip("\n") for case in CASES.split("\n---\n")]
