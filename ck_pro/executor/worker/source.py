"""The source of a step: compile it, and say where and how it failed."""

from __future__ import annotations

import ast
import builtins
import inspect
import io
import linecache
import os
import traceback
from types import CodeType, TracebackType
from typing import Any

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
_LONGEST_MESSAGE = 10_000
_LONGEST_TRACEBACK = 20_000
_DEEP, _DEEPEST = 3000, 100  # frames: of a recursion without end only the last ones are told


class SourceBook:
    """Remembers the source of every step, for tracebacks and `inspect.getsource`."""

    def __init__(self) -> None:
        self._classes: dict[str, str] = {}
        self._futures = 0
        self._getfile = inspect.getfile
        inspect.getfile = self._find_file  # type: ignore[assignment]

    def compile(self, name: str, code: str) -> tuple[CodeType | None, CodeType | None]:
        """Note a step's source under its file name, and compile it.

        What is imported from `__future__` holds for later steps too, as in an interactive session.

        Returns:
            All statements but a last expression, and that expression.

        Raises:
            SyntaxError: and whatever else the compiler raises.
        """
        code = code.removeprefix("\ufeff")
        # a last line without its end would have the marks of a traceback in the wrong place
        linecache.cache[name] = (len(code), None, _lines(code), name)
        if "\n" not in code and not code[:1].isspace():
            try:  # one expression, as many steps are: read once, by the compiler alone
                return None, compile(code, name, "eval", self._futures, dont_inherit=True)
            except SyntaxError:
                pass
        # not ast.parse, whose frame would stand in the traceback of a syntax error
        flags = self._futures | ast.PyCF_ONLY_AST
        tree = compile(code, name, "exec", flags, dont_inherit=True)
        assert isinstance(tree, ast.Module)
        if "class " in code:
            self._add_classes(name, tree)
        first, last, self._futures = compile_step(tree, name, self._futures)
        return first, last

    def forget_futures(self) -> None:
        """Begin without imports from `__future__`."""
        self._futures = 0

    def _add_classes(self, name: str, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                self._classes[node.name] = name

    def _find_file(self, thing: Any) -> str:
        # a class knows its module only, and `__main__` is as many sources as there were steps
        if inspect.isclass(thing) and thing.__module__ == "__main__":
            name = self._classes.get(thing.__name__)
            if name is not None:
                return name
        return self._getfile(thing)


def _lines(code: str) -> list[str]:
    """The lines as the compiler counts them: `splitlines` would also split at a form feed."""
    lines = io.StringIO(code, newline=None).readlines()
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines


def compile_step(
    tree: ast.Module, name: str, futures: int = 0
) -> tuple[CodeType | None, CodeType | None, int]:
    """Compile a step.

    Args:
        futures: flags of what was imported from `__future__` before.

    Returns:
        All statements but a last expression, that expression, and the flags of what is imported
        from `__future__` now.

    Raises:
        SyntaxError: and whatever else the compiler raises.
    """
    end = tree.body[-1] if tree.body else None
    expression = ast.Expression(end.value) if isinstance(end, ast.Expr) else None
    body = tree if expression is None else ast.Module(tree.body[:-1], tree.type_ignores)
    first = None
    if body.body or expression is None:
        first = compile(body, name, "exec", futures, dont_inherit=True)
        futures |= first.co_flags & _FUTURES
    if expression is None:
        return first, None, futures
    return first, compile(expression, name, "eval", futures, dont_inherit=True), futures


def _future_flags() -> int:
    import __future__

    flags = 0
    for feature in __future__.all_feature_names:
        flags |= getattr(__future__, feature).compiler_flag
    return flags


_FUTURES = _future_flags()


def describe(error: BaseException, name: str) -> list[Any]:
    """Give an error as `[type, message, line, traceback]`; the line counts in the step's source."""
    if isinstance(error, SyntaxError) and error.text is None and error.filename == name:
        # the compiler's later passes tell the place alone, since there is no file to read
        error.text = linecache.getline(name, error.lineno or 0) or None
    deep = _is_deep(error.__traceback__)
    report = traceback.TracebackException(
        type(error), error, error.__traceback__, limit=-_DEEPEST if deep else None, compact=True
    )
    _leave_out_ours(report, set())
    return [
        type(error).__name__,
        _text(error)[:_LONGEST_MESSAGE],
        _line(error, name),
        _shorten("".join(report.format())),
    ]


def _is_deep(trace: TracebackType | None) -> bool:
    for _ in range(_DEEP):
        if trace is None:
            return False
        trace = trace.tb_next
    return True


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as worse:  # noqa: BLE001 - the code's own __str__ may raise anything
        return f"<str() of the error failed with {type(worse).__name__}>"


def _line(error: BaseException, name: str) -> int | None:
    found = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == name:
            found = trace.tb_lineno
        trace = trace.tb_next
    if found is None and isinstance(error, SyntaxError) and error.filename == name:
        found = error.lineno
    return found


def _leave_out_ours(report: traceback.TracebackException, seen: set[int]) -> None:
    if id(report) in seen:
        return
    seen.add(id(report))
    ours = [frame for frame in report.stack if not frame.filename.startswith(_HERE)]
    report.stack = traceback.StackSummary.from_list(ours)
    others = [report.__cause__, report.__context__, *(getattr(report, "exceptions", None) or ())]
    for other in others:
        if other is not None:
            _leave_out_ours(other, seen)


def _shorten(text: str) -> str:
    if len(text) <= _LONGEST_TRACEBACK:
        return text
    half = _LONGEST_TRACEBACK // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters cut ...]\n{text[-half:]}"
