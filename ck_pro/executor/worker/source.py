"""The source of a step: compile it, and say where and how it failed."""

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

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
_LONGEST_MESSAGE = 10_000
_LONGEST_TRACEBACK = 20_000
_MOST_CHAINED = 20
_LONGEST_NAME = 200
_HEADING = "Traceback (most recent call last):\n"
_KIND_NAME: Callable[[type], str] = type.__dict__[
    "__name__"
].__get__  # a metaclass may have its own
_CAUSE: Any = BaseException.__dict__["__cause__"]  # past properties of those names
_CONTEXT: Any = BaseException.__dict__["__context__"]
_SUPPRESS: Any = BaseException.__dict__["__suppress_context__"]
_FILENAME: Any = SyntaxError.__dict__["filename"]
_LINENO: Any = SyntaxError.__dict__["lineno"]
_TRACE: Any = BaseException.__dict__["__traceback__"]
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
    """Give an error as `[type, message, line, traceback]`; the line counts in the step's source.

    Never raises, whatever classes, attributes and methods the code gave to its error.
    """
    kind = _KIND_NAME(type(error))[:_LONGEST_NAME]
    message, line = text_of(error)[:_LONGEST_MESSAGE], _line(error, name)
    try:
        return [kind, message, line, _shorten(_report(error, name))]
    except BaseException:  # noqa: BLE001 - the code's own attributes, and what it replaced
        where = "" if line is None else f'  File "{name}", line {line}\n'
        return [kind, message, line, f"{_HEADING}{where}{kind}: {message}\n"]


def text_of(thing: object) -> str:
    """Give `str` of anything that ended the code; never raises."""
    try:
        return plain_text(str(thing))
    except BaseException as worse:  # noqa: BLE001 - as above
        return f"<str() of the error failed with {_KIND_NAME(type(worse))}>"


def plain_text(text: str) -> str:
    """Give a text without the methods that a subclass of `str` may have."""
    return str.__getitem__(text, slice(None))


def _report(error: BaseException, name: str) -> str:
    if isinstance(error, SyntaxError) and error.text is None and error.filename == name:
        # the compiler's later passes tell the place alone, since there is no file to read
        error.text = linecache.getline(name, error.lineno or 0) or None
    deep = _is_deep(error.__traceback__)
    with _shortened_chain(error):
        report = traceback.TracebackException(
            type(error), error, error.__traceback__, limit=-_DEEPEST if deep else None, compact=True
        )
    _leave_out_ours(report)
    return "".join(report.format())


@contextlib.contextmanager
def _shortened_chain(error: BaseException) -> Iterator[None]:
    """Cut what led to an error after some exceptions: all of them would be formatted."""
    last, seen = error, {id(error)}
    for _ in range(_MOST_CHAINED):
        before = _CAUSE.__get__(last) or _CONTEXT.__get__(last)
        if before is None or id(before) in seen:
            break
        seen.add(id(before))
        last = before
    kept = [_CAUSE.__get__(last), _CONTEXT.__get__(last), _SUPPRESS.__get__(last)]
    try:
        if len(seen) > _MOST_CHAINED:
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


def _leave_out_ours(report: traceback.TracebackException) -> None:
    waiting, seen = [report], {id(report)}
    while waiting:
        one = waiting.pop()
        ours = [frame for frame in one.stack if not frame.filename.startswith(_HERE)]
        one.stack = traceback.StackSummary.from_list(ours)
        others = (one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ()))
        for other in others:
            if other is not None and id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)


def _shorten(text: str) -> str:
    if len(text) <= _LONGEST_TRACEBACK:
        return text
    half = _LONGEST_TRACEBACK // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters cut ...]\n{text[-half:]}"
