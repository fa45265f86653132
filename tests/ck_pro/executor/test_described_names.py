"""`CodeExecutor.describe_names`: what the code has defined, read without running any of it."""

from __future__ import annotations

import pytest

from ck_pro import CodeExecutor

pytestmark = pytest.mark.worker


def test_names_are_listed_with_types_sizes_and_short_values() -> None:
    with CodeExecutor(functions={"look_up": lambda: 1}) as executor:
        assert executor.describe_names() == []
        executor.run(
            "import re, json as j\nfrom collections import Counter\n"
            "n, ok, text, long = 3, True, 'a b', 'x' * 500\n"
            "rows = [{'name': 'a', 'price': 2}] * 14\nseen = {1, 2}\nmixed = [1, 'a']\n"
            "by_id = {'a': 1, 'b': 2}\nempty = []\n_hidden = 1\n"
            "def parse(html, *rest, depth=2, **more): ...\nclass Row: ...\nrow = Row()"
        )
        assert executor.describe_names() == [
            "class Counter",
            "n: 3",
            "ok: True",
            "text: 'a b'",
            "long: str of 500 characters",
            "rows: list of 14 dict (name, price)",
            "seen: set of 2 int",
            "mixed: list of 2",
            "by_id: dict of 2 (a, b)",
            "empty: list of 0",
            "def parse(html, depth, *rest, **more)",
            "class Row",
            "row: Row",
            "import re, j",
        ]


def test_the_list_is_bounded_and_keeps_the_latest_names() -> None:
    with CodeExecutor() as executor:
        executor.run("for i in range(300): globals()[f'v{i}'] = i\nlong_" + "x" * 300 + " = 1")
        lines = executor.describe_names()
    assert len(lines) <= 61 and max(map(len, lines)) <= 120
    assert lines[0].endswith("earlier names omitted)") and "v299: 299" in lines


def test_no_code_of_the_described_values_runs() -> None:
    hostile = """
class Hostile(list):
    def __len__(self): print('ran'); raise SystemExit
    __iter__ = __repr__ = __str__ = __eq__ = __hash__ = __len__
    def __getattribute__(self, name): print('ran'); raise SystemExit
one = Hostile([1])
some = [one]
class Kind(type):
    __name__ = property(lambda self: print('ran'))
class Odd(metaclass=Kind): ...
odd = Odd()
big = 1 << 100_000
globals()[3] = 'not a name'
"""
    with CodeExecutor() as executor:
        executor.run(hostile)
        lines = executor.describe_names()
        assert {"one: Hostile", "odd: Odd", "big: int"} <= set(lines)
        assert executor.run("print('alive')").output == "alive\n"


def test_a_killed_worker_has_no_names_and_the_next_step_reports_it() -> None:
    with CodeExecutor(timeout=0.3) as executor:
        executor.run("x = 1")
        executor.run("while True: pass")
        assert executor.describe_names() == []
        assert executor.run("print(2)").output == "2\n"


def test_threads_of_the_code_do_not_disturb_the_list() -> None:
    busy = """
import threading
def work():
    n = 0
    while True:
        n += 1
        globals()[f'w{n % 50}'] = n
threading.Thread(target=work, daemon=True).start()
"""
    with CodeExecutor() as executor:
        executor.run(busy)
        assert isinstance(executor.describe_names(), list)
        assert executor.run("print(2)").output == "2\n"
