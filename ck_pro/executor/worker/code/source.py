"""The source of a step: compile it, and describe its errors."""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import io
import linecache
import os
import traceback
from collections.abc import Callable, Iterator
from types import CodeType, TracebackType
from typing import Any

from .asserts import Asserts

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

_PROGRAM = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
"""The folder of the worker's own modules."""
_MAX_MESSAGE = 10_000
_MAX_TRACEBACK = 20_000
_MAX_CHAINED = 20
_MAX_NAME = 200
_HEADING = "Traceback (most recent call last):\n"
_KIND_NAME: Callable[[type], str] = type.__dict__[
    "__name__"
].__get__  # a metaclass may have its own
_CAUSE: Any = BaseException.__dict__["__cause__"]  # these bypass properties of the code's classes
_CONTEXT: Any = BaseException.__dict__["__context__"]
_SUPPRESS: Any = BaseException.__dict__["__suppress_context__"]
_FILENAME: Any = SyntaxError.__dict__["filename"]
_LINENO: Any = SyntaxError.__dict__["lineno"]
_TRACE: Any = BaseException.__dict__["__traceback__"]
_DEEP, _SHOWN_FRAMES = 3000, 100  # of a deeper recursion, a traceback has only the last frames


class StepSources:
    """Keeps the source of every step for tracebacks and `inspect.getsource`."""

    def __init__(self) -> None:
        self._classes: dict[str, str] = {}
        self._futures = 0
        self.asserts = Asserts()
        self._getfile = inspect.getfile
        inspect.getfile = self._find_file  # type: ignore[assignment]

    def compile(self, name: str, code: str) -> tuple[CodeType | None, CodeType | None]:
        """Store a step's source under its file name, and compile it.

        Imports from `__future__` apply to later steps too, as in an interactive session.

        Returns:
            All statements except a last expression, and that expression.

        Raises:
            SyntaxError: or any other error of the compiler.
        """
        code = code.removeprefix("\ufeff")
        # without a newline at the end, the carets of a traceback would be in the wrong place
        linecache.cache[name] = (len(code), None, _lines(code), name)
        if "\n" not in code and not code[:1].isspace():
            try:  # one expression, like many steps: parse it only once
                return None, compile(code, name, "eval", self._futures, dont_inherit=True)
            except SyntaxError:
                pass
        # ast.parse would add a frame to the traceback of a syntax error
        flags = self._futures | ast.PyCF_ONLY_AST
        tree = compile(code, name, "exec", flags, dont_inherit=True)
        assert isinstance(tree, ast.Module)
        if "class " in code:
            self._add_classes(name, tree)
        if "assert" in code:
            self.asserts.rewrite(tree)
        first, last, self._futures = compile_step(tree, name, self._futures)
        return first, last

    def forget_futures(self) -> None:
        """Forget imports from `__future__`."""
        self._futures = 0

    def _add_classes(self, name: str, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                self._classes[node.name] = name

    def _find_file(self, thing: Any) -> str:
        # a class has the name of its module, but all steps are the module `__main__`
        if inspect.isclass(thing) and thing.__module__ == "__main__":
            name = self._classes.get(thing.__name__)
            if name is not None:
                return name
        return self._getfile(thing)


def _lines(code: str) -> list[str]:
    """Return the lines as the compiler counts them; `splitlines` also splits at a form feed."""
    lines = io.StringIO(code, newline=None).readlines()
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines


def compile_step(
    tree: ast.Module, name: str, futures: int = 0
) -> tuple[CodeType | None, CodeType | None, int]:
    """Compile a step.

    Args:
        futures: compiler flags of earlier imports from `__future__`.

    Returns:
        All statements except a last expression, that expression, and the compiler flags of all
        imports from `__future__`.

    Raises:
        SyntaxError: or any other error of the compiler.
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
    """Describe an error as `[type, message, line, traceback]`; `line` counts in the step's source.

    Never raises, even for an error whose class has broken attributes and methods.
    """
    kind = _KIND_NAME(type(error))[:_MAX_NAME]
    message, line = text_of(error)[:_MAX_MESSAGE], _line(error, name)
    try:
        return [kind, message, line, _shorten(_report(error, name))]
    except BaseException:  # noqa: BLE001 - the code may have broken the class or `traceback`
        where = "" if line is None else f'  File "{name}", line {line}\n'
        return [kind, message, line, f"{_HEADING}{where}{kind}: {message}\n"]


def text_of(thing: object) -> str:
    """Return the `str()` of an error or exit code; never raises."""
    try:
        return plain_text(str(thing))
    except BaseException as worse:  # noqa: BLE001 - the code defines the method
        return f"<str() of the error failed with {_KIND_NAME(type(worse))}>"


def plain_text(text: str) -> str:
    """Convert an instance of a subclass of `str` to `str`, without calling its methods."""
    return str.__getitem__(text, slice(None))


def _report(error: BaseException, name: str) -> str:
    if isinstance(error, SyntaxError) and error.text is None and error.filename == name:
        # the later passes of the compiler read this line from a file, which does not exist
        error.text = linecache.getline(name, error.lineno or 0) or None
    deep = _is_deep(error.__traceback__)
    with _shortened_chain(error):
        report = traceback.TracebackException(
            type(error),
            error,
            error.__traceback__,
            limit=-_SHOWN_FRAMES if deep else None,
            compact=True,
        )
    _remove_worker_frames(report)
    return "".join(report.format())


@contextlib.contextmanager
def _shortened_chain(error: BaseException) -> Iterator[None]:
    """Cut a long chain of causes and contexts while it is formatted."""
    last, seen = error, {id(error)}
    for _ in range(_MAX_CHAINED):
        before = _CAUSE.__get__(last) or _CONTEXT.__get__(last)
        if before is None or id(before) in seen:
            break
        seen.add(id(before))
        last = before
    kept = [_CAUSE.__get__(last), _CONTEXT.__get__(last), _SUPPRESS.__get__(last)]
    try:
        if len(seen) > _MAX_CHAINED:
            _CAUSE.__set__(last, None)
            _CONTEXT.__set__(last, None)
        yield
    finally:
        for slot, value in zip((_CAUSE, _CONTEXT, _SUPPRESS), kept, strict=True):
            slot.__set__(last, value)


def _is_deep(trace: TracebackType | None) -> bool:
    for _ in range(_DEEP):
        if trace is None:
            return False
        trace = trace.tb_next
    return True


def _line(error: BaseException, name: str) -> int | None:
    found = None
    trace: TracebackType | None = _TRACE.__get__(error)
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == name:
            found = trace.tb_lineno
        trace = trace.tb_next
    if found is None and issubclass(type(error), SyntaxError):
        file, line = _FILENAME.__get__(error), _LINENO.__get__(error)
        found = line if type(file) is str and file == name and type(line) is int else None
    return found


def _remove_worker_frames(report: traceback.TracebackException) -> None:
    pending, seen = [report], {id(report)}
    while pending:
        one = pending.pop()
        kept = [frame for frame in one.stack if not frame.filename.startswith(_PROGRAM)]
        one.stack = traceback.StackSummary.from_list(kept)
        others = (one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ()))
        for other in others:
            if other is not None and id(other) not in seen:
                seen.add(id(other))
                pending.append(other)


def _shorten(text: str) -> str:
    if len(text) <= _MAX_TRACEBACK:
        return text
    half = _MAX_TRACEBACK // 2
    omitted = len(text) - 2 * half
    return f"{text[:half]}\n[... {omitted} characters omitted ...]\n{text[-half:]}"
