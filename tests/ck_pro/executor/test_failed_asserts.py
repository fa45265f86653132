"""A failed `assert` shows the values of its terms; one that holds changes nothing."""

from __future__ import annotations

import pytest

from ck_pro import CodeExecutor

pytestmark = pytest.mark.worker


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("assert price == '12'", "price = '11'"),
        ("assert len(rows) == 14", "len(rows) = 3"),
        ("assert look_up('a') == 'B', 'wrong word'", "wrong word (look_up('a') = 'A')"),
        ("assert rows and price == '12'", "rows = [1, 2, 3]; price = '11'"),
        ("assert not rows", "rows = [1, 2, 3]"),
        ("assert 5 in rows", "rows = [1, 2, 3]"),
        ("assert 1 < len(rows) < 3", "len(rows) = 3"),
        ("assert price.startswith('2')", "price = '11'"),
        ("assert isinstance(price, int)", "price = '11'"),
        ("assert re.search('x', price)", "price = '11'"),
        ("assert all(r > 1 for r in rows)", ""),
        ("assert (n := len(rows)) > 5", "(n := len(rows)) = 3"),
        ("assert [r for r in rows if r > 3]", "[r for r in rows if r > 3] = []"),
        ("assert not (rows or undefined)", "rows = [1, 2, 3]"),
        ("assert 5 < len(rows) < undefined", "len(rows) = 3"),
        ("assert False", ""),
        ("assert price in ('a', -1)", "price = '11'"),
        ("assert price == '12', ['a', 1]", "['a', 1]"),
    ],
)
def test_the_terms_are_shown_with_their_values(statement: str, message: str) -> None:
    setup = "import re\nprice, rows = '11', [1, 2, 3]\n"
    with CodeExecutor(functions={"look_up": str.upper}) as executor:
        error = executor.run(f"{setup}{statement}").error
    assert error is not None and (error.type, error.message, error.line) == (
        "AssertionError",
        message,
        3,
    )
    assert statement in error.traceback and "worker" not in error.traceback


def test_terms_are_evaluated_once_and_only_as_far_as_usual() -> None:
    source = """
calls = []
def f(x): calls.append(x); return x
assert f(1) or f(2)
assert f(3) == 3 and f(4)
try:
    assert f(0) and f(5), f('no')
except AssertionError as e:
    print(e)
class Odd:
    def __bool__(self): calls.append('bool'); return True
assert Odd()
assert Odd() == 1 or True
print(calls)
"""
    with CodeExecutor() as executor:
        result = executor.run(source)
    assert result.error is None
    assert result.output == "no\n[1, 3, 4, 0, 'no', 'bool']\n"


def test_values_are_those_of_the_failing_call_also_in_recursion_and_threads() -> None:
    source = """
import threading
def deep(n):
    assert n >= 0 and deep(n - 1) if n else n == 5, n
    return True
def check(n):
    try:
        assert n == -1 and deep(0)
    except AssertionError as e:
        found.append(str(e) == f"n = {n}")
found = []
threads = [threading.Thread(target=check, args=[n]) for n in range(20)]
[t.start() for t in threads]; [t.join() for t in threads]
print(all(found), len(found))
def count(n):
    assert n < 3 and (n == 9 or count(n + 1)), 'deep'
count(0)
"""
    with CodeExecutor() as executor:
        result = executor.run(source)
    assert result.output == "True 20\n"
    assert result.error is not None and result.error.message == "deep (n = 3)"


def test_a_test_that_holds_keeps_no_value_alive() -> None:
    source = """
import weakref
class Page: ...
page = Page()
ref = weakref.ref(page)
assert page and page == page
del page
print(ref())
"""
    with CodeExecutor() as executor:
        assert executor.run(source).output == "None\n"


def test_long_and_broken_values_are_shortened() -> None:
    source = """
class Broken:
    def __repr__(self): raise ValueError
text, broken = 'x' * 100_000, Broken()
assert broken == text
"""
    with CodeExecutor() as executor:
        error = executor.run(source).error
    assert error is not None and len(error.message) < 500
    assert "broken = <Broken instance" in error.message and "text = 'xxx" in error.message


def test_functions_of_earlier_steps_keep_their_asserts() -> None:
    with CodeExecutor() as executor:
        executor.run(
            "def check(total):\n    assert total == 3\nasync def later(n):\n    assert n > 1"
        )
        assert "total = 4" in str(executor.run("check(4)").error)
        assert executor.run("check(3)").error is None
        assert "n = 1" in str(executor.run("import asyncio\nasyncio.run(later(1))").error)
