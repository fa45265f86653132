"""Decode the items of a task file: JSON lines or one JSON list, in UTF-8."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TextIO

from ck_pro.exceptions import TaskFileError

MAX_LINE_BYTES = 1_000_000
_BOM = b"\xef\xbb\xbf"
_OTHER_KINDS = {
    "is UTF-16 or UTF-32; save the file as UTF-8": (
        *(b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"),
        *(b"{\0", b"\0{", b"\0\0\0{", b"[\0", b"\0[", b"\0\0\0["),
    ),
    "is compressed data; decompress the file": (
        b"\x1f\x8b",
        b"PK\3\4",
        b"\x28\xb5\x2f\xfd",
    ),
}
"""First bytes of files that are not UTF-8 text, by the message for them."""


class UnusableItem(Exception):
    """The fault of one item; `read_tasks` converts it to a `LineProblem`.

    Args:
        name: field with the fault, or "".
        text: the fault and the remedy.

    Attributes:
        others: further faults of the item.
    """

    def __init__(self, name: str, text: str):
        super().__init__(text)
        self.field, self.text = name, text
        self.others: list[UnusableItem] = []


def read_items(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the items of a task file. Only a JSON list is loaded as a whole.

    Args:
        path: JSON lines or one JSON list.

    Yields:
        (line number from 1, decoded item or `UnusableItem`) for each line that is not blank.

    Raises:
        TaskFileError: the file cannot be opened or read.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # opening a pipe blocks
            raise TaskFileError(
                f"cannot read the task file {path}: a pipe or device can be read only once; write "
                "the tasks to a regular file"
            )
        with path.open("rb") as file:
            if file.read(len(_BOM)) != _BOM:
                file.seek(0)
            start = file.tell()
            head = file.read(4)
            for text, starts in _OTHER_KINDS.items():
                if head.startswith(starts):
                    yield 1, UnusableItem("", text)
                    return
            file.seek(start)
            listed = _is_list(file)
            file.seek(start)
            spread = not listed and _is_spread_out(file)
            file.seek(start)
            if spread:
                yield 1, UnusableItem("", "is one object on several lines; write it on one line")
                return
            if listed:
                yield from _list_items(file.read())
                return
        with path.open(encoding="latin-1") as lines:  # one character per byte
            yield from _line_items(lines)
    except OSError as e:
        raise TaskFileError(f"cannot read the task file {path}: {e.strerror}") from None


def _is_list(file: BinaryIO) -> bool:
    """Whether the file is one JSON list, and not JSON lines that begin with a list."""
    while (line := file.readline(MAX_LINE_BYTES)) and not line.strip():
        pass
    if not line.lstrip().startswith(b"["):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return all(not rest.strip() for rest in iter(lambda: file.readline(MAX_LINE_BYTES), b""))


def _is_spread_out(file: BinaryIO) -> bool:
    """Whether the file is one JSON object on several lines."""
    line = file.readline(MAX_LINE_BYTES)
    while line and not line.strip():
        line = file.readline(MAX_LINE_BYTES)
    if not line.lstrip().startswith(b"{") or isinstance(_decoded(line), dict):
        return False
    rest = file.read(MAX_LINE_BYTES)
    return not file.read(1) and isinstance(_decoded(line + rest), dict)


def _line_items(lines: TextIO) -> Iterator[tuple[int, Any]]:
    number = 0
    while line := lines.readline(MAX_LINE_BYTES + 2):
        number += 1
        if len(line.rstrip("\n")) > MAX_LINE_BYTES:
            while line and not line.endswith("\n"):
                line = lines.readline(MAX_LINE_BYTES)
            yield (
                number,
                UnusableItem(
                    "",
                    f"is longer than {MAX_LINE_BYTES:,} bytes; put long text into a file and "
                    "name it in 'file_name'",
                ),
            )
        elif content := line.encode("latin-1").removeprefix(_BOM).rstrip():
            yield number, _decoded(content)  # concatenated files have byte order marks inside


def _decoded(line: bytes) -> Any:
    try:
        value = json.loads(line.decode("utf-8"), **_NUMBERS)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as e:
        return UnusableItem("", f"is not UTF-8 at byte {e.start + 1}; save the file as UTF-8")
    except UnicodeEncodeError:
        return UnusableItem("", "has a lone surrogate (\\ud800 to \\udfff); remove it")
    except json.JSONDecodeError as e:
        said = e.msg.removesuffix(" at")  # "Invalid control character at"
        return UnusableItem("", f"is not JSON: {said} at column {e.colno}; correct the line")
    except ValueError as e:
        return UnusableItem("", f"is not JSON: {e}; correct the line")
    except RecursionError:
        return UnusableItem("", "is nested too deeply; flatten it")
    return value


def _list_items(content: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the items of a JSON list, up to the first syntax error."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as e:
        line = content.count(b"\n", 0, e.start) + 1
        yield line, UnusableItem("", "is not UTF-8; save the file as UTF-8")
        return
    decoder = json.JSONDecoder(**_NUMBERS)
    space = re.compile(r"\s*")
    at = text.index("[") + 1
    first = True
    while True:
        at = space.match(text, at).end()  # type: ignore[union-attr]
        if text[at : at + 1] == "]":
            rest = text[at + 1 :].strip()
            if rest:
                yield (
                    text.count("\n", 0, at) + 1,
                    UnusableItem("", "has text after the end of the list; remove it"),
                )
            return
        if not first:
            if text[at : at + 1] != ",":
                yield text.count("\n", 0, at) + 1, UnusableItem("", "',' or ']' is missing; add it")
                return
            at = space.match(text, at + 1).end()  # type: ignore[union-attr]
        first = False
        line = text.count("\n", 0, at) + 1
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as e:
            number = text.count("\n", 0, e.pos) + 1 if isinstance(e, json.JSONDecodeError) else line
            said = e.msg.removesuffix(" at") if isinstance(e, json.JSONDecodeError) else str(e)
            yield number, UnusableItem("", f"is not JSON: {said}; the items after it are skipped")
            return
        yield line, _decoded(text[at:end].encode("utf-8", "surrogatepass"))
        at = end


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):  # JSON has no infinity
        raise ValueError(f"{text} is too large for a number")
    return number


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # above Python's limit on digits
        raise ValueError(f"a number of {len(text)} digits is too long") from None


_NUMBERS: dict[str, Any] = {
    "parse_constant": _no_constant,
    "parse_float": _finite,
    "parse_int": _whole,
}
