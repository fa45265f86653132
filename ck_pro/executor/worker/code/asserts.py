"""Failed `assert` statements show the values of their terms.

A step with such statements is compiled from a changed tree: each term is passed through `keep`,
which stores its value, and the whole test through `passed`, which drops the values of a test that
holds. `shown` makes the message of one that fails. Terms are evaluated once, as usual. Only
variables of a simple test are read again for the message, so `assert x == 3` costs nothing more.
"""

from __future__ import annotations

import ast
import builtins
import reprlib
import sys
import threading
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

_KEEP, _PASSED, _SHOWN = "@keep", "@passed", "@shown"  # names that no code can have
_MAX_TERMS, _MAX_SOURCE, _MAX_VALUE = 8, 80, 200
_MAX_PENDING = 1000
_getframe, _ident = sys._getframe, threading.get_ident
_NOT_SHOWN = (ModuleType, FunctionType, BuiltinFunctionType, type)
_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _MAX_VALUE
_REPR.maxlist = _REPR.maxtuple = _REPR.maxset = _REPR.maxdict = 10
_Key = tuple[int, int, int]
"""Thread, frame and number of an assert statement."""


class Asserts:
    """Rewrites assert statements, and keeps the values of their terms."""

    def __init__(self) -> None:
        self._sources: dict[int, list[tuple[str, bool]]] = {}  # and whether it is read again
        self._next = 0
        self._pending: dict[_Key, dict[int, Any]] = {}
        self.names = {_KEEP: self._keep, _PASSED: self._check_passed, _SHOWN: self._show}
        """The built-in names that rewritten code uses."""

    def rewrite(self, tree: ast.Module) -> None:
        """Rewrite the assert statements of a step."""
        self._pending.clear()
        for node in ast.walk(tree):
            if isinstance(node, ast.Assert) and not isinstance(
                node.test, (ast.Tuple, ast.Constant)
            ):
                self._rewrite(node)

    def _rewrite(self, node: ast.Assert) -> None:
        number, self._next = self._next, self._next + 1
        marking = _TermMarking(number)
        test = marking.mark_test(node.test)
        if not marking.sources:
            return
        self._sources[number] = marking.sources
        if not all(is_read for _, is_read in marking.sources):
            node.test = _call(_PASSED, node.test, ast.Constant(number), test)
        read = ast.Tuple(
            [ast.Name(n, ast.Load()) for n, is_r in marking.sources if is_r], ast.Load()
        )
        message = [] if node.msg is None else [node.msg]
        node.msg = _call(_SHOWN, node.msg or node.test, ast.Constant(number), read, *message)
        ast.fix_missing_locations(node)

    def _keep(self, number: int, index: int, value: Any) -> Any:
        key = (_ident(), id(_getframe(1)), number)
        if index == 0 or key not in self._pending:
            if len(self._pending) > _MAX_PENDING:  # of tests that raised an error
                self._pending.clear()
            self._pending[key] = {}
        self._pending[key][index] = value
        return value

    def _check_passed(self, number: int, result: Any) -> bool:
        holds = bool(result)
        if holds:
            self._pending.pop((_ident(), id(_getframe(1)), number), None)
        return holds

    def _show(self, number: int, read: tuple[Any, ...], *message: Any) -> Any:
        values = self._pending.pop((_ident(), id(_getframe(1)), number), {})
        if message and type(message[0]) is not str:
            return message[0]
        sources = self._sources[number]
        again = [at for at, (_, is_read) in enumerate(sources) if is_read]
        values = {**values, **dict(zip(again, read))}  # noqa: B905
        terms = "; ".join(
            dict.fromkeys(
                f"{sources[at][0]} = {_text_of(value)}"
                for at, value in sorted(values.items())
                if not isinstance(value, _NOT_SHOWN)
            )
        )
        return f"{message[0]} ({terms})" if message else terms


class _TermMarking:
    """Marks the terms of one test; `sources` has their texts, and whether they are variables."""

    def __init__(self, number: int):
        self._number = number
        self._simple = False
        self.sources: list[tuple[str, bool]] = []

    def mark_test(self, node: ast.expr) -> ast.expr:
        """Return the test of an assert statement with its terms kept."""
        self._simple = not any(map(_may_skip_terms, ast.walk(node)))
        return self.mark(node)

    def mark(self, node: ast.expr) -> ast.expr:
        """Return an expression whose terms are kept."""
        if isinstance(node, ast.BoolOp):
            node.values = [self.mark(value) for value in node.values]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self.mark(node.operand)
        elif isinstance(node, ast.Compare):
            node.left = self._keep(node.left)
            node.comparators = [self._keep(one) for one in node.comparators]
        elif isinstance(node, ast.Call):
            self._mark_call(node)
        else:
            return self._keep(node)
        return node

    def _mark_call(self, node: ast.Call) -> None:
        """Keep the object and the arguments: of `text.startswith(prefix)`, text and prefix."""
        if isinstance(node.func, ast.Attribute):
            node.func.value = self._keep(node.func.value)
        node.args = [self._keep(one) for one in node.args]

    def _keep(self, node: ast.expr) -> ast.expr:
        skipped = isinstance(node, (ast.Starred, ast.Lambda, ast.GeneratorExp))
        if skipped or _is_literal(node) or len(self.sources) >= _MAX_TERMS:
            return node
        index, is_read = len(self.sources), self._simple and isinstance(node, ast.Name)
        self.sources.append((_source(node), is_read))
        if is_read:
            return node
        return _call(_KEEP, node, ast.Constant(self._number), ast.Constant(index), node)


def _may_skip_terms(node: ast.AST) -> bool:
    chained = isinstance(node, ast.Compare) and len(node.ops) > 1
    return chained or isinstance(node, (ast.BoolOp, ast.IfExp))


def _source(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else _shorten(ast.unparse(node), _MAX_SOURCE)


def _is_literal(node: ast.expr) -> bool:
    """Whether the source of an expression already shows its value."""
    return not any(isinstance(part, (ast.Name, ast.Attribute)) for part in ast.walk(node))


def _call(name: str, place: ast.expr, *args: ast.expr) -> ast.Call:
    called = ast.Call(ast.Name(name, ast.Load()), list(args), [])
    return ast.copy_location(called, place)


def _text_of(value: Any) -> str:
    try:
        return _shorten(str.__str__(_REPR.repr(value)), _MAX_VALUE)
    except Exception:  # noqa: BLE001 - a class of the code defines the method
        return "<no repr>"


def _shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."
